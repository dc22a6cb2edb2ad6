"""`demur fit`: a table with candidates in, a model file out; or answers into a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from demur.cli.shared import Debug, SkipBad, errors_in_one_line, split_list

# Where ids and candidates come from; `demur audit` takes the same.
Candidates = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="A column of lists or of separated labels, or 0/1 columns such as 'is_*'.",
    ),
]
Separator = Annotated[str, typer.Option("--sep", help="Between labels in one column.")]
AnswersFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Annotators' answers, one a row, or a Label Studio export."),
]
AnswerColumns = Annotated[str, typer.Option(help="Its columns of item, worker and label.")]
RuleText = Annotated[
    str,
    typer.Option(
        "--rule", help="Which answers are candidates: union, votes:N, share:P, reliable:P."
    ),
]
IdColumn = Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="Column of ids.")]
Classes = Annotated[
    str | None,
    typer.Option(help="All labels, with commas; others are bad rows. Default: those that occur."),
]
Control = Annotated[
    str | None, typer.Option(help="Which question of a Label Studio export, if it has several.")
]
TextColumns = Annotated[
    str | None, typer.Option("--text", help="Columns to one-hot encode though they are numbers.")
]
MaxValues = Annotated[int, typer.Option(min=1, help="Most values of a column of text.")]


def fit(
    table: Annotated[Path | None, typer.Argument(metavar="[TABLE]", help="- is stdin.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="MODEL", help="The model file.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Columns to learn from: names, f1:f99, 'pixel*'; commas.")
    ] = None,
    candidates: Candidates = None,
    sep: Separator = "|",
    answers: AnswersFile = None,
    answer_columns: AnswerColumns = "item,worker,label",
    rule: RuleText = "union",
    id_column: IdColumn = None,
    classes: Classes = None,
    control: Control = None,
    method: Annotated[str, typer.Option(help="dst-pll, pl-knn, proden and so on.")] = "dst-pll",
    parameter: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For methods that use chance.")] = 0,
    text: TextColumns = None,
    max_values: MaxValues = 50,
    impute: Annotated[
        bool, typer.Option("--impute", help="Fill missing values: median, most frequent text.")
    ] = False,
    scaling: Annotated[str, typer.Option(help="minmax, standard or none.")] = "minmax",
    skip_bad: SkipBad = None,
    update: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Add the answers in TABLE to this model instead."),
    ] = None,
    answer: Annotated[
        str | None, typer.Option(help="With --update: the column of answers (demur_answer).")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="With --update: whose coverage to tell.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Fit a method to a table with candidates, or add people's answers to a model.

    demur fit train.csv --features f1:f99 --candidates labels --method dst-pll -o model.demur

    demur fit --update model.demur answered.csv
    """
    with errors_in_one_line(debug):
        from demur import files

        if table is None:
            raise files.UsageError("name the table to learn from, such as train.csv.")
        if update is not None:
            chosen = (features, candidates, answers, id_column, classes, parameter, text, seed)
            usual = ("|", "union", "dst-pll", "minmax", 50, False)
            if any(chosen) or (sep, rule, method, scaling, max_values, impute) != usual:
                raise files.UsageError("--update keeps features, candidates and method.")
            done: Any = files.update(
                update, table,
                output=output, answer=answer, control=control, check=check, skip_bad=skip_bad,
            )  # fmt: skip
        else:
            if answer is not None or check is not None:
                raise files.UsageError("--answer and --check go with --update.")
            if output is None:
                raise files.UsageError("name the model file: -o model.demur.")
            if features is None:
                raise files.UsageError(
                    "say which columns to learn from: --features f1:f99, 'pixel*' or names."
                )
            done = files.fit(
                table, output,
                wanted=wanted(candidates, sep, answers, answer_columns, rule, id_column, classes,
                              control),
                features=features, method_name=method, parameters=parameters(parameter or []),
                seed=seed, text=split_list(text), max_values=max_values, impute=impute,
                scaling=scaling, skip_bad=skip_bad,
            )  # fmt: skip
        typer.echo(str(done))


def wanted(
    candidates: str | None,
    sep: str,
    answers: Path | None,
    answer_columns: str,
    rule: str,
    id_column: str | None,
    classes: str | None,
    control: str | None,
) -> Any:
    """Where ids and candidates come from, for the library."""
    from demur.files import Wanted

    return Wanted(
        candidates, sep, answers, split_list(answer_columns), rule, id_column,
        split_list(classes) or None, control,
    )  # fmt: skip


def parameters(given: list[str]) -> dict[str, Any]:
    """NAME=VALUE as parameters: numbers, true, false, none, lists with commas, or text."""
    from demur.files import UsageError

    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set wants NAME=VALUE, such as n_neighbors=20; got {one!r}.")
        parts = [_value(part.strip()) for part in value.split(",")]
        found[name.strip()] = tuple(parts) if len(parts) > 1 else parts[0]
    return found


def _value(text: str) -> Any:
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text

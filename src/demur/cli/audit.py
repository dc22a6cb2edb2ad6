"""`demur audit`: look at training data before learning from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli import fit
from demur.cli.shared import Debug, errors_in_one_line, split_list


def audit(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="The training table; - is stdin.")],
    features: Annotated[
        str | None, typer.Option(help="Columns to learn from, to find rows that contradict.")
    ] = None,
    candidates: fit.Candidates = None,
    sep: fit.Separator = "|",
    answers: fit.AnswersFile = None,
    answer_columns: fit.AnswerColumns = "item,worker,label",
    rule: fit.RuleText = "union",
    id_column: fit.IdColumn = None,
    classes: fit.Classes = None,
    control: fit.Control = None,
    text: fit.TextColumns = None,
    max_values: fit.MaxValues = 50,
    debug: Debug = False,
) -> None:
    """Say what is wrong with training data, and what will be hard to learn.

    demur audit train.csv --features f1:f99 --answers answers.csv --id image
    """
    with errors_in_one_line(debug):
        from demur import files

        found = files.audit(
            table,
            wanted=fit.wanted(
                candidates, sep, answers, answer_columns, rule, id_column, classes, control
            ),
            features=features,
            text=split_list(text),
            max_values=max_values,
        )
        typer.echo(str(found))

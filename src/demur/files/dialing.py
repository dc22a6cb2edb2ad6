"""The threshold that a dial asks for, on the command line: coverage, cost, or a certified risk."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from demur.files.columns import texts
from demur.files.errors import BadRows, DataError, UsageError
from demur.files.model_file import Model
from demur.files.plan_file import PlanFile
from demur.files.predicting import judged_pieces
from demur.files.tables import open_table
from demur.files.training import read_answered
from demur.reject import Promise, RejectClassifier
from demur.reject.certificate import check_coverage, check_share
from demur.reject.coverage import LARGE_STEP, cut_for_coverage
from demur.reject.scores import Fresh, out_of_fold

LARGEST = sys.float_info.max  # in place of infinity, which not every format can hold


class Dialled(NamedTuple):
    """A threshold, what is promised for it, and what to be warned of."""

    threshold: float
    promise: Promise
    warnings: list[str]


@dataclass(frozen=True)
class Dial:
    """Which dial is turned, and how far; at most one.

    Parameters
    ----------
    coverage, cost, max_risk : float, optional
    gold : path, optional
        A table with true labels: of rows that a plan drew, for ``max_risk``; of training rows
        with ids, for ``cost``.
    answer : str, optional
        Its column of labels; by default ``demur_answer``.
    """

    coverage: float | None = None
    cost: float | None = None
    max_risk: float | None = None
    gold: str | Path | None = None
    answer: str | None = None

    def __post_init__(self) -> None:
        given = [n for n in ("coverage", "cost", "max_risk") if getattr(self, n) is not None]
        if len(given) > 1:
            raise UsageError(f"turn one dial only; {' and '.join(map(_option, given))} are given.")
        if self.gold is not None and not {"cost", "max_risk"} & set(given):
            raise UsageError("--gold goes with --max-risk or --cost.")
        if self.answer is not None and self.gold is None:
            raise UsageError("--answer names the column of labels in --gold FILE.")
        for name in given:
            try:
                value = getattr(self, name)
                check_coverage(value) if name == "coverage" else check_share(name, value)
            except ValueError as error:
                raise UsageError(str(error).replace(name, _option(name), 1)) from None

    @property
    def turned(self) -> bool:
        """Whether any dial is."""
        return (self.coverage, self.cost, self.max_risk) != (None, None, None)

    def threshold(self, model: Model, model_path: str | Path, table: str | Path) -> Dialled:
        """What to accept by, for the rows of a table."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            if self.coverage is not None:
                limit, promise = _by_coverage(model, table, self.coverage)
            elif self.cost is not None:
                limit, promise = self._by_cost(model, self.cost)
            else:
                assert self.max_risk is not None
                limit, promise = self._by_certificate(model, model_path, self.max_risk)
        said = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        return Dialled(float(np.clip(limit, -LARGEST, LARGEST)), promise, said)

    def _by_cost(self, model: Model, cost: float) -> tuple[float, Promise]:
        X, held_out = judged_training(model)
        dial = RejectClassifier(FrozenEstimator(model.method), cost=cost, random_state=0)
        dial.adopt(held_out, X)
        if self.gold is not None:
            gold = read_gold(model, self.gold, self.answer)
            if gold.ids is None:
                raise UsageError(
                    "--gold with --cost names training rows by their ids; fit with --id COLUMN."
                )
            place = {value: i for i, value in enumerate(model.training.ids)}
            unknown = [value for value in gold.ids if value not in place]
            if unknown:
                raise DataError(
                    f"{self.gold}: {len(unknown)} row(s) such as id {unknown[0]!r} are no training "
                    "rows; --cost is corrected by verified training rows."
                )
            dial.recalibrate([place[value] for value in gold.ids], np.asarray(gold.labels))
        return dial.accept_threshold_, dial.promise_

    def _by_certificate(
        self, model: Model, model_path: str | Path, max_risk: float
    ) -> tuple[float, Promise]:
        known = PlanFile.of(model_path)
        if known is None:
            raise UsageError(
                f"nothing is planned yet: demur plan {model_path} TABLE --max-risk {max_risk:g} "
                "-o verify.csv draws the rows to verify."
            )
        known.check_model(model_path)
        if known.plan.max_risk != max_risk:
            raise UsageError(
                f"{known.path} is a plan for --max-risk {known.plan.max_risk:g}, not {max_risk:g}."
            )
        if self.gold is None:
            if known.promise is None:
                raise UsageError("--max-risk needs --gold FILE, the planned rows with true labels.")
            return known.promise.threshold, known.promise
        gold = read_gold(model, self.gold, self.answer, known.group_column)
        if known.tested is not None:
            known.check_same_gold(gold.X, gold.labels)
            assert known.promise is not None
            return known.promise.threshold, known.promise
        frozen = FrozenEstimator(model.method)
        dial = RejectClassifier(frozen, max_risk=max_risk, confidence=known.plan.confidence)
        dial.adopt(None, model.preparation.scale(model.training.X), ids=ids_of(model))
        dial.certify(
            gold.X, np.asarray(gold.labels), ids=gold.ids, groups=gold.groups, plan=known.plan
        )
        known.record(gold.X, gold.labels, dial.promise_)
        return dial.accept_threshold_, dial.promise_


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def ids_of(model: Model) -> list[str] | None:
    """Names of the training rows; those that have only a place in a file have none."""
    return None if model.id_column is None else model.training.ids


def judged_training(model: Model) -> tuple[NDArray[np.float64], Fresh]:
    """The training rows, scaled, and judged by models that have not seen them."""
    X = model.preparation.scale(model.training.X)
    return X, out_of_fold(clone(model.method), model.method, X, model.sets)


def _by_coverage(model: Model, table: str | Path, coverage: float) -> tuple[float, Promise]:
    """By the rows of the table itself, which is read for this alone."""
    if str(table) == "-":
        raise UsageError("--coverage reads the table twice; give a file instead of -.")
    with open_table(table) as source:
        # Bad rows are told by the second reading.
        bad = BadRows(source.name, source.unit, keep=True)
        scores = [decisions.accept for _, decisions in judged_pieces(model, source, bad)]
    known = np.concatenate([np.zeros(0), *scores])
    if not len(known):
        return np.inf, Promise("coverage", False, "no row to set it by", (), np.inf, 0.0)
    cut = cut_for_coverage(known, coverage, ties="whole")
    share = float(np.mean(known > cut.threshold))
    rests = [
        f"set by the accept scores of these {len(known):,} rows; on new rows like these it is "
        f"{share:.1%} on average, within 1/({len(known):,} + 1) where no scores are equal",
        "nothing is promised on the error",
    ]
    if cut.step > LARGE_STEP:
        warnings.warn(
            f"{cut.step:.1%} of the accept scores are equal at the threshold; they are taken or "
            "left as a whole.",
            UserWarning,
            stacklevel=1,
        )
    said = f"accepts {share:.1%} of this table, where {coverage:.1%} were asked for"
    return cut.threshold, Promise("coverage", True, said, tuple(rests), cut.threshold, share)


class Gold(NamedTuple):
    """Verified rows: features on the scale of the model, labels, and what names them."""

    X: NDArray[np.float64]
    labels: list[str]
    ids: list[str] | None
    groups: list[Any] | None


def read_gold(
    model: Model, path: str | Path, answer: str | None, group_column: str | None = None
) -> Gold:
    """The rows of a table that have a true label; those without wait."""
    with open_table(path) as source:
        chunk, found, waiting, bad = read_answered(source, model, answer, None, keep_bad=False)
        encoded = model.preparation.encode(chunk, source.name)
    bad.add(encoded.bad)
    bad.check()
    rows = np.flatnonzero(~waiting)
    if not len(rows):
        raise DataError(f"{source.name} holds no labels; fill in the column of answers.")
    several = [i for i in rows.tolist() if len(found.lists[i]) > 1]
    if several:
        raise DataError(
            f"{source.name}, {source.unit} {chunk.places[several[0]]}: gold is one true label a "
            f"row, but here are {len(found.lists[several[0]])}."
        )
    named = [model.id_column, group_column]
    columns: list[Any] = []
    for name in named:
        if name is not None and name not in chunk.table.column_names:
            raise DataError(f"{source.name} lacks the column {name!r}.")
        values = None if name is None else texts(chunk.table[name])
        columns.append(values and [values[i] for i in rows])
    X = model.preparation.scale(encoded.X[rows])
    return Gold(X, [found.lists[i][0] for i in rows], *columns)

"""Fit a method to a table with candidates, and write the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from demur.candidates import CandidateSets
from demur.files.errors import DataError, UsageError
from demur.files.features import learn_preparation
from demur.files.model_file import Model, TrainingData, is_alike, save
from demur.files.output import check_outputs, write_bad_rows
from demur.files.tables import open_table
from demur.files.training import Wanted, read_training
from demur.methods import METHODS, method


@dataclass
class Fitted:
    """What `fit` did."""

    path: str
    model: Model
    n_bad: int
    notes: list[str]

    def __str__(self) -> str:
        told = self.model.summary
        features = f"{self.model.preparation.n_features} features"
        lines = [
            f"fitted {self.model.name} on {told['rows']:,} rows, {features}, "
            f"{len(self.model.classes)} labels",
            f"candidates: {told['mean_size']:.2f} a row on average, one alone in "
            f"{told['singletons']:.1%} of the rows",
            *self.notes,
        ]
        if self.n_bad:
            lines.append(f"bad rows skipped: {self.n_bad:,}")
        return "\n".join([*lines, f"wrote {self.path}"])


def fit(
    path: str | Path,
    output: str | Path,
    *,
    wanted: Wanted,
    features: str | Sequence[str],
    method_name: str = "dst-pll",
    parameters: dict[str, Any] | None = None,
    seed: int = 0,
    text: Sequence[str] = (),
    impute: bool = False,
    max_values: int = 50,
    scaling: str = "minmax",
    skip_bad: str | Path | None = None,
) -> Fitted:
    """Fit a method to a table with candidates, and write the model.

    Parameters
    ----------
    path : str or path
        The training table.
    output : str or path
        The model file.
    wanted : Wanted
        Where ids and candidates come from.
    features : str or sequence of str
        Columns to learn from: names, patterns with ``*``, ranges ``first:last``.
    method_name : str
        A name of the registry.
    parameters : dict, optional
        Of the method.
    seed : int, default=0
        For methods that use chance.
    text, impute, max_values, scaling
        As for `demur.files.features.learn_preparation`.
    skip_bad : str or path, optional
        Where bad rows go; by default they are an error.

    Returns
    -------
    Fitted
    """
    check_outputs([path, wanted.answers], [output, skip_bad])
    estimator = make_method(method_name, parameters or {}, seed)
    with open_table(path) as source:
        if source.answers is not None and wanted.id_column is None and "id" in source.columns:
            wanted = replace(wanted, id_column="id")  # the tasks of Label Studio have one
        read = read_training(source, wanted, keep_bad=skip_bad is not None)
    wanted.refuse_features(features, source.columns)
    preparation = learn_preparation(
        read.chunk, source.name, features,
        text=text, impute=impute, max_values=max_values, scaling=scaling,
    )  # fmt: skip
    encoded = preparation.encode(read.chunk, source.name)
    read.bad.add(encoded.bad)
    read.bad.check()
    lists = [row for row, good in zip(read.lists, encoded.good, strict=True) if good]
    ids = [value for value, good in zip(read.ids, encoded.good, strict=True) if good]
    if len(lists) < 2:
        raise DataError(f"{source.name} leaves {len(lists)} usable row(s); nothing can be learned.")
    classes = wanted.classes or sorted({label for row in lists for label in row})
    if len(classes) < 2:
        raise DataError(f"{source.name} knows one label only, {classes[0]!r}; two are needed.")
    sets = CandidateSets(lists, classes=np.asarray(classes, dtype=str))
    training = TrainingData(encoded.X, sets.words, ids)
    model = Model(method_name, estimator, preparation, training, wanted.id_column)
    model.summary |= {"table": source.name, "unit": source.unit}
    learn(model, sets)
    save(model, output)
    if skip_bad is not None:
        write_bad_rows(skip_bad, read.bad.rows, source.unit)
    return Fitted(str(output), model, read.bad.count, read.notes)


def make_method(name: str, parameters: dict[str, Any], seed: int) -> Any:
    """An unfitted method, with parameters that may be text from a command line."""
    if name not in METHODS:
        raise UsageError(f"no method is called {name!r}; there are {', '.join(METHODS)}.")
    made = method(name)()
    known = made.get_params()
    for parameter, value in parameters.items():
        if parameter not in known:
            raise UsageError(
                f"{name} has no parameter {parameter!r}; it has {', '.join(sorted(known))}."
            )
        if known[parameter] is None and not is_alike(value, None):
            raise UsageError(f"{name}: {parameter} is a whole number or none; got {value!r}.")
    if "random_state" in known:
        made.set_params(random_state=seed)
    return made.set_params(**parameters)


def learn(model: Model, sets: CandidateSets) -> None:
    """Scale and fit, from the training data that a model keeps."""
    model.preparation.learn_scale(model.training.X)
    X = model.preparation.scale(model.training.X)
    try:
        model.method.fit(X, sets)
    except (TypeError, ValueError) as error:
        # What is said of a parameter begins with its name.
        named = str(error).split(" ", 1)[0] in model.method.get_params()
        raise (UsageError if named else DataError)(f"{model.name}: {error}") from error
    sizes = sets.sizes
    model.summary |= {
        "rows": len(sets),
        "mean_size": float(sizes.mean()),
        "singletons": float(np.mean(sizes == 1)),
    }

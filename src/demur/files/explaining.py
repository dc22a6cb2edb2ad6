"""Say why one row of a table is decided as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from demur.files.columns import texts
from demur.files.decisions import decide
from demur.files.errors import DataError, UsageError
from demur.files.model_file import Model, load
from demur.files.predicting import check_table, needed
from demur.files.tables import Chunk, TableFile, open_table


def explain(
    model: str | Path | Model, path: str | Path, row: int | None = None, id_value: str | None = None
) -> str:
    """Why one row of a table is decided as it is: the row of a number, from 1, or of an id."""
    model = model if isinstance(model, Model) else load(model)
    if (row is None) == (id_value is None):
        raise UsageError("say which row: --row NUMBER, from 1, or --id VALUE.")
    if id_value is not None and model.id_column is None:
        raise UsageError("the model was fitted without --id; say --row NUMBER.")
    if row is not None and row < 1:
        raise UsageError(f"rows are counted from 1; got --row {row}.")
    with open_table(path) as source:
        chunk = _find_row(model, source, row, id_value)
    encoded = model.preparation.encode(chunk, source.name)
    if encoded.bad:
        what = encoded.bad[0]
        raise DataError(f"{source.name}, {source.unit} {what.place}: {what.reason}")
    X = model.preparation.scale(encoded.X)
    title = f"{source.unit} {chunk.places[0]} of {source.name}"
    if model.id_column is not None:
        title += f", {model.id_column} {texts(chunk.table[model.id_column])[0]}"
    if hasattr(model.method, "explain"):
        told = f"{model.method.explain(X)}\n\n{_neighbor_ids(model, X)}"
        return f"{title}\n\n{told}"
    decisions = decide(model.method, X)
    lines = [title, ""]
    score, limit = decisions.accept[0], decisions.threshold
    if decisions.accepted[0]:
        lines.append(f"Accepted as {decisions.classes[decisions.top[0]]}.")
    else:
        lines.append(f"Demurs, {decisions.reasons()[0].as_py()}.")
    lines += [f"Accept score {score:.3f}, accepted when over {limit:g}.", "", "Probabilities"]
    width = max(map(len, decisions.classes))
    for y in np.argsort(-decisions.proba[0], kind="stable")[:8]:
        lines.append(f"  {decisions.classes[y]:{width}}  {decisions.proba[0, y]:.3f}")
    return "\n".join(lines)


def _neighbor_ids(model: Model, X: NDArray[np.float64]) -> str:
    """What the rows of the neighbours are called in the files they came from."""
    told = model.summary
    what = model.id_column or f"{told.get('unit')} of {told.get('table')}"
    rows = [neighbor.row for neighbor in model.method.explain(X).neighbors]
    return f"These rows, by {what}: " + ", ".join(model.training.ids[row] for row in rows)


def _find_row(model: Model, source: TableFile, row: int | None, id_value: str | None) -> Chunk:
    check_table(model, source)
    before = 0
    for chunk in source.chunks(needed(model)):
        if id_value is not None:
            found = [i for i, v in enumerate(texts(chunk.table[model.id_column])) if v == id_value]
        else:
            assert row is not None
            # Bad rows are rows too, so that the number is the place in the file.
            places = sorted([*chunk.places.tolist(), *(b.place for b in chunk.bad)])
            place = places[row - before - 1] if row - before <= len(places) else None
            before += len(places)
            for what in chunk.bad:
                if what.place == place:
                    raise DataError(f"{source.name}, {source.unit} {place}: {what.reason}")
            found = np.flatnonzero(chunk.places == place).tolist() if place is not None else []
        if found:
            i = found[0]
            return Chunk(chunk.table.slice(i, 1), chunk.places[i : i + 1], [])
    if id_value is not None:
        raise DataError(f"{source.name} has no row whose {model.id_column} is {id_value!r}.")
    raise DataError(f"{source.name} has {before:,} rows, so there is no row {row}.")

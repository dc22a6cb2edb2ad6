"""Measure a model on a table with true labels."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.files.columns import listed, texts
from demur.files.errors import BadRow, BadRows, DataError, UsageError
from demur.files.model_file import Model, load
from demur.files.output import atomic, check_outputs, write_bad_rows
from demur.files.predicting import judged_pieces
from demur.files.tables import join_cells, open_table


@dataclass
class Evaluated:
    """What `evaluate` found."""

    n_rows: int
    accuracy: float
    coverage: float
    accepted_accuracy: float
    aurc: float
    safest_half: float
    threshold: float
    n_bad: int
    labels: list[tuple[str, int, float, float]]
    plot: str | None = None

    def __str__(self) -> str:
        width = max(len("label"), *(len(label) for label, *_ in self.labels))
        lines = [
            f"{self.n_rows:,} rows with known labels",
            f"accuracy                  {self.accuracy:6.1%}",
            f"coverage                  {self.coverage:6.1%}   accept score over "
            f"{self.threshold:g}",
            f"accuracy of the accepted  {_percent(self.accepted_accuracy)}",
            f"accuracy of safest half   {self.safest_half:6.1%}",
            f"AURC                      {self.aurc:6.4f}   mean error over all coverages",
            "",
            f"{'label':{width}}   rows  accuracy  coverage",
            *(
                f"{label:{width}}  {count:5,}    {right:6.1%}    {taken:6.1%}"
                for label, count, right, taken in self.labels
            ),
        ]
        if self.n_bad:
            lines.append(f"bad rows skipped: {self.n_bad:,}")
        return "\n".join([*lines, *([f"wrote {self.plot}"] if self.plot else [])])


def _percent(value: float) -> str:
    return "  none" if np.isnan(value) else f"{value:6.1%}"


def evaluate(
    model: str | Path | Model,
    path: str | Path,
    truth: str,
    *,
    threshold: float | None = None,
    plot: str | Path | None = None,
    skip_bad: str | Path | None = None,
) -> Evaluated:
    """Measure a model on a table with true labels, in a column of it."""
    from demur import metrics

    model_path = None if isinstance(model, Model) else model
    check_outputs([model_path, path], [plot, skip_bad])
    if threshold is not None and np.isnan(threshold):
        raise UsageError("the threshold is no number; give one, such as 0.")
    model = model if isinstance(model, Model) else load(model)
    name = model.name
    known = set(model.classes)
    right_labels: list[str] = []
    predicted: list[NDArray[Any]] = []
    scores: list[NDArray[np.float64]] = []
    with open_table(path) as source:
        if truth not in source.columns:
            raise UsageError(
                f"{source.name} has no column {truth!r} (--truth); it has {listed(source.columns)}."
            )
        bad = BadRows(source.name, source.unit, keep=skip_bad is not None)
        wrong: list[BadRow] = []
        for chunk, decisions in judged_pieces(model, source, bad, threshold):
            cells = texts(chunk.table[truth])
            good = [i for i, label in enumerate(cells) if label in known]
            for i, label in enumerate(cells):
                if label not in known:
                    why = (
                        f"{truth} is missing"
                        if label is None
                        else (f"{truth} is {label!r}, which the model does not know")
                    )
                    wrong.append(BadRow(int(chunk.places[i]), why, join_cells(chunk.table, i)))
            right_labels += [str(cells[i]) for i in good]
            predicted.append(np.asarray(decisions.classes)[decisions.top[good]])
            scores.append(decisions.accept[good])
    bad.add(sorted(wrong))
    bad.check()
    if not right_labels:
        raise DataError(f"{source.name} holds no row with a known label.")
    y, z, score = np.asarray(right_labels), np.concatenate(predicted), np.concatenate(scores)
    limit = float(model.method.accept_threshold_) if threshold is None else float(threshold)
    accepted, right = score > limit, y == z
    if plot is not None:
        _draw(y, z, score, limit, name, plot)
    if skip_bad is not None:
        write_bad_rows(skip_bad, bad.rows, source.unit)
    return Evaluated(
        n_rows=len(y),
        accuracy=float(right.mean()),
        coverage=float(accepted.mean()),
        accepted_accuracy=float(right[accepted].mean()) if accepted.any() else float("nan"),
        aurc=metrics.aurc(y, z, score),
        safest_half=1.0 - metrics.risk_at_coverage(y, z, score, coverage=0.5),
        threshold=limit,
        n_bad=bad.count,
        labels=[
            (c, int((y == c).sum()), float(right[y == c].mean()), float(accepted[y == c].mean()))
            for c in model.classes
            if (y == c).any()
        ],
        plot=None if plot is None else str(plot),
    )


def _draw(
    y: NDArray[Any], z: NDArray[Any], score: Any, limit: float, name: str, path: str | Path
) -> None:
    try:
        import matplotlib as mpl
    except ImportError:
        raise UsageError('a plot needs matplotlib: pip install "demur[plot]".') from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from demur.plots import TradeOffDisplay

    display = TradeOffDisplay.from_predictions(y, z, score, threshold=limit, name=name)
    drawn = io.BytesIO()
    try:
        display.figure_.savefig(drawn, dpi=150, format=Path(path).suffix[1:] or "png")
    except ValueError as error:  # of an ending that is none of a picture
        raise UsageError(f"cannot draw {path}: {error}.") from None
    finally:
        plt.close(display.figure_)
    with atomic(path) as out:
        out.write(drawn.getvalue())

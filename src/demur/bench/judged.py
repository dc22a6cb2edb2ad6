"""What a run says of the instances that it judged; needs neither pandas nor pyarrow."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray


class Judged(NamedTuple):
    """What a run says of the instances that it judged.

    Attributes
    ----------
    row : ndarray of int
        Index of the instance in the dataset.
    y_true, y_pred : ndarray of int
        Position of the label among the dataset's classes.
    accept_score, max_proba : ndarray of float
    """

    row: NDArray[Any]
    y_true: NDArray[Any]
    y_pred: NDArray[Any]
    accept_score: NDArray[Any]
    max_proba: NDArray[Any]

"""The demonstration: two methods on the digits that come with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from demur.methods import method
from demur.methods.explanation import Explanation
from demur.metrics import accepted_accuracy, aurc, coverage
from demur.noise import READINGS, class_dependent_noise
from demur.plots import TradeOffDisplay

COMPARED = ("dst-pll", "pl-knn")
MEASURES = ("accuracy", "coverage", "accuracy of accepted", "AURC")


@dataclass
class MethodResult:
    """What one method did over the seeds.

    Attributes
    ----------
    name : str
    threshold : float
    measures : list of dict
        One a seed, with a value for each of `MEASURES`.
    truth, predicted, scores : lists of arrays
        One a seed, over the test instances.
    """

    name: str
    threshold: float = np.nan
    measures: list[dict[str, float]] = field(default_factory=list)
    truth: list[NDArray[Any]] = field(default_factory=list)
    predicted: list[NDArray[Any]] = field(default_factory=list)
    scores: list[NDArray[np.float64]] = field(default_factory=list)

    def summary(self, measure: str) -> tuple[float, float]:
        """Mean and standard deviation over the seeds."""
        values = [row[measure] for row in self.measures]
        return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


@dataclass
class Demo:
    """Results of all methods, and one digit that DST-PLL rejects."""

    results: list[MethodResult]
    digit: NDArray[np.float64]
    digit_label: int
    explanation: Explanation

    def draw(self, path: Path) -> None:
        """Draw the trade-off curves of all seeds together."""
        ax = None
        for result in self.results:
            display = TradeOffDisplay.from_predictions(
                np.concatenate(result.truth),
                np.concatenate(result.predicted),
                np.concatenate(result.scores),
                threshold=result.threshold,
                name=result.name,
                ax=ax,
            )
            ax = display.ax_
        display.figure_.set_size_inches(6.4, 4.2)
        display.figure_.savefig(path, dpi=160)


def run_demo(n_seeds: int = 5, advance: Callable[[], object] = lambda: None) -> Demo:
    """Train and judge both methods on each seed's split and noise.

    Parameters
    ----------
    n_seeds : int, default=5
    advance : callable
        Called after each fit.

    Returns
    -------
    Demo
    """
    X, y = load_digits(return_X_y=True)
    results = [MethodResult(name) for name in COMPARED]
    rejected: tuple[NDArray[np.float64], int, Explanation] | None = None
    for seed in range(n_seeds):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.2, random_state=seed, stratify=y
        )
        scaler = MinMaxScaler().fit(X_train)
        sets = class_dependent_noise(
            y_train, **READINGS["paper"]["class-dependent"], random_state=seed
        )
        for result in results:
            model = method(result.name)()
            if "random_state" in model.get_params():
                model.set_params(random_state=seed)
            model.fit(scaler.transform(X_train), sets)
            top, _, scores = model.judge(scaler.transform(X_test))
            predicted = model.classes_[top]
            accepted = scores > model.accept_threshold_
            result.threshold = model.accept_threshold_
            result.truth.append(y_test)
            result.predicted.append(predicted)
            result.scores.append(scores)
            values = (
                float(np.mean(predicted == y_test)),
                coverage(accepted),
                accepted_accuracy(y_test, predicted, accepted),
                aurc(y_test, predicted, scores),
            )
            result.measures.append(dict(zip(MEASURES, values, strict=True)))
            # A wrong prediction that was withheld shows best what demurring is for.
            withheld = np.flatnonzero(~accepted & (predicted != y_test))
            if rejected is None and hasattr(model, "explain") and len(withheld):
                i = withheld[0]
                explanation = model.explain(scaler.transform(X_test[i : i + 1]))
                rejected = X_test[i].reshape(8, 8), int(y_test[i]), explanation
            advance()
    assert rejected is not None, "among five test splits of the digits some are rejected"
    return Demo(results, *rejected)

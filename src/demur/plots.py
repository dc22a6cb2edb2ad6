"""Pictures of the trade-off between how much is rejected and how good the rest is."""

from __future__ import annotations

import copy
import textwrap
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.metrics import coverage, judge, risk_coverage_curve

if TYPE_CHECKING:
    from demur.reject import RejectClassifier

_GID = "demur-trade-off"  # marks our lines on axes that may hold others
_LINE_STYLES = ("-", "--", "-.", ":", (0, (12, 3)))
_MARKERS = ("o", "s", "^", "D", "P", "v", "X", "*", "<", "h", ">")
_MAX_POINTS = 101  # of a curve; more only make dashes ragged and files large
_Y_STEP = 0.05  # the y axis starts at a multiple of this
_MOST_INSIDE = 5  # more names in a legend than these would cover the curves


class TradeOffDisplay:
    """Accuracy of the accepted predictions against the share of rejected ones.

    Make one by `from_estimator` or `from_predictions`; the numbers are computed once and
    kept, and `plot` draws them, also several on one pair of axes.

    Every point is one threshold: instances with larger accept scores are accepted, and those
    of one score go together. The line joins about a hundred points, evenly spaced. Towards the
    right few predictions are left and their accuracy is mostly chance, so the line ends where
    fewer than ``min_accepted`` are. All points stay in the attributes. The marker is the
    method's own threshold, and the line always reaches it.

    Parameters
    ----------
    rejected : ndarray of shape (n_points,)
        Share of rejected instances, ascending from 0.
    accuracy : ndarray of shape (n_points,)
        Share of right predictions among the accepted.
    thresholds : ndarray of shape (n_points,)
        Accepting where ``score > thresholds[i]`` gives point i.
    n_instances : int
        Number of instances the shares are of.
    operating_point : tuple of two floats, optional
        Share rejected and accuracy of the accepted at a method's own threshold: the point to
        mark. The accuracy is NaN, and nothing is marked, where that rejects all.
    name : str, optional
        Name in the legend.

    Attributes
    ----------
    line_ : matplotlib.lines.Line2D
        The curve, its marker the operating point. Set by `plot`.
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from demur import TradeOffDisplay
    >>> display = TradeOffDisplay.from_predictions(
    ...     y_true=[0, 1, 1, 0], y_pred=[0, 1, 0, 0], accept_score=[0.9, 0.8, 0.4, 0.1],
    ...     threshold=0.5, name="example",
    ... )
    >>> display.operating_point
    (0.5, 1.0)
    >>> display.accuracy.round(3).tolist()
    [0.75, 0.667, 1.0, 1.0]
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        *,
        rejected: NDArray[np.float64],
        accuracy: NDArray[np.float64],
        thresholds: NDArray[np.float64],
        n_instances: int,
        operating_point: tuple[float, float] | None = None,
        name: str | None = None,
    ) -> None:
        self.rejected = rejected
        self.accuracy = accuracy
        self.thresholds = thresholds
        self.n_instances = n_instances
        self.operating_point = operating_point
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y_true: ArrayLike,
        *,
        ax: Any = None,
        name: str | None = None,
        min_accepted: int = 30,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Judge X by a fitted method and draw; its own threshold is marked.

        Parameters
        ----------
        estimator : PartialLabelClassifier
            A fitted method, or a Pipeline or a search (such as GridSearchCV) that ends in one.
        X : array-like of shape (n, n_features)
        y_true : array-like of shape (n,)
            True labels.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; new ones by default.
        name : str, optional
            Name in the legend; by default the name of the method's class.
        min_accepted : int, default=30
            The line ends where fewer than this are accepted.
        curve_kwargs : dict, optional
            Passed to ``ax.plot``.
        """
        judged = judge(estimator, X)
        return cls.from_predictions(
            y_true,
            judged.predicted,
            judged.score,
            threshold=judged.method.accept_threshold_,
            ax=ax,
            name=type(judged.method).__name__ if name is None else name,
            min_accepted=min_accepted,
            curve_kwargs=curve_kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        accept_score: ArrayLike,
        *,
        threshold: float | None = None,
        ax: Any = None,
        name: str | None = None,
        min_accepted: int = 30,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw from predictions and accept scores, of any classifier.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n,)
        accept_score : array-like of shape (n,)
            Higher is safer.
        threshold : float, optional
            The operating point that accepts scores over it is marked; none by default.
        ax, name, min_accepted, curve_kwargs
            As in `from_estimator`, but there is no default name.
        """
        curve = risk_coverage_curve(y_true, y_pred, accept_score)
        rejected, accuracy = 1.0 - curve.coverages[::-1], 1.0 - curve.risks[::-1]
        operating_point = None
        if threshold is not None:
            if np.isnan(threshold):
                raise ValueError("threshold is NaN; give a number, or None for no marker.")
            share = 1.0 - coverage(np.asarray(accept_score, dtype=np.float64) > threshold)
            place = np.searchsorted(rejected, share)
            operating_point = (share, float(np.append(accuracy, np.nan)[place]))
        display = cls(
            rejected=rejected,
            accuracy=accuracy,
            thresholds=curve.thresholds[::-1],
            n_instances=len(np.asarray(accept_score)),
            operating_point=operating_point,
            name=name,
        )
        return display.plot(ax, min_accepted=min_accepted, curve_kwargs=curve_kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        min_accepted: int = 30,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; new ones by default. Each display on the same axes gets the next
            line style and marker, so that they can be told apart in grey.
        name : str, optional
            Name in the legend; by default the display's own.
        min_accepted : int, default=30
            The line ends where fewer than this are accepted.
        curve_kwargs : dict, optional
            Passed to ``ax.plot``.

        Returns
        -------
        self
        """
        if min_accepted < 1:
            raise ValueError(f"min_accepted must be at least 1; got {min_accepted}.")
        if ax is None:
            _, ax = _pyplot().subplots(layout="constrained")
        drawn, marked = self._drawn(min_accepted)
        nth = sum(line.get_gid() == _GID for line in ax.get_lines())
        style: dict[str, Any] = {
            "linestyle": _LINE_STYLES[nth % len(_LINE_STYLES)],
            "linewidth": 1.8,
            "markersize": 9,
            "markeredgecolor": "white",
            "markeredgewidth": 0.8,
            "zorder": 3,
        }
        if marked is not None:
            style |= {"marker": _MARKERS[nth % len(_MARKERS)], "markevery": [marked]}
        (self.line_,) = ax.plot(
            self.rejected[drawn],
            self.accuracy[drawn],
            label=self.name if name is None else name,
            gid=_GID,
            **style | (curve_kwargs or {}),
        )
        _dress(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _drawn(self, min_accepted: int) -> tuple[NDArray[np.intp], int | None]:
        """Which points to draw, and which of those is marked."""
        end = max(0.0, 1.0 - min_accepted / self.n_instances)
        drawn = np.searchsorted(self.rejected, np.linspace(0.0, end, _MAX_POINTS), "right") - 1
        own = () if self.operating_point is None else self.operating_point[:1]
        marked = np.flatnonzero(np.isin(self.rejected, own))  # none where all are rejected
        drawn = np.union1d(drawn, marked)
        return drawn, int(np.searchsorted(drawn, marked[0])) if len(marked) else None


class DialDisplay:
    """A dial on the trade-off curve: the point it chose, and what is certified for it.

    Parameters
    ----------
    curve : TradeOffDisplay
        Its operating point is the dial's.
    bound : tuple of two floats, optional
        Accuracy that the accepted predictions have at least, and with which confidence.
    statement : str
        What is promised.

    Attributes
    ----------
    bound_ : matplotlib.lines.Line2D
        The bound. Set by `plot`, if there is one.
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    """

    def __init__(
        self,
        *,
        curve: TradeOffDisplay,
        bound: tuple[float, float] | None = None,
        statement: str = "",
    ) -> None:
        self.curve = curve
        self.bound = bound
        self.statement = statement

    @classmethod
    def from_estimator(
        cls,
        model: RejectClassifier,
        X: Any,
        y_true: ArrayLike,
        *,
        ax: Any = None,
        name: str | None = None,
        min_accepted: int = 30,
    ) -> Self:
        """Draw a fitted `RejectClassifier` on instances with known labels.

        Parameters
        ----------
        model : RejectClassifier
        X : array-like of n rows
        y_true : array-like of shape (n,)
        ax : matplotlib.axes.Axes, optional
        name : str, optional
            Name in the legend; by default that of the estimator's class.
        min_accepted : int, default=30
            The line ends where fewer than this are accepted.
        """
        judged = judge(model, X)
        curve = TradeOffDisplay.from_predictions(
            y_true,
            judged.predicted,
            judged.score,
            threshold=model.accept_threshold_,
            ax=ax,
            name=type(model.estimator).__name__ if name is None else name,
            min_accepted=min_accepted,
        )
        promise = model.promise_
        bound = None
        # A bound that a declared ambiguity would give is none that was certified.
        if promise.kind == "certificate" and promise.holds and model.max_risk is not None:
            bound = (1.0 - model.max_risk, model.confidence)
        return cls(curve=curve, bound=bound, statement=promise.statement)._dress(curve.ax_)

    def plot(self, ax: Any = None, *, min_accepted: int = 30) -> Self:
        """Draw again, also on other axes."""
        self.curve.plot(ax, min_accepted=min_accepted)
        return self._dress(self.curve.ax_)

    def _dress(self, ax: Any) -> Self:
        self.ax_, self.figure_ = ax, ax.figure
        ax.set_title(textwrap.fill(self.statement, 64), fontsize="small", loc="left")
        legend = ax.get_legend()
        if legend is not None:
            legend.set_title("Marker: where the dial stands")
        if self.bound is None:
            return self
        accuracy, confidence = self.bound
        bottom, top = ax.get_ylim()
        ax.set_ylim(min(bottom, accuracy - 0.1 * (top - accuracy)), top)
        color = self.curve.line_.get_color()
        self.bound_ = ax.axhline(accuracy, color=color, linewidth=1.0, linestyle=":", zorder=2)
        ax.annotate(
            f"certified: at least {accuracy:.0%}, with {confidence:.0%} confidence",
            (0.98, accuracy), xycoords=("axes fraction", "data"), xytext=(0, -3),
            textcoords="offset points", ha="right", va="top", fontsize="small", color=color,
        )  # fmt: skip
        if self.curve.operating_point is not None:
            rejected, right = self.curve.operating_point
            if np.isfinite(right):
                ax.plot([rejected] * 2, [accuracy, right], color=color, linewidth=1.0, zorder=2)
        return self


class GoldDisplay:
    """What a certificate may be expected to accept, by the number of gold labels.

    Parameters
    ----------
    n_gold : ndarray of int, shape (n_points,)
    coverage : ndarray of shape (n_points,)
        Expected coverage, failures counted as 0.
    chance : ndarray of shape (n_points,)
        That anything passes.
    max_risk, confidence : float

    Attributes
    ----------
    lines_ : tuple of two matplotlib.lines.Line2D
        Coverage and chance. Set by `plot`.
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    """

    def __init__(
        self,
        *,
        n_gold: NDArray[np.intp],
        coverage: NDArray[np.float64],
        chance: NDArray[np.float64],
        max_risk: float,
        confidence: float,
    ) -> None:
        self.n_gold = n_gold
        self.coverage = coverage
        self.chance = chance
        self.max_risk = max_risk
        self.confidence = confidence

    @classmethod
    def from_estimator(
        cls,
        model: RejectClassifier,
        n_gold: ArrayLike = (30, 60, 100, 150, 200, 300, 400),
        *,
        ax: Any = None,
    ) -> Self:
        """Plan for several numbers of gold labels, and draw; ``model.plan_`` stays as it is.

        Parameters
        ----------
        model : RejectClassifier
            Fitted, with ``max_risk``.
        n_gold : array-like of int
            Numbers too small for any test to pass count as 0.
        ax : matplotlib.axes.Axes, optional
        """
        counts = np.unique(np.asarray(n_gold, dtype=np.intp))
        planner = copy.copy(model)
        coverages, chances = np.zeros(len(counts)), np.zeros(len(counts))
        plan = planner.plan(n_gold=max(int(counts[-1]), 1))
        for i, n in enumerate(counts.tolist()):
            if n >= plan.least[0]:
                plan = planner.plan(n_gold=n)
                coverages[i], chances[i] = plan.expected_coverage, plan.chance
        display = cls(
            n_gold=counts,
            coverage=coverages,
            chance=chances,
            max_risk=plan.max_risk,
            confidence=plan.confidence,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw both lines."""
        if ax is None:
            _, ax = _pyplot().subplots(layout="constrained")
        from matplotlib.ticker import PercentFormatter

        (first,) = ax.plot(self.n_gold, self.coverage, marker="o", label="expected coverage")
        (second,) = ax.plot(
            self.n_gold, self.chance, marker="s", linestyle="--", label="chance that any passes"
        )
        ax.set(xlabel="Gold labels", ylabel="By the plan", xlim=(0, None), ylim=(-0.02, 1.03))
        ax.set_title(
            f"error of at most {self.max_risk:.3g}, with {self.confidence:.3g} confidence",
            fontsize="small", loc="left",
        )  # fmt: skip
        ax.yaxis.set_major_formatter(PercentFormatter(xmax=1.0, decimals=0))
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="0.9", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.legend(framealpha=0.85, edgecolor="none")
        self.lines_ = (first, second)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib; install it with `pip install "demur[plot]"`.'
        ) from error
    return plt


def _dress(ax: Any) -> None:
    """Axes, grid and legend for the curves drawn so far."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    curves = [line for line in ax.get_lines() if line.get_gid() == _GID]
    lowest = min(line.get_ydata().min(initial=1.0) for line in curves)
    bottom = max(0.0, _Y_STEP * np.floor(lowest / _Y_STEP - 0.2))
    ax.set(
        xlabel="Rejected predictions",
        ylabel="Accuracy of the accepted predictions",
        xlim=(-0.02, 1.0),
        # A little room above 100 %, so that a line or a marker there is seen whole.
        ylim=(bottom, 1.0 + 0.03 * (1.0 - bottom)),
    )
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(PercentFormatter(xmax=1.0, decimals=0))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    named = sum(not line.get_label().startswith("_") for line in curves)
    if named:
        marked = any(line.get_markevery() is not None for line in curves)
        ax.legend(
            title="Marker: the method's\nown threshold" if marked else None,
            title_fontsize="small",
            framealpha=0.85,
            edgecolor="none",
            alignment="left",
            handlelength=4.0,
            **_place_of_legend(ax, named),
        )


def _place_of_legend(ax: Any, n_names: int) -> dict[str, Any]:
    """Inside, or beside the axes where it is long and the layout makes room for it."""
    if n_names > _MOST_INSIDE and ax.figure.get_layout_engine() is not None:
        return {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    return {"loc": "best"}

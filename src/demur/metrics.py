"""Metrics of predictions that may be withheld: coverage, risks, curves, areas, and scorers.

Everywhere a prediction is accepted when its score is larger than a threshold, so instances of
one score are accepted together or not at all. The points of a risk-coverage curve are those
that a threshold can reach. The areas need an order among all instances: they are the expected
value over the random orders of the instances that share a score, so that they neither depend
on the order of the rows nor reward a method for breaking ties by luck. As the expected number
of errors grows linearly through a tie, this is exact, and costs one sort.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from demur.base import read_like
from demur.candidates import is_missing

Reading = Literal["text", "code"]

# Shares are ratios of counts; a limit such as 1 - 0.9 misses 1/10 by a rounding error. Two
# different ratios are at least 1/n apart, so this cannot confuse them for any n in memory.
_ROUNDING = 1e-12


# ---------------------------------------------------------------------- checks


def _vector(values: ArrayLike, name: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} is masked, but a value is needed for every instance; "
            "pass what predict(X) and accept_score(X) give, not decide(X)."
        )
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one value a row; got {array.shape}.")
    if len(array) == 0:
        raise ValueError(f"{name} is empty; at least one instance is needed.")
    return array


def _check_lengths(**vectors: NDArray[Any]) -> None:
    if len({len(vector) for vector in vectors.values()}) > 1:
        sizes = ", ".join(f"{name} {len(vector)}" for name, vector in vectors.items())
        raise ValueError(f"one value an instance is needed, but the lengths differ: {sizes}.")


def _check_labels(labels: NDArray[Any], name: str) -> None:
    if labels.dtype.kind == "O":
        missing = np.flatnonzero([is_missing(label) for label in labels])
    elif labels.dtype.kind == "f":
        missing = np.flatnonzero(np.isnan(labels))
    else:
        return
    if len(missing):
        raise ValueError(
            f"{name} holds no label (None or NaN) at row {missing[0]} "
            f"({len(missing)} such row(s)); withheld predictions are told by accepted."
        )


def _check_comparable(truth: NDArray[Any], predicted: NDArray[Any], name: str) -> None:
    """Refuse to compare text with numbers. Asked only when nothing agrees: else they do mix."""
    given, told = truth.tolist(), predicted.tolist()
    if {isinstance(label, str) for label in given}.isdisjoint(isinstance(p, str) for p in told):
        raise ValueError(
            f"{name} holds labels such as {given[0]!r} but the predictions are such as "
            f"{told[0]!r}, so none can be right; use the same type of label in both."
        )


def _wrong(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.bool_]:
    """Whether each prediction differs from the true label."""
    truth, predicted = _vector(y_true, "y_true"), _vector(y_pred, "y_pred")
    _check_lengths(y_true=truth, y_pred=predicted)
    _check_labels(truth, "y_true")
    _check_labels(predicted, "y_pred")
    wrong = np.asarray(truth != predicted, dtype=bool)
    if wrong.all():
        _check_comparable(truth, predicted, "y_true")
    return wrong


def _accept_scores(score: ArrayLike) -> NDArray[np.float64]:
    values = _vector(score, "score")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"score must hold numbers, higher is safer; got dtype {values.dtype}.")
    numbers = values.astype(np.float64)
    bad = np.flatnonzero(np.isnan(numbers) | (numbers == -np.inf))
    if len(bad):
        raise ValueError(
            f"score is {numbers[bad[0]]} at row {bad[0]} ({len(bad)} row(s) are NaN or -inf); "
            "no threshold accepts such an instance, so give each a number."
        )
    return numbers


def _accepted(accepted: ArrayLike, name: str = "accepted") -> NDArray[np.bool_]:
    """Which predictions are accepted, told by booleans or by the mask of `decide`."""
    if isinstance(accepted, np.ma.MaskedArray):
        told = ~np.ma.getmaskarray(accepted)
        return _vector(told, name)
    told = _vector(accepted, name)
    if told.dtype != bool:
        raise ValueError(
            f"{name} must be booleans, such as score > threshold, or the masked array that "
            f"decide(X) gives; got dtype {told.dtype}."
        )
    return told


def _unit(value: float, name: str) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} is a share and must be between 0 and 1; got {value}.")
    return float(value)


# ---------------------------------------------------------------------- one set of decisions


class _Tally(NamedTuple):
    n: int
    accepted: int
    errors: int  # wrong predictions among the accepted


def _tally(y_true: ArrayLike, y_pred: ArrayLike, accepted: ArrayLike | None) -> _Tally:
    if isinstance(y_pred, np.ma.MaskedArray):
        if accepted is not None:
            raise ValueError(
                "y_pred is masked, which already tells what is accepted; leave accepted out."
            )
        kept = _accepted(y_pred, "y_pred")
        y_pred = y_pred.data
    elif accepted is None:
        raise ValueError(
            "which predictions are accepted? Pass accepted=score > threshold, or the masked "
            "array that decide(X) gives as y_pred."
        )
    else:
        kept = _accepted(accepted)
    truth, predicted = _vector(y_true, "y_true"), _vector(y_pred, "y_pred")
    _check_lengths(y_true=truth, y_pred=predicted, accepted=kept)
    if not kept.any():
        return _Tally(len(kept), 0, 0)
    # Withheld predictions are not looked at, whatever stands in their place.
    wrong = _wrong(truth[kept], predicted[kept])
    return _Tally(len(kept), len(wrong), int(wrong.sum()))


def _accuracy_of(tally: _Tally) -> float:
    if not tally.accepted:
        return float("nan")
    return (tally.accepted - tally.errors) / tally.accepted


def _risk_of(tally: _Tally, lam: float, reading: Reading) -> float:
    rejects = (tally.n - tally.accepted) / tally.n
    if reading == "text":
        return tally.errors / tally.n + lam * rejects
    if not tally.accepted:
        return float("nan")
    return tally.errors / tally.accepted + lam * rejects


def _check_risk_parameters(lam: float, reading: str) -> None:
    if not 0.0 <= lam < np.inf:
        raise ValueError(f"lam is the cost of a reject and must be 0 or more; got {lam}.")
    if reading not in ("text", "code"):
        raise ValueError(f"reading must be 'text' or 'code'; got {reading!r}.")


def coverage(accepted: ArrayLike) -> float:
    """Share of the instances whose prediction is accepted.

    Parameters
    ----------
    accepted : boolean array of shape (n,), or the masked array that `decide` gives

    Examples
    --------
    >>> from demur.metrics import coverage
    >>> coverage([True, True, False, True])
    0.75
    """
    return float(_accepted(accepted).mean())


def accepted_accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, accepted: ArrayLike | None = None
) -> float:
    """Share of the accepted predictions that are right; NaN where none is accepted.

    Parameters
    ----------
    y_true : array-like of shape (n,)
    y_pred : array-like of shape (n,)
        Predictions, or the masked array that `decide` gives.
    accepted : boolean array of shape (n,), optional
        Left out when ``y_pred`` is masked.

    Examples
    --------
    >>> from demur.metrics import accepted_accuracy
    >>> accepted_accuracy(["a", "b", "b"], ["a", "b", "a"], accepted=[True, True, False])
    1.0
    """
    return _accuracy_of(_tally(y_true, y_pred, accepted))


def reject_risk(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    accepted: ArrayLike | None = None,
    *,
    lam: float,
    reading: Reading = "text",
) -> float:
    """Risk of predicting where an error costs 1 and a reject costs ``lam``.

    Parameters
    ----------
    y_true : array-like of shape (n,)
    y_pred : array-like of shape (n,)
        Predictions, or the masked array that `decide` gives.
    accepted : boolean array of shape (n,), optional
        Left out when ``y_pred`` is masked.
    lam : float
        Cost of a reject, 0 or more.
    reading : {"text", "code"}, default="text"
        With E wrong among A accepted predictions of n: the paper's text says
        ``E / n + lam * (n - A) / n``; its published code, and so its table 2, computes
        ``E / A + lam * (n - A) / n``, which is NaN where none is accepted.

    Examples
    --------
    >>> from demur.metrics import reject_risk
    >>> y_true, y_pred, accepted = [0, 1, 2, 2], [0, 1, 0, 2], [True, False, True, False]
    >>> reject_risk(y_true, y_pred, accepted, lam=0.1)
    0.3
    >>> reject_risk(y_true, y_pred, accepted, lam=0.1, reading="code")
    0.55
    """
    _check_risk_parameters(lam, reading)
    return _risk_of(_tally(y_true, y_pred, accepted), lam, reading)


# ---------------------------------------------------------------------- all thresholds


class _Steps(NamedTuple):
    counts: NDArray[np.int64]  # accepted instances, ascending; the last is n
    errors: NDArray[np.int64]  # wrong predictions among them
    thresholds: NDArray[np.float64]


def _steps(wrong: NDArray[np.bool_], scores: NDArray[np.float64]) -> _Steps:
    """What each threshold accepts, one step per distinct score."""
    order = np.argsort(scores)[::-1]
    ranked = scores[order]
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    return _Steps(
        counts=last + 1,
        errors=np.cumsum(wrong[order], dtype=np.int64)[last],
        thresholds=np.append(ranked[last[:-1] + 1], -np.inf),
    )


def _checked_steps(y_true: ArrayLike, y_pred: ArrayLike, score: ArrayLike) -> _Steps:
    wrong, scores = _wrong(y_true, y_pred), _accept_scores(score)
    _check_lengths(y_true=wrong, score=scores)
    return _steps(wrong, scores)


class RiskCoverageCurve(NamedTuple):
    """The points that a threshold can reach, from the fewest accepted to all.

    Attributes
    ----------
    coverages : ndarray of shape (n_distinct_scores,)
        Share accepted, ascending; the last is 1.
    risks : ndarray of shape (n_distinct_scores,)
        Share of wrong predictions among the accepted.
    thresholds : ndarray of shape (n_distinct_scores,)
        Accepting where ``score > thresholds[i]`` gives point i. Each is the largest score
        that is not accepted; the last is minus infinity.
    """

    coverages: NDArray[np.float64]
    risks: NDArray[np.float64]
    thresholds: NDArray[np.float64]


def risk_coverage_curve(
    y_true: ArrayLike, y_pred: ArrayLike, score: ArrayLike
) -> RiskCoverageCurve:
    """Risk of the accepted predictions against their share, for every threshold.

    Instances of one score are one step. Coverage 0 is left out: it has no risk.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
    score : array-like of shape (n,)
        Accept scores, higher is safer.

    Returns
    -------
    RiskCoverageCurve
        ``coverages, risks, thresholds``.

    Examples
    --------
    >>> from demur.metrics import risk_coverage_curve
    >>> coverages, risks, thresholds = risk_coverage_curve(
    ...     y_true=[0, 1, 1, 0], y_pred=[0, 1, 0, 0], score=[0.9, 0.9, 0.4, 0.1]
    ... )
    >>> coverages.tolist()
    [0.5, 0.75, 1.0]
    >>> risks.round(3).tolist()
    [0.0, 0.333, 0.25]
    >>> thresholds.tolist()
    [0.4, 0.1, -inf]
    """
    counts, errors, thresholds = _checked_steps(y_true, y_pred, score)
    return RiskCoverageCurve(counts / counts[-1], errors / counts, thresholds)


def coverage_at_risk(
    y_true: ArrayLike, y_pred: ArrayLike, score: ArrayLike, *, risk: float
) -> float:
    """Largest coverage that a threshold can reach with at most this risk; 0 where none can.

    Examples
    --------
    >>> from demur.metrics import coverage_at_risk
    >>> coverage_at_risk([0, 1, 1, 0], [0, 1, 0, 0], [0.9, 0.8, 0.4, 0.1], risk=0.3)
    1.0
    >>> coverage_at_risk([0, 1, 1, 0], [0, 1, 0, 0], [0.9, 0.8, 0.4, 0.1], risk=0.2)
    0.5
    """
    limit = _unit(risk, "risk") + _ROUNDING
    curve = risk_coverage_curve(y_true, y_pred, score)
    return float(curve.coverages[curve.risks <= limit].max(initial=0.0))


def risk_at_coverage(
    y_true: ArrayLike, y_pred: ArrayLike, score: ArrayLike, *, coverage: float
) -> float:
    """Risk at the smallest coverage that a threshold can reach and that is at least this.

    Examples
    --------
    >>> from demur.metrics import risk_at_coverage
    >>> risk_at_coverage([0, 1, 1, 0], [0, 1, 0, 0], [0.9, 0.8, 0.4, 0.1], coverage=0.5)
    0.0
    >>> risk_at_coverage([0, 1, 1, 0], [0, 1, 0, 0], [0.9, 0.8, 0.4, 0.1], coverage=0.8)
    0.25
    """
    least = _unit(coverage, "coverage") - _ROUNDING
    curve = risk_coverage_curve(y_true, y_pred, score)
    return float(curve.risks[np.searchsorted(curve.coverages, least)])


# ---------------------------------------------------------------------- areas


def _mean_risk(steps: _Steps) -> float:
    """Mean of the expected risks of the 1, 2, ..., n safest predictions."""
    accepted = np.arange(1, steps.counts[-1] + 1)
    errors = np.interp(accepted, np.append(0, steps.counts), np.append(0, steps.errors))
    return float(np.mean(errors / accepted))


def aurc(y_true: ArrayLike, y_pred: ArrayLike, score: ArrayLike) -> float:
    """Area under the risk-coverage curve; smaller is better.

    With the instances ordered from the safest on, and E_k wrong among the first k, this is
    ``(E_1 / 1 + E_2 / 2 + ... + E_n / n) / n`` [1]_: the mean risk over all coverages. Where
    instances share a score it is the expected value over the random orders among them.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
    score : array-like of shape (n,)
        Accept scores, higher is safer.

    References
    ----------
    .. [1] Y. Geifman, G. Uziel and R. El-Yaniv. Bias-reduced uncertainty estimation for deep
       neural classifiers. ICLR 2019.

    Examples
    --------
    >>> from demur.metrics import aurc
    >>> aurc([0, 1, 1, 0], [0, 1, 1, 1], [0.9, 0.8, 0.7, 0.1])
    0.0625
    """
    return _mean_risk(_checked_steps(y_true, y_pred, score))


def excess_aurc(y_true: ArrayLike, y_pred: ArrayLike, score: ArrayLike) -> float:
    """AURC above the smallest one that any scores could reach with these predictions.

    The best scores put all E wrong predictions last, which gives
    ``(1 / (n - E + 1) + 2 / (n - E + 2) + ... + E / n) / n``. This finite sum is what is
    subtracted, not its limit ``r + (1 - r) log(1 - r)``, so the least value is 0 for any n.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
    score : array-like of shape (n,)
        Accept scores, higher is safer.

    Examples
    --------
    >>> from demur.metrics import excess_aurc
    >>> excess_aurc([0, 1, 1, 0], [0, 1, 1, 1], [0.9, 0.8, 0.7, 0.1])
    0.0
    """
    wrong, scores = _wrong(y_true, y_pred), _accept_scores(score)
    _check_lengths(y_true=wrong, score=scores)
    best = _steps(wrong, np.where(wrong, 0.0, 1.0))
    return _mean_risk(_steps(wrong, scores)) - _mean_risk(best)


def augrc(y_true: ArrayLike, y_pred: ArrayLike, score: ArrayLike) -> float:
    """Area under the generalized risk-coverage curve; smaller is better.

    The generalized risk counts the errors among the accepted over all instances: it is the
    chance that a prediction is accepted and wrong. Its area over the coverage is taken by the
    trapezoidal rule from coverage 0 on; through a tie the expected number of errors is a
    straight line, so the rule holds for ties too. With acc the accuracy of all predictions,
    and auroc that of the scores in telling right from wrong ones, the area equals
    ``(1 - auroc) * acc * (1 - acc) + (1 - acc) ** 2 / 2`` [1]_.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
    score : array-like of shape (n,)
        Accept scores, higher is safer.

    References
    ----------
    .. [1] J. Traub et al. Overcoming common flaws in the evaluation of selective
       classification systems. NeurIPS 2024.

    Examples
    --------
    >>> from demur.metrics import augrc
    >>> augrc([0, 1, 1, 0], [0, 1, 1, 1], [0.9, 0.8, 0.7, 0.1])
    0.03125
    """
    counts, errors, _ = _checked_steps(y_true, y_pred, score)
    n = counts[-1]
    return float(np.trapezoid(np.append(0, errors) / n, np.append(0, counts) / n))


# ---------------------------------------------------------------------- scorers


class Judged(NamedTuple):
    """What a fitted method says of a batch of instances.

    Attributes
    ----------
    method : PartialLabelClassifier
        The method itself, taken out of what was wrapped around it.
    predicted : ndarray of shape (n,)
        Labels.
    score : ndarray of shape (n,)
        Accept scores.
    """

    method: Any
    predicted: NDArray[Any]
    score: NDArray[np.float64]


def judge(estimator: Any, X: Any) -> Judged:
    """Let a method judge, also from inside a Pipeline or a fitted search such as GridSearchCV."""
    method = estimator
    while not hasattr(method, "judge"):
        check_is_fitted(method)
        if isinstance(method, Pipeline):
            X = method[:-1].transform(X) if len(method) > 1 else X
            method = method[-1]
        elif hasattr(method, "best_estimator_"):
            method = method.best_estimator_
        else:
            raise ValueError(
                f"{type(method).__name__} gives no accept scores: it is not a "
                "PartialLabelClassifier, nor a Pipeline or a search that ends in one. Functions "
                "that take y_true, y_pred and score work for any classifier."
            )
    judgement = method.judge(X)
    return Judged(method, np.asarray(method.classes_[judgement.top]), judgement.accept)


def _outside(judged: Judged, y: Any) -> NDArray[np.bool_]:
    """Whether each prediction is outside its candidate set: surely wrong."""
    if y is None:
        raise ValueError("y is None; this scorer needs true labels or candidate sets.")
    sets = read_like(judged.method.classes_, y)
    if len(sets) != len(judged.predicted):
        raise ValueError(f"X has {len(judged.predicted)} rows but y has {len(sets)}.")
    outside = ~sets.contains(judged.predicted)
    if outside.all():
        _check_comparable(sets.classes, judged.predicted, "y")
    return outside


def _tally_of(estimator: Any, X: Any, y: Any) -> _Tally:
    judged = judge(estimator, X)
    kept = judged.score > judged.method.accept_threshold_
    outside = _outside(judged, y)
    return _Tally(len(kept), int(kept.sum()), int(outside[kept].sum()))


def coverage_scorer(estimator: Any, X: Any, y: Any = None) -> float:
    """Scorer: share of the instances that the method accepts by its own threshold.

    This and the other scorers are callables ``scorer(estimator, X, y)`` for scikit-learn's
    model selection; greater is better. The estimator is a fitted method, or a Pipeline or a
    search that ends in one. ``y`` is anything that `CandidateSets` reads, and a prediction
    counts as right where it is in its candidate set. With one true label a row that is being
    right. With larger sets it is only not being wrong for sure, so an accuracy is an upper
    bound and a risk a lower bound; use such scores to compare methods, not as estimates.
    """
    judged = judge(estimator, X)
    return float(np.mean(judged.score > judged.method.accept_threshold_))


def accepted_accuracy_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Scorer: share of the accepted predictions that are right.

    It is NaN where none is accepted; scikit-learn's searches warn of that and rank it last.
    To search by this score alone favours what accepts little; `negative_aurc_scorer` and
    `negative_reject_risk_scorer` weigh both. See `coverage_scorer` for what ``y`` may be.
    """
    return _accuracy_of(_tally_of(estimator, X, y))


def negative_aurc_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Scorer: the negative of `aurc`, which does not depend on a threshold.

    See `coverage_scorer` for what ``y`` may be.
    """
    judged = judge(estimator, X)
    return -_mean_risk(_steps(_outside(judged, y), _accept_scores(judged.score)))


def _negative_reject_risk(estimator: Any, X: Any, y: Any, *, lam: float, reading: Reading) -> float:
    return -_risk_of(_tally_of(estimator, X, y), lam, reading)


def negative_reject_risk_scorer(
    lam: float, reading: Reading = "text"
) -> Callable[[Any, Any, Any], float]:
    """Make a scorer: the negative of `reject_risk` at the method's own threshold.

    See `coverage_scorer` for what ``y`` may be.

    Parameters
    ----------
    lam : float
        Cost of a reject where an error costs 1.
    reading : {"text", "code"}, default="text"
        See `reject_risk`.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``; it can be pickled.
    """
    _check_risk_parameters(lam, reading)
    return partial(_negative_reject_risk, lam=lam, reading=reading)


def candidate_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Scorer: share of all predictions, accepted or not, inside their candidate sets.

    It needs candidate sets only, and no true label. See `coverage_scorer` for ``y``.
    """
    return float(np.mean(~_outside(judge(estimator, X), y)))

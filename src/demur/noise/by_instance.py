"""Noise that a classifier makes: the wrong labels it finds likely for an instance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_array

from demur.candidates import CandidateSets
from demur.noise.network import network_proba
from demur.noise.truth import check_chance, read_truth


def instance_dependent_noise(
    y: ArrayLike,
    X: Any,
    *,
    classifier: Any = None,
    mean_rate: float | None = 0.3,
    random_state: int | np.random.Generator | None = None,
    classes: Iterable[Any] | None = None,
) -> CandidateSets:
    """Add the wrong labels that a classifier finds likely for the instance.

    Each wrong label is added on its own, with the chance that `flip_probabilities` gives.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels; each stays in its candidate set.
    X : array-like of shape (n, ...)
        Finite numbers. Where the classifier is the network, an instance of more dimensions
        (an image) is read as a row.
    classifier : object with ``predict_proba``, optional
        One that is fitted (has ``classes_``) is used as it is. Of one that is not, a clone is
        fitted on X and y; each ``random_state`` of the clone that is None becomes an integer
        that follows from ours. By default the network of the published experiments,
        d-300-300-300-l, is trained on X and y; that needs torch, and runs on the CPU.
    mean_rate : float or None, default=0.3
        See `flip_probabilities`; the published code scales to 0.3, the text (None) does not.
    random_state : int, numpy Generator, or None
        The same integer gives the same sets, unless a fitting of yours draws from elsewhere.
    classes : array-like, optional
        All labels; by default those that occur, sorted. The classifier must know these and
        no others.

    Returns
    -------
    CandidateSets

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from demur.noise import instance_dependent_noise
    >>> X, y = [[0], [1], [4], [5], [8], [9]], ["ant", "ant", "bee", "bee", "cat", "cat"]
    >>> sets = instance_dependent_noise(y, X, classifier=GaussianNB(), random_state=4)
    >>> sets.to_lists()
    [['ant'], ['ant', 'bee'], ['ant', 'bee'], ['bee', 'cat'], ['cat'], ['cat']]
    """
    if mean_rate is not None:
        check_chance("mean_rate", mean_rate)
    truth, sets = read_truth(y, classes)
    features = _read_features(X, len(truth))
    rng = np.random.default_rng(random_state)
    seed = int(rng.integers(2**31))
    if classifier is None:
        proba = network_proba(features, truth, sets.n_classes, seed)
    else:
        proba = _classifier_proba(classifier, X, sets.classes[truth], sets.classes, seed)
    chance = flip_probabilities(truth, proba, mean_rate)
    held = sets.to_indicator() | (rng.random(chance.shape) < chance)
    return CandidateSets(held, classes=sets.classes)


def flip_probabilities(
    truth: ArrayLike, proba: ArrayLike, mean_rate: float | None = None
) -> NDArray[np.float64]:
    """The chance of each label to be added to an instance's candidates; 0 for the true one.

    A wrong label's chance is its probability as a share of the likeliest wrong label's. All
    are 0 where the classifier gives no wrong label any probability.

    Parameters
    ----------
    truth : array-like of int, shape (n,)
        Column of each true label.
    proba : array-like of shape (n, l)
        A classifier's probabilities.
    mean_rate : float or None, default=None
        Then scale an instance's chances so that their mean over all l labels, the true one
        included as 0, is this; what exceeds 1 is cut to 1.

    Returns
    -------
    ndarray of shape (n, l)

    Examples
    --------
    >>> from demur.noise import flip_probabilities
    >>> flip_probabilities([0], [[0.5, 0.25, 0.125, 0.125]]).tolist()
    [[0.0, 1.0, 0.5, 0.5]]
    >>> flip_probabilities([0], [[0.5, 0.25, 0.125, 0.125]], mean_rate=0.25).tolist()
    [[0.0, 0.5, 0.25, 0.25]]
    """
    chance = np.array(proba, dtype=np.float64)
    chance[np.arange(len(chance)), np.asarray(truth)] = 0.0
    top = chance.max(axis=1, keepdims=True)
    np.divide(chance, top, out=chance, where=top > 0)
    if mean_rate is not None:
        mean = chance.mean(axis=1, keepdims=True)
        np.divide(chance * mean_rate, mean, out=chance, where=mean > 0)
        np.minimum(chance, 1.0, out=chance)
    return chance


def _read_features(X: Any, n: int) -> NDArray[np.float64]:
    """X as finite rows, one a label."""
    features = check_array(
        X, dtype=np.float64, allow_nd=True, ensure_all_finite=False, input_name="X"
    )
    if len(features) != n:
        raise ValueError(
            f"X has {len(features)} rows but y has {n} labels; each instance needs one."
        )
    rows: NDArray[np.float64] = features.reshape(n, -1)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"X holds {rows[row, column]} at row {row}, column {column} "
            f"({len(np.unique(bad[:, 0]))} such row(s)); drop or impute what is not finite."
        )
    return rows


def _classifier_proba(
    classifier: Any, X: Any, y: NDArray[Any], classes: NDArray[Any], seed: int
) -> NDArray[np.float64]:
    """A classifier's probabilities, with columns in the order of classes."""
    if not hasattr(classifier, "predict_proba"):
        raise ValueError(
            f"{type(classifier).__name__} has no predict_proba; instance-dependent noise needs "
            "a classifier that gives probabilities."
        )
    fitted = _fitted(classifier, X, y, seed)
    known, wanted = np.asarray(fitted.classes_).tolist(), classes.tolist()
    lacking = [label for label in wanted if label not in known]
    extra = [label for label in known if label not in wanted]
    if lacking or extra:
        problems = [
            f"{what} {', '.join(map(repr, labels[:5]))}"
            for what, labels in (("it lacks", lacking), ("classes lacks", extra))
            if labels
        ]
        raise ValueError(
            f"the classifier does not know the classes of y: {'; '.join(problems)}. Fit it on "
            "instances of every class, and name its classes with classes=[...]."
        )
    proba = np.asarray(fitted.predict_proba(X), dtype=np.float64)
    bad = np.argwhere(~(np.isfinite(proba) & (proba >= 0)))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"the classifier gives {proba[row, column]} as the probability of "
            f"{known[column]!r} in row {row}; probabilities are finite and not negative."
        )
    return proba[:, [known.index(label) for label in wanted]]


def _fitted(classifier: Any, X: Any, y: NDArray[Any], seed: int) -> Any:
    """The classifier if it is fitted, else a clone that is, whose chance comes from the seed."""
    if hasattr(classifier, "classes_"):
        return classifier
    fresh = clone(classifier)
    seeds = {
        name: seed
        for name, value in fresh.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    }
    return fresh.set_params(**seeds).fit(X, y)

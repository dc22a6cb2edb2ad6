"""Candidate sets made from true labels, by adding wrong ones: noise to learn from.

Two readings of the published experiments are at hand in `READINGS`: ``"paper"`` follows
the published code, which made the published tables; ``"paper-text"`` follows the text.

>>> from demur.noise import READINGS, uniform_noise
>>> uniform_noise([0, 1, 2, 3], **READINGS["paper"]["uniform"], random_state=0).to_lists()
[[0], [0, 1, 3], [1, 2, 3], [1, 2, 3]]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_array

from demur.candidates import CandidateSets

if TYPE_CHECKING:
    from torch import Tensor, nn

READINGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "paper": {
            "uniform": {"n_noise": 2, "share": 0.5},
            "class-dependent": {"share": 0.7, "partner_probability": 0.7},
            "instance-dependent": {"mean_rate": 0.3},
        },
        "paper-text": {
            "uniform": {"n_noise": 3, "share": 0.7},
            "class-dependent": {"share": 0.7, "partner_probability": 1.0},
            "instance-dependent": {"mean_rate": None},
        },
    }
)


def uniform_noise(
    y: ArrayLike,
    *,
    n_noise: int = 3,
    share: float = 0.7,
    classes: Iterable[Any] | None = None,
    random_state: int | np.random.Generator | None = None,
) -> CandidateSets:
    """Add wrong labels, any as likely as any other.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels; each stays in its candidate set.
    n_noise : int, default=3
        Number of different wrong labels that a noisy instance gets.
    share : float, default=0.7
        Chance of an instance to be noisy, independent of the others. (The share that comes
        out scatters around it, as in the published experiments.)
    classes : array-like, optional
        All labels; by default those that occur, sorted.
    random_state : int, numpy Generator, or None
        The same integer gives the same sets.

    Returns
    -------
    CandidateSets

    Examples
    --------
    >>> from demur.noise import uniform_noise
    >>> y = ["ant", "bee", "cat", "dog"]
    >>> uniform_noise(y, n_noise=1, share=1.0, random_state=0).to_lists()
    [['ant', 'bee'], ['bee', 'dog'], ['bee', 'cat'], ['cat', 'dog']]
    """
    _check_chance("share", share)
    truth, sets = _read_truth(y, classes)
    if n_noise not in range(sets.n_classes):
        raise ValueError(
            f"n_noise is {n_noise}, but {sets.n_classes} classes leave 0 to "
            f"{sets.n_classes - 1} wrong labels for an instance."
        )
    rng = np.random.default_rng(random_state)
    noisy = np.flatnonzero(rng.random(len(truth)) < share)
    truth = truth[noisy]
    held = sets.to_indicator()
    n_others = sets.n_classes - 1
    # Floyd's way to draw different numbers: one that was drawn before gives way to the last.
    for last in range(n_others - int(n_noise), n_others):
        drawn = _skip(rng.integers(0, last + 1, size=len(noisy)), truth)
        column = np.where(held[noisy, drawn], _skip(last, truth), drawn)
        held[noisy, column] = True
    return CandidateSets(held, classes=sets.classes)


def class_dependent_noise(
    y: ArrayLike,
    *,
    share: float = 0.7,
    partner_probability: float = 1.0,
    classes: Iterable[Any] | None = None,
    random_state: int | np.random.Generator | None = None,
) -> CandidateSets:
    """Pair the classes at random, and add mostly the partner of the true label.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels; each stays in its candidate set.
    share : float, default=0.7
        Chance of an instance to get one wrong label, independent of the others.
    partner_probability : float, default=1.0
        Chance of that label to be the partner; else it is any other wrong label, all as
        likely. With an odd number of classes one has no partner: its instances get any
        wrong label.
    classes : array-like, optional
        All labels; by default those that occur, sorted.
    random_state : int, numpy Generator, or None
        The same integer gives the same sets. The pairs are ``pair_classes(n_classes,
        random_state)``.

    Returns
    -------
    CandidateSets

    Examples
    --------
    >>> from demur.noise import class_dependent_noise
    >>> y = ["ant", "bee", "cat", "dog"]
    >>> class_dependent_noise(y, share=1.0, random_state=0).to_lists()
    [['ant', 'dog'], ['bee', 'cat'], ['bee', 'cat'], ['ant', 'dog']]
    """
    _check_chance("share", share)
    _check_chance("partner_probability", partner_probability)
    truth, sets = _read_truth(y, classes)
    needed = 2 if partner_probability == 1 else 3
    if sets.n_classes < needed:
        raise ValueError(
            f"partner_probability={partner_probability} needs at least {needed} classes: the "
            f"true one, its partner{' and another' * (needed > 2)}; got {sets.n_classes}."
        )
    rng = np.random.default_rng(random_state)
    partners = pair_classes(sets.n_classes, rng)
    noisy = np.flatnonzero(rng.random(len(truth)) < share)
    truth = truth[noisy]
    added = partners[truth]
    alone = added == truth
    astray = np.flatnonzero(alone | (rng.random(len(noisy)) >= partner_probability))
    low = np.minimum(truth, added)[astray]
    high = np.maximum(truth, added)[astray]
    drawn = _skip(rng.integers(0, sets.n_classes - np.where(alone[astray], 1, 2)), low)
    added[astray] = np.where(alone[astray], drawn, _skip(drawn, high))
    held = sets.to_indicator()
    held[noisy, added] = True
    return CandidateSets(held, classes=sets.classes)


def pair_classes(
    n_classes: int, random_state: int | np.random.Generator | None = None
) -> NDArray[np.intp]:
    """Random pairs of classes: the partner of each, or itself for the odd one out.

    Examples
    --------
    >>> from demur.noise import pair_classes
    >>> pair_classes(5, random_state=0).tolist()
    [4, 1, 3, 2, 0]
    """
    order = np.random.default_rng(random_state).permutation(n_classes)
    half = n_classes // 2
    partners = np.arange(n_classes)
    partners[order[:half]] = order[half : 2 * half]
    partners[order[half : 2 * half]] = order[:half]
    return partners


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
        _check_chance("mean_rate", mean_rate)
    truth, sets = _read_truth(y, classes)
    features = _read_features(X, len(truth))
    rng = np.random.default_rng(random_state)
    seed = int(rng.integers(2**31))
    if classifier is None:
        proba = _network_proba(features, truth, sets.n_classes, seed)
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


def _read_truth(
    y: ArrayLike, classes: Iterable[Any] | None
) -> tuple[NDArray[np.intp], CandidateSets]:
    """The column of each true label, and the labels as sets of one."""
    sets = CandidateSets(y, classes=classes)
    several = np.flatnonzero(sets.sizes != 1)
    if len(several):
        raise ValueError(
            f"y must hold one true label a row; row {several[0]} holds "
            f"{sets.sizes[several[0]]} ({len(several)} such row(s))."
        )
    if sets.n_classes < 2:
        raise ValueError(
            f"noise needs at least 2 classes; got only {sets.classes.item(0)!r}. "
            "Pass classes=[...] where y lacks some."
        )
    return sets.to_indicator().argmax(axis=1), sets


def _skip(numbers: Any, left_out: NDArray[np.intp]) -> NDArray[np.intp]:
    """Count on past a label that is left out: 0 to l - 2 become the l - 1 other labels."""
    return np.asarray(numbers + (numbers >= left_out), dtype=np.intp)


def _check_chance(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value}; it must be from 0 to 1.")


# ---------------------------------------------------------------- classifiers that mislead


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


def _network_proba(
    X: NDArray[np.float64], truth: NDArray[np.intp], n_classes: int, seed: int
) -> NDArray[np.float64]:
    """Probabilities of the published experiments' network, trained on X and the truth.

    Ten epochs of plain gradient descent leave it far from certain, which is what spreads the
    noise over several labels.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ImportError(
            "without a classifier, instance-dependent noise trains a network, which needs "
            'torch; install it with: pip install "demur[deep]"'
        ) from error
    if len(X) < 2:
        raise ValueError("the network normalises batches, so it needs at least 2 instances.")
    with np.errstate(over="ignore"):  # said below
        inputs = torch.from_numpy(X.astype(np.float32))
    targets = torch.nn.functional.one_hot(torch.from_numpy(truth), n_classes).float()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a step gains nothing by more, and each rounds its way
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = _network(X.shape[1], n_classes)
            _train(network, inputs, targets)
        with torch.no_grad():
            proba: NDArray[np.float64] = network.eval()(inputs).double().softmax(1).numpy()
    finally:
        torch.set_num_threads(threads)
    if not np.isfinite(proba).all():
        raise ValueError(
            "the network's probabilities are not finite; scale X, for instance to [0, 1]."
        )
    return proba


def _network(n_inputs: int, n_outputs: int) -> nn.Sequential:
    from torch import nn

    layers: list[nn.Module] = []
    for width in (300, 300, 300):
        layers += [nn.Linear(n_inputs, width), nn.ReLU(), nn.BatchNorm1d(width)]
        n_inputs = width
    return nn.Sequential(*layers, nn.Linear(n_inputs, n_outputs))


def _train(network: nn.Module, inputs: Tensor, targets: Tensor, batch_size: int = 64) -> None:
    """Ten epochs on the squared error of the softmax, summed over the classes."""
    import torch

    n = len(inputs)
    ends = [*range(batch_size, n - 1, batch_size), n]  # never one row alone
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001)
    for _ in range(10):
        order = torch.randperm(n)
        for rows in order.tensor_split(ends[:-1]):
            error = network(inputs[rows]).softmax(1) - targets[rows]
            optimizer.zero_grad()
            torch.autograd.backward(error.square().sum(1).mean())
            optimizer.step()

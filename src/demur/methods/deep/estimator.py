"""What the network methods share as estimators: parameters, checks, images, saving.

Nothing here imports torch: a method can be made, cloned and shown without it.
"""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from demur._parameters import check_number, check_whole
from demur.base import Judgement, PartialLabelClassifier
from demur.candidates import CandidateSets
from demur.state import check_columns

if TYPE_CHECKING:
    from torch import Tensor

    from demur.methods.deep.training import Batch, Result, Run, Training

Deep = TypeVar("Deep", bound="DeepClassifier")


class Strategy:
    """How a method learns: its targets, its loss, and what it updates when.

    All tensors lead with a network axis (N): the networks of all runs that are trained side
    by side. A state that holds a row for every instance is of shape (N, n, ...);
    ``batch.of(state)`` takes the rows of a batch and ``batch.write(state, values)`` puts
    them back. Update states in place.

    On a GPU the step of a ``capturable`` strategy is recorded and replayed. What it computes
    with must then live in tensors that stay where they are; where anything else changes what
    a step does, ``phase`` must change, and the step is recorded anew. Generators that it
    draws from belong in ``streams``.
    """

    heads = 1  # outputs of the network per class
    networks = 1  # networks of one run; their probabilities are averaged
    leave_out = 0.0  # share of the rows that each of several does not see, others for each
    capturable = False
    phase: Hashable = None
    streams: Sequence[Any] = ()

    def start(self, training: Training) -> None:
        """Make the initial targets, from ``training.candidates`` (N, n, l)."""

    def loss(self, batch: Batch) -> Tensor:
        """Loss of each network, (N,), from ``batch.log_proba`` (N, B, l)."""
        raise NotImplementedError

    def after_batch(self, batch: Batch) -> None:
        """Update what depends on the outputs of this batch."""

    def after_epoch(self, epoch: int) -> None:
        """Update what depends on a whole epoch; the first is epoch 0."""

    def label_scores(self, training: Training) -> Tensor:
        """Scores (N, n, l) of the training instances' labels; the best candidate is chosen."""
        return training.predict()


def uniform_targets(candidates: Tensor) -> Tensor:
    """Equal shares for all candidates of an instance."""
    return candidates / candidates.sum(-1, keepdim=True)


def candidate_proba(log_proba: Tensor, candidates: Tensor) -> Tensor:
    """Probabilities given that the label is a candidate; safe where all candidates vanish."""
    masked = log_proba.masked_fill(~candidates, -math.inf)
    proba = (masked - masked.amax(-1, keepdim=True)).exp_()
    return proba.div_(proba.sum(-1, keepdim=True))


def cross_entropy(targets: Tensor, log_proba: Tensor) -> Tensor:
    """Mean over a batch, (N,), of the cross-entropy with soft targets."""
    return (targets * log_proba).sum(-1).mean(-1).neg()


class DeepClassifier(PartialLabelClassifier):
    r"""Base of the methods that train a network.

    Parameters
    ----------
    network : callable, optional
        ``network(shape, n_outputs)`` makes a torch module of your own: (rows, \*shape) in,
        logits (rows, n_outputs) out. By default d-300-300-300-l with batch normalisation
        after each ReLU for tables, and LeNet-5 for images of 28 x 28. A network that draws
        random numbers while it is trained (dropout) does so from torch's global stream.
    hidden_layer_sizes : sequence of int, default=(300, 300, 300)
        Of the network for tables.
    n_epochs : int, default=200
    batch_size : int, optional
        By default 1,024 for tables and 64 for images. A last batch of one row joins the
        batch before it, since one row cannot be normalised.
    learning_rate : float, default=0.001
        Of Adam.
    patience : int, optional
        Stop a run when the probability of the candidates, as the training batches show it,
        has not risen for so many epochs. By default all epochs are trained.
    image_shape : tuple of int, optional
        (height, width) or (channels, height, width) when images come as flat rows. Arrays
        of shape (n, 28, 28) and (n, 1, 28, 28) tell it themselves.
    device : str, default="auto"
        A torch device; "auto" is the GPU if there is one. It is resolved once, by ``fit``.
    verbose : bool, default=False
        Show progress (needs rich).
    random_state : int, RandomState or None, default=None
        Decides initial weights, order of the rows, and whatever the method draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_training_instances,)
    accept_threshold_ : float
        0.9: accepted when the largest probability is larger.
    history_ : ndarray of shape (epochs trained,)
        Mean loss of each epoch.
    state_ : dict of ndarrays
        The trained weights.
    device_ : str
    image_shape_ : tuple of int or None
    """

    accept_threshold_ = 0.9
    dropout: float = 0.0  # share of each hidden layer that a training step leaves out
    default_batch_size: int | None = None  # for methods that want one for tables and images
    least: Mapping[str, int] = MappingProxyType({"n_epochs": 1, "batch_size": 2, "patience": 1})
    numbers: tuple[str, ...] = ("learning_rate",)

    def __init__(
        self,
        *,
        network: Callable[[tuple[int, ...], int], Any] | None = None,
        hidden_layer_sizes: Sequence[int] = (300, 300, 300),
        n_epochs: int = 200,
        batch_size: int | None = None,
        learning_rate: float = 0.001,
        patience: int | None = None,
        image_shape: tuple[int, ...] | None = None,
        device: str = "auto",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.network = network
        self.hidden_layer_sizes = hidden_layer_sizes
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.patience = patience
        self.image_shape = image_shape
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Spell out the ``**parameters`` of a method: scikit-learn reads signatures."""
        super().__init_subclass__(**kwargs)
        classes: Any = cls.__mro__[:2]
        own, inherited = (inspect.signature(c.__init__).parameters for c in classes)
        named = {k: p for k, p in own.items() if p.kind is not p.VAR_KEYWORD}
        if named != dict(own):
            classes[0].__init__.__signature__ = inspect.Signature(
                list({**inherited, **named}.values())
            )

    @abstractmethod
    def strategy(self) -> Strategy:
        """A new strategy, with the parameters of this estimator."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from features or images, and candidate labels.

        An interrupt (Ctrl-C) is passed on, but leaves the model as it was trained so far.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, 28, 28) or (n, 1, 28, 28)
        y : anything that `CandidateSets` reads, with n rows

        Returns
        -------
        self
        """
        return fit_stack([self], [X], [y])[0]

    def judge(self, X: Any) -> Judgement:
        """Predictions, probabilities and accept scores in one pass."""
        check_is_fitted(self)
        return super().judge(self._as_rows(X, self.image_shape_))

    def _fit(self, X: NDArray[np.float64], sets: CandidateSets) -> None:
        """Keep what was checked; the training is common to a stack."""
        self._checked = X, sets

    def _judge(self, X: NDArray[np.float64]) -> Judgement:
        return Judgement.of_proba(self._ask_networks(X).mean(axis=0))

    def _ask_networks(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities by each of the networks, (networks, n, l)."""
        rows = _to_float32(X).reshape(len(X), *self._input_shape())
        proba: NDArray[np.float64] = _engine().judge(self, rows)
        return proba

    def _has_networks(self) -> bool:
        """Whether there is a network to train; a method that can do without says how."""
        return True

    def _fit_without_networks(self, X: Any, y: Any) -> Self:
        """Learn without one."""
        raise NotImplementedError

    def _settle(self, run: Run, result: Result) -> None:
        """What a method does with its trained networks before it is fitted; here nothing."""

    def _transduce(self) -> NDArray[np.intp]:
        return self._transduced

    def _input_shape(self) -> tuple[int, ...]:
        return self.image_shape_ or (self.n_features_in_,)

    def _check_parameters(self) -> None:
        for name, least in self.least.items():
            value = getattr(self, name)
            if value is None and name in ("batch_size", "patience"):
                continue
            check_whole(name, value, least)
        for name in self.numbers:
            value = getattr(self, name)
            check_number(name, value)
            if value < 0:
                raise ValueError(f"{name} must be 0 or more; got {value!r}.")
        given = self.hidden_layer_sizes
        sizes = tuple(given) if isinstance(given, Iterable) else (given,)
        if not all(isinstance(size, Integral) and size > 0 for size in sizes):
            raise ValueError(f"hidden_layer_sizes must be whole numbers over 0; got {given!r}.")

    def _as_rows(self, X: Any, expected: tuple[int, ...] | None) -> Any:
        """Images as flat rows; tables as they are."""
        if getattr(X, "ndim", 2) < 3:
            return X
        images = np.asarray(X)
        shape = (1, *images.shape[1:]) if images.ndim == 3 else images.shape[1:]
        if expected is not None and shape != expected:
            raise ValueError(f"X holds images of shape {shape}; {expected} is expected.")
        return images.reshape(len(images), -1)

    def _shape_of(self, X: Any) -> tuple[int, ...] | None:
        """Shape of one image as (channels, height, width), or None for a table."""
        shape = self.image_shape
        if shape is None and getattr(X, "ndim", 2) > 2:
            shape = tuple(X.shape[1:])
        if shape is None:
            return None
        shape = (1, *shape) if len(shape) == 2 else tuple(shape)
        if len(shape) != 3:
            raise ValueError(
                f"an image is (height, width) or (channels, height, width); got {shape}."
            )
        return shape

    # -------------------------------------------------------------------------- saving

    def _restored(self) -> None:
        """Build the networks once, so that weights of another shape are refused here."""
        check_columns(self._transduced, len(self.classes_), len(self._transduced), "its labels")
        shape = self._input_shape()
        if math.prod(shape) != self.n_features_in_ or not isinstance(self.state_, dict):
            raise ValueError("not the arrays of a fitted model: its features do not fit it.")
        sizes = (math.prod(shape), *self.hidden_layer_sizes)
        kept = sum(array.size for array in self.state_.values())
        if len(shape) == 1 and sum(a * b for a, b in pairwise(sizes)) > kept:
            # Said before memory is taken for networks that the arrays cannot fill.
            raise ValueError("the arrays do not fit these parameters: there are too few weights.")
        self.device_ = _engine().resolve_device(self.device)
        try:
            _engine().rebuild(self)
        except RuntimeError as error:
            raise ValueError(f"the arrays do not fit these parameters: {error}") from error


def fit_stack(estimators: Iterable[Deep], Xs: Iterable[Any], Ss: Iterable[Any]) -> list[Deep]:
    """Fit several estimators of one method as one stack of networks.

    Each gives what it would give alone, up to rounding: its weights, its order of rows and
    its draws come from its own ``random_state``. On a GPU the stack is one set of batched
    operations; if it does not fit, it is split. On a CPU it is cut into pieces that fit the
    caches, which share torch's threads.

    Parameters
    ----------
    estimators : iterable of unfitted or fitted estimators
        Of one class; their parameters may differ in ``random_state`` only.
    Xs, Ss : iterables, as many as estimators
        Features and candidates of each. All must have the same numbers of rows, features
        and classes (seeds, splits or noise types of one dataset have).

    Returns
    -------
    estimators : list
        Those given, fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from demur.methods.deep import Cc, fit_stack
    >>> X, S = np.repeat(np.eye(3), 20, axis=0), np.repeat([[0], [1], [2]], 20, axis=0)
    >>> models = [Cc(n_epochs=30, random_state=seed) for seed in range(3)]
    >>> [m.predict(np.eye(3)).tolist() for m in fit_stack(models, [X] * 3, [S.tolist()] * 3)]
    [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """
    models, tables, candidates = list(estimators), list(Xs), list(Ss)
    if not models or not len(models) == len(tables) == len(candidates):
        raise ValueError(
            "fit_stack needs as many estimators, Xs and Ss, at least one of each; got "
            f"{len(models)}, {len(tables)} and {len(candidates)}."
        )
    _check_alike(models)
    if not models[0]._has_networks():  # nothing to train side by side
        each = zip(models, tables, candidates, strict=True)
        return [model._fit_without_networks(X, S) for model, X, S in each]
    engine = _engine()
    try:
        names = [f" of run {i} of the stack" if len(models) > 1 else "" for i in range(len(models))]
        runs = [
            engine.Run(*prepare(model, X, S), name)
            for model, X, S, name in zip(models, tables, candidates, names, strict=True)
        ]
        shapes = {(run.X.shape, run.candidates.shape) for run in runs}
        if len(shapes) > 1:
            raise ValueError(
                "a stack needs the same numbers of rows, features and classes in each run; got "
                f"(X, S) of shapes {sorted(shapes)}."
            )
        results = engine.train(models[0], runs)
        for model, run, result in zip(models, runs, results, strict=True):
            model.device_ = result.device
            model.state_, model.history_ = result.state, result.history
            model._transduced = result.transduced
            model._settle(run, result)
    except BaseException:
        for model in models:
            model.__dict__.pop("classes_", None)  # a fit that failed leaves no model behind
        raise
    if any(result.interrupted for result in results):
        raise KeyboardInterrupt
    return models


def prepare(
    model: DeepClassifier, X: Any, S: Any
) -> tuple[NDArray[np.float32], NDArray[np.bool_], int]:
    """Rows, candidates and seed of a run, once all that was given is checked."""
    model._check_parameters()
    shape = model._shape_of(X)
    PartialLabelClassifier.fit(model, model._as_rows(X, shape), S)
    features, sets = model.__dict__.pop("_checked")
    if shape is not None and math.prod(shape) != features.shape[1]:
        raise ValueError(
            f"X has {features.shape[1]} columns, but images of shape {shape} have "
            f"{math.prod(shape)} pixels."
        )
    model.image_shape_ = shape
    seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    rows = _to_float32(features).reshape(len(features), *model._input_shape())
    return rows, sets.to_indicator(), seed


def _check_alike(models: Sequence[DeepClassifier]) -> None:
    if len({id(model) for model in models}) < len(models):
        raise ValueError("the same estimator stands twice in the stack; pass clones of it.")
    first = models[0]
    for i, model in enumerate(models[1:], start=1):
        if type(model) is not type(first):
            raise ValueError(
                "a stack is of one class, but estimator 0 is a "
                f"{type(first).__name__} and estimator {i} a {type(model).__name__}."
            )
        expected = first.get_params()
        for name, value in model.get_params().items():
            if name != "random_state" and value != expected[name]:
                raise ValueError(
                    f"estimators of a stack may differ in random_state only, but {name} is "
                    f"{expected[name]!r} for estimator 0 and {value!r} for estimator {i}."
                )


def _to_float32(X: NDArray[np.float64]) -> NDArray[np.float32]:
    large = np.abs(X) > np.finfo(np.float32).max
    if large.any():
        row, column = (int(i) for i in np.argwhere(large)[0])
        raise ValueError(
            f"X holds {X[row, column]} at row {row}, column {column}, which is too large for "
            "the 32-bit numbers of a network; scale the features."
        )
    return X.astype(np.float32)


def _engine() -> ModuleType:
    """The training engine, which needs torch."""
    try:
        from demur.methods.deep import training
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "torch":
            raise
        raise ImportError(
            'the network methods need torch; install it with: pip install "demur[deep]"'
        ) from error
    return training

"""POP: progressive purification of the candidate sets."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from demur.methods.deep.estimator import Strategy, candidate_proba
from demur.methods.deep.proden import Proden, ProdenStrategy

if TYPE_CHECKING:
    from demur.methods.deep.training import Batch, Training


class PopStrategy(ProdenStrategy):
    """PRODEN's targets, over candidate sets from which unlikely labels are removed."""

    def __init__(self, warm_up: int, every: int, first: float, last: float, step: float) -> None:
        self.warm_up, self.every = warm_up, every
        self.threshold, self.last, self.step = first, last, step

    def start(self, training: Training) -> None:
        """Keep all candidates, and remember the targets of the last epochs."""
        super().start(training)
        self.kept = training.candidates.clone()
        self.window = self.targets.new_zeros(self.every, *self.targets.shape)

    def after_batch(self, batch: Batch) -> None:
        """Weigh the labels that are left."""
        batch.write(self.targets, candidate_proba(batch.log_proba, batch.of(self.kept)))

    def after_epoch(self, epoch: int) -> None:
        """Remove what is unlikely beside the best label; then ask for more."""
        self.window[epoch % self.every] = self.targets
        if epoch < self.warm_up or epoch % self.every:
            return
        mean = self.window.mean(0)
        self.kept &= mean >= self.threshold * mean.amax(-1, keepdim=True)
        mean *= self.kept
        self.targets.copy_(mean / mean.sum(-1, keepdim=True))
        self.threshold = min(self.threshold + self.step, self.last)


class Pop(Proden):
    """Progressive purification of the candidate sets (POP).

    Learns as PRODEN does. From time to time, labels whose weight is small beside that of
    the best label leave the candidate set for good: below a share of the best weight, on
    the mean of the last epochs. The share rises with each purification.

    Parameters
    ----------
    warm_up_epochs : int, default=20
        Epochs before the first purification.
    purify_every : int, default=5
        Epochs between purifications, and the number of epochs the mean is over.
    first_threshold, last_threshold, threshold_step : float, default=0.001, 0.04, 0.001
        The share, and how it rises.
    **parameters
        Those of :class:`~demur.methods.deep.estimator.DeepClassifier`, and its attributes.

    References
    ----------
    .. [1] N. Xu et al. "Progressive Purification for Instance-Dependent Partial Label
       Learning". ICML 2023.

    Examples
    --------
    >>> from demur.methods.deep import Pop
    >>> X, S = [[0, 0], [0, 1], [1, 0], [1, 1]] * 8, [["a"], ["a", "b"], ["b"], ["b", "c"]] * 8
    >>> model = Pop(n_epochs=50, random_state=0).fit(X, S)
    >>> model.predict([[0, 0], [1, 0]]).tolist()
    ['a', 'b']
    """

    least = MappingProxyType({**Proden.least, "warm_up_epochs": 0, "purify_every": 1})
    numbers = (*Proden.numbers, "first_threshold", "last_threshold", "threshold_step")

    def __init__(
        self,
        *,
        warm_up_epochs: int = 20,
        purify_every: int = 5,
        first_threshold: float = 0.001,
        last_threshold: float = 0.04,
        threshold_step: float = 0.001,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.warm_up_epochs = warm_up_epochs
        self.purify_every = purify_every
        self.first_threshold = first_threshold
        self.last_threshold = last_threshold
        self.threshold_step = threshold_step

    def strategy(self) -> Strategy:
        """Targets that follow the network, over ever smaller sets."""
        return PopStrategy(
            self.warm_up_epochs,
            self.purify_every,
            self.first_threshold,
            self.last_threshold,
            self.threshold_step,
        )

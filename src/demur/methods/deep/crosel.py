"""CroSel: two networks that select confident labels for each other."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from demur.methods.deep.cc import candidate_loss
from demur.methods.deep.estimator import (
    DeepClassifier,
    Strategy,
    cross_entropy,
    uniform_targets,
)

if TYPE_CHECKING:
    from torch import Tensor

    from demur.methods.deep.training import Batch, Training


class CroSelStrategy(Strategy):
    """Hard labels where the other network is confident, agreement of the two elsewhere."""

    networks = 2
    capturable = True

    def __init__(self, warm_up: int, weight: float, memory: int, confidence: float) -> None:
        self.warm_up, self.weight = warm_up, weight
        self.memory, self.confidence = memory, confidence
        self.phase = warm_up > 0  # whether it still learns as CC does

    def start(self, training: Training) -> None:
        """Remember nothing, select nothing."""
        self.candidates = training.candidates
        self.targets = uniform_targets(training.candidates)
        self.latest = self.targets.clone()  # outputs of this epoch
        self.outputs = self.targets.new_zeros(self.memory, *self.targets.shape)
        self.selected = self.candidates.new_zeros(self.candidates.shape[:2])
        self.labels = self.selected.long()

    def loss(self, batch: Batch) -> Tensor:
        """CC at first; then the selected labels, and the agreed targets for all."""
        if self.phase:
            return candidate_loss(batch)
        selected, labels = batch.of(self.selected), batch.of(self.labels)
        picked = batch.log_proba.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        known = (picked * selected).sum(-1).neg() / selected.sum(-1).clamp_min(1)
        agreed = cross_entropy(batch.of(self.targets), batch.log_proba)
        # The fewer are selected, the more the others must teach.
        return known + self.weight * (1 - self.selected.float().mean(-1)) * agreed

    def after_batch(self, batch: Batch) -> None:
        """Remember the outputs."""
        batch.write(self.latest, batch.log_proba.exp())

    def after_epoch(self, epoch: int) -> None:
        """Select, for the other network, what each network is sure of."""
        self.outputs[epoch % self.memory] = self.latest
        self.phase = epoch + 1 < self.warm_up
        if epoch + 1 < max(self.warm_up, self.memory):
            return
        mean, tops = self.outputs.mean(0), self.outputs.argmax(-1)
        labels = self.latest.argmax(-1)
        selected = (
            self.candidates.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
            & (tops == labels).all(0)
            & (mean.amax(-1) > self.confidence)
        )
        self.selected.copy_(_of_the_other(selected))
        self.labels.copy_(_of_the_other(labels))
        both = (self.latest + _of_the_other(self.latest) + 1e-10) * self.candidates
        self.targets.copy_(both / both.sum(-1, keepdim=True))


def _of_the_other(state: Tensor) -> Tensor:
    """Swap the two networks of every run."""
    return state.view(-1, 2, *state.shape[1:]).flip(1).flatten(0, 1)


class CroSel(DeepClassifier):
    """Cross selection of confident pseudo-labels (CroSel).

    Two networks start with the loss of CC. After that, a label is selected by one network,
    for the other to learn, if the top label was a candidate, was the same in each of the
    last epochs, and had a high mean probability. So that the other instances are not
    wasted, both networks also learn from their mean probabilities over the candidates. Data
    augmentation is left out. Predictions are the mean of the two.

    Parameters
    ----------
    warm_up_epochs : int, default=10
        Epochs of CC; they count among ``n_epochs``.
    consistency_weight : float, default=2
        Of learning from the mean, times the share of instances that are not selected.
    memory : int, default=3
        Epochs that must agree.
    confidence : float, default=0.9
        Mean probability over which a label is selected.
    **parameters
        Those of :class:`~demur.methods.deep.estimator.DeepClassifier`, and its attributes.

    References
    ----------
    .. [1] S. Tian et al. "CroSel: Cross Selection of Confident Pseudo Labels for
       Partial-Label Learning". CVPR 2024.

    Examples
    --------
    >>> from demur.methods.deep import CroSel
    >>> X, S = [[0, 0], [0, 1], [1, 0], [1, 1]] * 8, [["a"], ["a", "b"], ["b"], ["b", "c"]] * 8
    >>> model = CroSel(n_epochs=50, random_state=0).fit(X, S)
    >>> model.predict([[0, 0], [1, 0]]).tolist()
    ['a', 'b']
    """

    least = MappingProxyType({**DeepClassifier.least, "warm_up_epochs": 0, "memory": 1})
    numbers = (*DeepClassifier.numbers, "consistency_weight", "confidence")

    def __init__(
        self,
        *,
        warm_up_epochs: int = 10,
        consistency_weight: float = 2.0,
        memory: int = 3,
        confidence: float = 0.9,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.warm_up_epochs = warm_up_epochs
        self.consistency_weight = consistency_weight
        self.memory = memory
        self.confidence = confidence

    def strategy(self) -> Strategy:
        """Cross selection."""
        return CroSelStrategy(
            self.warm_up_epochs, self.consistency_weight, self.memory, self.confidence
        )

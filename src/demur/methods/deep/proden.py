"""PRODEN: progressive identification of the true label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.methods.deep.estimator import (
    DeepClassifier,
    Strategy,
    candidate_proba,
    cross_entropy,
    uniform_targets,
)

if TYPE_CHECKING:
    from torch import Tensor

    from demur.methods.deep.training import Batch, Training


class ProdenStrategy(Strategy):
    """Cross-entropy with targets that follow the network's own view of the candidates."""

    capturable = True

    def start(self, training: Training) -> None:
        """Give all candidates of an instance the same weight."""
        self.targets = uniform_targets(training.candidates)

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy with the weights of the candidates."""
        return cross_entropy(batch.of(self.targets), batch.log_proba)

    def after_batch(self, batch: Batch) -> None:
        """Weigh the candidates by their probabilities."""
        batch.write(self.targets, candidate_proba(batch.log_proba, batch.candidates))

    def label_scores(self, training: Training) -> Tensor:
        """The final weights."""
        return self.targets


class Proden(DeepClassifier):
    """Progressive identification of the true label (PRODEN).

    The network learns from soft targets over the candidates, equal at first. After each
    batch the targets of its instances become the network's own probabilities, restricted to
    the candidates.

    The parameters and attributes are those of
    :class:`~demur.methods.deep.estimator.DeepClassifier`.

    References
    ----------
    .. [1] J. Lv et al. "Progressive Identification of True Labels for Partial-Label
       Learning". ICML 2020.

    Examples
    --------
    >>> from demur.methods.deep import Proden
    >>> X, S = [[0, 0], [0, 1], [1, 0], [1, 1]] * 8, [["a"], ["a", "b"], ["b"], ["b", "c"]] * 8
    >>> model = Proden(n_epochs=50, random_state=0).fit(X, S)
    >>> model.predict([[0, 0], [1, 0]]).tolist()
    ['a', 'b']
    """

    def strategy(self) -> Strategy:
        """Targets that follow the network."""
        return ProdenStrategy()

"""CC: the classifier-consistent loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from demur.methods.deep.estimator import DeepClassifier, Strategy

if TYPE_CHECKING:
    from torch import Tensor

    from demur.methods.deep.training import Batch


def candidate_loss(batch: Batch) -> Tensor:
    """Minus the log-probability, (N,), that the label is one of the candidates."""
    held = batch.log_proba.masked_fill(~batch.candidates, -math.inf)
    return held.logsumexp(-1).mean(-1).neg()


class CcStrategy(Strategy):
    """No targets: the loss looks at the candidates alone."""

    capturable = True

    def loss(self, batch: Batch) -> Tensor:
        """The published loss, less a constant that depends on the number of classes only."""
        return candidate_loss(batch)


class Cc(DeepClassifier):
    """Classifier-consistent partial-label learning (CC).

    Under candidate sets drawn uniformly among those that hold the true label, the likelihood
    of a set is proportional to the probability of its labels together; the network maximises
    it.

    The parameters and attributes are those of
    :class:`~demur.methods.deep.estimator.DeepClassifier`.

    References
    ----------
    .. [1] L. Feng et al. "Provably Consistent Partial-Label Learning". NeurIPS 2020.

    Examples
    --------
    >>> from demur.methods.deep import Cc
    >>> X, S = [[0, 0], [0, 1], [1, 0], [1, 1]] * 8, [["a"], ["a", "b"], ["b"], ["b", "c"]] * 8
    >>> model = Cc(n_epochs=50, random_state=0).fit(X, S)
    >>> model.predict([[0, 0], [1, 0]]).tolist()
    ['a', 'b']
    """

    def strategy(self) -> Strategy:
        """The loss of the candidates together."""
        return CcStrategy()

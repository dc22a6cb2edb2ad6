"""VALEN: variational label enhancement."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

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

NEIGHBORS_AT_ONCE = 1024  # rows whose distances to all others are held


class ValenStrategy(Strategy):
    """One head predicts; the other infers a Dirichlet distribution over the candidates."""

    heads = 2
    capturable = True

    def __init__(self, warm_up: int, n_neighbors: int, weight: float) -> None:
        self.warm_up, self.n_neighbors, self.weight = warm_up, n_neighbors, weight
        self.neighbors: Tensor  # (N, n, neighbours), after the warm-up
        self.phase = True  # whether it still learns as PRODEN does

    def start(self, training: Training) -> None:
        """Both heads start from equal shares of the candidates."""
        self.training = training
        self.inferred = uniform_targets(training.candidates)  # what the predictor learns from
        self.predicted = self.inferred.clone()  # what the inference learns from
        self.streams = [_stream(g, training.device) for g in training.generators]

    def loss(self, batch: Batch) -> Tensor:
        """Each head learns from the other; the evidence bound shapes the inference."""
        inferred = batch.outputs[..., batch.log_proba.shape[-1] :]
        loss = cross_entropy(batch.of(self.inferred), batch.log_proba)
        loss = loss + cross_entropy(batch.of(self.predicted), inferred.log_softmax(-1))
        if self.phase:
            return loss
        alpha = inferred.clamp(-6, 6).exp()
        drawn = self._draw(alpha, batch.candidates)
        bound = self._edges(batch, drawn) - _divergence(alpha, batch.candidates)
        return loss - self.weight * bound

    def after_batch(self, batch: Batch) -> None:
        """Tell each head what the other makes of the candidates."""
        own = candidate_proba(batch.log_proba, batch.candidates)
        batch.write(self.predicted, own)
        if self.phase:
            batch.write(self.inferred, own)
        else:
            inferred = batch.outputs[..., own.shape[-1] :]
            batch.write(self.inferred, candidate_proba(inferred, batch.candidates))

    def after_epoch(self, epoch: int) -> None:
        """Link each instance to its neighbours, once the features mean something."""
        if epoch + 1 == self.warm_up:
            import torch

            features = self.training.features()
            self.neighbors = torch.stack([_nearest(f, self.n_neighbors) for f in features])
            self.phase = False

    def label_scores(self, training: Training) -> Tensor:
        """The inferred label distributions."""
        return self.inferred

    def _draw(self, alpha: Tensor, candidates: Tensor) -> Tensor:
        """Label distributions from the Dirichlet over the candidates, each run's its own."""
        import torch

        parts = [
            torch._standard_gamma(a, generator=g) for a, g in zip(alpha, self.streams, strict=True)
        ]
        gamma = torch.stack(parts).clamp_min(1e-10) * candidates
        return gamma / gamma.sum(-1, keepdim=True)

    def _edges(self, batch: Batch, drawn: Tensor) -> Tensor:
        """Log-likelihood of the links to neighbours, and of none to as many rows by chance."""
        linked = batch.of(self.neighbors)  # (N, B, neighbours)
        theirs = self.inferred[batch.network.unsqueeze(-1), linked]
        alike = (drawn.unsqueeze(-2) * theirs).sum(-1)
        others = [(drawn * drawn.roll(s + 1, 1)).sum(-1) for s in range(linked.shape[-1])]
        present = alike.sigmoid().log().sum(-1)
        absent = sum(other.neg().sigmoid().log() for other in others)
        return (present + absent).mean(-1)


def _nearest(features: Tensor, k: int) -> Tensor:
    """Rows nearest to each row, (n, k), itself left out; fewer where there are not so many."""
    import torch

    n, found = len(features), []
    for part in torch.split(torch.arange(n, device=features.device), NEIGHBORS_AT_ONCE):
        distances = torch.cdist(features[part], features)
        distances.scatter_(1, part[:, None], math.inf)
        found.append(distances.topk(min(k, n - 1), largest=False).indices)
    return torch.cat(found)


def _divergence(alpha: Tensor, candidates: Tensor) -> Tensor:
    """Kullback-Leibler divergence, (N,), from the flat Dirichlet over the candidates."""
    held = alpha * candidates
    total = held.sum(-1)
    size = candidates.sum(-1).to(alpha.dtype)
    inner = (alpha - 1) * (alpha.digamma() - total.digamma().unsqueeze(-1)) - alpha.lgamma()
    each = total.lgamma() - size.lgamma() + (inner * candidates).sum(-1)
    return each.mean(-1)


def _stream(generator: Any, device: Any) -> Any:
    """A stream on the device that continues a run's own."""
    import torch

    seed = int(torch.randint(2**62, (1,), generator=generator))
    return torch.Generator(device).manual_seed(seed)


class Valen(DeepClassifier):
    """Variational label enhancement (VALEN).

    The network has two heads. One predicts. The other infers, for every training instance, a
    Dirichlet distribution over its candidates, whose mean says how well each label describes
    the instance. Each head learns from what the other makes of the candidates; the evidence
    lower bound shapes the inference: distributions drawn for an instance should resemble
    those of its neighbours (in the features of the network after a warm-up) rather than
    those of other rows, and should not be surer than the data make them.

    Parameters
    ----------
    warm_up_epochs : int, default=10
        Epochs of PRODEN's rule, which end with the search for neighbours; they count among
        ``n_epochs``.
    n_neighbors : int, default=3
        Neighbours of an instance in the graph, which is kept as a list.
    bound_weight : float, default=0.01
        Of the evidence lower bound in the loss.
    **parameters
        Those of :class:`~demur.methods.deep.estimator.DeepClassifier`, and its attributes.
        The default of ``batch_size`` is 64 for tables too.

    References
    ----------
    .. [1] N. Xu et al. "Instance-Dependent Partial Label Learning". NeurIPS 2021.

    Examples
    --------
    >>> from demur.methods.deep import Valen
    >>> X, S = [[0, 0], [0, 1], [1, 0], [1, 1]] * 8, [["a"], ["a", "b"], ["b"], ["b", "c"]] * 8
    >>> model = Valen(n_epochs=50, random_state=0).fit(X, S)
    >>> model.predict([[0, 0], [1, 0]]).tolist()
    ['a', 'b']
    """

    default_batch_size = 64
    least = MappingProxyType({**DeepClassifier.least, "warm_up_epochs": 1, "n_neighbors": 1})
    numbers = (*DeepClassifier.numbers, "bound_weight")

    def __init__(
        self,
        *,
        warm_up_epochs: int = 10,
        n_neighbors: int = 3,
        bound_weight: float = 0.01,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.warm_up_epochs = warm_up_epochs
        self.n_neighbors = n_neighbors
        self.bound_weight = bound_weight

    def strategy(self) -> Strategy:
        """Inference and prediction that teach each other."""
        return ValenStrategy(self.warm_up_epochs, self.n_neighbors, self.bound_weight)

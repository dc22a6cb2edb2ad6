"""The published experiments' network, which tells what wrong labels are likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor, nn


def network_proba(
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

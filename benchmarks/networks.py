"""The training engine against plain loops, a stack against single fits, VALEN's memory.

python benchmarks/networks.py [speed | stack | memory]

The sides of a ratio are timed in turn; a fit runs on one thread, a stack on all cores. Fits are
short, since an epoch costs the same at any time; `--epochs 200` makes them as long as the paper's.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from itertools import pairwise

from common import candidates, clouds, ratio, report, rounds  # first, since it sets threads up
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from demur.methods import method
from demur.methods.deep import fit_stack
from demur.methods.deep.stack import _multiply
from demur.methods.deep.valen import _nearest

N, D, L = 6_000, 51, 6  # the size of first-order-theorem
STACK = 15  # five seeds of three kinds of noise

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]  # logits, candidates, targets


# --------------------------------------------------------------- plain loops, as first written


def plain_network(d: int, l: int) -> nn.Module:
    layers: list[nn.Module] = []
    for size in (300, 300, 300):
        layers += [nn.Linear(d, size), nn.ReLU(), nn.BatchNorm1d(size)]
        d = size
    return nn.Sequential(*layers, nn.Linear(d, l))


def weighted_loss(logits: Tensor, candidates: Tensor, targets: Tensor) -> Tensor:
    return -(targets * torch.log_softmax(logits, dim=1)).sum(dim=1).mean()


def together_loss(logits: Tensor, candidates: Tensor, targets: Tensor) -> Tensor:
    return -torch.log((torch.softmax(logits, dim=1) * candidates).sum(dim=1)).mean()


def plain_fit(name: str, X: NDArray[np.float64], S: NDArray[np.bool_], epochs: int) -> nn.Module:
    """PRODEN, CC or POP as one writes it first: a data loader, torch's own layers and Adam."""
    torch.manual_seed(0)
    features, candidates = torch.tensor(X, dtype=torch.float32), torch.tensor(S).float()
    targets = candidates / candidates.sum(dim=1, keepdim=True)
    kept, past, threshold = candidates.clone(), [], 0.001
    loader = DataLoader(
        TensorDataset(features, candidates, torch.arange(len(X))), batch_size=1024, shuffle=True
    )
    network = plain_network(X.shape[1], S.shape[1])
    optimizer = torch.optim.Adam(network.parameters())
    loss_of: Loss = together_loss if name == "cc" else weighted_loss
    for epoch in range(epochs):
        for x, s, rows in loader:
            logits = network(x)
            loss = loss_of(logits, s, targets[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if name != "cc":
                with torch.no_grad():
                    new = torch.softmax(logits, dim=1) * kept[rows]
                    targets[rows] = new / new.sum(dim=1, keepdim=True)
        if name == "pop":
            past = [*past[-4:], targets.clone()]
            if epoch >= 20 and epoch % 5 == 0:
                mean = torch.stack(past).mean(dim=0)
                kept[mean < threshold * mean.max(dim=1, keepdim=True).values] = 0
                targets = mean * kept / (mean * kept).sum(dim=1, keepdim=True)
                threshold = min(threshold + 0.001, 0.04)
    return network


def bare_products(epochs: int) -> None:
    """The products of matrices that the forward and backward passes cannot do without."""
    sizes = [D, 300, 300, 300, L]
    weights = [torch.randn(1, o, i) for i, o in pairwise(sizes)]
    inputs = [torch.randn(1, i, 1024) for i in sizes[:-1]]
    slopes = [torch.randn(1, o, 1024) for o in sizes[1:]]
    for _ in range(epochs * N // 1024):
        for k, weight in enumerate(weights):
            _multiply(weight, inputs[k])
            _multiply(slopes[k], inputs[k].mT)
            if k:
                _multiply(weight.mT, slopes[k])


def accuracy_of(network: nn.Module, X: NDArray[np.float64], y: NDArray[np.intp]) -> float:
    network.eval()
    with torch.no_grad():
        top = network(torch.tensor(X, dtype=torch.float32)).argmax(dim=1).numpy()
    return float(np.mean(top == y))


# ----------------------------------------------------------------------------- the measuring


def median(values: NDArray[np.float64]) -> float:
    return float(np.median(values))


def speed(epochs: int, repeats: int) -> None:
    """One run against the plain loop, and what its products alone would take; both must learn."""
    X, y, _ = clouds(N, D, L, 1)
    S = candidates(y, L, 0.3)
    for name in ("proden", "cc", "pop"):
        made = method(name)
        model = made(n_epochs=epochs, device="cpu", random_state=0)
        learned: dict[str, nn.Module] = {}

        def ours(model=model) -> None:  # type: ignore[no-untyped-def]
            model.fit(X, S)

        def plain(name=name, learned=learned) -> None:  # type: ignore[no-untyped-def]
            learned["plain"] = plain_fit(name, X, S, epochs)

        times = rounds(ours, plain, lambda: bare_products(epochs), repeats=repeats)
        report(
            measure="plain loop with a data loader / fit, one thread", method=name,
            n=N, d=D, l=L, epochs=epochs, demur_s=median(times[:, 0]), plain_s=median(times[:, 1]),
            **ratio(0, 1, times), bar=3.0, ratio_of_bare_products=ratio(2, 1, times)["ratio"],
            accuracy=model.score(X, y), plain_accuracy=accuracy_of(learned["plain"], X, y),
        )  # fmt: skip


def stack(epochs: int, repeats: int) -> None:
    """A stack of runs on all cores against the same fits one by one, on one thread and on all."""
    X, y, _ = clouds(N, D, L, 1)
    Ss = [candidates(y, L, 0.3, seed) for seed in range(STACK)]
    cores = len(os.sched_getaffinity(0))
    for name in ("proden", "cc", "pop"):
        made = method(name)

        def models(made=made):  # type: ignore[no-untyped-def]
            return [made(n_epochs=epochs, device="cpu", random_state=s) for s in range(STACK)]

        def together(models=models) -> None:  # type: ignore[no-untyped-def]
            torch.set_num_threads(cores)
            fit_stack(models(), [X] * STACK, Ss)

        def one_by_one(threads: int, models=models) -> None:  # type: ignore[no-untyped-def]
            torch.set_num_threads(threads)
            for model, S in zip(models(), Ss, strict=True):
                model.fit(X, S)

        times = rounds(
            together, lambda: one_by_one(1), lambda: one_by_one(cores), repeats=repeats
        )  # fmt: skip
        torch.set_num_threads(1)
        report(
            measure=f"{STACK} fits, one thread / one stack of {STACK}, {cores} cores",
            method=name, n=N, d=D, l=L, epochs=epochs,
            stack_s=median(times[:, 0]), fits_s=median(times[:, 1]), **ratio(0, 1, times), bar=2.0,
            ratio_of_fits_on_all_cores=ratio(0, 2, times)["ratio"],
        )  # fmt: skip


def memory() -> None:
    """What VALEN's graph holds: the list of links, and the distances while they are searched."""
    sizes, width, k = [2_000, 4_000, 8_000, 16_000], 300, 3
    held, peaks = [], []
    for n in sizes:
        features = torch.randn(n, width, generator=torch.Generator().manual_seed(0))
        with torch.profiler.profile(profile_memory=True) as profile:
            links = _nearest(features, k)
        running = peak = 0
        for event in profile.profiler.kineto_results.events():  # type: ignore[union-attr]
            if event.name() == "[memory]":
                running += event.nbytes()
                peak = max(peak, running)
        held.append(links.numel() * links.element_size())
        peaks.append(peak)
        report(
            measure="VALEN's graph", n=n, width=width, k=k,
            links_mb=held[-1] / 2**20, peak_mb=peak / 2**20, all_pairs_mb=4 * n * n / 2**20,
        )  # fmt: skip
    report(
        measure="VALEN's graph, exponent of n",
        links=float(np.polyfit(np.log(sizes), np.log(held), 1)[0]),
        peak=float(np.polyfit(np.log(sizes), np.log(peaks), 1)[0]),
        bar=1.0,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["speed", "stack", "memory"])
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if "speed" in args.parts:
        speed(args.epochs, args.repeats)
    if "stack" in args.parts:
        stack(max(args.epochs // 5, 2), args.repeats)
    if "memory" in args.parts:
        memory()

"""A stack on a GPU: time of a step of 30 LeNets, and a stack of 15 runs against 15 fits.

python benchmarks/networks_gpu.py

The images are noise of the shape of MNIST's, which cost what others cost. Prints JSON lines.
"""

from __future__ import annotations

import json
import time

import numpy as np
import torch
from numpy.typing import NDArray

from demur import CandidateSets
from demur.methods.deep import Proden, fit_stack


def made(n: int, shape: tuple[int, ...], l: int) -> tuple[NDArray[np.float64], CandidateSets]:
    rng = np.random.default_rng(0)
    X = rng.random((n, *shape), dtype=np.float32).astype(np.float64)
    S = rng.random((n, l)) < 0.3
    S[np.arange(n), rng.integers(0, l, n)] = True
    return X, CandidateSets(S, classes=range(l))


def seconds(runs: int, X: NDArray[np.float64], sets: CandidateSets, epochs: int) -> float:
    models = [Proden(n_epochs=epochs, device="cuda", random_state=s) for s in range(runs)]
    torch.cuda.synchronize()
    start = time.perf_counter()
    fit_stack(models, [X] * runs, [sets] * runs)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    X, sets = made(60_000, (28, 28), 10)
    one, two = (seconds(30, X, sets, epochs) for epochs in (1, 2))
    steps = -(-len(X) // 64)
    step = (two - one) / steps
    print(json.dumps({
        "what": "30 LeNets, 60,000 images, batches of 64, PRODEN",
        "ms_a_step": round(1000 * step, 3),
        "minutes_for_200_epochs": round(200 * steps * step / 60, 2),
    }))  # fmt: skip
    X, sets = made(6_000, (51,), 6)
    seconds(1, X, sets, 5)  # warm
    for _ in range(2):
        together = seconds(15, X, sets, 200)
        alone = sum(seconds(1, X, sets, 200) for _ in range(3)) * 5
        print(json.dumps({
            "what": "15 runs on 6,000 x 51, 200 epochs: a stack against fits one by one (3 timed)",
            "stack_s": round(together, 2), "alone_s": round(alone, 2),
            "ratio": round(together / alone, 3),
        }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

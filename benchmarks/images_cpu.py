"""What methods cost on images of 28 x 28 on one core: rates for the estimates of `demur bench`.

DEMUR_DATA=... python benchmarks/images_cpu.py classic 5000 pl-svm ipal pl-ecoc
python benchmarks/images_cpu.py networks

classic   MNIST's pixels, class-dependent noise: processor seconds of fit, and of n / 4 predictions
networks  noise of the shape of 2,048 images: processor seconds for 1,000 of them and an epoch
"""

from __future__ import annotations

import sys
import time

import numpy as np
from common import candidates, report

from demur import Cc, CroSel, Proden, Valen
from demur.methods import method
from demur.noise import READINGS, class_dependent_noise


def classic(n: int, names: list[str]) -> None:
    """Fit on the first images in a random order, and predict the next."""
    from demur.bench.prepare import load_data

    data = load_data("mnist", "all", None)
    rows = np.random.default_rng(0).permutation(len(data.y))[: n + n // 4]
    X, y = data.X[rows] / 255, data.y[rows]
    how = READINGS["paper"]["class-dependent"]
    sets = class_dependent_noise(y[:n], classes=range(10), random_state=0, **how)
    for name in names:
        model = method(name)()
        able = model.get_params()
        chosen = {"n_jobs": 1, "random_state": 0}
        model.set_params(**{k: v for k, v in chosen.items() if k in able})
        start = time.process_time()
        model.fit(X[:n], sets)
        fitted = time.process_time()
        model.predict(X[n:])
        report(method=name, n=n, fit_s=fitted - start, predict_s=time.process_time() - fitted)


def networks(n: int = 2048, epochs: int = 13) -> None:
    """Few epochs; VALEN's first ten are its warm-up."""
    import torch

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X, sets = rng.random((n, 28, 28)), candidates(rng.integers(10, size=n), 10, 0.3)
    for made in (Proden, Cc, CroSel, Valen):
        start = time.process_time()
        made(n_epochs=epochs, device="cpu", random_state=0).fit(X, sets)
        spent = time.process_time() - start
        report(method=made.__name__, per_1000_and_epoch=1000 * spent / n / epochs)


if __name__ == "__main__":
    if sys.argv[1] == "classic":
        classic(int(sys.argv[2]), sys.argv[3:])
    else:
        networks()

"""How many epochs the auto-encoder needs: PL-KNN's accuracy on its features, while it is trained.

DEMUR_DATA=... python benchmarks/encoder_epochs.py kmnist-test --epochs 5,10,20,30,45,60

Split, candidates and features are those of the preset `paper`'s runs of the same seed and number
of epochs. Prints JSON lines; train_s are processor seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import report

from demur import PlKnn
from demur.bench.prepare import load_data, make_candidates, scaled, split
from demur.bench.spec import Spec
from demur.embed import VAEEncoder
from demur.noise import READINGS


class Watched(VAEEncoder):
    """An encoder that is looked at after some of its epochs."""

    epochs: set[int]
    look: Callable[[], None]

    def _after_epoch(self, weights: Any, history: list[float]) -> None:
        if len(history) in self.epochs:
            self._keep(weights, history)
            self.look()


def measure(dataset: str, seed: int, noises: list[str], epochs: set[int]) -> None:
    """Train one encoder, and tell the accuracy on its features after each of the epochs."""
    y = load_data(dataset, "all", None).y
    test = split(len(y), 0.2, seed)[1]
    X_train, X_test = scaled(dataset, "all", None, 0.2, seed)
    sets = {}
    for noise in noises:
        how = READINGS["paper"][noise]
        spec = Spec(dataset, "pl-knn", noise, seed, noise_parameters=how)
        sets[noise] = make_candidates(spec, None, None)
    encoder = Watched(n_epochs=max(epochs), device="cpu", random_state=seed)
    spent = 0.0  # on looking
    start = time.process_time()

    def look() -> None:
        nonlocal spent
        begun = time.process_time()
        made, asked = encoder.transform(X_train), encoder.transform(X_test)
        for noise, candidates in sets.items():
            model = PlKnn(n_neighbors=20, n_jobs=1).fit(made, candidates)
            report(
                dataset=dataset,
                seed=seed,
                noise=noise,
                epochs=len(encoder.history_),
                accuracy=100 * float(np.mean(model.predict(asked) == y[test])),
                nats=float(encoder.history_[-1]),
                train_s=begun - start - spent,
            )
        spent += time.process_time() - begun

    encoder.epochs, encoder.look = epochs, look
    encoder.fit(X_train)


def main() -> None:
    """Measure each seed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--epochs", default="10,20,30,45,60")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--noise", default="uniform,class-dependent")
    told = parser.parse_args()
    for seed in told.seeds.split(","):
        epochs = {int(text) for text in told.epochs.split(",")}
        measure(told.dataset, int(seed), told.noise.split(","), epochs)


if __name__ == "__main__":
    main()

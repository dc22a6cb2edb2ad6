"""A small folder of results whose numbers are made up, for what draws and tells them."""

import numpy as np

from demur.bench.judged import Judged
from demur.bench.spec import Spec
from demur.bench.store import write_run

# What a name in a file may hold; nothing of it may run, or leave the folder, where it is shown.
EVIL = "<img src=x onerror=hacked=1></script>&\"'"
EVIL_ERROR = "ValueError: </pre><script>hacked=1</script>"
METHODS = ("dst-pll", "pl-knn", "cc")
SETTINGS = (("toy", "uniform"), ("toy", "class-dependent"), (EVIL, "real"))
N_CLASSES = 3


def facts_of(method, seed):
    """What a run's file tells beside its rows."""
    return {
        "threshold": {"dst-pll": 0.0, "pl-knn": 0.5}.get(method, 0.9),
        "device": "cpu",
        "seconds_prepare": 0.01,
        "seconds_fit": 1.0 + seed,
        "seconds_predict": 0.5,
        "peak_mib": 200.0,
        "n_train": 160,
        "n_test": 40,
        "n_features": 4,
        "n_classes": N_CLASSES,
        "labels": ["a", "b", "c"],
        "mean_candidates": 1.7,
        "stack": 1,
        "time": f"2026-03-0{seed + 1}T10:00:00+00:00",
        "versions": {"demur": "0.1.0", "python": "3.11.2", "numpy": "2.4.6"},
        "machine": {"system": "Linux", "cores": 2, "processor": "A processor"},
    }


def judged(method, setting, seed, n=40):
    """Predictions of which the safe ones are more often right; scores have ties."""
    place = METHODS.index(method) if method in METHODS else 3
    where = SETTINGS.index(setting) if setting in SETTINGS else len(SETTINGS)
    rng = np.random.default_rng([place, where, seed])
    y_true = rng.integers(N_CLASSES, size=n)
    score = rng.integers(20, size=n) / 19
    right = rng.random(n) < 0.55 + 0.4 * score - 0.05 * place
    y_pred = np.where(right, y_true, (y_true + 1) % N_CLASSES)
    accept = 2 * score - 1 if method == "dst-pll" else score
    return Judged(np.arange(n), y_true, y_pred, accept, score)


def write_results(folder, settings=SETTINGS, methods=METHODS, seeds=2, failed=True):
    """Write a folder of results; one run of it failed."""
    for dataset, noise in settings:
        for method in methods:
            for seed in range(seeds):
                spec = Spec(dataset, method, noise, seed)
                if failed and (dataset, method, seed) == (EVIL, methods[-1], seeds - 1):
                    facts = {
                        "error": EVIL_ERROR,
                        "traceback": f"Traceback (most recent call last):\n{EVIL_ERROR}",
                        "seconds_prepare": 0.1,
                        "peak_mib": 100.0,
                    }
                    write_run(folder, spec, facts, None)
                    continue
                write_run(
                    folder, spec, facts_of(method, seed), judged(method, (dataset, noise), seed)
                )
    return folder

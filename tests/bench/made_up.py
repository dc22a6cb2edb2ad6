"""Results that are made up, and small enough to be worked out by hand."""

from collections.abc import Mapping, Sequence

import numpy as np

from demur.bench.judged import Judged
from demur.bench.spec import Spec
from demur.bench.store import write_run


def judged(right: Sequence[int], score: Sequence[float]) -> Judged:
    """Instances of one class, predicted right (1) or wrong (0) with these accept scores."""
    wrong = 1 - np.asarray(right)
    zeros = np.zeros_like(wrong)
    return Judged(np.arange(len(wrong)), zeros, wrong, np.asarray(score, float), np.asarray(score))


def write(folder, runs: Mapping[tuple, tuple], *, threshold: float = 0.5) -> None:
    """Write runs: (dataset, noise, method, seed) to (right, score), or None for a failed one."""
    for (dataset, noise, method, seed), told in runs.items():
        spec = Spec(dataset, method, noise, seed)
        if told is None:
            write_run(folder, spec, {"error": "ValueError: too hot"}, None)
        else:
            facts = {"threshold": threshold, "seconds_fit": 1.0, "seconds_predict": 0.5}
            write_run(folder, spec, facts, judged(*told))

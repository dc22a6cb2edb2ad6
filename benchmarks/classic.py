"""IPAL, PL-SVM and PL-ECOC: seconds on one thread, and ratios to plain transcriptions.

python benchmarks/classic.py
"""

from __future__ import annotations

import numpy as np
from common import candidates, clouds, report, seconds
from scipy.optimize import nnls

from demur import CandidateSets
from demur.methods.ipal import Ipal, _reconstruct
from demur.methods.pl_ecoc import PlEcoc, _count_sides
from demur.methods.pl_svm import PlSvm
from demur.neighbors import NeighborIndex


def pl_svm(n: int = 6_000, d: int = 48, l: int = 10) -> None:
    X, y, _ = clouds(n, d, l, 1)
    sets = CandidateSets(candidates(y, l, 0.2))
    S = sets.to_indicator()
    part = 2_000

    def transcription() -> None:
        weights = np.zeros((l, d))
        for t, i in enumerate(np.random.default_rng(0).integers(n, size=part), start=1):
            scores = weights @ X[i]
            best = np.where(S[i], scores, -np.inf).argmax()
            rival = np.where(S[i], -np.inf, scores).argmax()
            weights *= 1 - 1 / t
            if scores[best] - scores[rival] < 1:
                weights[best] += X[i] / t
                weights[rival] -= X[i] / t
            weights *= min(1, 1 / np.linalg.norm(weights))

    ours, plain = seconds(lambda: PlSvm(random_state=0).fit(X, sets), transcription)
    report(
        what="pl-svm fit, 100,000 steps", n=n, d=d, l=l, seconds=ours, limit=0.5,
        faster_than_numpy=plain * 100_000 / part / ours,
    )  # fmt: skip


def ipal(n: int = 8_800, d: int = 16, l: int = 10) -> None:
    X, y, new = clouds(n, d, l, 2_200)
    sets = CandidateSets(candidates(y, l, 0.2))
    model = Ipal(n_jobs=1).fit(X, sets)
    fit, predict = seconds(
        lambda: Ipal(n_jobs=1).fit(X, sets), lambda: model.predict(new), repeats=3
    )
    report(what="ipal fit", n=n, d=d, l=l, seconds=fit, limit=3.0)
    report(what="ipal predict", n=len(new), d=d, l=l, seconds=predict)
    _, neighbors = NeighborIndex(X).query_self(10)
    part = 880

    def scipy() -> None:
        for i in range(part):
            nnls(X[neighbors[i]].T, X[i])

    ours, plain = seconds(lambda: _reconstruct(X, X, neighbors, 1), scipy, repeats=3)
    report(
        what="ipal weights", n=n, d=d, k=10, seconds=ours,
        faster_than_scipy_nnls=plain * n / part / ours,
    )  # fmt: skip


def pl_ecoc(n: int = 8_800, d: int = 16, l: int = 10) -> None:
    X, y, _ = clouds(n, d, l, 1)
    sets = CandidateSets(candidates(y, l, 0.1))
    S = sets.to_indicator()
    codes = np.arange(1, 2**l - 1, dtype=np.uint64)[:, None]
    indicator = (codes >> np.arange(l, dtype=np.uint64) & np.uint64(1)).astype(bool)
    counts = np.empty((len(codes), 2), dtype=np.int64)
    part = 20

    def numpy() -> None:
        for code in indicator[:part]:
            (~(S & ~code).any(axis=1)).sum(), (~(S & code).any(axis=1)).sum()

    ours, plain = seconds(lambda: _count_sides(codes, sets.words, counts), numpy, repeats=3)
    report(
        what="pl-ecoc search, all codes", n=n, l=l, seconds=ours,
        faster_than_numpy=plain * len(codes) / part / ours,
    )  # fmt: skip
    (fit,) = seconds(lambda: PlEcoc(random_state=0, n_jobs=1).fit(X, sets), repeats=3)
    report(what="pl-ecoc fit", n=n, d=d, l=l, seconds=fit)


if __name__ == "__main__":
    pl_svm()
    ipal()
    pl_ecoc()

"""(a) Combining evidence against finding the neighbours; (c) the kernel against Python.

The sides alternate in one run. A line of (a) has the median of its rounds' ratios, and the ratio
of the quickest of each side, which a busy machine disturbs less; a line of (c) that of medians.

    python benchmarks/evidence.py
"""

from __future__ import annotations

from common import (
    candidates,
    clouds,
    ratio,
    report,
    rounds,
    seconds,
)  # first, since it sets threads up
import numpy as np
from sklearn.neighbors import NearestNeighbors

from demur import CandidateSets
from demur.evidence.combine import combine

SIZES = (
    # n, d, l, k, queries
    (48_000, 48, 10, 20, 10_000),
    (8_000, 16, 10, 10, 2_000),
    (18_000, 160, 219, 10, 4_500),
    (100_000, 32, 20, 20, 20_000),
)
RATES = (0.3, 0.6)


def against_neighbours() -> None:
    """Everything that `DstPll.evidence` gives, top sets included, on all cores both."""
    medians, quickest = [], []
    for n, d, l, k, n_queries in SIZES:
        X, y, new = clouds(n, d, l, n_queries)
        search = NearestNeighbors(n_neighbors=k).fit(X)
        neighbors = search.kneighbors(new, return_distance=False)
        frame = CandidateSets(np.ones((1, l), dtype=bool)).words
        for rate in RATES:
            words = CandidateSets(candidates(y, l, rate)).words
            times = rounds(
                lambda: search.kneighbors(new),  # noqa: B023
                lambda: combine(words, neighbors, frame, l),  # noqa: B023
                lambda: combine(words, neighbors, frame, l, top_sets=False),  # noqa: B023
                repeats=max(3, min(25, 100_000 // n)),
            )
            whole, lean = ratio(0, 1, times), ratio(0, 2, times)
            medians.append(whole["ratio"])
            quickest.append(whole["ratio_of_quickest"])
            found, combined, _ = np.median(times, axis=0).tolist()
            report(
                measure="evidence / kneighbors",
                n=n, d=d, l=l, k=k, queries=n_queries, candidate_rate=rate,
                kneighbors_s=found, evidence_s=combined, **whole,
                ratio_without_top_sets=lean["ratio"],
            )  # fmt: skip
    report(
        measure="evidence / kneighbors, all", mean=float(np.mean(medians)), largest=max(medians),
        mean_of_quickest=float(np.mean(quickest)), largest_of_quickest=max(quickest),
        bar_mean=0.05, bar_largest=0.15,
    )  # fmt: skip


def plain(sets: list[frozenset[int]], frame: frozenset[int]) -> dict[frozenset[int], float]:
    """Yager's rule on a dictionary, as one writes it first."""
    mass = {frame: 1.0}
    for s in sets:
        within = s & frame
        if not within or within == frame:
            continue
        folded: dict[frozenset[int], float] = {}
        for held, value in mass.items():
            folded[held] = folded.get(held, 0.0) + value / 2
            meet = held & within
            folded[meet] = folded.get(meet, 0.0) + value / 2
        mass = folded
    conflict = mass.pop(frozenset(), 0.0)
    mass[frame] = mass.get(frame, 0.0) + conflict
    return mass


def against_python() -> None:
    for n, d, l, k, _ in SIZES:
        X, y, new = clouds(min(n, 8_000), d, l, 200)
        neighbors = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(new, return_distance=False)
        frame_words = CandidateSets(np.ones((1, l), dtype=bool)).words
        frame = frozenset(range(l))
        for rate in RATES:
            S = candidates(y[: len(X)], l, rate)
            words = CandidateSets(S).words
            as_sets = [frozenset(np.flatnonzero(row).tolist()) for row in S]

            def in_python() -> list[dict[frozenset[int], float]]:
                return [plain([as_sets[j] for j in row], frame) for row in neighbors]  # noqa: B023

            def kernel() -> object:
                # 20 times the rows, so that calling costs little beside the work
                return combine(words, many, frame_words, l, n_jobs=1)  # noqa: B023

            many = np.tile(neighbors, (20, 1))
            masses, evidence = in_python(), kernel()
            belief = [[m.get(frozenset([y]), 0.0) for y in range(l)] for m in masses]
            assert np.array_equal(belief, evidence.belief[: len(new)])  # type: ignore[attr-defined]
            slow, fast = seconds(in_python, kernel, repeats=3)
            report(
                measure="dictionary / kernel, one core", l=l, k=k, candidate_rate=rate,
                dictionary_us=1e6 * slow / len(new), kernel_us=1e6 * fast / len(many),
                ratio=slow / len(new) / (fast / len(many)),
            )  # fmt: skip


if __name__ == "__main__":
    against_neighbours()
    against_python()

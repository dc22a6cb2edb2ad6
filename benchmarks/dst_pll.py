"""(b) DstPll against scikit-learn's k-NN classifier; (d) growth with n; neighbour search paths.

python benchmarks/dst_pll.py [--growth]
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import threading
import time
from pathlib import Path

from common import candidates, clouds, report, seconds  # first, since it sets threads up
import numpy as np
from evidence import SIZES
from sklearn.neighbors import KNeighborsClassifier

from demur import DstPll
from demur.neighbors import NeighborIndex


def against_kneighbors_classifier() -> None:
    """Fit and predict; ours on candidate sets, theirs on the true labels."""
    ratios = []
    for n, d, l, k, n_queries in (*SIZES, (20_000, 8, 10, 10, 5_000)):
        X, y, new = clouds(n, d, l, n_queries)
        S = candidates(y, l, 0.3)
        ours, theirs = seconds(
            lambda: DstPll(n_neighbors=k).fit(X, S).predict(new),  # noqa: B023
            lambda: KNeighborsClassifier(n_neighbors=k).fit(X, y).predict(new),  # noqa: B023
            repeats=3 if n > 50_000 else 7,
        )
        ratios.append(ours / theirs)
        report(
            measure="DstPll / KNeighborsClassifier, fit + predict",
            n=n, d=d, l=l, k=k, queries=n_queries,
            dst_pll_s=ours, kneighbors_s=theirs, ratio=ours / theirs,
        )  # fmt: skip
    report(
        measure="DstPll / KNeighborsClassifier, all",
        mean=float(np.mean(ratios)), largest=max(ratios),
    )  # fmt: skip


def tree_against_products() -> None:
    """Where `algorithm="auto"` should change over: clouds are kind to trees, noise is not."""
    rng = np.random.default_rng(0)
    for d in (4, 8, 10, 12, 15, 20):
        for kind in ("clouds", "noise"):
            X, _, new = clouds(20_000, d, 20, 4_000)
            if kind == "noise":
                X, new = rng.normal(size=X.shape), rng.normal(size=new.shape)
            tree, products = seconds(
                lambda: NeighborIndex(X, algorithm="kd_tree").query(new, 10),  # noqa: B023
                lambda: NeighborIndex(X, algorithm="brute").query(new, 10),  # noqa: B023
                repeats=3,
            )
            report(measure="kd_tree / brute", d=d, data=kind, ratio=tree / products)


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _grow(n: int, d: int) -> tuple[float, float, float]:
    """Seconds, those of all cores and peak growth of memory (MB) of fit and predict."""
    X, y, new = clouds(n, d, 10, n // 10)
    S = candidates(y, 10, 0.3)
    DstPll().fit(X[:1000], S[:1000]).predict(new[:100])
    before = peak = _resident_mb()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, _resident_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start, worked = time.perf_counter(), time.process_time()
    DstPll().fit(X, S).predict(new)
    spent, worked = time.perf_counter() - start, time.process_time() - worked
    done.set()
    watcher.join()
    return spent, worked, peak - before


def growth(d: int = 8) -> None:
    """From n = 10^4 to 10^6 with n / 10 queries: the exponents of time and memory.

    The seconds of all cores tell the work where other programs share them.
    """
    sizes = [10_000, 31_623, 100_000, 316_228, 1_000_000]
    rows = []
    context = multiprocessing.get_context("spawn")
    for n in sizes:
        with context.Pool(1) as pool:
            rows.append(pool.apply(_grow, (n, d)))
        report(
            measure="growth", n=n, d=d, seconds=rows[-1][0], core_seconds=rows[-1][1],
            peak_mb=rows[-1][2],
        )  # fmt: skip
    times, core_times, peaks = np.log(rows).T
    report(
        measure="growth, exponent of n",
        time=float(np.polyfit(np.log(sizes), times, 1)[0]),
        core_time=float(np.polyfit(np.log(sizes), core_times, 1)[0]),
        memory=float(np.polyfit(np.log(sizes), peaks, 1)[0]),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--growth", action="store_true", help="only (d), about a minute")
    if not parser.parse_args().growth:
        against_kneighbors_classifier()
        tree_against_products()
    growth()

"""A Parquet file larger than the memory allowed: peak memory, and rows a second.

python benchmarks/predict_large.py [--rows 5000000] [--train 2000]

Writes a table of random clouds with 50 features, predicts it by `demur.files.predict` in a
process of its own (reading, checking, scaling, deciding, reasons, writing Parquet), and lets
scikit-learn's `kneighbors` search the same rows, scaled and in memory, in batches of the same
size. Both sides use all cores. The sides take turns in chunks of the file where it is small;
with all rows each runs once.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

from common import candidates, report  # first, since it sets threads up
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.neighbors import NearestNeighbors

D, L, K = 50, 10, 10
BATCH = 2**16


def write_tables(folder: Path, rows: int, train: int) -> None:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(L, D))
    names = [f"f{j + 1}" for j in range(D)]
    y = rng.integers(L, size=train)
    X = centers[y] + rng.normal(size=(train, D))
    labels = [np.flatnonzero(row).tolist() for row in candidates(y, L, 0.3)]
    table = pa.table(dict(zip(names, X.T, strict=True)) | {"labels": labels})
    pq.write_table(table, folder / "train.parquet")
    schema = pa.schema([("id", pa.int64()), *((name, pa.float32()) for name in names)])
    with pq.ParquetWriter(folder / "new.parquet", schema, compression="none") as writer:
        for start in range(0, rows, 2**18):
            n = min(2**18, rows - start)
            part = (centers[rng.integers(L, size=n)] + rng.normal(size=(n, D))).astype(np.float32)
            columns = [np.arange(start, start + n), *part.T]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=2**18)


def fit(folder: Path) -> None:
    from demur import files

    wanted = files.Wanted(candidates="labels")
    files.fit(
        folder / "train.parquet", folder / "model.demur",
        wanted=wanted, features=f"f1:f{D}", parameters={"n_neighbors": K},
    )  # fmt: skip


def predict(folder: Path) -> tuple[float, float]:
    """Seconds, and the peak of memory in MB of a process that does nothing else."""
    from demur import files

    start = time.perf_counter()
    files.predict(folder / "model.demur", folder / "new.parquet", folder / "decisions.parquet")
    spent = time.perf_counter() - start
    return spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def search(folder: Path) -> tuple[float, float]:
    """Seconds of `kneighbors` alone, on batches that are in memory and scaled."""
    from demur import files

    model = files.load(folder / "model.demur")
    scale = model.preparation.scale
    index = NearestNeighbors(n_neighbors=K, n_jobs=-1).fit(scale(model.training.X))
    spent = 0.0
    names = model.preparation.names
    for batch in pq.ParquetFile(folder / "new.parquet").iter_batches(BATCH, columns=names):
        X = scale(np.column_stack([np.asarray(c, dtype=float) for c in batch.columns]))
        start = time.perf_counter()
        index.kneighbors(X)
        spent += time.perf_counter() - start
    return spent, 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--train", type=int, default=2_000)
    parser.add_argument("--repeats", type=int, default=1)
    asked = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, asked.rows, asked.train)
        with context.Pool(1) as pool:
            pool.apply(fit, (folder,))
        ours, theirs, peak = [], [], 0.0
        for _ in range(asked.repeats):
            for side, times in ((predict, ours), (search, theirs)):
                with context.Pool(1) as pool:
                    spent, memory = pool.apply(side, (folder,))
                times.append(spent)
                peak = max(peak, memory)
        size = (folder / "new.parquet").stat().st_size / 2**20
    mine, other = float(np.median(ours)), float(np.median(theirs))
    report(
        measure="predict / kneighbors, rows a second", rows=asked.rows, d=D, train=asked.train,
        k=K, file_mb=size, peak_mb=peak, predict_s=mine, kneighbors_s=other,
        predict_rows_s=asked.rows / mine, kneighbors_rows_s=asked.rows / other, ratio=other / mine,
    )  # fmt: skip


if __name__ == "__main__":
    main()

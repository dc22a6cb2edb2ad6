"""A Parquet file larger than the memory allowed: peak memory, and rows a second.

python benchmarks/predict_large.py [--rows 5000000] [--train 10000]

Writes a table of random clouds with 50 features, predicts it by `demur.files.predict` in a
process of its own (reading, checking, scaling, deciding, reasons, writing Parquet), and lets
scikit-learn's `kneighbors` search the same rows, scaled and in memory, in batches of the same
size. Both sides use all cores, in processes of their own, one after the other; besides seconds
of the clock those of the processors are told, which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from common import candidates, report  # first, since it sets threads up
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
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


def predict(folder: Path) -> tuple[float, float, float]:
    """Seconds by clock and processors, and the peak of memory in MB of this process."""
    from demur import files

    start = now()
    files.predict(folder / "model.demur", folder / "new.parquet", folder / "decisions.parquet")
    spent = now() - start
    return *spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def now() -> NDArray[np.float64]:
    """Time by the clock and by the processors."""
    return np.array([time.perf_counter(), time.process_time()])


def search(folder: Path) -> tuple[float, float]:
    """Seconds of `kneighbors` alone, on batches that are in memory and scaled."""
    from demur import files

    model = files.load(folder / "model.demur")
    scale = model.preparation.scale
    index = NearestNeighbors(n_neighbors=K, n_jobs=-1).fit(scale(model.training.X))
    spent = np.zeros(2)
    names = model.preparation.names
    for batch in pq.ParquetFile(folder / "new.parquet").iter_batches(BATCH, columns=names):
        X = scale(np.column_stack([np.asarray(c, dtype=float) for c in batch.columns]))
        start = now()
        index.kneighbors(X)
        spent += now() - start
    return tuple(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--train", type=int, default=10_000)
    asked = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, asked.rows, asked.train)
        results: list[Any] = []
        for side in (fit, predict, search):
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                results.append(pool.submit(side, folder).result())
        size = (folder / "new.parquet").stat().st_size / 2**20
    (mine, my_work, peak), (other, other_work) = results[1:]
    report(
        measure="predict / kneighbors, rows a second", rows=asked.rows, d=D, train=asked.train,
        k=K, file_mb=size, peak_mb=peak, predict_s=mine, kneighbors_s=other,
        predict_rows_s=asked.rows / mine, kneighbors_rows_s=asked.rows / other, ratio=other / mine,
        predict_work_s=my_work, kneighbors_work_s=other_work, work_ratio=other_work / my_work,
    )  # fmt: skip


if __name__ == "__main__":
    main()

"""Test accuracy of the methods, as the text's table 1 and the public implementation measure it.

python benchmarks/accuracy.py --methods dst-pll pl-knn --seeds 5 --out results/accuracy.csv
python benchmarks/accuracy.py --compare --out results/accuracy.csv

The first command makes one row per dataset, noise and method, and skips the rows that the file
holds already; the second prints them beside the published figures. Of methods that vary much,
five seeds say little: results/accuracy-30-seeds.csv has more of them. The data is read from
DEMUR_DATA, the figures from DEMUR_REFERENCE; both folders are by default those beside the
repository, in shared/.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import arff, loadmat
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from demur import CandidateSets
from demur.base import PartialLabelClassifier
from demur.methods import METHODS, method
from demur.methods.deep import DeepClassifier, fit_stack
from demur.noise import (
    READINGS,
    class_dependent_noise,
    instance_dependent_noise,
    uniform_noise,
)

SHARED = Path(__file__).parents[2] / "shared"
DATA = Path(os.environ.get("DEMUR_DATA", SHARED / "data"))
REFERENCE = Path(os.environ.get("DEMUR_REFERENCE", SHARED / "reference"))

UCI = (
    "ecoli", "first-order-theorem", "flare", "mfeat-fourier", "pendigits", "semeion",
    "statlog-landsat-satellite",
)  # fmt: skip
REAL_WORLD = ("bird-song", "msrc-v2")
REAL = "none (real candidates)"
NOISE: dict[str, Callable[..., CandidateSets]] = {
    "uniform": lambda y, X, **how: uniform_noise(y, **how),
    "class-dependent": lambda y, X, **how: class_dependent_noise(y, **how),
    "instance-dependent": instance_dependent_noise,
}
COLUMNS = ("dataset", "noise", "method", "mean", "std", "seeds", "seconds")

# Table 1 of the text: mean over the UCI datasets.
TABLE_1 = {
    "class-dependent": {
        "pl-knn": 81.2, "pl-svm": 62.3, "ipal": 79.3, "pl-ecoc": 63.7, "proden": 81.6,
        "cc": 81.3, "valen": 79.7, "pop": 81.5, "crosel": 79.9, "dst-pll": 80.8,
    },
    "instance-dependent": {
        "pl-knn": 75.8, "pl-svm": 43.8, "ipal": 75.3, "pl-ecoc": 66.5, "proden": 78.1,
        "cc": 78.8, "valen": 75.6, "pop": 78.1, "crosel": 78.4, "dst-pll": 75.4,
    },
}  # fmt: skip


# ------------------------------------------------------------------------------- the data


class Dataset(NamedTuple):
    """Features, true labels, and real candidates where there are such."""

    X: NDArray[np.float64]
    y: NDArray[np.intp]
    n_classes: int
    S: NDArray[np.bool_] | None = None


class Run(NamedTuple):
    """One split with its candidates."""

    seed: int
    X_train: NDArray[np.float64]
    S_train: CandidateSets
    X_test: NDArray[np.float64]
    y_test: NDArray[np.intp]


def load(name: str) -> Dataset:
    return read_arff(name) if name in UCI else read_mat(name)


def read_arff(name: str) -> Dataset:
    """A UCI table; its last column is the class, and each other nominal one becomes 0/1 columns."""
    table, meta = arff.loadarff(DATA / "uci" / f"{name}.arff")
    *features, target = meta.names()
    columns = [
        table[f][:, None] == np.unique(table[f]) if meta[f][0] == "nominal" else table[f][:, None]
        for f in features
    ]
    classes, y = np.unique(table[target], return_inverse=True)
    return Dataset(np.hstack(columns).astype(np.float64), y, len(classes))


def read_mat(name: str) -> Dataset:
    """A real-world set, reduced to its most frequent candidate classes.

    As few as cover 95 % of the true labels, to the nearest percent: so the numbers of test
    instances agree with the steps of the reference's accuracies (msrc-v2: 19 classes, which
    cover 94.6 %). Instances of other classes are dropped.
    """
    file = loadmat(DATA / "real-world" / f"{name}.mat")
    truth, candidates = (file[k].toarray().T > 0 for k in ("target", "partial_target"))
    order = np.argsort(-candidates.sum(axis=0), kind="stable")
    covered = np.cumsum(truth.sum(axis=0)[order]) / len(truth)
    kept = np.sort(order[: 1 + np.flatnonzero(covered.round(2) >= 0.95)[0]])
    rows = truth[:, kept].any(axis=1)
    y = truth[np.ix_(rows, kept)].argmax(axis=1)
    return Dataset(
        file["data"][rows].astype(np.float64), y, len(kept), candidates[np.ix_(rows, kept)]
    )


def make_run(data: Dataset, noise: str, seed: int) -> Run:
    """Split, scale by the training part, and draw its candidates."""
    train, test = train_test_split(np.arange(len(data.y)), test_size=0.2, random_state=seed)
    scaler = MinMaxScaler().fit(data.X[train])
    X_train, X_test = scaler.transform(data.X[train]), scaler.transform(data.X[test])
    if data.S is not None:
        sets = CandidateSets(data.S[train])
    else:
        sets = NOISE[noise](
            data.y[train],
            X_train,
            **READINGS["paper"][noise],
            classes=range(data.n_classes),
            random_state=seed,
        )
    return Run(seed, X_train, sets, X_test, data.y[test])


# ------------------------------------------------------------------------------- measuring


def fit_all(name: str, runs: Sequence[Run]) -> list[PartialLabelClassifier]:
    """A model for each run: networks as one stack, other methods one by one."""
    kind = method(name)
    models = [kind() for _ in runs]
    for model, run in zip(models, runs, strict=True):
        if "random_state" in model.get_params():
            model.set_params(random_state=run.seed)
    Xs, Ss = [run.X_train for run in runs], [run.S_train for run in runs]
    networks = [model for model in models if isinstance(model, DeepClassifier)]
    if networks:
        return list(fit_stack(networks, Xs, Ss))
    return [model.fit(X, S) for model, X, S in zip(models, Xs, Ss, strict=True)]


def measure(name: str, settings: dict[str, list[Run]]) -> Iterator[dict[str, Any]]:
    """A row for each noise; seconds are those of fitting, and a stack's are shared evenly."""
    kind = method(name)
    together = issubclass(kind, DeepClassifier)
    for group in [list(settings)] if together else [[noise] for noise in settings]:
        runs = [run for noise in group for run in settings[noise]]
        start = time.perf_counter()
        models = iter(fit_all(name, runs))
        seconds = (time.perf_counter() - start) / len(group)
        for noise in group:
            accuracies = [
                100 * float((model.predict(run.X_test) == run.y_test).mean())
                for run, model in zip(settings[noise], models, strict=False)
            ]
            yield {
                "noise": noise,
                "method": name,
                "mean": round(float(np.mean(accuracies)), 2),
                "std": round(float(np.std(accuracies, ddof=1)), 2),
                "seeds": len(accuracies),
                "seconds": round(seconds, 2),
            }


def measure_all(
    methods: Sequence[str], datasets: Sequence[str], noises: Sequence[str], seeds: int, out: Path
) -> None:
    """Append the rows that the file lacks."""
    there = {(row["dataset"], row["noise"], row["method"]) for row in read_rows(out)}
    out.parent.mkdir(parents=True, exist_ok=True)
    for dataset in datasets:
        wanted = noises if dataset in UCI else (REAL,)
        missing = {m: [z for z in wanted if (dataset, z, m) not in there] for m in methods}
        needed = [noise for noise in wanted if any(noise in z for z in missing.values())]
        if not needed:
            continue
        data = load(dataset)
        runs = {z: [make_run(data, z, seed) for seed in range(seeds)] for z in needed}
        for name, lacking in missing.items():
            for row in measure(name, {noise: runs[noise] for noise in lacking}):
                append({"dataset": dataset, **row}, out)


def append(row: dict[str, Any], out: Path) -> None:
    is_new = not out.exists()
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)
    print(*(row[column] for column in COLUMNS), sep=",", flush=True)


def read_rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ------------------------------------------------------------------------------ comparing


def compare(ours: list[dict[str, str]], reference: list[dict[str, str]]) -> None:
    """Ours beside the reference, row by row, then the means of table 1."""
    theirs = {(row["dataset"], row["noise"], row["method"]): row for row in reference}
    print("| dataset | noise | method | ours | reference | difference | within |")
    print("|---|---|---|---|---|---|---|")
    for row in sorted(ours, key=lambda r: (r["method"], r["noise"], r["dataset"])):
        names = row["dataset"], row["noise"], row["method"]
        own = f"{float(row['mean']):.2f} ± {float(row['std']):.2f}"
        if names not in theirs:
            print("|", " | ".join((*names, own, "-", "-", "-")), "|")
            continue
        mean, std = float(theirs[names]["mean"]), float(theirs[names]["std"])
        difference = float(row["mean"]) - mean
        beside = own, f"{mean:.2f} ± {std:.2f}", f"{difference:+.2f}"
        print("|", " | ".join((*names, *beside, verdict(difference, max(2, 2 * std)))), "|")
    print("\n| UCI mean | method | datasets | ours | reference | table 1 | difference | within |")
    print("|---|---|---|---|---|---|---|---|")
    for noise, published in TABLE_1.items():
        for name, target in published.items():
            own = uci_rows(ours, noise, name)
            if not own:
                continue
            theirs_too = uci_rows(reference, noise, name)
            beside = mean_and_error(theirs_too) if len(theirs_too) == len(UCI) else "-"
            difference = float(np.mean([float(row["mean"]) for row in own])) - target
            whole = len(own) == len(UCI)
            judged = (f"{difference:+.1f}", verdict(difference, 1.0)) if whole else ("-", "-")
            cells = f"{len(own)} of {len(UCI)}", mean_and_error(own), beside, str(target), *judged
            print("|", " | ".join((noise, name, *cells)), "|")
    print("\n± is the standard deviation over the seeds; for the UCI means, their standard error.")


def verdict(difference: float, limit: float) -> str:
    if abs(difference) <= limit:
        return "yes"
    return "better" if difference > 0 else "WORSE"


def uci_rows(rows: list[dict[str, str]], noise: str, name: str) -> list[dict[str, str]]:
    return [
        row
        for row in rows
        if row["dataset"] in UCI and (row["noise"], row["method"]) == (noise, name)
    ]


def mean_and_error(rows: list[dict[str, str]]) -> str:
    """Mean over the datasets, and how far other seeds would move it."""
    mean = np.mean([float(row["mean"]) for row in rows])
    squares = [float(row["std"]) ** 2 / int(row["seeds"]) for row in rows]
    return f"{mean:.1f} ± {np.sqrt(sum(squares)) / len(rows):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    datasets = (*UCI, *REAL_WORLD)
    parser.add_argument("--datasets", nargs="+", choices=datasets, default=datasets)
    parser.add_argument(
        "--noise", nargs="+", choices=tuple(NOISE), default=tuple(NOISE),
        help="of the UCI datasets; the others bring their candidates",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/accuracy.csv"))
    parser.add_argument("--compare", action="store_true", help="print, measure nothing")
    args = parser.parse_args()
    if args.compare:
        compare(read_rows(args.out), read_rows(REFERENCE / "accuracy.csv"))
    elif args.seeds < 2:
        sys.exit("--seeds must be at least 2: a row tells a standard deviation.")
    else:
        measure_all(args.methods, args.datasets, args.noise, args.seeds, args.out)


if __name__ == "__main__":
    main()

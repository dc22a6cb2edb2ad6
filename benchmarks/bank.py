"""A bank of PRODEN's probabilities, out of fold and of the full fit, for what is measured on them.

python benchmarks/bank.py draw --out bank/draws                        # splits and candidates
python benchmarks/bank.py train --draws bank/draws --out bank/scores   # quick on a GPU
python benchmarks/bank.py join --draws bank/draws --scores bank/scores --out bank

Training a network on each of five folds of 115 splits took 83 minutes of a shared core; the draws
can travel to where a GPU is, and the probabilities back. ``join`` makes a file
for each dataset, noise and seed: X_train, X_test, S_train, y_train, y_test, oof, full_train and
full_test.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from sklearn.preprocessing import MinMaxScaler

FOLDS = 5


class Split(NamedTuple):
    """One split of a dataset, scaled, with the candidates of its training part."""

    noise: str
    seed: int
    X_train: NDArray[np.float64]
    X_test: NDArray[np.float64]
    S_train: NDArray[np.bool_]
    y_train: NDArray[np.intp]
    y_test: NDArray[np.intp]


def draw(out: Path, seeds: int) -> None:
    """One file a dataset: its rows once, and the splits and packed candidates."""
    import accuracy

    for name in (*accuracy.UCI, *accuracy.REAL_WORLD):
        data = accuracy.load(name)
        arrays: dict[str, Any] = {"X": data.X, "y": data.y, "n_classes": data.n_classes}
        for seed in range(seeds):
            rows = np.arange(len(data.y))
            train, test = accuracy.train_test_split(rows, test_size=0.2, random_state=seed)
            arrays |= {f"train_{seed}": train, f"test_{seed}": test}
            for noise in accuracy.NOISE if name in accuracy.UCI else ("real",):
                run = accuracy.make_run(data, noise, seed)
                packed = np.packbits(run.S_train.to_indicator(), axis=1)
                arrays[f"S_{noise}_{seed}"] = packed
        np.savez_compressed(out / f"{name}.npz", **arrays)


def splits_of(path: Path) -> Iterator[Split]:
    """The splits that `draw` wrote."""
    with np.load(path) as file:
        arrays = dict(file)
    for key in sorted(key for key in arrays if key.startswith("S_")):
        _, noise, seed = key.split("_")
        train, test = arrays[f"train_{seed}"], arrays[f"test_{seed}"]
        X, y = arrays["X"], arrays["y"]
        scaler = MinMaxScaler().fit(X[train])
        S = np.unpackbits(arrays[key], axis=1, count=int(arrays["n_classes"])).astype(bool)
        yield Split(
            noise, int(seed), scaler.transform(X[train]), scaler.transform(X[test]), S,
            y[train], y[test],
        )  # fmt: skip


def train(draws: Path, out: Path, device: str, datasets: list[str] | None = None) -> None:
    """One file a dataset: logarithms of probabilities, so that float16 tells apart those near 1.

    Parameters
    ----------
    draws, out : Path
    device : str
    datasets : list of str, optional
        By default all that were drawn.
    """
    from demur.methods.deep import Proden, fit_stack

    for path in sorted(draws.glob("*.npz")):
        if datasets and path.stem not in datasets:
            continue
        start = time.perf_counter()
        splits = list(splits_of(path))
        parts = []  # (split, its rows to learn from, its rows to judge)
        for i, split in enumerate(splits):
            folds = KFold(FOLDS, shuffle=True, random_state=split.seed).split(split.X_train)
            parts += [(i, rows, held) for rows, held in folds]
            parts.append((i, np.arange(len(split.X_train)), None))
        arrays: dict[str, NDArray[Any]] = {}
        for size in sorted({len(rows) for _, rows, _ in parts}):
            group = [part for part in parts if len(part[1]) == size]
            models = [Proden(random_state=splits[i].seed, device=device) for i, _, _ in group]
            # All classes stay, also where no candidate of a fold has one.
            sets = [_named(splits[i].S_train[rows]) for i, rows, _ in group]
            fit_stack(models, [splits[i].X_train[rows] for i, rows, _ in group], sets)
            for (i, _, held), model in zip(group, models, strict=True):
                split = splits[i]
                key = f"{split.noise}_{split.seed}"
                if held is None:
                    arrays[f"full-train_{key}"] = _half(model.predict_proba(split.X_train))
                    arrays[f"full-test_{key}"] = _half(model.predict_proba(split.X_test))
                else:
                    oof = arrays.setdefault(
                        f"oof_{key}", np.zeros(split.S_train.shape, dtype=np.float16)
                    )
                    oof[held] = _half(model.predict_proba(split.X_train[held]))
        np.savez_compressed(out / path.name, **arrays)
        print(
            f"{path.stem}: {len(parts)} networks, {time.perf_counter() - start:.1f} s", flush=True
        )


def join(draws: Path, scores: Path, out: Path) -> None:
    """One file for each dataset, noise and seed."""
    for path in sorted(draws.glob("*.npz")):
        if not (scores / path.name).exists():
            print(f"{path.stem} is not trained yet")
            continue
        with np.load(scores / path.name) as file:
            arrays = dict(file)
        for split in splits_of(path):
            key = f"{split.noise}_{split.seed}"
            np.savez(
                out / f"{path.stem}__{split.noise}__{split.seed}.npz",
                X_train=split.X_train,
                X_test=split.X_test,
                S_train=split.S_train,
                y_train=split.y_train,
                y_test=split.y_test,
                **{
                    name.replace("-", "_"): _sums_to_one(arrays[f"{name}_{key}"])
                    for name in ("oof", "full-train", "full-test")
                },
            )


def _named(S: NDArray[np.bool_]) -> Any:
    from demur import CandidateSets

    return CandidateSets(S, classes=range(S.shape[1]))


def _half(proba: NDArray[np.float64]) -> NDArray[np.float16]:
    return np.log(proba.clip(1e-30)).astype(np.float16)


def _sums_to_one(logarithms: NDArray[np.float16]) -> NDArray[np.float64]:
    exact = np.exp(logarithms.astype(np.float64))
    return exact / exact.sum(axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("draw", "train", "join"))
    parser.add_argument("--draws", type=Path, default=Path("bank/draws"))
    parser.add_argument("--scores", type=Path, default=Path("bank/scores"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--datasets", nargs="+", help="train these alone")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.step == "draw":
        draw(args.out, args.seeds)
    elif args.step == "train":
        train(args.draws, args.out, args.device, args.datasets)
    else:
        join(args.draws, args.scores, args.out)


if __name__ == "__main__":
    main()

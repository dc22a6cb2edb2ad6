"""Judgements of the protocol's splits, which the dials are measured on; kept once worked out.

python benchmarks/dial_data.py --methods dst-pll pl-knn logistic   # seven minutes on two cores
python benchmarks/dial_data.py --methods quorum-without-networks --seeds 2

DST-PLL, PL-KNN, scikit-learn's logistic regression on majority labels and Quorum without networks
are trained here, on the splits of `bank.py draw`; PRODEN's probabilities come from `bank.py join`.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import bank
from demur import CandidateSets, DstPll, PlKnn, Quorum
from demur.base import Judgement
from demur.reject.scores import Fresh, judge, learner_of, out_of_fold

METHODS = ("dst-pll", "pl-knn", "proden", "logistic", "quorum-without-networks")
BANK = Path(os.environ.get("DEMUR_BANK", "bank"))


class Known(NamedTuple):
    """A method on a split: judgements and truths."""

    dataset: str
    noise: str
    seed: int
    method: str
    held_out: Fresh  # training instances by models that have not seen them
    in_sample: NDArray[np.float64]  # their accept scores by the model that has
    test: Judgement
    threshold: float  # the method's own
    y_train: NDArray[np.intp]
    y_test: NDArray[np.intp]


class Recorded(ClassifierMixin, BaseEstimator):
    """Judges as is written in the features: a number that tells rows apart, and the judgement."""

    def fit(self, X: Any, y: Any) -> Recorded:
        """Learn nothing: all is recorded."""
        self.classes_ = np.asarray(y)
        return self

    def judge(self, X: NDArray[np.float64]) -> Judgement:
        """Read the judgement that the features hold."""
        return Judgement(X[:, 2].astype(np.intp), X[:, 3:], X[:, 1])


def written(judged: Any, first: int = 0) -> NDArray[np.float64]:
    """Features for `Recorded`."""
    rows = np.arange(first, first + len(judged.top))
    return np.column_stack([rows, judged.accept, judged.top, judged.proba])


def splits(methods: Sequence[str], seeds: int = 5) -> Iterator[Known]:
    """Every method on every split."""
    for path in sorted((BANK / "draws").glob("*.npz")):
        for split in bank.splits_of(path):
            if split.seed < seeds:
                for name in methods:
                    if name == "proden" and not _joined(path.stem, split).exists():
                        print(f"PRODEN lacks {path.stem} {split.noise} {split.seed}")
                        continue
                    yield known(path.stem, split, name)


def _joined(dataset: str, split: bank.Split) -> Path:
    return BANK / f"{dataset}__{split.noise}__{split.seed}.npz"


def known(dataset: str, split: bank.Split, name: str) -> Known:
    """Judgements of one split: kept, from the bank, or worked out now."""
    stem = f"{dataset}__{split.noise}__{split.seed}"
    if name == "proden":
        with np.load(_joined(dataset, split)) as file:
            judged = [Judgement.of_proba(file[k]) for k in ("oof", "full_train", "full_test")]
        held_out, train, test = judged
        threshold, in_sample = 0.9, train.accept
    else:
        place = BANK / "judged" / name / f"{stem}.npz"
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            np.savez(place, **_work_out(name, split))
        with np.load(place) as file:
            held_out, test = (
                Judgement(file[f"{k}_top"], file[f"{k}_proba"], file[f"{k}_accept"])
                for k in ("held_out", "test")
            )
            threshold, in_sample = float(file["threshold"]), file["in_sample"]
    fresh = Fresh(held_out.accept, held_out.top, held_out.proba, split.S_train)
    return Known(
        dataset, split.noise, split.seed, name, fresh, in_sample, test, threshold,
        split.y_train, split.y_test,
    )  # fmt: skip


def _work_out(name: str, split: bank.Split) -> dict[str, Any]:
    made: Any = {
        "dst-pll": DstPll(random_state=split.seed),
        "pl-knn": PlKnn(),
        "logistic": LogisticRegression(max_iter=1000),
        "quorum-without-networks": Quorum(n_networks=0, random_state=split.seed),
    }[name]
    sets = CandidateSets(split.S_train, classes=range(split.S_train.shape[1]))
    learner = learner_of(made, "majority")
    fitted = learner.fit(split.X_train, sets)
    held_out = out_of_fold(learner, fitted, split.X_train, sets, seed=split.seed)
    test = judge(fitted, split.X_test)[1]
    return {
        **{f"held_out_{k}": getattr(held_out, k) for k in Judgement._fields},
        **{f"test_{k}": getattr(test, k) for k in Judgement._fields},
        "in_sample": judge(fitted, split.X_train)[1].accept,
        "threshold": getattr(fitted, "accept_threshold_", 0.9),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    start = time.perf_counter()
    for i, one in enumerate(splits(args.methods, args.seeds), 1):
        error = float(np.mean(one.held_out.top != one.y_train))
        seconds = time.perf_counter() - start
        print(
            f"{i} {one.dataset} {one.noise} {one.seed} {one.method} "
            f"out-of-fold error {error:.3f}, {seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()

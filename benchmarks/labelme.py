"""LabelMe from files to decisions: every method and rule against logistic regression.

python benchmarks/labelme.py [--methods dst-pll proden] [--rules union share:0.5] [--seeds 3]
                             [-o results/labelme.csv]
python benchmarks/labelme.py --order | --check | --write FOLDER

The answers of 59 annotators for 1,000 images become a table and a file of answers;
`demur.files.fit` and `demur.files.predict` do the rest, on the 1,188 images with true labels.
Nothing is tuned; networks and others that use chance run once a seed. Rows that the output
holds already are not measured again, so methods can be added one by one.

The rule "reliable:0.05" knows the annotators. "logistic regression" learns from the labels with
the most votes; or from the most probable ones of Dawid and Skene's model, which is crowd-kit's
where that is installed, and else the few lines below (--check compares the two); or from the most
probable ones of `demur.annotators`, by which the rule goes. It rejects by confidence;
`majority_there` and `dawid_skene_there` are what it reaches where it accepts as many images as
the method of the row does.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from pathlib import Path
from typing import Any

import common  # first, since it sets threads up
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MinMaxScaler

from demur import files, metrics
from demur.annotators import label_probabilities
from demur.datasets import entry, load
from demur.datasets.files import locate
from demur.methods import METHODS, method

RULES = ("union", "votes:2", "share:0.5", "reliable:0.05")
FIELDS = (
    "method", "rule", "seed", "truth_missed", "mean_size", "accuracy", "coverage",
    "accepted_accuracy", "majority_there", "dawid_skene_there", "aurc", "safest_half", "seconds",
)  # fmt: skip


class LabelMe:
    """Images, answers and truth."""

    def __init__(self) -> None:
        def read(part: str) -> tuple[NDArray[Any], NDArray[Any]]:
            found = load("labelme", part=part)
            return found.X, np.asarray([f"scene {k}" for k in found.y])

        self.train, self.valid, self.test = read("train"), read("validation"), read("test")
        answers = np.loadtxt(locate(entry("labelme"))["answers.txt"], dtype=int)
        self.items, self.workers = np.nonzero(answers >= 0)
        self.given = answers[self.items, self.workers]
        self.n, self.l = len(answers), int(answers.max()) + 1
        votes = np.zeros((self.n, self.l))
        np.add.at(votes, (self.items, self.given), 1)
        self.votes = votes
        self.posterior = dawid_skene(self)

    def write(self, folder: Path) -> None:
        """The tables that the commands are given."""
        for name, (X, y) in {"train": self.train, "test": self.test, "valid": self.valid}.items():
            columns = {"image": [f"{name} {i}" for i in range(len(X))]}
            columns |= {f"f{j + 1}": x for j, x in enumerate(X.T)}
            if name != "train":
                columns["label"] = y
            pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        with (folder / "answers.csv").open("w") as out:
            out.write("item,worker,label\n")
            for item, worker, label in zip(self.items, self.workers, self.given, strict=True):
                out.write(f"train {item},w{worker},scene {label}\n")


# --------------------------------------------------------------- Dawid and Skene's model


def dawid_skene(data: LabelMe, n_iter: int = 100, *, own: bool = False) -> NDArray[np.float64]:
    """Probabilities of the labels of each item, from the mistakes that each annotator makes."""
    try:
        from crowdkit.aggregation import DawidSkene
    except ImportError:
        own = True
    if own:
        return own_dawid_skene(data, n_iter)
    import pandas as pd

    frame = pd.DataFrame({"task": data.items, "worker": data.workers, "label": data.given})
    found = DawidSkene(n_iter=n_iter).fit_predict_proba(frame)
    return np.asarray(found.reindex(index=range(data.n), columns=range(data.l)).fillna(0.0))


def own_dawid_skene(data: LabelMe, n_iter: int) -> NDArray[np.float64]:
    """Expectation maximisation, begun at the shares of the votes."""
    q = data.votes / data.votes.sum(axis=1, keepdims=True)
    for _ in range(n_iter):
        mistakes = np.zeros((data.workers.max() + 1, data.l, data.l))  # annotator, answer, truth
        np.add.at(mistakes, (data.workers, data.given), q[data.items])
        totals = mistakes.sum(axis=1, keepdims=True)
        mistakes = np.divide(mistakes, totals, out=np.zeros_like(mistakes), where=totals > 0)
        log_q = np.zeros_like(q) + np.log(q.mean(axis=0))
        np.add.at(log_q, data.items, np.log(np.maximum(mistakes[data.workers, data.given], 1e-10)))
        q = np.exp(log_q - log_q.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    return q


# ------------------------------------------------------------------------------- measures


class Judged:
    """Predictions with accept scores, beside the truth."""

    def __init__(self, y: NDArray[Any], z: NDArray[Any], score: NDArray[np.float64]) -> None:
        self.y, self.z, self.score = y, z, score

    def at(self, coverage: float) -> float:
        """Accuracy of so many that are the safest."""
        if not coverage:
            return float("nan")
        return 1.0 - metrics.risk_at_coverage(self.y, self.z, self.score, coverage=coverage)

    def measures(self) -> dict[str, float]:
        """What needs no threshold."""
        return {
            "accuracy": float(np.mean(self.y == self.z)),
            "aurc": metrics.aurc(self.y, self.z, self.score),
            "safest_half": self.at(0.5),
        }


def logistic(data: LabelMe, labels: NDArray[Any]) -> Judged:
    """Scikit-learn's own settings on features scaled as `demur fit` does."""
    scale = MinMaxScaler().fit(data.train[0])
    model = LogisticRegression(max_iter=10_000).fit(scale.transform(data.train[0]), labels)
    proba = model.predict_proba(scale.transform(data.test[0]))
    return Judged(data.test[1], model.classes_[proba.argmax(axis=1)], proba.max(axis=1))


def baselines(data: LabelMe) -> dict[str, tuple[NDArray[Any], Judged]]:
    names = np.asarray([f"scene {k}" for k in range(data.l)])
    found = {}
    reliable = label_probabilities(data.items, data.workers, data.given, data.n, data.l)
    known = {"majority": data.votes, "dawid-skene": data.posterior, "reliable": reliable}
    for name, scores in known.items():
        labels = names[scores.argmax(axis=1)]
        found[name] = labels, logistic(data, labels)
    return found


def measure(
    folder: Path, data: LabelMe, name: str, rule: str, seed: int, others: dict[str, Any]
) -> dict[str, Any]:
    """Fit and predict by files, and what came of it."""
    wanted = files.Wanted(answers=folder / "answers.csv", rule=rule, id_column="image")
    start = time.perf_counter()
    fitted = files.fit(
        folder / "train.parquet", folder / "model.demur",
        wanted=wanted, features="f1:f512", method_name=name, seed=seed,
    )  # fmt: skip
    files.predict(folder / "model.demur", folder / "test.parquet", folder / "out.parquet")
    spent = time.perf_counter() - start
    out = pq.read_table(folder / "out.parquet")
    z, score = np.asarray(out["label"]).astype(str), np.asarray(out["accept_score"])
    judged = Judged(data.test[1], z, score)
    accepted = np.asarray(out["accepted"])
    right = z == data.test[1]
    held = fitted.model.sets.contains(data.train[1])
    coverage = float(accepted.mean())
    return {
        "method": name, "rule": rule, "seed": seed,
        "truth_missed": 1.0 - float(held.mean()), "mean_size": fitted.model.summary["mean_size"],
        "coverage": coverage,
        "accepted_accuracy": float(right[accepted].mean()) if accepted.any() else float("nan"),
        "majority_there": others["majority"][1].at(coverage),
        "dawid_skene_there": others["dawid-skene"][1].at(coverage),
        "seconds": spent, **judged.measures(),
    }  # fmt: skip


# ------------------------------------------------------------------------- order of rejected


def measure_order(folder: Path, data: LabelMe, answers: int = 100) -> None:
    """Coverage and accuracy once people answered some rejected rows: the first, or any."""
    wanted = files.Wanted(answers=folder / "answers.csv", id_column="image")
    files.fit(folder / "train.parquet", folder / "model.demur", wanted=wanted, features="f1:f512")
    files.predict(
        folder / "model.demur", folder / "valid.parquet", folder / "out.parquet",
        rejected=folder / "rejected.parquet",
    )  # fmt: skip
    table = pq.read_table(folder / "rejected.parquet")
    n = len(table)
    orders = {"nobody answers": np.zeros(0, int), "the first": np.arange(n)[:answers]}
    orders["the last"] = np.arange(n)[-answers:]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        orders[f"any, {seed}"] = rng.permutation(n)[:answers]
    wrong = np.asarray(table["demur_label"]) != np.asarray(table["label"])
    for name, rows in orders.items():
        if len(rows):
            pq.write_table(table.take(pa.array(rows)), folder / "answered.parquet")
            files.update(
                folder / "model.demur", folder / "answered.parquet",
                answer="label", output=folder / "new.demur",
            )  # fmt: skip
        found = files.evaluate(
            folder / ("new.demur" if len(rows) else "model.demur"), folder / "test.parquet", "label"
        )
        common.report(
            answered=name, of=n, rows=len(rows), wrong=int(wrong[rows].sum()),
            accuracy=found.accuracy, coverage=found.coverage,
            accepted_accuracy=found.accepted_accuracy, aurc=found.aurc,
        )  # fmt: skip


# ---------------------------------------------------------------------------------- main


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--rules", nargs="*", default=list(RULES))
    parser.add_argument("--seeds", type=int, default=3, help="for methods that use chance")
    parser.add_argument("--order", action="store_true", help="only: which rejected rows to answer")
    parser.add_argument("--check", action="store_true", help="only: crowd-kit against our lines")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="only: the tables")
    parser.add_argument("-o", "--output", type=Path, default=Path("results/labelme.csv"))
    asked = parser.parse_args()
    data = LabelMe()
    if asked.check:
        ours = own_dawid_skene(data, 100)
        same = ours.argmax(axis=1) == data.posterior.argmax(axis=1)
        gap = np.abs(ours - data.posterior).max(axis=1)
        common.report(same_label=float(same.mean()), mean_gap=float(gap.mean()))
        return
    if asked.write:
        asked.write.mkdir(parents=True, exist_ok=True)
        data.write(asked.write)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data.write(folder)
        if asked.order:
            measure_order(folder, data)
            return
        measure_all(folder, data, asked)


def measure_all(folder: Path, data: LabelMe, asked: argparse.Namespace) -> None:
    known: set[tuple[str, str, int]] = set()
    if asked.output.exists():
        with asked.output.open(newline="") as file:
            known = {(r["method"], r["rule"], int(r["seed"])) for r in csv.DictReader(file)}
    with asked.output.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not known:
            writer.writeheader()

        def keep(row: dict[str, Any]) -> None:
            if (row["method"], row["rule"], row["seed"]) not in known:
                writer.writerow(
                    {k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()}
                )
                file.flush()
                common.report(**row)

        others = baselines(data)
        for rule, (labels, judged) in others.items():
            missed = float(np.mean(labels != data.train[1]))
            keep({"method": "logistic regression", "rule": rule, "seed": 0, "mean_size": 1.0,
                  "truth_missed": missed, **judged.measures()})  # fmt: skip
        for one in asked.methods:
            by_chance = "random_state" in method(one)().get_params()
            for rule in asked.rules:
                for seed in range(asked.seeds if by_chance else 1):
                    if (one, rule, seed) not in known:
                        keep(measure(folder, data, one, rule, seed, others))


if __name__ == "__main__":
    main()

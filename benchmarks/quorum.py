"""What Quorum costs: a fit beside one of PRODEN's, and the time of a prediction.

python benchmarks/quorum.py
python benchmarks/quorum.py --images            # instead: how well it does on 3,000 small images
python benchmarks/quorum.py --without-networks  # instead: beside DST-PLL; after dial_data.py
python benchmarks/quorum.py --beside-the-ten    # instead: results/quorum beside results/tabular

Both sides of the ratio are timed in turn, with all their epochs (Quorum's 100, PRODEN's 200).
"""

from __future__ import annotations

import argparse
import csv
import time
from functools import partial
from pathlib import Path

from common import candidates, clouds, ratio, report, rounds  # first, since it sets threads up

import numpy as np

from demur import DstPll, Proden, Quorum, metrics
from demur.datasets import load
from demur.noise import class_dependent_noise
from dial_data import splits


COSTS = (0.05, 0.1, 0.2, 0.4)  # of a reject, λ


def judge_images(n_train: int = 3_000, n_test: int = 2_000) -> None:
    """KMNIST's test images, class-dependent noise, one seed; neighbours see pixels."""
    data = load("kmnist-test")
    rows = np.random.default_rng(0).permutation(len(data.y))[: n_train + n_test]
    X, y = data.X[rows].reshape(-1, 28, 28) / data.X.max(), data.y[rows]
    S = class_dependent_noise(y[:n_train], random_state=0)
    for model in (DstPll(n_neighbors=20, random_state=0), Proden(random_state=0, device="cpu"),
                  Quorum(random_state=0, device="cpu")):  # fmt: skip
        images = X.reshape(len(X), -1) if isinstance(model, DstPll) else X
        start = time.perf_counter()
        model.fit(images[:n_train], S)
        seconds = time.perf_counter() - start
        z, scores = model.predict(images[n_train:]), model.accept_score(images[n_train:])
        report(
            measure="images", method=type(model).__name__, seconds=seconds,
            accuracy=float(np.mean(z == y[n_train:])),
            aurc=metrics.aurc(y[n_train:], z, scores),
            pool_weights=getattr(model, "pool_weights_", np.zeros(0)).round(2).tolist(),
        )  # fmt: skip


def judge_without_networks() -> None:
    """Accuracy and AURC of both on the 46 splits of seeds 0 and 1, and who ranks better."""
    found: dict[str, list[tuple[float, float]]] = {"dst-pll": [], "quorum-without-networks": []}
    for one in splits(tuple(found), seeds=2):
        z, y, scores = one.test.top, one.y_test, one.test.accept
        found[one.method].append((float(np.mean(z == y)), metrics.aurc(y, z, scores)))
    ours, theirs = (np.array(found[name]) for name in ("quorum-without-networks", "dst-pll"))
    for name, some in found.items():
        accuracy, aurc = np.mean(some, axis=0)
        report(method=name, splits=len(some), accuracy=float(accuracy), aurc=float(aurc))
    report(splits_with_lower_aurc=int((ours[:, 1] < theirs[:, 1]).sum()))


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def stand_beside_the_ten(ten: Path, own: Path) -> None:
    """Means over the settings, and what the tables of risks and equal rejects say of all eleven."""
    settings: dict[tuple[str, ...], dict[str, tuple[float, float]]] = {}
    for row in [*read_rows(ten / "summary.csv"), *read_rows(own / "summary.csv")]:
        setting = settings.setdefault((row["dataset"], row["noise"]), {})
        setting[row["method"]] = float(row["accuracy"]), float(row["aurc"])
    names = list(next(iter(settings.values())))
    ranking = [min(found, key=lambda name: found[name][1]) for found in settings.values()]
    tables = {
        file: {(r["column"], r["method"]): float(r["mean"])
               for folder in (ten, own) for r in read_rows(folder / f"{file}.csv")}
        for file in ("table-2-risk-as-published", "table-2-risk-as-defined", "table-3-same-rejects")
    }  # fmt: skip
    for name in names:
        accuracy, aurc = np.mean([found[name] for found in settings.values()], axis=0)
        told = {"accuracy": 100 * float(accuracy), "aurc": float(aurc)}
        told["lowest_aurc"] = ranking.count(name)
        for file, cells in tables.items():
            own = {c: mean for (c, method), mean in cells.items() if method == name}
            if "risk" in file:  # thresholds are the same for every λ, so the risk is linear in it
                slope = (own["λ = 0.20"] - own["λ = 0.00"]) / 0.2
                told |= {f"{file[13:]} {x}": own["λ = 0.00"] + x * slope for x in COSTS}
            else:
                told["same_rejects"] = own["accuracy of the accepted"]
        report(method=name, settings=len(settings), **told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100, help="of Quorum; PRODEN has twice them")
    parser.add_argument("--images", action="store_true")
    parser.add_argument("--without-networks", action="store_true")
    parser.add_argument("--beside-the-ten", action="store_true")
    args = parser.parse_args()
    if args.images:
        judge_images()
        return
    if args.beside_the_ten:
        stand_beside_the_ten(Path("results/tabular"), Path("results/quorum"))
        return
    if args.without_networks:
        judge_without_networks()
        return
    for n, d, l in ((1_600, 76, 10), (6_000, 51, 6), (8_800, 16, 10)):
        X, y, new = clouds(n, d, l, 10_000)
        S = candidates(y, l, 0.3)
        quorum = Quorum(n_epochs=args.epochs, random_state=0, device="cpu")
        proden = Proden(n_epochs=2 * args.epochs, random_state=0, device="cpu")
        times = rounds(partial(quorum.fit, X, S), partial(proden.fit, X, S), repeats=args.repeats)
        found = ratio(1, 0, times)
        report(measure="fit against PRODEN", n=n, d=d, l=l, **found)
    X, y, new = clouds(10_000, 50, 10, 10_000)
    quorum.fit(X, candidates(y, 10, 0.3))
    times = rounds(partial(quorum.predict, new), repeats=args.repeats)
    report(measure="predict", n=10_000, rows=10_000, d=50, seconds=float(times.min()))


if __name__ == "__main__":
    main()

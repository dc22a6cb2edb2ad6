"""What the dials keep of what they promise, on the protocol's settings.

python benchmarks/dial.py coverage cost certificate --out results/dial

The judgements come from `dial_data.py` (and `bank.py` for PRODEN), which keep them in the folder
DEMUR_BANK. ``certificate`` writes the stress test too. A table holds a row for each method and
setting; what is printed are the means over settings.

- coverage: half of the test part is the fresh batch, the other half is what is decided on; the
  mean of 20 such halvings. Compared with thresholds by the training part, out of fold and in
  sample. Scores that equal the threshold count with the chance by which they are drawn.
- cost: error + cost x rejected on the test part, over that of the threshold which is the best
  there; mean over costs 0.05 to 0.5. Gold are training rows drawn at random, 10 times.
- certificate: the test part is the population: gold is drawn from it with replacement, so that
  the true risk of a threshold is known exactly. The plan is made from the training part.
- stress: the same plans and scores, but each prediction is wrong with max_risk + 0.001.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.reject.certificate import most_errors
from demur.reject.coverage import cut_for_coverage
from demur.reject.planning import Plan, make_plan
from demur.reject.risk_estimate import error_estimates, recalibrate, threshold_for_cost
from dial_data import METHODS, Known, splits

Row = dict[str, Any]
Floats = NDArray[np.float64]

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
HALVINGS = 20
COSTS = np.arange(1, 11) * 0.05
GOLD_DRAWS = 10
RISKS = (0.05, 0.10)
N_GOLD = (60, 100, 200, 300)
REPETITIONS = 200
CERTIFIED_SEEDS = 2  # 23 settings, two splits each
ABOVE = 1e-3  # the bound, in the stress test


# ------------------------------------------------------------------------------- coverage


def coverage(one: Known) -> Iterator[Row]:
    """Signed and absolute error of the coverage, by where the threshold comes from."""
    rng = np.random.default_rng(one.seed)
    scores = one.test.accept
    errors: dict[str, list[float]] = defaultdict(list)
    for wanted in COVERAGES:
        for source, known in (("out of fold", one.held_out.accept), ("in sample", one.in_sample)):
            errors[source].append(_share(scores, known, wanted) - wanted)
        halves = []
        for _ in range(HALVINGS):
            order = rng.permutation(len(scores))
            batch, rest = scores[order[::2]], scores[order[1::2]]
            halves.append(_share(rest, batch, wanted) - wanted)
        errors["fresh batch"].append(float(np.mean(halves)))
    for source, found in errors.items():
        yield {"source": source, "error": np.mean(found), "absolute": np.mean(np.abs(found))}


def _share(scores: Floats, known: Floats, wanted: float) -> float:
    cut = cut_for_coverage(known, wanted)
    over, tied = np.mean(scores > cut.threshold), np.mean(scores == cut.threshold)
    return float(over + cut.tied_share * tied)


# ----------------------------------------------------------------------------------- cost


def cost(one: Known) -> Iterator[Row]:
    """Mean regret x 1,000, by what the threshold is chosen with."""
    rng = np.random.default_rng(one.seed)
    wrong = one.test.top != one.y_test
    known, missed = one.held_out.accept, one.held_out.top != one.y_train
    errors = wrong.astype(np.float64)
    best = [threshold_for_cost(one.test.accept, errors, float(c)) for c in COSTS]
    least = _loss(one.test.accept, wrong, best)

    def regret(thresholds: Sequence[float]) -> float:
        return 1000 * (_loss(one.test.accept, wrong, thresholds) - least)

    def by(estimates: Floats) -> float:
        return regret([threshold_for_cost(known, estimates, float(c)) for c in COSTS])

    own = [one.threshold] * len(COSTS)
    yield {"by": "the method's own threshold", "regret": regret(own)}
    plain = error_estimates(one.held_out)
    yield {"by": "candidates", "regret": by(plain)}
    with_gold = []
    n = min(100, len(known))
    for _ in range(GOLD_DRAWS):
        rows = rng.choice(len(known), n, replace=False)
        with_gold.append(by(recalibrate(plain, rows, missed[rows])))
    yield {"by": "candidates and 100 gold", "regret": float(np.mean(with_gold))}
    yield {"by": "all true labels", "regret": by(missed.astype(np.float64))}


def _loss(scores: Floats, wrong: NDArray[np.bool_], thresholds: Sequence[float]) -> float:
    """Mean over the costs of error + cost x rejected, each with its threshold."""
    losses = []
    for threshold, price in zip(thresholds, COSTS, strict=True):
        accepted = scores > threshold
        losses.append(np.mean(accepted & wrong) + price * np.mean(~accepted))
    return float(np.mean(losses))


# ---------------------------------------------------------------------------- certificate


def certificate(one: Known) -> Iterator[Row]:
    """Violations, coverage and failures over repeated draws of the gold; and the stress test."""
    if one.seed >= CERTIFIED_SEEDS:
        return
    wrong = one.test.top != one.y_test
    estimates = error_estimates(one.held_out)
    for max_risk in RISKS:
        for n_gold in N_GOLD:
            plan = make_plan(
                one.held_out.accept, estimates, max_risk=max_risk, n_gold=n_gold,
                batch=one.test.accept, seed=one.seed,
            )  # fmt: skip
            rng = np.random.default_rng([one.seed, n_gold])
            passed, shares, risks = _repeat(plan, one.test.accept, wrong, rng)
            violated = (passed > 0) & (risks[passed] > max_risk)
            stressed = _stress(plan, one.test.accept, rng)
            yield {
                "max_risk": max_risk,
                "n_gold": n_gold,
                "violations": violated.mean(),
                "coverage": shares[passed].mean(),
                "nothing passed": np.mean(passed == 0),
                "expected coverage": plan.expected_coverage,
                "stress: accepted": stressed,
            }


def _places(plan: Plan, scores: Floats) -> NDArray[np.intp]:
    """The first threshold that each score of the region passes; one too many outside it."""
    return np.searchsorted(-plan.thresholds, -scores, side="right")


def _repeat(
    plan: Plan, scores: Floats, wrong: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[NDArray[np.intp], Floats, Floats]:
    """How many tests pass in each repetition; coverage and true risk after so many."""
    k = len(plan.thresholds)
    place = _places(plan, scores)
    right_of, wrong_of = (np.bincount(place[w], minlength=k + 1)[:k] for w in (~wrong, wrong))
    inside = np.concatenate([right_of, wrong_of]) / (right_of + wrong_of).sum()
    drawn = rng.multinomial(plan.n_gold, inside, size=REPETITIONS)
    accepted = (drawn[:, :k] + drawn[:, k:]).cumsum(axis=1)
    passed = _passed(plan, accepted, drawn[:, k:].cumsum(axis=1))
    total = (right_of + wrong_of).cumsum()
    shares = np.concatenate([[0.0], total / len(scores)])
    risks = np.concatenate([[0.0], wrong_of.cumsum() / np.maximum(total, 1)])
    return passed, shares, risks


def _stress(plan: Plan, scores: Floats, rng: np.random.Generator) -> float:
    """Share of repetitions in which something passes though nothing may."""
    k = len(plan.thresholds)
    counts = np.bincount(_places(plan, scores), minlength=k + 1)[:k]
    drawn = rng.multinomial(plan.n_gold, counts / counts.sum(), size=REPETITIONS)
    errors = rng.binomial(drawn, plan.max_risk + ABOVE)
    return float(np.mean(_passed(plan, drawn.cumsum(axis=1), errors.cumsum(axis=1)) > 0))


def _passed(plan: Plan, accepted: NDArray[np.intp], errors: NDArray[np.intp]) -> NDArray[np.intp]:
    most = most_errors(np.arange(plan.n_gold + 1), plan.max_risk, 1 - plan.confidence)
    passes = errors <= most[accepted]
    return np.where(passes.all(axis=1), passes.shape[1], passes.argmin(axis=1))


# --------------------------------------------------------------------------------- tables

MEASURES = {"coverage": coverage, "cost": cost, "certificate": certificate}
NUMBERS = {
    "coverage": ("error", "absolute"),
    "cost": ("regret",),
    "certificate": (
        "violations", "coverage", "nothing passed", "expected coverage", "stress: accepted",
    ),
}  # fmt: skip


def table(name: str, known: Iterator[Known]) -> list[Row]:
    """A row for each method and setting, the mean over its splits."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    numbers = NUMBERS[name]
    for one in known:
        for row in MEASURES[name](one):
            key = {k: v for k, v in row.items() if k not in numbers}
            setting = {"method": one.method, "dataset": one.dataset, "noise": one.noise}
            found[tuple({**setting, **key}.items())].append(row)
    return [
        {**dict(key), "splits": len(rows), **{n: np.mean([r[n] for r in rows]) for n in numbers}}
        for key, rows in found.items()
    ]


def write(rows: list[Row], path: Path) -> None:
    """Write a table; rows of methods that were not measured now stay as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    measured = {row["method"] for row in rows}
    kept: list[Row] = []
    if path.exists():
        with path.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["method"] not in measured]
    told = [{k: f"{v:.4f}" if isinstance(v, float) else v for k, v in r.items()} for r in rows]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(kept + told, key=lambda row: METHODS.index(row["method"])))


def summarise(name: str, rows: list[Row]) -> None:
    """Means over the settings, for people."""
    numbers = NUMBERS[name]
    left = ("dataset", "noise", "splits", *numbers)
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(v for k, v in row.items() if k not in left)].append(row)
    print(f"\n{name}: settings, splits, " + ", ".join(numbers))
    for key, some in groups.items():
        means = [f"{np.mean([r[n] for r in some]):.4f}" for n in numbers]
        worst = [f"{np.max(np.abs([r[n] for r in some])):.4f}" for n in numbers]
        print(*key, "|", len(some), sum(r["splits"] for r in some), "|", *means, "| worst", *worst)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", choices=list(MEASURES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--out", type=Path, default=Path("results/dial"))
    args = parser.parse_args()
    for name in args.tables:
        seeds = CERTIFIED_SEEDS if name == "certificate" else 5
        rows = table(name, splits(args.methods, seeds))
        write(rows, args.out / f"{name}.csv")
        summarise(name, rows)


if __name__ == "__main__":
    main()

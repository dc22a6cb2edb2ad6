"""The dials at the command line: `demur plan`, and `demur predict` with a dial."""

import csv
import json

import matplotlib as mpl
import numpy as np
import pytest
from typer.testing import CliRunner

from demur.cli import app
from demur.files import Dial, UsageError
from demur.files.model_file import load, save
from demur.reject import least_gold
from demur.reject.coverage import cut_for_coverage

LABELS = ("ant", "bee", "cat")


def demur(*arguments):
    mpl.use("Agg")
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "100"})


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Three clouds: train.csv with candidates, new.csv without, and a model."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=900)
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 6.0]])[y] + rng.normal(size=(900, 2))
    S = rng.random((900, 3)) < 0.3
    S[np.arange(900), y] = True
    folder = tmp_path_factory.mktemp("clouds")
    rows = [
        {
            "id": f"r{i}",
            "f1": X[i, 0],
            "f2": X[i, 1],
            "site": f"s{i // 2}",
            "labels": "|".join(LABELS[j] for j in np.flatnonzero(S[i])),
            "truth": LABELS[y[i]],
        }
        for i in range(900)
    ]
    write(folder / "train.csv", rows[:300])
    write(
        folder / "new.csv", [{k: row[k] for k in ("id", "f1", "f2", "site")} for row in rows[300:]]
    )
    result = demur(
        "fit", folder / "train.csv", "--features", "f1,f2", "--candidates", "labels", "--id", "id",
        "--method", "pl-knn", "-o", folder / "model.demur",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return folder, {row["id"]: row["truth"] for row in rows}


@pytest.fixture
def place(fitted, tmp_path):
    """A folder of its own for each test, since a plan is kept beside the model."""
    folder, truth = fitted
    for name in ("train.csv", "new.csv", "model.demur"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return tmp_path, truth


def planned(folder, *more, risk=0.1, n=100):
    return demur(
        "plan", folder / "model.demur", folder / "new.csv", "--max-risk", risk, "--n-gold", n,
        "-o", folder / "verify.csv", *more,
    )  # fmt: skip


def verified(folder, truth, wrong=0, name="gold.csv"):
    rows = rows_of(folder / "verify.csv")
    for i, row in enumerate(rows):
        label = truth[row["id"]]
        row["demur_answer"] = LABELS[(LABELS.index(label) + (i < wrong)) % 3]
    write(folder / name, rows)
    return folder / name


def predict(folder, *more):
    return demur(
        "predict", folder / "model.demur", folder / "new.csv", "-o", folder / "d.csv", *more
    )


def test_plan_writes_rows_without_answers_and_says_what_to_expect(place):
    folder, truth = place
    result = planned(folder)
    assert result.exit_code == 0
    rows, new = rows_of(folder / "verify.csv"), {row["id"] for row in rows_of(folder / "new.csv")}
    assert len({row["id"] for row in rows} & new) == len(rows) == 100
    assert list(rows[0]) == ["id", "f1", "f2", "site", "demur_answer"]
    assert not any(row["demur_answer"] for row in rows)
    for words in ("verify             100 labels", "at least 29, 46 or 61", "expect"):
        assert words in result.output
    kept = json.loads((folder / "model.demur.plan.json").read_text())
    assert len(kept["plan"]["prints"]) == 100
    assert kept["tested"] is None
    again = rows_of(folder / "verify.csv")
    planned(folder)
    assert rows_of(folder / "verify.csv") == again
    planned(folder, "--seed", 1)
    assert rows_of(folder / "verify.csv") != again
    assert truth


def test_certificate_from_plan_to_decisions(place):
    folder, truth = place
    planned(folder)
    result = predict(folder, "--max-risk", 0.1, "--gold", verified(folder, truth))
    assert result.exit_code == 0
    assert "with 95.0% confidence the error among accepted predictions is at most 10.0%" in (
        result.output
    )
    rows = rows_of(folder / "d.csv")
    accepted = [row for row in rows if row["accepted"] == "true"]
    errors = [row for row in accepted if row["label"] != truth[row["id"]]]
    assert len(accepted) > 300
    assert len(errors) / len(accepted) < 0.1
    assert {row["dial"] for row in rows} == {
        "with 95.0% confidence the error among accepted predictions is at most 10.0%"
    }
    # What was certified stays, with the same gold and without.
    first = (folder / "d.csv").read_bytes()
    for more in ((), ("--gold", folder / "gold.csv")):
        assert predict(folder, "--max-risk", 0.1, *more).exit_code == 0
        assert (folder / "d.csv").read_bytes() == first


def test_nothing_passes_and_nothing_is_tested_again(place):
    folder, truth = place
    planned(folder)
    gold = verified(folder, truth, wrong=60)
    result = predict(folder, "--max-risk", 0.1, "--gold", gold)
    assert result.exit_code == 0
    assert "nothing passed" in result.output
    assert "0 (0.0%) accepted (whatever the accept score)" in result.output
    assert {row["accepted"] for row in rows_of(folder / "d.csv")} == {"false"}
    other = verified(folder, truth, name="other.csv")
    for result in (predict(folder, "--max-risk", 0.1, "--gold", other), planned(folder)):
        assert result.exit_code == 2
        assert "tested" in result.output
        assert "would make the certificate worthless" in result.output
        assert len(result.output.strip().splitlines()) == 1
    jsonl = demur(
        "predict", folder / "model.demur", folder / "new.csv", "-o", folder / "d.jsonl",
        "--max-risk", 0.1,
    )  # fmt: skip
    assert jsonl.exit_code == 0
    assert not json.loads((folder / "d.jsonl").read_text().splitlines()[0])["accepted"]
    assert "Infinity" not in (folder / "d.jsonl").read_text()


def test_another_model_needs_another_plan(place):
    folder, truth = place
    planned(folder)
    gold = verified(folder, truth)
    model = load(folder / "model.demur")
    model.summary["table"] = "another"
    save(model, folder / "model.demur")
    result = predict(folder, "--max-risk", 0.1, "--gold", gold)
    assert result.exit_code == 1
    assert "has changed since" in result.output
    assert planned(folder).exit_code == 0


def test_groups_in_the_plan(place):
    folder, truth = place
    told = planned(folder, "--group", "site").output
    assert "holds if no site of these rows was trained on, which the model cannot check" in told
    sites = [row["site"] for row in rows_of(folder / "verify.csv")]
    assert len(set(sites)) == 100
    gold = verified(folder, truth)
    assert predict(folder, "--max-risk", 0.1, "--gold", gold).exit_code == 0


def test_coverage_takes_the_surest_of_the_table(place):
    folder, _ = place
    result = predict(folder, "--coverage", 0.7)
    assert result.exit_code == 0
    rows = rows_of(folder / "d.csv")
    scores = np.array([float(row["accept_score"]) for row in rows])
    cut = cut_for_coverage(scores, 0.7, ties="whole")
    assert [row["accepted"] == "true" for row in rows] == (scores > cut.threshold).tolist()
    assert f"accepts {(scores > cut.threshold).mean():.1%} of this table" in result.output
    assert ("warning: " in result.output) == (cut.step > 0.01)


def test_cost_by_candidates_and_with_gold(place):
    folder, truth = place
    shares = []
    for cost in (0.02, 0.3):
        result = predict(folder, "--cost", cost)
        assert result.exit_code == 0
        assert "nothing is guaranteed" in result.output
        assert "estimates by candidate sets alone" in result.output
        shares.append(np.mean([row["accepted"] == "true" for row in rows_of(folder / "d.csv")]))
    assert shares[0] < shares[1]
    known = [{**row, "truth": truth[row["id"]]} for row in rows_of(folder / "train.csv")[::3]]
    write(folder / "known.csv", known)
    result = predict(folder, "--cost", 0.1, "--gold", folder / "known.csv", "--answer", "truth")
    assert result.exit_code == 0
    assert "corrected by 100 gold labels" in result.output
    write(folder / "few.csv", known[:49])
    few = predict(folder, "--cost", 0.1, "--gold", folder / "few.csv", "--answer", "truth")
    assert (few.exit_code, "49 gold labels are too few" in few.output) == (1, True)
    for row in known:
        row["id"] += "x"
    write(folder / "strange.csv", known)
    bad = predict(folder, "--cost", 0.1, "--gold", folder / "strange.csv", "--answer", "truth")
    assert (bad.exit_code, "such as id 'r0x' are no training rows" in bad.output) == (1, True)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--coverage", 2], "--coverage must be over 0 and at most 1; got 2.0."),
        (["--cost", 0], "--cost must be between 0 and 1, both excluded; got 0.0."),
        (["--max-risk", 1], "--max-risk must be between 0 and 1, both excluded; got 1.0."),
        (["--coverage", 0.5, "--cost", 0.1], "turn one dial only; --coverage and --cost are given"),
        (["--coverage", 0.5, "--threshold", 0.1], "give it or another, not both"),
        (["--gold", "gold.csv"], "--gold goes with --max-risk or --cost"),
        (["--coverage", 0.5, "--gold", "gold.csv"], "--gold goes with --max-risk or --cost"),
        (["--cost", 0.5, "--answer", "truth"], "--answer names the column of labels in --gold"),
        (["--max-risk", 0.1], "nothing is planned yet: demur plan"),
    ],
)
def test_wrong_usage_of_predict(place, more, message):
    result = predict(place[0], *more)
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not (place[0] / "d.csv").exists()


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--n-gold", 28], 2, "--n-gold 28 is too few: an error of at most 0.1 with 0.95"),
        (["--max-risk", 0], 2, "--max-risk must be between 0 and 1, both excluded; got 0.0."),
        (["--confidence", 1], 2, "--confidence must be between 0 and 1, both excluded; got 1.0."),
        (["-o", "-"], 2, "give a file that ends in .csv or .parquet"),
        (["-o", "verify.jsonl"], 2, "give a file that ends in .csv or .parquet"),
        (["--group", "town"], 1, "lacks the column 'town'"),
        (["--n-gold", 601], 1, "this batch has only 600 rows to draw from"),
    ],
)
def test_wrong_usage_of_plan(place, more, code, message):
    result = planned(place[0], *more)
    assert result.exit_code == code
    assert message in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not (place[0] / "model.demur.plan.json").exists()


def test_training_rows_are_refused(place):
    folder, _ = place
    result = demur(
        "plan", folder / "model.demur", folder / "train.csv", "--max-risk", 0.1,
        "-o", folder / "verify.csv",
    )  # fmt: skip
    assert result.exit_code == 1
    assert "was used in fit" in result.output


def test_bad_gold(place):
    folder, truth = place
    planned(folder)
    gold = verified(folder, truth)
    good = rows_of(gold)

    def told(rows, risk=0.1):
        write(gold, rows)
        return predict(folder, "--max-risk", risk, "--gold", gold)

    dog = told([{**good[0], "demur_answer": "dog"}, *good[1:]])
    assert "the answer 'dog' is no label of the model" in dog.output
    two = told([{**good[0], "demur_answer": "ant|bee"}, *good[1:]])
    assert "gold is one true label a row, but here are 2" in two.output
    none = told([{**row, "demur_answer": ""} for row in good])
    assert "holds no labels" in none.output
    few = told(good[:28])
    assert "28 gold labels are too few" in few.output
    new = {row["id"]: row for row in rows_of(folder / "new.csv")}
    drawn = {row["id"] for row in good}
    others = [{**row, "demur_answer": truth[i]} for i, row in new.items() if i not in drawn]
    chosen = told(others[:100])
    assert "is not among the 100 that the plan drew" in chosen.output
    twice = told([*good, good[0]])
    assert "ids must differ" in twice.output
    for result in (dog, two, none, few, chosen, twice):
        assert result.exit_code == 1
        assert len(result.output.strip().splitlines()) == 1
    other = told(good, risk=0.2)
    assert (other.exit_code, "is a plan for --max-risk 0.1, not 0.2" in other.output) == (2, True)
    # None of these was a test.
    part = told([{**row, "demur_answer": ""} if i < 9 else row for i, row in enumerate(good)])
    assert part.exit_code == 0
    assert "warning: 100 rows were to be verified, but 91 are given" in part.output


def test_a_damaged_plan_is_refused(place):
    folder, truth = place
    planned(folder)
    gold = verified(folder, truth)
    for text in ("{", '{"format": "other"}', "[]", '{"format": "demur-plan"}'):
        (folder / "model.demur.plan.json").write_text(text)
        result = predict(folder, "--max-risk", 0.1, "--gold", gold)
        assert result.exit_code == 1
        assert "is no plan, or is damaged" in result.output


def test_one_dial_in_the_library_too():
    with pytest.raises(UsageError, match="turn one dial only"):
        Dial(coverage=0.5, max_risk=0.1)
    assert not Dial().turned
    assert least_gold(0.1) == 29

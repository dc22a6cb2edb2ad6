"""A dial on the runs of a benchmark: what it is set by, what is kept, and what is refused."""

import hashlib

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from demur import DstPll, PlKnn, RejectClassifier
from demur.bench.costs import rough_seconds, trains_networks
from demur.bench.dialing import LARGEST, check_dial, finite, n_trainings, parse_dial, set_aside
from demur.bench.grid import expand, read_preset
from demur.bench.prepare import prepare
from demur.bench.run import run_grid
from demur.bench.spec import Spec
from demur.bench.store import read_results, read_run
from demur.bench.work import Place, run_task
from demur.methods import METHODS
from demur.reject.coverage import cut_for_coverage

UNIFORM = {"n_noise": 1, "share": 0.5}
CERTIFICATE = {"max_risk": 0.1, "n_gold": 60}


def spec(dial, method="pl-knn", seed=0, dataset="digits", **more):
    return Spec(dataset, method, "uniform", seed, noise_parameters=UNIFORM, dial=dial, **more)


def done(one):
    (outcome,) = run_task([one], Place())
    assert "error" not in outcome.facts, outcome.facts["traceback"]
    return outcome


# ------------------------------------------------------------------------- what is asked


@pytest.mark.parametrize(
    ("text", "dial"),
    [
        ("coverage=0.8", {"coverage": 0.8}),
        ("coverage=0.8, ties=whole", {"coverage": 0.8, "ties": "whole"}),
        ("cost = 0.1", {"cost": 0.1}),
        ("max_risk=0.05,n_gold=200", {"max_risk": 0.05, "n_gold": 200}),
        ("max_risk=0.1,ambiguity=0.5", {"max_risk": 0.1, "ambiguity": 0.5}),
    ],
)
def test_a_dial_as_it_is_typed(text, dial):
    assert parse_dial(text) == dial


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.8", "'0.8' is no dial; write coverage=0.8"),
        ("coverage=", "is no dial; write coverage=0.8"),
        ("colour=0.8", "a dial has no 'colour'; it has coverage, cost, max_risk"),
        ("n_gold=100", "turn exactly one dial, coverage, cost or max_risk; none is set"),
        ("coverage=0.8,cost=0.1", "turn exactly one dial.*coverage and cost are set"),
        ("coverage=1.5", "coverage must be over 0 and at most 1; got 1.5"),
        ("coverage=much", "coverage must be a number over 0 and at most 1; got 'much'"),
        ("cost=0", "cost must be between 0 and 1, both excluded; got 0"),
        ("cost=0.1,ambiguity=0.5", "ambiguity goes with max_risk, not with cost"),
        ("cost=0.1,confidence=0.9", "confidence does not go with cost"),
        ("coverage=0.8,n_gold=100", "n_gold does not go with coverage"),
        ("coverage=0.8,ties=some", "ties must be 'drawn' or 'whole'; got 'some'"),
        ("max_risk=0.1", "give n_gold or ambiguity, one of them"),
        ("max_risk=0.1,n_gold=100,ambiguity=0.5", "give n_gold or ambiguity, one of them"),
        ("max_risk=0.05,n_gold=58", "n_gold = 58 is too few.*needs 59 gold labels"),
        ("max_risk=0.05,n_gold=many", "n_gold must be a whole number, 1 or more; got 'many'"),
        ("cost=0.1,n_gold=49", "n_gold = 49 is too few to correct a cost by; at least 50"),
    ],
)
def test_slips_in_a_dial_are_told(text, message):
    with pytest.raises(ValueError, match=message):
        parse_dial(text)


def test_a_preset_has_a_dial_and_a_block_another():
    grid = [
        {"datasets": ["iris"], "noise": ["uniform"], "methods": ["pl-knn"]},
        {"datasets": ["wine"], "noise": ["uniform"], "dial": {"cost": 0.1}, "methods": ["pl-knn"]},
    ]
    preset = {"seeds": 1, "dial": {"coverage": 0.8}, "grid": grid}
    assert [s.dial for s in expand(preset)] == [{"coverage": 0.8}, {"cost": 0.1}]
    assert [s.dial for s in expand(preset, dial={"coverage": 0.5})] == [{"coverage": 0.5}] * 2
    preset["dial"] = {"coverage": 8}
    with pytest.raises(ValueError, match=r"the dial of \[\[grid\]\] number 1.*got 8"):
        expand(preset)


def test_runs_without_a_dial_keep_their_names():
    """The names were taken before there were dials."""
    names = "".join(spec.run_id for spec in expand(read_preset("tabular")))
    assert hashlib.sha256(names.encode()).hexdigest()[:16] == "3eee50023a2c08fc"
    without = Spec("iris", "pl-knn", "uniform", 0)
    assert "dial" not in without.as_dict()
    assert without != Spec("iris", "pl-knn", "uniform", 0, dial={"coverage": 0.8})


# ------------------------------------------------------------------------ how it is set


def test_halves_of_the_test_part_are_apart_and_the_same_for_all_methods():
    for dial in ({"coverage": 0.8}, CERTIFICATE):
        aside, judged = set_aside(101, spec(dial))
        assert sorted([*aside, *judged]) == list(range(101))
        assert len(aside) == 51
        again = set_aside(101, spec(dial, method="dst-pll"))
        assert np.array_equal(judged, again[1])
        assert not np.array_equal(judged, set_aside(101, spec(dial, seed=1))[1])
    for dial in ({"cost": 0.1}, {"cost": 0.1, "n_gold": 60}, {"max_risk": 0.1, "ambiguity": 0.5}):
        aside, judged = set_aside(101, spec(dial))
        assert (len(aside), len(judged)) == (0, 101)


def test_coverage_is_set_by_the_half_that_is_not_judged():
    one = spec({"coverage": 0.7})
    outcome = done(one)
    prepared = prepare(one, None, None, "cpu")
    own = PlKnn().fit(prepared.X_train, prepared.sets)
    aside = ~np.isin(prepared.test, outcome.judged.row)
    cut = cut_for_coverage(own.accept_score(prepared.X_test[aside]), 0.7)
    assert outcome.facts["threshold"] == cut.threshold
    scores = own.accept_score(prepared.X_test[~aside])
    accepted = outcome.judged.accept_score > outcome.facts["threshold"]
    clear = scores != cut.threshold
    order = np.argsort(prepared.test[~aside])
    places = np.argsort(outcome.judged.row)
    np.testing.assert_array_equal(
        accepted[places][clear[order]], (scores > cut.threshold)[order][clear[order]]
    )
    assert outcome.facts["n_test"] + outcome.facts["n_aside"] == len(prepared.test)
    assert outcome.facts["promise"]["holds"]
    assert "accepts 70.0%" in outcome.facts["promise"]["statement"]


def test_a_certificate_is_what_the_library_gives_by_hand():
    one = spec(CERTIFICATE, method="dst-pll")
    outcome = done(one)
    prepared = prepare(one, None, None, "cpu")
    by_hand = RejectClassifier(DstPll(random_state=0), max_risk=0.1, random_state=0)
    by_hand.fit(prepared.X_train, prepared.sets, ids=prepared.train)
    aside = np.flatnonzero(~np.isin(prepared.test, outcome.judged.row))
    X, y, ids = prepared.X_test[aside], prepared.y_test[aside], prepared.test[aside]
    plan = by_hand.plan(X, 60, ids=ids)
    by_hand.certify(X[plan.rows], y[plan.rows], ids=ids[plan.rows])
    assert outcome.facts["threshold"] == finite(by_hand.accept_threshold_)
    assert outcome.facts["promise"]["statement"] == by_hand.promise_.statement
    place = {row: i for i, row in enumerate(prepared.test)}
    decided = by_hand.decide(prepared.X_test[[place[row] for row in outcome.judged.row]])
    accepted = outcome.judged.accept_score > outcome.facts["threshold"]
    np.testing.assert_array_equal(accepted, ~decided.mask)
    np.testing.assert_array_equal(outcome.judged.y_pred, decided.data)
    assert accepted.sum() > 0


def test_gold_is_neither_learned_from_nor_judged(monkeypatch):
    verified = []
    certify = RejectClassifier.certify

    def watched(self, X_gold, y_gold, *, ids):
        verified.extend(ids)
        return certify(self, X_gold, y_gold, ids=ids)

    monkeypatch.setattr(RejectClassifier, "certify", watched)
    one = spec(CERTIFICATE)
    outcome = done(one)
    prepared = prepare(one, None, None, "cpu")
    assert len(set(verified)) == 60
    assert not set(verified) & set(outcome.judged.row)
    assert not set(verified) & set(prepared.train)
    assert set(verified) <= set(prepared.test)


def test_a_cost_is_set_by_training_rows_and_corrected_by_verified_ones():
    plain, corrected = (done(spec({"cost": 0.05} | more)) for more in ({}, {"n_gold": 80}))
    prepared = prepare(spec({"cost": 0.05}), None, None, "cpu")
    own = PlKnn().fit(prepared.X_train, prepared.sets)
    by_hand = RejectClassifier(FrozenEstimator(own), cost=0.05, random_state=0)
    by_hand.adopt(RejectClassifier(PlKnn(), cost=0.05).fit(
        prepared.X_train, prepared.sets).out_of_fold_, prepared.X_train)  # fmt: skip
    assert plain.facts["threshold"] == by_hand.accept_threshold_
    assert not plain.facts["promise"]["holds"]
    assert "by candidate sets alone" in plain.facts["promise"]["rests_on"][0]
    assert "corrected by 80 gold labels" in corrected.facts["promise"]["rests_on"][0]
    assert plain.facts["n_test"] == len(prepared.test)


def test_an_ambiguity_is_named_conditional():
    promise = done(spec({"max_risk": 0.1, "ambiguity": 0.5})).facts["promise"]
    assert promise["kind"] == "conditional bound"
    assert "conditional on ambiguity 0.5" in promise["statement"]


def test_where_nothing_passes_everything_is_rejected_and_it_can_be_kept(tmp_path):
    hard = Spec(
        "digits", "pl-knn", "uniform", 0, noise_parameters={"n_noise": 8, "share": 1.0},
        dial={"max_risk": 0.01, "n_gold": 300}, test_size=0.9,
    )  # fmt: skip
    tally = run_grid([hard], tmp_path, jobs=1)
    assert tally.count() == {"ok": 1}
    runs = read_results(tmp_path).runs
    assert runs["threshold"].tolist() == [LARGEST]
    assert "nothing passed" in runs["promise"][0]
    assert '"holds":false' in runs["promise"][0]


def test_too_little_to_draw_gold_from_is_a_recorded_failure(tmp_path):
    tally = run_grid([spec(CERTIFICATE, dataset="iris")], tmp_path, jobs=1)
    ((_, why),) = tally.failures()
    assert "60 rows are to be verified, but this batch has only 15 rows" in why


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_a_dial(method):
    pytest.importorskip("torch")
    network = {"n_epochs": 2, "hidden_layer_sizes": [8]}
    one = spec(CERTIFICATE, method, parameters=network if trains_networks(method) else {})
    outcome = done(one)
    assert outcome.facts["promise"]["kind"] == "certificate"
    assert outcome.facts["device"] == "cpu"


def test_a_dial_is_in_the_files_and_a_folder_without_it_is_another_study(tmp_path):
    one = spec({"coverage": 0.8})
    run_grid([one], tmp_path, jobs=1)
    _, facts = read_run(next((tmp_path / "runs").iterdir()))
    assert facts["spec"]["dial"] == {"coverage": 0.8}
    assert read_results(tmp_path).runs["dial"].tolist() == ['{"coverage":0.8}']
    with pytest.raises(ValueError, match="with dial {'coverage': 0.8} instead of by default"):
        run_grid([spec({})], tmp_path, jobs=1)


def test_folds_are_counted_in_what_a_run_takes():
    times = {
        (m, name): rough_seconds(spec(dial, m)) / rough_seconds(spec({}, m))
        for m in ("pl-knn", "proden")
        for name, dial in (("coverage", {"coverage": 0.8}), ("cost", {"cost": 0.1}))
    }
    assert times["pl-knn", "coverage"] == times["proden", "coverage"] == 1
    assert times["proden", "cost"] == pytest.approx(6)
    assert n_trainings(spec({"cost": 0.1}, "proden")) == 6
    check_dial({"cost": 0.1})

import numpy as np
import pytest

from demur.bench import work
from demur.bench.spec import Spec
from demur.bench.work import Place, failure, run_task, stack_key

UNIFORM = {"n_noise": 1, "share": 0.5}
SMALL = {"n_epochs": 2, "hidden_layer_sizes": [8]}


def spec(method="dst-pll", seed=0, **more):
    return Spec("iris", method, "uniform", seed, noise_parameters=UNIFORM, **more)


def test_a_run_judges_each_test_instance():
    (outcome,) = run_task([spec()], Place())
    judged, facts = outcome.judged, outcome.facts
    assert len(judged.row) == facts["n_test"] == 30
    assert (judged.y_true == judged.y_pred).mean() > 0.8
    assert facts["threshold"] == 0.0
    assert facts["n_train"] == 120
    assert (facts["n_features"], facts["n_classes"], facts["labels"]) == (4, 3, ["0", "1", "2"])
    assert facts["mean_candidates"] == pytest.approx(1.5, abs=0.1)
    assert 0 < facts["seconds_fit"] < 60
    assert facts["peak_mib"] > 10
    assert facts["versions"]["numpy"] == np.__version__
    assert "error" not in facts


def test_accept_score_and_max_proba_are_the_methods_own():
    from demur import DstPll
    from demur.bench.prepare import prepare

    prepared = prepare(spec(), None, None, "cpu")
    model = DstPll(random_state=0).fit(prepared.X_train, prepared.sets)
    (outcome,) = run_task([spec()], Place())
    np.testing.assert_array_equal(outcome.judged.accept_score, model.accept_score(prepared.X_test))
    np.testing.assert_array_equal(outcome.judged.y_pred, model.predict(prepared.X_test))
    largest = model.predict_proba(prepared.X_test).max(axis=1)
    np.testing.assert_array_equal(outcome.judged.max_proba, largest)


def test_a_run_gives_the_same_bits_again_and_another_seed_others():
    first, again, other = (run_task([spec(seed=s)], Place())[0].judged for s in (0, 0, 1))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert first.row.tolist() != other.row.tolist()


def test_what_fails_says_so_and_takes_no_other_down():
    good, bad = spec("pl-knn"), spec("pl-knn", seed=1, parameters={"n_neighbors": 0})
    outcomes = {o.spec: o for o in run_task([good, bad], Place())}
    assert outcomes[good].judged is not None
    assert outcomes[bad].judged is None
    assert outcomes[bad].facts["error"].startswith("ValueError: ")
    assert "n_neighbors" in outcomes[bad].facts["error"]
    assert "Traceback" in outcomes[bad].facts["traceback"]
    assert "retry" not in outcomes[bad].facts


def test_what_the_place_lacks_is_to_be_tried_again(tmp_path):
    run = Spec("ecoli", "dst-pll", "uniform", 0, noise_parameters=UNIFORM)
    (outcome,) = run_task([run], Place(data=str(tmp_path)))
    assert outcome.facts["error"].startswith("FileNotFoundError: ")
    assert outcome.facts["retry"] is True
    assert failure(MemoryError())["error"] == "MemoryError"


def test_scores_that_are_no_numbers_are_a_failure(monkeypatch):
    from demur.methods.pl_knn import PlKnn

    judge = PlKnn.judge
    bad = lambda self, X: judge(self, X)._replace(accept=np.full(len(X), np.nan))  # noqa: E731
    monkeypatch.setattr(PlKnn, "judge", bad)
    (outcome,) = run_task([spec("pl-knn")], Place())
    assert outcome.judged is None
    assert "accept_score is not finite for 30 rows" in outcome.facts["error"]


def test_networks_of_one_dataset_and_method_are_one_stack():
    runs = [spec("proden", s) for s in (0, 1)]
    runs.append(Spec("iris", "proden", "class-dependent", 0))
    assert len({stack_key(run) for run in runs}) == 1
    others = [
        spec("cc"),
        spec("proden", parameters=SMALL),
        spec("proden", encoder={"kind": "vae"}),
        spec("proden", classes="frequent-95"),
        spec("proden", test_size=0.5),
    ]
    assert len({stack_key(run) for run in [*runs, *others]}) == 6
    assert stack_key(spec("ipal")) is None


class TestStacks:
    @pytest.fixture(autouse=True)
    def _needs_torch(self):
        pytest.importorskip("torch")

    def runs(self):
        return [spec("proden", seed, parameters=SMALL) for seed in range(3)]

    def test_company_changes_nothing_but_rounding(self):
        together = run_task(self.runs(), Place(device="cpu"))
        assert [o.facts["stack"] for o in together] == [3, 3, 3]
        for outcome in together:
            (alone,) = run_task([outcome.spec], Place(device="cpu"))
            assert alone.facts["stack"] == 1
            np.testing.assert_array_equal(alone.judged.row, outcome.judged.row)
            np.testing.assert_allclose(alone.judged.max_proba, outcome.judged.max_proba, atol=1e-5)

    def test_seconds_are_shared(self):
        together = run_task(self.runs(), Place(device="cpu"))
        assert len({o.facts["seconds_fit"] for o in together}) == 1

    def test_a_stack_that_fails_is_fitted_one_by_one(self, monkeypatch):
        def no(*_):
            raise RuntimeError("no stack")

        monkeypatch.setattr(work, "fit_stack", no)
        outcomes = run_task(self.runs(), Place(device="cpu"))
        assert all(o.judged is not None for o in outcomes)
        assert {o.facts["stack"] for o in outcomes} == {1}

    def test_only_those_to_blame_fail(self):
        bad = spec("proden", 3, parameters=SMALL | {"n_epochs": 0})
        outcomes = {o.spec: o for o in run_task([*self.runs(), bad], Place(device="cpu"))}
        assert outcomes[bad].judged is None
        assert "n_epochs" in outcomes[bad].facts["error"]
        assert sum(o.judged is not None for o in outcomes.values()) == 3

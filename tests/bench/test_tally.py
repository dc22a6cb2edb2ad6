import pytest

from demur.bench.costs import Costs, rough_seconds
from demur.bench.grid import expand, read_preset
from demur.bench.locks import locked, try_lock
from demur.bench.spec import Spec
from demur.bench.tally import Tally

SPECS = [Spec("iris", m, "uniform", s) for m in ("dst-pll", "ipal") for s in range(3)]


def took(seconds):
    return {"seconds_prepare": 0.0, "seconds_fit": seconds, "seconds_predict": 0.0}


def test_counts():
    tally = Tally(SPECS)
    tally.start(SPECS[:3])
    tally.finish(SPECS[0], "ok", took(1.0))
    tally.finish(SPECS[1], "failed", {"error": "ValueError: no"})
    tally.lose(SPECS[3], "not written: full")
    assert tally.count() == {"ok": 1, "failed": 2, "running": 1, "waiting": 2}
    assert tally.count(SPECS[:1]) == {"ok": 1}
    told = dict(tally.failures())
    assert told == {SPECS[1]: "ValueError: no", SPECS[3]: "not written: full"}
    assert tally.seconds(SPECS) == 1.0


def test_seconds_left_follow_from_what_is_finished():
    tally = Tally(SPECS, jobs=2)
    for spec in SPECS[:2]:
        tally.finish(spec, "ok", took(4.0))
    tally.finish(SPECS[3], "ok", took(10.0))
    assert tally.seconds_left() == pytest.approx((4.0 + 10.0 + 10.0) / 2)
    tally.put_off.append(SPECS[5])
    assert tally.seconds_left() == pytest.approx((4.0 + 10.0) / 2)
    tally.start(SPECS[2:3])
    assert 6.5 < tally.seconds_left() < 7.0  # what runs is partly done
    tally.finish(SPECS[2], "ok", took(4.0))
    tally.finish(SPECS[4], "failed", {})
    assert tally.seconds_left() == 0.0


def test_failures_teach_nothing():
    tally = Tally(SPECS)
    tally.finish(SPECS[0], "failed", took(1000.0))
    assert tally.seconds_left() < 100.0


def test_other_datasets_are_estimated_by_size():
    costs = Costs()
    small, large = (Spec(d, "ipal", "uniform", 0) for d in ("ecoli", "pendigits"))
    costs.learn(small, 2 * rough_seconds(small))
    assert costs.seconds(large) == pytest.approx(2 * rough_seconds(large))
    assert rough_seconds(large) > 20 * rough_seconds(small)


def test_the_nearest_experience_counts():
    costs = Costs()
    here, same, other = SPECS[0], SPECS[1], Spec("wine", "dst-pll", "uniform", 0)
    costs.learn(here, 3 * rough_seconds(here))
    costs.learn(other, 5 * rough_seconds(other))
    assert costs.seconds(same) == pytest.approx(3 * rough_seconds(same))
    third = Spec("ecoli", "dst-pll", "uniform", 0)
    assert 3 < costs.seconds(third) / rough_seconds(third) < 5


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_every_run_of_a_preset_has_an_estimate(preset):
    assert all(rough_seconds(spec) > 0 for spec in expand(read_preset(preset), seeds=1))


def test_an_unknown_dataset_has_an_estimate():
    assert rough_seconds(Spec("mine.csv", "proden", "uniform", 0)) > 0


def test_locks_exclude(tmp_path):
    path = tmp_path / "new" / "x"
    lock = try_lock(path)
    assert try_lock(path) is None
    lock.release()
    assert not path.exists()
    with locked(path):
        assert try_lock(path) is None
    again = try_lock(path)
    assert again is not None
    again.release()


def test_where_there_can_be_no_lock_there_is_none(tmp_path):
    (tmp_path / "file").write_text("")
    with locked(tmp_path / "file" / "x"):
        pass

"""The order of the work: nothing twice, nothing lost, and nothing before what it needs."""

import itertools

import pytest

from demur.bench.costs import Costs, encoder_seconds, rough_seconds, trains_networks
from demur.bench.grid import expand, read_preset
from demur.bench.plan import LONGEST, arrange, features_key, make_tasks
from demur.bench.spec import Spec
from demur.bench.tally import Tally

PAPER = expand(read_preset("paper"))
KINDS = {"uniform", "class-dependent", "instance-dependent"}


def runs_of(tasks):
    return [spec for task in tasks if task.kind == "runs" for spec in task.specs]


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("stack", [None, 1, 4])
def test_every_run_is_in_one_task(gpu, stack):
    crews = arrange(PAPER, Costs(gpu=gpu), stack, lanes=gpu)
    planned = runs_of(crews[0]) + runs_of(crews[1])
    assert len(planned) == len(PAPER)
    assert set(planned) == set(PAPER)
    sizes = {len(t.specs) for crew in crews for t in crew if t.kind == "runs"}
    assert max(sizes) <= (stack or 15)


def test_on_a_gpu_a_dataset_and_method_are_one_stack_and_images_of_one_size_are_not_mixed():
    _, networks = arrange(PAPER, Costs(gpu=True), None, lanes=True)
    stacks = [task for task in networks if task.kind == "runs"]
    assert {len(task.specs) for task in stacks} == {5, 15}  # real-world sets have one noise
    for task in stacks:
        assert len({(spec.dataset, spec.method) for spec in task.specs}) == 1
        assert {spec.noise for spec in task.specs} in (KINDS, {"real"})
    assert len(stacks) == 12 * 5


def test_on_a_cpu_a_task_takes_minutes_not_hours():
    costs = Costs()
    for task in make_tasks(PAPER, costs):
        assert len(task.specs) == 1 or sum(map(costs.seconds, task.specs)) <= LONGEST
    small = [task for task in make_tasks(PAPER, costs) if task.specs[0].dataset == "ecoli"]
    assert {len(task.specs) for task in small if trains_networks(task.specs[0].method)} == {15}


def test_the_longest_goes_first():
    costs = Costs()
    tasks, none = arrange(PAPER, costs, None, lanes=False)
    assert none == []
    kinds = [task.kind for task in tasks]
    assert kinds == sorted(kinds)  # features, then runs
    assert kinds.count("features") == 3 * 5  # image sets x seeds
    seconds = [sum(map(costs.seconds, task.specs)) for task in tasks if task.kind == "runs"]
    assert seconds == sorted(seconds, reverse=True)


def test_lanes_make_each_feature_once_and_before_what_needs_it():
    workers, lanes = arrange(PAPER, Costs(gpu=True), None, lanes=True)
    assert {trains_networks(spec.method) for spec in runs_of(lanes)} == {True}
    assert {trains_networks(spec.method) for spec in runs_of(workers)} == {False}
    kinds = [task.kind for task in lanes]
    assert kinds == sorted(kinds)  # features, then runs
    features = [features_key(t.specs[0]) for t in lanes if t.kind == "features"]
    assert len(features) == len(set(features)) == 3 * 5  # image sets x seeds
    assert set(features) == {features_key(s) for s in PAPER} - {None}
    # One dataset after the other, so that it is moved once.
    order = [task.specs[0].dataset for task in lanes if task.kind == "runs"]
    assert sum(a != b for a, b in itertools.pairwise(order)) == len(set(order)) - 1
    # Workers make candidates first, then what needs no features, then the rest.
    kinds = [task.kind for task in workers]
    assert kinds == sorted(kinds)
    assert kinds.count("candidates") == 10 * 5  # datasets x seeds
    waits = [bool(task.specs[0].encoder) for task in workers if task.kind == "runs"]
    assert waits == sorted(waits)


def test_features_are_told_apart_by_all_that_makes_them():
    one = Spec("mnist", "dst-pll", "uniform", 0, encoder={"kind": "vae", "n_epochs": 30})
    assert features_key(one) == features_key(
        Spec("mnist", "pl-knn", "class-dependent", 0, encoder=dict(one.encoder))
    )
    others = [
        Spec("mnist", "dst-pll", "uniform", 1, encoder=dict(one.encoder)),
        Spec("mnist", "dst-pll", "uniform", 0, encoder={"kind": "vae", "n_epochs": 31}),
        Spec("fashion-mnist", "dst-pll", "uniform", 0, encoder=dict(one.encoder)),
        Spec("mnist", "dst-pll", "uniform", 0, encoder=dict(one.encoder), test_size=0.5),
    ]
    assert len({features_key(spec) for spec in [one, *others]}) == 5
    assert features_key(Spec("mnist", "cc", "uniform", 0)) is None


def test_a_gpu_is_estimated_by_its_batches():
    """A stack of 15 takes one network's time: epochs times batches, shared by 15."""
    spec = Spec("mnist", "proden", "uniform", 0)  # 56,000 images in batches of 64
    batches, per_batch = 875, 0.003
    assert rough_seconds(spec, gpu=True) == pytest.approx(200 * batches * per_batch / 15)
    assert rough_seconds(spec, gpu=True) < rough_seconds(spec) / 10
    classic = Spec("mnist", "ipal", "uniform", 0, encoder={"kind": "vae"})
    assert rough_seconds(classic, gpu=True) == rough_seconds(classic)


def test_an_encoder_is_estimated_by_its_epochs():
    short, long = (
        Spec("mnist", "ipal", "uniform", 0, encoder={"kind": "vae", "n_epochs": n})
        for n in (10, 40)
    )
    assert encoder_seconds(long) == pytest.approx(4 * encoder_seconds(short))
    assert encoder_seconds(short, gpu=True) < encoder_seconds(short)
    assert encoder_seconds(Spec("iris", "ipal", "uniform", 0)) == 0.0


def test_what_a_gpu_took_says_nothing_of_a_cpu():
    costs = Costs()
    run = Spec("iris", "proden", "uniform", 0)
    costs.learn(run, 1000 * rough_seconds(run, gpu=True), "cuda")
    assert costs.seconds(run) == rough_seconds(run)
    costs.gpu = True
    assert costs.seconds(run) == pytest.approx(1000 * rough_seconds(run, gpu=True))


def test_a_crew_takes_as_long_as_its_work_and_its_longest_task():
    tally = Tally([Spec("iris", "dst-pll", "uniform", s) for s in range(4)])
    tasks = make_tasks(tally.specs, tally.costs)
    seconds = [tally.estimate_of(task) for task in tasks]
    tally.share("runs", 2, tasks)
    tally.share("runs", 8, tasks)
    assert tally.shares[0].estimate == pytest.approx(sum(seconds) / 2)
    assert tally.shares[1].estimate == pytest.approx(max(seconds))

"""What does the work: workers that die, and clusters, whose results are those of one process."""

import importlib.util
import time

import pytest

from demur.bench import backends
from demur.bench.run import run_grid
from demur.bench.spec import Spec
from demur.bench.store import files_of, read_results, read_run

UNIFORM = {"n_noise": 1, "share": 0.5}
CLASSIC = ("dst-pll", "pl-knn", "ipal", "pl-svm", "pl-ecoc")


def grid(methods=("pl-knn",), seeds=4, **more):
    return [
        Spec("iris", method, "uniform", seed, noise_parameters=UNIFORM, **more)
        for method in methods
        for seed in range(seeds)
    ]


def digests(folder):
    return {path.stem: read_run(path)[1]["digest"] for path in files_of(folder)}


def deadly(seeds):
    """What a worker does, which takes it down at some seeds; goes to workers by its value."""

    whole = backends._do

    def do(task, place, owner):
        import os

        if task.specs[0].seed in seeds:
            os._exit(9)
        return whole(task, place, owner)

    return do


def test_a_run_that_takes_its_worker_down_is_a_recorded_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(backends, "_do", deadly([1]))
    tally = run_grid(grid(), tmp_path, jobs=2)
    assert tally.count() == {"ok": 3, "failed": 1}
    ((spec, why),) = tally.failures()
    assert spec.seed == 1
    assert why.startswith("TerminatedWorkerError: ")
    assert len(read_results(tmp_path).runs) == 4
    assert not list((tmp_path / "locks").iterdir())


def test_lanes_train_networks_and_one_that_dies_is_replaced(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(backends, "_do", deadly([9]))
    parameters = {"n_epochs": 1, "hidden_layer_sizes": [4]}
    networks = [
        Spec("iris", "proden", "uniform", seed, noise_parameters=UNIFORM, parameters=parameters)
        for seed in (9, 0)
    ]
    specs = [*grid(seeds=2), *networks]
    tally = run_grid(specs, tmp_path, jobs=1, lanes=1, stack=1, device="cpu")
    assert tally.count() == {"ok": 3, "failed": 1}
    assert [spec for spec, _ in tally.failures()] == networks[:1]
    others, lanes = tally.shares
    assert (others.runs, lanes.runs, lanes.workers) == (2, 2, 1)


def test_lanes_end_when_the_others_are_interrupted(tmp_path, monkeypatch):
    def interrupted(tasks, place):
        raise KeyboardInterrupt

    monkeypatch.setattr("demur.bench.run.unordered", interrupted)
    monkeypatch.setattr(backends.Lanes, "__call__", lambda self, tasks, place: iter(()))
    networks = [Spec("iris", "proden", "uniform", 0, noise_parameters=UNIFORM)]
    with pytest.raises(KeyboardInterrupt):
        run_grid([*grid(seeds=1), *networks], tmp_path, jobs=1, lanes=1, device="cpu")


def test_a_worker_ends_with_its_owner(monkeypatch):
    ended, owners = [], [7]
    monkeypatch.setattr(backends.os, "getppid", lambda: owners[-1])
    monkeypatch.setattr(backends.os, "_exit", ended.append)
    backends._end_with.cache_clear()
    backends._end_with(8)  # not a child of that process: others look after it
    backends._end_with(7)
    assert not ended
    owners.append(1)
    for _ in range(100):
        if ended:
            break
        time.sleep(0.05)
    backends._end_with.cache_clear()
    assert ended == [1]


def test_threads_give_the_same_bits(tmp_path):
    run_grid(grid(CLASSIC, 2), tmp_path / "one", jobs=1)
    run_grid(grid(CLASSIC, 2), tmp_path / "threads", jobs=2, backend="threading")
    assert digests(tmp_path / "one") == digests(tmp_path / "threads")


def test_a_dask_cluster_of_two_gives_the_same_bits(tmp_path):
    pytest.importorskip("distributed", reason="NOT TESTED: the Dask backend, as dask is missing")
    specs = grid(CLASSIC, 2)
    tally = run_grid(specs, tmp_path / "dask", jobs=2, backend="dask")
    assert tally.count() == {"ok": 10}
    assert tally.jobs == 2
    run_grid(specs, tmp_path / "here", jobs=1)
    assert digests(tmp_path / "dask") == digests(tmp_path / "here")
    assert len(digests(tmp_path / "here")) == 10


def test_a_dask_cluster_that_runs_already(tmp_path):
    distributed = pytest.importorskip(
        "distributed", reason="NOT TESTED: the Dask backend, as dask is missing"
    )
    options = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        tally = run_grid(
            grid(seeds=2), tmp_path, backend="dask", scheduler=cluster.scheduler_address
        )
    assert tally.count() == {"ok": 2}


def test_a_scheduler_that_does_not_answer_is_told(tmp_path, monkeypatch):
    distributed = pytest.importorskip(
        "distributed", reason="NOT TESTED: the Dask backend, as dask is missing"
    )

    def no(address, **_):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", no)
    with pytest.raises(ValueError, match="no Dask scheduler answers at 'tcp://nowhere:1'"):
        run_grid(grid(), tmp_path, backend="dask", scheduler="tcp://nowhere:1")


def test_ray_gives_the_same_bits(tmp_path):
    pytest.importorskip("ray", reason="NOT TESTED: the Ray backend, as ray is missing")
    specs = grid(CLASSIC, 2)
    run_grid(specs, tmp_path / "ray", jobs=2, backend="ray")
    run_grid(specs, tmp_path / "here", jobs=1)
    assert digests(tmp_path / "ray") == digests(tmp_path / "here")


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="ray is there")
def test_a_cluster_without_its_package_is_told(tmp_path):
    with pytest.raises(ImportError, match=r'needs the package ray; .* pip install "demur\[ray\]"'):
        run_grid(grid(), tmp_path, backend="ray")

"""The order of the work: which task is whose, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from demur.bench.backends import Task
from demur.bench.costs import Costs, trains_networks
from demur.bench.prepare import TRAINED
from demur.bench.spec import Spec, canonical
from demur.bench.work import stack_key

LONGEST = 300.0  # seconds; a longer task is cut where that costs nothing


def make_tasks(specs: Iterable[Spec], costs: Costs, stack: int | None = None) -> list[Task]:
    """Group runs that are trained as one stack; each other run is a task of its own.

    Unless told how many to train in one go, all of a dataset and method are; but on a CPU, where
    more of them are not quicker, no more than take a few minutes. A task is lost as a whole when
    the process is killed, and is one worker's alone.
    """
    if stack is not None and stack < 1:
        raise ValueError(f"stack is {stack}; it must be 1 or more.")
    groups: dict[str, list[Spec]] = {}
    for spec in specs:
        groups.setdefault(stack_key(spec) or spec.run_id, []).append(spec)
    tasks = []
    for group in groups.values():
        size = stack or len(group)
        if stack is None and not costs.gpu:
            each = sum(map(costs.seconds, group)) / len(group)
            size = max(min(size, int(LONGEST / each)), 1)
        parts = [tuple(group[i : i + size]) for i in range(0, len(group), size)]
        tasks += [Task(part[0].run_id, part) for part in parts]
    return tasks


def arrange(
    specs: Iterable[Spec], costs: Costs, stack: int | None, *, lanes: bool
) -> tuple[list[Task], list[Task]]:
    """Tasks for the workers, and for the lanes: what takes longest first, to end together.

    Features that an encoder gives are made before the runs, once for all that need them. Where
    there are lanes these make them, then train networks, one dataset after the other, as it stays
    in their memory. The workers meanwhile make the candidates that networks will need, then do
    what needs no features.
    """

    def seconds(task: Task) -> float:
        return sum(map(costs.seconds, task.specs))

    tasks = sorted(make_tasks(specs, costs, stack), key=seconds, reverse=True)
    features = _made_once("features", tasks, features_key)
    if not lanes:
        return features + tasks, []
    networks = [task for task in tasks if trains_networks(task.specs[0].method)]
    others = [task for task in tasks if not trains_networks(task.specs[0].method)]
    candidates = _made_once("candidates", networks, _candidates_key)
    place = {spec: i for i, spec in enumerate(dict.fromkeys(t.specs[0].dataset for t in networks))}
    networks.sort(key=lambda task: place[task.specs[0].dataset])
    others.sort(key=lambda task: bool(task.specs[0].encoder))
    return candidates + others, features + networks


def features_key(spec: Spec) -> str | None:
    """Runs with the same key learn from the same features of an encoder, if any."""
    if not spec.encoder:
        return None
    return canonical([*_split(spec), dict(spec.encoder)])


def _candidates_key(spec: Spec) -> str | None:
    """Runs with the same key learn from the same candidates; None if these are made at once."""
    if spec.noise not in TRAINED:
        return None
    return canonical([*_split(spec), spec.noise, dict(spec.noise_parameters)])


def _split(spec: Spec) -> list[object]:
    return [spec.dataset, spec.classes, spec.test_size, spec.seed]


def _made_once(kind: str, tasks: Iterable[Task], key: Callable[[Spec], str | None]) -> list[Task]:
    made: dict[str, Task] = {}
    for spec in (spec for task in tasks for spec in task.specs):
        name = key(spec)
        if name is not None:
            made.setdefault(name, Task(f"{kind} {name}", (spec,), kind))
    return list(made.values())

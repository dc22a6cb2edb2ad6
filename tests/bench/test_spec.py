import json
import subprocess
import sys

import pytest

from demur.bench.spec import FIELDS, Spec, canonical

BASE = {"dataset": "ecoli", "method": "dst-pll", "noise": "uniform", "seed": 3}
CHANGES = {
    "dataset": "flare",
    "method": "pl-knn",
    "noise": "real",
    "seed": 4,
    "classes": "frequent-95",
    "noise_parameters": {"n_noise": 2},
    "parameters": {"n_neighbors": 5},
    "encoder": {"kind": "vae"},
    "test_size": 0.3,
    "dial": {"coverage": 0.8},
}


def test_every_field_is_in_the_name():
    assert set(CHANGES) == set(FIELDS)
    names = {Spec(**BASE).run_id} | {Spec(**(BASE | {k: v})).run_id for k, v in CHANGES.items()}
    assert len(names) == len(FIELDS) + 1


def test_order_of_parameters_is_not():
    a = Spec(**BASE, parameters={"n_neighbors": 5, "alpha": 0.5})
    b = Spec(**BASE, parameters={"alpha": 0.5, "n_neighbors": 5})
    assert a == b
    assert hash(a) == hash(b)
    assert a != Spec(**BASE)


def test_the_name_is_the_same_in_another_process():
    code = f"from demur.bench.spec import Spec; print(Spec(**{BASE!r}).run_id)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == Spec(**BASE).run_id


def test_json_and_back():
    spec = Spec(**(BASE | CHANGES))
    assert Spec.from_json(spec.to_json()) == spec
    assert json.loads(spec.to_json()) == spec.as_dict()


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, (1, 2), object()])
def test_what_json_cannot_tell_is_refused(value):
    with pytest.raises(ValueError, match="told in JSON"):
        Spec(**BASE, parameters={"x": value})


def test_canonical():
    assert canonical({"b": 1, "a": [0.1, None]}) == '{"a":[0.1,null],"b":1}'


def test_str():
    assert str(Spec(**BASE)) == "dst-pll on ecoli, uniform, seed 3"
    filtered = Spec(**BASE, classes="frequent-95")
    assert str(filtered) == "dst-pll on ecoli (frequent-95), uniform, seed 3"


def test_what_computes_a_run_needs_neither_pandas_nor_pyarrow():
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "pyarrow"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
import demur.bench.prepare, demur.bench.grid
from demur.bench.spec import Spec
from demur.bench.work import Place, run_task
spec = Spec("iris", "dst-pll", "uniform", 0, noise_parameters={"n_noise": 1})
(outcome,) = run_task([spec], Place())
assert outcome.judged is not None, outcome.facts
try:
    import demur.bench.store
except ImportError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "demur[bench]"' in told.stdout

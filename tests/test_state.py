"""Saving and loading, for every registered method by the one rule of the contract."""

import io

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from demur import CandidateSets
from demur.methods import METHODS, method
from demur.state import pack, unpack


def small(name):
    made = method(name)()
    wanted = {"n_epochs": 2, "hidden_layer_sizes": (8,), "random_state": 0, "n_jobs": 1}
    return made.set_params(**{k: v for k, v in wanted.items() if k in made.get_params()})


@pytest.fixture(params=METHODS)
def fitted(request, rng):
    y = rng.integers(3, size=90)
    X = rng.normal(size=(90, 4)) + 4 * np.eye(3, 4)[y]
    S = rng.random((90, 3)) < 0.25
    S[np.arange(90), y] = True
    sets = CandidateSets(S[:60], classes=["ant", "bee", "cat"])
    return small(request.param).fit(X[:60], sets), X[60:]


def through_a_file(arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    buffer.seek(0)
    with np.load(buffer, allow_pickle=False) as loaded:
        return dict(loaded)


def test_arrays_hold_the_whole_model(fitted):
    model, new = fitted
    again = type(model)(**model.get_params()).from_arrays(through_a_file(model.to_arrays()))
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(again.accept_score(new), model.accept_score(new))
    np.testing.assert_array_equal(again.decide(new).mask, model.decide(new).mask)
    np.testing.assert_array_equal(again.transduction_, model.transduction_)
    assert again.classes_.tolist() == ["ant", "bee", "cat"]
    kept = set(vars(model)) - {"_transduced"}
    assert kept == set(vars(again)) - {"_transduced"}


def test_no_damaged_array_is_taken_for_a_model(fitted):
    """Each array cut, emptied, or with numbers that point outside: an error, or no change."""
    model, new = fitted
    arrays = {k: v for k, v in model.to_arrays().items() if not k.startswith("history_")}
    expected = model.predict_proba(new).shape
    for name, array in arrays.items():
        damaged = [array[:-1], array[:0], array[..., None]] if array.ndim else [array[None]]
        if array.dtype.kind in "iu":
            damaged.append(np.full_like(array, np.iinfo(array.dtype).max))
        if array.dtype.kind == "f" and array.size:
            damaged.append(np.full_like(array, np.nan))
        for bad in damaged:
            try:
                again = type(model)(**model.get_params()).from_arrays({**arrays, name: bad})
            except ValueError:
                continue
            # What is not needed to judge, or cannot be told to be wrong, may pass ...
            with np.errstate(all="ignore"):
                assert again.predict_proba(new).shape == expected  # ... but still answers


def test_a_model_that_was_refused_stays_unfitted(fitted):
    model, new = fitted
    arrays = model.to_arrays()
    other = type(model)(**model.get_params())
    for lacking in ("classes_", "n_features_in_"):
        with pytest.raises(ValueError, match=rf"lacking: \['{lacking}'\]"):
            other.from_arrays({k: v for k, v in arrays.items() if k != lacking})
    with pytest.raises(ValueError, match="predict is not learned"):
        other.from_arrays({**arrays, "predict": np.zeros(3)})
    with pytest.raises(ValueError, match="one is called '../evil'"):
        other.from_arrays({**arrays, "../evil": np.zeros(3)})
    bare = {k: arrays[k] for k in ("classes_", "n_features_in_")}
    with pytest.raises(ValueError, match="not the arrays of a fitted"):
        other.from_arrays(bare)
    with pytest.raises(NotFittedError):
        other.predict(new)
    with pytest.raises(NotFittedError):
        other.to_arrays()


def test_every_kind_of_value_comes_back():
    values = {
        "numbers": np.arange(3.0),
        "words": np.asarray(["a", "bc"], dtype=object),
        "one": 1,
        "share": 0.5,
        "yes": True,
        "name": "x",
        "nothing": None,
        "shape": (1, 28, 28),
        "weights": {"0.w": np.eye(2), "0.b": np.zeros(2)},
    }
    back = unpack(through_a_file(pack(values)))
    assert set(back) == set(values)
    for name in ("one", "share", "yes", "name", "nothing", "shape"):
        assert back[name] == values[name]
        assert type(back[name]) is type(values[name])
    assert back["words"].dtype == object
    assert back["words"].tolist() == ["a", "bc"]
    np.testing.assert_array_equal(back["weights"]["0.w"], np.eye(2))
    sets = CandidateSets([["a", "b"], ["b"]])
    assert unpack(pack({"sets": sets}))["sets"].to_lists() == sets.to_lists()


@pytest.mark.parametrize("value", [[1, 2], object(), np.asarray([1, "a"], dtype=object), {}])
def test_what_cannot_be_packed_is_named(value):
    with pytest.raises(ValueError, match=r"odd .*cannot be saved"):
        pack({"odd": value})

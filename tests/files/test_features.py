"""Columns as features: patterns, one-hot, missing values, scaling, checks by name and type."""

import numpy as np
import pyarrow as pa
import pytest

from demur.files import DataError, UsageError
from demur.files.columns import choose, label_text, numbers, texts
from demur.files.features import learn_preparation
from demur.files.tables import Chunk


def chunk(**columns):
    table = pa.table(columns)
    return Chunk(table, np.arange(2, len(table) + 2), [])


def learn(data, features="*", **how):
    return learn_preparation(data, "t.csv", features, **how)


def test_patterns_and_ranges():
    columns = [*(f"f{j}" for j in range(1, 100)), "colour", "a,b", "x:y"]
    assert choose("f1:f99", columns, "") == columns[:99]
    assert choose("f99:f98,colour", columns, "") == ["f98", "f99", "colour"]
    assert choose("f?,f1", columns, "") == [f"f{j}" for j in range(1, 10)]
    assert choose("a,b", columns, "") == ["a,b"]
    assert choose(["x:y", "a,b"], columns, "") == ["x:y", "a,b"]
    with pytest.raises(UsageError, match=r"--features: no column matches 'F1'"):
        choose("F1", columns, "--features")


def test_cells_as_numbers():
    found = numbers(pa.array([" 1.5 ", "-2e3", "", "NA", None, "one", "inf", "0x10", "1_0"]))
    assert found.values[:2].tolist() == [1.5, -2000.0]
    assert found.missing.tolist() == [False, False, True, True, True] + [False] * 4
    assert found.bad.tolist() == [False] * 5 + [True, False, True, True]
    assert np.isposinf(found.values[6])
    typed = numbers(pa.array([True, None, False]))
    assert typed.values.tolist()[::2] == [1.0, 0.0]
    assert typed.missing.tolist() == [False, True, False]


def test_cells_as_text():
    assert texts(pa.array([1.0, 2.5, None])) == ["1", "2.5", None]
    assert texts(pa.array([" a  b\n", "", None])) == ["a b", None, None]
    assert label_text("x\0") == "x"


def test_one_hot_with_a_limit():
    data = chunk(size=["s", "m", "l", "m"], x=["1", "2", "3", "4"])
    learned = learn(data)
    encoded = learned.encode(data, "t.csv")
    assert learned.columns[0].values == ("l", "m", "s")
    assert encoded.X.tolist() == [[0, 0, 1, 1], [0, 1, 0, 2], [1, 0, 0, 3], [0, 1, 0, 4]]
    with pytest.raises(DataError, match=r"size is text with 3 different values, such as 'l'"):
        learn(data, max_values=2)
    as_text = learn(data, "x", text=["x"])
    assert as_text.n_features == 4
    unseen = learned.encode(chunk(size=["xl", "s"], x=["1", "1"]), "t.csv")
    assert unseen.good.tolist() == [False, True]
    assert unseen.bad[0][:2] == (2, "size is 'xl', a value never seen in fit")


def test_missing_values_are_refused_or_imputed():
    data = chunk(x=["1", "", "5", "9"], size=["s", "s", None, "l"])
    refused = learn(data).encode(data, "t.csv")
    assert [row[:2] for row in refused.bad] == [(3, "x is missing"), (4, "size is missing")]
    assert refused.X.tolist() == [[1, 0, 1], [9, 1, 0]]
    imputed = learn(data, impute=True).encode(data, "t.csv")
    assert not imputed.bad
    assert imputed.X.tolist() == [[1, 0, 1], [5, 0, 1], [5, 0, 1], [9, 1, 0]]
    unseen = learn(data, impute=True).encode(chunk(x=["1"], size=["xl"]), "t.csv")
    assert unseen.bad[0][:2] == (2, "size is 'xl', a value never seen in fit")  # not missing


def test_typed_and_text_columns_become_the_same_features(rng):
    values = rng.normal(size=50)
    typed = learn(chunk(x=values)).encode(chunk(x=values), "t")
    text = learn(chunk(x=[repr(v) for v in values.tolist()]))
    assert np.array_equal(text.encode(chunk(x=[repr(v) for v in values.tolist()]), "t").X, typed.X)


@pytest.mark.parametrize("scaling", ["minmax", "standard", "none"])
def test_scaling_against_scikit_learn(rng, scaling):
    from sklearn import preprocessing

    X = np.column_stack([rng.normal(3, 5, 40), np.full(40, 7.0)])
    new = rng.normal(size=(10, 2))
    learned = learn(chunk(a=X[:, 0], b=X[:, 1]), scaling=scaling)
    learned.learn_scale(X)
    if scaling == "none":
        expected = new
    else:
        kind = {"minmax": "MinMaxScaler", "standard": "StandardScaler"}[scaling]
        expected = getattr(preprocessing, kind)().fit(X).transform(new)
    np.testing.assert_allclose(learned.scale(new), expected)


def test_new_tables_are_checked_by_name_and_type():
    learned = learn(chunk(x=[1.0, 2.0], y=[0.0, 1.0]))
    swapped = chunk(y=[5.0], more=["?"], x=[3.0])
    assert learned.encode(swapped, "new.csv").X.tolist() == [[3.0, 5.0]]
    with pytest.raises(DataError, match=r"new\.csv lacks the column y that the model was fitted"):
        learned.encode(chunk(x=[1.0]), "new.csv")
    dates = pa.array([0], pa.timestamp("s"))
    with pytest.raises(DataError, match=r"column y is of type timestamp\[s\]; numbers are wanted"):
        learned.encode(chunk(x=[1.0], y=dates), "new.csv")


def test_a_number_beyond_all_measure_is_a_bad_row():
    data = chunk(x=[1.0, 2.0])
    learned = learn(data)
    learned.learn_scale(np.array([[1.0], [2.0]]))
    found = learned.encode(chunk(x=[1.5, 1e300]), "t")
    assert found.bad[0][:2] == (3, "a number is absurdly far from those learned from")


@pytest.mark.parametrize(
    ("data", "how", "message"),
    [
        ({"x": [None, None]}, {"impute": True}, "of type null"),
        ({"x": ["", "NA"]}, {"impute": True}, "column x holds no number"),
        ({"x": ["", ""]}, {"text": ["x"]}, "column x is empty"),
        ({"x": [[1], [2]]}, {}, "give numbers or text"),
        ({"x": [1.0]}, {"scaling": "log"}, "scaling is one of"),
        ({"x": ["1,5", "2,5"]}, {"max_values": 1}, "Numbers are written with a point, 0.5."),
    ],
)
def test_columns_that_cannot_be_learned_from(data, how, message):
    with pytest.raises((DataError, UsageError), match=message):
        learn(chunk(**data), **how)

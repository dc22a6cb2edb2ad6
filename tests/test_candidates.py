"""Candidate sets: every form they are read from, how they are kept, and what they refuse."""

import copy
import pickle
from collections import Counter
from fractions import Fraction

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.utils import _safe_indexing, shuffle
from sklearn.utils.multiclass import type_of_target

from demur.candidates import CandidateSets

# The same three sets in every form: {ant, cat}, {bee}, {ant, bee, cat}.
CLASSES = ["ant", "bee", "cat"]
LISTS = [["ant", "cat"], ["bee"], ["ant", "bee", "cat"]]
INDICATOR = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1]])


def as_sets(sets):
    return [set(row) for row in sets.to_lists()]


@st.composite
def collections_of_labels(draw, *, max_classes=8):
    n_classes = draw(st.integers(1, max_classes))
    row = st.sets(st.integers(0, n_classes - 1), min_size=1)
    return draw(st.lists(row, min_size=1, max_size=20)), n_classes


# -------------------------------------------------------------------------- every form of S


@pytest.mark.parametrize(
    "S",
    [
        pytest.param(INDICATOR, id="integers"),
        pytest.param(INDICATOR.astype(bool), id="booleans"),
        pytest.param(INDICATOR.astype(np.uint8), id="octets"),
        pytest.param(INDICATOR.astype(float), id="floats"),
        pytest.param(INDICATOR.astype(object), id="objects"),
        pytest.param(np.asfortranarray(INDICATOR), id="columns first"),
        pytest.param(np.repeat(INDICATOR, 2, axis=1)[:, ::2], id="strided"),
        pytest.param(sp.csr_array(INDICATOR), id="csr"),
        pytest.param(sp.csc_array(INDICATOR), id="csc"),
        pytest.param(sp.coo_array(INDICATOR), id="coo"),
        pytest.param(sp.lil_array(INDICATOR), id="lil"),
        pytest.param(sp.csr_matrix(INDICATOR), id="csr matrix"),
        pytest.param(sp.csr_array(INDICATOR.astype(bool)), id="sparse booleans"),
        pytest.param(sp.csr_array(INDICATOR.astype(float)), id="sparse floats"),
    ],
)
def test_an_indicator_is_read(S):
    sets = CandidateSets(S)
    assert sets.classes.tolist() == [0, 1, 2]
    assert as_sets(sets) == [{0, 2}, {1}, {0, 1, 2}]
    named = CandidateSets(S, classes=CLASSES)
    assert named.to_lists() == LISTS
    np.testing.assert_array_equal(named.to_indicator(), INDICATOR.astype(bool))


@pytest.mark.parametrize(
    "kind",
    [list, tuple, set, frozenset, np.array, pd.Series, pd.Index, dict.fromkeys],
    ids=lambda kind: kind.__name__,
)
@pytest.mark.parametrize("together", [list, tuple])
def test_collections_of_labels_are_read(kind, together):
    sets = CandidateSets(together(kind(row) for row in LISTS))
    assert sets.classes.tolist() == CLASSES
    assert sets.to_lists() == LISTS


def test_collections_of_one_length_are_labels_not_an_indicator():
    assert as_sets(CandidateSets([[0, 1], [1, 0]])) == [{0, 1}, {0, 1}]
    assert as_sets(CandidateSets([range(2), range(1, 3)])) == [{0, 1}, {1, 2}]
    assert as_sets(CandidateSets([{0, 1}, {1, 2}])) == [{0, 1}, {1, 2}]


def test_collections_of_many_kinds_may_stand_together():
    sets = CandidateSets([["ant"], {"bee", "ant"}, ("cat",), np.array(["bee", "cat"])])
    assert as_sets(sets) == [{"ant"}, {"ant", "bee"}, {"cat"}, {"bee", "cat"}]


def test_a_label_twice_in_a_collection_counts_once():
    sets = CandidateSets([["a", "a", "b"], ["b"]])
    assert sets.to_lists() == [["a", "b"], ["b"]]
    assert sets.sizes.tolist() == [2, 1]


@pytest.mark.parametrize("kind", [set, list, np.array], ids=lambda kind: kind.__name__)
def test_an_object_array_of_collections_is_read(kind):
    S = np.empty(3, dtype=object)
    S[:] = [kind(row) for row in LISTS]
    assert CandidateSets(S).to_lists() == LISTS
    assert CandidateSets(pd.Series(S, index=[7, 5, 6])).to_lists() == LISTS


@pytest.mark.parametrize(
    "y",
    [
        ["bee", "ant", "bee"],
        ("bee", "ant", "bee"),
        np.array(["bee", "ant", "bee"]),
        np.array(["bee", "ant", "bee"], dtype=object),
        pd.Series(["bee", "ant", "bee"], index=[3, 1, 2]),
        pd.Series(pd.Categorical(["bee", "ant", "bee"], categories=["bee", "ant", "cat"])),
    ],
)
def test_a_label_vector_is_read_as_singletons(y):
    sets = CandidateSets(y)
    assert sets.classes.tolist() == ["ant", "bee"]
    assert sets.to_lists() == [["bee"], ["ant"], ["bee"]]
    assert CandidateSets(y, classes=CLASSES).shape == (3, 3)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([5, -3, 5], [-3, 5]),
        ([2.0, 1.0, 2.0], [1.0, 2.0]),
        ([True, False, True], [False, True]),
        (["10", "9", "10"], ["10", "9"]),
        (np.array([200, 7, 200], dtype=np.uint8), [7, 200]),
    ],
)
def test_labels_of_all_kinds(labels, classes):
    sets = CandidateSets(labels)
    assert sets.classes.tolist() == classes
    assert [type(c) for c in sets.classes.tolist()] == [type(c) for c in classes]
    assert sets.to_lists() == [[label] for label in np.asarray(labels).tolist()]
    assert CandidateSets([[label] for label in labels]) == sets


def test_a_column_of_labels_is_read_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        sets = CandidateSets(np.array([[4], [2], [4]]))
    assert sets.to_lists() == [[4], [2], [4]]


def test_as_many_named_classes_as_rows_raise_no_doubt():
    """Nobody who names classes, or whose labels are words, means a regression."""
    assert CandidateSets(np.arange(30), classes=range(30)).n_classes == 30
    assert CandidateSets([f"class {i}" for i in range(30)]).n_classes == 30


def test_the_columns_of_a_frame_name_the_classes():
    frame = pd.DataFrame(INDICATOR[:, [2, 0, 1]], columns=["cat", "ant", "bee"], index=[9, 8, 7])
    sets = CandidateSets(frame)
    assert sets.classes.tolist() == ["cat", "ant", "bee"]
    assert as_sets(sets) == [set(row) for row in LISTS]
    ordered = CandidateSets(frame, classes=CLASSES)
    assert ordered.classes.tolist() == CLASSES
    np.testing.assert_array_equal(ordered.to_indicator(), INDICATOR.astype(bool))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "Int64", "boolean", "object"])
def test_the_columns_of_a_frame_may_be_of_any_kind(dtype):
    frame = pd.DataFrame(INDICATOR, columns=[30, 10, 20]).astype({10: dtype})
    assert as_sets(CandidateSets(frame)) == [{30, 20}, {10}, {30, 10, 20}]
    assert CandidateSets(frame, classes=[10, 20, 30]).classes.tolist() == [10, 20, 30]


def test_candidate_sets_are_read_again():
    sets = CandidateSets(LISTS)
    assert CandidateSets(sets) == sets
    wider = CandidateSets(sets, classes=["dog", "cat", "bee", "ant"])
    assert wider.classes.tolist() == ["dog", "cat", "bee", "ant"]
    assert as_sets(wider) == as_sets(sets)


def test_sparse_entries():
    entries = ([1, 0, 1], ([0, 0, 1], [0, 1, 1]))
    assert CandidateSets(sp.coo_array(entries, shape=(2, 2))).to_lists() == [[0], [1]]
    twice = ([True, True, True], ([0, 0, 1], [0, 0, 1]))
    assert CandidateSets(sp.coo_array(twice, shape=(2, 2))).to_lists() == [[0], [1]]


def test_what_is_handed_in_is_neither_changed_nor_kept():
    S = INDICATOR.copy()
    sets = CandidateSets(S)
    np.testing.assert_array_equal(S, INDICATOR)
    S[:] = 0
    np.testing.assert_array_equal(sets.to_indicator(), INDICATOR.astype(bool))
    sets.to_indicator()[:] = False
    np.testing.assert_array_equal(sets.to_indicator(), INDICATOR.astype(bool))


@pytest.mark.parametrize("dtype", [bool, np.int64, float])
def test_read_only_and_memory_mapped_arrays(dtype, tmp_path):
    S = INDICATOR.astype(dtype)
    S.setflags(write=False)
    assert as_sets(CandidateSets(S)) == [{0, 2}, {1}, {0, 1, 2}]
    np.save(tmp_path / "S.npy", S)
    mapped = np.load(tmp_path / "S.npy", mmap_mode="r")
    assert CandidateSets(mapped) == CandidateSets(S)


# -------------------------------------------------------------------------------- packing


@pytest.mark.parametrize("n_classes", [1, 3, 63, 64, 65, 128, 219, 1_000])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_packing_against_the_plain_indicator(n_classes, form, rng):
    indicator = rng.random((40, n_classes)) < rng.random((40, 1))
    indicator[np.arange(40), rng.integers(n_classes, size=40)] = True
    indicator[0] = True
    sets = CandidateSets(form(indicator))
    assert sets.shape == (40, n_classes)
    assert sets.words.shape == (40, -(-n_classes // 64))
    assert sets.words.dtype == np.uint64
    # Python's integers have as many bits as they need: class c is bit c.
    whole = [sum(1 << int(c) for c in np.flatnonzero(row)) for row in indicator]
    assert [sum(int(word) << (64 * w) for w, word in enumerate(row)) for row in sets.words] == whole
    np.testing.assert_array_equal(sets.to_indicator(), indicator)
    np.testing.assert_array_equal(sets.sizes, indicator.sum(axis=1))
    assert sets.to_lists() == [np.flatnonzero(row).tolist() for row in indicator]
    assert CandidateSets(sets.to_lists(), classes=range(n_classes)) == sets
    for label in {0, n_classes // 2, n_classes - 1}:
        np.testing.assert_array_equal(sets.contains([label] * 40), indicator[:, label])


@given(collections_of_labels(max_classes=130))
def test_nothing_is_lost(drawn):
    rows, n_classes = drawn
    sets = CandidateSets([sorted(row) for row in rows], classes=range(n_classes))
    assert as_sets(sets) == rows
    assert sets.sizes.tolist() == [len(row) for row in rows]
    assert list(sets) == [frozenset(row) for row in rows]
    permuted = CandidateSets(sets, classes=range(n_classes)[::-1])
    assert as_sets(permuted) == rows
    np.testing.assert_array_equal(permuted.to_indicator(), sets.to_indicator()[:, ::-1])
    assert CandidateSets(permuted, classes=range(n_classes)) == sets


@given(collections_of_labels(), st.data())
def test_contains(drawn, data):
    rows, n_classes = drawn
    asked = data.draw(
        st.lists(st.integers(-2, n_classes + 2), min_size=len(rows), max_size=len(rows))
    )
    sets = CandidateSets([sorted(row) for row in rows], classes=range(n_classes))
    assert sets.contains(asked).tolist() == [a in row for a, row in zip(asked, rows, strict=True)]


def test_contains_of_other_types_and_shapes():
    sets = CandidateSets(LISTS)
    assert sets.contains(np.array(["cat", "zebra", "ant"])).tolist() == [True, False, True]
    assert sets.contains(pd.Series(["cat", "bee", None])).tolist() == [True, True, False]
    assert sets.contains([0, 1, 2]).tolist() == [False, False, False]
    with pytest.raises(ValueError, match=r"one label a set is needed, 3; got shape \(2,\)"):
        sets.contains(["cat", "bee"])
    with pytest.raises(ValueError, match=r"one label a set is needed, 3; got shape \(3, 1\)"):
        sets.contains([["cat"], ["bee"], ["ant"]])


# -------------------------------------------------------------------------------- the audit


def test_audit_by_hand():
    sets = CandidateSets(
        [["a"], ["a", "b"], ["a", "b", "c"], ["b"], ["c"]], classes=["a", "b", "c", "d"]
    )
    audit = sets.audit()
    assert (audit.n_sets, audit.n_classes) == (5, 4)
    assert audit.mean_size == 8 / 5
    assert audit.singleton_share == 3 / 5
    assert audit.full_share == 0
    assert audit.cooccurrence.tolist() == [[3, 2, 1, 0], [2, 3, 1, 0], [1, 1, 2, 0], [0, 0, 0, 0]]
    assert audit.ambiguity_degree == 2 / 3  # b is in two of the three sets that hold a
    assert audit.never_seen == ["d"]
    assert str(audit).splitlines() == [
        "5 candidate sets over 4 classes",
        "  mean size         1.60",
        "  one candidate     60.0%",
        "  every class       0.0%",
        "  ambiguity degree  0.667",
        "  never a candidate d",
    ]


def test_ambiguity_degree_by_hand():
    sets = CandidateSets([["a"], ["a", "b"], ["a", "b", "c"], ["b"], ["c"]])
    assert sets.ambiguity_degree() == 2 / 3
    # Of the three instances of b two hold a, one holds c; the others' sets hold nothing else.
    assert sets.ambiguity_degree(["a", "b", "b", "b", "c"]) == 2 / 3
    assert sets.ambiguity_degree(["a", "a", "b", "b", "c"]) == 1 / 2
    assert sets.ambiguity_degree(["a", "a", "c", "b", "c"]) == 1 / 2
    assert CandidateSets(["a", "b"]).ambiguity_degree() == 0
    assert CandidateSets([["a", "b"], ["b"]]).ambiguity_degree() == 1


@pytest.mark.parametrize("y_true", [["a"], ["a", "z"], ["a", "b", "b"]])
def test_ambiguity_degree_needs_the_labels(y_true):
    with pytest.raises(ValueError, match="one label of classes for each set"):
        CandidateSets([["a"], ["a", "b"]]).ambiguity_degree(y_true)


@given(collections_of_labels())
def test_audit_by_counting(drawn):
    rows, n_classes = drawn
    sets = CandidateSets([sorted(row) for row in rows], classes=range(n_classes))
    audit = sets.audit()
    labels = range(n_classes)
    together = [[sum({y, z} <= row for row in rows) for z in labels] for y in labels]
    assert audit.cooccurrence.tolist() == together
    assert audit.never_seen == sorted(set(labels) - set().union(*rows))
    assert audit.mean_size == pytest.approx(sum(map(len, rows)) / len(rows))
    assert audit.singleton_share == pytest.approx(sum(len(r) == 1 for r in rows) / len(rows))
    assert audit.full_share == pytest.approx(sum(len(r) == n_classes for r in rows) / len(rows))
    shares = [
        Fraction(together[y][z], together[y][y])
        for y in labels
        for z in labels
        if y != z and together[y][y]
    ]
    assert audit.ambiguity_degree == pytest.approx(float(max(shares, default=0)))


@given(collections_of_labels(), st.data())
def test_ambiguity_degree_with_true_labels_by_counting(drawn, data):
    rows, n_classes = drawn
    truth = [data.draw(st.sampled_from(sorted(row))) for row in rows]
    sets = CandidateSets([sorted(row) for row in rows], classes=range(n_classes))
    shares = [
        Fraction(sum(z in row for row in of_y), len(of_y))
        for y in set(truth)
        for of_y in [[row for row, t in zip(rows, truth, strict=True) if t == y]]
        for z in range(n_classes)
        if z != y
    ]
    assert sets.ambiguity_degree(truth) == pytest.approx(float(max(shares, default=0)))


def test_cooccurrence_of_many_classes_against_scipy(rng):
    indicator = rng.random((300, 219)) < 0.2
    indicator[:, 0] = True
    expected = sp.csr_array(indicator.astype(int))
    np.testing.assert_array_equal(
        CandidateSets(indicator).audit().cooccurrence, (expected.T @ expected).toarray()
    )


# ------------------------------------------------------------------------ annotators' answers

ANSWERS = [
    [0, 0, 1, -1, -1],
    [1, 1, 1, 1, 2],
    [2, -1, -1, -1, -1],
    [0, 1, 2, 2, 0],
]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({}, [{0, 1}, {1, 2}, {2}, {0, 1, 2}]),
        ({"min_votes": 1}, [{0, 1}, {1, 2}, {2}, {0, 1, 2}]),
        ({"min_share": 0.5, "fallback": "most"}, [{0}, {1}, {2}, {0, 2}]),
        ({"min_share": 0.2}, [{0, 1}, {1, 2}, {2}, {0, 1, 2}]),
        ({"min_share": 0.34}, [{0}, {1}, {2}, {0, 2}]),
        ({"min_votes": 2, "fallback": "most"}, [{0}, {1}, {2}, {0, 2}]),
        ({"min_votes": 5, "fallback": "most"}, [{0}, {1}, {2}, {0, 2}]),
    ],
)
def test_answers_by_hand(rule, expected):
    assert as_sets(CandidateSets.from_answers(ANSWERS, **rule)) == expected


ANSWER_TABLES = st.integers(1, 6).flatmap(
    lambda n_workers: st.lists(
        st.lists(st.integers(-1, 3), min_size=n_workers, max_size=n_workers).filter(
            lambda row: max(row) >= 0
        ),
        min_size=1,
        max_size=8,
    )
)


@given(
    ANSWER_TABLES,
    st.one_of(
        st.just({}),
        st.builds(dict, min_votes=st.integers(1, 6)),
        st.builds(dict, min_share=st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.6, 0.75, 1.0])),
    ),
    st.sampled_from([None, "most"]),
)
def test_answers_by_counting_votes(table, rule, fallback):
    expected = []
    for row in table:
        votes = Counter(answer for answer in row if answer != -1)
        share = Fraction(str(rule.get("min_share", 0)))
        kept = {
            label
            for label, n in votes.items()
            if n >= rule.get("min_votes", 1) and Fraction(n, votes.total()) >= share
        }
        if not kept and fallback:
            kept = {label for label, n in votes.items() if n == max(votes.values())}
        expected.append(kept)
    long = [
        (i, worker, answer)
        for i, row in enumerate(table)
        for worker, answer in enumerate(row)
        if answer != -1
    ]
    if not all(expected):
        for read in (
            lambda: CandidateSets.from_answers(table, fallback=fallback, **rule),
            lambda: CandidateSets.from_long_answers(
                *zip(*long, strict=True), fallback=fallback, **rule
            ),
        ):
            with pytest.raises(ValueError, match=rf"item {expected.index(set())} has no candid"):
                read()
        return
    assert as_sets(CandidateSets.from_answers(table, fallback=fallback, **rule)) == expected
    sets, items = CandidateSets.from_long_answers(
        *zip(*long, strict=True), fallback=fallback, **rule
    )
    assert as_sets(sets) == expected
    assert items.tolist() == list(range(len(table)))


@pytest.mark.parametrize(("votes", "share"), [((7, 18), 0.28), ((3, 7), 0.3), ((1, 9), 0.1)])
def test_a_share_that_is_met_exactly_is_met(votes, share):
    """0.28 * 25 is a little over 7 in floats."""
    answers = [[0] * votes[0] + [1] * votes[1]]
    assert as_sets(CandidateSets.from_answers(answers, min_share=share)) == [{0, 1}]


@pytest.mark.parametrize(
    ("answers", "options"),
    [
        pytest.param([["a", "b"], ["b", "?"]], {"missing": "?"}, id="another marker"),
        pytest.param([["a", "b"], ["b", -1]], {}, id="a number among words"),
        pytest.param([["a", "b"], ["b", None]], {}, id="None"),
        pytest.param(np.array([["a", "b"], ["b", np.nan]], dtype=object), {}, id="NaN"),
        pytest.param(np.array([["a", "b"], ["b", ""]]), {"missing": ""}, id="empty text"),
        pytest.param(pd.DataFrame({"u": ["a", "b"], "v": ["b", None]}), {}, id="frame"),
        pytest.param(
            pd.DataFrame({"u": pd.Categorical(["a", "b"]), "v": pd.Categorical(["b", None])}),
            {},
            id="categories",
        ),
    ],
)
def test_words_as_answers(answers, options):
    sets = CandidateSets.from_answers(answers, **options)
    assert sets.classes.tolist() == ["a", "b"]
    assert as_sets(sets) == [{"a", "b"}, {"b"}]


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([[1, 2], [2, -1]], id="marked"),
        pytest.param([[1, 2], [2, np.nan]], id="NaN"),
        pytest.param([[1, 2], [2, None]], id="None"),
        pytest.param(
            pd.DataFrame({"u": [1, 2], "v": pd.array([2, None], dtype="Int64")}), id="pandas NA"
        ),
    ],
)
def test_numbers_as_answers(answers):
    assert as_sets(CandidateSets.from_answers(answers)) == [{1, 2}, {2}]


def test_no_marker_but_none():
    assert as_sets(CandidateSets.from_answers([[-1, 1]], missing=None)) == [{-1, 1}]


def test_answers_with_all_classes_named():
    sets = CandidateSets.from_answers([[1, 2]], classes=[3, 2, 1])
    assert sets.classes.tolist() == [3, 2, 1]
    assert sets.to_lists() == [[2, 1]]
    with pytest.raises(ValueError, match=r"label 3 is not in classes, in row 1 \(2 such rows\)"):
        CandidateSets.from_answers([[1, 2], [3, 1], [3, 3]], classes=[1, 2])


def test_long_answers_by_hand():
    sets, items = CandidateSets.from_long_answers(
        items=np.array(["q2", "q1", "q2", "q2", "q2"]),
        workers=pd.Series([1, 1, 2, 2, 3]),
        labels=["x", "y", "y", "y", "x"],
    )
    assert items.tolist() == ["q2", "q1"]
    assert sets.to_lists() == [["x", "y"], ["y"]]
    # Worker 2 said y twice of q2 and has one vote: x wins by 2 to 1.
    most, _ = CandidateSets.from_long_answers(
        ["q2", "q1", "q2", "q2", "q2"],
        [1, 1, 2, 2, 3],
        ["x", "y", "y", "y", "x"],
        min_votes=3,
        fallback="most",
    )
    assert most.to_lists() == [["x"], ["y"]]


@pytest.mark.parametrize(
    "items", [[30, 10], ["b", "a"], [2.5, 1.5], [("page", 2), ("page", 1)], ["a", 2]]
)
def test_long_answers_give_the_items_back(items):
    _, given_back = CandidateSets.from_long_answers(items, [1, 1], ["x", "y"])
    assert given_back.ndim == 1
    assert given_back.tolist() == items


@pytest.mark.parametrize(
    ("answers", "options", "message"),
    [
        ([[0], [-1], [-1]], {}, r"item 1 has no candidate: it has no answer \(2 such items\)"),
        ([[0], [-1]], {"fallback": "most"}, r"item 1 has no candidate: it has no answer"),
        ([[0, 0], [1, 2]], {"min_votes": 2}, r"item 1 has no candidate: no label has enough vot"),
        ([[0, 0], [1, 2]], {"min_share": 0.6}, r"item 1 has no candidate: no label has enough"),
        ([[0]], {"min_votes": 0}, r"min_votes must be at least 1; got 0"),
        ([[0]], {"min_share": 0}, r"min_share must be over 0 and at most 1; got 0"),
        ([[0]], {"min_share": 1.5}, r"min_share must be over 0 and at most 1; got 1.5"),
        ([[0]], {"min_share": np.nan}, r"min_share must be over 0 and at most 1; got nan"),
        ([[0]], {"min_probability": 0}, "min_probability must be over 0 and at most 1; got 0"),
        ([[0], [-1]], {"min_probability": 0.1}, "item 1 has no candidate: it has no answer"),
        ([[0]], {"min_votes": 1, "min_share": 1}, r"one of min_votes, min_share and min_prob"),
        ([[0]], {"fallback": "all"}, r"fallback must be None or 'most'; got 'all'"),
        ([0, 1], {}, r"answers must be a table, items x annotators; got 1 dimension"),
        ([[0], [0, 1]], {}, r"answers must be a table"),
        (np.empty((0, 3), dtype=int), {}, r"no items"),
    ],
)
def test_bad_answers(answers, options, message):
    with pytest.raises(ValueError, match=message):
        CandidateSets.from_answers(answers, **options)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([1], [1, 2], ["a"]), r"equally long; got items 1, workers 2, labels 1"),
        (([1, 1], [1, 2], ["a", None]), r"the label is missing in row 1 \(the only such row\)"),
        (([1, None], [1, 2], ["a", "b"]), r"the item is missing in row 1"),
        (([1, 1, 2], [np.nan, 2, np.nan], ["a", "b", "c"]), r"worker is missing in row 0 \(2 "),
        (([], [], []), r"no items"),
    ],
)
def test_bad_long_answers(columns, message):
    with pytest.raises(ValueError, match=message):
        CandidateSets.from_long_answers(*columns)


def test_a_long_item_without_enough_votes_is_named():
    with pytest.raises(ValueError, match=r"item 'q' has no candidate: no label has enough votes"):
        CandidateSets.from_long_answers(["p", "p", "q"], [1, 2, 1], ["x"] * 3, min_votes=2)
    with pytest.raises(ValueError, match=r"item 7 has no candidate"):
        CandidateSets.from_long_answers(np.array([7]), np.array([1]), np.array([2]), min_votes=2)


# ------------------------------------------------------------------------------- as a container


def test_rows_are_chosen():
    sets = CandidateSets(LISTS)
    assert sets[0] == frozenset({"ant", "cat"})
    assert sets[np.int64(-1)] == frozenset(CLASSES)
    assert len(sets) == 3
    for key in ([2, 0], np.array([2, 0]), [True, False, True], slice(None, None, -1)):
        expected = [LISTS[i] for i in np.arange(3)[key]]
        assert sets[key].to_lists() == expected
        assert sets[key].classes.tolist() == CLASSES


def test_no_rows_chosen():
    nothing = CandidateSets(LISTS)[0:0]
    assert len(nothing) == 0
    assert nothing.shape == (0, 3)
    assert nothing.to_lists() == []
    assert nothing.to_indicator().shape == (0, 3)
    assert "0 sets" in repr(nothing)


@pytest.mark.parametrize("n_classes", [3, 130])
@pytest.mark.parametrize("key", [(0, 1), (slice(None), slice(0, 1)), ([0], [0]), (slice(None), 0)])
def test_columns_cannot_be_chosen(key, n_classes):
    sets = CandidateSets(np.ones((3, n_classes)))
    with pytest.raises(IndexError, match="rows only"):
        sets[key]


def test_a_row_that_is_not_there():
    with pytest.raises(IndexError, match="out of bounds"):
        CandidateSets(LISTS)[3]


def test_equality():
    sets = CandidateSets(LISTS)
    assert sets == CandidateSets(INDICATOR, classes=CLASSES)
    assert sets != CandidateSets(INDICATOR)
    assert sets != CandidateSets(LISTS[:2], classes=CLASSES)
    assert sets != CandidateSets(LISTS, classes=["cat", "bee", "ant"])
    assert sets != LISTS
    with pytest.raises(TypeError, match="unhashable"):
        hash(sets)


def test_repr():
    assert repr(CandidateSets(LISTS)) == "CandidateSets(3 sets over 3 classes, mean size 2.00)"


@pytest.mark.parametrize("n_classes", [3, 219])
def test_copies_and_pickles_are_equal(n_classes, rng):
    sets = CandidateSets((rng.random((20, n_classes)) < 0.5) | (np.arange(n_classes) == 1))
    for again in (pickle.loads(pickle.dumps(sets)), copy.copy(sets), copy.deepcopy(sets)):
        assert again == sets
        assert again.to_lists() == sets.to_lists()


def test_memory_mapped_sets(tmp_path, rng):
    sets = CandidateSets(rng.random((50, 100)) < 0.5)
    joblib.dump(sets, tmp_path / "sets.joblib")
    mapped = joblib.load(tmp_path / "sets.joblib", mmap_mode="r")
    assert not mapped.words.flags.writeable
    assert mapped == sets
    assert mapped.to_lists() == sets.to_lists()
    assert mapped.audit().ambiguity_degree == sets.audit().ambiguity_degree
    assert mapped[3:5] == sets[3:5]
    assert CandidateSets(mapped, classes=range(100)[::-1]).sizes.tolist() == sets.sizes.tolist()


def test_numpy_sees_the_indicator():
    sets = CandidateSets(LISTS)
    assert np.asarray(sets).dtype == bool
    np.testing.assert_array_equal(np.asarray(sets), INDICATOR.astype(bool))
    np.testing.assert_array_equal(np.asarray(sets, dtype=float), INDICATOR.astype(float))
    np.testing.assert_array_equal(np.array(sets, copy=True), INDICATOR.astype(bool))
    with pytest.raises(ValueError, match="always a copy"):
        np.array(sets, copy=False)


# ------------------------------------------------------------------------------ in scikit-learn


class MostFrequentCandidate(ClassifierMixin, BaseEstimator):
    """Learn which label is most often a candidate."""

    def __init__(self, rank=0):
        self.rank = rank

    def fit(self, X, S):
        assert isinstance(S, CandidateSets)
        assert len(S) == len(X)
        self.classes_ = S.classes
        self.top_ = S.classes[np.argsort(-S.to_indicator().sum(axis=0))[self.rank]]
        return self

    def predict(self, X):
        return np.full(len(X), self.top_)

    def score(self, X, S):
        assert isinstance(S, CandidateSets)
        return S.contains(self.predict(X)).mean()


@pytest.fixture
def thirty():
    """Of 30 sets all hold `bee`, every third `ant`."""
    return CandidateSets([["ant", "bee"] if i % 3 == 0 else ["bee"] for i in range(30)])


def test_rows_are_chosen_by_scikit_learn(thirty):
    for indices in ([4, 0, 2], np.array([4, 0, 2]), np.arange(30) < 5, slice(3, 6)):
        chosen = _safe_indexing(thirty, indices)
        assert isinstance(chosen, CandidateSets)
        assert chosen == thirty[indices]
    assert _safe_indexing(thirty, 3) == frozenset({"ant", "bee"})
    _, _, train, test = train_test_split(np.arange(30), thirty, random_state=0)
    rows_train, rows_test = train_test_split(np.arange(30), random_state=0)
    assert (train, test) == (thirty[rows_train], thirty[rows_test])
    X, shuffled = shuffle(np.arange(30), thirty, random_state=0)
    assert shuffled == thirty[X]


def test_cross_validation(thirty):
    assert type_of_target(thirty) == "multilabel-indicator"
    X = np.zeros((30, 1))
    for train, test in KFold(3).split(X, thirty):
        assert thirty[train].to_lists() == [thirty.to_lists()[i] for i in train]
        assert len(thirty[test]) == 10
    np.testing.assert_array_equal(cross_val_score(MostFrequentCandidate(), X, thirty), np.ones(5))
    assert cross_val_predict(MostFrequentCandidate(), X, thirty).tolist() == ["bee"] * 30
    search = GridSearchCV(MostFrequentCandidate(), {"rank": [0, 1]}, cv=3).fit(X, thirty)
    assert search.best_params_ == {"rank": 0}
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], [1, 1 / 3], atol=0.05)


# ------------------------------------------------------------------------------------- bad input

NOT_0_1 = "an indicator holds 0 and 1, or booleans"


@pytest.mark.parametrize(
    ("S", "message"),
    [
        ([["a"], [], ["b"], []], r"set is empty in row 1 \(2 such rows\); each instance needs"),
        (np.array([[1, 0], [0, 0]]), r"set is empty in row 1 \(the only such row\)"),
        (sp.csr_array([[0, 0], [0, 1], [0, 0]]), r"set is empty in row 0 \(2 such rows\)"),
        (pd.DataFrame({"a": [1, 0], "b": [0, 0]}, index=[5, 6]), r"set is empty in row 1"),
        (np.zeros((3, 0)), r"set is empty in row 0 \(3 such rows\)"),
        (np.zeros((0, 3)), "S holds no rows"),
        ([], "S holds no rows"),
        (np.array([]), "S holds no rows"),
        (sp.csr_array((0, 3)), "S holds no rows"),
        (pd.DataFrame({"a": [], "b": []}), "S holds no rows"),
        (
            np.array([[1, 0], [0, 2], [3, 4]]),
            rf"S holds 2 at row 1, column 1 \(3 such value\(s\) in 2 row\(s\)\); {NOT_0_1}",
        ),
        (np.array([[1, 0], [-1, 1]]), r"S holds -1 at row 1, column 0"),
        (np.array([[1.0, 0.5], [0, 1]]), r"S holds 0.5 at row 0, column 1"),
        (np.array([[1, 0], [0, np.nan]]), r"S holds nan at row 1, column 1 \(1 such value"),
        (np.array([[1, 0], [np.inf, 0]]), r"S holds inf at row 1, column 0"),
        (np.array([[1, None], [0, 1]]), r"S holds None at row 0, column 1"),
        (np.array([["1", "0"], ["0", "1"]]), r"S holds 1 at row 0, column 0 \(4 such"),
        (sp.coo_array([[1, 0], [0, 3]]), r"S holds 3 at row 1, column 1"),
        (sp.csr_array([[1.0, 0], [np.nan, 1]]), r"S holds nan at row 1, column 0"),
        (
            sp.coo_array(([1, 1, 1], ([0, 1, 1], [0, 1, 1])), shape=(2, 2)),
            r"S holds 2 at row 1, column 1",
        ),
        (pd.DataFrame({"a": [1, 0], "b": [0, 7]}), r"S holds 7 at row 1, column 1"),
        (
            pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [0, 1]}),
            r"S holds <NA> at row 1, column 0",
        ),
        (pd.DataFrame({"y": ["a", "b"]}), r"S holds a at row 0, column 0"),
        (pd.DataFrame([[1, 1]], columns=["a", "a"]), r"classes names 'a' more than once"),
        ([0.0, np.nan, 1.0, np.nan], r"the label is missing in row 1 \(2 such rows\)"),
        (["a", None], r"the label is missing in row 1 \(the only such row\)"),
        ([0.0, np.inf, 1.0], r"y contains infinity: no label, in row 1 \(the only such row\)"),
        (pd.Series(["a", pd.NA, "b"]), r"the label is missing in row 1"),
        ([["a"], [None, "b"], [np.nan]], r"a candidate is missing .* in row 1 \(2 such rows\)"),
        ([[1], 2, [3], 4], r"collections of labels with int, in row 1 \(2 such rows\)"),
        ([["a"], "bee"], r"collections of labels with str, in row 1 .*; wrap a single label in"),
        ([["a"], None], r"collections of labels with NoneType, in row 1"),
        ([[1], [[2, 3]]], r"a label is itself a collection in row 1"),
        ([[1], [{2, 3}]], r"a label is itself a collection in row 1"),
        ([[1], ["a"]], r"different types cannot be put in order \(int, str\)"),
        ([1, "a"], r"type of label"),
        (np.array([1, "a"], dtype=object), r"type of label"),
        (np.array(["a", 1], dtype=object), r"type of label"),
        ([0.5, 1.25, 3.1], r"continuous"),
        (np.zeros((2, 2, 2)), r"S has 3 dimension\(s\)"),
        (sp.coo_array(np.array([1, 0, 1])), r"S has 1 dimension\(s\)"),
        ("bee", r"S has 0 dimension\(s\)"),
        (None, r"S has 0 dimension\(s\)"),
        ((row for row in LISTS), r"S has 0 dimension\(s\)"),
    ],
)
def test_bad_sets(S, message):
    with pytest.raises(ValueError, match=message):
        CandidateSets(S)


@pytest.mark.parametrize(
    ("S", "classes", "message"),
    [
        ([["a"], ["b", "z"], ["z"]], ["a", "b"], r"'z' is not in classes, in row 1 \(2 such row"),
        (["a", "z"], ["a", "b"], r"label 'z' is not in classes, in row 1 \(the only such row\)"),
        (np.array([3]), range(3), r"label 3 is not in classes, .*; classes are \[0, 1, 2\]"),
        ([["z"]], range(50), r"classes are \[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\. 50 in all\]"),
        (CandidateSets(LISTS), ["ant", "bee"], r"label 'cat' is not in classes, in row 0 \(2 suc"),
        (INDICATOR, ["a", "b"], r"S has 3 columns but there are 2 classes"),
        (sp.csr_array(INDICATOR), list("abcd"), r"S has 3 columns but there are 4 classes"),
        (
            pd.DataFrame(INDICATOR, columns=["ant", "bee", "dog"]),
            CLASSES,
            r"columns of S do not match classes: not a class: 'dog'; no column for: 'cat'",
        ),
        (pd.DataFrame(INDICATOR, columns=CLASSES), ["ant", "bee"], r"not a class: 'cat'\."),
        (pd.DataFrame(INDICATOR, columns=CLASSES), [*CLASSES, "dog"], r"no column for: 'dog'\."),
        ([["a"]], ["a", "b", "a"], r"classes names 'a' more than once"),
        ([[1]], [1, 2, 2], r"classes names 2 more than once"),
        ([["a"]], ["a", None], r"classes"),
        ([[1.0]], [1.0, np.nan], r"classes\[1\] is missing"),
        ([["a"]], ["a", 1], r"classes mixes strings with other labels"),
        ([["a"]], [["a"], ["b"]], r"classes must be a flat list of labels"),
    ],
)
def test_bad_classes(S, classes, message):
    with pytest.raises(ValueError, match=message):
        CandidateSets(S, classes=classes)

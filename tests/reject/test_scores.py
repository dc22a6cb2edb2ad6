import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

from demur import DstPll, PlKnn, RejectClassifier
from demur.candidates import CandidateSets
from demur.noise import uniform_noise
from demur.reject.scores import draws, fingerprints, out_of_fold


@pytest.fixture
def noisy(rng):
    y = rng.integers(4, size=120)
    X = rng.normal(size=(120, 2)) + 1.5 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[y]
    return X, y, uniform_noise(y, random_state=0)


@pytest.mark.parametrize("method", [DstPll(random_state=0), PlKnn()])
def test_leaving_one_out_is_a_fit_without_it(noisy, method):
    """With the full frame: a prediction may lie outside the instance's own set."""
    X, _, sets = noisy
    held_out = out_of_fold(method, clone(method).fit(X, sets), X, sets)
    for i in range(0, 120, 7):
        rest = np.delete(np.arange(120), i)
        judged = clone(method).fit(X[rest], sets[rest]).judge(X[[i]])
        assert judged.accept[0] == pytest.approx(held_out.accept[i])
        assert judged.proba[0] == pytest.approx(held_out.proba[i])
    assert 0 < held_out.outside.mean() < 0.5


def test_own_frame_would_never_leave_the_set(noisy):
    X, _, sets = noisy
    fitted = DstPll(random_state=0).fit(X, sets)
    assert sets.contains(fitted.transduction_).all()
    assert not sets.contains(fitted.classes_[fitted.judge_left_out().top]).all()


class Watch(PlKnn):
    """Tells which rows each fit saw; the first feature names the row."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y):
        Watch.seen.append(set(np.asarray(X)[:, 0].tolist()))
        return super().fit(X, y)


def test_folds_hold_out_every_row_once_and_groups_together(noisy):
    X, _, sets = noisy
    X = np.column_stack([np.arange(120.0), X])
    groups = np.arange(120) // 4
    Watch.seen = []
    model = RejectClassifier(Watch(), coverage=0.5, cv=6, random_state=0)
    model.fit(X, sets, groups=groups)
    assert len(Watch.seen) == 7  # the whole, and six folds
    for rows in Watch.seen[1:]:
        inside = {groups[int(r)] for r in rows}
        assert len(rows) == 4 * len(inside)  # groups come whole
    left = [set(range(120)) - {int(r) for r in rows} for rows in Watch.seen[1:]]
    assert sorted(r for rows in left for r in rows) == list(range(120))


@pytest.mark.parametrize("splitter", [KFold(4), GroupKFold(4)])
def test_splitters_are_used_as_given(noisy, splitter):
    X, _, sets = noisy
    groups = np.arange(120) % 10 if isinstance(splitter, GroupKFold) else None
    learner = PlKnn()
    found = out_of_fold(learner, clone(learner).fit(X, sets), X, sets, cv=splitter, groups=groups)
    for train, test in splitter.split(X, None, groups):
        by_hand = clone(learner).fit(X[train], sets[train]).judge(X[test])
        assert found.accept[test] == pytest.approx(by_hand.accept)


@pytest.mark.parametrize(
    ("cv", "groups", "message"),
    [
        (1, True, "cv must be a number of folds, 2 or more"),
        ("five", True, "cv must be a number of folds"),
        (True, True, "cv must be a number of folds"),
        (40, True, "cv asks for 40 folds, but there are only 30 groups"),
        (ShuffleSplit(2), False, r"cv leaves out \d+ of 120 instances"),
    ],
)
def test_bad_folds(noisy, cv, groups, message):
    X, _, sets = noisy
    with pytest.raises(ValueError, match=message):
        RejectClassifier(PlKnn(), coverage=0.5, cv=cv).fit(
            X, sets, groups=np.arange(120) // 4 if groups else None
        )


def test_fingerprints_tell_rows_by_their_values_alone(rng):
    X = rng.integers(0, 2, size=(300, 3)).astype(float)
    same = (X[:, None] == X[None]).all(axis=2)
    prints = fingerprints(X)
    assert np.array_equal(prints[:, None] == prints[None], same)
    assert np.array_equal(prints, fingerprints(sp.csr_matrix(X)))
    assert np.array_equal(prints, fingerprints(X.astype(np.int8)))
    assert np.array_equal(prints, fingerprints(X.tolist()))
    assert np.array_equal(prints[5:9], fingerprints(X[5:9]))
    assert fingerprints([[-0.0]]) == fingerprints([[0.0]])
    mixed = np.array([["a", 1.0], ["b", 1.0], ["a", 1.0]], dtype=object)
    assert len(set(fingerprints(mixed).tolist())) == 2


def test_draws_are_even_and_differ_by_seed(rng):
    prints = fingerprints(rng.normal(size=(4000, 1)))
    first, second = draws(prints, 1), draws(prints, 2)
    counts = np.histogram(first, 10, (0, 1))[0]
    assert ((counts - 400) ** 2 / 400).sum() < 27.9  # chi-squared with 9: a chance of 0.1 %
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.06
    assert np.array_equal(first, draws(prints, 1))


def test_sets_of_a_fold_keep_all_classes():
    X = np.arange(12.0)[:, None]
    sets = CandidateSets([[0], [1]] * 5 + [[2], [0, 2]])
    found = RejectClassifier(PlKnn(n_neighbors=2), cost=0.2, cv=KFold(6)).fit(X, sets)
    assert found.out_of_fold_.proba.shape == (12, 3)

"""Numbers of neighbours and what neighbourhoods hold, against brute force."""

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef
from sklearn.model_selection import KFold
from sklearn.preprocessing import MinMaxScaler

from demur import CandidateSets, DstPll, PlKnn
from demur.bench.neighborhoods import k_sensitivity, neighbor_candidates
from demur.noise import uniform_noise


@pytest.fixture
def data(rng):
    """Three overlapping clouds, in columns of very different scale, with noisy candidates."""
    y = np.repeat(["a", "b", "c"], [50, 40, 30])
    centre = np.repeat([0.0, 2.0, 4.0], [50, 40, 30])
    X = np.column_stack([centre + rng.normal(size=120), 1000 * (centre + rng.normal(size=120))])
    return X, uniform_noise(y, share=0.6, n_noise=1, random_state=0), y


@pytest.mark.parametrize(("name", "estimator"), [("dst-pll", DstPll), ("pl-knn", PlKnn)])
def test_k_sensitivity_is_what_a_cross_validation_by_hand_gives(data, name, estimator):
    X, sets, y = data
    found = k_sensitivity(X, sets, y, [7, 3], method=name, n_folds=4, seed=5)
    assert found.ks.tolist() == [7, 3]
    assert found.mcc.shape == found.accepted.shape == found.mcc_accepted.shape == (2, 4)
    for fold, (train, test) in enumerate(KFold(4, shuffle=True, random_state=5).split(X)):
        scaler = MinMaxScaler().fit(X[train])
        for row, k in enumerate((7, 3)):
            model = estimator(n_neighbors=k)
            if name == "dst-pll":
                model.set_params(random_state=5)
            model.fit(scaler.transform(X[train]), sets[train])
            decided = model.decide(scaler.transform(X[test]))
            kept = ~np.ma.getmaskarray(decided)
            whole = matthews_corrcoef(y[test], model.predict(scaler.transform(X[test])))
            assert found.mcc[row, fold] == pytest.approx(whole)
            assert found.accepted[row, fold] == pytest.approx(kept.mean())
            part = matthews_corrcoef(y[test][kept], decided.compressed())
            assert found.mcc_accepted[row, fold] == pytest.approx(part)
    assert 0.3 < found.mcc.mean() < 1.0  # the task is neither hopeless nor trivial


def test_k_sensitivity_is_nan_where_nothing_is_to_be_correlated(data):
    X, sets, y = data
    found = k_sensitivity(X, sets, y, [1, 10])
    # One neighbour never gives more than half the mass to a label, so nothing is accepted.
    assert (found.accepted[0] == 0.0).all()
    assert np.isnan(found.mcc_accepted[0]).all()
    assert not np.isnan(found.mcc).any()
    assert np.isfinite(found.mcc_accepted[1]).sum() >= 3


def test_folds_do_not_depend_on_the_other_ks(data):
    both = k_sensitivity(*data, [3, 9])
    alone = k_sensitivity(*data, [9])
    for name in ("mcc", "accepted", "mcc_accepted"):
        np.testing.assert_array_equal(getattr(both, name)[1], getattr(alone, name)[0])


def test_neighbor_candidates_by_brute_force(data):
    X, sets, y = data
    found = neighbor_candidates(X, sets, y, n_neighbors=4)
    scaled = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    away = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    np.fill_diagonal(away, np.inf)
    expected = np.zeros((3, 3), dtype=int)
    held = sets.to_indicator()
    for i, label in enumerate(y):
        for j in np.argsort(away[i], kind="stable")[:4]:
            expected["abc".index(label)] += held[j]
    np.testing.assert_array_equal(found.counts, expected)
    assert found.classes.tolist() == ["a", "b", "c"]
    assert found.n_pairs.tolist() == [200, 160, 120]
    np.testing.assert_allclose(found.shares, expected / [[200], [160], [120]])


def test_a_class_without_instances_has_no_shares():
    X = np.arange(5.0)[:, None]
    sets = CandidateSets([["a", "b"], ["a"], ["a"], ["a", "c"], ["c"]])
    found = neighbor_candidates(X, sets, ["a", "a", "a", "a", "c"], n_neighbors=2)
    assert found.n_pairs.tolist() == [8, 0, 2]
    assert np.isnan(found.shares[1]).all()
    assert found.shares[2].tolist() == [1.0, 0.0, 0.5]  # the neighbours are 3 and 2


def test_bad_input(data):
    X, sets, y = data
    with pytest.raises(ValueError, match="ks is empty"):
        k_sensitivity(X, sets, y, [])
    with pytest.raises(ValueError, match="pl-svm has no parameter n_neighbors"):
        k_sensitivity(X, sets, y, method="pl-svm")
    with pytest.raises(ValueError, match=r"a training part has 96 .* k may be 95 at most"):
        k_sensitivity(X, sets, y, [3, 96])
    with pytest.raises(ValueError, match="X has 119 rows, there are 120 candidate sets"):
        neighbor_candidates(X[1:], sets, y)
    with pytest.raises(ValueError, match="y holds 'z', which is none of the classes"):
        neighbor_candidates(X, sets, ["z", *y[1:]])

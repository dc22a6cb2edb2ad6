import warnings
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from demur import RejectClassifier
from demur.reject.coverage import cut_for_coverage


def accepted(cut, score):
    """Chance that a new score is accepted."""
    if score == cut.threshold:
        return Fraction(cut.tied_share).limit_denominator(10_000)
    return Fraction(int(score > cut.threshold))


@pytest.mark.parametrize(
    "pool", [[1, 2, 3, 4, 5, 6], [1, 1, 1, 2, 2, 3], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 9]]
)
def test_expected_coverage_is_exact_whatever_the_scores(pool):
    """Of n + 1 exchangeable scores each is as likely the new one: the mean is within 1/(n + 1)."""
    n = len(pool) - 1
    for coverage in (0.05, 0.2, 0.5, 0.77, 0.9, 1.0):
        total = Fraction(0)
        for new in range(n + 1):
            known = np.array([float(s) for i, s in enumerate(pool) if i != new])
            cut = cut_for_coverage(known, coverage)
            total += accepted(cut, pool[new])
        mean = total / (n + 1)
        assert float(mean) == pytest.approx(cut.expected, abs=1e-6)
        assert abs(float(mean) - coverage) <= 1 / (n + 1) + 1e-9


def test_order_does_not_matter():
    cuts = {cut_for_coverage(np.array(p), 0.6) for p in permutations([0.1, 0.4, 0.4, 0.9])}
    assert len(cuts) == 1


def test_whole_takes_or_leaves_a_step_whichever_is_nearer():
    scores = np.repeat([0.0, 0.5, 1.0], [2, 6, 2])
    for coverage, share, threshold in ((0.7, 0.8, 0.0), (0.4, 0.2, 0.5), (0.9, 0.8, 0.0)):
        cut = cut_for_coverage(scores, coverage, ties="whole")
        assert ((scores > cut.threshold).mean(), cut.threshold) == (share, threshold)
        assert cut.expected == pytest.approx(share)
        assert cut.tied_share == 0
    everything = cut_for_coverage(np.repeat([0.5, 1.0], [9, 1]), 0.9, ties="whole")
    assert everything.threshold == -np.inf


def test_fresh_batch_gives_the_coverage_on_new_instances(told, draw):
    """On average over batches; the tolerance is four standard errors."""
    shares = []
    for seed in range(60):
        model = RejectClassifier(FrozenEstimator(told.fit(None, np.arange(3))), coverage=0.7)
        model.fit(draw(39, seed).X)
        shares.append(1 - model.decide(draw(400, seed, first=1000).X).mask.mean())
    assert np.mean(shares) == pytest.approx(0.7, abs=4 * np.std(shares) / 60**0.5)
    assert np.std(shares) < 0.1
    assert model.promise_.holds
    assert "within 1/(39 + 1)" in str(model.promise_)


def test_tied_scores_are_drawn_by_seed_and_keep_the_coverage(told, draw):
    sample, fresh = draw(400), draw(4000, first=10_000)
    for X in (sample.X, fresh.X):
        X[:, 1] = np.round(X[:, 1], 1)
    model = RejectClassifier(told, coverage=0.55, random_state=3)
    with pytest.warns(UserWarning, match="equal the threshold .* drawn by chance"):
        model.fit(sample.X, sample.S)
    with pytest.warns(UserWarning, match="drawn by chance"):
        model.calibrate(fresh.X[:2000])
    taken = ~model.decide(fresh.X[2000:]).mask
    assert taken.mean() == pytest.approx(0.55, abs=0.04)  # three standard errors
    step = fresh.X[2000:, 1] == model.accept_threshold_
    assert 0.02 < taken[step].mean() < 0.98
    assert np.array_equal(taken, ~model.decide(fresh.X[2000:]).mask)
    assert np.array_equal(taken, model.accept_score(fresh.X[2000:]) > model.accept_threshold_)
    assert "drawn by seed" in str(model.promise_)


def test_tied_scores_taken_whole(told, draw):
    sample = draw(400)
    sample.X[:, 1] = np.round(sample.X[:, 1], 1)
    model = RejectClassifier(told, coverage=0.55, ties="whole")
    with pytest.warns(UserWarning, match=r"taken or left as a whole, so that \d+\.\d% is"):
        model.fit(sample.X, sample.S)
    taken = ~model.decide(sample.X).mask
    for score in np.unique(sample.X[:, 1]):
        assert len(np.unique(taken[sample.X[:, 1] == score])) == 1
    assert taken.mean() == pytest.approx(model.promise_.coverage)
    assert not model.promise_.holds


def test_no_warning_without_a_large_step(told, draw):
    sample = draw(400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RejectClassifier(told, coverage=0.5).fit(sample.X, sample.S)


def test_only_a_fresh_batch_guarantees(told, draw):
    sample = draw(300)
    model = RejectClassifier(told, coverage=0.8).fit(sample.X, sample.S)
    assert not model.promise_.holds
    assert "calibrate(X)" in model.promise_.statement
    model.calibrate(draw(200, first=5000).X)
    assert model.promise_.holds
    with pytest.raises(ValueError, match="used in fit.*; their scores are higher"):
        model.calibrate(sample.X[:50])
    with pytest.raises(ValueError, match="X is empty"):
        model.calibrate(sample.X[:0])
    with pytest.raises(ValueError, match="this model's dial is another"):
        RejectClassifier(told, cost=0.1).fit(sample.X, sample.S).calibrate(sample.X)

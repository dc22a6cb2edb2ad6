import numpy as np
import pytest

from demur import RejectClassifier
from demur.reject import least_gold


def test_bound_by_a_declared_ambiguity_is_named_conditional(told, draw):
    sample = draw(3000, low=0.8, extra=0.1)
    model = RejectClassifier(told, max_risk=0.1, ambiguity=0.4).fit(sample.X, sample.S)
    assert model.promise_.holds
    assert "conditional" in model.promise_.kind
    assert "conditional on ambiguity 0.4" in model.promise_.statement
    assert all("conditional" in line or "also on" in line for line in model.promise_.rests_on)
    kept = model.out_of_fold_.accept > model.accept_threshold_
    share = model.out_of_fold_.outside[kept].mean()
    assert share / (1 - 0.4) <= 0.1
    # One stricter test passed, and the exact binomial of the last says why.
    last = model.tests_.passed - 1
    assert model.tests_.p_values[last] <= 0.05
    assert model.tests_.errors[last] == model.out_of_fold_.outside[kept].sum()
    assert f"{share:.1%} / (1 - 0.4) = {share / 0.6:.1%}" in str(model.promise_)
    # It is true here: extra candidates come with 0.1, so gamma is about 0.1.
    assert np.mean(model.out_of_fold_.top[kept] != sample.y[kept]) <= 0.1


def test_more_ambiguity_accepts_less_and_failure_is_conditional_too(told, draw):
    sample = draw(1500, low=0.8, extra=0.1)
    shares = [
        RejectClassifier(told, max_risk=0.1, ambiguity=a).fit(sample.X, sample.S).promise_.coverage
        for a in (0, 0.3, 0.6)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1]
    none = RejectClassifier(told, max_risk=0.01, ambiguity=0.9).fit(sample.X, sample.S)
    assert none.decide(sample.X).mask.all()
    assert not none.promise_.holds
    assert "conditional" in str(none.promise_)
    assert least_gold(0.001) > 1500


def test_gold_does_not_go_with_ambiguity(told, draw):
    sample = draw(300)
    model = RejectClassifier(told, max_risk=0.1, ambiguity=0.5).fit(sample.X, sample.S)
    with pytest.raises(ValueError, match="but ambiguity is declared"):
        model.certify(sample.X, sample.y)
    with pytest.raises(ValueError, match="but ambiguity is declared"):
        model.plan(n_gold=100)


@pytest.mark.parametrize("value", [1, 1.5, -0.1, "half", True])
def test_ambiguity_out_of_range(told, draw, value):
    with pytest.raises(ValueError, match="ambiguity must be"):
        RejectClassifier(told, max_risk=0.1, ambiguity=value).fit(*draw(100)[::2])


def test_ambiguity_goes_with_max_risk_only(told, draw):
    with pytest.raises(ValueError, match="ambiguity goes with max_risk, not with cost"):
        RejectClassifier(told, cost=0.1, ambiguity=0.5).fit(*draw(100)[::2])

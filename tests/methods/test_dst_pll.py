import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur import CandidateSets, DstPll, MassFunction

# A line of training points that a query at 0 sees in the order of its neighbours' sets.


def fitted(sets, classes, **parameters):
    """A model whose neighbours of [0] have exactly these candidates."""
    X = np.arange(1.0, len(sets) + 1)[:, None]
    parameters = {"n_neighbors": len(sets)} | parameters
    with pytest.warns(UserWarning, match="training instances"):
        return DstPll(**parameters).fit(X, CandidateSets(sets, classes=classes))


ZERO = np.zeros((1, 1))


def test_the_example_of_the_text():
    model = fitted([[1], [1, 2], [1, 3]], [1, 2, 3])
    evidence = model.evidence(ZERO)
    assert evidence.belief.tolist() == [[5 / 8, 0, 0]]
    assert evidence.plausibility.tolist() == [[1, 1 / 4, 1 / 4]]
    assert evidence.conflict.tolist() == [0]
    assert evidence.ignorance.tolist() == [1 / 8]
    assert evidence.top_set.tolist() == [[True, False, False]]
    assert evidence.top_mass.tolist() == [5 / 8]
    assert model.accept_score(ZERO).tolist() == [3 / 8]
    assert model.decide(ZERO).tolist() == [1]
    assert model.predict_proba(ZERO).tolist() == [[1, 0, 0]]


def test_the_counter_example_of_the_proof():
    """An accepted prediction need not have over half of the mass."""
    mass = MassFunction({(1,): 0.4, (1, 2): 0.3, (1, 3): 0.3})
    delta = mass.bel({1}) - max(mass.pl({2}), mass.pl({3}))
    assert delta == pytest.approx(0.1)
    assert mass({1}) < 1 / 2
    # The method itself meets such a case with weaker evidence.
    model = fitted([[1, 2], [1, 3], [1, 2], [1, 3]], [1, 2, 3], alpha=0.6)
    evidence = model.evidence(ZERO)
    assert model.accept_score(ZERO)[0] > 0
    assert evidence.belief[0, 0] < 1 / 2


neighbor_sets = st.integers(3, 6).flatmap(
    lambda l: st.tuples(
        st.just(l),
        st.lists(st.sets(st.integers(0, l - 1), min_size=1), min_size=2, max_size=12),
        st.sampled_from([0.3, 0.5, 0.8]),
    )
)


@settings(max_examples=200, deadline=None)
@given(neighbor_sets)
def test_theorem_1(drawn):
    l, sets, alpha = drawn
    model = fitted(sets, range(l), alpha=alpha, random_state=0)
    evidence, judged = model.evidence(ZERO), model.judge(ZERO)
    belief, plausibility = evidence.belief[0], evidence.plausibility[0]
    top, delta = judged.top[0], judged.accept[0]
    others = np.delete(plausibility, top)
    assert delta == belief[top] - others.max()
    if belief.max() == 0:  # (i): picked at random
        assert delta <= 0
        assert evidence.top_set[0, top]
    else:
        assert belief[top] == belief.max()
    if delta > 0:  # (ii): whatever measure lies between the bounds, the prediction leads
        assert (belief[top] > others).all()
    if belief[top] > 1 / 2:  # (iii)
        assert delta > 0
    # probabilities are the masses of the single labels, or even over the heaviest set
    expected = belief if belief.max() > 0 else evidence.top_set[0].astype(float)
    np.testing.assert_allclose(judged.proba[0], expected / expected.sum(), rtol=1e-14)


def test_a_tie_is_never_accepted():
    for seed in range(5):
        even = fitted([["a"], ["b"]], ["a", "b", "c"], random_state=seed)
        assert even.evidence(ZERO).belief.tolist() == [[1 / 4, 1 / 4, 0]]
        assert even.accept_score(ZERO)[0] < 0


def test_a_tie_goes_to_the_more_plausible_label():
    rng = np.random.default_rng(0)
    found = 0
    while found < 5:
        rows = rng.random((6, 5)) < 0.4
        rows[np.arange(6), rng.integers(5, size=6)] = True
        evidence = fitted([np.flatnonzero(row).tolist() for row in rows], range(5)).evidence(ZERO)
        belief, plausibility = evidence.belief[0], evidence.plausibility[0]
        best = np.flatnonzero((belief == belief.max()) & (belief > 0))
        likely = best[plausibility[best] == plausibility[best].max()] if len(best) else best
        if len(likely) == 1 and len(best) > 1:
            found += 1
            for seed in range(4):
                model = fitted(
                    [np.flatnonzero(row).tolist() for row in rows], range(5), random_state=seed
                )
                assert model.judge(ZERO).top.tolist() == likely.tolist()
                assert model.predict_proba(ZERO).argmax() == likely[0]


def test_draws_are_even_and_depend_on_seed_and_instance_only(rng):
    X = rng.normal(size=(4000, 3))
    S = np.zeros((4000, 5), dtype=bool)
    S[:, 1:4] = True  # every neighbour says the same three: nothing tells them apart
    model = DstPll(random_state=0).fit(X, S)
    new = rng.normal(size=(3000, 3))
    drawn = model.predict(new)
    assert set(drawn) == {1, 2, 3}
    # three standard deviations of a fair draw
    assert (np.abs(np.bincount(drawn)[1:] - 1000) < 3 * np.sqrt(3000 * 2 / 9)).all()
    np.testing.assert_array_equal(model.predict(new[1234:1240]), drawn[1234:1240])
    np.testing.assert_array_equal(model.predict(new[::-1]), drawn[::-1])
    again = DstPll(random_state=0).fit(X, S)
    np.testing.assert_array_equal(again.predict(new), drawn)
    other = DstPll(random_state=1).fit(X, S)
    assert (other.predict(new) != drawn).mean() > 0.5
    np.testing.assert_array_equal(model.predict(0.0 * new), model.predict(-0.0 * new))


def test_no_neighbour_tells_anything():
    model = fitted([[0, 1, 2]] * 3, range(3), random_state=0)
    evidence = model.evidence(ZERO)
    assert evidence.ignorance.tolist() == [1]
    assert evidence.top_set.tolist() == [[True, True, True]]
    assert model.accept_score(ZERO).tolist() == [-1]
    np.testing.assert_allclose(model.predict_proba(ZERO), 1 / 3)
    assert "no neighbour tells any labels apart" in str(model.explain(ZERO))


def test_training_labels_use_the_own_candidates_as_frame():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    # the nearest of the first says {b}, which its own set rules out; the next says a
    model = DstPll(n_neighbors=3).fit(X, [["a", "c"], ["b"], ["a", "b"], ["a", "b", "c"]])
    assert model.transduction_.tolist()[:2] == ["a", "b"]
    assert "_transduced" not in vars(model.fit(X, [["a", "c"], ["b"], ["a", "b"], ["a", "b"]]))


def test_frames_of_one_label_are_certain():
    X = np.arange(6.0)[:, None]
    model = DstPll(n_neighbors=3).fit(X, [[0], [1], [0, 2], [2], [1], [2]])
    judged = model._decide_by(
        X[:1], model._combine(X[:1], top_sets=True)
    )  # the full frame, for contrast
    assert judged.accept[0] < 1
    assert model.transduction_[[0, 1, 3, 4, 5]].tolist() == [0, 1, 2, 1, 2]


@pytest.mark.parametrize("algorithm", ["kd_tree", "brute"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ties_in_distance_give_the_same_model_on_every_path(rng, algorithm, n_jobs):
    X = rng.integers(0, 3, size=(600, 7)).astype(float)
    S = rng.random((600, 6)) < 0.4
    S[np.arange(600), rng.integers(6, size=600)] = True
    expected = DstPll(random_state=0).fit(X, S)
    model = DstPll(random_state=0, algorithm=algorithm, n_jobs=n_jobs).fit(X, S)
    np.testing.assert_array_equal(model.accept_score(X), expected.accept_score(X))
    np.testing.assert_array_equal(model.transduction_, expected.transduction_)


# --------------------------------------------------------------------------- explanations


def test_explains_an_accepted_prediction():
    model = fitted([["cat"], ["cat", "dog"], ["cat", "emu"]], ["cat", "dog", "emu"])
    why = model.explain([0.0])
    assert why.accepted
    assert (why.prediction, why.accept_score) == ("cat", 3 / 8)
    assert [n.candidates for n in why.neighbors] == [["cat"], ["cat", "dog"], ["cat", "emu"]]
    assert [n.row for n in why.neighbors] == [0, 1, 2]
    assert [n.distance for n in why.neighbors] == [1, 2, 3]
    masses = {tuple(labels): mass for labels, mass in why.focal_sets}
    assert masses == {
        ("cat",): 5 / 8, ("cat", "dog"): 1 / 8, ("cat", "emu"): 1 / 8, ("cat", "dog", "emu"): 1 / 8,
    }  # fmt: skip
    text = str(why)
    assert text.startswith("Accepted as cat: its probability is at least 0.625")
    assert "Delta = 0.625 - 0.250 = +0.375" in text
    assert "{cat, dog}" in text


def test_names_the_reason_for_demurring():
    close = fitted([["a"], ["a", "b"]], ["a", "b", "c"]).explain(ZERO)
    assert close.reason.endswith("the two are too close.")
    assert close.rival == "b"
    conflict = fitted([["a"], ["a"], ["b"], ["c"]], ["a", "b", "c"]).explain(ZERO)
    assert "contradict each other (conflict 0.625)" in conflict.reason
    vague = fitted([["a", "b"], ["a", "b"]], ["a", "b", "c"]).explain(ZERO)
    assert "never single out one label" in vague.reason
    assert not any(why.accepted for why in (close, conflict, vague))


def test_explains_in_html_without_letting_labels_in():
    html = fitted([["<b>"], ["<b>", "c&d"]], ["<b>", "c&d"]).explain(ZERO)._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert "c&amp;d" in html
    assert html.count("<table>") == 3


def test_explains_data_frames_and_one_instance_only(rng):
    import pandas as pd

    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["u", "v"])
    model = DstPll().fit(X, rng.integers(3, size=30))
    assert str(model.explain(X[3:4])) == str(model.explain(X[3:4]))
    with pytest.raises(ValueError, match="one instance at a time; got 2"):
        model.explain(X[:2])


# --------------------------------------------------------------------------- bad parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number, 1 or more; got 0"),
        ({"n_neighbors": -3}, "n_neighbors must be a whole number, 1 or more; got -3"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a whole number, 1 or more; got 2.5"),
        ({"n_neighbors": 65}, "n_neighbors must be at most 64, .* got 65"),
        ({"alpha": 0}, "alpha must lie between 0 and 1, both excluded; got 0"),
        ({"alpha": 1.0}, "alpha must lie between 0 and 1, both excluded; got 1.0"),
        ({"alpha": np.nan}, "alpha must be a number; got nan"),
        ({"metric": "cosine"}, "metric must be one of .* got 'cosine'"),
        ({"algorithm": "magic"}, "algorithm must be one of .* got 'magic'"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_parameters_that_make_no_sense(rng, parameters, message):
    X, y = rng.normal(size=(80, 2)), rng.integers(3, size=80)
    with pytest.raises(ValueError, match=message):
        DstPll(**parameters).fit(X, y).predict(X)


def test_few_training_instances_are_used_and_warned_of_once(rng):
    X, y = rng.normal(size=(6, 2)), np.array([0, 0, 1, 1, 2, 2])
    with pytest.warns(UserWarning, match="only 6 training instances") as caught:
        model = DstPll().fit(X, y)
    assert len(caught) == 1
    assert len(model.explain(X[0]).neighbors) == 6
    assert model.predict(X).shape == (6,)  # and no further warning, which would be an error

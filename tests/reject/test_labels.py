import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from demur import CandidateSets, RejectClassifier
from demur.reject import LabelClassifier


@pytest.fixture
def clouds(rng):
    """Three clouds; every fourth label is alone, the rest have one more candidate."""
    y = rng.integers(3, size=240)
    X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])[y] + rng.normal(size=(240, 2))
    S = np.eye(3, dtype=bool)[y]
    more = np.arange(240) % 4 > 0
    S[more, (y[more] + rng.integers(1, 3, size=more.sum())) % 3] = True
    return X, y, S


def majority_by_brute_force(X, S):
    chosen = []
    for i in range(len(X)):
        distance = np.linalg.norm(X - X[i], axis=1)
        distance[i] = np.inf
        votes = S[np.argsort(distance, kind="stable")[:10]].sum(axis=0)
        chosen.append(max(np.flatnonzero(S[i]), key=lambda j: (votes[j], -j)))
    return np.asarray(chosen)


def test_majority_label_is_that_of_the_neighbours(clouds):
    X, y, S = clouds
    model = LabelClassifier(KNeighborsClassifier(1)).fit(X, S)
    expected = majority_by_brute_force(X, S)
    assert np.array_equal(model.predict(X), expected)  # one neighbour: what it was trained on
    assert np.mean(expected == y) > 0.9
    small = LabelClassifier(KNeighborsClassifier(1)).fit(X[:4], S[:4])
    assert len(small.predict(X)) == 240


def test_first_label(clouds):
    X, _, S = clouds
    model = LabelClassifier(KNeighborsClassifier(1), labels="first").fit(X, S)
    assert np.array_equal(model.predict(X), S.argmax(axis=1))


def test_expand_weighs_every_candidate(clouds):
    X, _, S = clouds
    rows, columns = np.nonzero(S)
    by_hand = LogisticRegression().fit(X[rows], columns, sample_weight=1 / S.sum(axis=1)[rows])
    model = LabelClassifier(LogisticRegression(), labels="expand").fit(X, S)
    assert model.predict_proba(X) == pytest.approx(by_hand.predict_proba(X))
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    inside = LabelClassifier(make_pipeline(scaled), labels="expand").fit(X, S)
    assert np.mean(inside.predict(X) == model.predict(X)) > 0.95
    with pytest.raises(ValueError, match=r"KNeighborsClassifier.fit takes no sample_weight"):
        LabelClassifier(KNeighborsClassifier(), labels="expand").fit(X, S)


def test_own_labels_must_be_candidates(clouds):
    X, y, S = clouds
    seen = []

    def look_up(X, sets):
        seen.append(len(sets))
        return sets.classes[sets.to_indicator().argmax(axis=1)]

    model = RejectClassifier(LogisticRegression(), coverage=0.7, labels=look_up, cv=3).fit(X, S)
    assert seen == [240, 160, 160, 160]
    assert model.n_features_in_ == 2
    with pytest.raises(ValueError, match="labels.. gave .* for row 0, which is not one of its"):
        LabelClassifier(LogisticRegression(), labels=lambda X, s: (y + 1) % 3).fit(X, np.eye(3)[y])
    with pytest.raises(ValueError, match="labels must be one of 'majority', 'first', 'expand'"):
        LabelClassifier(LogisticRegression(), labels="last").fit(X, S)


def test_a_class_that_is_never_trained_on_gets_no_probability():
    X = [[0.0], [0.1], [1.0], [1.1]]
    sets = CandidateSets([["a"], ["a", "c"], ["b"], ["b", "c"]])
    model = LabelClassifier(LogisticRegression(), labels="first").fit(X, sets)
    assert model.classes_.tolist() == ["a", "b", "c"]
    proba = model.predict_proba(X)
    assert np.all(proba[:, 2] == 0)
    assert proba.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("classes", [2, 3])
def test_margins_serve_where_there_are_no_probabilities(clouds, classes):
    X, _, S = clouds
    S = S[:, :classes]
    X, S = X[S.any(axis=1)], S[S.any(axis=1)]
    model = LabelClassifier(LinearSVC()).fit(X, S)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1)
    assert np.array_equal(model.predict(X), model.estimator_.predict(X))
    LabelClassifier(Perceptron()).fit(X, S).predict_proba(X)


def test_a_classifier_that_gives_no_scores_is_refused(clouds):
    class Silent(LogisticRegression):
        predict_proba = property()
        decision_function = property()

    X, _, S = clouds
    with pytest.raises(ValueError, match="Silent has neither predict_proba nor decision_function"):
        LabelClassifier(Silent()).fit(X, S).predict(X)


def test_majority_needs_numbers():
    X = np.array([["red"], ["green"], ["blue"]], dtype=object)
    with pytest.raises(ValueError, match="labels='majority' compares features, but X does not"):
        LabelClassifier(LogisticRegression()).fit(X, [[0], [1], [0, 1]])

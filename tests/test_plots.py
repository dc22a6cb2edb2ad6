"""The trade-off display: its numbers, the artists made of them, and what it imports."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from demur.base import Judgement, PartialLabelClassifier
from demur.metrics import accepted_accuracy, coverage
from demur.plots import DialDisplay, GoldDisplay, TradeOffDisplay
from demur.reject import RejectClassifier, least_gold

mpl.use("agg")
import matplotlib.pyplot as plt


class FirstFeature(PartialLabelClassifier):
    """Predicts the sign of the first feature; how far it is from 0 says how safe that is."""

    def _fit(self, X, sets):
        self.accept_threshold_ = 0.5

    def _judge(self, X):
        top = (X[:, 0] > 0).astype(np.intp)
        return Judgement(top, np.eye(2)[top], np.abs(X[:, 0]))

    def _transduce(self):
        return np.zeros(1, dtype=np.intp)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def predictions(rng):
    """True labels, predictions, and scores of which a safe one is more often right."""
    score = rng.random(2000)
    y_true = rng.integers(3, size=2000)
    right = rng.random(2000) < 0.6 + 0.4 * score
    return y_true, np.where(right, y_true, (y_true + 1) % 3), score


@pytest.fixture
def few():
    """Six instances of four scores: the curve can be worked out by hand."""
    return ["a", "a", "b", "b", "b", "a"], ["a", "a", "b", "a", "b", "b"], [9, 7, 7, 4, 4, 1]


def test_numbers_by_hand(few):
    display = TradeOffDisplay.from_predictions(*few, threshold=4, min_accepted=1)
    np.testing.assert_allclose(display.rejected, [0, 1 / 6, 3 / 6, 5 / 6])
    np.testing.assert_allclose(display.accuracy, [4 / 6, 4 / 5, 1, 1])
    np.testing.assert_array_equal(display.thresholds, [-np.inf, 1, 4, 7])
    assert display.n_instances == 6
    assert display.operating_point == (0.5, 1.0)  # a score of 4 is not over 4
    np.testing.assert_array_equal(display.line_.get_xdata(), display.rejected)
    np.testing.assert_array_equal(display.line_.get_ydata(), display.accuracy)
    assert display.line_.get_markevery() == [2]


@pytest.mark.parametrize(
    ("threshold", "rejected"), [(-1, 0), (1, 1 / 6), (3.9, 1 / 6), (8.9, 5 / 6)]
)
def test_operating_point_of_any_threshold(few, threshold, rejected):
    display = TradeOffDisplay.from_predictions(*few, threshold=threshold)
    y_true, y_pred, score = map(np.array, few)
    x, y = display.operating_point
    assert x == pytest.approx(rejected)
    assert y == pytest.approx(accepted_accuracy(y_true, y_pred, score > threshold))
    (marked,) = display.line_.get_markevery()
    assert (display.line_.get_xdata()[marked], display.line_.get_ydata()[marked]) == (x, y)


def test_no_marker_without_an_operating_point(few):
    assert TradeOffDisplay.from_predictions(*few).operating_point is None
    all_rejected = TradeOffDisplay.from_predictions(*few, threshold=9, name="shy")
    assert all_rejected.operating_point == (1.0, pytest.approx(np.nan, nan_ok=True))
    assert all_rejected.line_.get_marker() == "None"
    assert all_rejected.ax_.get_legend().get_title().get_text() == ""


def test_line_ends_where_few_are_accepted(predictions):
    y_true, y_pred, score = predictions
    display = TradeOffDisplay.from_predictions(y_true, y_pred, score, min_accepted=50)
    x, y = display.line_.get_data()
    assert x[0] == 0
    assert y[0] == pytest.approx(accuracy_score(y_true, y_pred))
    safest = np.argsort(-score)[:50]
    assert x[-1] == pytest.approx(1950 / 2000)
    assert y[-1] == pytest.approx(accuracy_score(y_true[safest], y_pred[safest]))
    assert len(display.rejected) == 2000  # all numbers are kept
    assert display.rejected[-1] == pytest.approx(1999 / 2000)
    # What is drawn are points of the curve, close to each other.
    assert set(zip(x, y, strict=True)) <= set(zip(display.rejected, display.accuracy, strict=True))
    assert np.diff(x).max() < 0.011


def test_line_reaches_a_marker_among_the_few(predictions):
    y_true, y_pred, score = predictions
    threshold = np.sort(score)[-6]
    display = TradeOffDisplay.from_predictions(y_true, y_pred, score, threshold=threshold)
    x, _ = display.line_.get_data()
    assert display.operating_point[0] == x[-1] == pytest.approx(1995 / 2000)
    assert display.line_.get_markevery() == [len(x) - 1]


def test_line_ends_before_a_step_that_leaves_too_few(few):
    display = TradeOffDisplay.from_predictions(*few, min_accepted=2)
    assert display.line_.get_xdata()[-1] == 0.5  # 3 are accepted; the next step leaves 1


def test_fewer_instances_than_the_line_may_end_at(few):
    display = TradeOffDisplay.from_predictions(*few, min_accepted=30)
    assert display.line_.get_xdata().tolist() == [0.0]


def test_from_estimator(rng):
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, "up", "down")
    clf = FirstFeature().fit(X, y)
    display = TradeOffDisplay.from_estimator(clf, X, y)
    decided = clf.decide(X)
    assert display.operating_point == pytest.approx(
        (1 - coverage(decided), accepted_accuracy(y, decided))
    )
    assert display.name == "FirstFeature"
    assert TradeOffDisplay.from_estimator(clf, X, y, name="sign").line_.get_label() == "sign"
    pipeline = make_pipeline(StandardScaler(), FirstFeature()).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    inside = TradeOffDisplay.from_estimator(pipeline, X, y)
    assert inside.operating_point[0] == pytest.approx(np.mean(np.abs(scaled[:, 0]) <= 0.5))
    assert inside.name == "FirstFeature"


def test_several_on_the_same_axes_can_be_told_apart(predictions):
    y_true, y_pred, score = predictions
    _, ax = plt.subplots()
    ax.axhline(0.9, label="wanted")
    displays = [
        TradeOffDisplay.from_predictions(
            y_true, y_pred, score**power, threshold=0.5, name=f"method {power}", ax=ax
        )
        for power in range(1, 11)
    ]
    assert {display.ax_ for display in displays} == {ax}
    assert displays[0].figure_ is ax.figure
    lines = [display.line_ for display in displays]
    assert len({line.get_marker() for line in lines}) == 10
    assert len({line.get_color() for line in lines}) == 10
    assert [line.get_linestyle() for line in lines[:4]] == ["-", "--", "-.", ":"]
    legend = ax.get_legend()
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == ["wanted", *(f"method {power}" for power in range(1, 11))]
    assert "own threshold" in legend.get_title().get_text()


def test_a_long_legend_covers_no_curve(predictions):
    display = None
    for i in range(8):
        ax = display and display.ax_
        display = TradeOffDisplay.from_predictions(*predictions, name=f"method {i}", ax=ax)
    display.figure_.draw_without_rendering()  # lays it out
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.x0 >= display.ax_.get_window_extent().x1
    assert legend.x1 <= display.figure_.bbox.x1  # nor is it cut off


def test_a_long_legend_stays_where_nothing_makes_room_for_it(predictions):
    _, ax = plt.subplots()
    for i in range(8):
        TradeOffDisplay.from_predictions(*predictions, name=f"method {i}", ax=ax)
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().x1 <= ax.get_window_extent().x1


def test_axes(predictions):
    y_true, y_pred, score = predictions
    ax = TradeOffDisplay.from_predictions(y_true, y_pred, score, name="one").ax_
    assert ax.get_xlabel() == "Rejected predictions"
    assert ax.get_ylabel() == "Accuracy of the accepted predictions"
    assert ax.yaxis.get_major_formatter()(0.85) == "85%"
    assert ax.xaxis.get_major_formatter()(0.2) == "20%"
    lowest = ax.get_lines()[0].get_ydata().min()
    bottom, top = ax.get_ylim()
    assert lowest - 0.07 < bottom < lowest
    assert 1.0 < top < 1.03
    worse = TradeOffDisplay.from_predictions(y_true, (y_pred + (score < 0.5)) % 3, score, ax=ax)
    assert ax.get_ylim()[0] < worse.accuracy[0] < bottom


def test_no_legend_without_names(predictions):
    assert TradeOffDisplay.from_predictions(*predictions).ax_.get_legend() is None


def test_curve_kwargs(predictions):
    display = TradeOffDisplay.from_predictions(
        *predictions, threshold=0.5, curve_kwargs={"color": "black", "marker": "*"}
    )
    assert display.line_.get_color() == "black"
    assert display.line_.get_marker() == "*"


def test_plot_again_elsewhere(predictions):
    display = TradeOffDisplay.from_predictions(*predictions, threshold=0.5, name="first")
    first = display.line_
    _, ax = plt.subplots()
    assert display.plot(ax, name="again") is display
    assert display.ax_ is ax
    assert display.line_.get_label() == "again"
    np.testing.assert_array_equal(display.line_.get_xydata(), first.get_xydata())


def test_draws_without_warning(predictions, tmp_path):
    display = TradeOffDisplay.from_predictions(*predictions, threshold=0.5, name="one")
    display.figure_.savefig(tmp_path / "curve.png")
    display.figure_.savefig(tmp_path / "curve.svg")


def test_bad_input(few):
    open_before = plt.get_fignums()
    with pytest.raises(ValueError, match="threshold is NaN"):
        TradeOffDisplay.from_predictions(*few, threshold=np.nan)
    with pytest.raises(ValueError, match="min_accepted must be at least 1"):
        TradeOffDisplay.from_predictions(*few, min_accepted=0)
    with pytest.raises(ValueError, match="lengths differ"):
        TradeOffDisplay.from_predictions(few[0], few[1], few[2][1:])
    assert plt.get_fignums() == open_before  # nothing half-drawn is left behind


def test_import_leaves_matplotlib_alone():
    code = "import sys, demur.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_missing_matplotlib_names_the_extra(few, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "demur\[plot\]"'):
        TradeOffDisplay.from_predictions(*few)


# ------------------------------------------------------------------------------- dials


@pytest.fixture(scope="module")
def on_a_line():
    """Two classes on a line, sure far from 0; 300 to learn from and 1,200 more."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 1))
    wrong = rng.random(1500) < 0.4 * np.exp(-3 * np.abs(X[:, 0]))
    return X, (X[:, 0] > 0) ^ wrong


def _certified(X, y, max_risk=0.1):
    # Draws of the gold pass or fail; this one passes.
    model = RejectClassifier(FirstFeature(), max_risk=max_risk, random_state=4)
    model.fit(X[:300], y[:300])
    plan = model.plan(X[300:800], 150)
    return model.certify(X[300:800][plan.rows], y[300:800][plan.rows])


def test_dial_shows_the_certified_point_and_its_bound(on_a_line, tmp_path):
    X, y = on_a_line
    model = _certified(X, y)
    assert model.promise_.holds
    display = DialDisplay.from_estimator(model, X[800:], y[800:])
    decided = model.decide(X[800:])
    point = (decided.mask.mean(), accepted_accuracy(y[800:], model.predict(X[800:]), ~decided.mask))
    assert display.curve.operating_point == pytest.approx(point)
    assert display.bound == (0.9, 0.95)
    assert set(display.bound_.get_ydata()) == {0.9}
    assert display.ax_.get_ylim()[0] < 0.9
    assert "with 95.0% confidence" in display.ax_.get_title(loc="left")
    assert any("certified: at least 90%" in text.get_text() for text in display.ax_.texts)
    assert display.ax_.get_legend().get_title().get_text() == "Marker: where the dial stands"
    display.figure_.savefig(tmp_path / "dial.png")
    again = display.plot()
    assert again.figure_ is not None
    assert set(again.bound_.get_ydata()) == {0.9}


def test_dial_without_a_certificate_shows_no_bound(on_a_line):
    X, y = on_a_line
    dials = (
        {"coverage": 0.5},
        {"max_risk": 0.1},
        {"max_risk": 0.3, "ambiguity": 0.1},
    )
    for dial in dials:
        model = RejectClassifier(FirstFeature(), **dial).fit(X[:300], y[:300])
        display = DialDisplay.from_estimator(model, X[800:], y[800:], name="line")
        assert display.bound is None
        assert not any("certified" in text.get_text() for text in display.ax_.texts)
    assert model.promise_.holds
    assert "conditional" in display.ax_.get_title(loc="left")


def test_coverage_against_gold_is_that_of_the_plans(on_a_line, tmp_path):
    X, y = on_a_line
    model = RejectClassifier(FirstFeature(), max_risk=0.1, random_state=0).fit(X[:300], y[:300])
    kept = model.plan(n_gold=77)
    display = GoldDisplay.from_estimator(model, (20, 300, 60))
    assert model.plan_ is kept
    assert display.n_gold.tolist() == [20, 60, 300]
    assert least_gold(0.1) > 20
    assert (display.coverage[0], display.chance[0]) == (0, 0)
    for i, n in enumerate((60, 300), 1):
        plan = model.plan(n_gold=n)
        assert (display.coverage[i], display.chance[i]) == (plan.expected_coverage, plan.chance)
    assert display.coverage[2] > display.coverage[1]
    assert display.lines_[0].get_ydata().tolist() == display.coverage.tolist()
    display.figure_.savefig(tmp_path / "gold.png")

"""The figures: what is drawn are the numbers, it can be read in grey, and the files are whole."""

import re
import sys
from itertools import combinations, pairwise
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image
from typer.testing import CliRunner

from demur import CandidateSets
from demur.bench import drawing, figures
from demur.bench.curves import Setting, TradeOffCurve, trade_off_curves
from demur.bench.neighborhoods import KSensitivity, neighbor_candidates
from demur.bench.statistics import Ranks
from demur.bench.store import read_results
from demur.bench.styles import styles_of
from demur.cli import app
from demur.methods import METHODS as REGISTRY
from demur.noise import uniform_noise
from demur.theory import ExpectedMassCurve
from sample_folder import EVIL, METHODS, write_results


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("results"))


@pytest.fixture(autouse=True)
def _style():
    with drawing.house_style():
        yield


def curve(method, *, accuracy=(0.8, 0.9, 0.95), point=(0.3, 0.92)):
    ends = np.linspace(0.0, 0.8, len(accuracy))
    return TradeOffCurve(
        Setting("toy", "all", "uniform"), method, 2, ends, np.array(accuracy), point, 0.1
    )


# ----------------------------------------------------------------------------------- styles


def lightness(color):
    """Luma, as a grey printer or `convert("L")` makes of a colour."""
    return float(np.dot(to_rgb(color), (0.299, 0.587, 0.114)))


def test_methods_can_be_told_apart_in_grey():
    styles = styles_of(REGISTRY)
    assert len({style.marker for style in styles.values()}) == len(REGISTRY)
    for first, second in combinations(styles.values(), 2):
        if first.dashes == second.dashes:
            assert abs(lightness(first.color) - lightness(second.color)) > 0.2
            assert abs(lightness(first.on_dark) - lightness(second.on_dark)) > 0.15


def test_every_curve_stands_out_from_its_page():
    for style in styles_of(REGISTRY).values():
        assert contrast(style.color, "#ffffff") >= 3.0
        assert contrast(style.on_dark, "#1a1e25") >= 3.0


def contrast(color, page):
    """As the accessibility guidelines of the web define it; they ask for 3 in graphics."""

    def luminance(c):
        rgb = np.array(to_rgb(c))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    low, high = sorted((luminance(color), luminance(page)))
    return (high + 0.05) / (low + 0.05)


def test_more_methods_than_colours_still_differ():
    names = [*REGISTRY, *(f"new {i}" for i in range(8))]
    styles = styles_of(names)
    assert len({(s.color, s.dashes) for s in styles.values()}) == len(names)
    assert [styles[name] for name in REGISTRY] == list(styles_of(REGISTRY).values())


# ------------------------------------------------------------------------ trade-off curves


def test_trade_off_figure_draws_the_numbers():
    curves = [curve("dst-pll"), curve("cc", accuracy=(0.7, 0.72, 0.74), point=(0.95, np.nan))]
    figure = drawing.trade_off_figure(curves, "toy, uniform")
    (ax,) = figure.axes
    drawn = {line.get_color(): line for line in ax.get_lines() if len(line.get_xdata()) > 1}
    for c in curves:
        line = drawn[styles_of([c.method])[c.method].color]
        np.testing.assert_array_equal(line.get_xdata(), c.rejected)
        np.testing.assert_array_equal(line.get_ydata(), c.accuracy)
    marks = {
        line.get_marker(): (line.get_xdata()[0], line.get_ydata()[0])
        for line in ax.get_lines()
        if len(line.get_xdata()) == 1
    }
    np.testing.assert_equal(marks, {"o": (0.3, 0.92), "X": (0.95, np.nan)})
    assert ax.get_title(loc="left") == "toy, uniform"
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["dst-pll", "cc"]
    low, high = ax.get_ylim()
    assert low < 0.7 < 0.95 < high < 1.0


def test_page_of_settings_has_one_legend_of_all_methods():
    groups = [[curve("dst-pll")], [curve("dst-pll"), curve("cc")], [curve("pl-knn")], [curve("cc")]]
    figure = drawing.trade_off_page(groups, ["a", "b", "c", "d"])
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["a", "b", "c", "d"]
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["dst-pll", "pl-knn", "cc"]
    lines = [sum(len(line.get_xdata()) > 1 for line in ax.get_lines()) for ax in figure.axes]
    assert lines == [1, 2, 1, 1]


def test_titles_on_a_page_stay_on_it(folder):
    curves = trade_off_curves(read_results(folder))
    long = "statlog-landsat-satellite, instance-dependent"
    figure = drawing.trade_off_page([curves[:2]] * 3, [long] * 3)
    figure.draw_without_rendering()
    for ax in figure.axes:
        title = ax._left_title
        assert title.get_text().replace("\n", " ") == long
        assert title.get_window_extent().x1 <= ax.get_window_extent().x1


def test_axis_of_a_curve_that_is_always_right():
    figure = drawing.trade_off_figure([curve("dst-pll", accuracy=(1.0, 1.0), point=(0.1, 1.0))], "")
    low, high = figure.axes[0].get_ylim()
    assert low == pytest.approx(0.95, abs=0.01)
    assert 1.0 < high < 1.01


@pytest.mark.parametrize("name", ["a $ b", "$x_$", "<script>", "50% & more", "x" * 200])
def test_any_name_can_be_drawn(name, tmp_path):
    with drawing.house_style():
        drawing.trade_off_page([[curve(name)]], [name]).savefig(tmp_path / "page.pdf")
        ranks = Ranks(np.array([1.0, 2.0]), 0.5, 0.9, 3)
        drawing.ranks_figure(["dst-pll", name], ranks, name).savefig(tmp_path / "ranks.png")


# ------------------------------------------------------------------------------------ ranks


def test_ranks_figure():
    ranks = Ranks(np.array([2.8, 1.0, 4.5, 2.0]), 0.01, 1.0, 12)
    names = ["pl-knn", "dst-pll", "cc", "proden"]
    (ax,) = drawing.ranks_figure(names, ranks, "By accuracy").axes
    told = {text.get_text() for text in ax.texts}
    assert {"dst-pll  1.00", "proden  2.00", "2.80  pl-knn", "4.50  cc"} <= told
    assert "Critical difference 1.00" in told
    bars = [line.get_xdata() for line in ax.get_lines() if line.get_linewidth() > 3]
    assert len(bars) == 2  # 1.0 with 2.0, and 2.0 with 2.8; nothing joins the last
    np.testing.assert_allclose(np.sort(bars, axis=0), [[1.0, 2.0], [2.0, 2.8]], atol=0.05)
    markers = {line.get_marker(): line.get_xdata()[0] for line in ax.get_lines()}
    assert markers["o"] == 1.0
    assert markers["X"] == 4.5


# --------------------------------------------------------------------------- neighbourhoods


def test_k_sensitivity_figure_shows_mean_and_deviation():
    values = np.array([[np.nan, np.nan, np.nan], [0.5, np.nan, 0.7], [0.2, 0.4, 0.6]])
    found = KSensitivity(np.array([1, 5, 10]), np.full((3, 3), 0.3), np.ones((3, 3)), values)
    figure = drawing.k_sensitivity_figure({"toy": found})
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        "MCC of all predictions",
        "Share accepted",
        "MCC of the accepted",
    ]
    ax = figure.axes[2]
    (line,) = ax.get_lines()
    assert line.get_xdata().tolist() == [5, 10]  # of k = 1 nothing is known
    np.testing.assert_allclose(line.get_ydata(), [0.6, 0.4])
    (shade,) = ax.collections
    corners = shade.get_paths()[0].vertices
    for k, mean, std in ((5, 0.6, np.std([0.5, 0.7], ddof=1)), (10, 0.4, 0.2)):
        np.testing.assert_allclose(
            np.unique(corners[corners[:, 0] == k, 1].round(9)), [mean - std, mean + std]
        )


def test_heat_map_shows_the_shares():
    X = np.arange(5.0)[:, None]
    sets = CandidateSets([["a", "b"], ["a"], ["a"], ["a", "c"], ["c"]])
    found = neighbor_candidates(X, sets, ["a", "a", "a", "a", "c"], n_neighbors=2)
    figure = drawing.neighbor_candidates_figure(found, "toy", 2)
    image = figure.axes[0].get_images()[0]
    np.testing.assert_array_equal(np.ma.filled(image.get_array(), np.nan), found.shares)
    assert image.get_clim() == (0.0, 1.0)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["a", "b", "c"]
    assert "2 neighbours" in figure.axes[0].get_xlabel()


def test_expected_masses_figure():
    masses = np.array([[0.3, 0.1, 0.1], [0.2, 0.05, 0.01]])
    found = ExpectedMassCurve(np.array([1, 2]), masses, masses + 0.01, masses / 100)
    figure = drawing.expected_masses_figure(found, 500)
    assert [ax.get_yscale() for ax in figure.axes] == ["linear", "log"]
    for ax in figure.axes:
        lines = {line.get_label(): line.get_ydata().tolist() for line in ax.get_lines()}
        assert lines["True label, closed form"] == [0.3, 0.2]
        assert lines["Confused label, simulated"] == pytest.approx([0.11, 0.06])
    assert "500 draws" in figure.legends[0].get_title().get_text()


# ------------------------------------------------------------------------------- the folder


@pytest.fixture(scope="module")
def drawn(folder):
    names = []
    done = figures.draw_figures(
        folder, kinds=["trade-off", "ranks", "expected-masses"], n_draws=2, watch=names.append
    )
    return SimpleNamespace(done=done, names=names)


def test_every_setting_and_ranking_has_its_files(drawn, folder):
    home = folder / "figures"
    files = {path.name for path in drawn.done.files}
    assert all(path.parent == home and path.is_file() for path in drawn.done.files)
    stems = {
        "trade-off-toy-uniform",
        "trade-off-toy-class-dependent",
        "trade-off-img-src-x-onerror-hacked-1-script-real",
        "trade-offs-page-1",
        "ranks-accuracy",
        "ranks-aurc",
        "ranks-risk-lambda-0.10",
        "ranks-accuracy-at-the-same-rejects",
        "expected-masses",
    }
    assert files == {f"{stem}.{ending}" for stem in stems for ending in ("pdf", "png")}
    assert len(drawn.names) == len(stems)
    assert not drawn.done.left_out


def test_pictures_are_not_empty(drawn):
    for path in drawn.done.files:
        if path.suffix == ".png":
            with Image.open(path) as image:
                grey = np.asarray(image.convert("L"))
            assert min(grey.shape) > 300
            assert 0.005 < (grey < 200).mean() < 0.5, path


def test_pdf_is_vector_with_its_fonts_inside(drawn):
    for path in drawn.done.files:
        if path.suffix == ".pdf":
            content = path.read_bytes()
            assert content.startswith(b"%PDF")
            assert b"/FontFile2" in content  # TrueType, embedded
            assert b"/Type3" not in content
            assert b"/Subtype /Image" not in content


def test_the_same_results_give_the_same_file(folder, tmp_path, drawn, monkeypatch):
    monkeypatch.setattr(figures, "FORMATS", ("pdf",))
    figures.draw_figures(folder, tmp_path, kinds=["ranks"])
    assert len(list(tmp_path.iterdir())) == 4
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (folder / "figures" / path.name).read_bytes()


def test_names_that_look_alike_get_files_of_their_own(tmp_path):
    pen = figures._Pen(tmp_path / "new", lambda name: None)
    for name in ("a b", "a-b", "../../a/b", "...", ""):
        pen.save(Figure(figsize=(1, 1)), name)
    stems = [path.stem for path in pen.drawn.files if path.suffix == ".pdf"]
    assert stems == ["a-b", "a-b-2", "a-b-3", "figure", "figure-2"]
    assert {path.parent for path in pen.drawn.files} == {tmp_path / "new"}


def test_many_settings_take_several_pages(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "_A_PAGE", 2)
    monkeypatch.setattr(figures, "FORMATS", ("png",))
    done = figures.draw_figures(folder, tmp_path, kinds=["trade-off"])
    pages = [path.name for path in done.files if "page" in path.name]
    assert pages == ["trade-offs-page-1.png", "trade-offs-page-2.png"]


def test_sets_with_their_own_candidates(folder, tmp_path, monkeypatch, rng):
    y = np.repeat([0, 1, 2], 30)
    X = y[:, None] + rng.normal(size=(90, 2))
    sets = uniform_noise(y, share=0.5, n_noise=1, random_state=0)
    asked = []

    def load(name, classes, where):
        asked.append((name, classes, where))
        return SimpleNamespace(X=X, y=y, candidates=sets)

    monkeypatch.setattr(figures, "load_data", load)
    monkeypatch.setattr(figures, "KS", (1, 5))
    monkeypatch.setattr(figures, "FORMATS", ("png",))
    done = figures.draw_figures(
        folder, tmp_path, kinds=["k-sensitivity", "neighbors"], data=folder / "data"
    )
    assert asked == [(EVIL, "all", str(folder / "data"))]  # no other set has noise "real"
    assert {path.name for path in done.files} == {
        "k-sensitivity.png",
        "neighbors-img-src-x-onerror-hacked-1-script.png",
    }
    assert not done.left_out


def test_what_cannot_be_drawn_is_told(folder, tmp_path):
    done = figures.draw_figures(folder, tmp_path / "a", kinds=["neighbors"])
    (reason,) = done.left_out
    assert reason.startswith(f"neighbors of {EVIL}: there is no dataset")
    assert not done.files
    single = write_results(tmp_path / "b", settings=[("toy", "uniform")], methods=["cc"])
    done = figures.draw_figures(single, kinds=["ranks", "k-sensitivity"])
    assert [reason.partition(":")[0] for reason in done.left_out] == ["ranks", "k-sensitivity"]


def test_bad_input(folder, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="no figure is called 'rank'; there are trade-off, ranks"):
        figures.draw_figures(folder, kinds=["rank"])
    with pytest.raises(ValueError, match="holds no results"):
        figures.draw_figures(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "demur\[plot\]"'):
        figures.draw_figures(folder)


def test_settings_of_the_user_are_neither_used_nor_changed(folder, tmp_path):
    with mpl.rc_context({"lines.linewidth": 20.0, "text.usetex": True}):
        with drawing.house_style():
            figure = drawing.trade_off_figure(trade_off_curves(read_results(folder))[:3], "toy")
            figure.savefig(tmp_path / "one.png")  # would fail for want of LaTeX
            assert max(line.get_linewidth() for line in figure.axes[0].get_lines()) < 2
        assert mpl.rcParams["lines.linewidth"] == 20.0


# ------------------------------------------------------------------------------ the command


def test_command(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FORMATS", ("png",))
    out = tmp_path / "out"
    arguments = ["bench", "figures", str(folder), "--out", str(out), "--only", "ranks"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "drawing ranks by accuracy" in result.output
    assert re.search(r"4 files in \S+", result.output)
    assert len(list(out.iterdir())) == 4
    result = CliRunner().invoke(app, ["bench", "figures", str(folder), "--only", "neighbors"])
    assert "left out: neighbors of" in result.output
    for wrong, says in ((["--only", "x"], "no figure is called 'x'"), ([], "holds no results")):
        where = folder if wrong else tmp_path
        result = CliRunner().invoke(app, ["bench", "figures", str(where), *wrong])
        assert result.exit_code == 2
        assert says in result.output
        assert "Traceback" not in result.output


def test_steps_of_ticks_are_wide_enough():
    ticks = drawing._ticks(np.array([1, 2, 3, 5, 7, 10, 15, 20, 30, 50]))
    assert ticks[0] == 1
    assert all(b / a >= 1.35 for a, b in pairwise(ticks))
    assert set(METHODS) <= set(REGISTRY)

import csv
import io

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from demur.bench.formats import Cell, Column, Table
from demur.bench.published import groups, published, published_costs
from demur.bench.store import read_results
from demur.bench.tables import make_tables, rankings
from demur.cli import app
from made_up import write

N = 40
DATASETS = ("ecoli", "flare", "bird-song")
RATES = {"dst-pll": 0.1, "pl-knn": 0.12, "pl-svm": 0.5}


def errors_and_scores(dataset, method, seed):
    """Seed for seed, one dataset is harder than another; pl-svm is always far behind."""
    rng = np.random.default_rng([DATASETS.index(dataset), seed, len(method)])
    wrong = rng.random(N) < RATES[method] + 0.1 * DATASETS.index(dataset)
    return 1 - wrong.astype(int), np.clip(rng.random(N) - 0.3 * wrong, 0, 1)


def noises(dataset):
    return ("real",) if dataset == "bird-song" else ("uniform", "class-dependent")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    runs = {
        (d, z, m, s): errors_and_scores(d, m, s)
        for d in DATASETS
        for z in noises(d)
        for m in RATES
        for s in range(3)
    }
    runs["flare", "uniform", "pl-svm", 2] = None
    write(folder, runs)
    return folder


@pytest.fixture(scope="module")
def tables(folder):
    return {table.name: table for table in make_tables(read_results(folder))}


def accuracies(dataset, method, seeds=range(3)):
    return [100 * errors_and_scores(dataset, method, s)[0].mean() for s in seeds]


def test_table_1_by_the_definition(tables):
    table = tables["table-1-accuracy"]
    assert [c.title for c in table.columns] == [
        "UCI, class-dependent",
        "UCI, uniform",
        "Real-world, real",
    ]
    column = table.columns[0]
    values = {m: accuracies("ecoli", m) + accuracies("flare", m) for m in RATES}
    best = max(values, key=lambda m: np.mean(values[m]))
    for method in RATES:
        cell = table.cells[method, column]
        assert cell.mean == pytest.approx(np.mean(values[method]))
        assert cell.std == pytest.approx(np.std(values[method], ddof=1))
        assert cell.n == 6
        if method != best:
            p = stats.ttest_rel(values[method], values[best]).pvalue
            assert cell.p_value == pytest.approx(p)
            assert cell.among_best == (p >= 0.05)
    assert table.cells[best, column].among_best
    assert not table.cells["pl-svm", column].among_best


def test_a_failed_run_takes_its_pair_from_all_and_is_told(tables):
    table = tables["table-1-accuracy"]
    column = table.columns[1]
    expected = accuracies("ecoli", "dst-pll") + accuracies("flare", "dst-pll", range(2))
    assert table.cells["dst-pll", column].mean == pytest.approx(np.mean(expected))
    (note,) = [note for note in table.notes if note.startswith("UCI, uniform")]
    assert "1 of 6 pairs" in note
    assert "pl-svm (1)" in note
    others = [note for note in table.notes if "the text's group has also" in note]
    assert any("first-order-theorem" in note for note in others)
    assert any("mir-flickr" in note for note in others)


def test_the_texts_numbers_stand_beside(tables):
    one, two = tables["table-1-accuracy"], tables["table-2-risk-as-published"]
    assert one.published["dst-pll", one.columns[0]].mean == 80.8
    assert one.published["pl-svm", one.columns[2]].mean == 39.1
    assert ("dst-pll", one.columns[1]) not in one.published  # the text has no uniform noise there
    assert "[80.8]" in str(one)
    assert two.published["dst-pll", two.columns[4]].mean == 0.15
    assert not tables["table-2-risk-as-defined"].published
    three = tables["table-3-same-rejects"]
    assert three.published["dst-pll", three.columns[1]].mean == 95.49


def test_published_numbers_are_whole():
    for group in groups():
        for noise in ("class-dependent", "instance-dependent", "real"):
            numbers = published("table1", group, noise)
            assert len(numbers) in (0, 10)
            assert (noise == "real") == (group == "Real-world") or not numbers
    assert all(len(published("table2", f"{cost:.2f}")) == 10 for cost in published_costs())


def test_table_2_in_both_readings(tables):
    runs = [(d, s) for d in DATASETS for _ in noises(d) for s in range(3)]
    runs.remove(("flare", 2))  # pl-svm lacks one of the two
    defined, as_published = (
        tables["table-2-risk-as-defined"],
        tables["table-2-risk-as-published"],
    )
    for method in ("dst-pll", "pl-knn"):
        wrong, share, rejects = [], [], []
        for dataset, seed in runs:
            right, score = errors_and_scores(dataset, method, seed)
            accepted = score > 0.5
            assert accepted.sum() > 10  # so that the published threshold is the same
            wrong.append((accepted & (right == 0)).mean())
            share.append((right[accepted] == 0).mean())
            rejects.append(1 - accepted.mean())
        for cost, a, b in zip(
            published_costs(), defined.columns, as_published.columns, strict=True
        ):
            text = np.mean(wrong) + cost * np.mean(rejects)
            code = np.mean(share) + cost * np.mean(rejects)
            assert defined.cells[method, a].mean == pytest.approx(text)
            assert as_published.cells[method, b].mean == pytest.approx(code)


def test_table_3_has_no_best_share_of_rejects(tables):
    table = tables["table-3-same-rejects"]
    rejects, accuracy = table.columns
    assert not any(table.cells[m, rejects].among_best for m in RATES)
    assert any(table.cells[m, accuracy].among_best for m in RATES)
    shares = [table.cells[m, rejects].mean for m in RATES]
    assert np.ptp(shares) < 2.0


def test_intervals_hold_the_means(tables):
    table = tables["table-4-areas"]
    for cell in table.cells.values():
        low, high = cell.interval
        assert 0 <= low < cell.mean < high


def test_ranks(tables, folder):
    table = tables["table-5-ranks"]
    column = table.columns[0]
    assert table.cells["pl-svm", column].mean == 3.0
    total = sum(table.cells[m, c].mean for m in RATES for c in table.columns)
    assert total == pytest.approx(6.0 * len(table.columns))  # ranks 1, 2, 3
    assert any(note.startswith("By accuracy: 5 settings, Friedman p = ") for note in table.notes)


def test_settings(tables):
    table = tables["accuracy-by-setting"]
    assert [c.title for c in table.columns][:2] == ["bird-song, real", "ecoli, class-dependent"]
    cell = table.cells["dst-pll", table.columns[0]]
    assert cell.mean == pytest.approx(np.mean(accuracies("bird-song", "dst-pll")))


def test_without_the_reference(tmp_path):
    write(tmp_path, {("iris", "uniform", m, 0): ([1, 0], [0.9, 0.2]) for m in ("cc", "pop")})
    tables = {table.name: table for table in make_tables(read_results(tmp_path))}
    text = str(tables["table-3-same-rejects"])
    assert "There are no results of dst-pll" in text
    assert "–" in text
    assert "Other is here iris." in str(tables["table-1-accuracy"])


def test_one_method_has_no_ranks(tmp_path):
    write(tmp_path, {("iris", "uniform", "cc", s): ([1, 0], [0.9, 0.2]) for s in range(2)})
    results = read_results(tmp_path)
    for table in make_tables(results):
        for text in (table.to_text(), table.to_markdown(), table.to_latex(), table.to_csv()):
            assert text


TABLE = Table(
    "tiny",
    "50 % of it_all",
    (Column("g", "a", 1, 1), Column("g", "λ = 1", 2, 1)),
    ("x", "long|name"),
    {
        ("x", Column("g", "a", 1, 1)): Cell(1.26, 0.5, n=3, among_best=True),
        ("long|name", Column("g", "a", 1, 1)): Cell(10.0, 12.25, n=3),
        ("x", Column("g", "λ = 1", 2, 1)): Cell(0.5, interval=(0.25, 0.75)),
    },
    {("x", Column("g", "a", 1, 1)): published("table1", "UCI", "class-dependent")["dst-pll"]},
    ("a * note",),
)


def test_text():
    assert TABLE.to_text().splitlines() == [
        "50 % of it_all",
        "",
        "           g                    g",
        "method     a                    λ = 1",
        "----------------------------------------------------",
        "x           1.3* ±  0.5 [80.8]  0.50  (0.25 to 0.75)",
        "long|name  10.0  ± 12.2            –",
        "",
        "a * note",
    ]


def test_markdown():
    assert TABLE.to_markdown().splitlines() == [
        "**50 % of it_all**",
        "",
        "| method | g, a | g, λ = 1 |",
        "| --- | ---: | ---: |",
        "| x | **1.3** ± 0.5 [80.8] | 0.50 (0.25 to 0.75) |",
        r"| long\|name | 10.0 ± 12.2 | – |",
        "",
        r"- a \* note",
    ]


def test_latex():
    text = TABLE.to_latex()
    assert r"\caption{50 \% of it\_all}" in text
    assert r" & \multicolumn{2}{c}{g} \\" in text
    assert r"x & \textbf{1.3} $\pm$ 0.5 [80.8] & 0.50 (0.25 to 0.75) \\" in text
    assert r"long|name & 10.0 $\pm$ 12.2 & -- \\" in text
    assert text.count("{") == text.count("}")


def test_csv_is_unrounded():
    first, *others = csv.DictReader(io.StringIO(TABLE.to_csv()))
    assert (first["method"], first["mean"], first["published_mean"]) == ("x", "1.26", "80.8")
    assert first["among_best"] == "True"
    assert len(others) == 2


def invoke(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)], env={"COLUMNS": "100"})


def test_commands(folder, tmp_path):
    result = invoke("tables", folder, "--out", tmp_path / "new")
    assert result.exit_code == 0
    assert "Table 1. Test accuracy" in result.output
    assert "1 of 45 runs failed" in result.output
    endings = {path.suffix for path in (tmp_path / "new").iterdir()}
    assert endings == {".txt", ".md", ".tex", ".csv"}
    shown = invoke("summary", folder)
    assert shown.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(shown.output)))
    assert len(rows) == 15
    assert {row["failed"] for row in rows} == {"0", "1"}
    assert invoke("summary", folder, "--out", tmp_path / "s" / "s.csv").output == ""
    assert (tmp_path / "s" / "s.csv").read_text() == shown.output
    empty = invoke("tables", tmp_path / "nothing")
    assert empty.exit_code == 2
    assert "holds no results" in empty.output


def test_rankings_are_there_to_be_drawn(folder):
    from demur.bench.measures import measure_runs

    measures = measure_runs(read_results(folder), reference="dst-pll")
    found = rankings(measures)
    assert set(found) == {
        "accuracy", "risk, λ = 0.10", "accuracy at the same rejects", "AURC"
    }  # fmt: skip
    for methods, ranks in found.values():
        assert methods == tuple(RATES)
        assert ranks.average.sum() == pytest.approx(6.0)

"""`demur fit` and `demur predict`: what they say, exit codes, errors of one line, pipes."""

import io
import json
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

from demur import files
from small_tables import read_csv, write_csv

FIT = ("fit", "train.csv", "--features", "f1:f3", "--candidates", "labels", "-o", "m.demur")


def test_fit_says_what_it_did(demur, tables):
    done = demur(*FIT)
    lines = done.out.decode().splitlines()
    assert done.code == 0
    assert lines[0] == "fitted dst-pll on 80 rows, 3 features, 3 labels"
    assert lines[-1] == "wrote m.demur"
    assert done.err == ""
    assert files.load("m.demur").sets.n_classes == 3


def test_parameters_of_a_method(demur, tables):
    done = demur(*FIT, "--method", "pl-knn", "--set", "n_neighbors=4", "--scaling", "standard")
    assert done.code == 0, done.err
    model = files.load("m.demur")
    assert model.method.get_params()["n_neighbors"] == 4
    assert model.preparation.scaling == "standard"


def test_decisions_by_standard_input_and_output(demur, fitted):
    content = (fitted / "test.csv").read_bytes()
    by_file = demur("predict", "m.demur", "test.csv", "-o", "out.csv")
    assert by_file.out.decode().splitlines()[0].startswith("40 rows: ")
    piped = demur("predict", "m.demur", "-", stdin=content)
    assert piped.code == 0
    assert piped.out == (fitted / "out.csv").read_bytes()
    assert piped.err.startswith("40 rows: ")
    lines = demur("predict", "m.demur", "-", "--format", "jsonl", stdin=content).out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"r{i}" for i in range(80, 120)]
    parquet = demur("predict", "m.demur", "-", "--format", "parquet", stdin=content).out
    assert len(pq.read_table(io.BytesIO(parquet))) == 40
    bytes_in = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(parquet)), bytes_in)
    assert demur("predict", "m.demur", "-", stdin=bytes_in.getvalue()).code == 1


def test_fit_reads_standard_input(demur, tables):
    done = demur("fit", "-", *FIT[2:], stdin=(tables / "train.csv").read_bytes())
    assert done.code == 0, done.err


def test_rejected_rows_are_answered_and_come_back(demur, fitted):
    done = demur(
        "predict", "m.demur", "test.csv", "-o", "out.csv", "--threshold", "0.9",
        "--rejected", "look.csv", "--label-studio", "look.json",
    )  # fmt: skip
    assert "wrote out.csv, look.csv, look.json, look.xml" in done.out.decode()
    rows = read_csv(fitted / "look.csv")
    n = len(rows)
    answered = [[*list(row.values())[:-1], row["label"]] for row in rows]
    write_csv(fitted / "answered.csv", list(rows[0]), answered)
    done = demur("fit", "--update", "m.demur", "answered.csv", "--check", "test.csv")
    assert done.code == 0, done.err
    assert done.out.decode().startswith(f"{n} answers: {n} for new rows")
    assert "coverage: " in done.out.decode()


WRONG_DATA = [
    (("fit", "none.csv", *FIT[2:]), "demur: cannot read none.csv: No such file or directory."),
    (("predict", "train.csv", "test.csv"), "demur: train.csv is no demur model, or is damaged: "),
    (("predict", "m.demur", "m.demur"), "demur: m.demur is a spreadsheet or a zip archive"),
    (("predict", "m.demur", "test.csv", "-o", "no/out.csv"), "demur: cannot write no/out.csv: "),
    ((*FIT[:-1], "no/m.demur"), "demur: cannot write no/m.demur: there is no folder "),
    (("audit", "train.csv", "--candidates", "labels", "--features", "id"), "80 different values"),
    (("explain", "m.demur", "test.csv", "--row", "99"), "demur: test.csv has 40 rows, so there"),
]
WRONG_USAGE = [
    (("fit",), "demur: name the table to learn from"),
    (FIT[:-2], "demur: name the model file: -o"),
    (("fit", "train.csv", "-o", "m"), "demur: say which columns to learn from"),
    ((*FIT[:4], "-o", "m"), "demur: say where the candidates are"),
    ((*FIT, "--method", "magic"), "demur: no method is called 'magic'; there are dst-pll"),
    ((*FIT, "--set", "k=3"), "demur: dst-pll has no parameter 'k'; it has"),
    ((*FIT, "--set", "k"), "demur: --set wants NAME=VALUE"),
    ((*FIT, "--set", "n_neighbors=-2"), "demur: dst-pll: n_neighbors"),
    ((*FIT, "--scaling", "log"), "demur: scaling is one of minmax"),
    ((*FIT, "--answer", "x"), "demur: --answer and --check go with --update"),
    ((*FIT, "--update", "m.demur"), "demur: --update keeps features"),
    (("fit", "--update", "m.demur", "test.csv", "--method", "cc"), "demur: --update keeps feat"),
    ((*FIT[:-1], "-"), "demur: give each output a file of its own; only decisions may go to -."),
    ((*FIT[:-1], "train.csv"), "demur: train.csv is what the command reads"),
    ((*FIT, "--set", "n_jobs=x"), "demur: dst-pll: n_jobs is a whole number or none; got 'x'"),
    (("fit", "-", "--answers", "-", "-o", "m", "--features", "f1"), "demur: only one file can c"),
    (("evaluate", "m.demur", "test.csv", "--truth", "label", "--plot", "-"), "a file of its own"),
    (("predict", "m.demur", "test.csv", "--threshold", "nan"), "demur: the threshold is no num"),
    ((*FIT, "--max-values", "0"), "demur fit: Invalid value for '--max-values'"),
    (("predict", "m.demur"), "demur predict: Missing argument 'TABLE'"),
    (("predict", "m.demur", "test.csv", "-o", "x.xls"), "demur: x.xls: which format?"),
    (("predict", "m.demur", "test.csv", "--what"), "demur predict: No such option: --what"),
    (("explain", "m.demur", "test.csv"), "demur: say which row"),
    (("evaluate", "m.demur", "test.csv", "--truth", "t"), "demur: test.csv has no column 't'"),
    (("evaluate", "m.demur", "test.csv"), "demur evaluate: Missing option '--truth'"),
    (("audit", "train.csv"), "demur: say where the candidates are"),
]


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [(*case, 1) for case in WRONG_DATA] + [(*case, 2) for case in WRONG_USAGE],
)
def test_errors_are_one_line_with_an_exit_code(demur, fitted, words, message, code):
    done = demur(*words)
    assert done.code == code
    assert done.out == b""
    assert len(done.err.splitlines()) == 1
    assert message in done.err


def test_debug_shows_where_an_error_comes_from(demur, fitted, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["demur", "predict", "m.demur", "none.csv", "--debug"])
    from demur.cli import main

    with pytest.raises(files.DataError, match="cannot read none.csv"):
        main()


def test_bad_rows_and_skip_bad(demur, fitted):
    with (fitted / "test.csv").open("a") as file:
        file.write("r1,1,2\nr2,a,2,3,ant,\n")
    done = demur("predict", "m.demur", "test.csv")
    assert done.code == 1
    assert done.err.splitlines() == [
        "demur: test.csv holds 2 bad rows (--skip-bad FILE goes on):",
        "  line 42: 3 fields instead of 6",
        "  line 43: f1 is 'a', not a number",
    ]
    done = demur("predict", "m.demur", "test.csv", "-o", "out.csv", "--skip-bad", "bad.csv")
    assert done.code == 0
    assert "bad rows skipped: 2" in done.out.decode()
    assert [row["line"] for row in read_csv(fitted / "bad.csv")] == ["42", "43"]


def test_who_is_killed_while_writing_leaves_the_old_file(fitted):
    (fitted / "out.csv").write_text("old")
    words = [sys.executable, "-c", "from demur.cli import main; main()"]
    words += ["predict", "m.demur", "-", "-o", "out.csv"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=fitted) as run:
        header, rows = (fitted / "test.csv").read_bytes().split(b"\n", 1)
        run.stdin.write(header + b"\n" + rows * 12_000)  # more than is read at once
        run.stdin.flush()
        while not list(fitted.glob(".out.csv.*")):
            assert run.poll() is None
            time.sleep(0.1)
        run.kill()
    assert (fitted / "out.csv").read_text() == "old"


def test_a_reader_that_goes_away_is_no_error(fitted):
    """As with `head`: no traceback. Run as a process, for pipes are its own."""
    command = "from demur.cli import main; main()"
    shell = f'"{sys.executable}" -c "{command}" predict m.demur test.csv | true'
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, cwd=fitted)
    assert "Traceback" not in done.stderr

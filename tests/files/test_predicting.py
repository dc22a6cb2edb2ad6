"""Decisions on files: columns, order, ids, reasons, the rejected, forms, and all or nothing."""

import io
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demur import files
from demur.files import output, predicting, tables
from demur.files.decisions import Decisions
from small_tables import read_csv, write_csv


def rows_of(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text().splitlines()]


def features(path):
    return np.array([[float(row[f"f{j}"]) for j in (1, 2, 3)] for row in read_csv(path)])


@pytest.mark.parametrize("block", [tables.BLOCK, 128])
def test_one_row_a_row_in_order_as_the_method_decides(folder, model, monkeypatch, block):
    monkeypatch.setattr(tables, "BLOCK", block)
    done = files.predict(model, folder / "new.csv", folder / "out.parquet")
    rows = rows_of(folder / "out.parquet")
    assert list(rows[0]) == [
        "id", "label", "accepted", "accept_score", "threshold", "belief", "plausibility", "reason"
    ]  # fmt: skip
    assert [row["id"] for row in rows] == [f"r{i}" for i in range(100, 150)]
    loaded = files.load(model)
    X = loaded.preparation.scale(features(folder / "new.csv"))
    evidence = loaded.method.evidence(X)
    assert [row["label"] for row in rows] == loaded.method.predict(X).tolist()
    np.testing.assert_allclose([r["accept_score"] for r in rows], loaded.method.accept_score(X))
    accepted = ~np.ma.getmaskarray(loaded.method.decide(X))
    assert [row["accepted"] for row in rows] == accepted.tolist()
    at = [loaded.classes.index(row["label"]) for row in rows]
    for name in ("belief", "plausibility"):
        given = getattr(evidence, name)[np.arange(50), at]
        np.testing.assert_allclose([row[name] for row in rows], given)
    assert [bool(row["reason"]) for row in rows] == (~accepted).tolist()
    assert done.n_rows == 50
    assert done.n_accepted == accepted.sum()
    assert sum(done.reasons.values()) == 50 - done.n_accepted
    assert str(done).startswith(f"50 rows: {accepted.sum()} ({accepted.mean():.1%}) accepted")


def test_reasons_name_the_two_labels(folder, model):
    files.predict(model, folder / "new.csv", folder / "out.jsonl", threshold=2.0)
    rows = rows_of(folder / "out.jsonl")
    assert not any(row["accepted"] for row in rows)
    for row in rows:
        kind = row["reason"].split(":")[0]
        assert kind in ("conflict", "ignorance", "too close", "below the threshold")
        assert row["label"] in row["reason"]
        # What the method itself would accept is not close to another label.
        assert kind == "below the threshold" or row["accept_score"] <= 0
    assert {row["threshold"] for row in rows} == {2.0}


def test_forms_hold_the_same(folder, model):
    for name in ("out.csv", "out.parquet", "out.jsonl"):
        files.predict(model, folder / "new.csv", folder / name)
    files.predict(model, folder / "new.csv", folder / "out.txt", form="csv")
    assert (folder / "out.txt").read_bytes() == (folder / "out.csv").read_bytes()
    typed = rows_of(folder / "out.parquet")
    assert rows_of(folder / "out.jsonl") == typed
    for text, row in zip(read_csv(folder / "out.csv"), typed, strict=True):
        assert text["accepted"] == str(row["accepted"]).lower()
        assert float(text["accept_score"]) == row["accept_score"]
        assert (text["id"], text["label"], text["reason"]) == (
            row["id"], row["label"], row["reason"]
        )  # fmt: skip
    with pytest.raises(files.UsageError, match=r"out\.txt: which format"):
        files.predict(model, folder / "new.csv", folder / "out.txt")
    with pytest.raises(files.UsageError, match="--format is csv, parquet or jsonl"):
        files.predict(model, folder / "new.csv", folder / "out.csv", form="xls")


def test_top_three_of_methods_without_evidence(folder, wanted):
    files.fit(
        folder / "train.csv", folder / "m.demur",
        wanted=wanted, features="f1:f3", method_name="pl-knn",
    )  # fmt: skip
    files.predict(folder / "m.demur", folder / "new.csv", folder / "out.parquet")
    loaded = files.load(folder / "m.demur")
    X = loaded.preparation.scale(features(folder / "new.csv"))
    proba = loaded.method.predict_proba(X)
    for row, p in zip(rows_of(folder / "out.parquet"), proba, strict=True):
        given = [row[f"probability_{j}"] for j in (1, 2, 3)]
        assert given == sorted(p.tolist(), reverse=True)
        assert [p[loaded.classes.index(row[f"label_{j}"])] for j in (1, 2, 3)] == given


def test_rejected_rows_come_least_sure_first_with_all_they_hold(folder, model):
    files.predict(
        model, folder / "new.csv", folder / "out.csv",
        rejected=folder / "look.csv", label_studio=folder / "look.json", threshold=0.5,
    )  # fmt: skip
    decided = {row["id"]: row for row in read_csv(folder / "out.csv")}
    given = {row["id"]: row for row in read_csv(folder / "new.csv")}
    rejected = read_csv(folder / "look.csv")
    waiting = {name for name, row in decided.items() if row["accepted"] == "false"}
    assert {row["id"] for row in rejected} == waiting
    scores = [float(row["demur_score"]) for row in rejected]
    assert scores == sorted(scores)
    for row in rejected:
        original = given[row["id"]]
        assert {k: row[k] for k in original} == original
        assert row["demur_label"] == decided[row["id"]]["label"]
        assert row["demur_reason"] == decided[row["id"]]["reason"]
        assert row["demur_plausible"].split("|")[0] == row["demur_label"]
        assert row["demur_answer"] == ""
    tasks = json.loads((folder / "look.json").read_text())
    assert [task["data"]["id"] for task in tasks] == [row["id"] for row in rejected]
    page = ET.parse(folder / "look.xml").getroot()
    choices = page.find("Choices")
    offered = {choice.get("value") for choice in choices}
    for task, row in zip(tasks, rejected, strict=True):
        (result,) = task["predictions"][0]["result"]
        assert result["value"]["choices"] == row["demur_plausible"].split("|")
        assert set(result["value"]["choices"]) <= offered
        assert (result["from_name"], result["to_name"]) == (
            choices.get("name"), choices.get("toName")
        )  # fmt: skip
        assert page.find("Text").get("value") == "$demur_question"
        assert row["demur_label"] in task["data"]["demur_question"]


def test_plausible_labels_by_hand():
    def offered(belief, plausibility, top):
        arrays = [np.array([v]) for v in (belief, plausibility)]
        return Decisions(
            ["a", "b", "c", "d"], np.array([top]), np.array([0]), np.zeros(1), 0.0,
            np.array([[0.25] * 4]), *arrays, np.zeros(1, dtype=int),
        ).plausible(0)  # fmt: skip

    assert offered([0.5, 0.2, 0.0, 0.0], [0.7, 0.6, 0.1, 0.1], 0) == ["a", "b"]
    assert offered([0.9, 0.0, 0.0, 0.0], [1.0, 0.1, 0.1, 0.1], 0) == ["a"]
    assert offered([0.0] * 4, [1.0] * 4, 2) == ["c"]
    assert offered([0.1, 0.2, 0.3, 0.0], [0.9, 0.9, 0.9, 0.8], 2) == ["c", "b", "a"]


def test_bad_rows_stop_it_and_leave_nothing(folder, model):
    lines = (folder / "new.csv").read_text().splitlines()
    lines[5] = "r104,1,2"
    lines[9] = lines[9].replace(",", ",x", 1)
    (folder / "new.csv").write_text("\n".join(lines))
    before = sorted(folder.iterdir())
    with pytest.raises(files.DataError) as caught:
        files.predict(model, folder / "new.csv", folder / "out.csv", rejected=folder / "r.csv")
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == [
        "  line 6", "  line 10"
    ]  # fmt: skip
    assert sorted(folder.iterdir()) == before
    done = files.predict(model, folder / "new.csv", folder / "out.csv", skip_bad=folder / "b.csv")
    assert (done.n_rows, done.n_bad) == (48, 2)
    assert "bad rows skipped: 2" in str(done)
    assert [row["line"] for row in read_csv(folder / "b.csv")] == ["6", "10"]
    assert read_csv(folder / "b.csv")[0]["text"] == "r104,1,2"
    assert len(read_csv(folder / "out.csv")) == 48


def test_without_ids_the_line_tells(folder):
    files.fit(
        folder / "train.csv", folder / "m.demur",
        wanted=files.Wanted(candidates="labels"), features="f1:f3",
    )  # fmt: skip
    files.predict(folder / "m.demur", folder / "new.csv", folder / "out.csv")
    assert [row["line"] for row in read_csv(folder / "out.csv")] == [str(i) for i in range(2, 52)]


def test_a_table_that_does_not_fit_the_model(folder, model):
    def refused(header, rows, message):
        write_csv(folder / "x.csv", header, rows)
        with pytest.raises(files.DataError, match=message):
            files.predict(model, folder / "x.csv", folder / "out.csv")
        assert not (folder / "out.csv").exists()

    refused(["id", "f1", "f3"], [["a", 1, 2]], r"lacks the column f2 that the model was fitted")
    refused(["f1", "f2", "f3"], [[1, 2, 3]], r"lacks the id column 'id' of the model")
    refused(["id", "f1", "f2", "f3"], [], "holds no rows")
    table = pa.table({"id": ["a"], "f1": [1.0], "f2": [[1.0]], "f3": [2.0]})
    pq.write_table(table, folder / "x.parquet")
    with pytest.raises(files.DataError, match=r"column f2 is of type list<.*; numbers are wanted"):
        files.predict(model, folder / "x.parquet", folder / "out.csv")


def test_columns_in_another_order_and_more_of_them(folder, model):
    files.predict(model, folder / "new.csv", folder / "a.csv")
    rows = read_csv(folder / "new.csv")
    header = ["f3", "more", "id", "f1", "f2"]
    write_csv(folder / "x.tsv", header, [[row.get(c, "?") for c in header] for row in rows], "\t")
    files.predict(model, folder / "x.tsv", folder / "b.csv")
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()


@pytest.mark.parametrize("name", ["rejected", "label_studio", "skip_bad"])
def test_each_output_has_a_file_of_its_own(folder, model, name):
    for other in ("-", folder / "out.csv"):
        with pytest.raises(files.UsageError, match="give each output a file of its own"):
            files.predict(model, folder / "new.csv", folder / "out.csv", **{name: other})


def test_no_output_takes_the_place_of_an_input(folder, model):
    before = {path: path.read_bytes() for path in (folder / "new.csv", model)}
    (folder / "link.csv").symlink_to(folder / "new.csv")
    for other in (*before, folder / "link.csv"):
        with pytest.raises(files.UsageError, match="is what the command reads"):
            files.predict(model, folder / "new.csv", other, form="csv")
        with pytest.raises(files.UsageError, match="is what the command reads"):
            files.predict(model, folder / "new.csv", folder / "out.csv", skip_bad=other)
        with pytest.raises(files.UsageError, match="is what the command reads"):
            files.evaluate(model, folder / "new.csv", "label", plot=other)
    with pytest.raises(files.UsageError, match="is what the command reads"):
        files.update(model, folder / "new.csv", answer="label", output=folder / "new.csv")
    with pytest.raises(files.UsageError, match=r"look\.xml is written twice"):
        files.predict(
            model, folder / "new.csv", folder / "out.csv",
            label_studio=folder / "look.json", skip_bad=folder / "look.xml",
        )  # fmt: skip
    assert before == {path: path.read_bytes() for path in before}


def test_links_stay_links_and_pipes_are_written_to(folder, model):
    (folder / "kept.csv").write_text("old")
    (folder / "link.csv").symlink_to(folder / "kept.csv")
    files.predict(model, folder / "new.csv", folder / "link.csv")
    assert (folder / "link.csv").is_symlink()
    assert len(read_csv(folder / "kept.csv")) == 50
    os.mkfifo(folder / "pipe.csv")
    reader = subprocess.Popen(["cat", folder / "pipe.csv"], stdout=subprocess.PIPE)
    files.predict(model, folder / "new.csv", folder / "pipe.csv")
    assert reader.communicate()[0] == (folder / "kept.csv").read_bytes()
    assert (folder / "pipe.csv").is_fifo()
    with pytest.raises(files.DataError, match=r"cannot write .*: it is a folder"):
        files.predict(model, folder / "new.csv", folder, form="csv")


def test_bad_rows_are_written_as_they_come(folder, model, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK", 128)
    lines = (folder / "new.csv").read_text().splitlines()
    bad = [i for i in range(2, 51) if i % 5]
    for i in bad:
        lines[i - 1] = "x"
    (folder / "new.csv").write_text("\n".join(lines))
    at_once = []
    write = output.bad_rows_writer

    @contextmanager
    def watched(path, unit):
        with write(path, unit) as rows_to_file:
            yield lambda rows: (at_once.append(len(rows)), rows_to_file(rows))

    monkeypatch.setattr(predicting, "bad_rows_writer", watched)
    done = files.predict(model, folder / "new.csv", folder / "out.csv", skip_bad=folder / "bad.csv")
    assert [int(row["line"]) for row in read_csv(folder / "bad.csv")] == bad
    assert done.n_bad == len(bad) == sum(at_once)
    assert max(at_once) < 30


def test_a_threshold_is_a_number(folder, model):
    for measure in (
        lambda: files.predict(model, folder / "new.csv", folder / "o.csv", threshold=float("nan")),
        lambda: files.evaluate(model, folder / "new.csv", "label", threshold=float("nan")),
    ):
        with pytest.raises(files.UsageError, match="the threshold is no number"):
            measure()


def test_progress_counts_all_rows(folder, model, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK", 128)
    seen = []
    files.predict(model, folder / "new.csv", folder / "out.csv", advance=seen.append)
    assert sum(seen) == 50
    assert len(seen) > 1


def test_a_file_is_read_in_batches_of_bounded_size(folder, model, monkeypatch):
    """Memory stays: no batch is larger than asked for, whatever the row groups are."""
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 7)
    X = np.arange(300).reshape(100, 3) / 100
    columns = {"f1": X[:, 0], "f2": X[:, 1], "f3": X[:, 2]}
    table = pa.table({"id": list(map(str, range(100))), **columns})
    pq.write_table(table, folder / "x.parquet", row_group_size=100)
    seen = []
    files.predict(model, folder / "x.parquet", folder / "out.csv", advance=seen.append)
    assert sum(seen) == 100
    assert max(seen) <= 7


def test_standard_output_holds_decisions_only(folder, model, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    files.predict(model, folder / "new.csv", "-", form="jsonl")
    lines = out.buffer.getvalue().decode().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"r{i}" for i in range(100, 150)]


def test_text_with_quotes_and_commas_survives(folder, wanted):
    content = (folder / "train.csv").read_text().replace("ant", '"an ""ant"", or so"')
    (folder / "t.csv").write_text(content.replace('"an ""ant"", or so"|', "bee|"))
    files.fit(folder / "t.csv", folder / "m.demur", wanted=wanted, features="f1:f3")
    files.predict(folder / "m.demur", folder / "new.csv", folder / "out.csv")
    labels = {row["label"] for row in read_csv(folder / "out.csv")}
    assert 'an "ant", or so' in labels
    assert labels <= {'an "ant", or so', "bee", "cat"}

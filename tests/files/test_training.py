"""Candidates in every form, and the same model from each; what is wrong with rows is told."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from demur import CandidateSets, DstPll, files
from small_tables import FEATURES, LABELS, read_csv, write_csv


def fitted_sets(path, wanted, **more):
    done = files.fit(path, path.parent / "m.demur", wanted=wanted, features="f1:f3", **more)
    return done.model.sets.to_lists()


def test_every_form_of_file_and_candidates_gives_the_same_model(tmp_path, clouds):
    X, _, sets = clouds
    joined = ["|".join(s) for s in sets]
    columns = {name: X[:, j] for j, name in enumerate(FEATURES)}
    marks = {f"is_{label}": [int(label in s) for s in sets] for label in LABELS}
    rows = [[*x, text] for x, text in zip(X.tolist(), joined, strict=True)]
    write_csv(tmp_path / "a.csv", [*FEATURES, "labels"], rows)
    write_csv(tmp_path / "a.tsv", [*FEATURES, "labels"], rows, "\t")
    marked = [[*x, *m] for x, *m in zip(X.tolist(), *marks.values(), strict=True)]
    write_csv(tmp_path / "marks.csv", [*FEATURES, *marks], marked)
    lists = pa.table(columns | {"labels": sets})
    pq.write_table(lists, tmp_path / "a.parquet")
    pq.write_table(pa.table(columns | marks), tmp_path / "marks.parquet")
    for name, make in (("a.arrow", pa.ipc.new_file), ("a.arrows", pa.ipc.new_stream)):
        with make(str(tmp_path / name), lists.schema) as writer:
            writer.write_table(lists)
    models = {}
    for path in sorted(tmp_path.iterdir()):
        text = "is_*" if path.stem == "marks" else "labels"
        out = tmp_path / "out.demur"
        done = files.fit(path, out, wanted=files.Wanted(candidates=text), features="f1:f3")
        assert done.model.sets.to_lists() == sets, path.name
        models[path.name] = done.model.method.predict_proba(X / 10)
    assert len(models) == 7
    direct = DstPll(random_state=0) if "random_state" in DstPll().get_params() else DstPll()
    low, spread = X.min(axis=0), np.ptp(X, axis=0)
    direct.fit((X - low) / spread, CandidateSets(sets))
    for name, proba in models.items():
        np.testing.assert_allclose(proba, direct.predict_proba(X / 10), err_msg=name)


def long_answers(path, sets, workers=3):
    """Each worker picks one candidate, the second and third often the same."""
    rng = np.random.default_rng(1)
    rows = [
        [f"r{i}", f"w{w}", s[int(rng.integers(len(s)))]]
        for i, s in enumerate(sets)
        for w in range(workers)
    ]
    write_csv(path, ["item", "worker", "label"], rows)
    return rows


@pytest.mark.parametrize(
    ("rule", "least", "share"), [("union", 1, 0), ("votes:2", 2, 0), ("share:0.5", 1, 0.5)]
)
def test_rules_of_answers_against_a_count(folder, clouds, rule, least, share):
    rows = long_answers(folder / "answers.csv", clouds[2][:100])
    wanted = files.Wanted(answers=folder / "answers.csv", rule=rule, id_column="id")
    expected = []
    for i in range(100):
        given = [label for item, _, label in rows if item == f"r{i}"]
        votes = {label: given.count(label) for label in given}
        kept = {v for v, n in votes.items() if n >= least and n / len(given) >= share}
        most = {v for v, n in votes.items() if n == max(votes.values())}
        expected.append(sorted(kept or most))
    assert fitted_sets(folder / "train.csv", wanted) == expected


def test_the_rule_that_knows_the_annotators(folder, clouds):
    rows = long_answers(folder / "answers.csv", clouds[2][:100])
    wanted = files.Wanted(answers=folder / "answers.csv", rule="reliable:0.1", id_column="id")
    sets, _ = CandidateSets.from_long_answers(*zip(*rows, strict=True), min_probability=0.1)
    assert fitted_sets(folder / "train.csv", wanted) == sets.to_lists()
    for rule in ("reliable", "reliable:0", "reliable:2", "reliable:x"):
        with pytest.raises(files.UsageError, match="--rule is union, votes:N, share:P or reliable"):
            fitted_sets(folder / "train.csv", files.Wanted(rule=rule))


def test_rows_nobody_answered_are_bad_and_other_items_are_counted(folder, clouds):
    rows = long_answers(folder / "answers.csv", clouds[2][:100])
    with (folder / "answers.csv").open("a") as file:
        file.write("elsewhere,w1,ant\n")
    content = (folder / "answers.csv").read_text().replace("r7,", "gone,")
    (folder / "answers.csv").write_text(content)
    wanted = files.Wanted(answers=folder / "answers.csv", id_column="id")
    with pytest.raises(files.DataError, match=r"line 9: nobody answered for r7: there is no"):
        fitted_sets(folder / "train.csv", wanted)
    done = files.fit(
        folder / "train.csv", folder / "m.demur",
        wanted=wanted, features="f1:f3", skip_bad=folder / "bad.csv",
    )  # fmt: skip
    assert done.n_bad == 1
    assert len(done.model.sets) == 99
    assert f"answers: {len(rows) + 1:,} by 3 annotators; rule union" in str(done)
    assert "does not have: 4" in str(done)  # three of r7, and one
    assert read_csv(folder / "bad.csv")[0]["line"] == "9"


def test_label_studio_as_table_and_as_answers(folder, clouds):
    X, _, sets = clouds
    tasks = [
        {"id": i, "data": {"id": f"r{i}", **dict(zip(FEATURES, x, strict=True))}, "annotations": [
            {"completed_by": 5, "result": [
                {"type": "choices", "from_name": "kind", "value": {"choices": s}}]}]}
        for i, (x, s) in enumerate(zip(X[:100].tolist(), sets, strict=False))
    ]  # fmt: skip
    (folder / "tasks.json").write_text(json.dumps(tasks))
    assert fitted_sets(folder / "tasks.json", files.Wanted()) == sets[:100]
    wanted = files.Wanted(answers=folder / "tasks.json", id_column="id")
    assert fitted_sets(folder / "train.csv", wanted) == sets[:100]
    tasks[0]["annotations"][0]["result"][0]["from_name"] = "other"
    (folder / "tasks.json").write_text(json.dumps(tasks))
    with pytest.raises(files.UsageError, match=r"has choices of kind, other; say by --control"):
        fitted_sets(folder / "tasks.json", files.Wanted())
    with pytest.raises(files.UsageError, match=r"no choices of 'x'"):
        fitted_sets(folder / "tasks.json", files.Wanted(control="x"))


BAD = [
    ("1,2,3,ant|dog", "the label 'dog' is not one of the classes"),
    ("1,2,3,", "labels is empty: there is no candidate"),
    ("1,two,3,ant", "f2 is 'two', not a number"),
    ("1,,3,ant", "f2 is missing"),
    ("1,inf,3,ant", "f2 is infinite"),
    ("1,2,ant", "3 fields instead of 4"),
    ("1,2,3,4,ant", "5 fields instead of 4"),
    ("1,\udcff,3,ant", "the text is not UTF-8"),
]


def write_bad(path, rows):
    lines = ["f1,f2,f3,labels", *rows]
    lines += [f"{i},{-i},{i % 3},{LABELS[i % 3]}" for i in range(20)]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(("row", "reason"), BAD)
def test_one_bad_row_is_named_with_its_line(tmp_path, row, reason):
    write_bad(tmp_path / "t.csv", ["1,2,3,ant", row])
    wanted = files.Wanted(candidates="labels", classes=list(LABELS))
    with pytest.raises(files.DataError, match=r"t\.csv, line 3: ") as caught:
        fitted_sets(tmp_path / "t.csv", wanted)
    assert str(caught.value).endswith(f"line 3: {reason}")
    assert not (tmp_path / "m.demur").exists()


def test_all_bad_rows_are_skipped_and_kept_with_their_reasons(tmp_path):
    write_bad(tmp_path / "t.csv", [row for row, _ in BAD])
    wanted = files.Wanted(candidates="labels", classes=list(LABELS))
    with pytest.raises(files.DataError) as caught:
        fitted_sets(tmp_path / "t.csv", wanted)
    assert str(caught.value).splitlines()[0].endswith("8 bad rows (--skip-bad FILE goes on):")
    done = files.fit(
        tmp_path / "t.csv", tmp_path / "m.demur",
        wanted=wanted, features="f1:f3", skip_bad=tmp_path / "bad.csv",
    )  # fmt: skip
    assert done.n_bad == len(BAD)
    assert "bad rows skipped: 8" in str(done)
    kept = read_csv(tmp_path / "bad.csv")
    assert {(int(row["line"]), row["reason"]) for row in kept} == {
        (i + 2, reason) for i, (_, reason) in enumerate(BAD)
    }
    assert done.model.sets.to_lists() == [[LABELS[i % 3]] for i in range(20)]


def test_no_more_than_ten_bad_rows_are_named(tmp_path):
    write_bad(tmp_path / "t.csv", ["1,x,3,ant"] * 15)
    with pytest.raises(files.DataError) as caught:
        fitted_sets(tmp_path / "t.csv", files.Wanted(candidates="labels"))
    lines = str(caught.value).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "  line 11: f2 is 'x', not a number"


@pytest.mark.parametrize(
    ("wanted", "features", "error", "message"),
    [
        ({}, "f1:f3", files.UsageError, "say where the candidates are"),
        ({"candidates": "labels", "answers": "a.csv"}, "f1", files.UsageError, "not both"),
        ({"candidates": "nothing"}, "f1", files.UsageError, "no column matches 'nothing'"),
        ({"candidates": "labels", "separator": ""}, "f1", files.UsageError, "--sep must not be"),
        ({"candidates": "labels", "rule": "most"}, "f1", files.UsageError, "--rule is union"),
        ({"candidates": "labels", "rule": "share:2"}, "f1", files.UsageError, "--rule is union"),
        ({"candidates": "labels", "id_column": "x"}, "f1", files.UsageError, "no column 'x'"),
        ({"answers": "train.csv"}, "f1", files.UsageError, "joined to the rows by --id"),
        ({"candidates": "labels"}, "g*", files.UsageError, "no column matches 'g*'"),
        ({"candidates": "labels"}, "id", files.DataError, "100 different values"),
        ({"candidates": "labels", "rule": "votes:2"}, "f1", files.UsageError, "--rule is for ans"),
        ({"candidates": "labels"}, "f1,labels", files.UsageError, "is that of the candidates"),
        ({"candidates": "labels", "id_column": "f2"}, "f*", files.UsageError, "is that of the ids"),
    ],
)
def test_what_cannot_be_meant(folder, wanted, features, error, message):
    with pytest.raises(error) as caught:
        files.fit(
            folder / "train.csv", folder / "m.demur",
            wanted=files.Wanted(**wanted), features=features,
        )  # fmt: skip
    assert message in str(caught.value)
    assert type(caught.value) is error


def test_a_wrong_separator_is_asked_about(folder):
    done = files.fit(
        folder / "train.csv", folder / "m.demur",
        wanted=files.Wanted(candidates="labels", separator=";"), features="f1:f3",
    )  # fmt: skip
    (note,) = done.notes
    assert note.startswith("no row has two candidates, but labels such as 'ant|bee' look like sev")
    assert note in str(done)


def test_an_unknown_label_is_a_bad_answer(folder, clouds):
    long_answers(folder / "answers.csv", clouds[2][:100])
    with (folder / "answers.csv").open("a") as file:
        file.write("r1,w9,wasp\n")
    wanted = files.Wanted(answers=folder / "answers.csv", id_column="id", classes=LABELS)
    n = len((folder / "answers.csv").read_text().splitlines())
    with pytest.raises(files.DataError, match=rf"line {n}: the label 'wasp' is not one of the cl"):
        fitted_sets(folder / "train.csv", wanted)
    sets = fitted_sets(folder / "train.csv", wanted, skip_bad=folder / "bad.csv")
    long_answers(folder / "answers.csv", clouds[2][:100])
    assert sets == fitted_sets(folder / "train.csv", wanted)


def test_parameters_are_of_the_kind_of_their_defaults(folder, wanted):
    for parameters in ({"n_jobs": "x"}, {"n_jobs": 1.5}, {"random_state": (1, "a")}):
        with pytest.raises(files.UsageError, match="is a whole number or none; got"):
            files.fit(
                folder / "train.csv", folder / "m.demur",
                wanted=wanted, features="f1:f3", parameters=parameters,
            )  # fmt: skip


def test_ids_that_repeat_or_lack(folder):
    content = (folder / "train.csv").read_text()
    wanted = files.Wanted(candidates="labels", id_column="id")
    (folder / "train.csv").write_text(content.replace("r7,", "r3,"))
    with pytest.raises(files.DataError, match=r"the id 'r3' stands in rows 5 and 9"):
        fitted_sets(folder / "train.csv", wanted)
    (folder / "train.csv").write_text(content.replace("r7,", ","))
    with pytest.raises(files.DataError, match=r"line 9: id is missing"):
        fitted_sets(folder / "train.csv", wanted)


def test_zero_bytes_and_blanks_in_labels_are_blanks(tmp_path):
    write_bad(tmp_path / "t.csv", ["1,2,3, ant\0|bee  bee", "1,2,3,ant\0"])
    sets = fitted_sets(tmp_path / "t.csv", files.Wanted(candidates="labels"))
    assert sets[:2] == [["ant", "bee bee"], ["ant"]]


def test_marks_are_words_or_numbers_and_nothing_else(tmp_path):
    rows = [[i, "yes" if i % 2 else "no", (1 - i % 2) or ""] for i in range(12)]
    write_csv(tmp_path / "t.csv", ["f1", "is_x", "is_y"], rows)
    wanted = files.Wanted(candidates="is_*")
    done = files.fit(tmp_path / "t.csv", tmp_path / "m.demur", wanted=wanted, features="f1")
    assert done.model.sets.to_lists() == [["x"] if i % 2 else ["y"] for i in range(12)]
    rows[4][1] = "2"
    write_csv(tmp_path / "t.csv", ["f1", "is_x", "is_y"], rows)
    with pytest.raises(files.DataError, match=r"line 6: is_x is '2'; candidates are 0 or 1"):
        files.fit(tmp_path / "t.csv", tmp_path / "m.demur", wanted=wanted, features="f1")


def test_answers_with_bad_rows(folder, clouds):
    long_answers(folder / "answers.csv", clouds[2][:100])
    lines = (folder / "answers.csv").read_text().splitlines()
    lines[3] = "r1,,ant"
    (folder / "answers.csv").write_text("\n".join(lines))
    wanted = files.Wanted(answers=folder / "answers.csv", id_column="id")
    with pytest.raises(files.DataError, match=r"answers\.csv, line 4: worker is missing"):
        fitted_sets(folder / "train.csv", wanted)
    bad = folder / "bad.csv"
    fitted_sets(folder / "train.csv", wanted, skip_bad=bad)
    with bad.open(newline="") as file:
        assert [row[1].endswith("worker is missing") for row in csv.reader(file)] == [False, True]

"""Answers come back: what they change, and what is said of it."""

import json

import numpy as np
import pytest

from demur import files
from small_tables import read_csv, write_csv


@pytest.fixture
def rejected(folder, model):
    """The rejected rows of new.csv, with true answers for the first half."""
    files.predict(model, folder / "new.csv", folder / "out.csv", rejected=folder / "look.csv")
    rows = read_csv(folder / "look.csv")
    assert len(rows) > 4
    for row in rows[: len(rows) // 2]:
        row["demur_answer"] = row["label"]
    write_csv(folder / "look.csv", list(rows[0]), [list(row.values()) for row in rows])
    return rows


def test_answers_become_singletons_and_the_change_is_told(folder, model, rejected):
    before = files.load(model)
    n, answered = len(rejected), len(rejected) // 2
    done = files.update(
        model, folder / "look.csv", output=folder / "new.demur", check=folder / "new.csv"
    )
    after = files.load(folder / "new.demur")
    assert after.sets.to_lists() == before.sets.to_lists() + [
        [row["label"]] for row in rejected[:answered]
    ]
    assert after.training.ids[100:] == [row["id"] for row in rejected[:answered]]
    assert after.classes == before.classes
    X = np.array([[float(row[f"f{j}"]) for j in (1, 2, 3)] for row in rejected])

    def accepted(model, rows):
        scores = model.method.accept_score(model.preparation.scale(rows))
        return int((scores > model.method.accept_threshold_).sum())

    assert (done.n_new, done.n_settled, done.n_waiting) == (answered, 0, n - answered)
    assert done.waiting_before == accepted(before, X[answered:]) == 0
    assert done.waiting_after == accepted(after, X[answered:])
    new = read_csv(folder / "new.csv")
    all_rows = np.array([[float(row[f"f{j}"]) for j in (1, 2, 3)] for row in new])
    assert (done.n_checked, done.checked_before) == (50, accepted(before, all_rows))
    assert done.checked_after == accepted(after, all_rows)
    agreed = sum(row["demur_label"] == row["label"] for row in rejected[:answered])
    assert done.n_agreed == agreed
    told = str(done)
    assert f"{answered} answers: {answered} for new rows, 0 for rows that" in told
    assert f"waiting rows accepted: 0 (0.0%) before, {done.waiting_after} (" in told
    assert "coverage: " in told


def test_the_model_is_replaced_and_answers_are_not_counted_twice(folder, model, rejected):
    files.update(model, folder / "look.csv")
    n = len(files.load(model).sets)
    done = files.update(model, folder / "look.csv")
    assert (done.n_new, done.n_settled) == (0, len(rejected) // 2)
    assert len(files.load(model).sets) == n


def test_an_answer_settles_a_row_that_was_learned_from(folder, model, clouds):
    X, y, sets = clouds
    i = next(i for i, s in enumerate(sets[:100]) if len(s) > 1)
    write_csv(folder / "a.csv", ["id", "f1", "f2", "f3", "kind"], [[f"r{i}", *X[i], y[i]]])
    done = files.update(model, folder / "a.csv", answer="kind")
    after = files.load(model)
    assert done.n_settled == 1
    assert len(after.sets) == 100
    assert after.sets.to_lists()[i] == [y[i]]


def test_several_answers_and_label_studio(folder, model):
    tasks = [
        {"id": 1, "data": {"id": "new1", "f1": 0.0, "f2": 1.0, "f3": 0.5}, "annotations": [
            {"completed_by": 1, "result": [
                {"type": "choices", "from_name": "label", "value": {"choices": ["ant", "bee"]}}]}]},
        {"id": 2, "data": {"id": "new2", "f1": 0.0, "f2": 1.0, "f3": 0.5}, "annotations": []},
    ]  # fmt: skip
    (folder / "a.json").write_text(json.dumps(tasks))
    done = files.update(model, folder / "a.json")
    assert (done.n_new, done.n_waiting) == (1, 1)
    assert files.load(model).sets.to_lists()[-1] == ["ant", "bee"]


def test_an_answer_without_an_id_is_a_bad_row(folder, model):
    lines = "id,f1,f2,f3,demur_answer\nz1,0,0,0,ant\n,1,1,1,bee\n"
    (folder / "a.csv").write_text(lines)
    with pytest.raises(files.DataError, match="line 3: id is missing"):
        files.update(model, folder / "a.csv")


def test_answers_that_cannot_be_used(folder, model, rejected):
    before = model.read_bytes()
    content = (folder / "look.csv").read_text()
    header, rows = content.split("\n", 1)
    (folder / "x.csv").write_text(f"{header}\nz,1,2,3,ant,ant,ant,0,,wasp\n{rows}")
    with pytest.raises(files.DataError, match=r"line 2: the answer 'wasp' is no label of the mod"):
        files.update(model, folder / "x.csv")
    assert model.read_bytes() == before
    done = files.update(
        model, folder / "x.csv", skip_bad=folder / "bad.csv", output=folder / "m2.demur"
    )
    assert done.n_bad == 1
    assert read_csv(folder / "bad.csv")[0]["line"] == "2"
    with pytest.raises(files.UsageError, match=r"no column 'demur_answer' with the answers"):
        files.update(model, folder / "new.csv")
    empty = [dict(row, demur_answer="") for row in rejected]
    write_csv(folder / "e.csv", list(empty[0]), [list(row.values()) for row in empty])
    with pytest.raises(files.DataError, match="holds no answers"):
        files.update(model, folder / "e.csv")
    assert model.read_bytes() == before

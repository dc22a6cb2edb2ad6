"""Measures of a model on known labels, and why one row is decided as it is."""

import numpy as np
import pytest

from demur import files, metrics
from small_tables import read_csv, write_csv


def test_measures_against_the_decisions(folder, model):
    found = files.evaluate(model, folder / "new.csv", "label")
    files.predict(model, folder / "new.csv", folder / "out.csv")
    truth = [row["label"] for row in read_csv(folder / "new.csv")]
    decided = read_csv(folder / "out.csv")
    right = np.array([row["label"] == label for row, label in zip(decided, truth, strict=True)])
    taken = np.array([row["accepted"] == "true" for row in decided])
    score = np.array([float(row["accept_score"]) for row in decided])
    assert found.accuracy == pytest.approx(right.mean())
    assert found.coverage == pytest.approx(taken.mean())
    assert found.accepted_accuracy == pytest.approx(right[taken].mean())
    assert found.aurc == metrics.aurc(truth, [row["label"] for row in decided], score)
    least = np.sort(score)[::-1][24]  # of the safest half, and with it all that tie
    assert found.safest_half == pytest.approx(right[score >= least].mean())
    for label, count, accuracy, coverage in found.labels:
        here = np.array(truth) == label
        assert count == here.sum()
        assert accuracy == pytest.approx(right[here].mean())
        assert coverage == pytest.approx(taken[here].mean())
    assert f"accuracy                  {right.mean():6.1%}" in str(found)


def test_threshold_plot_and_none_accepted(folder, model):
    found = files.evaluate(
        model, folder / "new.csv", "label", threshold=5.0, plot=folder / "curve.png"
    )
    assert found.coverage == 0.0
    assert np.isnan(found.accepted_accuracy)
    assert "accuracy of the accepted    none" in str(found)
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(files.UsageError, match=r"cannot draw .*Format 'xyz' is not supported"):
        files.evaluate(model, folder / "new.csv", "label", plot=folder / "curve.xyz")
    with pytest.raises(files.DataError, match=r"cannot write .*curve\.png: there is no folder"):
        files.evaluate(model, folder / "new.csv", "label", plot=folder / "no" / "curve.png")


def test_unknown_and_missing_truth(folder, model):
    lines = (folder / "new.csv").read_text().splitlines()
    lines[2] = lines[2].rsplit(",", 1)[0] + ",wasp"
    lines[4] = lines[4].rsplit(",", 1)[0] + ","
    (folder / "new.csv").write_text("\n".join(lines))
    with pytest.raises(files.DataError) as caught:
        files.evaluate(model, folder / "new.csv", "label")
    assert str(caught.value).splitlines()[1:] == [
        "  line 3: label is 'wasp', which the model does not know",
        "  line 5: label is missing",
    ]
    found = files.evaluate(model, folder / "new.csv", "label", skip_bad=folder / "bad.csv")
    assert (found.n_rows, found.n_bad) == (48, 2)
    with pytest.raises(files.UsageError, match=r"no column 'truth' \(--truth\)"):
        files.evaluate(model, folder / "new.csv", "truth")


def test_a_row_is_explained_by_number_or_id(folder, model):
    told = files.explain(model, folder / "new.csv", 17)
    assert told == files.explain(model, folder / "new.csv", id_value="r116")
    assert told.startswith(f"line 18 of {folder / 'new.csv'}, id r116\n")
    loaded = files.load(model)
    row = read_csv(folder / "new.csv")[16]
    x = loaded.preparation.scale(np.array([[float(row[f"f{j}"]) for j in (1, 2, 3)]]))
    assert str(loaded.method.explain(x)) in told
    distance = ((loaded.preparation.scale(loaded.training.X) - x) ** 2).sum(axis=1)
    names = [f"r{i}" for i in np.argsort(distance, kind="stable")[:10]]
    assert told.endswith(f"These rows, by id: {', '.join(names)}")


def test_rows_are_counted_with_the_bad_ones(folder, model):
    lines = (folder / "new.csv").read_text().splitlines()
    lines.insert(3, "only,three,fields")
    (folder / "new.csv").write_text("\n".join(lines))
    assert files.explain(model, folder / "new.csv", 4).startswith("line 5 of")
    with pytest.raises(files.DataError, match=r"line 4: 3 fields instead of 5"):
        files.explain(model, folder / "new.csv", 3)


@pytest.mark.parametrize(
    ("row", "value", "error", "message"),
    [
        (None, None, files.UsageError, "say which row"),
        (1, "r1", files.UsageError, "say which row"),
        (0, None, files.UsageError, "rows are counted from 1"),
        (51, None, files.DataError, "has 50 rows, so there is no row 51"),
        (None, "zz", files.DataError, "no row whose id is 'zz'"),
    ],
)
def test_rows_that_are_not_there(folder, model, row, value, error, message):
    with pytest.raises(error, match=message):
        files.explain(model, folder / "new.csv", row, value)


def test_a_row_without_the_id_column_is_not_explained(folder, model):
    rows = read_csv(folder / "new.csv")
    write_csv(folder / "x.csv", ["f1", "f2", "f3"], [list(row.values())[1:4] for row in rows])
    with pytest.raises(files.DataError, match="lacks the id column 'id' of the model"):
        files.explain(model, folder / "x.csv", 1)


def test_methods_without_evidence_are_explained_by_probabilities(folder, wanted):
    files.fit(
        folder / "train.csv", folder / "m.demur",
        wanted=wanted, features="f1:f3", method_name="pl-knn",
    )  # fmt: skip
    told = files.explain(folder / "m.demur", folder / "new.csv", 1).splitlines()
    assert told[2].startswith(("Accepted as ", "Demurs, "))
    loaded = files.load(folder / "m.demur")
    row = read_csv(folder / "new.csv")[0]
    x = loaded.preparation.scale(np.array([[float(row[f"f{j}"]) for j in (1, 2, 3)]]))
    shown = {line.split()[0]: float(line.split()[1]) for line in told[-3:]}
    expected = dict(zip(loaded.classes, loaded.method.predict_proba(x)[0], strict=True))
    assert shown == pytest.approx(expected, abs=5e-4)

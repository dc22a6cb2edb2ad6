import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demur.bench import store
from demur.bench.judged import Judged
from demur.bench.spec import Spec
from demur.bench.store import (
    COLUMNS,
    DamagedFileError,
    path_of,
    read_results,
    read_run,
    rows_digest,
    write_run,
)

SPEC = Spec("toy", "dst-pll", "uniform", 1, parameters={"n_neighbors": 5})


def judged(rng, n=40):
    score = rng.random(n)
    return Judged(np.arange(n), rng.integers(3, size=n), rng.integers(3, size=n), score, score / 2)


def test_what_is_written_is_read(tmp_path, rng):
    told = judged(rng)
    write_run(tmp_path, SPEC, {"threshold": 0.5, "labels": ["a", "b"]}, told)
    rows, runs, damaged = read_results(tmp_path)
    assert tuple(rows.columns) == COLUMNS
    for name in Judged._fields:
        np.testing.assert_array_equal(rows[name], getattr(told, name))
    assert set(rows["split"]) == {"test"}
    assert (rows["run_id"] == SPEC.run_id).all()
    (run,) = runs.to_dict("records")
    assert run["parameters"] == '{"n_neighbors":5}'
    assert run["labels"] == '["a","b"]'
    assert (run["status"], run["threshold"], run["seed"]) == ("ok", 0.5, 1)
    assert damaged == []


def test_a_run_that_failed_has_no_rows(tmp_path, rng):
    write_run(tmp_path, SPEC, {"error": "ValueError: no"}, None)
    rows, runs, _ = read_results(tmp_path)
    assert len(rows) == 0
    assert runs[["status", "error"]].values.tolist() == [["failed", "ValueError: no"]]


def test_results_do_not_depend_on_the_order_of_writing(tmp_path, rng):
    parts = [(Spec("toy", m, "real", s), judged(rng)) for m in ("pl-knn", "cc") for s in (1, 0)]
    for folder, order in ((tmp_path / "a", parts), (tmp_path / "b", parts[::-1])):
        for spec, told in order:
            write_run(folder, spec, {}, told)
    a, b = (read_results(tmp_path / name).rows for name in "ab")
    assert a.equals(b)
    assert a["method"].drop_duplicates().tolist() == ["cc", "pl-knn"]


@pytest.mark.parametrize("at", [0.0, 0.3, 0.6, 0.9, 0.999])
def test_a_file_cut_anywhere_is_damaged(tmp_path, rng, at):
    path = write_run(tmp_path, SPEC, {}, judged(rng))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(at * len(whole))])
    with pytest.raises(DamagedFileError, match=f"{SPEC.run_id}.parquet: not a whole file"):
        read_run(path)


def test_a_changed_byte_is_seen(tmp_path, rng):
    path = write_run(tmp_path, SPEC, {}, judged(rng))
    whole, (table, facts) = bytearray(path.read_bytes()), read_run(path)
    digest, unseen = rows_digest(table), 0
    for at in range(4, len(whole) - 8, 37):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            other, told = read_run(path)
        except DamagedFileError:
            continue
        unseen += 1  # a byte that nothing depends on
        assert rows_digest(other) == digest
        assert told == facts
    assert unseen < (len(whole) - 12) / 37


def test_a_file_of_another_run_or_format_is_damaged(tmp_path, rng, monkeypatch):
    path = write_run(tmp_path, SPEC, {}, judged(rng))
    other = path.with_name("0123456789abcdef.parquet")
    other.write_bytes(path.read_bytes())
    with pytest.raises(DamagedFileError, match="another run than its name says"):
        read_run(other)
    monkeypatch.setattr(store, "FORMAT", 2)
    with pytest.raises(DamagedFileError, match="of format 1, not 2"):
        read_run(path)
    pq.write_table(pa.table({"x": [1]}), other)
    with pytest.raises(DamagedFileError, match="not a whole file of results"):
        read_run(other)


def test_damaged_files_are_left_out_with_a_warning(tmp_path, rng):
    write_run(tmp_path, SPEC, {}, judged(rng))
    broken = Spec("toy", "cc", "real", 0)
    path = write_run(tmp_path, broken, {}, judged(rng))
    path.write_bytes(b"PAR1")
    with pytest.warns(UserWarning, match="left out .*makes it anew"):
        results = read_results(tmp_path)
    assert results.runs["run_id"].tolist() == [SPEC.run_id]
    assert results.damaged == [path]


def test_an_empty_folder_says_how_to_fill_it(tmp_path):
    with pytest.raises(ValueError, match="holds no results; make some with: demur bench run"):
        read_results(tmp_path)


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path, rng, monkeypatch):
    path = write_run(tmp_path, SPEC, {}, judged(rng))
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_run(tmp_path, SPEC, {}, judged(rng))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_digest_tells_values_and_types_but_not_chunks(tmp_path, rng):
    told = judged(rng)
    a = read_run(write_run(tmp_path, SPEC, {}, told))[0]
    assert rows_digest(pa.concat_tables([a.slice(0, 10), a.slice(10)])) == rows_digest(a)
    told.accept_score[3] = np.nextafter(told.accept_score[3], 1.0)
    b = read_run(write_run(tmp_path, SPEC, {}, told))[0]
    assert rows_digest(b) != rows_digest(a)
    assert path_of(tmp_path, SPEC.run_id).is_file()

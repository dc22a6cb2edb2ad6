"""Reading tables: every form, every kind of bad row, and the lines they stand in."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from demur.files import DataError, tables
from demur.files.tables import open_table, read_whole


def read(path, content):
    path.write_bytes(content)
    with open_table(path) as source:
        chunks = list(source.chunks())
    rows = [row for chunk in chunks for row in chunk.table.to_pylist()]
    places = [int(p) for chunk in chunks for p in chunk.places]
    return rows, places, [row for chunk in chunks for row in chunk.bad]


CONTENT = (
    b"a,b\n"  # line 1
    b"1,2\n"
    b"3\n"  # line 3: bad
    b"4,5\n"
    b"\n"  # blank: no row
    b'6,"7\n8"\n'  # lines 6 and 7
    b"9,10,11\n"  # line 8: bad
    b"12,\xff\n"  # line 9: bad
    b"\xff\n"  # line 10: bad
    b"13,14\n"
    b"15\n"  # line 12: bad, after the last good row
)


@pytest.mark.parametrize("block", [2**22, 16])
def test_bad_rows_stand_beside_the_good_ones(tmp_path, monkeypatch, block):
    monkeypatch.setattr(tables, "BLOCK", block)
    rows, places, bad = read(tmp_path / "t.csv", CONTENT)
    assert [row["a"] for row in rows] == ["1", "4", "6", "13"]
    assert rows[2]["b"] == "7\n8"
    assert places == [2, 4, 6, 11]
    assert [(row.place, row.reason) for row in bad] == [
        (3, "1 field instead of 2"),
        (8, "3 fields instead of 2"),
        (9, "the text is not UTF-8"),
        (10, "1 field instead of 2, and no UTF-8"),
        (12, "1 field instead of 2"),
    ]
    assert bad[1].text == "9,10,11"
    assert bad[2].text == "12,\\xff"


def test_lines_are_right_over_many_blocks(tmp_path, monkeypatch, rng):
    """Every row comes out once, in order, good or bad, with its own line."""
    monkeypatch.setattr(tables, "BLOCK", 64)
    lines, expected = ["a,b"], {}
    line = 2
    for i in range(500):
        kind = rng.integers(5)
        text = [f"{i},x", f"{i}", f'{i},"x\ny"', "", f"{i},x,y"][kind]
        lines.append(text)
        if kind != 3:
            expected[line] = (i, kind in (1, 4))
        line += 1 + text.count("\n")
    rows, places, bad = read(tmp_path / "t.csv", "\n".join(lines).encode())
    found = {p: (int(row["a"]), False) for p, row in zip(places, rows, strict=True)}
    found |= {row.place: (int(row.text.split(",")[0]), True) for row in bad}
    assert found == expected
    assert len(rows) + len(bad) == len(expected)


def test_a_file_of_bad_rows_takes_no_time(tmp_path):
    rows, _, bad = read(tmp_path / "t.csv", b"a,b\n" + b"1\n1,2\n" * 30_000)
    assert len(rows) == len(bad) == 30_000
    assert bad[-1].place == 60_000


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [(b"a;b\r\n1;2,5\r\n", ";"), (b"a\tb\n1\t2,5\n", "\t"), (b'a,"b;c;d"\n1,"2,5"\n', ",")],
)
def test_the_header_tells_the_delimiter(tmp_path, content, delimiter):
    rows, _, bad = read(tmp_path / "t.txt", content)
    assert list(rows[0].values()) == ["1", "2,5"]
    assert not bad


def test_an_open_quote_is_asked_about(tmp_path, monkeypatch):
    _, _, bad = read(tmp_path / "t.csv", b'a,b\n1,2\n"3,4\n5,6\n7,8')
    assert [row[:2] for row in bad] == [
        (3, "1 field instead of 2, over 3 lines: is a quote left open?")
    ]
    monkeypatch.setattr(tables, "BLOCK", 2**20)
    content = b"a,b\n1,2\n" * 2**18 + b'"3,4\n' + b"5,6\n" * 2**19
    with pytest.raises(DataError, match=r"a row after line \d+ is longer than 1 MiB; is a quote"):
        read(tmp_path / "t.csv", content)


def test_a_byte_order_mark_and_a_nameless_column(tmp_path):
    rows, places, _ = read(tmp_path / "t.csv", b"\xef\xbb\xbfa,,c\n1,2,3")
    assert rows == [{"a": "1", "column 2": "2", "c": "3"}]
    assert places == [2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n1,2\n", "the first line of .* is blank"),
        (b"a,a\n1,2\n", "more than one column called 'a'"),
        (b"a,\xff\n1,2\n", "header of .* is not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "is UTF-16 text"),
        (b"PK\x03\x04 and so on", "is a spreadsheet or a zip archive"),
        (b"PAR1 and so on", "cannot read .*: Parquet magic bytes not found"),
        (b"ARROW1 and so on", "cannot read .*: "),
        (b"\xff\xff\xff\xff and so on", "cannot read .*: "),
        (b"[1, 2]", "no export of Label Studio"),
        (b"[{", "is no JSON"),
        (b"[]", "holds no tasks"),
        (b'[{"data": {"a": 1}, "annotations": [{"result": [{"type": "choices"}]}]}]',
         "task 1: an annotation is not as Label Studio exports choices"),
        (b"a\0b,c\n1,2\n", "is no text"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_told_in_one_line(tmp_path, content, message):
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path / "t.csv", content)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="cannot read .*: No such file or directory"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(DataError, match="cannot read .*: Is a directory"):
        open_table(tmp_path)


@pytest.mark.parametrize("form", ["parquet", "arrow file", "arrow stream"])
def test_typed_tables(tmp_path, form, monkeypatch):
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 3)
    table = pa.table({"a": [1.5, None, 2.5, 3.5], "b": [["x"], ["y", "z"], [], None]})
    path = tmp_path / "table.bin"
    if form == "parquet":
        pq.write_table(table, path)
    else:
        make = pa.ipc.new_file if form == "arrow file" else pa.ipc.new_stream
        with make(str(path), table.schema) as writer:
            writer.write_table(table)
    with open_table(path) as source:
        assert source.columns == ["a", "b"]
        assert source.unit == "row"
        chunks = list(source.chunks())
    assert [len(chunk.table) for chunk in chunks] == [3, 1]
    assert np.concatenate([chunk.places for chunk in chunks]).tolist() == [1, 2, 3, 4]
    assert pa.concat_tables([c.table for c in chunks]).to_pylist() == table.to_pylist()


def test_standard_input(monkeypatch):
    for content in (b"a,b\n1,2\n", parquet_bytes()):
        stdin = io.TextIOWrapper(Pipe(content))
        monkeypatch.setattr("sys.stdin", stdin)
        source = open_table("-")
        assert source.name == "standard input"
        assert [str(v) for v in read_whole(source).table.to_pylist()[0].values()] == ["1", "2"]


class Pipe(io.BytesIO):
    def seekable(self):
        return False

    def seek(self, *_):
        raise OSError("a pipe cannot seek")

    def tell(self):
        raise OSError("a pipe cannot tell")


def parquet_bytes():
    out = io.BytesIO()
    pq.write_table(pa.table({"a": [1], "b": [2]}), out)
    return out.getvalue()


def test_a_label_studio_export(tmp_path):
    def task(number, data, *answers, **more):
        annotations = [
            {"completed_by": by, "result": [
                {"type": "choices", "from_name": "kind", "value": {"choices": chosen}}
            ], **more}
            for by, chosen in answers
        ]  # fmt: skip
        return {"id": number, "data": data, "annotations": annotations}

    tasks = [
        task(7, {"x": 1, "t": "one"}, (1, ["a"]), ({"id": 2, "email": "b@c"}, ["a", "b"])),
        task(8, {"x": None, "t": {"k": 1}}),
        task(9, {"x": 2.5}, (1, ["b"]), was_cancelled=True),
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    with open_table(path) as source:
        assert source.unit == "task"
        rows = read_whole(source).table.to_pylist()
    assert rows == [
        {"id": 7.0, "x": 1.0, "t": "one"},
        {"id": 8.0, "x": None, "t": '{"k": 1}'},
        {"id": 9.0, "x": 2.5, "t": None},
    ]
    assert source.answers.rows == [0, 0, 0]
    assert source.answers.workers == ["1", "b@c", "b@c"]
    assert source.answers.labels == ["a", "a", "b"]

"""The audit's words and row numbers, against counts by hand and by brute force."""

import re
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from demur import files
from demur.files.auditing import name_places
from small_tables import LABELS, write_csv


def audited(path, *, features=None, **wanted):
    return str(files.audit(path, wanted=files.Wanted(**wanted), features=features)).splitlines()


def number(lines, pattern):
    found = [re.search(pattern, line) for line in lines]
    numbers = [int(m[1].replace(",", "")) for m in found if m]
    assert len(numbers) == 1, (pattern, lines)
    return numbers[0]


def test_a_small_table_in_full(tmp_path):
    rows = [
        (0, "a"), (1, "a|b"), (0, "b|c"), (2, ""), (1, "c"), (3, "a|b|c"), (1, "b"),
        *((10 + i, "a|b") for i in range(8)),
    ]  # fmt: skip
    write_csv(tmp_path / "t.csv", ["f1", "labels"], rows)
    assert audited(tmp_path / "t.csv", features="f1", candidates="labels") == [
        f"{tmp_path / 't.csv'}: 14 usable rows",
        "labels: 3; candidates a row: 1.86 on average, 3 at most",
        "one candidate (nothing to disambiguate): 3 (21.4%)",
        "every label a candidate (tells nothing): 1 (7.1%), line 7",
        "no candidate at all: 1, among the bad rows below",
        "most often candidates together:",
        "  a and b: 10 rows, 91% of those with a, 83% of those with b",
        "  b and c: 2 rows, 17% of those with b, 67% of those with c",
        "  a and c: 1 row, 9% of those with a, 33% of those with c",
        "labels too rare to learn, with their rows: c (3)",
        "rows that repeat another's features: 3",
        "groups of them without a common candidate (the truth cannot be in all): 2",
        "  lines 2, 4",
        "  lines 3, 6, 8",
        "bad rows: 1",
        "  line 5: labels is empty: there is no candidate",
    ]


def test_counts_against_brute_force(tmp_path, rng):
    n = 400
    X = rng.integers(6, size=(n, 2))
    S = rng.random((n, 4)) < rng.choice([0.1, 0.4, 0.9], size=(n, 1))
    names = ["ant", "bee", "cat", "dog"]
    rows = [
        [*x, "|".join(c for c, h in zip(names, s, strict=True) if h)]
        for x, s in zip(X, S, strict=True)
    ]
    write_csv(tmp_path / "t.csv", ["f1", "f2", "labels"], rows)
    lines = audited(tmp_path / "t.csv", features="f*", candidates="labels")
    kept = [(tuple(x), frozenset(np.flatnonzero(s)), i + 2)
            for i, (x, s) in enumerate(zip(X.tolist(), S, strict=True)) if s.any()]  # fmt: skip
    assert number(lines, r"([\d,]+) usable rows") == len(kept)
    assert number(lines, r"no candidate at all: ([\d,]+)") == n - len(kept)
    assert number(lines, r"^bad rows: ([\d,]+)") == n - len(kept)
    assert number(lines, r"one candidate .*: ([\d,]+)") == sum(len(s) == 1 for _, s, _ in kept)
    full = [place for _, s, place in kept if len(s) == 4]
    (told,) = [line for line in lines if line.startswith("every label")]
    assert told.endswith(f"lines {', '.join(map(str, full[:5]))} and {len(full) - 5} more")
    pairs = Counter(pair for _, s, _ in kept for pair in combinations(sorted(s), 2))
    (most, count), *_ = pairs.most_common(1)
    after = lines[lines.index("most often candidates together:") + 1]
    assert after.startswith(f"  {names[most[0]]} and {names[most[1]]}: {count} rows")
    groups = {}
    for x, s, place in kept:
        groups.setdefault(x, []).append((s, place))
    assert number(lines, r"repeat another's features: ([\d,]+)") == len(kept) - len(groups)
    apart = [
        [place for _, place in group]
        for group in groups.values()
        if not frozenset.intersection(*(s for s, _ in group))
    ]
    assert number(lines, r"without a common candidate.*: ([\d,]+)") == len(apart)
    first = lines[next(i for i, v in enumerate(lines) if "without a common" in v) + 1]
    assert first == f"  {name_places(np.array(min(apart)), 'line')}"


def test_annotators_who_disagree(folder, rng):
    """The one who answers by chance differs most; against a count of answers with fewer votes."""
    truth = rng.integers(3, size=100)
    rows = [
        [f"r{i}", worker, LABELS[truth[i] if worker != "w3" else rng.integers(3)]]
        for i in range(100)
        for worker in ("w1", "w2", "w3", "w4")
    ]
    rows += [["r0", "new", "ant"]]
    write_csv(folder / "answers.csv", ["item", "worker", "label"], rows)
    lines = audited(folder / "train.csv", answers=folder / "answers.csv", id_column="id")
    wrong = sum(LABELS[truth[int(i[1:])]] != label for i, w, label in rows if w == "w3")
    at = lines.index("annotators who differ most from the other annotators of the same item:")
    assert lines[at + 1] == f"  w3: {wrong} of 100 ({wrong / 100:.0%})"
    assert [line.split()[:2] for line in lines[at + 2 : at + 5]] == [
        ["w1:", "0"], ["w2:", "0"], ["w4:", "0"]
    ] or lines[at + 2].startswith("  w1: 1 of 100")  # fmt: skip
    assert "annotators with fewer than 10 answers to compare: 1" in lines


def test_labels_that_cannot_be_told_apart_or_never_stand_alone(tmp_path):
    rows = [[i, "a|b" if i % 2 else "c"] for i in range(40)]
    write_csv(tmp_path / "t.csv", ["f1", "labels"], rows)
    lines = audited(tmp_path / "t.csv", candidates="labels")
    assert "labels that never part, so that nothing tells them apart: a and b" in lines
    assert "labels that are never the only candidate, with their rows: a (20), b (20)" in lines
    assert not [line for line in lines if line.startswith("labels too rare")]


def test_many_rare_labels_are_one_line(tmp_path):
    rows = [[i, f"label {i}"] for i in range(30)]
    write_csv(tmp_path / "t.csv", ["f1", "labels"], rows)
    lines = audited(tmp_path / "t.csv", candidates="labels")
    (told,) = [line for line in lines if line.startswith("labels too rare")]
    assert told.endswith(", label 16 (1), label 17 (1) and 20 more")
    assert lines[1] == "30 rows have 30 different labels: is it the right column?"


def test_marks_that_are_wrong_are_no_empty_sets(tmp_path):
    rows = [[1, 2, 0], [2, 0, 0], [3, 1, 0], [4, 0, 1]]
    write_csv(tmp_path / "t.csv", ["f1", "is_a", "is_b"], rows)
    lines = audited(tmp_path / "t.csv", candidates="is_*")
    assert "no candidate at all: 1, among the bad rows below" in lines
    assert lines[-2:] == [
        "  line 2: is_a is '2'; candidates are 0 or 1",
        "  line 3: nothing is marked: there is no candidate",
    ]


def test_a_table_without_candidates(tmp_path):
    write_csv(tmp_path / "t.csv", ["f1", "labels"], [[1, ""], [2, ""]])
    with pytest.raises(files.DataError, match=r"no row with candidates \(line 2: labels is empty"):
        audited(tmp_path / "t.csv", candidates="labels")

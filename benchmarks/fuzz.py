"""Broken files for the readers and the model loader: nothing but their own clear errors.

python benchmarks/fuzz.py [--inputs 100000] [--first 0] [--only NUMBER]

Real files (CSV, TSV, Parquet, Arrow, Label Studio's JSON, a file of answers, models of every
method) are broken: bits, bytes and ranges of any file; for models also the description, the
arrays and the archive, with checksums made right again, so that the checks behind them are
met. Input number i is the same in every run. Allowed is an answer or a DataError or UsageError
of one sentence; a model that still loads must judge, or say why not by a ValueError. All else
is told: another exception, a process that dies, more than a minute, more than 4 GB of memory
asked for, and any file opened for writing, made, moved or removed outside the place given, or
found in the folders around it afterwards.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from demur import files
from demur.files.tables import open_table, read_whole
from demur.methods import METHODS, method

PATIENCE = 60  # seconds for one input; a busy machine makes milliseconds seconds
MEMORY = 4 * 2**30
IN_MEMORY = Path("/dev/shm")  # where a file costs microseconds; a disk may take milliseconds
TOKENS = [
    b'"', b'""', b"\n", b"\r", b"\r\n", b",", b"\t", b";", b"|", b"\0", b"\xff", b"\xef\xbb\xbf",
    b"\xed\xa0\x80", "\ufdd0".encode(), b"nan", b"inf", b"-1e999", b"1e308", b"1_000", b"0x10",
    b"9" * 400, b"[", b"{}", b"null", b"true", b"../" * 9, b"PAR1", b"PK\x03\x04", b"-1", b"",
]  # fmt: skip
NUMBERS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1]
NODES: list[Any] = [
    None, True, -1, 0, 2, 2**31, 2**64, 10**300, 0.5, -0.0, 1e308, "", "x", "../../x",
    "/etc/passwd", "\0", "\ud800", [], [[]], [1, "a"], {}, {"a": 1}, ["f1"] * 3, "a" * 5000,
]  # fmt: skip


# ------------------------------------------------------------------------------ real files


def write_corpus(folder: Path) -> None:
    """Small real files of every kind."""
    rng = np.random.default_rng(0)
    n = 40
    y = rng.integers(3, size=n)
    X = np.round(rng.normal(size=(n, 3)) + 3 * y[:, None], 3)
    names = np.array(["ant", "bee", "ça va"])
    sets = [sorted({names[k], names[(k + i % 2) % 3]}) for i, k in enumerate(y)]
    columns: dict[str, Any] = {
        "id": [f"r{i}" for i in range(n)],
        **{f"f{j + 1}": X[:, j] for j in range(3)},
        "size": rng.choice(["s", "m", "l"], size=n),
    }
    table = pa.table({**columns, "labels": ["|".join(map(str, s)) for s in sets]})
    for name, delimiter in (("table.csv", ","), ("table.tsv", "\t")):
        rows = [table.column_names, *(list(map(str, row.values())) for row in table.to_pylist())]
        quoted = [row if i % 5 else [f'"{cell}"' for cell in row] for i, row in enumerate(rows)]
        (folder / name).write_text("\n".join(delimiter.join(row) for row in quoted) + "\n")
    typed = pa.table({**columns, "labels": [list(map(str, s)) for s in sets]})
    pq.write_table(typed, folder / "table.parquet", row_group_size=16)
    plain = {"compression": "none", "use_dictionary": False}
    pq.write_table(typed, folder / "plain.parquet", **plain)
    for name, make in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        with make(str(folder / f"{name}.arrow"), typed.schema) as writer:
            writer.write_table(typed, max_chunksize=16)
    tasks = [
        {"id": i, "data": {k: v for k, v in row.items() if k != "labels"}, "annotations": [
            {"completed_by": {"id": 1, "email": "a@b.c"}, "was_cancelled": False, "result": [
                {"type": "choices", "from_name": "label", "value": {"choices": row["labels"]}}
            ]}
        ]} for i, row in enumerate(typed.to_pylist()[:12])
    ]  # fmt: skip
    (folder / "tasks.json").write_text(json.dumps(tasks))
    answers = ["item,worker,label"]
    answers += [f"r{i},w{w},{s[w % len(s)]}" for i, s in enumerate(sets) for w in range(3)]
    (folder / "answers.csv").write_text("\n".join(answers) + "\n")
    wanted = files.Wanted(candidates="labels", id_column="id")
    small = {"n_epochs": 1, "hidden_layer_sizes": (4,), "max_iter": 5, "n_neighbors": 3}
    for name in METHODS:
        known = method(name)().get_params()
        parameters = {k: v for k, v in small.items() if k in known}
        files.fit(
            folder / "table.parquet", folder / f"{name}.demur",
            wanted=wanted, features="f*,size", method_name=name, parameters=parameters,
        )  # fmt: skip


# ------------------------------------------------------------------------------- breaking


def break_bytes(content: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """One to four small changes."""
    data = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 4])):
        if not data:
            break
        at = chance.randrange(len(data))
        length = min(chance.choice([1, 2, 8, 64, 1000]), len(data) - at)
        what = chance.randrange(9)
        if what == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            data[at] = chance.randrange(256)
        elif what == 2:
            del data[at : at + length]
        elif what == 3:
            data[at:at] = data[at : at + length] * chance.choice([1, 2, 50])
        elif what == 4:
            data[at : at + length] = chance.randbytes(length)
        elif what == 5:
            del data[at:]
        elif what == 6:
            data[at:at] = chance.choice(TOKENS)
        elif what == 7:
            size = chance.choice([1, 2, 4, 8])
            number = chance.choice(NUMBERS) % 256**size
            data[at : at + size] = number.to_bytes(size, chance.choice(["little", "big"]))
        else:
            other = chance.choice(others)
            start = chance.randrange(len(other))
            data[at : at + length] = other[start : start + length]
    return bytes(data)


def break_model(content: bytes, chance: random.Random) -> bytes:
    """Change what a model says, and make its checksums right again."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    described = json.loads(members["model.json"])
    for _ in range(chance.choice([1, 1, 2])):
        what = chance.randrange(4)
        if what == 0:
            _break_node(described, chance)
            continue
        with suppress(Exception):  # what an earlier change broke may not be there to be broken
            entry = chance.choice(list(described["arrays"]))
            _break_array(members, described["arrays"], entry, chance, what)
    text = json.dumps(described).encode("utf-8", "replace")
    members["model.json"] = text
    members["checksum"] = sha256(text).hexdigest().encode()
    return _zipped(members, chance)


def _break_node(described: dict[str, Any], chance: random.Random) -> None:
    places: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        inside = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in inside:
            places.append((node, key))
            if isinstance(value, (dict, list)):
                collect(value)

    collect(described)
    node, key = chance.choice(places)
    if isinstance(node, dict) and chance.random() < 0.3:
        value = node.pop(key)
        if chance.random() < 0.5:
            node[chance.choice(["method/fit", "method/__class__", "training/X", "x", ""])] = value
    else:
        node[key] = chance.choice(NODES)


def _break_array(
    members: dict[str, bytes], arrays: dict[str, Any], name: str, chance: random.Random, what: int
) -> None:
    member = str(arrays[name]["member"])
    content = members.get(member, b"")
    if what == 1:
        content = break_bytes(content, chance, [content or b"x"])
    elif what == 2:
        array = np.load(io.BytesIO(content), allow_pickle=False)
        content = _npy(_other_array(array, chance))
    else:
        content = members[chance.choice(list(members))]  # another's
    members[member] = content
    arrays[name]["sha256"] = sha256(content).hexdigest()


def _other_array(array: np.ndarray, chance: random.Random) -> np.ndarray:
    what = chance.randrange(5)
    if what == 0:
        return array.astype(chance.choice(["f4", "f8", "i8", "u8", "U9", "?", ">f8", "u1"]))
    if what == 1:
        return array.reshape(-1)[: chance.choice([0, 1, array.size // 2])]
    if what == 2:
        return np.concatenate([np.atleast_1d(array)] * 2)
    if what == 3:
        return np.atleast_2d(array)
    changed = array.copy().reshape(-1)
    if changed.size and changed.dtype.kind in "biuf":
        values = [0, 1, 255] if changed.dtype.kind in "bu" else [0, -1, 2**40, 10**6]
        if changed.dtype.kind == "f":
            values = [np.nan, np.inf, -1.0, 1e300, 0.5]
        changed[chance.randrange(changed.size)] = np.asarray(chance.choice(values)).astype(
            changed.dtype
        )
    return changed.reshape(array.shape)


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _zipped(members: dict[str, bytes], chance: random.Random) -> bytes:
    buffer = io.BytesIO()
    packed = chance.random() < 0.05
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if packed else 0) as archive:
        for name, content in members.items():
            archive.writestr(name.encode(errors="replace").decode(), content)
        if chance.random() < 0.1:
            odd = ["../escaped", "/tmp/escaped", "arrays/../../x.npy", "arrays/", "C:\\x", "a\0b"]
            archive.writestr(chance.choice(odd), b"x" * chance.choice([0, 10, 10**6]))
    return buffer.getvalue()


# --------------------------------------------------------------------------------- trying


class Tried:
    """The real files, and how each is read."""

    def __init__(self, corpus: Path, place: Path) -> None:
        self.place = place
        self.around = around(place)
        self.files = {path.name: path.read_bytes() for path in sorted(corpus.iterdir())}
        self.tables = [name for name in self.files if not name.endswith(".demur")]
        self.models = [name for name in self.files if name.endswith(".demur")]
        self.model = files.load(corpus / "dst-pll.demur")
        self.corpus = corpus

    def make(self, number: int) -> tuple[str, bytes, random.Random]:
        """Input of a number, and which file it was."""
        chance = random.Random(number)
        name = chance.choice(self.models if number % 2 else self.tables)
        content = self.files[name]
        if number % 2 and chance.random() < 0.6:
            return name, break_model(content, chance), chance
        return name, break_bytes(content, chance, list(self.files.values())), chance

    def __call__(self, number: int) -> str:
        """Read an input; what kind of answer it got."""
        name, content, chance = self.make(number)
        path = self.place / f"input-{name}"
        path.write_bytes(content)
        try:
            if name in self.models:
                return self.judge(files.load(path))
            self.read(path, name, chance)
        except (files.DataError, files.UsageError) as error:
            told = str(error).splitlines()
            if not told or not told[0].strip() or (name in self.models and len(told) > 1):
                raise AssertionError(f"a poor message: {error!s}") from error
            return "refused"
        return "read"

    def judge(self, model: files.Model) -> str:
        """Judge some rows by a model that loaded."""
        X = np.random.default_rng(0).normal(size=(5, model.preparation.n_features))
        try:
            with np.errstate(all="ignore"):
                judged = model.method.judge(model.preparation.scale(X))
        except ValueError:
            return "loaded, cannot judge"
        assert len(judged.top) == len(X)
        return "loaded"

    def read(self, path: Path, name: str, chance: random.Random) -> None:
        """Read a table in one of the ways of the commands."""
        out = self.place / "out.csv"
        bad = self.place / "bad.csv"
        wanted = files.Wanted(candidates="labels", id_column="id")
        if name == "tasks.json":
            wanted = files.Wanted()
        if name == "answers.csv":
            wanted = files.Wanted(answers=path, id_column="id", rule="votes:2")
            files.audit(self.corpus / "table.csv", wanted=wanted, features="f*,size")
            return
        what = chance.randrange(10)
        if what == 0:
            files.fit(
                path, self.place / "out.demur", wanted=wanted, features="f*,size", skip_bad=bad,
                method_name="pl-knn",
            )  # fmt: skip
        elif what == 1:
            files.audit(path, wanted=wanted, features="f*,size")
        elif what == 2:
            files.predict(
                self.model, path, out,
                skip_bad=bad, rejected=self.place / "r.csv", label_studio=self.place / "r.json",
            )  # fmt: skip
        elif what == 3:
            files.evaluate(self.model, path, "labels", skip_bad=bad)
        elif what == 4:
            files.explain(self.model, path, 3)
        elif what == 5:
            files.update(
                self.corpus / "dst-pll.demur", path,
                answer="labels", output=self.place / "out.demur", skip_bad=bad,
            )  # fmt: skip
        else:
            with open_table(path) as source:
                chunk = read_whole(source)
                self.model.preparation.encode(chunk, source.name)

    def strays(self) -> list[str]:
        """What was left behind: unfinished files, or any outside the place."""
        left = [name for name in os.listdir(self.place) if name.startswith((".", "demur-"))]
        for name in left:  # so that it is told once
            path = self.place / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return sorted(left) + sorted(around(self.place) - self.around)


def around(place: Path) -> set[str]:
    """What the two folders above a place hold."""
    return {str(path) for folder in place.parents[:2] for path in folder.iterdir()}


def _watch_writing(places: list[Path], outside: list[str]) -> None:
    """Take note of whatever is written outside the places, by Python's own account of it."""
    allowed = (*(f"{place}{os.sep}" for place in places), os.devnull)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    changing = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink",
                "os.chmod", "os.truncate", "shutil.rmtree"}  # fmt: skip

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & writing:
                return
        elif event in changing:
            path = arguments[event in ("os.rename", "os.link", "os.symlink")]  # what it makes
        else:
            return
        if isinstance(path, int) or path is None:
            return
        within = arguments[-1] if event in ("os.remove", "os.rmdir", "os.mkdir") else -1
        folder = os.readlink(f"/proc/self/fd/{within}") if within >= 0 else os.getcwd()
        full = os.path.abspath(os.path.join(folder, os.fsdecode(path)))
        if not full.startswith(allowed) and f"{full}{os.sep}" not in allowed:
            outside.append(f"{event} {full}")

    sys.addaudithook(hook)


def work(corpus: str, place: str, numbers: list[int], report: Any) -> None:
    """Try inputs one after the other, telling each before and after."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    tempfile.tempdir = place
    os.chdir(place)
    tried = Tried(Path(corpus), Path(place))
    outside: list[str] = []
    with open(os.devnull, "w") as silence:
        sys.stdout = sys.stderr = silence
        for name in tried.models:  # so that kernels are compiled and cached before the watch
            tried.judge(files.load(Path(corpus) / name))
        tried.read(Path(corpus) / "table.csv", "table.csv", random.Random(1))
        _watch_writing([Path(place), Path(corpus)], outside)
        for number in numbers:
            report.send((number, None))
            start = time.monotonic()
            try:
                found = tried(number)
            except BaseException as error:
                lines = traceback.format_exception(error)
                found = "FAILED: " + "".join(lines)[-1500:]
            if strays := outside + tried.strays():
                found = f"FAILED: written outside or left behind: {strays}"
                outside.clear()
                tried.around = around(tried.place)
            report.send((number, (found, time.monotonic() - start)))
    report.close()


def run(corpus: Path, numbers: list[int]) -> Iterator[tuple[int, str, float]]:
    """Results of inputs, in processes that may die or hang."""
    context = multiprocessing.get_context("spawn")
    left = numbers
    while left:
        with _folder() as above:
            place = above / "between" / "place"
            place.mkdir(parents=True)
            mine, theirs = context.Pipe(duplex=False)
            worker = context.Process(target=work, args=(str(corpus), str(place), left, theirs))
            worker.start()
            theirs.close()
            begun, done = None, 0
            why = "died"
            try:
                while True:
                    if not mine.poll(PATIENCE if begun is not None else 10 * PATIENCE):
                        why = f"hung for {PATIENCE} s"
                        break
                    number, result = mine.recv()
                    begun = number
                    if result is not None:
                        done += 1
                        begun = None
                        yield number, *result
            except EOFError:
                pass
            if worker.is_alive() and why != "died":
                os.kill(worker.pid or 0, signal.SIGKILL)
            worker.join()
            if done < len(left):
                if begun is None and not done:
                    raise RuntimeError("the worker could not start")
                yield left[done], f"FAILED: {why}, exit code {worker.exitcode}", float(PATIENCE)
                done += 1
            left = left[done:]


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder of our own, in memory where there is such a place."""
    fast = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=fast) as name:
        yield Path(name)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--only", type=int, help="this input alone, with its whole traceback")
    asked = parser.parse_args()
    with _folder() as corpus:
        write_corpus(corpus)
        numbers = list(range(asked.first, asked.first + asked.inputs))
        if asked.only is not None:
            numbers = [asked.only]
        counts: Counter[str] = Counter()
        longest = 0.0
        start = time.monotonic()
        tell: Callable[..., None] = lambda *told: print(*told, flush=True)  # noqa: E731
        for number, found, spent in run(corpus, numbers):
            longest = max(longest, spent)
            if found.startswith("FAILED"):
                counts["FAILED"] += 1
                tell(f"input {number}: {found}")
            else:
                counts[f"{'model' if number % 2 else 'table'} {found}"] += 1
            if sum(counts.values()) % 10_000 == 0:
                tell(f"{sum(counts.values()):,} in {time.monotonic() - start:.0f} s", dict(counts))
    told = ", ".join(f"{what} {count:,}" for what, count in sorted(counts.items()))
    tell(f"{sum(counts.values()):,} inputs, the longest took {longest:.2f} s: {told}")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())

import gzip
import hashlib
import http.server
import os
import threading
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.io import savemat
from scipy.sparse import csc_matrix
from typer.testing import CliRunner

from demur import CandidateSets
from demur.bench.prepare import load_data
from demur.cli import app
from demur.datasets import Dataset, File, download, entry, find, load, registry
from demur.datasets.dataset import keep_frequent
from demur.datasets.files import CHECKS
from demur.datasets.formats import read_idx, read_mat

DATA = os.environ.get("DEMUR_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="DEMUR_DATA names no folder of datasets")
UCI = [name for name, one in registry().items() if one.kind == "arff"]
REAL = [name for name, one in registry().items() if one.kind == "mat"]


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No folder has any dataset."""
    monkeypatch.delenv("DEMUR_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("demur.datasets.files.SYSTEM", tmp_path / "system")


def pretend(monkeypatch, name, files):
    """Let the registry expect these contents of a dataset's files."""
    known = [
        File(path, f"sha256:{hashlib.sha256(content).hexdigest()}", url)
        for path, content, url in files
    ]
    monkeypatch.setitem(registry(), name, replace(entry(name), files=tuple(known)))


def put(folder, path, content):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(content)


# ------------------------------------------------------------------------------ registry


def test_registry_has_the_published_sets_and_says_what_is_known():
    assert len(UCI) == 7
    assert set(REAL) == {"bird-song", "mir-flickr", "msrc-v2", "yahoo-news"}
    assert {"mnist", "fashion-mnist", "kmnist", "kmnist-test", "labelme"} < set(registry())
    digits = {"sha256": 64, "unpacked-sha256": 64, "md5": 32, "git-blob": 40}
    assert set(digits) == set(CHECKS)
    for name, one in registry().items():
        assert one.name == name
        assert one.title
        assert one.origin
        assert one.licence
        assert min(one.shape) > 2
        assert bool(one.files) == (one.kind != "sklearn")
        for file in one.files:
            kind, value = file.check.split(":")
            assert len(bytes.fromhex(value)) * 2 == digits[kind]
            assert file.url.startswith("http") or name == "labelme"


def test_git_blob_is_gits(tmp_path):
    (tmp_path / "file").write_bytes(b"hello\n")  # echo hello | git hash-object --stdin
    assert CHECKS["git-blob"](tmp_path / "file") == "ce013625030ba8dba906f756967f9e9ca394464a"


# --------------------------------------------------------------- what comes with the data


@pytest.mark.parametrize("name", ["digits", "wine", "iris"])
def test_scikit_learns_sets_need_no_folder(name, nowhere):
    data = load(name)
    assert (*data.X.shape, len(data.classes)) == entry(name).shape
    assert data.image_shape is None
    assert data.candidates is None
    assert set(data.y) == set(data.classes)


@needs_data
@pytest.mark.parametrize("name", UCI)
def test_uci_sets_are_what_their_lines_say(name):
    data = load(name)
    assert (*data.X.shape, len(data.classes)) == entry(name).shape
    lines = find(entry(name).files[0]).read_text("latin-1").splitlines()
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data"))
    rows = [line.split(",") for line in lines[start + 1 :] if line.strip()]
    assert data.y.tolist() == [row[-1].strip(" '") for row in rows]
    if "flare" not in name:  # it alone has columns of words
        np.testing.assert_array_equal(data.X, np.array(rows)[:, :-1].astype(float))


@needs_data
def test_words_of_flare_become_columns():
    data = load("flare")
    words = [name for name in data.feature_names if "=" in name]
    assert words
    assert set(np.unique(data.X[:, [name in words for name in data.feature_names]])) == {0.0, 1.0}
    first = words[0].split("=")[0]
    assert (data.X[:, [n.startswith(f"{first}=") for n in data.feature_names]].sum(1) == 1).all()


@needs_data
@pytest.mark.parametrize(
    ("name", "shape", "covered"),
    [("bird-song", (4764, 38, 10), 0.953), ("msrc-v2", (1663, 48, 19), 0.946)],
)
def test_real_world_sets_and_their_frequent_classes(name, shape, covered):
    every, some = load(name), load(name, classes="frequent-95")
    assert (*every.X.shape, len(every.classes)) == entry(name).shape
    assert (*some.X.shape, len(some.classes)) == shape
    assert len(some) / len(every) == pytest.approx(covered, abs=5e-4)
    for data in (every, some):
        assert data.candidates.contains(data.y).all()
        assert data.candidates.classes.tolist() == data.classes.tolist()
    np.testing.assert_array_equal(some.X, every.X[np.isin(every.y, some.classes)])


@needs_data
def test_labelme_has_answers_of_annotators_and_parts_with_true_labels():
    data = load("labelme")
    answers = np.loadtxt(Path(DATA) / "crowd-labelme" / "answers.txt", dtype=int)
    assert data.candidates.to_lists() == [sorted(set(row) - {-1}) for row in answers]
    assert data.X.shape == (1000, 512)
    assert data.candidates.contains(data.y).mean() == pytest.approx(0.89, abs=0.005)
    for part, rows in (("validation", 500), ("test", 1188)):
        other = load("labelme", part=part)
        assert other.X.shape == (rows, 512)
        assert other.y.shape == (rows,)
        assert other.candidates is None
        assert other.classes.tolist() == list(range(8))


@needs_data
def test_images_are_flat_rows_train_before_test():
    data, test = load("kmnist-test"), load("kmnist-test", part="test")
    assert data.X.shape == (10_000, 784)
    assert data.image_shape == (28, 28)
    assert data.X.max() == 255
    assert np.bincount(data.y).tolist() == [1000] * 10
    np.testing.assert_array_equal(data.y, test.y)
    with pytest.raises(ValueError, match=r"has no part 'train'; there are test"):
        load("kmnist-test", part="train")


@needs_data
def test_a_benchmark_reads_them():
    data = load_data("msrc-v2", "frequent-95", None)
    loaded = load("msrc-v2", classes="frequent-95")
    assert data.classes == tuple(loaded.classes.tolist())
    assert np.array(data.classes)[data.y].tolist() == loaded.y.tolist()
    assert data.candidates == loaded.candidates


# -------------------------------------------- what cannot be had: the loader on small files


def idx_bytes(array, kind=8):
    lengths = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, kind, array.ndim]) + lengths + array.tobytes()


@pytest.mark.usefixtures("nowhere")
def test_kmnist_of_both_parts(tmp_path, monkeypatch, rng):
    images = rng.integers(0, 256, (7, 28, 28)).astype(np.uint8)
    labels = np.array([0, 1, 2, 3, 4, 0, 1], dtype=np.uint8)
    files = [
        (f"kmnist/{stem}-{what}-ubyte.gz", gzip.compress(idx_bytes(array[rows])), "")
        for stem, rows in (("train", slice(5)), ("t10k", slice(5, 7)))
        for what, array in (("images-idx3", images), ("labels-idx1", labels))
    ]
    pretend(monkeypatch, "kmnist", files)
    for path, content, _ in files:
        put(tmp_path, path, content)
    data = load("kmnist", folder=tmp_path)
    np.testing.assert_array_equal(data.X.reshape(7, 28, 28), images)
    assert data.y.tolist() == labels.tolist()
    assert load("kmnist", folder=tmp_path, part="test").y.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["mir-flickr", "yahoo-news"])
@pytest.mark.parametrize("sparse", [True, False])
def test_matlab_files_of_real_world_sets(name, sparse, tmp_path, monkeypatch, rng, nowhere):
    X = rng.random((6, 4)).round(3)
    truth = np.array([0, 2, 1, 1, 0, 2])
    target = np.eye(3)[truth].T
    partial_target = np.maximum(target, np.array([[1, 0, 0, 0, 0, 1]] * 3))
    form = csc_matrix if sparse else np.asarray
    path = tmp_path / "real-world" / f"{name}.mat"
    path.parent.mkdir()
    savemat(path, {"data": form(X), "target": form(target), "partial_target": form(partial_target)})
    content = path.read_bytes()
    blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
    (file,) = entry(name).files
    assert file.check.startswith("git-blob:")
    monkeypatch.setitem(
        registry(),
        name,
        replace(entry(name), files=(replace(file, check=f"git-blob:{blob}"),)),
    )
    data = load(name, folder=tmp_path)
    np.testing.assert_array_equal(data.X, X)
    assert data.y.tolist() == truth.tolist()
    assert data.candidates.to_lists() == [[0, 1, 2], [2], [1], [1], [0], [0, 1, 2]]


# --------------------------------------------------------------------------- class filter


def test_frequent_classes_are_the_most_frequent_candidates():
    y = np.array(["a"] * 12 + ["b"] * 7 + ["c"])
    sets = [["a", "c"]] * 12 + [["b"]] * 7 + [["c", "a"]]
    named = np.array(["a", "b", "c"])
    data = Dataset("x", np.arange(20.0)[:, None], y, named, CandidateSets(sets, classes=named))
    # a alone covers 0.6; two labels are needed for more, and a and c are candidates most often.
    kept = keep_frequent(data, 0.6)
    assert kept.classes.tolist() == ["a", "c"]
    assert kept.y.tolist() == ["a"] * 12 + ["c"]
    assert kept.X[:, 0].tolist() == [*range(12), 19]
    assert kept.candidates.to_lists() == [["a", "c"]] * 13
    assert keep_frequent(data, 0.59).classes.tolist() == ["a"]
    assert keep_frequent(replace(data, candidates=None), 0.6).classes.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="no true labels"):
        keep_frequent(replace(data, y=None), 0.6)


def test_unknown_names_are_answered_with_those_there_are():
    with pytest.raises(ValueError, match=r"no dataset 'mnits'; there are digits, .*mnist"):
        load("mnits")
    with pytest.raises(ValueError, match=r"no filter of classes 'most'; there are all, frequent"):
        load("iris", classes="most")
    with pytest.raises(ValueError, match=r"iris has no part 'test'; it has none"):
        load("iris", part="test")
    with pytest.raises(ValueError, match="of a file of your own only"):
        load("iris", label="y")


# ------------------------------------------------------------------------ files that lack


@pytest.fixture
def server(tmp_path):
    """A folder, and the address under which it is served."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *told):
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=folder)
    ) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


ECOLI = b"@relation r\n@attribute f numeric\n@attribute Class {1,2,3}\n@data\n1.5,2\n2,1\n3,3\n"


@pytest.mark.usefixtures("nowhere")
def test_what_lacks_is_fetched_to_the_users_folder_and_found_there(server, tmp_path, monkeypatch):
    folder, url = server
    put(folder, "ecoli.arff", ECOLI)
    pretend(monkeypatch, "ecoli", [("uci/ecoli.arff", ECOLI, f"{url}/ecoli.arff")])
    with pytest.raises(FileNotFoundError) as told:
        load("ecoli")
    place = tmp_path / "cache" / "demur" / "data" / "uci" / "ecoli.arff"
    for words in ("demur data get ecoli", str(place), f"{url}/ecoli.arff", "sha256 "):
        assert words in str(told.value)
    assert download("ecoli") == [place]
    assert load("ecoli").X.tolist() == [[1.5], [2.0], [3.0]]
    assert load("ecoli").y.tolist() == ["2", "1", "3"]
    assert download("ecoli") == []
    assert download("ecoli", tmp_path / "other") == [tmp_path / "other" / "uci" / "ecoli.arff"]


@pytest.mark.usefixtures("nowhere")
def test_a_wrong_file_is_neither_put_in_place_nor_read(server, tmp_path, monkeypatch):
    folder, url = server
    put(folder, "ecoli.arff", ECOLI + b"4,1\n")
    pretend(monkeypatch, "ecoli", [("uci/ecoli.arff", ECOLI, f"{url}/ecoli.arff")])
    expected = hashlib.sha256(ECOLI).hexdigest()
    with pytest.raises(ValueError, match=f"should be {expected}, but is"):
        download("ecoli", tmp_path)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["ecoli.arff"]
    assert list((tmp_path / "uci").iterdir()) == []
    put(tmp_path, "uci/ecoli.arff", ECOLI[:-1])
    for read in (load, download):
        with pytest.raises(ValueError, match=r"uci/ecoli.arff is not the right file.*Remove it"):
            read("ecoli", folder=tmp_path)


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    ("page", "reason"), [("/nothing.arff", "404"), (None, "Connection refused")]
)
def test_without_a_network_it_says_what_to_put_where(server, tmp_path, monkeypatch, page, reason):
    url = f"{server[1]}{page}" if page else "http://127.0.0.1:9/ecoli.arff"
    pretend(monkeypatch, "ecoli", [("uci/ecoli.arff", ECOLI, url)])
    with pytest.raises(OSError, match=reason) as told:
        download("ecoli", tmp_path)
    assert str(tmp_path / "uci" / "ecoli.arff") in str(told.value)
    assert "sha256 " in str(told.value)
    assert "Errno" not in str(told.value)


@pytest.mark.usefixtures("nowhere")
def test_what_has_no_address_says_so():
    with pytest.raises(ValueError, match=r"labelme is not here. It cannot be fetched: see http"):
        download("labelme")


@pytest.mark.usefixtures("nowhere")
def test_images_packed_anew_are_the_same(tmp_path, monkeypatch):
    content = idx_bytes(np.zeros((1, 28, 28), np.uint8))
    check = f"unpacked-sha256:{hashlib.sha256(content).hexdigest()}"
    monkeypatch.setitem(registry(), "mnist", replace(entry("mnist"), files=(File("m.gz", check),)))
    for level in (1, 9):
        put(tmp_path, "m.gz", gzip.compress(content, level))
        assert download("mnist", tmp_path) == []
    put(tmp_path, "m.gz", gzip.compress(content)[:-9])
    with pytest.raises(ValueError, match="not a whole gzip file"):
        download("mnist", tmp_path)


def test_the_systems_packages_are_searched(tmp_path, monkeypatch, nowhere):
    file = entry("fashion-mnist").files[0]
    assert find(file) is None
    put(tmp_path / "system", file.path, b"")
    assert find(file) == tmp_path / "system" / "fashion-mnist" / "train-images-idx3-ubyte.gz"
    put(tmp_path / "mine", file.path, b"")
    monkeypatch.setenv("DEMUR_DATA", str(tmp_path / "mine"))
    assert find(file).is_relative_to(tmp_path / "mine")


# ---------------------------------------------------------------------- files of one's own


def test_a_csv_file_with_labels_and_candidates(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text(
        "weight,colour,label,candidates\n4.1,grey,cat,cat|dog\n30,brown,dog,dog\n2,grey,cat, cat \n"
    )
    data = load(path)
    assert data.feature_names == ("weight", "colour=brown", "colour=grey")
    assert data.X.tolist() == [[4.1, 0, 1], [30, 1, 0], [2, 0, 1]]
    assert data.y.tolist() == ["cat", "dog", "cat"]
    assert data.candidates.to_lists() == [["cat", "dog"], ["dog"], ["cat"]]
    named = load(path, label="colour", classes="all")
    assert named.y.tolist() == ["grey", "brown", "grey"]
    assert named.candidates is None
    assert "candidates=cat|dog" in named.feature_names
    assert load_data(str(path), "all", None).y.tolist() == [0, 1, 0]


def test_a_parquet_file_with_lists_of_candidates(tmp_path):
    path = tmp_path / "votes.parquet"
    table = {"f": [0.5, 1.5], "truth": [3, 1], "votes": [[1, 3], [1]]}
    pq.write_table(pa.table(table), path)
    data = load(path, label="truth", candidates="votes")
    assert data.X.tolist() == [[0.5], [1.5]]
    assert data.y.tolist() == [3, 1]
    assert data.candidates.to_lists() == [[1, 3], [1]]
    assert load(path, candidates="votes").feature_names == ("f", "truth")
    assert load(path, candidates="votes").y is None


def test_kinds_of_parquet_columns(tmp_path):
    table = {
        "kind": pa.array(["b", "a", "b"]).dictionary_encode(),
        "price": pa.array([Decimal("1.5"), Decimal("2.25"), Decimal(3)]),
        "new": [True, False, True],
        "label": pa.array(["x", "y", "x"]).dictionary_encode(),
    }
    pq.write_table(pa.table(table), tmp_path / "x.parquet")
    data = load(tmp_path / "x.parquet")
    assert data.feature_names == ("kind=a", "kind=b", "price", "new")
    assert data.X.tolist() == [[0, 1, 1.5, 1], [1, 0, 2.25, 0], [0, 1, 3, 1]]
    assert data.y.tolist() == ["x", "y", "x"]


def test_arff_and_matlab_files_of_ones_own(tmp_path):
    (tmp_path / "a.arff").write_bytes(ECOLI)
    assert load(tmp_path / "a.arff").y.tolist() == ["2", "1", "3"]
    assert load(tmp_path / "a.arff", label="f").y.tolist() == [1.5, 2, 3]
    one = {"data": np.ones((3, 1)), "target": np.eye(3), "partial_target": np.ones((3, 3))}
    savemat(tmp_path / "b.mat", one)
    assert load(tmp_path / "b.mat").candidates.sizes.tolist() == [3, 3, 3]


def test_labels_that_are_words_in_one_column_are_in_the_other(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("f,label,candidates\n1,1,1|2\n2,3,2|3\n3,2,2\n")
    data = load(path)
    assert data.y.tolist() == ["1", "3", "2"]
    assert data.candidates.to_lists() == [["1", "2"], ["2", "3"], ["2"]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", "has the columns a, b. Say which"),
        ("a,label\n1,x\n,y\n", "column 'a' has no value in row 1"),
        ("a,label\nu,x\n,y\n", "column 'a' has no value in row 1"),
        ("a,label\n1,x\n2,\n", "column 'label' has no label in row 1"),
        ("a,candidates\n1,x|y\n2,\n", "column 'candidates'.*empty.*1"),
        ("a,label\n1,x\n2,y,z\n", "not a readable csv file.*Expected 2 columns, got 3"),
        ("a,a,label\n1,2,x\n", "more than one column 'a'"),
        ("label\nx\ny\n", "no columns of features"),
        ("a,label\n" + "".join(f"w{i},x\n" for i in range(300)), "'a' holds 300 different"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_said(tmp_path, text, told):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=told) as error:
        load(path)
    assert str(path) in str(error.value)


def test_columns_and_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none.csv"):
        load(tmp_path / "none.csv")
    (tmp_path / "x.csv").write_text("a,label\n1,x\n")
    with pytest.raises(ValueError, match="has no column 'b'; it has a, label"):
        load(tmp_path / "x.csv", label="b")
    (tmp_path / "x.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(ValueError, match="not a readable parquet file"):
        load(tmp_path / "x.parquet")
    (tmp_path / "x.arff").write_text("no ARFF\n")
    with pytest.raises(ValueError, match="not a readable ARFF file"):
        load(tmp_path / "x.arff")


# -------------------------------------------------------------------------------- formats


@pytest.mark.parametrize(("kind", "dtype"), [(8, "u1"), (9, "i1"), (11, ">i2"), (14, ">f8")])
def test_idx_of_every_kind(tmp_path, kind, dtype):
    array = np.arange(-6, 6).reshape(2, 3, 2).astype(dtype)
    (tmp_path / "a").write_bytes(idx_bytes(array, kind))
    np.testing.assert_array_equal(read_idx(tmp_path / "a"), array)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.gz", b"no gzip", "not a whole gzip file"),
        ("a", b"PK\3\4", "not an idx file: its first bytes are 50 4b 03 04"),
        ("a", idx_bytes(np.zeros((2, 3), np.uint8))[:-1], "takes 6 bytes; the file has 5"),
        ("a", b"\0\0\x08\x03\0\0", "ends within its first 16 bytes"),
    ],
)
def test_broken_idx_files_are_refused(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=told):
        read_idx(tmp_path / name)


def test_broken_matlab_files_are_refused(tmp_path):
    path = tmp_path / "x.mat"
    path.write_bytes(b"no MATLAB file" * 20)
    with pytest.raises(ValueError, match="not a readable MATLAB file"):
        read_mat(path)
    whole = {"data": np.ones((3, 2)), "target": np.eye(3), "partial_target": np.ones((3, 3))}
    for change, told in (
        ({"target": np.ones((3, 3))}, "one true label for each instance; column 0 names 3"),
        ({"target": np.ones((3, 4))}, r"target has shape \(3, 4\)"),
    ):
        savemat(path, whole | change)
        with pytest.raises(ValueError, match=told):
            read_mat(path)
    savemat(path, {"data": np.ones((3, 2))})
    with pytest.raises(ValueError, match="no variable target, partial_target"):
        read_mat(path)


# ----------------------------------------------------------------------- the command line


def invoke(*arguments, **env):
    return CliRunner().invoke(app, ["data", *map(str, arguments)], env={"COLUMNS": "100", **env})


@pytest.mark.usefixtures("nowhere")
def test_commands_list_get_and_check(server, tmp_path, monkeypatch):
    folder, url = server
    put(folder, "ecoli.arff", ECOLI)
    pretend(monkeypatch, "ecoli", [("uci/ecoli.arff", ECOLI, f"{url}/ecoli.arff")])
    monkeypatch.setitem(registry(), "ecoli", replace(entry("ecoli"), shape=(3, 1, 3)))
    shown = {line.split()[0]: line for line in invoke("list").output.splitlines() if line}
    assert set(registry()) < set(shown)
    assert " no " in shown["ecoli"]
    assert " yes " in shown["iris"]
    assert "22,991" in shown["yahoo-news"]
    place = tmp_path / "cache" / "demur" / "data" / "uci" / "ecoli.arff"
    got = invoke("get", "ecoli")
    assert got.exit_code == 0
    assert str(place) in got.output
    assert "GPL-3" in got.output
    assert "was here already" in invoke("get", "ecoli").output
    checked = invoke("check")
    assert checked.exit_code == 0
    assert "ecoli                      good: 3 rows, 1 features, 3 classes" in checked.output
    assert "mnist                      not here" in checked.output
    assert str(place) in invoke("list", "ecoli").output
    place.write_bytes(b"")
    assert invoke("check").exit_code == 1
    assert "is not the right file" in invoke("check", "ecoli").output


@pytest.mark.usefixtures("nowhere")
def test_commands_say_what_is_wrong(tmp_path):
    unknown = invoke("get", "nosuch")
    assert unknown.exit_code == 2
    assert "no dataset 'nosuch'" in unknown.output
    lacking = invoke("check", "labelme", "--folder", tmp_path)
    assert lacking.exit_code == 1
    assert str(tmp_path / "crowd-labelme" / "answers.txt") in lacking.output
    assert invoke("get", "labelme").exit_code == 1

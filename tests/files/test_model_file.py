"""The model file: the same model back; whatever was done to the file, one clear sentence."""

import io
import json
import pickle
import zipfile
from hashlib import sha256

import numpy as np
import pytest

from demur import files
from demur.files.model_file import load, save
from demur.methods import METHODS


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def rewrite(path, change):
    """Change the description and make its checksum right again."""
    members = members_of(path)
    described = json.loads(members["model.json"])
    change(described, members)
    members["model.json"] = json.dumps(described).encode()
    members["checksum"] = sha256(members["model.json"]).hexdigest().encode()
    write(path, members)


@pytest.mark.parametrize("name", [m for m in METHODS if m in ("dst-pll", "pl-knn", "pl-ecoc")])
def test_a_model_comes_back_as_it_was(folder, wanted, rng, name):
    done = files.fit(
        folder / "train.csv", folder / "m.demur",
        wanted=wanted, features="f1:f3", method_name=name, scaling="standard",
    )  # fmt: skip
    again = load(folder / "m.demur")
    X = rng.normal(size=(20, 3))
    assert np.array_equal(again.method.predict_proba(X), done.model.method.predict_proba(X))
    assert again.preparation.columns == done.model.preparation.columns
    assert again.training.ids == [f"r{i}" for i in range(100)]
    assert again.sets.to_lists() == done.model.sets.to_lists()
    assert again.summary == done.model.summary
    save(again, folder / "n.demur")
    assert (folder / "n.demur").read_bytes() == (folder / "m.demur").read_bytes()


def test_the_file_is_arrays_and_json_without_pickle(model):
    members = members_of(model)
    described = json.loads(members["model.json"])
    assert described["format_version"] == 1
    assert described["method"] == "dst-pll"
    assert [column["name"] for column in described["columns"]] == ["f1", "f2", "f3"]
    assert described["summary"]["rows"] == 100
    for entry in described["arrays"].values():
        content = members.pop(entry["member"])
        assert sha256(content).hexdigest() == entry["sha256"]
        assert not np.load(io.BytesIO(content), allow_pickle=False).dtype.hasobject
    assert set(members) == {"model.json", "checksum"}


def refusal(path):
    with pytest.raises(files.DataError) as caught:
        load(path)
    told = str(caught.value)
    assert "\n" not in told
    assert str(path) in told
    return told


def test_every_cut_is_refused(model):
    content = model.read_bytes()
    for length in [0, 1, 10, *range(100, len(content), len(content) // 40), len(content) - 1]:
        model.write_bytes(content[:length])
        refusal(model)


def test_a_changed_byte_in_what_matters_is_refused(model):
    content = model.read_bytes()
    with zipfile.ZipFile(model) as archive:
        places = {m.filename: content.index(archive.read(m)) for m in archive.infolist()}
    for place in places.values():
        changed = bytearray(content)
        changed[place + 3] ^= 1
        model.write_bytes(changed)
        refusal(model)


def test_the_description_cannot_be_changed_alone(model):
    members = members_of(model)
    members["model.json"] = members["model.json"].replace(b'"dst-pll"', b'"pl-knn"')
    write(model, members)
    assert "was changed after it was written: its checksum is wrong" in refusal(model)


def test_an_array_cannot_be_changed_alone(model):
    members = members_of(model)
    members["arrays/0.npy"] = members["arrays/1.npy"]
    write(model, members)
    assert "was changed after it was written" in refusal(model)


def test_a_newer_version_names_who_wrote_it(model):
    def change(described, _):
        described["format_version"] = 2
        described["demur_version"] = "9.1"

    rewrite(model, change)
    told = refusal(model)
    assert "format version 2" in told
    assert "written by demur 9.1" in told


def test_a_zip_bomb_is_refused_before_it_unpacks(model):
    members = members_of(model)
    members["arrays/9999.npy"] = b"\0" * 50_000_000
    write(model, members, zipfile.ZIP_DEFLATED)
    assert model.stat().st_size < 1_000_000
    assert "would unpack to more than its own size" in refusal(model)


@pytest.mark.parametrize(
    "name", ["../escaped", "/tmp/escaped", "arrays/../../escaped.npy", "arrays\\0.npy", "run.py"]
)
def test_other_members_are_refused_and_nothing_is_written(model, name):
    members = members_of(model)
    before = sorted(model.parent.rglob("*"))
    write(model, {**members, name: b"x"})
    assert "is refused: it holds" in refusal(model)
    assert sorted(model.parent.rglob("*")) == before
    assert not (model.parent.parent / "escaped").exists()


def test_a_member_that_stands_twice_is_refused(model):
    with zipfile.ZipFile(model, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("model.json", b"{}")
    assert "is refused: it holds a member twice" in refusal(model)


class Harm:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


def test_a_pickle_inside_an_array_is_not_run(model):
    def change(described, members):
        entry = next(iter(described["arrays"].values()))
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            buffer, {"descr": "|O", "fortran_order": False, "shape": (1,)}
        )
        members[entry["member"]] = buffer.getvalue() + pickle.dumps([Harm()])
        entry["sha256"] = sha256(members[entry["member"]]).hexdigest()

    rewrite(model, change)
    assert "holds neither numbers nor text" in refusal(model)


def test_a_claimed_shape_takes_no_memory(model):
    def change(described, members):
        entry = described["arrays"]["training/X"]
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 3)}
        )
        members[entry["member"]] = buffer.getvalue()
        entry["sha256"] = sha256(buffer.getvalue()).hexdigest()

    rewrite(model, change)
    assert "is cut short" in refusal(model)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("method", "pickle", "a model of 'pickle', which demur does not have"),
        ("parameters", {"n_neighbours": 3}, "has no parameter 'n_neighbours'"),
        ("parameters", {"n_neighbors": [1, 2]}, "its parameter n_neighbors is of a wrong kind"),
        ("parameters", {"n_neighbors": 3.0}, "its parameter n_neighbors is of a wrong kind"),
        ("parameters", {"n_neighbors": None}, "its parameter n_neighbors is of a wrong kind"),
        ("parameters", {"alpha": 10**300}, "its parameter alpha is of a wrong kind"),
        ("parameters", {"alpha": None}, "its parameter alpha is of a wrong kind"),
        ("parameters", {"n_jobs": "many"}, "its parameter n_jobs is of a wrong kind"),
        ("parameters", {"n_jobs": 0.5}, "its parameter n_jobs is of a wrong kind"),
        ("columns", [], "is damaged"),
        ("columns", [{"name": "f1", "values": [], "fill": None}], "column 'f1' is malformed"),
        ("scaling", "log", "its columns are missing"),
        ("summary", None, "its 'summary' is missing"),
        ("arrays", {}, "is damaged"),
        ("format", "other", "is a zip archive but no demur model"),
    ],
)
def test_what_no_model_says(model, key, value, message):
    rewrite(model, lambda described, _: described.update({key: value}))
    assert message in refusal(model)


def test_other_files_are_no_models(tmp_path):
    path = tmp_path / "x.demur"
    assert "No such file" in refusal(path)
    path.write_bytes(b"not a zip")
    assert "is no demur model" in refusal(path)
    write(path, {"a": b""})
    assert "is refused" in refusal(path)
    write(path, {})
    assert "is a zip archive but no demur model" in refusal(path)


def test_writing_leaves_the_old_file_when_it_fails(model, monkeypatch):
    again = load(model)
    before = model.read_bytes()

    def fail(*_):
        raise OSError(28, "No space")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(OSError, match="No space"):
        save(again, model)
    assert model.read_bytes() == before
    assert not [p for p in model.parent.iterdir() if p.name.startswith(".")]


def test_a_parameter_that_is_no_plain_value_is_refused(model):
    again = load(model)
    again.method.set_params(n_neighbors=np.arange(3))
    with pytest.raises(files.UsageError, match="cannot be written to a model file"):
        save(again, model)

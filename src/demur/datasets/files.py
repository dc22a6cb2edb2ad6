"""Where the files of the named datasets lie, and whether they are the right ones."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from demur.datasets.registry import Entry, File

# Debian's package dataset-fashion-mnist puts its files here.
SYSTEM = Path("/usr/share/datasets")

Folder = str | os.PathLike[str]


def user_folder() -> Path:
    """Where `demur data get` puts files: in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "demur" / "data"


def places(folder: Folder | None = None) -> list[Path]:
    """The folders that are searched, in this order.

    A folder that is named is searched before what the system's packages bring. Else it is the
    one that DEMUR_DATA names, and then the user's own.
    """
    if folder is not None:
        return [Path(folder), SYSTEM]
    shared = os.environ.get("DEMUR_DATA")
    return [*([Path(shared)] if shared else []), user_folder(), SYSTEM]


def find(file: File, folder: Folder | None = None) -> Path | None:
    """The first place that has the file."""
    paths = (place / file.path for place in places(folder))
    return next((path for path in paths if path.is_file()), None)


def locate(entry: Entry, folder: Folder | None = None) -> dict[str, Path]:
    """The paths of an entry's files by their names, each file checked.

    Raises
    ------
    FileNotFoundError
        If one lacks; says what belongs where.
    ValueError
        If one is not what it should be.
    """
    found = {file: find(file, folder) for file in entry.files}
    lacking = [file for file, path in found.items() if path is None]
    if lacking:
        raise FileNotFoundError(f"{entry.name} is not here. {how_to_get(entry, lacking, folder)}")
    paths = {path.name: (file, path) for file, path in found.items() if path is not None}
    for file, path in paths.values():
        verify(file, path)
    return {name: path for name, (_, path) in paths.items()}


def how_to_get(entry: Entry, lacking: list[File], folder: Folder | None = None) -> str:
    """Say how to fetch the files, or else which belong where."""
    if not all(file.url for file in lacking):
        return f"It cannot be fetched: see {entry.origin}. {what_to_put(lacking, folder)}"
    to = "" if folder is None else f" --folder {folder}"
    return (
        f"`demur data get {entry.name}{to}` fetches it. Without a network: "
        f"{what_to_put(lacking, folder)}"
    )


def what_to_put(lacking: list[File], folder: Folder | None = None) -> str:
    """Say which files belong where, where they come from, and how to recognise them."""
    lines = ["Put there"]
    for file in lacking:
        lines.append(f"  {places(folder)[0] / file.path}")
        lines += [f"    from {file.url}"] if file.url else []
        lines.append(f"    {file.check.replace(':', ' ')}")
    if folder is None:
        lines.append("or let DEMUR_DATA name a folder that has it.")
    return "\n".join(lines)


def verify(file: File, path: Path) -> None:
    """Refuse a file that is not the one that the registry knows."""
    kind, _, expected = file.check.partition(":")
    try:
        actual = CHECKS[kind](path)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        actual = "unknown, as it is not a whole gzip file"
    if actual != expected:
        source = f" from {file.url}" if file.url else ""
        raise ValueError(
            f"{path} is not the right file: its {kind} should be {expected}, but is {actual}. "
            f"Remove it, or put the right one there{source}."
        )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _unpacked_sha256(path: Path) -> str:
    return hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def _git_blob(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


CHECKS: Mapping[str, Callable[[Path], str]] = {
    "sha256": _sha256,
    "unpacked-sha256": _unpacked_sha256,
    "md5": _md5,
    "git-blob": _git_blob,
}

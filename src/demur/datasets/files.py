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


def user_folder() -> Path:
    """Where `demur data get` puts files: DEMUR_DATA, else a folder in the user's cache."""
    if os.environ.get("DEMUR_DATA"):
        return Path(os.environ["DEMUR_DATA"])
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "demur" / "data"


def find(file: File, folder: Path) -> Path | None:
    """The file in the folder, or where the system's packages have it."""
    for place in (folder, SYSTEM):
        if (place / file.path).is_file():
            return place / file.path
    return None


def locate(entry: Entry, folder: Path) -> dict[str, Path]:
    """The paths of an entry's files by name, each one checked.

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
        raise FileNotFoundError(f"{entry.name} is not here.\n{what_to_put(entry, lacking, folder)}")
    paths = {}
    for file, path in found.items():
        assert path is not None
        verify(file, path)
        paths[path.name] = path
    return paths


def what_to_put(entry: Entry, lacking: list[File], folder: Path) -> str:
    """Say which files belong where, and where they come from."""
    lines = ["Put there, or let DEMUR_DATA name a folder that has:"]
    lines += [f"  {folder / file.path}  ({file.check})" for file in lacking]
    if all(file.url for file in lacking):
        lines += [f"`demur data get {entry.name}` fetches", *(f"  {file.url}" for file in lacking)]
    else:
        lines.append(f"No address is known to fetch it from; it stems from {entry.origin}")
    return "\n".join(lines)


def verify(file: File, path: Path) -> None:
    """Refuse a file that is not the one that the registry knows."""
    kind, _, expected = file.check.partition(":")
    try:
        actual = CHECKS[kind](path)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        actual = "not a whole gzip file"
    if actual != expected:
        told = f" It can be fetched from {file.url}." if file.url else ""
        raise ValueError(
            f"{path} is not the file that is meant: its {kind} is {actual}, not {expected}. "
            f"Put the right file there, or remove it.{told}"
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

"""Fetch the files of a named dataset, check them, and only then put them in their place."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path
from typing import Any

from demur.datasets.files import Folder, find, how_to_get, user_folder, verify, what_to_put
from demur.datasets.registry import File, entry

TIMEOUT = 30  # seconds without an answer


def download(name: str, folder: Folder | None = None, *, progress: Any = False) -> list[Path]:
    """Fetch what lacks of a dataset.

    Parameters
    ----------
    name : str
        One of `demur.datasets.registry`.
    folder : path, optional
        Where to put it; by default a folder in the user's cache, where `load` finds it.
    progress : bool or object, default=False
        As pooch takes it: True for a bar by tqdm, or an object like one.

    Returns
    -------
    fetched : list of Path
        Empty where everything was there.

    Raises
    ------
    OSError, ValueError
        If a file cannot be had, or is not what it should be; says what to put where.
    """
    known = entry(name)
    lacking = []
    for file in known.files:
        path = find(file, folder)
        if path is None:
            lacking.append(file)
        else:
            verify(file, path)
    homeless = [file for file in lacking if not file.url]
    if homeless:
        raise ValueError(f"{name} is not here. {how_to_get(known, homeless, folder)}")
    root = user_folder() if folder is None else Path(folder)
    return [_fetch(file, root, folder, progress) for file in lacking]


def _fetch(file: File, root: Path, folder: Folder | None, progress: Any) -> Path:
    try:
        import pooch
    except ImportError:
        raise ImportError(
            'fetching needs pooch; install it with `pip install "demur[bench]"`.'
        ) from None
    pooch.get_logger().setLevel(logging.WARNING)
    path = root / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=path.parent) as draft:
        try:
            got = pooch.retrieve(
                file.url,
                known_hash=None,  # checked below: some are of unpacked files, or git's
                fname=path.name,
                path=draft,
                downloader=pooch.HTTPDownloader(timeout=TIMEOUT, progressbar=progress),
            )
        except (OSError, ValueError) as error:  # requests' errors are of OSError
            if (response := getattr(error, "response", None)) is not None:
                response.close()  # pooch leaves the refused one open
            raise OSError(
                f"{file.url} cannot be fetched: {_reason(error)}. {what_to_put([file], folder)}"
            ) from error
        verify(file, Path(got))
        os.replace(got, path)
    return path


def _reason(error: Exception) -> str:
    """The innermost reason, without the layers of a network library around it."""
    inner: BaseException = error
    while inner.__cause__ or inner.__context__:
        inner = inner.__cause__ or inner.__context__ or inner
    return (getattr(inner, "strerror", None) or str(inner)).rstrip(".")

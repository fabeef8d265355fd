"""Find the files of a data set, verify them, download what is missing.

A file is looked for in the folder that ``PREFLEARN_DATA`` names (a mirror, ``<dataset>/<file>``), then
in the user's cache, and is else downloaded into the cache. Wherever it comes from, its bytes are
compared with the SHA-256 of the register before anything parses them. ``PREFLEARN_OFFLINE=1`` keeps
off the network. Both variables are read when a file is asked for.

Where the register knows no hash (the chess files), the package downloads nothing. Someone who trusts
a copy puts it into the mirror or the cache and records its hash there, in a file ``SHA256SUMS`` beside
it, as the command ``sha256sum FILE >> SHA256SUMS`` writes it; from then on that hash is verified.
"""

from __future__ import annotations

import hashlib
import logging
import os
import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from platformdirs import user_cache_path

from preflearn.datasets.registry import RegisteredFile, files_of, registered_file

__all__ = [
    "CorruptedFile",
    "DatasetUnavailable",
    "advice",
    "cache_folder",
    "check",
    "download",
    "locate",
    "provenance",
    "read",
    "used",
]

_TIMEOUT = (5, 30)  # seconds to connect, and between two packets
_USED: dict[tuple[str, str], dict[str, str]] = {}


class DatasetUnavailable(OSError):  # noqa: N818 - the name says what is the matter
    """A file of a data set is neither here nor to be had; the message says how to get it."""


class CorruptedFile(ValueError):  # noqa: N818
    """A file is here, and its bytes are not those of the register."""


def cache_folder() -> Path:
    """The user's cache, laid out as ``<dataset>/<file>``."""
    return user_cache_path("preflearn", appauthor=False)


def read(dataset: str, file: str) -> bytes:
    """The bytes of a registered file, verified by SHA-256; downloaded if it is nowhere.

    Parameters
    ----------
    dataset, file : str
        As in the register.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        On an unknown data set or file; as `CorruptedFile` if the bytes found are not the registered ones.
    DatasetUnavailable
        If the file is not here and can't be downloaded, or its hash is known to nobody.
    """
    entry = registered_file(dataset, file)
    path, source = locate(entry) or (download(entry), "download")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    expected = _expected_hash(entry, path)
    if expected is None:
        raise DatasetUnavailable(advice(entry, f"{path} can't be verified: its SHA-256 is not recorded"))
    if found != expected:
        raise CorruptedFile(_mismatch(path, found, expected, len(content), entry))
    note = {"dataset": dataset, "file": file, "sha256": found, "source": source}
    _USED.setdefault((dataset, file), note)
    return content


def used() -> list[dict[str, str]]:
    """The files that this process has read so far, in order: dataset, file, sha256, source.

    The source is "mirror", "cache" or "download".
    """
    return [dict(note) for note in _USED.values()]


def provenance(dataset: str, files: Sequence[str] | None = None) -> tuple[dict[str, str], ...]:
    """Where the files of a data set come from and how to cite them.

    Parameters
    ----------
    dataset : str
    files : sequence of str, optional
        All of the data set by default.

    Returns
    -------
    tuple of dict
        One a file: dataset, file, url, sha256, licence, citation, and the source it was read from
        in this process ("not read" if it was not).

    Raises
    ------
    ValueError
        On an unknown data set or file.
    """
    names = [entry.file for entry in files_of(dataset)] if files is None else files
    rows = []
    for entry in (registered_file(dataset, name) for name in names):
        note = _USED.get((dataset, entry.file), {"sha256": entry.sha256, "source": "not read"})
        row = {"dataset": dataset, "file": entry.file, "url": entry.url, "sha256": note["sha256"]}
        rows.append(row | {"licence": entry.licence, "citation": entry.citation, "source": note["source"]})
    return tuple(rows)


def _folders() -> list[tuple[Path, str]]:
    mirror = os.environ.get("PREFLEARN_DATA")
    return [*([(Path(mirror), "mirror")] if mirror else []), (cache_folder(), "cache")]


def locate(entry: RegisteredFile) -> tuple[Path, str] | None:
    """Where a file lies, with "mirror" or "cache"; None if it is in neither."""
    for folder, source in _folders():
        path = folder / entry.dataset / entry.file
        if path.is_file():
            return path, source
    return None


def _expected_hash(entry: RegisteredFile, path: Path) -> str | None:
    """The registered hash, or else the one that the file's owner recorded beside it."""
    sums = path.with_name("SHA256SUMS")
    if entry.sha256 or not sums.is_file():
        return entry.sha256 or None
    lines = (line.split(maxsplit=1) for line in sums.read_text(encoding="utf-8").splitlines())
    recorded = {line[1].removeprefix("*").strip(): line[0].lower() for line in lines if len(line) == 2}
    return recorded.get(entry.file)


def check(entry: RegisteredFile, path: Path) -> tuple[str, str]:
    """Compare a file with the register: "ok", "mismatch" or "unverifiable", and the details."""
    expected = _expected_hash(entry, path)
    if expected is None:
        return "unverifiable", f"{path} can't be verified: its SHA-256 is not recorded"
    stat = path.stat()
    found = _file_hash(path, stat.st_size, stat.st_mtime_ns)
    if found != expected:
        return "mismatch", _mismatch(path, found, expected, stat.st_size, entry)
    return "ok", str(path)


@lru_cache(maxsize=1024)
def _file_hash(path: Path, size: int, changed: int) -> str:
    """SHA-256 of a file; size and time of change make a new entry when the file changes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _mismatch(path: Path, found: str, expected: str, size: int, entry: RegisteredFile) -> str:
    short = entry.bytes is not None and size < entry.bytes
    what = f"truncated ({size} of {entry.bytes} bytes)" if short else "not the file that is expected"
    if entry.sha256:
        remedy = f"delete it, then run: preflearn data fetch {entry.dataset}"
    else:
        remedy = f"put the file back whose hash was recorded, or correct {path.with_name('SHA256SUMS')}"
    return f"{path} is {what}: its SHA-256 is {found}, expected {expected}; {remedy}"


def _nowhere() -> str:
    """Where a file was looked for."""
    mirror = os.environ.get("PREFLEARN_DATA")
    if not mirror:
        return "it is not in the cache, and PREFLEARN_DATA names no mirror"
    if not Path(mirror).is_dir():
        return f"it is not in the cache, and PREFLEARN_DATA names {mirror}, which is no folder"
    return f"it is neither in the mirror {mirror} nor in the cache"


def advice(entry: RegisteredFile, reason: str) -> str:
    """Why a file can't be had, how to get it, and under which licence."""
    place = cache_folder() / entry.dataset
    if entry.sha256:
        how = f"run: preflearn data fetch {entry.dataset}, or put {entry.url} into {place}"
    else:
        how = (
            f"put {entry.url} into {place} yourself (the package downloads nothing that it can't verify) "
            f"and, if you trust it, record its hash in that folder: sha256sum {entry.file} >> SHA256SUMS"
        )
    return (
        f"{entry.dataset}/{entry.file} is not available: {reason}. To get it, {how}. Licence: {entry.licence}"
    )


def download(entry: RegisteredFile, progress: bool = False) -> Path:
    """Download one file into the cache: to a temporary name, renamed when its hash is right.

    Raises
    ------
    DatasetUnavailable
        If there is no hash to verify it with, ``PREFLEARN_OFFLINE`` is set, the download fails, or
        what comes has other bytes; the cache then stays as it was.
    """
    if not entry.sha256:
        raise DatasetUnavailable(advice(entry, _nowhere()))
    if os.environ.get("PREFLEARN_OFFLINE", "0") not in ("", "0"):
        raise DatasetUnavailable(advice(entry, f"{_nowhere()}, and PREFLEARN_OFFLINE is set"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # late, since it loads tqdm, which warns inside notebooks
        import pooch
    fetcher = pooch.create(
        path=cache_folder() / entry.dataset,
        base_url="",
        registry={entry.file: f"sha256:{entry.sha256}"},
        urls={entry.file: entry.url},
        retry_if_failed=1,
    )
    logger = pooch.get_logger()
    level = logger.level
    try:
        logger.setLevel(logging.WARNING)
        path = fetcher.fetch(
            entry.file, downloader=pooch.HTTPDownloader(progressbar=progress, timeout=_TIMEOUT)
        )
    except (OSError, ValueError) as error:  # no network, no space, or other bytes than expected
        reason = f"downloading {entry.url} failed ({type(error).__name__}: {str(error)[:400]})"
        raise DatasetUnavailable(advice(entry, reason)) from None
    finally:
        logger.setLevel(level)
    return Path(path)

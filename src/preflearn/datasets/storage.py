"""Find the files of a data set, verify them, download what is missing.

A file is looked for in the folder that ``PREFLEARN_DATA`` names (a mirror, ``<dataset>/<file>``), then
in the user's cache, and is else downloaded into the cache. Wherever it comes from, its size and its
SHA-256 are compared with the register before anything parses it, and no byte beyond the size is read.
``PREFLEARN_OFFLINE=1`` keeps off the network. Both variables are read when a file is asked for; a relative
mirror is that of the folder in which the process first asked.

Where the register knows no hash (the chess files), the package downloads nothing. Someone who trusts
a copy puts it into the mirror or the cache and records its hash there, in a file ``SHA256SUMS`` beside
it, as the command ``sha256sum FILE >> SHA256SUMS`` writes it; from then on that hash is verified.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from platformdirs import user_cache_path

from preflearn.datasets.download import download
from preflearn.datasets.registry import RegisteredFile, files_of, registered_file

__all__ = [
    "CorruptedFile",
    "DatasetUnavailable",
    "locate",
    "obtain",
    "provenance",
    "read",
    "used",
    "verified",
]

_LONGEST_SUMS = 2**20  # bytes of a file SHA256SUMS
_USED: dict[tuple[str, str], dict[str, str]] = {}


class DatasetUnavailable(OSError):  # noqa: N818 - the name says what is the matter
    """A file of a data set can't be had or can't be read; the message says how to get it."""


class CorruptedFile(ValueError):  # noqa: N818
    """What lies in the place of a file is not what is registered; the message says what it is."""


def cache_folder() -> Path:
    """The user's cache, laid out as ``<dataset>/<file>``."""
    return user_cache_path("preflearn", appauthor=False)


def mirror_folder() -> Path | None:
    """The folder that ``PREFLEARN_DATA`` names, as an absolute path; None if it names none."""
    named = os.environ.get("PREFLEARN_DATA")
    return _absolute(named) if named else None


@lru_cache
def _absolute(folder: str) -> Path:
    """Resolved once, so that a later change of the working folder changes no data."""
    return Path(folder).absolute()


def read(dataset: str, file: str) -> bytes:
    """The bytes of a registered file, verified; downloaded if it is nowhere.

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
        On an unknown data set or file; as `CorruptedFile` if what was found is not what is registered.
    DatasetUnavailable
        If the file is not here and can't be downloaded, can't be read, or its hash is known to nobody.
    """
    entry = registered_file(dataset, file)
    content, _, source = obtain(entry)
    note = {"dataset": dataset, "file": file, "sha256": entry.sha256 or _sha256(content), "source": source}
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
        row = entry._asdict() | {"source": "not read"} | _USED.get((dataset, entry.file), {})
        del row["bytes"]
        rows.append(row)
    return tuple(rows)


def obtain(entry: RegisteredFile, progress: bool = False) -> tuple[bytes, Path, str]:
    """The verified bytes of a file, where it lies, and "mirror", "cache" or "download"; see `read`."""
    path, source = locate(entry) or (_download(entry, progress), "download")
    return verified(entry, path), path, source


def locate(entry: RegisteredFile) -> tuple[Path, str] | None:
    """Where a file lies, with "mirror" or "cache"; None if it is in neither."""
    for folder, source in ((mirror_folder(), "mirror"), (cache_folder(), "cache")):
        if folder and _exists(path := folder / entry.dataset / entry.file):
            return path, source
    return None


def _exists(path: Path) -> bool:
    """Whether something is here, or can't be told from here: reading it then says what is the matter."""
    try:
        path.stat()
    except OSError as error:
        return not isinstance(error, (FileNotFoundError, NotADirectoryError))
    return True


def verified(entry: RegisteredFile, path: Path) -> bytes:
    """The bytes of a file.

    Raises
    ------
    CorruptedFile
        If they are not the registered ones, or what lies there is no file.
    DatasetUnavailable
        If it can't be read, or its hash is known to nobody.
    """
    expected = entry.sha256 or _recorded_hash(entry, path.with_name("SHA256SUMS"))
    if not expected:
        raise DatasetUnavailable(advice(entry, f"{path} can't be verified: its SHA-256 is not recorded"))
    content = _bytes(entry, path, entry.limit)
    found = _sha256(content)
    if found != expected:
        short = entry.bytes is not None and len(content) < entry.bytes
        what = (
            f"truncated ({len(content)} of {entry.bytes} bytes)" if short else "not the file that is expected"
        )
        raise _damage(entry, path, f"is {what}: its SHA-256 is {found}, expected {expected}")
    return content


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _bytes(entry: RegisteredFile, path: Path, limit: int) -> bytes:
    """What a file holds, if that is not more than the limit."""
    try:
        if not path.is_file():
            raise _damage(entry, path, "is a folder or a device, expected a file")
        content, size = b"", path.stat().st_size
        if size <= limit:
            with path.open("rb") as stream:
                content = stream.read(limit + 1)  # it may have grown, and sizes of special files lie
            size = len(content)
    except OSError as error:
        reason = f"{path} can't be read ({error.strerror}); make it readable or delete it"
        raise DatasetUnavailable(advice(entry, reason)) from None
    if size > limit:
        raise _damage(entry, path, f"is too large: it has {size} bytes, expected at most {limit}")
    return content


def _recorded_hash(entry: RegisteredFile, sums: Path) -> str | None:
    """The hash that the file's owner recorded beside it."""
    if not _exists(sums):
        return None
    try:
        text = _bytes(entry, sums, _LONGEST_SUMS).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _damage(entry, sums, f"is no UTF-8 text (byte {error.start}); write it anew") from None
    lines = (line.split(maxsplit=1) for line in text.splitlines())
    recorded = {line[1].removeprefix("*").strip(): line[0].lower() for line in lines if len(line) == 2}
    found = recorded.get(entry.file)
    if found is not None and not re.fullmatch("[0-9a-f]{64}", found):
        raise _damage(entry, sums, f"records {found[:80]!r} for {entry.file}, expected 64 hexadecimal digits")
    return found


def _damage(entry: RegisteredFile, path: Path, what: str) -> CorruptedFile:
    if entry.sha256:
        remedy = f"delete it, then run: preflearn data fetch {entry.dataset}"
    else:
        remedy = f"put the file back whose hash was recorded, or correct {path.with_name('SHA256SUMS')}"
    return CorruptedFile(f"{path} {what}; {remedy}")


def _nowhere() -> str:
    """Where a file was looked for."""
    mirror = mirror_folder()
    if mirror is None:
        return "it is not in the cache, and PREFLEARN_DATA names no mirror"
    if not mirror.is_dir():
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


def _download(entry: RegisteredFile, progress: bool) -> Path:
    """Download one file into the cache, which stays as it was if that fails."""
    if not entry.sha256:
        raise DatasetUnavailable(advice(entry, _nowhere()))
    if os.environ.get("PREFLEARN_OFFLINE", "0") not in ("", "0"):
        raise DatasetUnavailable(advice(entry, f"{_nowhere()}, and PREFLEARN_OFFLINE is set"))
    place = cache_folder() / entry.dataset / entry.file
    try:
        download(entry, place, progress)
        return place
    except (OSError, ValueError) as error:  # no network, no space, or other bytes than expected
        reason = f"downloading {entry.url} failed ({type(error).__name__}: {str(error)[:400]})"
    raise DatasetUnavailable(advice(entry, reason))  # here, since the error above keeps a connection open

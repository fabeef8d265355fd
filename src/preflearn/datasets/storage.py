"""Read, fetch and verify public data: the bytes under every loader, and the command ``preflearn data``.

What lies in the mirror or in the cache is read there (see `preflearn.datasets.registry`); what is in neither
is downloaded into the cache if its hash is registered. ``PREFLEARN_OFFLINE=1`` keeps off the network.
"""

import hashlib
import io
import os
import shutil
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from preflearn.datasets import registry
from preflearn.datasets.registry import CorruptedFile, DatasetUnavailable, RegisteredFile

_TIMEOUT = (5, 30)  # seconds to connect, and between two packets
_STALE = 60  # seconds; a file that is complete in memory is written in far less
_USED: dict[tuple[str, str], dict[str, str]] = {}
_ASKED: dict[str, None] = {}  # an ordered set


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
    (entry,) = registry.files_of(dataset, [file])
    _ASKED[dataset] = None
    content, _, source = _obtain(entry)
    note = {"dataset": dataset, "file": file, "sha256": hashlib.sha256(content).hexdigest()}
    _USED.setdefault((dataset, file), note | {"source": source})
    return content


def used() -> list[dict[str, str]]:
    """The files that this process has read so far, in order: dataset, file, sha256, source.

    The source is "mirror", "cache" or "download".
    """
    return [dict(note) for note in _USED.values()]


def unread() -> dict[str, bool]:
    """The data sets that this process asked for and read no file of, and whether each is here."""
    read = {dataset for dataset, _ in _USED}
    return {dataset: available(dataset) for dataset in list(_ASKED) if dataset not in read}


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
    rows = []
    for entry in registry.files_of(dataset, files):
        rows.append(entry._asdict() | {"source": "not read"} | _USED.get((dataset, entry.file), {}))
        del rows[-1]["bytes"]
    return tuple(rows)


def available(dataset: str) -> bool:
    """Whether every file of a data set is here with the right hash; downloads nothing.

    Raises
    ------
    ValueError
        On an unknown data set.
    """
    _ASKED[dataset] = None
    return all(_state(entry)[0] == "ok" for entry in registry.files_of(dataset))


def fetch(dataset: str, progress: bool = True) -> list[Path]:
    """Download the files of a data set that are missing, and verify all of them.

    Parameters
    ----------
    dataset : str
    progress : bool
        Whether to draw a bar for each download.

    Returns
    -------
    list of Path
        The files, in the mirror or in the cache.

    Raises
    ------
    ValueError
        On an unknown data set; as `CorruptedFile` if a file that is here has other bytes.
    DatasetUnavailable
        If a file can't be had.
    """
    return [_obtain(entry, progress)[1] for entry in registry.files_of(dataset)]


def verify(dataset: str | None = None) -> pd.DataFrame:
    """Compare the files that are here with the register.

    Parameters
    ----------
    dataset : str, optional
        All data sets by default.

    Returns
    -------
    DataFrame
        One row a file: dataset, file, status, detail. The status is "ok", "missing", "mismatch" (other
        bytes, or no file), or "unverifiable" for a file that can't be read or whose hash nobody recorded.

    Raises
    ------
    ValueError
        On an unknown data set.
    """
    entries = registry.registered_files() if dataset is None else registry.files_of(dataset)
    rows = [(entry.dataset, entry.file, *_state(entry)) for entry in entries]
    return pd.DataFrame(rows, columns=["dataset", "file", "status", "detail"])


def listing() -> pd.DataFrame:
    """The registered data sets, without reading a file.

    Returns
    -------
    DataFrame
        One row a data set: dataset, files, megabytes, here ("mirror", "cache", "mirror, cache",
        "in part" or "no"), licence.
    """
    rows = []
    for name in registry.dataset_names():
        entries = registry.files_of(name)
        sources = [found[1] for entry in entries if (found := registry.locate(entry))]
        whole = len(sources) in (0, len(entries))
        here = ", ".join(sorted(set(sources), reverse=True)) or "no" if whole else "in part"
        sizes = [entry.bytes for entry in entries if entry.bytes is not None]
        megabytes = f"{sum(sizes) / 1e6:.2f}" if len(sizes) == len(entries) else "unknown"
        rows.append((name, len(entries), megabytes, here, entries[0].licence))
    return pd.DataFrame(rows, columns=["dataset", "files", "megabytes", "here", "licence"])


def _state(entry: RegisteredFile) -> tuple[str, str]:
    """Of one file: its status as in `verify`, and the details."""
    if not (found := registry.locate(entry)):
        return "missing", entry.url
    try:
        registry.verified(entry, found[0])
    except CorruptedFile as error:
        return "mismatch", str(error)
    except DatasetUnavailable as error:
        return "unverifiable", str(error)
    return "ok", str(found[0])


def _obtain(entry: RegisteredFile, progress: bool = False) -> tuple[bytes, Path, str]:
    """The verified bytes of a file, where it lies, and "mirror", "cache" or "download"; see `read`."""
    path, source = registry.locate(entry) or (_download(entry, progress), "download")
    return registry.verified(entry, path), path, source


def _download(entry: RegisteredFile, progress: bool) -> Path:
    """Download one file into the cache, which stays as it was if that fails."""
    offline = os.environ.get("PREFLEARN_OFFLINE", "0") not in ("", "0")
    if offline or not entry.sha256:
        raise registry.unavailable(entry, _nowhere() + ", and PREFLEARN_OFFLINE is set" * offline)
    place = registry.cache_folder() / entry.dataset / entry.file
    reason = ""
    for _ in range(2):  # connections break
        try:
            return stored(_answer(entry, progress), place)
        except (OSError, ValueError) as error:  # no network, no space, or other bytes than expected
            reason = f"downloading {entry.url} failed ({type(error).__name__}: {str(error)[:400]})"
    raise registry.unavailable(entry, reason)  # here, since the error above keeps a connection open


def _nowhere() -> str:
    """Where a file was looked for."""
    mirror = registry.mirror_folder()
    named = f"{mirror}, which {'lacks it' if mirror.is_dir() else 'is no folder'}" if mirror else "no mirror"
    return f"it is not in the cache, and PREFLEARN_DATA names {named}"


def _answer(entry: RegisteredFile, progress: bool) -> bytes:
    """What a file's address answers, if it is that file; in memory, so that who is killed leaves nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # late, since it loads tqdm, which warns inside notebooks
        import pooch
    stream = _Bounded(entry.bytes or registry.LARGEST)
    pooch.HTTPDownloader(progressbar=progress, timeout=_TIMEOUT)(entry.url, stream, None)
    found = hashlib.sha256(stream.getvalue()).hexdigest()
    if found != entry.sha256:
        raise ValueError(f"SHA-256 is {found}, expected {entry.sha256}")
    return stream.getvalue()


def stored(content: bytes, place: Path) -> Path:
    """Write a file in one step; what killed processes left on the way is removed."""
    place.parent.mkdir(parents=True, exist_ok=True)
    for left in place.parent.glob(".incoming-*"):
        if time.time() - left.stat().st_mtime > _STALE:
            shutil.rmtree(left, ignore_errors=True)
    with TemporaryDirectory(dir=place.parent, prefix=".incoming-") as folder:
        complete = Path(folder) / place.name
        complete.write_bytes(content)
        return complete.replace(place)


class _Bounded(io.BytesIO):
    """Takes so many bytes, and raises OSError on the next."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def write(self, chunk, /) -> int:
        if self.tell() + len(chunk) > self.limit:
            raise OSError(f"stopped, since more than the registered {self.limit} bytes came")
        return super().write(chunk)

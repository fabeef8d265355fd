"""Reading, downloading, and verification of public data files.

Files in the mirror or in the cache are read there (see `preflearn.datasets.registry`).
Other files are downloaded into the cache, from the first address that works, if their
hash is registered. ``PREFLEARN_OFFLINE=1`` forbids downloads.
"""

import hashlib
import io
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from preflearn.datasets import registry
from preflearn.datasets.registry import (
    CorruptedFile,
    DatasetUnavailable,
    RegisteredFile,
)

MAX_WAIT = 20.0
"""Longest wait in seconds after a server reports too many requests."""

# Increase this number if loaders take other arrays from R files, to parse them again.
_ARRAYS_VERSION = 1
_USED: dict[tuple[str, str], dict[str, str]] = {}
_REQUESTED: dict[str, None] = {}  # an ordered set


def read(dataset: str, file: str) -> bytes:
    """Read the verified bytes of a registered file; download it if it is missing.

    Parameters
    ----------
    dataset, file : str
        Names of the data set and the file in the register.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If the data set or the file is not registered; as `CorruptedFile` if the file
        differs from the registered one.
    DatasetUnavailable
        If the file is missing and cannot be downloaded, cannot be read, or has no
        recorded hash.
    """
    (entry,) = registry.files_of(dataset, [file])
    _REQUESTED[dataset] = None
    content, _, source = _obtain(entry)
    note = {
        "dataset": dataset,
        "file": file,
        "sha256": entry.sha256 or hashlib.sha256(content).hexdigest(),
    }
    _USED.setdefault((dataset, file), note | {"source": source})
    return content


def csv_table(dataset: str, file: str, **how: Any) -> pd.DataFrame:
    """Read a registered CSV file with options of `pandas.read_csv`."""
    return pd.read_csv(io.BytesIO(read(dataset, file)), **how)


def r_arrays(
    dataset: str,
    file: str,
    pick: Callable[[dict[str, Any]], Mapping[str, Any] | pd.DataFrame],
) -> dict[str, NDArray]:
    """Read arrays of numbers, days, or strings from a registered R file.

    `pick` selects the arrays. Because parsing takes seconds, they are stored in the
    user's cache under the hash of the file. They are parsed again if the stored arrays
    cannot be read.
    """
    content = read(dataset, file)
    name = f"{file}.{hashlib.sha256(content).hexdigest()[:16]}.{_ARRAYS_VERSION}.npz"
    place = registry.cache_folder() / dataset / name
    # a stored file that cannot be read, for any reason, counts as missing
    with suppress(Exception):
        return dict(np.load(place))
    arrays: dict[str, Any] = {
        str(name): np.array(values)
        for name, values in pick(_r_objects(content)).items()
    }
    with suppress(OSError):  # the cache is not writable
        place.parent.mkdir(parents=True, exist_ok=True)
        np.savez(place, **arrays)
    return arrays


def _r_objects(content: bytes) -> dict[str, Any]:
    """Objects of an R file by name; S4 objects as namespaces of their slots."""
    import rdata  # imported late: it loads xarray, and most calls find stored arrays

    parsed = rdata.parser.parse_data(content, extension=".rda")
    with warnings.catch_warnings():
        # rdata warns for each class that it does not convert; most are not used
        warnings.filterwarnings("ignore", message="Missing constructor for R class")
        return rdata.conversion.convert(parsed)


def used() -> list[dict[str, str]]:
    """List the files that this process has read so far, in order.

    Each entry has dataset, file, sha256, and source, which is "mirror", "cache", or
    "download".
    """
    return [dict(note) for note in _USED.values()]


def unread() -> list[str]:
    """List the data sets that this process requested without reading a file."""
    return [
        dataset for dataset in _REQUESTED if dataset not in {name for name, _ in _USED}
    ]


def provenance(
    dataset: str, files: Sequence[str] | None = None
) -> tuple[dict[str, str], ...]:
    """Sources of the files of a data set, with licenses and citations.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    files : sequence of str, optional
        Names of the files; all files of the data set by default.

    Returns
    -------
    tuple of dict
        One entry per file: dataset, file, url, sha256, licence, citation, and the
        source from which this process read it ("not read" if it did not).

    Raises
    ------
    ValueError
        If the data set or a file is not registered.
    """
    rows = []
    for entry in registry.files_of(dataset, files):
        row = {
            "dataset": dataset,
            "file": entry.file,
            "url": entry.url,
            "sha256": entry.sha256,
            "licence": entry.licence,
            "citation": entry.citation,
            "source": "not read",
        }
        rows.append(row | _USED.get((dataset, entry.file), {}))
    return tuple(rows)


def available(dataset: str) -> bool:
    """Whether all files of a data set are present and verified; downloads nothing.

    Raises
    ------
    ValueError
        If the data set is not registered.
    """
    entries = registry.files_of(dataset)
    _REQUESTED[dataset] = None
    return all(_state(entry)[0] == "ok" for entry in entries)


def fetch(dataset: str, progress: bool = True) -> list[Path]:
    """Download the missing files of a data set, and verify all its files.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    progress : bool
        Whether to show a progress bar for each download.

    Returns
    -------
    list of Path
        Paths of the files, in the mirror or in the cache.

    Raises
    ------
    ValueError
        If the data set is not registered; as `CorruptedFile` if a file differs from the
        registered one.
    DatasetUnavailable
        If a file is not available.
    """
    return [_obtain(entry, progress)[1] for entry in registry.files_of(dataset)]


def verify(dataset: str | None = None) -> pd.DataFrame:
    """Compare the files on this computer with the register.

    Parameters
    ----------
    dataset : str, optional
        Name of the data set; all data sets by default.

    Returns
    -------
    DataFrame
        One row per file: dataset, file, status, detail. The status is "ok", "missing",
        "mismatch" (other content, or not a file), or "unverifiable" if the file cannot
        be read or has no recorded hash.

    Raises
    ------
    ValueError
        If the data set is not registered.
    """
    if dataset is None:
        entries = registry.registered_files()
    else:
        entries = registry.files_of(dataset)
    rows = [(entry.dataset, entry.file, *_state(entry)) for entry in entries]
    return pd.DataFrame(rows, columns=["dataset", "file", "status", "detail"])


def listing() -> pd.DataFrame:
    """Table of the registered data sets; reads no data file.

    Returns
    -------
    DataFrame
        One row per data set: dataset, files, megabytes (of files with a registered
        size), here (number of files on this computer), licence, and seen (date at which
        its address was last known to work).
    """
    rows = []
    for name in registry.dataset_names():
        entries = registry.files_of(name)
        megabytes = sum(int(entry.bytes or 0) for entry in entries) / 1e6
        here = sum(registry.locate(entry) is not None for entry in entries)
        seen = "; ".join(dict.fromkeys(entry.seen for entry in entries)) or "not known"
        rows.append(
            (name, len(entries), round(megabytes, 2), here, entries[0].licence, seen)
        )
    return pd.DataFrame(
        rows, columns=["dataset", "files", "megabytes", "here", "licence", "seen"]
    )


def _state(entry: RegisteredFile) -> tuple[str, str]:
    """Status of a file, as in `verify`, and details."""
    place = registry.locate(entry)
    if place is None:
        return "missing", entry.url
    path, _ = place
    try:
        registry.verified(entry, path)
    except CorruptedFile as error:
        return "mismatch", str(error)
    except DatasetUnavailable as error:
        return "unverifiable", str(error)
    return "ok", str(path)


def _obtain(entry: RegisteredFile, progress: bool = False) -> tuple[bytes, Path, str]:
    """Verified bytes of a file, its path, and "mirror", "cache", or "download"."""
    path, source = registry.locate(entry) or (_download(entry, progress), "download")
    return registry.verified(entry, path), path, source


def _download(entry: RegisteredFile, progress: bool) -> Path:
    """Download a file into the cache from the first address that works; verify it."""
    offline = os.environ.get("PREFLEARN_OFFLINE", "0") not in ("", "0")
    if offline or not entry.addresses:
        mirror = registry.mirror_folder()
        reason = "it is not in the cache, and PREFLEARN_DATA is not set"
        if mirror:
            reason = (
                f"it is neither in the cache nor in the folder PREFLEARN_DATA={mirror}"
            )
        if offline:
            reason += ", and PREFLEARN_OFFLINE forbids downloads"
        raise registry.unavailable(entry, reason)
    answers = []
    for url in entry.addresses:
        try:
            return _retrieved(entry, url, progress)
        # no network, no space, or other bytes than expected
        except (OSError, ValueError) as error:
            answers.append(f"{url} ({_answer(error)})")
    # Raised outside the loop, since an error keeps its connection open.
    raise registry.unavailable(entry, f"all downloads failed: {'; '.join(answers)}")


def _retrieved(entry: RegisteredFile, url: str, progress: bool) -> Path:
    """Download a file from one address; try twice if the server asks to wait."""
    with warnings.catch_warnings():
        # imported late: it loads tqdm, which warns in notebooks
        warnings.simplefilter("ignore")
        import pooch
    # its messages would appear in the output of notebooks
    pooch.get_logger().setLevel("WARNING")
    folder = registry.cache_folder() / entry.dataset
    retrieve = partial(
        pooch.retrieve,
        url,
        f"sha256:{entry.sha256}",
        fname=entry.file,
        path=folder,
        progressbar=progress,
    )
    try:
        return Path(retrieve())
    except OSError as error:
        seconds = _seconds_to_wait(error)
        if seconds is None or seconds > MAX_WAIT:
            raise
    time.sleep(seconds)
    return Path(retrieve())


def _seconds_to_wait(error: Exception) -> float | None:
    """Wait in seconds that a server demands after too many requests (429), or None.

    ``Retry-After`` has seconds or a date; ``X-RateLimit-Reset`` of Software Heritage
    has seconds since 1970.
    """
    response = getattr(error, "response", None)
    if response is None or response.status_code != 429:
        return None
    with suppress(ValueError):
        after = response.headers.get("Retry-After", "")
        if after.strip().isdigit():
            return float(after)
        if after:
            until = parsedate_to_datetime(after).timestamp()
        else:
            until = float(response.headers.get("X-RateLimit-Reset", ""))
        return max(until - time.time(), 0.0)
    return None


def _answer(error: Exception) -> str:
    """Description of the answer of an address."""
    import requests  # imported late, like pooch

    if isinstance(error, requests.ConnectionError):
        # the text of the exception is long and repeats the address
        return "no connection"
    response = getattr(error, "response", None)
    if response is None:
        return f"{type(error).__name__}: {str(error)[:400]}"
    if response.status_code != 429:
        return f"{response.status_code} {response.reason}"
    seconds = _seconds_to_wait(error)
    if seconds is None:
        return "429 too many requests; try again later"
    when = datetime.fromtimestamp(time.time() + seconds, UTC)
    return f"429 too many requests; try again after {when:%Y-%m-%d %H:%M} UTC"

"""Reading, fetching and verifying of public data, for loaders and ``preflearn data``.

Files in the mirror or in the cache are read there (see `preflearn.datasets.registry`);
other files are downloaded into the cache if their hash is registered, from the first
address that has them. ``PREFLEARN_OFFLINE=1`` forbids downloads.
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
"""Longest wait in seconds if a server reports too many requests."""

# Raise this number if loaders take other arrays from R files, so that they are made again.
_ARRAYS_VERSION = 1
_USED: dict[tuple[str, str], dict[str, str]] = {}
_ASKED: dict[str, None] = {}  # an ordered set


def read(dataset: str, file: str) -> bytes:
    """The verified bytes of a registered file, which is downloaded if it is missing.

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
        On an unknown data set or file; as `CorruptedFile` if the file differs from the
        registered one.
    DatasetUnavailable
        If the file is missing and can't be downloaded, can't be read, or has no
        recorded hash.
    """
    (entry,) = registry.files_of(dataset, [file])
    _ASKED[dataset] = None
    content, _, source = _obtain(entry)
    note = {
        "dataset": dataset,
        "file": file,
        "sha256": entry.sha256 or hashlib.sha256(content).hexdigest(),
    }
    _USED.setdefault((dataset, file), note | {"source": source})
    return content


def csv_table(dataset: str, file: str, **how: Any) -> pd.DataFrame:
    """A registered file of separated values, with options of `pandas.read_csv`."""
    return pd.read_csv(io.BytesIO(read(dataset, file)), **how)


def r_arrays(
    dataset: str,
    file: str,
    pick: Callable[[dict[str, Any]], Mapping[str, Any] | pd.DataFrame],
) -> dict[str, NDArray]:
    """The arrays of numbers, days or texts that `pick` takes from a registered R file.

    Parsing takes seconds. So the arrays are kept in the user's cache, under the hash of
    the file, and parsed again if the kept ones can't be read.
    """
    content = read(dataset, file)
    name = f"{file}.{hashlib.sha256(content).hexdigest()[:16]}.{_ARRAYS_VERSION}.npz"
    place = registry.cache_folder() / dataset / name
    # a kept file that can't be read, for any reason, counts as missing
    with suppress(Exception):
        return dict(np.load(place))
    arrays: dict[str, Any] = {
        str(name): np.array(values)
        for name, values in pick(_r_objects(content)).items()
    }
    with suppress(OSError):  # the cache can't be written
        place.parent.mkdir(parents=True, exist_ok=True)
        np.savez(place, **arrays)
    return arrays


def _r_objects(content: bytes) -> dict[str, Any]:
    """The objects of an R file by name; those of S4 classes as namespaces of slots."""
    import rdata  # late, since it loads xarray, and most calls find kept arrays

    parsed = rdata.parser.parse_data(content, extension=".rda")
    with warnings.catch_warnings():
        # one warning for each class that is not converted, many of them unused
        warnings.filterwarnings("ignore", message="Missing constructor for R class")
        return rdata.conversion.convert(parsed)


def used() -> list[dict[str, str]]:
    """The files that this process has read so far, in order: dataset, file, sha256,
    source.

    The source is "mirror", "cache" or "download".
    """
    return [dict(note) for note in _USED.values()]


def unread() -> list[str]:
    """The data sets that this process asked for and read no file of."""
    return [dataset for dataset in _ASKED if dataset not in {name for name, _ in _USED}]


def provenance(
    dataset: str, files: Sequence[str] | None = None
) -> tuple[dict[str, str], ...]:
    """Where the files of a data set come from and how to cite them.

    Parameters
    ----------
    dataset : str
    files : sequence of str, optional
        All of the data set by default.

    Returns
    -------
    tuple of dict
        One per file: dataset, file, url, sha256, licence, citation, and the source from
        which this process read it ("not read" if it did not).

    Raises
    ------
    ValueError
        On an unknown data set or file.
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
    """Whether every file of a data set is here with the right hash; downloads nothing.

    Raises
    ------
    ValueError
        On an unknown data set.
    """
    entries = registry.files_of(dataset)
    _ASKED[dataset] = None
    return all(_state(entry)[0] == "ok" for entry in entries)


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
        On an unknown data set; as `CorruptedFile` if a file differs from the registered
        one.
    DatasetUnavailable
        If a file is not available.
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
        One row per file: dataset, file, status, detail. The status is "ok", "missing",
        "mismatch" (other bytes, or not a file), or "unverifiable" for a file that can't
        be read or has no recorded hash.

    Raises
    ------
    ValueError
        On an unknown data set.
    """
    if dataset is None:
        entries = registry.registered_files()
    else:
        entries = registry.files_of(dataset)
    rows = [(entry.dataset, entry.file, *_state(entry)) for entry in entries]
    return pd.DataFrame(rows, columns=["dataset", "file", "status", "detail"])


def listing() -> pd.DataFrame:
    """The registered data sets, without reading a file.

    Returns
    -------
    DataFrame
        One row per data set: dataset, files, megabytes (of those whose size is
        registered), how many files are here, licence, and when its address was last
        seen to work.
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
    """The status of a file as in `verify`, and the details."""
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
    """The verified bytes of a file, its path, and "mirror", "cache" or "download"."""
    path, source = registry.locate(entry) or (_download(entry, progress), "download")
    return registry.verified(entry, path), path, source


def _download(entry: RegisteredFile, progress: bool) -> Path:
    """Download and verify a file into the cache, from the first address that has it."""
    offline = os.environ.get("PREFLEARN_OFFLINE", "0") not in ("", "0")
    if offline or not entry.addresses:
        mirror = registry.mirror_folder()
        reason = "it is not in the cache (PREFLEARN_DATA is not set)"
        if mirror:
            reason = f"it is neither in the cache nor in the folder of PREFLEARN_DATA ({mirror})"
        if offline:
            reason += ", and PREFLEARN_OFFLINE is set"
        raise registry.unavailable(entry, reason)
    answers = []
    for url in entry.addresses:
        try:
            return _retrieved(entry, url, progress)
        # no network, no space, or other bytes than expected
        except (OSError, ValueError) as error:
            answers.append(f"{url} ({_answer(error)})")
    # Raised here, since an error keeps its connection open.
    raise registry.unavailable(entry, f"no address has it: {'; '.join(answers)}")


def _retrieved(entry: RegisteredFile, url: str, progress: bool) -> Path:
    """Download a file from one address; wait once, if a server asks for a short wait."""
    with warnings.catch_warnings():
        # late, since it loads tqdm, which warns inside notebooks
        warnings.simplefilter("ignore")
        import pooch
    # its messages would be printed on a chapter's page
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
    """The wait in seconds that a server asks for after too many requests (429), or None.

    ``Retry-After`` holds seconds or a date, ``X-RateLimit-Reset`` of Software Heritage
    seconds since 1970.
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
    """What an address answered, in words."""
    import requests  # late, as pooch is

    if isinstance(error, requests.ConnectionError):
        # the exception's own text is long and repeats the address
        return "no connection"
    response = getattr(error, "response", None)
    if response is None:
        return f"{type(error).__name__}: {str(error)[:400]}"
    if response.status_code != 429:
        return f"{response.status_code} {response.reason}"
    seconds = _seconds_to_wait(error)
    if seconds is None:
        return "429, asked too often; try again later"
    when = datetime.fromtimestamp(time.time() + seconds, UTC)
    return f"429, asked too often; try again after {when:%Y-%m-%d %H:%M} UTC"

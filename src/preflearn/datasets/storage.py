"""Read, fetch and verify public data: what stands under every loader, and the command
``preflearn data``.

What lies in the mirror or in the cache is read there (see
`preflearn.datasets.registry`); what is in neither is downloaded into the cache if its
hash is registered, from the first of its addresses that has it. ``PREFLEARN_OFFLINE=1``
keeps off the network.
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
"""Seconds to wait at most where a server says that it was asked too often."""

# to be raised when loaders take other things from R files: what is kept is made again
# then
_READER = 1
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
        On an unknown data set or file; as `CorruptedFile` if what was found is not what
        is registered.
    DatasetUnavailable
        If the file is not here and can't be downloaded, can't be read, or its hash is
        known to nobody.
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
    """A registered file of separated values; `how` to read it as in `pandas.read_csv`."""
    return pd.read_csv(io.BytesIO(read(dataset, file)), **how)


def r_arrays(
    dataset: str,
    file: str,
    pick: Callable[[dict[str, Any]], Mapping[str, Any] | pd.DataFrame],
) -> dict[str, NDArray]:
    """What `pick` takes out of the objects of a registered R file: arrays by name, of
    numbers, days or texts.

    Parsing takes seconds. So the arrays are kept in the user's cache, under the hash of
    the file, and parsed again where what was kept can't be read.
    """
    content = read(dataset, file)
    name = f"{file}.{hashlib.sha256(content).hexdigest()[:16]}.{_READER}.npz"
    place = registry.cache_folder() / dataset / name
    # what is wrong with it does not matter: it counts as missing
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
    """The objects of an R file, by name; those of other classes (S4) come as namespaces
    of their slots."""
    import rdata  # late, since it loads xarray, and most calls find kept arrays

    parsed = rdata.parser.parse_data(content, extension=".rda")
    with warnings.catch_warnings():
        # One warning for each class that stays as it is; attributes of no interest have
        # many.
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
        One a file: dataset, file, url, sha256, licence, citation, and the source it was
        read from in this process ("not read" if it was not).

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
        }
        row |= {
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
        On an unknown data set; as `CorruptedFile` if a file that is here has other
        bytes.
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
        One row a file: dataset, file, status, detail. The status is "ok", "missing",
        "mismatch" (other bytes, or no file), or "unverifiable" for a file that can't be
        read or whose hash nobody recorded.

    Raises
    ------
    ValueError
        On an unknown data set.
    """
    entries = (
        registry.registered_files() if dataset is None else registry.files_of(dataset)
    )
    rows = [(entry.dataset, entry.file, *_state(entry)) for entry in entries]
    return pd.DataFrame(rows, columns=["dataset", "file", "status", "detail"])


def listing() -> pd.DataFrame:
    """The registered data sets, without reading a file.

    Returns
    -------
    DataFrame
        One row a data set: dataset, files, megabytes (of those whose size is
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
    """Of one file: its status as in `verify`, and the details."""
    if not (found := registry.locate(entry)):
        return "missing", entry.url
    try:
        registry.verified(entry, found[0])
    except (CorruptedFile, DatasetUnavailable) as error:
        return "mismatch" if isinstance(error, CorruptedFile) else "unverifiable", str(
            error
        )
    return "ok", str(found[0])


def _obtain(entry: RegisteredFile, progress: bool = False) -> tuple[bytes, Path, str]:
    """The verified bytes of a file, where it lies, and "mirror", "cache" or "download";
    see `read`."""
    path, source = registry.locate(entry) or (_download(entry, progress), "download")
    return registry.verified(entry, path), path, source


def _download(entry: RegisteredFile, progress: bool) -> Path:
    """Download one file into the cache, from the first address that has it; verify it
    before it is kept."""
    offline = os.environ.get("PREFLEARN_OFFLINE", "0") not in ("", "0")
    if offline or not entry.addresses:
        mirror = registry.mirror_folder()
        reason = "it is not in the cache (PREFLEARN_DATA is not set)"
        if mirror:
            reason = f"it is neither in the cache nor in the folder of PREFLEARN_DATA ({mirror})"
        raise registry.unavailable(
            entry, reason + ", and PREFLEARN_OFFLINE is set" * offline
        )
    answers = []
    for url in entry.addresses:
        try:
            return _retrieved(entry, url, progress)
        except (
            OSError,
            ValueError,
        ) as error:  # no network, no space, or other bytes than expected
            answers.append(f"{url} ({_answer(error)})")
    # Raised here, since an error keeps its connection open.
    raise registry.unavailable(entry, f"no address has it: {'; '.join(answers)}")


def _retrieved(entry: RegisteredFile, url: str, progress: bool) -> Path:
    """Download a file from one address; wait once, if a server asks for a short wait."""
    with warnings.catch_warnings():
        # late, since it loads tqdm, which warns inside notebooks
        warnings.simplefilter("ignore")
        import pooch
    # what it tells would stand on a chapter's page
    pooch.get_logger().setLevel("WARNING")
    folder = registry.cache_folder() / entry.dataset
    given: dict[str, Any] = {
        "fname": entry.file,
        "path": folder,
        "progressbar": progress,
    }
    try:
        return Path(pooch.retrieve(url, f"sha256:{entry.sha256}", **given))
    except OSError as error:
        seconds = _seconds_to_wait(error)
        if seconds is None or seconds > MAX_WAIT:
            raise
    time.sleep(seconds)
    return Path(pooch.retrieve(url, f"sha256:{entry.sha256}", **given))


def _seconds_to_wait(error: Exception) -> float | None:
    """After how many seconds a server that was asked too often (429) answers again;
    None if it says nothing.

    ``Retry-After`` holds seconds or a date, ``X-RateLimit-Reset`` of Software Heritage
    seconds since 1970.
    """
    response = getattr(error, "response", None)
    if response is None or response.status_code != 429:
        return None
    with suppress(ValueError):
        if after := response.headers.get("Retry-After"):
            if after.strip().isdigit():
                return float(after)
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

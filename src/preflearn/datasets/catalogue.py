"""What is registered, what is here, and what is whole: the command ``preflearn data``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from preflearn.datasets.registry import RegisteredFile, dataset_names, files_of
from preflearn.datasets.storage import CorruptedFile, DatasetUnavailable, locate, obtain, verified

__all__ = ["available", "fetch", "listing", "verify"]


def available(dataset: str) -> bool:
    """Whether every file of a data set is here with the right hash; downloads nothing.

    Raises
    ------
    ValueError
        On an unknown data set.
    """
    return all(_state(entry)[0] == "ok" for entry in files_of(dataset))


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
    return [obtain(entry, progress)[1] for entry in files_of(dataset)]


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
    names = dataset_names() if dataset is None else [dataset]
    entries = [entry for name in names for entry in files_of(name)]
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
    for name in dataset_names():
        entries = files_of(name)
        sources = [found[1] for entry in entries if (found := locate(entry))]
        here = ", ".join(sorted(set(sources), reverse=True)) if sources else "no"
        here = here if len(sources) in (0, len(entries)) else "in part"
        sizes = [entry.bytes for entry in entries if entry.bytes is not None]
        megabytes = f"{sum(sizes) / 1e6:.2f}" if len(sizes) == len(entries) else "unknown"
        rows.append((name, len(entries), megabytes, here, entries[0].licence))
    return pd.DataFrame(rows, columns=["dataset", "files", "megabytes", "here", "licence"])


def _state(entry: RegisteredFile) -> tuple[str, str]:
    """Of one file: its status as in `verify`, and the details."""
    if not (found := locate(entry)):
        return "missing", entry.url
    try:
        verified(entry, found[0])
    except CorruptedFile as error:
        return "mismatch", str(error)
    except DatasetUnavailable as error:
        return "unverifiable", str(error)
    return "ok", str(found[0])

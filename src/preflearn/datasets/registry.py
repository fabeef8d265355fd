"""The register of public data files: where each comes from, its hash, its licence."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["RegisteredFile", "dataset_names", "files_of", "package_file", "registered_file"]

_PACKAGE = Path(__file__).parents[1]
_LARGEST = 2**28  # bytes of a file whose size nobody registered


class RegisteredFile(NamedTuple):
    """One row of ``data/registry.csv``.

    An empty `sha256` says that nobody recorded the hash: such a file is never downloaded by the
    package, and read only where its user has recorded one (see `preflearn.datasets.storage`).
    """

    dataset: str
    file: str
    url: str
    sha256: str
    bytes: int | None
    licence: str
    citation: str

    @property
    def limit(self) -> int:
        """The most bytes that are read of this file, or downloaded."""
        return _LARGEST if self.bytes is None else self.bytes


def package_file(name: str) -> Path:
    """A file of ``data``: an installed wheel carries it inside the package, a checkout at its root.

    Raises
    ------
    FileNotFoundError
        If neither place has the file.
    """
    for root in (_PACKAGE / "_files", _PACKAGE.parents[1]):
        if (path := root / "data" / name).exists():
            return path
    raise FileNotFoundError(f"data/{name} is missing from the installation of preflearn; install it again")


@lru_cache(maxsize=1)
def registered_files() -> tuple[RegisteredFile, ...]:
    """All rows of the register, in its order."""
    with package_file("registry.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return tuple(
        RegisteredFile(**row | {"bytes": int(row["bytes"]) if row["bytes"] else None}) for row in rows
    )


def dataset_names() -> list[str]:
    """The names of the registered data sets, in the order of the register.

    Examples
    --------
    >>> "sushi" in dataset_names()
    True
    """
    return list(dict.fromkeys(entry.dataset for entry in registered_files()))


def files_of(dataset: str) -> list[RegisteredFile]:
    """The registered files of one data set.

    Raises
    ------
    ValueError
        If the register has no data set of this name.

    Examples
    --------
    >>> [entry.file for entry in files_of("starcraft")]
    ['WoL.txt', 'HotS.txt']
    """
    entries = [entry for entry in registered_files() if entry.dataset == dataset]
    if not entries:
        raise ValueError(f"unknown data set {dataset!r}; expected one of {dataset_names()}")
    return entries


def registered_file(dataset: str, file: str) -> RegisteredFile:
    """One registered file.

    Raises
    ------
    ValueError
        If the register has no such data set, or the data set no such file.
    """
    entries = {entry.file: entry for entry in files_of(dataset)}
    if file not in entries:
        raise ValueError(f"the data set {dataset!r} has no file {file!r}; expected one of {list(entries)}")
    return entries[file]

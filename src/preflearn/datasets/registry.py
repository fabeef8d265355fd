"""The register of public data files, their places, and their verification.

The register, ``data/registry.csv``, holds the address of each public data file, its
size, its hash, its licence, and when its address was last seen to work. A file is
looked for in the folder that ``PREFLEARN_DATA`` names (a mirror, ``<dataset>/<file>``),
then in the user's cache. Its SHA-256 is compared with the register before anything
parses it.

A file from a public repository has a second address, which follows from its hash:
Software Heritage archives public repositories and serves each file by its SHA-256.

If the register has no hash (the chess files), a user who trusts a copy puts it into the
mirror or the cache and records its hash there, in a file ``SHA256SUMS`` in the same
folder, as the command ``sha256sum FILE >> SHA256SUMS`` writes it; from then on that
hash is verified.
"""

import csv
import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from platformdirs import user_cache_path

from preflearn.core.validation import as_array, check_choice

SOFTWARE_HERITAGE = "https://archive.softwareheritage.org/api/1/content/sha256:{}/raw/"
"""Address of an archived file, given its SHA-256; at most 120 requests per hour without
an account."""

# addresses of files in public repositories
_REPOSITORIES = ("https://raw.githubusercontent.com/",)
_PACKAGE = Path(__file__).parents[1]


class DatasetUnavailable(OSError):  # noqa: N818 - the name says what is the matter
    """A file of a data set is missing, can't be read or can't be verified.

    The message says how to get it.
    """


class CorruptedFile(ValueError):  # noqa: N818
    """A file differs from the registered one; the message names both hashes."""


class RegisteredFile(NamedTuple):
    """One row of ``data/registry.csv``.

    `urls` holds addresses, separated by spaces; `seen` says when the first of them was
    last seen to work. An empty `sha256` says that no hash is recorded (and no
    size): such a file is never downloaded by the package, and read only where its user
    has recorded one.
    """

    dataset: str
    file: str
    urls: str
    sha256: str
    bytes: str
    licence: str
    citation: str
    seen: str = ""

    @property
    def url(self) -> str:
        """The address that the file came from."""
        return self.urls.split()[0]

    @property
    def addresses(self) -> list[str]:
        """Addresses to download the file from, in the order in which they are tried.

        The list is empty if the file has no registered hash.

        Examples
        --------
        >>> (results,) = files_of("football")
        >>> results.addresses[1] == SOFTWARE_HERITAGE.format(results.sha256)
        True
        """
        if not self.sha256:
            return []
        addresses = self.urls.split()
        if any(url.startswith(_REPOSITORIES) for url in addresses):
            addresses.append(SOFTWARE_HERITAGE.format(self.sha256))
        return addresses


def package_file(name: str) -> Path:
    """The path of a file of ``data``, inside an installed package or at the root of a
    checkout.

    Raises
    ------
    FileNotFoundError
        If neither place has the file.
    """
    for root in (_PACKAGE / "_files", _PACKAGE.parents[1]):
        path = root / "data" / name
        if path.exists():
            return path
    raise FileNotFoundError(
        f"data/{name} is missing from the installation of preflearn; install it again"
    )


@lru_cache(maxsize=1)
def registered_files() -> list[RegisteredFile]:
    """All rows of the register, in its order."""
    with package_file("registry.csv").open(encoding="utf-8", newline="") as stream:
        return [RegisteredFile(**row) for row in csv.DictReader(stream)]


def dataset_names() -> list[str]:
    """The names of the registered data sets, in the order of the register.

    Examples
    --------
    >>> "sushi" in dataset_names()
    True
    """
    return list(dict.fromkeys(entry.dataset for entry in registered_files()))


def files_of(dataset: str, files: Sequence[str] | None = None) -> list[RegisteredFile]:
    """The registered files of one data set, or those of them that are named.

    Raises
    ------
    ValueError
        If the register has no data set of this name, or the data set no such file.

    Examples
    --------
    >>> [entry.file for entry in files_of("starcraft")]
    ['WoL.txt', 'HotS.txt']
    """
    check_choice(dataset, "the data set", tuple(dataset_names()))
    known = {
        entry.file: entry for entry in registered_files() if entry.dataset == dataset
    }
    names = list(known)
    if files is not None:
        names = as_array(files, "files").ravel().tolist()
    for file in names:
        check_choice(file, f"the file of {dataset}", tuple(known))
    return [known[file] for file in names]


def cache_folder() -> Path:
    """The user's cache, laid out as ``<dataset>/<file>``; see also
    `preflearn.datasets.storage.r_arrays`."""
    return user_cache_path("preflearn", appauthor=False)


def mirror_folder() -> Path | None:
    """The absolute path of the folder in ``PREFLEARN_DATA``, or None."""
    folder = os.environ.get("PREFLEARN_DATA")
    if not folder:
        return None
    return Path(folder).absolute()


def locate(entry: RegisteredFile) -> tuple[Path, str] | None:
    """The path of a file, with "mirror" or "cache"; None if it is in neither."""
    for folder, source in ((mirror_folder(), "mirror"), (cache_folder(), "cache")):
        if folder is not None:
            path = folder / entry.dataset / entry.file
            if os.path.lexists(path):
                return path, source
    return None


def verified(entry: RegisteredFile, path: Path) -> bytes:
    """The bytes of a file.

    Raises
    ------
    CorruptedFile
        If they are not the registered ones.
    DatasetUnavailable
        If the file can't be read, or no hash of it is recorded.
    """
    sums = path.with_name("SHA256SUMS")
    expected = entry.sha256 or _recorded_hash(entry.file, sums)
    if not expected:
        raise unavailable(
            entry, f"{path} can't be verified: its SHA-256 is not recorded"
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unavailable(
            entry, f"{path} can't be read ({error.strerror}): make it readable"
        ) from None
    actual = hashlib.sha256(content).hexdigest()
    if actual != expected:
        size = f"{len(content)} bytes"
        if entry.bytes:
            size += f" of {entry.bytes}"
        remedy = f"delete it, then run: preflearn data fetch {entry.dataset}"
        if not entry.sha256:
            remedy = f"put the file back whose hash was recorded, or correct {sums}"
        raise CorruptedFile(
            f"{path} ({size}) has the SHA-256 {actual}, expected {expected}; {remedy}"
        )
    return content


def _recorded_hash(file: str, sums: Path) -> str:
    """The last hash of a file in SHA256SUMS, or an empty string."""
    text = ""
    with suppress(OSError):
        text = sums.read_text("utf-8-sig", errors="replace")
    lines = re.findall(r"^(\S+)\s+\*?(.+?)\s*$", text, re.MULTILINE)
    return {name: sha256.lower() for sha256, name in lines}.get(file, "")


def unavailable(entry: RegisteredFile, reason: str) -> DatasetUnavailable:
    """The error that says why a file is not available, how to get it, and its licence."""
    place = cache_folder() / entry.dataset
    if entry.addresses:
        copy = f"a copy of {entry.url} with the SHA-256 {entry.sha256}"
        command = f"preflearn data fetch {entry.dataset}"
        how = f"connect this computer to the internet and run: {command}, or put {copy} into {place}"
    else:
        how = (
            f"put {entry.url} into {place} yourself (the package downloads nothing that it can't verify) "
            f"and, if you trust it, record its hash in that folder: sha256sum {entry.file} >> SHA256SUMS"
        )
    what = f"{entry.dataset}/{entry.file} is not available: {reason}"
    return DatasetUnavailable(f"{what}. To get it, {how}. Licence: {entry.licence}")


def how_to_get(dataset: str, folder: str | None = None) -> str:
    """How to get a missing data set: a command, or what to do by hand.

    Parameters
    ----------
    dataset : str
    folder : str, optional
        Name of the folder of data sets; the user's cache by default.

    Returns
    -------
    str
        A command or an instruction, without a period.

    Raises
    ------
    ValueError
        If the register has no data set of this name.

    Examples
    --------
    >>> how_to_get("sushi")
    'preflearn data fetch sushi'
    >>> how_to_get("chess", "$PREFLEARN_DATA").partition(" into ")[0]
    'download its files from http://www.chessmetrics.com/KaggleComp'
    """
    entries = files_of(dataset)
    if all(entry.addresses for entry in entries):
        return f"preflearn data fetch {dataset}"
    place = f"{folder or cache_folder()}/{dataset}"
    sources = ", ".join(
        dict.fromkeys(entry.url.rpartition("/")[0] for entry in entries)
    )
    files = " ".join(entry.file for entry in entries)
    return (
        f"download its files from {sources} into {place} and, if you trust them, record their hashes "
        f"in that folder: sha256sum {files} >> SHA256SUMS"
    )

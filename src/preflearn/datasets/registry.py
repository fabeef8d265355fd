"""Register of public data files, their locations, and their verification.

The register, ``data/registry.csv``, has the address of each public data file, its size,
its hash, its license, and the date on which its address was last known to work. A file
is searched in the folder that ``PREFLEARN_DATA`` names (a mirror,
``<dataset>/<file>``), then in the user's cache. Its SHA-256 is compared with the
register before it is parsed.

Files from public repositories have a second address, which follows from their hash:
Software Heritage archives public repositories and serves each file by its SHA-256.

The register has no hash of the chess files. If you trust your copy of such a file, put
it into the mirror or the cache. Then record its hash in a file ``SHA256SUMS`` in the
same folder, with the command ``sha256sum FILE >> SHA256SUMS``. From then on the file is
compared with this hash.
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
"""Address of an archived file, given its SHA-256.

Without an account, 120 requests per hour are allowed.
"""

# beginnings of addresses of files in public repositories
_REPOSITORIES = ("https://raw.githubusercontent.com/",)
_PACKAGE = Path(__file__).parents[1]


class DatasetUnavailable(OSError):  # noqa: N818
    """Raised if a data file is missing, cannot be read, or cannot be verified.

    The message says how to get the file.
    """


class CorruptedFile(ValueError):  # noqa: N818
    """Raised if a file differs from the registered one; the message has both hashes."""


class RegisteredFile(NamedTuple):
    """One row of ``data/registry.csv``.

    `urls` has addresses, separated by spaces; `seen` is the date at which the first of
    them was last known to work. An empty `sha256` means that no hash (and no size) is
    registered. The package never downloads such a file, and reads it only if the user
    has recorded a hash.
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
        """First address of the file."""
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
    """Path of a file of ``data``, in an installed package or in a checkout.

    Raises
    ------
    FileNotFoundError
        If neither location has the file.
    """
    for root in (_PACKAGE / "_files", _PACKAGE.parents[1]):
        path = root / "data" / name
        if path.exists():
            return path
    raise FileNotFoundError(
        f"data/{name} is missing from the installation of preflearn; install preflearn again"
    )


@lru_cache(maxsize=1)
def registered_files() -> list[RegisteredFile]:
    """All rows of the register, in its order."""
    with package_file("registry.csv").open(encoding="utf-8", newline="") as stream:
        return [RegisteredFile(**row) for row in csv.DictReader(stream)]


def dataset_names() -> list[str]:
    """Names of the registered data sets, in the order of the register.

    Examples
    --------
    >>> "sushi" in dataset_names()
    True
    """
    return list(dict.fromkeys(entry.dataset for entry in registered_files()))


def files_of(dataset: str, files: Sequence[str] | None = None) -> list[RegisteredFile]:
    """The registered files of a data set, or some of them.

    Raises
    ------
    ValueError
        If the data set or a file is not registered.

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
    """Folder of the user's cache, with files ``<dataset>/<file>``."""
    return user_cache_path("preflearn", appauthor=False)


def mirror_folder() -> Path | None:
    """Absolute path of the folder in ``PREFLEARN_DATA``, or None."""
    folder = os.environ.get("PREFLEARN_DATA")
    if not folder:
        return None
    return Path(folder).absolute()


def locate(entry: RegisteredFile) -> tuple[Path, str] | None:
    """Path of a file, with "mirror" or "cache"; None if neither contains it."""
    for folder, source in ((mirror_folder(), "mirror"), (cache_folder(), "cache")):
        if folder is not None:
            path = folder / entry.dataset / entry.file
            if os.path.lexists(path):
                return path, source
    return None


def verified(entry: RegisteredFile, path: Path) -> bytes:
    """Read a file and verify its hash.

    Raises
    ------
    CorruptedFile
        If the bytes differ from the registered file.
    DatasetUnavailable
        If the file cannot be read, or no hash of it is recorded.
    """
    sums = path.with_name("SHA256SUMS")
    expected = entry.sha256 or _recorded_hash(entry.file, sums)
    if not expected:
        raise unavailable(
            entry, f"{path} cannot be verified, because its SHA-256 is not recorded"
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unavailable(
            entry,
            f"{path} cannot be read ({error.strerror}); replace it by a readable file",
        ) from None
    actual = hashlib.sha256(content).hexdigest()
    if actual != expected:
        size = f"{len(content)} bytes"
        if entry.bytes:
            size += f" of {entry.bytes}"
        remedy = f"delete it, then run: preflearn data fetch {entry.dataset}"
        if not entry.sha256:
            remedy = f"restore the file whose hash was recorded, or correct {sums}"
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
    """Create the error for a file: the reason, how to get it, and its license."""
    place = cache_folder() / entry.dataset
    if entry.addresses:
        copy = f"a copy of {entry.url} with the SHA-256 {entry.sha256}"
        command = f"preflearn data fetch {entry.dataset}"
        how = f"connect this computer to the internet and run: {command}, or put {copy} into {place}"
    else:
        how = (
            f"download {entry.url} into {place} yourself (the package does not download files that it cannot "
            f"verify) and, if you trust it, record its hash there: sha256sum {entry.file} >> SHA256SUMS"
        )
    what = f"{entry.dataset}/{entry.file} is not available: {reason}"
    return DatasetUnavailable(f"{what}. To get it, {how}. License: {entry.licence}")


def how_to_get(dataset: str, folder: str | None = None) -> str:
    """Instructions for getting a missing data set: a command, or manual steps.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    folder : str, optional
        Name of the folder of data sets; the user's cache by default.

    Returns
    -------
    str
        Command or instructions, without a final period.

    Raises
    ------
    ValueError
        If the data set is not registered.

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
        f"there: sha256sum {files} >> SHA256SUMS"
    )

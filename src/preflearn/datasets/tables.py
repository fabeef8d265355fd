"""Tables of registered files: separated values, R data (of which nothing is executed), archives."""

import io
import zipfile
import zlib
from typing import Any

import pandas as pd

from preflearn.datasets.r_data import r_values
from preflearn.datasets.storage import read

_LARGEST = 2**28  # bytes of an unpacked table


def csv_table(dataset: str, file: str, **how: Any) -> pd.DataFrame:
    """A registered file of separated values; `how` to read it as in `pandas.read_csv`."""
    return pd.read_csv(io.BytesIO(read(dataset, file)), **how)


def r_objects(dataset: str, file: str) -> dict[str, Any]:
    """The objects of a registered R file, by name; see `preflearn.datasets.r_data`."""
    return r_values(read(dataset, file))


def unpacked(archive: bytes, member: str) -> bytes:
    """One member of a zip archive.

    Raises
    ------
    ValueError
        If that is no such archive, or the member is missing, damaged, encrypted or absurdly large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            size = files.getinfo(member).file_size
            if size > _LARGEST:
                raise ValueError(f"{member} would have {size} bytes, expected at most {_LARGEST}")
            return files.read(member)  # which gives no byte more than that size
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, OSError, RuntimeError) as error:
        raise ValueError(f"{error}; expected a zip archive without password that holds {member}") from None

"""Tables of registered files: separated values, R data (of which nothing is executed), archives."""

import hashlib
import io
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from preflearn.datasets import registry
from preflearn.datasets.storage import read, stored

_LARGEST = 2**28  # bytes of an unpacked table
_READER = 1  # to be raised when loaders take other things from R files: what is kept is made again then


def csv_table(dataset: str, file: str, **how: Any) -> pd.DataFrame:
    """A registered file of separated values; `how` to read it as in `pandas.read_csv`."""
    return pd.read_csv(io.BytesIO(read(dataset, file)), **how)


def r_arrays(
    dataset: str, file: str, pick: Callable[[dict[str, Any]], Mapping[str, Any] | pd.DataFrame]
) -> dict[str, NDArray]:
    """What `pick` takes out of the objects of a registered R file: arrays by name, of numbers, days or texts.

    Parsing takes seconds. So the arrays are kept in the user's cache, as ``<dataset>/<file>.npz``, and parsed
    again where these are not of this file, of this reader, or not what was written.
    """
    content = read(dataset, file)
    place = registry.cache_folder() / dataset / f"{file}.npz"
    with suppress(Exception):  # what is wrong with it does not matter: it counts as missing
        kept = dict(np.load(io.BytesIO(place.read_bytes()), allow_pickle=False))
        if kept.pop("key") == _key(content, kept):
            return kept
    arrays: dict[str, Any] = {
        str(name): np.array(values) for name, values in pick(_r_objects(content)).items()
    }
    stream = io.BytesIO()
    np.savez(stream, **arrays, key=_key(content, arrays))
    with suppress(OSError):  # the cache can't be written
        stored(stream.getvalue(), place)
    return arrays


def _key(content: bytes, arrays: dict[str, NDArray]) -> str:
    """Of the reader, the file, and what was read from it."""
    whole = hashlib.sha256(content)
    for name, values in arrays.items():
        whole.update(f"{name} {values.dtype.str} {values.shape}".encode() + values.tobytes())
    return f"{_READER} {whole.hexdigest()}"


def _r_objects(content: bytes) -> dict[str, Any]:
    """The objects of an R file, by name; those of other classes (S4) come as namespaces of their slots."""
    import rdata  # late, since it loads xarray, and most calls find kept arrays

    parsed = rdata.parser.parse_data(content, extension=".rda")
    with warnings.catch_warnings():
        # One warning for each class that stays as it is; attributes of no interest have many.
        warnings.filterwarnings("ignore", message="Missing constructor for R class")
        return rdata.conversion.convert(parsed)


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

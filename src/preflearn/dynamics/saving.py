"""A fitted model as one file: numbers as the arrays of an .npz file, all else as JSON;
nothing is pickled.

The archive has one array a name, and the array "header": the bytes of a JSON object,
which says what the file is, its version, and the names of all arrays. With the
archive's own sums, a damaged file is not taken for a whole one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_STORED, ZipFile, is_zipfile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from preflearn.core.validation import require, short_repr

_FORMAT = "preflearn.dynamics"
_VERSION = 1  # counts up with every change that an older reader would misunderstand
_HEADER = "header"


def write_npz(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray],
) -> None:
    """Write a file in one step: whoever reads it meanwhile, or after a crash, finds the
    old one or the new.

    Parameters
    ----------
    path : path-like
        The file, in a folder that exists; written under exactly this name.
    header : dict
        JSON values, their numbers finite; tuples become lists.
    arrays : dict of str -> ndarray
        Numbers, by names other than "header".

    Raises
    ------
    ValueError
        If the header holds what JSON lacks.
    OSError
        If there is no such folder, the path is that of a folder, or the file can't be
        written.
    """
    try:
        text = json.dumps(
            {**header, **_marks(arrays)}, allow_nan=False, default=np.generic.item
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the model can't be saved: {error}; expected names that are a str, a number or a tuple of them"
        ) from None
    place = Path(path)
    if place.is_dir():  # also the empty name, which is the working folder
        raise IsADirectoryError(
            f"{short_repr(str(path))} is a folder; expected the name of a file"
        )
    if not place.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {place.parent}; expected one that exists"
        )
    with TemporaryDirectory(dir=place.absolute().parent, prefix=".incoming-") as folder:
        complete = Path(folder) / place.name
        with complete.open("wb") as file:
            named: Any = {
                _HEADER: np.frombuffer(text.encode(), dtype=np.uint8),
                **arrays,
            }
            np.savez(file, **named)
            file.flush()
            os.fsync(file.fileno())  # the bytes are on the disk before the name is
        complete.replace(place)


def read_npz(
    path: str | os.PathLike[str],
    made: Callable[[dict[str, Any], dict[str, NDArray]], Any],
) -> Any:
    """What is made of the header and the arrays that `write_npz` wrote.

    Parameters
    ----------
    path : path-like
    made : callable
        Of header and arrays; what it raises says that they do not fit together.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is something else, damaged, or of another version of the format.
    """
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(
            f"there is no file {place}; expected one that `save` wrote"
        )
    try:
        require(
            place.is_file() and is_zipfile(place),
            place.name,
            "the file",
            "an .npz archive",
        )
        arrays = _stored_arrays(place)
        require(
            _HEADER in arrays, list(arrays), "its arrays", f"{_HEADER!r} among them"
        )
        header = json.loads(arrays.pop(_HEADER).tobytes())
        # older files have their dtypes and shapes beside the names
        header["arrays"] = list(header["arrays"])
        for name, expected in _marks(arrays).items():
            require(
                (found := header.pop(name, None)) == expected,
                found,
                f"its {name}",
                repr(expected),
            )
        return made(header, arrays)
    except (
        Exception
    ) as error:  # of many kinds; a damaged shape may ask for more memory than there is
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(
            f"{place} is not a file that `save` wrote, or it is cut short or damaged ({what}); expected one "
            "of this preflearn or an older one"
        ) from None


def _stored_arrays(place: Path) -> dict[str, NDArray]:
    """The arrays of an archive, which take no more memory than the file has bytes."""
    with ZipFile(place) as archive:
        members = archive.infolist()
        size = place.stat().st_size
        stored = all(member.compress_type == ZIP_STORED for member in members)
        claimed = sum(max(member.compress_size, member.file_size) for member in members)
        require(
            stored and claimed <= size,
            claimed,
            "the size of its members",
            f"{size} at most, as stored",
        )
        return {
            member.filename.removesuffix(".npy"): _array(archive.read(member))
            for member in members
        }


def _array(content: bytes) -> NDArray:
    """The array of an .npy file, of as many bytes as there are, whatever shape is
    claimed."""
    stream = BytesIO(content)
    npy.read_magic(stream)
    shape, by_columns, dtype = npy.read_array_header_1_0(stream)
    values = np.frombuffer(content, dtype, offset=stream.tell())
    return values.reshape(shape, order="F" if by_columns else "C").astype(
        dtype.newbyteorder("=")
    )


def _marks(arrays: Mapping[str, NDArray]) -> dict[str, Any]:
    """What the header says of the file itself."""
    return {"format": _FORMAT, "version": _VERSION, "arrays": list(arrays)}


def as_names(values: Iterable[Any]) -> tuple[Hashable, ...]:
    """Names of features from JSON, which has lists for tuples.

    Examples
    --------
    >>> as_names(["Ann", ["Ann", "Bob"], 7])
    ('Ann', ('Ann', 'Bob'), 7)
    """
    return tuple(
        as_names(value) if isinstance(value, list) else value for value in values
    )

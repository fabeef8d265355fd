"""Storage of fitted models in one .npz file, without pickle.

Numbers are stored as arrays of the .npz file. Everything else is a JSON object, stored
as bytes in the array "header", with the type and the version of the file. The type says
which class the file belongs to. The checksums of the archive detect damaged files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from preflearn.core.validation import require, short_repr

_HEADER = "header"
# Increase the version with each change that an older reader would misunderstand.
_VERSION = 1
# Types of files, with the class and the function that reads them.
MODEL = "preflearn.dynamics"
MIXTURE = "preflearn.dynamics.averaged"
_READERS = {
    MODEL: ("a DynamicComparisons", "preflearn.dynamics.load"),
    MIXTURE: ("an AveragedComparisons", "AveragedComparisons.load"),
}


class ContradictionError(ValueError):
    """The file is complete, but its parts are not those of one fit."""


class _OtherTypeError(ValueError):
    """The file is complete, but contains another type of model."""


def write_npz(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray],
    file_type: str = MODEL,
) -> None:
    """Write a file in one step, so that a crash leaves the old file or the new one.

    Parameters
    ----------
    path : path-like
        Path of the file, in an existing folder; the name is used as it is.
    header : dict
        JSON values with finite numbers; tuples become lists.
    arrays : dict of str -> ndarray
        Numbers, with names other than "header".
    file_type : str
        `MODEL` or `MIXTURE`.

    Raises
    ------
    ValueError
        If JSON cannot represent the header.
    OSError
        If the folder does not exist, the path is a folder, or the file cannot be
        written.
    """
    try:
        text = json.dumps(
            {**header, **_marks(file_type)},
            allow_nan=False,
            default=np.generic.item,
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the model cannot be saved: {error}; rename the features so that each name is a str, "
            "a number, or a tuple of them"
        ) from None
    place = Path(path)
    if place.is_dir():  # including the empty name, which means the working folder
        raise IsADirectoryError(
            f"{short_repr(str(path))} is a folder; pass the name of a file"
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
            os.fsync(
                file.fileno()
            )  # write the bytes to the disk before the file gets its name
        complete.replace(place)


def read_npz(
    path: str | os.PathLike[str],
    build: Callable[[dict[str, Any], dict[str, NDArray]], Any],
    file_type: str = MODEL,
) -> Any:
    """Read a file that `write_npz` wrote and build an object from it.

    Parameters
    ----------
    path : path-like
        Path of the file.
    build : callable
        Function of header and arrays that returns the object. It raises an error if
        they are inconsistent, a `ContradictionError` if its message has the remedy.
    file_type : str
        Type of the file, as in `write_npz`.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file has other content, is damaged, or has another type or version.
    """
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(
            f"{place} does not exist; pass the path of a file that `save` wrote"
        )
    try:
        # NumPy does not close a damaged file that it opened itself.
        with place.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
        header = json.loads(arrays.pop(_HEADER).tobytes())
        _check_type(header.get("format"), place, file_type)
        for name, expected in _marks(file_type).items():
            found = header.pop(name, None)
            require(found == expected, found, f"the {name}", repr(expected))
        return build(header, arrays)
    except _OtherTypeError:
        raise
    except ContradictionError as error:
        raise ValueError(f"{place} cannot be used: {error}") from None
    except Exception as error:  # any type is possible
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(
            f"{place} was not written by `save`, is incomplete or damaged, or comes from a newer version of "
            f"preflearn ({what}); save the model again"
        ) from None


def _marks(file_type: str) -> dict[str, Any]:
    """Type and version, as they are stored in the header."""
    return {"format": file_type, "version": _VERSION}


def _check_type(found: Any, place: Path, expected: str) -> None:
    """Raise ValueError if a file contains the other type of model."""
    for file_type, (content, reader) in _READERS.items():
        if found == file_type != expected:
            wanted, _ = _READERS[expected]
            raise _OtherTypeError(
                f"{place} contains {content}, not {wanted}; load it with {reader}"
            )


def as_names(values: Iterable[Any]) -> tuple[Hashable, ...]:
    """Feature names from JSON, in which tuples are lists.

    Examples
    --------
    >>> as_names(["Ann", ["Ann", "Bob"], 7])
    ('Ann', ('Ann', 'Bob'), 7)
    """
    return tuple(
        as_names(value) if isinstance(value, list) else value for value in values
    )

"""A fitted model as one file: numbers as the arrays of an .npz file, all else as JSON;
nothing is pickled.

The archive has one array a name, and the array "header": the bytes of a JSON object,
which says what the file is, and its version. With the archive's own sums, a damaged
file is not taken for a whole one.
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
# What the header says of the file itself. The version counts up with each change that
# an older reader would misunderstand.
_MARKS = {"format": "preflearn.dynamics", "version": 1}


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
            {**header, **_MARKS}, allow_nan=False, default=np.generic.item
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
        with np.load(place, allow_pickle=False) as archive:
            arrays = dict(archive)
        header = json.loads(arrays.pop(_HEADER).tobytes())
        for name, expected in _MARKS.items():
            found = header.pop(name, None)
            require(found == expected, found, f"its {name}", repr(expected))
        return made(header, arrays)
    except Exception as error:  # of many kinds
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(
            f"{place} is not a file that `save` wrote, or it is cut short or damaged ({what}); expected one "
            "of this preflearn or an older one"
        ) from None


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

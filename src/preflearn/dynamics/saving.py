"""A fitted model as one file: numbers as the arrays of an .npz file, all else as JSON; nothing is pickled.

The archive has one array a name, and the array "header": the bytes of a JSON object, which says what the file
is, its version, and the dtype and shape of each array, so that a damaged file is not taken for a whole one.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Hashable, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import shown

_FORMAT = "preflearn.dynamics"
_VERSION = 1  # counts up with every change that an older reader would misunderstand
_HEADER = "header"
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError, ValueError, struct.error)


def write_npz(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
    """Write a file in one step: whoever reads it meanwhile, or after a crash, finds the old one or the new.

    Parameters
    ----------
    path : path-like
        The file, in a folder that exists; written under exactly this name.
    header : dict
        JSON values, their numbers finite.
    arrays : dict of str -> ndarray
        Numbers, by names other than "header".

    Raises
    ------
    ValueError
        If the header holds what JSON lacks, or an array Python objects.
    OSError
        If there is no such folder, the path is that of a folder, or the file can't be written.
    """
    stated = {name: _kind(array) for name, array in arrays.items()}
    header = {**header, "format": _FORMAT, "version": _VERSION, "arrays": stated}
    try:
        text = json.dumps(header, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the model can't be saved: {error}; expected values that JSON has") from None
    place = Path(path)
    if place.is_dir():  # also the empty name, which is the working folder
        raise IsADirectoryError(f"{shown(str(path))} is a folder; expected the name of a file")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {place.parent}; expected one that exists")
    with TemporaryDirectory(dir=place.absolute().parent, prefix=".incoming-") as folder:
        complete = Path(folder) / place.name
        with complete.open("wb") as file:
            with zipfile.ZipFile(file, "w") as archive:
                for name, array in {_HEADER: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())  # the bytes are on the disk before the name is
        complete.replace(place)


def read_npz(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """What `write_npz` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    header : dict
    arrays : dict of str -> ndarray

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is something else, damaged, or of another version of the format.
    """
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"there is no file {place}; expected one that `save` wrote")
    with _opened(place) as archive:
        header = _checked_header(archive, place)
        stated = header.pop("arrays")
        return header, {name: _checked_array(archive, name, stated[name], place) for name in stated}


def encoded_names(names: Iterable[Hashable]) -> list[Any]:
    """Names of features as JSON values: a str or a number as it is, a tuple of them as a list.

    Raises
    ------
    ValueError
        On a name of another kind.

    Examples
    --------
    >>> encoded_names(["Ann", ("Ann", "Bob"), 7])
    ['Ann', ['Ann', 'Bob'], 7]
    """
    return [_encoded(name) for name in names]


def decoded_names(names: Iterable[Any]) -> tuple[Hashable, ...]:
    """The names that `encoded_names` made into JSON values.

    Examples
    --------
    >>> decoded_names(["Ann", ["Ann", "Bob"], 7])
    ('Ann', ('Ann', 'Bob'), 7)
    """
    return tuple(decoded_names(name) if isinstance(name, list) else name for name in names)


def _encoded(name: Hashable) -> Any:
    if isinstance(name, tuple):
        return encoded_names(name)
    if isinstance(name, str):
        return str(name)
    if isinstance(name, Integral):
        return int(name)
    if isinstance(name, Real) and math.isfinite(name):
        return float(name)
    raise ValueError(
        f"the feature {shown(name)} can't be saved by its name; expected a str, a number or a tuple of them"
    )


def _opened(place: Path) -> zipfile.ZipFile:
    try:
        if place.is_file():
            return zipfile.ZipFile(place)
    except _BROKEN:
        pass
    raise ValueError(f"{place} is no .npz file, or cut short; expected one that `save` wrote")


def _checked_header(archive: zipfile.ZipFile, place: Path) -> dict[str, Any]:
    """The header of an archive that is ours and of this version."""
    try:
        header = json.loads(_array(archive, _HEADER).tobytes())
    except (*_BROKEN, RecursionError):
        header = None
    if not isinstance(header, dict) or header.pop("format", None) != _FORMAT:
        raise ValueError(f"{place} is no model of ours, or damaged; expected a file that `save` wrote")
    version = header.pop("version", None)
    if version != _VERSION:
        raise ValueError(
            f"{place} has format version {shown(version)}; expected {_VERSION}, which this preflearn reads: "
            "update preflearn if the file is newer"
        )
    return header


def _checked_array(archive: zipfile.ZipFile, name: str, stated: list, place: Path) -> NDArray:
    """An array, if it is of the dtype and shape that the header states."""
    try:
        array = _array(archive, name)
    except _BROKEN as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{place} is damaged: its array {name!r} can't be read ({what})") from None
    if _kind(array) != stated:
        raise ValueError(f"{place} is damaged: its array {name!r} is {_kind(array)}; expected {stated}")
    return array


def _array(archive: zipfile.ZipFile, name: str) -> NDArray:
    with archive.open(f"{name}.npy") as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def _kind(array: NDArray) -> list:
    return [array.dtype.str, *array.shape]

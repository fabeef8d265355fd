"""Files of R data (.rda, .RData): tables, vectors, lists and S4 objects, of which nothing is executed.

They are a compressed pairlist of R's binary serialization ("R Internals", section 1.8): each value begins
with flags, the lowest byte of which is its type. A reader of its own, since general ones make an object of
each string, and take seconds for a table that this one reads in a tenth of one.
"""

import bz2
import gzip
import lzma
import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

_NULL, _REFERENCE, _SYMBOL, _PAIRS, _TEXTS, _LIST, _S4, _FORM = 254, 255, 1, 2, 16, 19, 25, 238
_LOGICAL, _NUMBERS = 10, {10: ">i4", 13: ">i4", 14: ">f8"}
_HAS_ATTRIBUTES, _HAS_NAME, _LATIN = 0x200, 0x400, 0x4000
_MISSING = -(2**31)  # NA of integers and logical values
_MAGIC = {b"\x1f\x8b": gzip.decompress, b"BZ": bz2.decompress, b"\xfd7": lzma.decompress}


def r_values(content: bytes) -> dict[str, Any]:
    """The objects of an R data file, by name.

    Vectors are arrays (integers and logical values with missing ones are floats with NaN), data frames are
    DataFrames, factors categories, lists dicts where they have names, and objects of S4 classes namespaces.

    Raises
    ------
    ValueError
        On a format or a type of values that this reader does not know.
    """
    if content[:2] in _MAGIC:
        content = _MAGIC[content[:2]](content)
    if content[:7] not in (b"RDX2\nX\n", b"RDX3\nX\n"):
        raise ValueError(f"the file begins with {content[:7]!r}; expected R data of version 2 or 3, in XDR")
    reader = _Reader(content, place=19)  # after three versions
    if content[3:4] == b"3":
        reader.place += 4 + reader.integers(1)[0]  # the name of the encoding
    return reader.value()


class _Reader:
    """Reads value after value."""

    def __init__(self, content: bytes, place: int) -> None:
        self.content, self.place = content, place
        self.symbols: list[str] = []

    def integers(self, count: int) -> tuple[int, ...]:
        found = struct.unpack_from(f">{count}i", self.content, self.place)
        self.place += 4 * count
        return found

    def text(self) -> str | None:
        flags, length = self.integers(2)
        if length < 0:
            return None
        start, self.place = self.place, self.place + length
        return self.content[start : self.place].decode("latin-1" if flags & _LATIN else "utf-8")

    def value(self, flags: int | None = None) -> Any:
        if flags is None:
            (flags,) = self.integers(1)
        kind = flags & 0xFF
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            return self.symbols[(flags >> 8) - 1]
        if kind == _SYMBOL:
            self.symbols.append(str(self.text()))
            return self.symbols[-1]
        if kind == _PAIRS:
            return self.pairs(flags)
        if kind == _S4:
            return SimpleNamespace(**self.value())
        if kind == _FORM:  # a vector with notes on its order, or the rule of one
            form, state, attributes = self.value()[0], self.value(), self.value()
            if form == "compact_intseq":
                length, first, step = state.astype(int)
                return first + step * np.arange(length)
            if not form.startswith("wrap_"):
                raise ValueError(f"the file holds a vector in the form {form}; expected none, or a sequence")
            return _with_attributes(state[0], attributes or {})
        (length,) = self.integers(1)
        found: Any
        if kind in _NUMBERS:
            found = np.frombuffer(self.content, _NUMBERS[kind], length, self.place)
            self.place += found.nbytes
            found = _native(found, kind)
        elif kind == _TEXTS:
            found = np.array([self.text() for _ in range(length)], dtype=object)
        elif kind == _LIST:
            found = [self.value() for _ in range(length)]
        else:
            raise ValueError(f"the file holds a value of type {kind}; expected vectors, lists and S4 objects")
        return _with_attributes(found, self.value()) if flags & _HAS_ATTRIBUTES else found

    def pairs(self, flags: int) -> dict[str, Any]:
        """A list of cells: each has its own attributes, a name and a value, and what follows."""
        found = {}
        while flags & 0xFF == _PAIRS:
            if flags & _HAS_ATTRIBUTES:
                self.value()
            name = self.value() if flags & _HAS_NAME else len(found)
            found[name] = self.value()
            (flags,) = self.integers(1)
        if flags & 0xFF != _NULL:
            found[len(found)] = self.value(flags)
        return found


def _native(values: NDArray, kind: int) -> NDArray:
    if kind in (_LOGICAL, 13) and (values == _MISSING).any():
        return np.where(values == _MISSING, np.nan, values)
    return values.astype(bool if kind == _LOGICAL else values.dtype.newbyteorder("="))


def _with_attributes(found: Any, attributes: dict[str, Any]) -> Any:
    kind, names = attributes.get("class", ()), attributes.get("names", ())
    if "data.frame" in kind:
        return pd.DataFrame(dict(zip(names, found, strict=True)))
    if "factor" in kind:
        return pd.Categorical.from_codes(np.nan_to_num(found).astype(int) - 1, attributes["levels"])
    if "dim" in attributes:
        return found.reshape(attributes["dim"], order="F")
    if isinstance(found, list) and "names" in attributes:
        return dict(zip(names, found, strict=True))
    return found

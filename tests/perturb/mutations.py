"""Wrong values of the same type and shape for each number, label, and answer that a
check may use.

A mutation is deterministic: a value is always replaced by the same wrong value.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from fractions import Fraction
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

Array = np.ndarray
OURS = ("preflearn", "preflearn_book.studies", "__main__")
LIBRARIES = (*OURS, "scipy", "sklearn")
"""What solves, measures or loads; NumPy's arithmetic is taken as right."""

ROWS = ("index", "first", "second")
"""Row numbers that an object holds: a wrong one is another row. Compiled code writes
where one leads to
that does not exist, and dies at once or later; no constructor lets such a number pass."""


def _noise(a: Array, rng: np.random.Generator) -> Array:
    out = a.copy()
    column = out[..., -1:]
    if a.dtype == bool:
        column[...] = rng.integers(0, 2, column.shape)
    else:
        spread = 1 + np.abs(a).max(initial=0)
        column[...] = (spread * rng.normal(size=column.shape)).astype(a.dtype)
    return out


def _part(a: Array, rng: np.random.Generator) -> Array:
    out = np.atleast_1d(a).copy()
    out[:1] = ~out[:1] if a.dtype == bool else (1.5 * out[:1] + 1).astype(a.dtype)
    return out.reshape(a.shape)


def _first(a: Array) -> Array:
    out = a.copy()
    if a.ndim and a.dtype != bool:
        out[..., :1] = (out[..., :1] * 0.1).astype(a.dtype)
    return out


def _few(values: Any) -> int:
    return max(1, len(values) // 20)


def _times(factor: float) -> Callable:
    return lambda a, rng: (
        np.zeros_like(a) if a.dtype == bool else (a * factor).astype(a.dtype)
    )


KINDS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "negated": lambda a, rng: ~a if a.dtype == bool else -a,
    "shuffled": lambda a, rng: rng.permutation(a.ravel()).reshape(a.shape),
    "scaled": _times(1.5),
    "one more": lambda a, rng: (
        np.ones_like(a) if a.dtype == bool else a + a.dtype.type(1)
    ),
    "one less": lambda a, rng: (
        np.zeros_like(a) if a.dtype == bool else a - a.dtype.type(1)
    ),
    "exchanged": lambda a, rng: a[..., ::-1].copy() if a.ndim else a,
    "noise": lambda a, rng: _noise(a, rng) if a.ndim else a,
    "in part": lambda a, rng: _part(a, rng),
    "first of each": lambda a, rng: _first(a),
    "reversed": lambda a, rng: a[::-1].copy() if a.ndim else a,
    "zero": _times(0),
    "less": _times(0.9),
    "tiny": _times(1e-3),
    "far": _times(1e3),
    "few": lambda a, rng: a[: _few(a)] if a.ndim else a,
}
"""What may go wrong with an array, a number being one without an axis."""


class Mutation:
    """One kind of error, applied to all parts of a value to which it applies. The
    attribute `changed` states whether there were any.

    If `answers` is true, True and False are exchanged as well. It is false for what a
    function answers about a claim, which is not an input of the function.
    """

    def __init__(self, kind: str, seed: int, answers: bool = True) -> None:
        self.kind = kind
        self.seed = seed
        self.answers = answers
        self.changed = False

    def __call__(self, value: Any, depth: int = 0) -> Any:
        """Return the value with an error, as a copy if it is mutable, or the value
        itself if nothing can be changed."""
        if depth > 6:
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, bool | np.bool_) and not self.answers:
            return value
        if isinstance(value, bool | int | float | np.bool_ | np.number):
            # an integer may be a size
            if self.kind == "far" and isinstance(value, int):
                return value
            found = self._array(np.asarray(value))[()]
            return (
                type(value)(found) if isinstance(value, bool | int | float) else found
            )
        if isinstance(value, Fraction):
            return Fraction(self(float(value)))
        if isinstance(value, pd.DataFrame):
            return self._frame(value)
        if isinstance(value, pd.Series):
            return self._frame(value.to_frame()).iloc[:, 0].rename(value.name)
        if sparse.issparse(value):
            out: Any = value.copy()
            out.data = self._array(out.data)
            return out
        if isinstance(value, dict):
            return dict(
                zip(value, self._parts(list(value.values()), depth), strict=False)
            )
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(
                *self._paired_difference(value) or self._each(value, depth)
            )
        if isinstance(value, list | tuple):
            return type(value)(self._parts(list(value), depth))
        return self._object(value, depth)

    def part(self, value: Any, name: Any) -> Any:
        """Return the value with one wrong column or entry, such as the numbers of
        another column."""
        out = value.copy()
        numbers = (
            list(value.select_dtypes("number"))
            if isinstance(value, pd.DataFrame)
            else []
        )
        if self.kind == "exchanged" and name in numbers and len(numbers) > 1:
            out[name] = value[numbers[numbers.index(name) - 1]]
            self.changed = True
        elif isinstance(value, pd.DataFrame):
            out[name] = pd.Series(self._array(value[name].to_numpy()), value.index)
        else:
            out[name] = self(value[name])
        return out

    def _array(self, a: Array, column: int = 0) -> Array:
        if a.dtype.kind not in "biuf":
            if a.dtype.kind not in "OUT":
                return a
            if self.kind not in ("shuffled", "exchanged", "reversed", "few"):
                out = a.copy()
                for place in np.ndindex(a.shape):
                    out[place] = self(a[place])
                return out
        elif a.dtype.kind == "u":
            a = a.astype(int)
        out = (
            KINDS[self.kind](a, np.random.default_rng([self.seed, column]))
            if a.size
            else a
        )
        self.changed |= not np.array_equal(out, a)
        return out

    def _frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        if self.kind == "few":
            self.changed |= len(frame) > _few(frame)
            return frame[: _few(frame)]
        out = frame.copy()
        order = list(range(frame.shape[1]))
        if self.kind == "exchanged" and len(order) > 1:
            order = order[1:] + order[:1]
        for k, source in enumerate(order):
            column = frame.iloc[:, source]
            if self.kind != "in part" or k == 0:
                column = pd.Series(self._array(column.to_numpy(), k), frame.index)
            out.isetitem(k, column)
        self.changed |= order != sorted(order)
        if self.kind == "reversed" and len(out):
            out.index = out.index[::-1]
        return out

    def _paired_difference(self, value: Any) -> Any:
        """Return a paired difference with a wrong sign or error, or None for other
        records."""
        if type(value).__name__ != "PairedDifference":
            return None
        mean, error, *rest = value
        changed = {
            "negated": (-mean, error),
            "shuffled": (mean, 10 * error + 1e-3),
            "scaled": (1.5 * mean, error),
            "zero": (0.0, error / 10),
            "far": (100 * mean + 0.1, error / 10),
            "tiny": (mean / 1000, error / 1000),
        }.get(self.kind, (mean, error))
        self.changed |= changed != (mean, error)
        return [*changed, *rest]

    def _parts(self, values: list[Any], depth: int) -> list[Any]:
        if self.kind in ("exchanged", "reversed") and len(values) > 1:
            self.changed = True
            return values[::-1] if self.kind == "reversed" else values[1:] + values[:1]
        if self.kind == "few":
            self.changed |= len(values) > _few(values)
            return values[: _few(values)]
        return self._each(values, depth)

    def _each(self, values: Any, depth: int) -> list[Any]:
        found = list(values)
        if self.kind == "first of each" and all(
            isinstance(value, int | float | np.number) for value in found
        ):
            return self(np.array(found)).tolist()
        for k, value in enumerate(found):
            found[k] = self(value, depth + 1)
            if self.kind == "in part" and self.changed:
                break
        return found

    def _object(self, value: Any, depth: int) -> Any:
        if (
            isinstance(value, type | FunctionType | ModuleType)
            or root_of(value) not in LIBRARIES
        ):
            return value
        slots = [
            name
            for cls in type(value).__mro__
            for name in getattr(cls, "__slots__", ())
        ]
        out = copy.copy(value)
        for name in [*getattr(value, "__dict__", ()), *slots]:
            if hasattr(value, name) and name != "shape":
                held = getattr(value, name)
                wrong = self(held, depth + 1)
                if name in ROWS and isinstance(held, np.ndarray):
                    wrong = wrong % (held.max(initial=0) + 1)
                object.__setattr__(out, name, wrong)
            if self.kind == "in part" and self.changed:
                break
        return out


def parts_of(value: Any, most: int = 24) -> list[Any]:
    """Return the first column names of a frame, or the first keys of a dictionary."""
    named = isinstance(value, dict) or (
        isinstance(value, pd.DataFrame) and value.columns.is_unique
    )
    return list(value)[:most] if named and len(value) > 0 else []


def root_of(value: Any) -> str:
    """Return the package in which a function, or the class of an object, is defined."""
    module = (
        getattr(value, "__module__", None)
        or getattr(type(value), "__module__", None)
        or ""
    )
    return str(module).split(".")[0]


def returning(function: Callable, mutation: Callable[[Any], Any]) -> Callable:
    """Return the function with a wrong result. A class then makes wrong objects, but
    keeps its class methods."""

    class Wrong:
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return mutation(function(*args, **kwargs))

        def __getattr__(self, name: str) -> Any:
            found = getattr(function, name)
            return returning(found, mutation) if inspect.ismethod(found) else found

    return Wrong()


def given(function: Callable, mutation: Callable[[Any], Any]) -> Callable:
    """Return the function with a wrong first argument, which breaks symmetries between
    arguments."""
    return lambda *args, **kwargs: function(
        *map(mutation, args[:1]), *args[1:], **kwargs
    )


def fitting(cls: type, mutation: Callable[[Any], Any]) -> type:
    """Return the class with wrong fitted attributes."""

    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = cls.fit(self, *args, **kwargs)  # type: ignore[attr-defined]
        for name, value in vars(self).copy().items():
            if name.endswith("_"):
                object.__setattr__(self, name, mutation(value))
        return out

    return type(cls.__name__, (cls,), {"fit": fit, "__module__": cls.__module__})


def answering(cls: type, mutation: Callable[[Any], Any]) -> type:
    """Return the class with wrong results of its methods."""

    def wrong(method: Callable) -> Callable:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            out = method(self, *args, **kwargs)
            return out if out is self else mutation(out)

        return call

    methods = {}
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        plain = isinstance(found, FunctionType) and not name.startswith("_")
        if (
            plain
            and root_of(found) in LIBRARIES
            and name not in ("fit", "get_params", "set_params")
        ):
            methods[name] = wrong(found)
    return type(cls.__name__, (cls,), {**methods, "__module__": cls.__module__})

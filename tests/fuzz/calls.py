"""One fuzzed case: calls of a function or of an object of the package, and what they
must not do."""

from __future__ import annotations

import collections.abc
import importlib
import inspect
import pkgutil
import tempfile
import traceback
import types
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from fuzz.arguments import Problem, hints_of
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, NotFittedError

import preflearn
from preflearn.core import NotIdentifiedWarning
from preflearn.datasets import DatasetUnavailable
from preflearn.matches import OutcomeWarning, TimeWarning, UnseenWarning

OURS = ("preflearn", "preflearn_book")
# Names that users do not call with arguments of their own.
NOT_CHECKED = {
    "Incidence",
    "DifferenceGram",
    "StateSpace",
    "Separability",
    "Likelihood.check",
}
WARNINGS = (
    UserWarning,
    ConvergenceWarning,
    FitFailedWarning,
    OutcomeWarning,
    TimeWarning,
    UnseenWarning,
    NotIdentifiedWarning,
)
# The evidence of a rejected sweep.
MAY_BE_NAN = ".trace_.column 1."
ENGINE = (np.ndarray, collections.abc.Callable)
CHANGES_ITSELF = {"fit", "partial_fit", "update"}


def is_ours(value: Any) -> bool:
    """Return whether a class or a function is defined in our packages."""
    return str(getattr(value, "__module__", "")).partition(".")[0] in OURS


@cache
def public_names() -> dict[str, Callable[..., Any]]:
    """Return each public class, function, and alternative constructor, by its import
    path."""
    found = pkgutil.iter_modules(preflearn.__path__, "preflearn.")
    modules = [name for _, name, _ in found]
    names = {}
    for module in map(importlib.import_module, modules):
        own = {
            n: getattr(v, "__module__", "")
            for n, v in vars(module).items()
            if n[0] != "_"
        }
        for name in getattr(
            module, "__all__", [n for n in own if own[n] == module.__name__]
        ):
            value = getattr(module, name)
            if not callable(value) or _is_made_by_us(value) or _is_engine(value):
                continue
            names[f"{module.__name__}.{name}"] = value
            if isinstance(value, type):
                made = {n: getattr(value, n) for n in vars(value) if n[0] != "_"}
                names |= {
                    f"{module.__name__}.{name}.{n}": m
                    for n, m in made.items()
                    if inspect.ismethod(m)
                }
    return names


def _is_made_by_us(value: Any) -> bool:
    """Return whether a value is an error, a record of results, a base class, or
    otherwise not for all callers."""
    if not isinstance(value, type):
        return value.__name__ in NOT_CHECKED
    base = any(is_ours(heir) for heir in value.__subclasses__())
    return (
        issubclass(value, (Exception, tuple)) or base or value.__name__ in NOT_CHECKED
    )


def _is_engine(call: Callable[..., Any]) -> bool:
    """Return whether a function takes records or arrays of ours, which are checked when
    they are made."""
    if getattr(call, "__qualname__", "") in NOT_CHECKED:
        return True
    hints = [] if isinstance(call, type) else hints_of(call).items()
    return any(
        name != "return"
        and (
            typing.get_origin(hint) in ENGINE
            or (isinstance(hint, type) and issubclass(hint, tuple))
        )
        for name, hint in hints
    )


def leaves(value: Any, place: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a value with their places: arrays, and other objects without
    public parts."""
    parts: Any = None
    if depth > 6 or isinstance(value, (np.random.Generator, types.FunctionType, type)):
        return
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield place, value
    elif isinstance(value, pd.Series):
        parts = {"values": value.to_numpy()}
    elif isinstance(value, pd.DataFrame):
        parts = {f"column {k}": value.iloc[:, k] for k in range(value.shape[1])}
    elif sparse.issparse(value):
        parts = {"data": value.data, "coords": value.tocoo().coords}
    elif isinstance(value, Mapping):
        parts = {str(k): v for k, v in value.items()}
    elif isinstance(value, (list, tuple)) or (
        isinstance(value, np.ndarray) and value.ndim
    ):
        parts = dict(enumerate(value))
    elif is_ours(type(value)):
        names = [
            *getattr(value, "__dict__", ()),
            *getattr(type(value), "__slots__", ()),
        ]
        parts = {name: getattr(value, name) for name in names if name[0] != "_"}
    else:
        yield place, value
    for name, part in (parts or {}).items():
        yield from leaves(part, f"{place}.{name}", depth + 1)


def fingerprint(value: Any) -> dict[str, Any]:
    """Return what a call must not change in its arguments."""
    return {place: _seen(leaf) for place, leaf in leaves(value)}


def _seen(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return leaf.dtype.str, leaf.shape, np.ma.getdata(leaf).tobytes()
    return (
        repr(leaf)
        if isinstance(leaf, (bool, int, float, str, bytes, type(None)))
        else type(leaf).__name__
    )


def not_finite(value: Any, text: str) -> str:
    """Return the place of the first NaN in a result, or of an infinity that its
    docstring does not mention."""
    given = (
        {f".{name}" for name in inspect.signature(type(value)).parameters}
        if is_ours(type(value))
        else ()
    )
    for place, leaf in leaves(value):
        if place.startswith((*given, MAY_BE_NAN)):
            continue  # an argument of the constructor, or documented
        try:
            numbers = np.ma.getdata(leaf)
            wrong = np.isnan(numbers) if "inf" in text else ~np.isfinite(numbers)
        except TypeError:
            continue
        if numbers.dtype.kind in "fc" and wrong.any() and "NaN" not in text:
            return f"{place or 'the result'} holds {numbers[wrong].flat[0]}"
    return ""


class Case:
    """The calls of one case: a function, or a constructor and methods of its object."""

    def __init__(
        self,
        seed: int,
        number: int,
        names: Mapping[str, Callable[..., Any]],
        folder: Path,
    ) -> None:
        again = number // len(names)
        self.name = sorted(names)[number % len(names)]
        # the draws do not depend on the other public names
        self.rng = np.random.default_rng([seed, again, *self.name.encode()])
        self.target = names[self.name]
        self.calls = list[dict[str, str]]()
        self.problem = Problem(self.rng, folder)

    def run(self) -> list[dict[str, str]]:
        """Make the calls. One case in four has no hostile arguments."""
        # the number of the call with hostile arguments, if there is one
        self.turn = int(self.rng.integers(4))
        found = self._call(self.name, self.target)
        if found is not None and hasattr(found, "fit"):
            found = self._call(f"{self.name}().fit", found.fit, found)
        for one in found if isinstance(found, tuple) else [found]:
            if is_ours(type(one)):
                for name in self.rng.permutation(_methods(one))[:2]:
                    self._call(f"{self.name}().{name}", getattr(one, name), one)
        return self.calls

    def _call(self, label: str, call: Callable[..., Any], owner: Any = None) -> Any:
        arguments = self.problem.ordinary(call, owner)
        if len(self.calls) == self.turn and arguments:
            for name in self.rng.permutation(list(arguments))[
                : int(self.rng.integers(1, 3))
            ]:
                arguments[name] = self.problem.hostile(name, arguments[name])
        required = _required(call)
        keep = owner if label.rpartition(".")[2] not in CHANGES_ITSELF else None
        before = fingerprint([arguments, keep])
        result = None
        message = ""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                positional = [
                    arguments[n]
                    for n in inspect.signature(call).parameters
                    if n in required
                ]
                named = {n: v for n, v in arguments.items() if n not in required}
                result = call(*positional, **named)
                result = (
                    list(result) if isinstance(result, types.GeneratorType) else result
                )
                outcome = "answered"
            except Exception as error:
                outcome = _class_of(error, inspect.getdoc(call) or "")
                message = f"{type(error).__name__}: {error}"[:300]
        if foreign := [w for w in caught if w.category not in WARNINGS]:
            one = foreign[0]
            outcome = "BAD warning"
            message = (
                f"{one.category.__name__}: {one.message} ({one.filename}:{one.lineno})"
            )
        elif (after := fingerprint([arguments, keep])) != before:
            changed = [p for p in before | after if before.get(p) != after.get(p)]
            outcome = "BAD changed its input"
            message = changed[0]
        elif wrong := not_finite(result, f"{call.__doc__} {_words(result)}"):
            outcome = "BAD number"
            message = wrong
        arguments_text = ", ".join(f"{n}={_short(v)}" for n, v in arguments.items())
        self.calls.append(
            {
                "call": f"{label}({arguments_text})",
                "outcome": outcome,
                "message": message,
            }
        )
        return result


def _class_of(error: Exception, text: str) -> str:
    """Return the class of an error if the documentation mentions it. All other errors
    are bad."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    if isinstance(error, ValueError):
        ours = (
            "/src/" in frame.filename
            or is_ours(type(error))
            or isinstance(error, NotFittedError)
        )
        return type(error).__name__ if ours else "foreign ValueError"
    promised = any(one.__name__ in text for one in type(error).__mro__[:-2])
    if promised or isinstance(error, DatasetUnavailable):
        return type(error).__name__
    return f"BAD {type(error).__name__}"


def _words(result: Any) -> str:
    """Return the docstrings of a result and of its parts."""
    parts = [result, *result] if isinstance(result, tuple) else [result]
    return " ".join(str(type(part).__doc__) for part in parts if is_ours(type(part)))


def _required(call: Callable[..., Any]) -> set[str]:
    """Return the names of the arguments that are passed by position."""
    known = inspect.signature(call).parameters.items()
    return {
        name
        for name, one in known
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    }


def _methods(value: Any) -> list[str]:
    """Return the names of the public methods that are ours, except `fit`."""
    found = [
        n
        for n in dir(type(value))
        if n[0] != "_" and n != "fit" and is_ours(getattr(type(value), n))
    ]
    calls = {n: getattr(value, n, None) for n in found}
    return [
        n
        for n, call in calls.items()
        if callable(call) and not (_is_engine(call) or n.startswith("from_"))
    ]


def _short(value: Any) -> str:
    try:
        return " ".join(repr(value).split())[:120]
    except Exception:  # a number too long for `repr`
        return f"a {type(value).__name__}"


def run_case(seed: int, number: int) -> list[dict[str, str]]:
    """Run a case, and return its calls in order: the call, the outcome, and the
    message."""
    with tempfile.TemporaryDirectory() as folder:
        return Case(seed, number, public_names(), Path(folder)).run()

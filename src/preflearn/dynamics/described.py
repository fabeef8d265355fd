"""Values with parameters: what covariances and likelihoods are."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

from preflearn.checks import LARGEST, check_number, require, shown

Positive = float  # the annotation of a parameter from 1e-100 to 1e100
Length = float  # of one that is a length of time besides


class Described:
    """A value that is made of its parameters, the fields of a dataclass, and can be written as JSON.

    A family of them has a root, whose subclasses are known by name; those with a leading underscore are not.
    """

    family: ClassVar[str]
    kinds: ClassVar[dict[str, type]]

    def __init_subclass__(cls, family: str = "") -> None:
        if family:
            cls.family, cls.kinds = family, {}
        elif not cls.__name__.startswith("_"):
            cls.kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        for field in fields(self):  # pyright: ignore[reportArgumentType]
            if field.type in ("Positive", "Length"):
                object.__setattr__(
                    self, field.name, check_number(self, field.name, positive=True, most=LARGEST)
                )

    def describe(self) -> dict[str, Any]:
        """The class and the parameters as values of JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore[reportArgumentType]
        listed = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return {"kind": type(self).__name__, **listed}


def read(root: type[Described], description: object) -> tuple[type, dict[str, Any]]:
    """The class and the parameters that `describe` has written, those of a class of this family."""
    require(isinstance(description, dict), description, f"the description of a {root.family}", "a dict")
    values: Any = dict(description)  # pyright: ignore[reportCallIssue, reportArgumentType]
    known = sorted(name for name, cls in root.kinds.items() if is_dataclass(cls))
    kind = values.pop("kind", None)
    require(isinstance(kind, str) and kind in known, kind, f"the kind of a {root.family}", f"one of {known}")
    names = [field.name for field in fields(root.kinds[kind])]
    if sorted(map(str, values)) != sorted(names):
        raise ValueError(f"the description of {kind} has {shown(list(values))}; expected {names}")
    return root.kinds[kind], values

"""Base class of covariances and likelihoods: immutable values with parameters."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Annotated, Any, ClassVar

from preflearn.core.validation import LARGEST, check_list, check_real, require

Positive = Annotated[float, "from 1e-100 to 1e100; hyperparameter searches include it"]
Length = Annotated[float, "a Positive parameter that is a length of time"]
# the annotation, or its text under `from __future__ import annotations`
_LENGTHS = Length, "Length"
_POSITIVE = Positive, "Positive", *_LENGTHS


class Parametrized:
    """A value with parameters, the fields of a dataclass, that can be written as JSON.

    A family of such classes has a root class, which finds its subclasses by name.
    Subclasses with a leading underscore are excluded.

    Attributes
    ----------
    ranges : dict of str to (float, float)
        Smallest and largest value of each parameter that may not be any positive
        number.
    """

    family: ClassVar[str]
    kinds: ClassVar[dict[str, type]]
    ranges: ClassVar[dict[str, tuple[float, float]]] = {}

    def __init_subclass__(cls, family: str = "") -> None:
        if family:
            cls.family = family
            cls.kinds = {}
        elif not cls.__name__.startswith("_"):
            cls.kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        for name, value in self._annotated(_POSITIVE).items():
            low, high = self.ranges.get(name, (1 / LARGEST, LARGEST))
            expected = "a positive number"
            if name in self.ranges:
                expected = f"a number from {low:g} to {high:g}"
            object.__setattr__(self, name, check_real(value, name, expected, low, high))

    def positive(self) -> dict[str, float]:
        """The positive parameters, including lengths of time, by name."""
        return self._annotated(_POSITIVE)

    def lengths(self) -> dict[str, float]:
        """The parameters that are lengths of time, by name."""
        return self._annotated(_LENGTHS)

    def _annotated(self, kinds: tuple[Any, ...]) -> dict[str, float]:
        found: Any = fields(self)  # pyright: ignore[reportArgumentType]
        return {
            field.name: getattr(self, field.name)
            for field in found
            if field.type in kinds
        }

    def changed(self, **values: Any) -> Any:
        """A copy with other values of some parameters."""
        found: Any = self
        return replace(found, **values)

    def to_dict(self) -> dict[str, Any]:
        """Class and parameters as a dict that can be written as JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore[reportArgumentType]
        for name, value in values.items():
            if isinstance(value, Parametrized):
                values[name] = value.to_dict()
        return {"kind": type(self).__name__, **values}

    @classmethod
    def from_dict(cls, description: object) -> Any:
        """Create the value that `to_dict` described.

        Parameters
        ----------
        description : dict
            Description of the value: the name of the class with the key "kind", and all
            its parameters. A sum or a product has "parts", a list of descriptions. A
            parameter that is itself of this family is a description.

        Raises
        ------
        ValueError
            If the description is not valid, or a parameter is out of range.

        Examples
        --------
        >>> from preflearn.dynamics import Constant, Covariance, Matern12
        >>> covariance = Constant(2.0) + Matern12(lengthscale=30.0)
        >>> covariance.to_dict()["parts"][0]
        {'kind': 'Constant', 'variance': 2.0}
        >>> Covariance.from_dict(covariance.to_dict())
        Constant(variance=2.0) + Matern12(variance=1.0, lengthscale=30.0)
        """
        kinds = {
            name: found for name, found in cls.kinds.items() if is_dataclass(found)
        }
        values: Any = {}
        if isinstance(description, dict):
            values = dict(description)
        kind = str(values.pop("kind", None))
        expected = f"a dict whose 'kind' is one of {sorted(kinds)}"
        name = f"the description of a {cls.family}"
        require(kind in kinds, description, name, expected)
        names = [field.name for field in fields(kinds[kind])]
        good = sorted(map(str, values)) == sorted(names)
        name = f"the list of parameters in the description of a {kind}"
        require(good, list(values), name, str(names))
        if "parts" in values:
            parts = check_list(values["parts"], "parts", "a list of descriptions")
            values["parts"] = tuple(map(cls.from_dict, parts))
        for name, value in values.items():
            if isinstance(value, dict):
                values[name] = cls.from_dict(value)
        return kinds[kind](**values)

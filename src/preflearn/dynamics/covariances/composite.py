"""Base class of covariance functions, and their sums and products.

See section 2.1 of [Maystre2019]_.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from preflearn.core.validation import (
    LARGEST,
    Floats,
    check_array,
    raise_if_any,
    require,
)
from preflearn.dynamics.covariances.state_space import (
    OVERFLOW,
    StateSpace,
    check_finite,
)
from preflearn.dynamics.parametrized import Parametrized


class Covariance(Parametrized, family="covariance"):
    """Base class of covariance functions k(t, t') of a score over time.

    Use its subclasses, and combine them with `+` (independent effects that add up) and
    `*` (an effect that another one modulates). Derive from it to define your own
    covariance.

    A covariance is immutable, is equal to another one with the same parameters, and its
    repr can be evaluated. Times, lengths of time, and variances are in the units of the
    times and scores of the data.
    """

    def __add__(self, other: Covariance) -> Covariance:
        if not isinstance(other, Covariance):
            return NotImplemented
        return Sum((self, other))

    def __mul__(self, other: Covariance) -> Covariance:
        if not isinstance(other, Covariance):
            return NotImplemented
        return Product((self, other))

    def gram(self, t: ArrayLike, t2: ArrayLike | None = None) -> Floats:
        """Covariance matrix of the scores at times t and t2.

        Parameters
        ----------
        t : array-like of shape (n,)
            Times in any order.
        t2 : array-like of shape (n2,), optional
            Other times; the same as t by default.

        Returns
        -------
        K : ndarray of shape (n, n2)

        Raises
        ------
        ValueError
            If a time is not finite, beyond 1e100, or before the origin of a Wiener
            process, or if the covariance overflows.

        Notes
        -----
        If the origin is "first", it is the smallest of all given times.
        """
        rows = _check_times(t, "t")
        columns = rows if t2 is None else _check_times(t2, "t2")
        with np.errstate(**OVERFLOW):
            return check_finite(
                self._gram(
                    rows[:, None], columns, float(min(rows.min(), columns.min()))
                )
            )

    def state_space(self) -> StateSpace:
        """The same process as a Gauss-Markov process (a state-space model)."""
        raise NotImplementedError(
            f"{type(self).__name__} has no method state_space; a subclass of Covariance must define it"
        )

    def _gram(self, t: Floats, t2: Floats, first: float) -> Floats:
        raise NotImplementedError(
            f"{type(self).__name__} has no method _gram; a subclass of Covariance must define it"
        )

    @property
    def label(self) -> str:
        """Name without parameters."""
        return type(self).__name__

    def to_text(self) -> str:
        """Describe the scores in words, for `in_words`; by default, return the repr."""
        return repr(self)

    def leaves(self) -> list[Covariance]:
        """The elementary covariances of a sum or product; else only itself."""
        return [self]

    def mapped(self, change: Callable[[Covariance], Covariance]) -> Covariance:
        """The same sums and products with a function applied to each elementary part."""
        return change(self)


@dataclass(frozen=True, repr=False)
class _Composite(Covariance):
    """Terms of a sum or factors of a product.

    A sum in a sum, or a product in a product, is flattened.
    """

    parts: tuple[Covariance, ...]
    sign: ClassVar[str]
    what: ClassVar[str]  # description, for `to_text`
    operation: ClassVar[Callable[[Any, Any], Any]]

    def __post_init__(self) -> None:
        good = len(self.parts) > 0 and all(
            isinstance(part, Covariance) for part in self.parts
        )
        require(good, self.parts, "parts", "a sequence of at least one covariance")
        flat = (
            (part.parts if type(part) is type(self) else (part,)) for part in self.parts
        )
        object.__setattr__(
            self, "parts", tuple(part for group in flat for part in group)
        )

    def __repr__(self) -> str:
        return self._joined(self.sign, repr)

    @property
    def label(self) -> str:
        return self._joined(self.sign.replace("*", "x"), lambda part: part.label)

    def _joined(self, sign: str, text: Callable[[Covariance], str]) -> str:
        return sign.join(
            f"({text(part)})" if isinstance(part, Sum) else text(part)
            for part in self.parts
        )

    def to_text(self) -> str:
        parts = "; ".join(f"{part.label}, {part.to_text()}" for part in self.parts)
        return f"{self.what.format(len(self.parts))} [{parts}]"

    def leaves(self) -> list[Covariance]:
        return [leaf for part in self.parts for leaf in part.leaves()]

    def mapped(self, change: Callable[[Covariance], Covariance]) -> Covariance:
        return type(self)(tuple(part.mapped(change) for part in self.parts))

    def _gram(self, t: Floats, t2: Floats, first: float) -> Floats:
        return reduce(
            type(self).operation, (part._gram(t, t2, first) for part in self.parts)
        )

    def state_space(self) -> StateSpace:
        return reduce(type(self).operation, (part.state_space() for part in self.parts))

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": type(self).__name__,
            "parts": [part.to_dict() for part in self.parts],
        }


class Sum(_Composite):
    """Covariance of a sum of independent scores.

    k(t, t') = k_1(t, t') + k_2(t, t') + ...
    """

    sign = " + "
    operation = operator.add
    what = "a sum of {} parts"


class Product(_Composite):
    """Product of covariances.

    k(t, t') = k_1(t, t') k_2(t, t') ...
    """

    sign = " * "
    operation = operator.mul
    what = "a product of {} parts, whose covariances are multiplied"


def _check_times(values: ArrayLike, name: str) -> Floats:
    times = check_array(values, name, ("n",), "times")
    raise_if_any(np.abs(times) > LARGEST, times, name, "a time from -1e100 to 1e100")
    return times

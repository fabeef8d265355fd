"""Hyperparameters by readable names.

All of them are positive, and the evidence of a model depends on each; searches are over their logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from sklearn.base import clone

from preflearn.checks import LARGEST, as_real, check_real, require, shown
from preflearn.dynamics.covariances.composite import covariance_from
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.likelihoods.likelihood import likelihood_from
from preflearn.dynamics.model import DynamicComparisons

Range = tuple[float, float]

KINDS = ("variance", "slope_variance", "lengthscale", "period", "margin", "base_rate")


def parameters_of(model: DynamicComparisons) -> dict[str, float]:
    """All parameters on which the evidence depends, by name, in the order in which they are written.

    A name is the class and the parameter: "Matern12.lengthscale", or "Matern12_2.lengthscale" of the second
    Matern12; of a mapping of covariances "advantage: Constant.variance"; "likelihood.margin". Origins,
    boundaries and orders are left out, and so is the margin of `Gaussian`, which only forecasts use.

    Parameters
    ----------
    model : DynamicComparisons

    Returns
    -------
    dict of str to float
        Each in its own unit: that of `Matches.time`, and of the scores.

    Raises
    ------
    ValueError
        If two features have the same name in print, as 1 and "1" have.

    Examples
    --------
    >>> from preflearn.dynamics import DynamicComparisons, Matern12, OrdinalProbit
    >>> parameters_of(DynamicComparisons(Matern12(0.2, lengthscale=365.0), OrdinalProbit(margin=0.4)))
    {'Matern12.variance': 0.2, 'Matern12.lengthscale': 365.0, 'likelihood.margin': 0.4}
    """
    return {name: float(owner[key]) for name, (owner, key) in _Descriptions(model).places.items()}


def with_parameters(model: DynamicComparisons, values: Mapping[str, float]) -> DynamicComparisons:
    """The same model, not fitted, with other values of some parameters.

    Parameters
    ----------
    model : DynamicComparisons
        It is not changed.
    values : mapping of str to float
        By the names of `parameters_of`; those that are not named stay.

    Raises
    ------
    ValueError
        If a name is unknown, or a value is out of range.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, DynamicComparisons, Probit
    >>> with_parameters(DynamicComparisons(Constant(0.5), Probit()), {"Constant.variance": 2}).covariance
    Constant(variance=2.0)
    """
    descriptions = _Descriptions(model)
    require(isinstance(values, Mapping), values, "values", "a mapping of names to numbers")
    check_names(values, descriptions.places, "a parameter")
    for name, value in values.items():
        owner, key = descriptions.places[name]
        owner[key] = check_real(value, name, "a positive number", 1 / LARGEST, LARGEST)
    return descriptions.rebuilt()


class _Descriptions:
    """A model as nested dicts, and where in them each parameter is."""

    def __init__(self, model: DynamicComparisons) -> None:
        require(isinstance(model, DynamicComparisons), model, "model", "a DynamicComparisons")
        model._check_parameters()
        self._model = model
        self._one = not isinstance(model.covariance, Mapping)
        self._covariances = {name: k.describe() for name, k in Prior(model.covariance).covariances.items()}
        self._likelihood = model.likelihood.describe()
        found = [place for name, k in self._covariances.items() for place in self._of(name, k)]
        if self._likelihood["kind"] != "Gaussian":
            found += _numbers("likelihood", self._likelihood)
        else:
            found.append(("likelihood.variance", self._likelihood, "variance"))
        self.places: dict[str, tuple[dict[str, Any], str]] = {}
        for name, owner, key in found:
            if name in self.places:
                raise ValueError(
                    f"two parameters are called {shown(name)}; expected features whose names differ in print"
                )
            self.places[name] = owner, key

    def _of(self, name: Hashable, described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
        prefix, seen = "" if self._one else f"{name}: ", dict[str, int]()
        for leaf in leaves(described):
            kind = leaf["kind"]
            seen[kind] = seen.get(kind, 0) + 1
            yield from _numbers(prefix + kind + f"_{seen[kind]}" * (seen[kind] > 1), leaf)

    def rebuilt(self) -> DynamicComparisons:
        covariances = {name: covariance_from(k) for name, k in self._covariances.items()}
        covariance = next(iter(covariances.values())) if self._one else covariances
        return changed(self._model, covariance=covariance, likelihood=likelihood_from(self._likelihood))


def changed(model: DynamicComparisons, **options: Any) -> DynamicComparisons:
    """A copy that is not fitted, with other options."""
    copy: Any = clone(model)
    return copy.set_params(**options)


def leaves(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The descriptions of all covariances that a description is put together from."""
    if "parts" not in described:
        yield described
    for part in described.get("parts", []):
        yield from leaves(part)


def _numbers(name: str, leaf: dict[str, Any]) -> list[tuple[str, dict[str, Any], str]]:
    return [(f"{name}.{key}", leaf, key) for key in leaf if key in KINDS]


def check_names(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise ValueError that shows the first name that is not known; `what` says of what it is a name."""
    known = list(known)
    for name in names:
        require(name in known, name, what, f"one of {', '.join(known)}")


def check_range(found: Any, name: str) -> Range:
    """Return the least and the largest value of a range, positive and different, or say what it is."""
    try:
        low, high = (as_real(value) for value in found)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    good = 1 / LARGEST <= low < high <= LARGEST
    require(good, found, name, "two positive numbers from 1e-100 to 1e100, the smaller one first")
    return low, high

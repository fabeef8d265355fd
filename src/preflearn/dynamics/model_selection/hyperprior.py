"""Weakly informative prior of the hyperparameters, scaled to the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from preflearn.core.validation import Floats, check_real, require
from preflearn.dynamics.covariances.prior import by_name
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.dynamics.model import DynamicComparisons
from preflearn.dynamics.model_selection.hyperparameters import check_names, described
from preflearn.dynamics.model_selection.summary import variance_after
from preflearn.dynamics.parametrized import Parametrized
from preflearn.matches import Matches

_TAIL = 2  # P(variance > v) = (1 + v / unit)^-_TAIL
_LENGTH_WIDTH = 1.5  # standard deviation of the logarithm of a length
_OTHER_WIDTH = 2.0  # prior width of any other parameter
_STEP = 1e-4  # step of a logarithm for differences of the log density
_NEGLIGIBLE_VARIANCE = 1e-100
_MAX_FACTOR = 1e6  # largest ratio of a value in the search to the median, or inverse


class _Lomax(NamedTuple):
    """Lomax distribution P(variance > v) = (1 + v / unit)^-2, in log(v / unit)."""

    def log_density(self, log_ratio: float) -> float:
        rest = float(np.logaddexp(0.0, log_ratio))
        return math.log(_TAIL) + log_ratio - (_TAIL + 1) * rest

    def median_ratio(self) -> float:
        return 2 ** (1 / _TAIL) - 1


class _LogNormal(NamedTuple):
    """Log-normal distribution of a parameter divided by its unit."""

    width: float

    def log_density(self, log_ratio: float) -> float:
        scale = self.width * math.sqrt(2 * math.pi)
        return -0.5 * (log_ratio / self.width) ** 2 - math.log(scale)

    def median_ratio(self) -> float:
        return 1.0


class _Given(NamedTuple):
    """A user's distribution of the parameter in its own unit."""

    distribution: Any

    def log_density(self, log_ratio: float) -> float:
        return float(self.distribution.logpdf(math.exp(log_ratio))) + log_ratio

    def median_ratio(self) -> float:
        return float(self.distribution.median())


class _Entry(NamedTuple):
    """The prior of one parameter."""

    density: _Lomax | _LogNormal | _Given
    unit: float
    # whether the unit is multiplied by the noise variance of the likelihood
    is_relative_to_noise: bool


class HyperPrior:
    r"""Log prior density of the logarithms of some hyperparameters.

    The parameters are independent. With :math:`\sigma^2` the noise variance
    (`Likelihood.noise` squared) and T the time span of the data,

    - a variance v has :math:`P(v > x) = (1 + x / \sigma^2)^{-2}` (Lomax); if it grows
      over time, as that of a random walk, v is the variance after T;
    - a length of time has a log-normal distribution with median T, whose logarithm has
      standard deviation 1.5;
    - any other parameter, such as a margin of ties, has a log-normal distribution whose
      median is its value in the model; its logarithm has standard deviation 2.
    """

    def __init__(
        self,
        model: DynamicComparisons,
        matches: Matches,
        names: list[str],
        given: Mapping[str, Any] | None = None,
    ) -> None:
        self._names = names
        self._likelihood = model.likelihood
        span = float(np.ptp(matches.time)) or 1.0
        default = _default_entries(model, span)
        own = _check_given(given, list(default), names)
        self._entries = [own.get(name, default[name]) for name in names]

    def __call__(self, at: Floats) -> float:
        """Log density at logarithms of the parameters, shape (p,)."""
        log_noise = 2 * math.log(self._noise(at))
        total = 0.0
        for entry, value in zip(self._entries, at.tolist(), strict=True):
            log_unit = math.log(entry.unit) + entry.is_relative_to_noise * log_noise
            total += entry.density.log_density(value - log_unit)
        return total

    def gradient(self, at: Floats) -> Floats:
        """Derivatives of the log density, shape (p,), by central differences."""
        steps = _STEP * np.eye(len(at))
        return np.array([(self(at + h) - self(at - h)) / (2 * _STEP) for h in steps])

    def medians(self) -> Floats:
        """Prior medians of the parameters, given the noise of the model, shape (p,)."""
        return np.array(
            [
                entry.density.median_ratio()
                * entry.unit
                * self._likelihood.noise ** (2 * entry.is_relative_to_noise)
                for entry in self._entries
            ]
        )

    def limits(self) -> Floats:
        """Bounds of the search for each logarithm, shape (p, 2)."""
        return np.log(self.medians())[:, None] + np.log(_MAX_FACTOR) * np.array(
            [-1.0, 1.0]
        )

    def _noise(self, at: Floats) -> float:
        """Noise of the likelihood with these parameters."""
        label = "likelihood."
        values = {
            name.removeprefix(label): math.exp(value)
            for name, value in zip(self._names, at.tolist(), strict=True)
            if name.startswith(label)
        }
        return self._likelihood.changed(**values).noise


def _default_entries(model: DynamicComparisons, span: float) -> dict[str, _Entry]:
    """Default prior of each parameter, in the order of `parameters_of`."""
    names = described(model)
    pairs = zip(names, _parts(model), strict=True)
    return {name: _default_entry(part, key, span) for name, (part, key) in pairs}


def _parts(model: DynamicComparisons) -> Iterator[tuple[Parametrized, str]]:
    """Owner and name of each parameter, in the order of `parameters_of`."""
    for covariance in by_name(model.covariance).values():
        for leaf in covariance.leaves():
            for key in leaf.positive():
                yield leaf, key
    for key in model.likelihood.positive():
        yield model.likelihood, key


def _default_entry(part: Any, key: str, span: float) -> _Entry:
    if key in part.lengths():
        return _Entry(_LogNormal(_LENGTH_WIDTH), span, False)
    if isinstance(part, Likelihood) or not key.endswith("variance"):
        return _Entry(_LogNormal(_OTHER_WIDTH), part.positive()[key], False)
    others = [name for name in part.positive() if name.endswith("variance")]
    alone = part.changed(**(dict.fromkeys(others, _NEGLIGIBLE_VARIANCE) | {key: 1.0}))
    return _Entry(_Lomax(), 1 / variance_after(alone, span), True)


def _check_given(
    given: Mapping[str, Any] | None, known: list[str], free: list[str]
) -> dict[str, _Entry]:
    """The user's distributions, by parameter."""
    require(
        given is None or isinstance(given, Mapping),
        given,
        "prior",
        "a mapping of parameter names to distributions, such as scipy.stats.lomax(2)",
    )
    checked = dict(given or {})
    check_names(checked, dict.fromkeys(known), "a name in prior")
    entries = {}
    for name, distribution in checked.items():
        require(
            name in free, name, "a name in prior", "a parameter that is not in fixed"
        )
        has_density = hasattr(distribution, "logpdf") and hasattr(
            distribution, "median"
        )
        require(
            has_density,
            distribution,
            f"prior[{name!r}]",
            "a continuous distribution, such as scipy.stats.lomax(2, scale=0.5)",
        )
        check_real(
            distribution.median(),
            f"the median of prior[{name!r}]",
            "a positive number",
            1 / _MAX_FACTOR**4,
            _MAX_FACTOR**4,
        )
        entries[name] = _Entry(_Given(distribution), 1.0, False)
    return entries

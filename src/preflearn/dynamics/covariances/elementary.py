"""Covariance functions with exact state-space models.

See section 2.1 and Table 7 of [Maystre2019]_.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, perm, sqrt
from typing import ClassVar

import numpy as np

from preflearn.core.validation import (
    LARGEST,
    Floats,
    check_array,
    check_real,
    raise_if_any,
    require,
)
from preflearn.dynamics.covariances.blocks import Decay, Interval, Origin, Trend
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.state_space import StateSpace
from preflearn.dynamics.covariances.units import (
    YEAR,
    beginning,
    curve,
    deviation,
    number,
)
from preflearn.dynamics.parametrized import Length, Positive


class _Trend(Covariance):
    """A level and a slope with known variances at the origin, plus a Wiener process."""

    origin: Origin = 0.0

    def _variances(self) -> tuple[float, float, float]:
        """Variances of level and slope, and of a Wiener process per unit of time.

        A variance is 0 if the term is absent.
        """
        raise NotImplementedError

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.origin, str) and self.origin == "first"):
            time = check_real(
                self.origin,
                "origin",
                "a time, or 'first' for the first match of each player",
                -LARGEST,
                LARGEST,
            )
            object.__setattr__(self, "origin", time)

    def _gram(self, t: Floats, t2: Floats, first: float) -> Floats:
        level, slope, drift = self._variances()
        origin = first
        if self.origin != "first":
            origin = float(self.origin)
        good = drift == 0 or first >= origin
        expected = f"a time of at least {origin:g}, the origin of {self!r}"
        require(good, first, "the first time", expected)
        since = t - origin
        since2 = t2 - origin
        return level + slope * (since * since2) + drift * np.minimum(since, since2)

    def state_space(self) -> StateSpace:
        return StateSpace([Trend(*self._variances(), self.origin)])


@dataclass(frozen=True)
class Constant(_Trend):
    """Covariance of a score that does not change: k(t, t') = variance.

    Choose it for scores without time dynamics. In a sum with other covariances, it adds
    a constant offset to the score of each feature.

    Parameters
    ----------
    variance : float
        Variance of the score, in its unit squared; from 1e-100 to 1e100.

    Raises
    ------
    ValueError
        If the variance is out of range.

    Examples
    --------
    >>> Constant(variance=2.0).gram([0.0, 5.0]).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """

    variance: Positive = 1.0

    def _variances(self) -> tuple[float, float, float]:
        return self.variance, 0.0, 0.0

    def to_text(self) -> str:
        return f"a level that does not change, of {deviation(self.variance)}"


@dataclass(frozen=True)
class Wiener(_Trend):
    """Covariance of a random walk (Brownian motion) that is 0 at the origin.

    k(t, t') = variance * (min(t, t') - origin). Choose it if scores drift away from
    where they were, without returning to a mean.

    Parameters
    ----------
    variance : float
        Variance of a change in one unit of time: score squared per unit of time.
    origin : float or "first"
        Time at which the score is 0. "first" means the first match of each feature, as
        in TrueSkill Through Time; add a `Constant` for the variance of new players.
        Times before the origin raise an error, because k(t, t) < 0 is not a variance.

    Raises
    ------
    ValueError
        If the variance is out of range, or the origin is neither a number nor "first".

    Examples
    --------
    >>> (Constant(9.0) + Wiener(variance=0.5, origin="first")).gram([2000.0, 2004.0]).tolist()
    [[9.0, 9.0], [9.0, 11.0]]
    """

    variance: Positive = 1.0
    origin: Origin = "first"

    def _variances(self) -> tuple[float, float, float]:
        return 0.0, 0.0, self.variance

    def to_text(self) -> str:
        growth = YEAR * self.variance
        return (
            f"a random walk from 0 at {beginning(self.origin)}; its variance grows by {number(growth)} a "
            f"year, so a change has standard deviation {number(sqrt(growth))} over one year and twice that "
            "over 4"
        )


@dataclass(frozen=True)
class Linear(_Trend):
    """Covariance of a straight line that is 0 at the origin.

    k(t, t') = variance * (t - origin) * (t' - origin). Choose it as a part of a sum,
    for a steady trend.

    Parameters
    ----------
    variance : float
        Variance of the slope: score squared per unit of time squared.
    origin : float or "first"
        Time at which the score is 0; "first" means the first match of each feature.

    Raises
    ------
    ValueError
        If the variance is out of range, or the origin is neither a number nor "first".

    Examples
    --------
    >>> Linear(variance=2.0, origin=1.0).gram([1.0, 2.0, 4.0]).tolist()
    [[0.0, 0.0, 0.0], [0.0, 2.0, 6.0], [0.0, 6.0, 18.0]]
    """

    variance: Positive = 1.0
    origin: Origin = "first"

    def _variances(self) -> tuple[float, float, float]:
        return 0.0, self.variance, 0.0

    def to_text(self) -> str:
        return f"a straight line through 0 at {_slope(self.origin, self.variance)}"


@dataclass(frozen=True)
class Affine(_Trend):
    """Covariance of a straight line with independent level and slope at the origin.

    k(t, t') = variance + slope_variance * (t - origin) * (t' - origin). Choose it if
    each score changes at a constant rate.

    Parameters
    ----------
    variance : float
        Variance of the score at the origin, in its unit squared.
    slope_variance : float
        Variance of the slope: score squared per unit of time squared.
    origin : float or "first"
        Time at which level and slope are independent; "first" means the first match of
        each feature.

    Raises
    ------
    ValueError
        If a variance is out of range, or the origin is neither a number nor "first".

    Examples
    --------
    >>> Affine(variance=3.0, slope_variance=2.0, origin=0.0).gram([0.0, 1.0, 2.0]).tolist()
    [[3.0, 3.0, 3.0], [3.0, 5.0, 7.0], [3.0, 7.0, 11.0]]
    """

    variance: Positive = 1.0
    slope_variance: Positive = 1.0
    origin: Origin = "first"

    def _variances(self) -> tuple[float, float, float]:
        return self.variance, self.slope_variance, 0.0

    def to_text(self) -> str:
        line = _slope(self.origin, self.slope_variance)
        return f"a straight line, of {deviation(self.variance)} at {line}"


def _slope(origin: Origin, variance: float) -> str:
    slope = number(YEAR * sqrt(variance))
    return f"{beginning(origin)}; its slope has standard deviation {slope} a year"


@dataclass(frozen=True)
class PiecewiseConstant(Covariance):
    """Covariance of a score that is redrawn at each boundary, such as each season.

    k(t, t') = variance if t and t' are in the same interval between boundaries, else 0.
    Choose it as a part of a sum if scores change at known times, such as the start of a
    season, and are constant between them.

    Parameters
    ----------
    variance : float
        Variance of the score, in its unit squared.
    boundaries : sequence of float
        Ascending times between two intervals; a boundary belongs to the later interval.
        The first interval has no start, and the last one has no end.

    Raises
    ------
    ValueError
        If the variance is out of range, or the boundaries are not finite and ascending.

    Examples
    --------
    >>> PiecewiseConstant(variance=2.0, boundaries=(1.0, 3.0)).gram([0.0, 1.0, 2.0]).tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 2.0], [0.0, 2.0, 2.0]]
    """

    variance: Positive = 1.0
    boundaries: tuple[float, ...] = (0.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        boundaries = check_array(
            self.boundaries, "boundaries", ("n",), "ascending times"
        )
        raise_if_any(
            np.diff(boundaries, prepend=-np.inf) <= 0,
            boundaries,
            "boundaries",
            "a time later than the previous boundary; sort the boundaries",
        )
        object.__setattr__(self, "boundaries", tuple(boundaries.tolist()))

    def _gram(self, t: Floats, t2: Floats, first: float) -> Floats:
        rows, columns = (
            np.searchsorted(self.boundaries, times, side="right") for times in (t, t2)
        )
        return self.variance * (rows == columns)

    def state_space(self) -> StateSpace:
        return StateSpace([Interval(self.variance, self.boundaries)])

    def to_text(self) -> str:
        return f"a level that is drawn anew at each of its boundaries, of {deviation(self.variance)}"


@dataclass(frozen=True)
class _Matern(Covariance):
    """Matérn covariance of smoothness size - 1/2: a polynomial in u times e^-u."""

    variance: Positive = 1.0
    lengthscale: Length = 1.0
    size: ClassVar[int]
    look: ClassVar[tuple[str, str, float]]  # first arguments of `curve`

    @property
    def _rate(self) -> float:
        return sqrt(2 * self.size - 1) / self.lengthscale

    def _gram(self, t: Floats, t2: Floats, first: float) -> Floats:
        # e^-1000 is 0
        u = np.minimum(np.abs(t - t2) * self._rate, 1e3)
        p = self.size - 1
        coefficients = [2**k * comb(p, k) / perm(2 * p, k) for k in range(p, -1, -1)]
        return np.asarray(
            self.variance * np.polyval(coefficients, u) * np.exp(-u), dtype=np.float64
        )

    def state_space(self) -> StateSpace:
        return StateSpace([Decay(self.variance, self._rate, self.size)])

    def to_text(self) -> str:
        return curve(*self.look, self.variance, self.lengthscale)


class Matern12(_Matern):
    """Matérn covariance of smoothness 1/2: a rough score around a mean.

    k(t, t') = variance * e^-u with u = ``|t - t'|`` / lengthscale. Choose it for scores
    that change abruptly but return to their mean.

    Parameters
    ----------
    variance : float
        Variance of the score, in its unit squared.
    lengthscale : float
        Time over which the correlation falls to 0.37.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> Matern12(variance=2.0, lengthscale=10.0).gram([0.0], [0.0, 10.0]).round(3).tolist()
    [[2.0, 0.736]]
    """

    size = 1
    look = ("rough", "0.37", 0.693147)


class Matern32(_Matern):
    """Matérn covariance of smoothness 3/2: a smooth score around a mean.

    k(t, t') = variance * (1 + u) e^-u with u = √3 ``|t - t'|`` / lengthscale. Choose it
    for scores that change gradually: they have a slope at each time.

    Parameters
    ----------
    variance : float
        Variance of the score, in its unit squared.
    lengthscale : float
        Time over which the correlation falls to 0.48.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> Matern32(variance=2.0, lengthscale=10.0).gram([0.0], [0.0, 10.0]).round(3).tolist()
    [[2.0, 0.967]]
    """

    size = 2
    look = ("smooth", "0.48", 0.968994)


class Matern52(_Matern):
    """Matérn covariance of smoothness 5/2: a very smooth score around a mean.

    k(t, t') = variance * (1 + u + u²/3) e^-u with u = √5 ``|t - t'|`` / lengthscale.
    Choose it for scores that change very smoothly: they have a slope and a curvature.

    Parameters
    ----------
    variance : float
        Variance of the score, in its unit squared.
    lengthscale : float
        Time over which the correlation falls to 0.52.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> Matern52(variance=2.0, lengthscale=10.0).gram([0.0], [0.0, 10.0]).round(3).tolist()
    [[2.0, 1.048]]
    """

    size = 3
    look = ("very smooth", "0.52", 1.042122)

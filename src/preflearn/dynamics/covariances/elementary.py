"""Covariance functions with exact state-space models (section 2.1 and Table 7 of
[Maystre2019]_).

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
    """A level and a slope with known variances at the origin, and a Wiener process from
    there on."""

    origin: Origin = 0.0

    def _variances(self) -> tuple[float, float, float]:
        """Of level and slope, and of a Wiener process in one unit of time; 0 where
        there is none."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.origin, str) and self.origin == "first"):
            time = check_real(
                self.origin, "origin", "a time or 'first'", -LARGEST, LARGEST
            )
            object.__setattr__(self, "origin", time)

    def _gram(self, t: Floats, t2: Floats, first: float) -> Floats:
        level, slope, drift = self._variances()
        origin = first
        if self.origin != "first":
            origin = float(self.origin)
        good = drift == 0 or first >= origin
        require(good, first, "the least time", f"times from the origin {origin:g} on")
        since = t - origin
        since2 = t2 - origin
        return level + slope * (since * since2) + drift * np.minimum(since, since2)

    def state_space(self) -> StateSpace:
        return StateSpace([Trend(*self._variances(), self.origin)])


@dataclass(frozen=True)
class Constant(_Trend):
    """k(t, t') = variance: a score that does not change.

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
    """k(t, t') = variance * (min(t, t') - origin): Brownian motion that is 0 at the
    origin.

    Parameters
    ----------
    variance : float
        Variance of a change in one unit of time: score squared per unit of time.
    origin : float or "first"
        The time at which the score is 0. "first": each feature's own first match, as in
        TrueSkill Through Time; add a `Constant` for the variance of newcomers. Times
        before a number are refused: min(t, t') is not a covariance there, since k(t, t) <
        0.

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
    """k(t, t') = variance * (t - origin) * (t' - origin): a straight line that is 0 at
    the origin.

    Parameters
    ----------
    variance : float
        Variance of the slope: score squared per unit of time squared.
    origin : float or "first"
        The time at which the score is 0; "first": each feature's own first match.

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
    """k(t, t') = variance + slope_variance * (t - origin) * (t' - origin): a straight
    line.

    Parameters
    ----------
    variance : float
        Variance of the score at the origin, in its unit squared.
    slope_variance : float
        Variance of the slope: score squared per unit of time squared.
    origin : float or "first"
        The time at which level and slope are independent; "first": each feature's own
        first match.

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
    """k(t, t') = variance within an interval between boundaries, 0 between two: a new
    score each season.

    Parameters
    ----------
    variance : float
        Variance of the score, in its unit squared.
    boundaries : sequence of float
        Ascending times at which an interval ends and the next one begins; a boundary
        belongs to the later one. The first interval has no beginning, the last one no
        end.

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
            "ascending times",
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
    """Of smoothness size - 1/2: variance times a polynomial in u times e^-u."""

    variance: Positive = 1.0
    lengthscale: Length = 1.0
    size: ClassVar[int]
    look: ClassVar[tuple[str, str, float]]  # of `curve`

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
    """k(t, t') = variance * e^-u, u = ``|t - t'|`` / lengthscale: a rough score that
    returns to its mean.

    Parameters
    ----------
    variance : float
        Variance of the score, in its unit squared.
    lengthscale : float
        In units of time; the correlation over this gap is 0.37.

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
    """k(t, t') = variance * (1 + u) e^-u, u = √3 ``|t - t'|`` / lengthscale: a score
    that has a slope.

    Parameters
    ----------
    variance : float
        Variance of the score, in its unit squared.
    lengthscale : float
        In units of time; the correlation over this gap is 0.48.

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
    """k(t, t') = variance * (1 + u + u²/3) e^-u, u = √5 ``|t - t'|`` / lengthscale: a
    score with a curvature.

    Parameters
    ----------
    variance : float
        Variance of the score, in its unit squared.
    lengthscale : float
        In units of time; the correlation over this gap is 0.52.

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

"""Likelihoods: how the outcome y of a match depends on the difference d of two scores.

Those of Table 1 of [Maystre2019]_, the ordinal logit and the Skellam distribution. A likelihood answers
scalar questions only, and knows nothing of time or inference.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
.. [Glenn1960] W. A. Glenn, H. A. David, "Ties in paired-comparison experiments using a modified
   Thurstone-Mosteller model", Biometrics 16, 1960.
.. [Rao1967] P. V. Rao, L. L. Kupper, "Ties in paired-comparison experiments: a generalization of the
   Bradley-Terry model", Journal of the American Statistical Association 62, 1967.
.. [Karlis2009] D. Karlis, I. Ntzoufras, "Bayesian modelling of football outcomes: using the Skellam's
   distribution for the goal difference", IMA Journal of Management Mathematics 20, 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import LARGEST, Floats, as_array, check_array, check_real, refuse, require
from preflearn.dynamics.likelihoods import density
from preflearn.dynamics.likelihoods.counts import skellam_wins
from preflearn.dynamics.likelihoods.integrals import each_row

_MOST_POINTS = 1e9


class Likelihood:
    """What all likelihoods have in common: p(y | d), a log-concave function of d.

    Attributes
    ----------
    kind : int
        Number of the family in the compiled functions of `integrals`.
    parameters : ndarray of shape (2,)
        The parameters in these functions, those that are not used 0.
    has_ties : bool
        Whether forecasts have three columns (loss, tie and win of the first) or two (loss, win).
    """

    kind: ClassVar[int]

    @property
    def parameters(self) -> Floats:
        values = [float(getattr(self, field.name)) for field in fields(self)]  # pyright: ignore[reportArgumentType]
        return np.array(values + [0.0] * (2 - len(values)))

    @property
    def has_ties(self) -> bool:
        return True

    def describe(self) -> dict[str, Any]:
        """The class and the parameters as values of JSON, which `likelihood_from` reads."""
        values = {field.name: float(getattr(self, field.name)) for field in fields(self)}  # pyright: ignore[reportArgumentType]
        return {"kind": type(self).__name__, **values}

    def check(self, y: ArrayLike, n: int) -> Floats:
        """Return the outcomes of n matches as floats, or say which one this likelihood cannot have.

        Raises
        ------
        ValueError
            On another number of outcomes, a bool, one that is not finite, or one that is impossible.
        """
        outcomes = check_array(y, "y", (n,), "one outcome a match")
        wrong, expected = self._impossible(outcomes)
        expected += f", for {type(self).__name__}"
        given = as_array(y, "y")
        if given.dtype.kind in "bO":  # False would be 0, a tie
            refuse(np.array([isinstance(v, bool | np.bool_) for v in given.tolist()]), given, "y", expected)
        refuse(wrong, outcomes, "y", expected)
        return outcomes

    def _impossible(self, y: Floats) -> tuple[NDArray[np.bool_], str]:
        """Which outcomes are, and what is expected instead."""
        raise NotImplementedError

    def log_density(self, y: ArrayLike, d: ArrayLike) -> Floats:
        """log p(y | d), shape (n,): of the probability of y, or of the density of points.

        Parameters
        ----------
        y : array-like of shape (n,)
            Outcomes.
        d : array-like of shape (n,)
            Differences of the scores of first and second.
        """
        return self.log_partition(y, d, np.zeros(np.shape(d)))[0]

    def log_partition(
        self, y: ArrayLike, mean: ArrayLike, variance: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """log E p(y | u), u ~ N(mean, variance), and its first two derivatives in the mean: for EP.

        With delta_1 and delta_2 of appendix A of [Maystre2019]_.

        Parameters
        ----------
        y : array-like of shape (n,)
            Outcomes.
        mean, variance : array-like of shape (n,)
            Of the difference of scores, without the match itself; variances of at least 0.

        Returns
        -------
        value, first, second : ndarrays of shape (n,)
        """
        return self._rows(True, y, mean, variance)

    def expected(self, y: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """E log p(y | u), u ~ N(mean, variance), and its first two derivatives in the mean: for reverse-KL.

        As `log_partition`, but mean and variance are those of the posterior. Where the expectation of a rate
        of points is above 1e100, it counts as 1e100.
        """
        return self._rows(False, y, mean, variance)

    def _rows(
        self, ep: bool, y: ArrayLike, mean: ArrayLike, variance: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        mean, variance = _check_moments(mean, variance)
        a, b = self.parameters
        value, first, second = each_row(ep, self.kind, a, b, self.check(y, len(mean)), mean, variance)
        return value, first, second

    def probabilities(self, mean: ArrayLike, variance: ArrayLike) -> Floats:
        """Probabilities of the result, where the difference of scores is u ~ N(mean, variance).

        Returns
        -------
        probabilities : ndarray of shape (n, 3) or (n, 2)
            Of loss, tie and win of the first; without ties, of loss and win. Rows add to 1.
        """
        mean, variance = _check_moments(mean, variance)
        results = self._results(mean, variance)
        return results / results.sum(axis=1, keepdims=True)

    def _results(self, mean: Floats, variance: Floats) -> Floats:
        labels = (-1, 0, 1) if self.has_ties else (-1, 1)
        columns = [self.log_partition(np.full(len(mean), y), mean, variance)[0] for y in labels]
        return np.exp(np.column_stack(columns))


def _check_moments(mean: ArrayLike, variance: ArrayLike) -> tuple[Floats, Floats]:
    mean = check_array(mean, "mean", ("n",), "one value a match")
    variance = check_array(variance, "variance", (len(mean),), "one value a match")
    refuse(variance < 0, variance, "variance", "a variance of at least 0")
    return mean, variance


class _Results(Likelihood):
    """Outcomes are -1, 1 and, with ties, 0."""

    def _impossible(self, y: Floats) -> tuple[NDArray[np.bool_], str]:
        labels = [-1, 0, 1] if self.has_ties else [-1, 1]
        return ~np.isin(y, labels), f"one of {labels}"


@dataclass(frozen=True)
class Probit(_Results):
    """P(y | d) = Phi(y d), y = -1 or 1: the first wins where d exceeds standard normal noise.

    Notes
    -----
    EP in closed form: log Phi(y mean / sqrt(1 + variance)).

    Examples
    --------
    >>> Probit().probabilities([0.0, 1.0], [0.0, 1.0]).round(4).tolist()
    [[0.5, 0.5], [0.2398, 0.7602]]
    """

    kind: ClassVar[int] = density.PROBIT

    @property
    def has_ties(self) -> bool:
        return False


@dataclass(frozen=True)
class Logit(_Results):
    """P(y | d) = 1 / (1 + e^{-y d}), y = -1 or 1: the model of Bradley and Terry.

    Examples
    --------
    >>> Logit().probabilities([0.0, 1.0], [0.0, 1.0]).round(4).tolist()
    [[0.5, 0.5], [0.3033, 0.6967]]
    """

    kind: ClassVar[int] = density.LOGIT

    @property
    def has_ties(self) -> bool:
        return False


@dataclass(frozen=True)
class OrdinalProbit(_Results):
    """P(±1 | d) = Phi(±d - margin), the rest a tie (y = 0): the model of [Glenn1960]_.

    Parameters
    ----------
    margin : float
        Half the width of the interval of d plus noise that is a tie, in the unit of the scores; positive.

    Raises
    ------
    ValueError
        If the margin is not positive.

    Examples
    --------
    >>> OrdinalProbit(margin=0.5).probabilities([0.0, 1.0], [0.0, 1.0]).round(4).tolist()
    [[0.3085, 0.3829, 0.3085], [0.1444, 0.2174, 0.6382]]
    """

    margin: float
    kind: ClassVar[int] = density.ORDINAL_PROBIT

    def __post_init__(self) -> None:
        _check_positive(self, "margin")


@dataclass(frozen=True)
class OrdinalLogit(_Results):
    """P(±1 | d) = 1 / (1 + e^{margin ∓ d}), the rest a tie (y = 0): the model of [Rao1967]_.

    Parameters
    ----------
    margin : float
        Half the width of the interval of d plus noise that is a tie, in the unit of the scores; positive.

    Raises
    ------
    ValueError
        If the margin is not positive.

    Examples
    --------
    >>> OrdinalLogit(margin=0.5).probabilities([0.0, 1.0], [0.0, 1.0]).round(4).tolist()
    [[0.3775, 0.2449, 0.3775], [0.2215, 0.1765, 0.602]]
    """

    margin: float
    kind: ClassVar[int] = density.ORDINAL_LOGIT

    def __post_init__(self) -> None:
        _check_positive(self, "margin")


@dataclass(frozen=True)
class Poisson(Likelihood):
    """p(y | d) = exp(y d - e^d) / y!, y = 0, 1, ...: the points of the first have the rate e^d.

    A match with the points of both sides is two rows, of d and of -d. `probabilities` are those of the joint
    points of both sides, which are independent given d, with the rates e^d and e^-d.

    Examples
    --------
    >>> Poisson().probabilities([0.0, 1.0], [0.0, 0.1]).round(4).tolist()
    [[0.3457, 0.3085, 0.3457], [0.0463, 0.1141, 0.8396]]
    """

    kind: ClassVar[int] = density.POISSON

    def _impossible(self, y: Floats) -> tuple[NDArray[np.bool_], str]:
        wrong = (y < 0) | (y != np.floor(y)) | (y > _MOST_POINTS)
        return wrong, f"numbers of points (whole, from 0 to {_MOST_POINTS:g})"

    def _results(self, mean: Floats, variance: Floats) -> Floats:
        return Skellam(1.0)._results(2 * mean, 4 * variance)


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """p(y | d) = N(y; d, variance): y is a difference of points.

    Parameters
    ----------
    variance : float
        Of the difference of points around d, in points squared; positive.
    margin : float
        In forecasts a difference of points of at most this size is a tie: 0.5 where points are whole numbers;
        0, no ties. Observed differences y are taken as they are.

    Raises
    ------
    ValueError
        If the variance is not positive, or the margin is negative.

    Examples
    --------
    >>> Gaussian(variance=3.0, margin=0.5).probabilities([0.0, 1.0], [0.0, 1.0]).round(4).tolist()
    [[0.3864, 0.2272, 0.3864], [0.2266, 0.1747, 0.5987]]
    """

    variance: float = 1.0
    margin: float = 0.0
    kind: ClassVar[int] = density.GAUSSIAN

    def __post_init__(self) -> None:
        _check_positive(self, "variance")
        check_real(self.margin, "margin", "a number of at least 0", 0, LARGEST)

    @property
    def has_ties(self) -> bool:
        return self.margin > 0

    def _impossible(self, y: Floats) -> tuple[NDArray[np.bool_], str]:
        return abs(y) > LARGEST, f"differences of points, of at most {LARGEST:g}"

    def _results(self, mean: Floats, variance: Floats) -> Floats:
        deviation = math.sqrt(self.variance)
        likelihood = OrdinalProbit(self.margin / deviation) if self.has_ties else Probit()
        return likelihood._results(mean / deviation, variance / self.variance)


@dataclass(frozen=True)
class Skellam(Likelihood):
    """y = ..., -1, 0, 1, ... is the difference of two Poisson counts of points, as in [Karlis2009]_.

    With the rates r e^{d/2} and r e^{-d/2}, r the base rate, and I the modified Bessel function,
    p(y | d) = exp(y d/2 - 2 r cosh(d/2)) I_|y|(2 r).

    Parameters
    ----------
    base_rate : float
        Points that each of two equal sides makes on average; from 1e-6 to 1e6.

    Raises
    ------
    ValueError
        If the base rate is out of range.

    Examples
    --------
    >>> Skellam(base_rate=1.4).probabilities([0.0, 1.0], [0.0, 0.1]).round(4).tolist()
    [[0.3736, 0.2528, 0.3736], [0.1298, 0.1746, 0.6956]]
    """

    base_rate: float = 1.0
    kind: ClassVar[int] = density.SKELLAM

    def __post_init__(self) -> None:
        check_real(self.base_rate, "base_rate", "a number from 1e-6 to 1e6", 1e-6, 1e6)

    def _impossible(self, y: Floats) -> tuple[NDArray[np.bool_], str]:
        wrong = (y != np.floor(y)) | (abs(y) > _MOST_POINTS)
        return wrong, f"whole differences of points, of at most {_MOST_POINTS:g}"

    def _results(self, mean: Floats, variance: Floats) -> Floats:
        # p(0 | d) <= exp(-4 r sinh(d/4)^2), which is below e^-800, no number, beyond this reach. So is the
        # chance of 40 deviations; and so far out, quadrature may overflow.
        reach = 4 * math.asinh(math.sqrt(200 / self.base_rate))
        near = np.abs(mean) <= reach + 40 * np.sqrt(variance)
        log_tie = self.log_partition(np.zeros(len(mean)), np.where(near, mean, 0.0), variance)[0]
        tie = np.where(near, np.exp(log_tie), 0.0)
        losses = skellam_wins(self.base_rate, -mean, variance)
        wins = skellam_wins(self.base_rate, mean, variance)
        return np.column_stack([losses, tie, wins])


def _check_positive(likelihood: Likelihood, name: str) -> None:
    check_real(getattr(likelihood, name), name, "a positive number", 1 / LARGEST, LARGEST)


_CLASSES: dict[str, type[Likelihood]] = {
    made.__name__: made for made in (Probit, Logit, OrdinalProbit, OrdinalLogit, Poisson, Gaussian, Skellam)
}


def likelihood_from(description: dict[str, Any]) -> Likelihood:
    """The likelihood that `describe` has described.

    Parameters
    ----------
    description : dict
        "kind": the name of the class; the other keys: its parameters, all of them.

    Returns
    -------
    likelihood : Likelihood
        Equal to the one that was described.

    Raises
    ------
    ValueError
        If this is no such description, or a parameter is out of range.

    Examples
    --------
    >>> likelihood_from(OrdinalProbit(0.5).describe())
    OrdinalProbit(margin=0.5)
    """
    require(isinstance(description, dict), description, "the description of a likelihood", "a dict")
    values = dict(description)
    kind = values.pop("kind", None)
    require(isinstance(kind, str) and kind in _CLASSES, kind, "the kind", f"one of {', '.join(_CLASSES)}")
    names = [field.name for field in fields(_CLASSES[kind])]  # pyright: ignore[reportArgumentType]
    require(sorted(values) == sorted(names), sorted(values), f"the parameters of {kind}", f"{names}")
    return _CLASSES[kind](**values)

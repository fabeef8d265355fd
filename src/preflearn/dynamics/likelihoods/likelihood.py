"""Likelihoods: the distribution of an outcome y given the score difference d.

The module has the base classes. Subclasses implement the likelihoods of Table 1 of
[Maystre2019]_, the ordinal logit, the Skellam distribution, and robust likelihoods. A
likelihood computes scalar integrals only and does not depend on time or inference. Its
module has a class and its integrals, as compiled functions (appendix A):

    log_partition(a, b, y, mean, variance)           log E p(y | u), u ~ N(mean, variance),
    expected(a, b, y, mean, variance)                E log p(y | u),
    log_partition_of_power(a, b, y, mean, variance, power)    log E p(y | u)^power.

Each returns its value and its first two derivatives in the mean; a and b are the
parameters. EP uses the first integral, reverse-KL the second, and EP with weights below
1 the third, which is optional. The integrals are in closed form or by quadrature. The
error is below 1e-10 (relative, or absolute for values below 1) for means up to ±50 and
variances from 1e-12 to 1e6; the measured error is 1e-12. 1 + variance times the second
derivative of `log_partition` is positive, and the second derivatives are at most 0 if
the likelihood is log-concave.

If it is not log-concave, `expected` is a lower bound of E log p instead, and its second
derivative is replaced by twice its derivative in the variance, which is at most 0
(`robust.py`).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from preflearn.core.compilation import njit, pointer
from preflearn.core.validation import (
    LARGEST,
    Floats,
    as_array,
    check_array,
    check_flag,
    check_real,
    raise_if_any,
    require,
)
from preflearn.dynamics.parametrized import Parametrized

_INTEGRAL = "UniTuple(float64, 3)(float64, float64, float64, float64, float64)"
_POWER = "UniTuple(float64, 3)(float64, float64, float64, float64, float64, float64)"


def _no_power(a, b, y, mean, variance, power):
    return math.nan, math.nan, math.nan


class Likelihood(Parametrized, family="likelihood"):
    """Base class of likelihoods p(y | d) of an outcome y given the score difference d.

    Use its subclasses, and derive from it to define your own likelihood.

    Attributes
    ----------
    integrals : tuple
        Functions `log_partition` and `expected` of the family, to be compiled; see the
        docstring of this module. The third one, `log_partition_of_power`, is optional;
        without it, EP raises an error for weights between 0 and 1.
    log_concave : bool
        Whether log p(y | d) is a concave function of d, for each y. If it is not, an
        outcome may make a score less certain, and EP may have several fixed points.
    parameters : ndarray of shape (2,)
        Parameters a and b in these functions, 0 if not used.
    has_ties : bool
        Whether forecasts have three columns (loss, tie, and win of the first) or two
        (loss and win).
    noise : float
        Standard deviation of the noise, in units of scores: score differences much
        smaller than it have little effect on outcomes.
    """

    integrals: ClassVar[tuple[Callable[..., Any], ...]]
    log_concave: ClassVar[bool] = True
    has_ties: ClassVar[bool] = True
    noise: ClassVar[float] = 1.0

    @property
    def labels(self) -> list[int]:
        """Results of the first: loss, tie if the likelihood has ties, and win."""
        if self.has_ties:
            return [-1, 0, 1]
        return [-1, 1]

    @property
    def parameters(self) -> Floats:
        values = [float(getattr(self, field.name)) for field in fields(self)]  # pyright: ignore[reportArgumentType]
        name = f"the number of parameters of {type(self).__name__}"
        expected = "at most 2; override the property parameters"
        require(len(values) <= 2, len(values), name, expected)
        return np.array(values + [0.0] * (2 - len(values)))

    def compiled_integral(self, ep: bool) -> Any:
        """Compile `log_partition` for EP or `expected` for reverse-KL.

        The result is an argument of compiled loops.
        """
        log_partition, expected = self.integrals[:2]
        if check_flag(ep, "ep"):
            return pointer(log_partition, _INTEGRAL)
        return pointer(expected, _INTEGRAL)

    def compiled_power(self, needed: bool = True) -> Any:
        """Compile `log_partition_of_power`.

        If it is not `needed`, the result is another function with the same signature.

        Raises
        ------
        ValueError
            If it is needed and the likelihood does not have it.
        """
        if not needed:
            return pointer(_no_power, _POWER)
        if len(self.integrals) < 3:
            name = type(self).__name__
            raise ValueError(
                f"sample_weight has values between 0 and 1, which EP does not support for {name} (it has no "
                "function log_partition_of_power); use method='kl', or weights of at least 1"
            )
        return pointer(self.integrals[2], _POWER)

    def check(self, y: ArrayLike, n: int) -> Floats:
        """Return the outcomes of n matches as floats.

        Raises
        ------
        ValueError
            If the number of outcomes differs, or an outcome is a bool, not finite, or
            impossible under this likelihood.
        """
        outcomes = check_array(y, "y", (n,), "one outcome per match")
        wrong, expected = self._impossible(outcomes)
        expected += f", for {type(self).__name__}"
        if not self.has_ties and (wrong & (outcomes == 0)).any():
            expected += "; if 0 is a loss, pass 2 * y - 1; for ties use OrdinalProbit or OrdinalLogit"
        given = as_array(y, "y")
        if given.dtype.kind in "bO":  # False would be 0, a tie
            raise_if_any(
                np.array([isinstance(v, bool | np.bool_) for v in given.tolist()]),
                given,
                "y",
                expected,
            )
        raise_if_any(wrong, outcomes, "y", expected)
        return outcomes

    def _impossible(self, y: Floats) -> tuple[NDArray[np.bool_], str]:
        """Mask of impossible outcomes, and a description of the possible ones."""
        raise NotImplementedError

    def log_density(self, y: ArrayLike, d: ArrayLike) -> Floats:
        """Logarithm of p(y | d), a probability or a density of points, shape (n,).

        Parameters
        ----------
        y : array-like of shape (n,)
            Outcomes.
        d : array-like of shape (n,)
            Score differences, first minus second.
        """
        return self.log_partition(y, d, np.zeros(np.shape(d)))[0]

    def log_partition(
        self, y: ArrayLike, mean: ArrayLike, variance: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Value and derivatives of log E p(y | u), u ~ N(mean, variance), for EP.

        The derivatives are the first two in the mean, delta_1 and delta_2 of appendix
        A of [Maystre2019]_.

        Parameters
        ----------
        y : array-like of shape (n,)
            Outcomes.
        mean, variance : array-like of shape (n,)
            Moments of the score difference without the match itself; variances of at
            least 0.

        Returns
        -------
        value, first, second : ndarrays of shape (n,)
        """
        mean, variance = _check_moments(mean, variance)
        return self._each(True, self.check(y, len(mean)), mean, variance)

    def expected(
        self, y: ArrayLike, mean: ArrayLike, variance: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Value and derivatives of E log p(y | u), u ~ N(mean, variance), for reverse-KL.

        Arguments and results are as in `log_partition`, except that the posterior
        has this mean and variance. An expected rate of points above 1e100 is
        replaced by 1e100. If the likelihood is not log-concave, the value is a lower
        bound of E log p, and the last array is twice its derivative in the variance.
        """
        mean, variance = _check_moments(mean, variance)
        return self._each(False, self.check(y, len(mean)), mean, variance)

    def _each(
        self, ep: bool, y: Floats, mean: Floats, variance: Floats
    ) -> tuple[Floats, Floats, Floats]:
        value, first, second = _each_row(
            self.compiled_integral(ep), *self.parameters, y, mean, variance
        )
        expected = f"a smaller variance, at which E log p(y | u) of {type(self).__name__} does not overflow"
        raise_if_any(np.isnan(value), variance, "variance", expected)
        return value, first, second

    def probabilities(self, mean: ArrayLike, variance: ArrayLike) -> Floats:
        """Result probabilities for score differences u ~ N(mean, variance).

        Returns
        -------
        probabilities : ndarray of shape (n, 3) or (n, 2)
            Probabilities of loss, tie, and win of the first; without ties, of loss and
            win. Rows add up to 1.
        """
        return self._results(*_check_moments(mean, variance))

    def draw(self, d: Floats, rng: np.random.Generator) -> Floats:
        """Draw an outcome for each score difference, in the shape of `d`."""
        name = type(self).__name__
        raise NotImplementedError(f"{name} has no method draw; simulate needs it")

    def _results(self, mean: Floats, variance: Floats) -> Floats:
        logs = [
            self._each(True, np.full(len(mean), float(y)), mean, variance)[0]
            for y in self.labels
        ]
        return softmax(np.column_stack(logs), axis=1)


def _check_moments(mean: ArrayLike, variance: ArrayLike) -> tuple[Floats, Floats]:
    mean = check_array(mean, "mean", ("n",), "one value per match")
    variance = check_array(variance, "variance", (len(mean),), "one value per match")
    raise_if_any(
        np.abs(mean) > LARGEST,
        mean,
        "mean",
        f"a number from -{LARGEST:g} to {LARGEST:g}",
    )
    raise_if_any(variance < 0, variance, "variance", "a variance of at least 0")
    raise_if_any(
        variance > LARGEST, variance, "variance", f"a variance of at most {LARGEST:g}"
    )
    return mean, variance


class Results(Likelihood):
    """Base class of likelihoods whose outcomes are -1, 1, and, with ties, 0."""

    def draw(self, d: Floats, rng: np.random.Generator) -> Floats:
        mean = np.ravel(d)
        chances = self._results(mean, np.zeros(len(mean)))
        steps = np.cumsum(chances, axis=1)[:, :-1]
        result = (rng.random((len(mean), 1)) > steps).sum(axis=1)
        return np.array(self.labels, dtype=np.float64)[result].reshape(np.shape(d))

    def _impossible(self, y: Floats) -> tuple[NDArray[np.bool_], str]:
        return ~np.isin(y, self.labels), f"one of {self.labels}"


class PointDifferences(Likelihood):
    """Base class of likelihoods whose outcomes are real point differences.

    A subclass has the field `margin`, which only forecasts use.
    """

    margin: float

    def __post_init__(self) -> None:
        super().__post_init__()
        margin = check_real(self.margin, "margin", "a number of at least 0", 0, LARGEST)
        object.__setattr__(self, "margin", margin)

    @property
    def has_ties(self) -> bool:
        """Whether forecasts have ties: only with a positive margin."""
        return self.margin > 0

    def _impossible(self, y: Floats) -> tuple[NDArray[np.bool_], str]:
        return abs(y) > LARGEST, f"a point difference from -{LARGEST:g} to {LARGEST:g}"


@njit
def _each_row(integral, a, b, y, mean, variance):
    """An integral for each element of the arrays, shape (3, n)."""
    result = np.empty((3, len(y)))
    for n in range(len(y)):
        value, first, second = integral(a, b, y[n], mean[n], variance[n])
        result[0, n] = value
        result[1, n] = first
        result[2, n] = second
    return result

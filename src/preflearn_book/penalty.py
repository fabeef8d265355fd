"""Choice of a penalty on scores by the evidence, for the reports."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_MAX_STEPS = 20
_TOLERANCE = 0.02  # of the logarithm of the penalty
_LEAST, _MOST = 0.01, 100.0


def penalty_by_evidence(
    moments: Callable[[float], tuple[NDArray, NDArray]],
    n_free: int,
    n_prior: float = 0.0,
) -> float:
    """Return the penalty whose prior fits the scores best.

    A penalty alpha/2 times the sum of squares of the scores u is a normal prior with
    variance 1/alpha. The evidence is largest if alpha = gamma / u·u, where gamma =
    n_free - alpha * (sum of variances) is the number of scores that the data determine.
    The function iterates this equation [MacKay1992]_.

    Parameters
    ----------
    moments : callable
        Function that maps a penalty to the means and variances of the scores.
    n_free : int
        Number of scores, minus one if they are centered to mean 0.
    n_prior : float
        Number of additional scores with variance 1 that count as known. They keep
        intervals from becoming too narrow if few comparisons show no differences.

    References
    ----------
    .. [MacKay1992] D. J. C. MacKay, "Bayesian interpolation", Neural Computation 4,
       1992.
    """
    alpha = 1.0
    for _ in range(_MAX_STEPS):
        mean, variance = moments(alpha)
        n_determined = n_free - alpha * variance.sum()
        size = max(mean @ mean + n_prior, 1e-12)
        before, fitting = alpha, (n_determined + n_prior) / size
        alpha = float(np.clip(fitting, _LEAST, _MOST))
        if abs(np.log(alpha / before)) < _TOLERANCE:
            break
    return alpha

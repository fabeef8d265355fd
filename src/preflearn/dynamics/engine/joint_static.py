"""Joint posterior of scores that do not change, by a Cholesky factor of size F.

With the design X of R distinct rows, the prior standard deviations D, Y = X D, and the
sums alpha, beta of the pseudo-observations of each row, the scores are s = D w with

    w ~ N(0, I) prod exp(alpha y·w - beta (y·w)²/2) = N(V'V Y'alpha, V'V) Z~,
    M = I + Y' diag(beta) Y = L L',   V = L⁻¹,
    log Z~ = -1/2 log det M + 1/2 |g|²,   g = V Y'alpha.

A difference z = y·w has the mean V y·g and the variance |V y|². This form has no
cancellation, although the common offset of all scores may be much less certain than z.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from preflearn.core.validation import Floats
from preflearn.dynamics.engine.threads import (
    ParallelMap,
    balanced_slices,
    njit_free_sums,
    njit_nogil_inner,
)

_MIN_REST = 1e-15  # smallest value of 1 - beta v, due to rounding


class StaticScores:
    """Scores that do not change, given pseudo-observations of the distinct rows.

    Parameters
    ----------
    design : csr_array of shape (R, F)
        Distinct rows of the design.
    std : ndarray of shape (F,)
        Prior standard deviations.
    parallel_map : callable
        Function from `worker_pool`.
    """

    def __init__(self, design: Any, std: Floats, parallel_map: ParallelMap) -> None:
        self._std = std
        scaled = design.data * std[design.indices]
        self._scaled = sparse.csr_array(
            (scaled, design.indices, design.indptr), design.shape
        )
        self._parallel_map = parallel_map
        self._parts = balanced_slices(design.shape[0])
        self.max_std = float(np.abs(self._scaled.data).max())

    def smooth(self, sites: Floats, moments: Floats) -> float:
        """Write the cavity moments of each row's z; return log Z~.

        The cavity is the posterior without the row's own pseudo-observations.

        Parameters
        ----------
        sites, moments : ndarray of shape (R, 2)
            alpha and beta, and the cavity's mean and variance.
        """
        try:
            g, W, log_z = self._factor(sites)
        # the posterior is not a Gaussian
        except (LinAlgError, ValueError):
            moments[:] = math.nan
            return math.nan
        Y = self._scaled
        rows = Y.indptr, Y.indices, Y.data

        def write(part: slice) -> None:
            _write_cavities(rows, W, g, sites, moments, part.start, part.stop)

        self._parallel_map(write, self._parts)
        return log_z

    def posterior(self, sites: Floats) -> tuple[Floats, Floats]:
        """Mean (F,) and covariance (F, F) of the scores."""
        g, W, _ = self._factor(sites)
        scaled = self._std[:, None] * W
        return scaled @ g, scaled @ scaled.T

    def _factor(self, sites: Floats) -> tuple[Floats, Floats, float]:
        """g, V', and log Z~ of the module docstring."""
        Y = self._scaled
        alpha, beta = sites.T
        M = (Y.T @ (sparse.diags_array(beta) @ Y)).toarray()
        M[np.diag_indices_from(M)] += 1.0
        L = cholesky(M, lower=True, overwrite_a=True)
        V = solve_triangular(L, np.eye(len(L)), lower=True, overwrite_b=True)
        g = V @ (Y.T @ alpha)
        log_z = 0.5 * float(g @ g) - float(np.log(np.diag(L)).sum())
        return g, np.ascontiguousarray(V.T), log_z


@njit_free_sums
def _write_cavities(rows, W, g, sites, moments, begin, end):
    """Mean and variance of z of rows begin..end without the row's own alpha and beta.

    The argument W is V'.
    """
    starts, features, values = rows
    size = len(g)
    v = np.empty(size)
    for row in range(begin, end):
        v[:] = 0.0
        prior = 0.0
        for i in range(starts[row], starts[row + 1]):
            x = values[i]
            prior += x * x
            f = features[i]
            for k in range(f, size):  # V is triangular
                v[k] += x * W[f, k]
        mean = 0.0
        variance = 0.0
        for k in range(size):
            mean += v[k] * g[k]
            variance += v[k] * v[k]
        _leave_out(mean, variance, prior, sites, moments, row)


@njit_nogil_inner
def _leave_out(mean, variance, prior, sites, moments, row):
    """Cavity of a row.

    If the row's pseudo-observation is 1e15 times more precise than everything else, the
    variance is limited by the prior variance.
    """
    alpha = sites[row, 0]
    beta = sites[row, 1]
    rest = max(1.0 - beta * variance, _MIN_REST)
    cavity = variance / rest
    if beta > 0.0:
        cavity = min(cavity, prior)
    moments[row, 0] = mean + cavity * (beta * mean - alpha)
    moments[row, 1] = cavity

"""Solvers of Newton's equations with all kernel functions, or with coarse ones.

On differences of the same sign, the kernel of one feature is the covariance of a
reciprocal process: given its values at two points, the values between them are
independent of the values outside. With z the knots in ascending order, the inverse of
the matrix 1 - |z_i - z_j| is tridiagonal, except for its two corners. The function of
minimum norm with given values x_i at the knots is therefore linear between them, and
has the squared norm::

    |g|^2 = 1/2 sum_i (x_(i+1) - x_i)^2 / (z_(i+1) - z_i) + 1/2 (x_1 + x_q)^2 / (2 - (z_q - z_1)).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from preflearn.analogy.kernel import analogy_kernel, stretched
from preflearn.core.compilation import njit
from preflearn.core.gram import DenseGram
from preflearn.core.validation import Floats

_MAX_KNOTS = 500  # knots in each grid for each sign, over all features
_QUANTILE_SAMPLE = 10_000  # number of differences that are sampled for the quantiles


def low_rank_functions(U: Floats) -> AllFunctions | CoarseFunctions:
    """Return one function per pair, or coarse functions if these are fewer."""
    n, d = U.shape
    if n <= 4 * d * _n_knots(n, d):
        return AllFunctions(analogy_kernel(U))
    return CoarseFunctions(U)


class AllFunctions:
    """The full function space of a kernel matrix K, with an optional constant."""

    def __init__(self, K: Floats, biased: bool = True) -> None:
        self.gram = DenseGram(K)
        self.biased = biased

    def inverse(self, W: Floats) -> Callable[[Floats], Floats]:
        """Return the map from r to y with y + W (K y + t) = r.

        The constant t satisfies 1'y = 0, or is 0 without a constant.
        """
        root = np.sqrt(W)
        H = root[:, None] * self.gram.K * root
        H[np.diag_indices_from(H)] += 1
        factor = linalg.cho_factor(H.T, overwrite_a=True, check_finite=False)
        one = root * linalg.cho_solve(factor, root, check_finite=False)

        def solve(r: Floats) -> Floats:
            y = root * linalg.cho_solve(factor, r / root, check_finite=False)
            if self.biased:
                y = y - y.sum() / one.sum() * one
            return y

        return solve


class CoarseFunctions:
    """Sums over features of functions with few knots per sign, and a constant.

    Their values at N pairs are Phi x plus the constant, where x are the values at all
    knots. The squared norm is x'Qx. For any knots Phi Q^-1 Phi' is positive
    semi-definite; it equals K if all differences are knots.

    Parameters
    ----------
    U : ndarray of shape (N, d)
        Differences in [-1, 1].
    """

    def __init__(self, U: Floats) -> None:
        n, d = U.shape
        n_knots = _n_knots(n, d)
        self.left = np.empty((n, d), dtype=np.int32)
        self.share = np.empty((n, d))
        blocks = []
        count = 0
        for k in range(d):
            s = stretched(U[:, k], "apart")
            signs = (s < 0, s == 0, s > 0)
            knots = [_knots(s[sign], n_knots) for sign in signs if sign.any()]
            blocks += [d * _precision(z) for z in knots]
            z = np.append(np.concatenate(knots), np.inf)
            place = np.searchsorted(z, s, side="right") - 1
            self.left[:, k] = place + count
            self.share[:, k] = (s - z[place]) / (z[place + 1] - z[place])
            count += len(z) - 1
        self.Q = np.asarray(linalg.block_diag(*blocks, np.zeros((1, 1))))

    def inverse(self, W: Floats) -> Callable[[Floats], Floats]:
        """Return the map from r to y with y + W (Phi Q^-1 Phi'y + t) = r and 1'y = 0."""
        H = self.Q.copy()
        _add_gram(self.left, self.share, W, H)
        # Sums of n terms may have n rounding errors, which can exceed Q. Conjugate
        # gradients correct the effect of this change.
        H[np.diag_indices_from(H)] *= 1 + len(W) * 1e-16
        # uses the lower triangle of H
        factor = linalg.cho_factor(H.T, overwrite_a=True, check_finite=False)

        def solve(r: Floats) -> Floats:
            sums = _sums(self.left, self.share, r, len(H))
            values = linalg.cho_solve(
                factor, sums, overwrite_b=True, check_finite=False
            )
            return r - W * _values(self.left, self.share, values)

        return solve


def _n_knots(n: int, d: int) -> int:
    """Return the number of knots of one grid, for one sign of a feature."""
    return int(np.clip(n ** (1 / 3), 2, max(2, _MAX_KNOTS // d)))


def _knots(s: Floats, n_knots: int) -> Floats:
    """Return knots at equal distances and at quantiles.

    Neighboring knots are then close to each other, and have few differences between
    them.
    """
    low = s.min()
    high = s.max()
    quantiles = np.quantile(
        s[:: max(1, len(s) // _QUANTILE_SAMPLE)], np.linspace(0, 1, n_knots)
    )
    grid = np.sort(np.concatenate([np.linspace(low, high, n_knots), quantiles]))
    return grid[np.diff(grid, prepend=-np.inf) > 1e-9 + 1e-3 * (high - low) / n_knots]


def _precision(z: Floats) -> Floats:
    """Return the inverse of 1 - |z_i - z_j|, from differences of neighboring knots."""
    steps = np.diff(np.eye(len(z)), axis=0)
    ends = np.zeros(len(z))
    ends[0] += 1
    ends[-1] += 1
    inner = (steps.T / (2 * np.diff(z))) @ steps
    return inner + np.outer(ends, ends) / (4 - 2 * (z[-1] - z[0]))


# ---- Compiled loops. The weight of a last knot's right neighbor is always 0.


@njit
def _add_gram(left, share, W, H):
    """Add Phi' diag(W) Phi to the lower triangle of H, with the constant last."""
    last = len(H) - 1
    for i in range(len(W)):
        H[last, last] += W[i]
        for k in range(left.shape[1]):
            a = left[i, k]
            right = W[i] * share[i, k]
            rest = W[i] - right
            H[last, a] += rest
            H[last, a + 1] += right
            for j in range(k + 1):
                b = left[i, j]
                part = share[i, j]
                H[a, b] += rest * (1 - part)
                H[a, b + 1] += rest * part
                H[a + 1, b] += right * (1 - part)
                H[a + 1, b + 1] += right * part


@njit
def _sums(left, share, v, size):
    """Return Phi'v."""
    out = np.zeros(size)
    for i in range(len(v)):
        out[-1] += v[i]
        for k in range(left.shape[1]):
            a = left[i, k]
            right = v[i] * share[i, k]
            out[a] += v[i] - right
            out[a + 1] += right
    return out


@njit
def _values(left, share, x):
    """Return Phi x."""
    out = np.full(len(left), x[-1])
    for i in range(len(left)):
        for k in range(left.shape[1]):
            a = left[i, k]
            out[i] += x[a] + share[i, k] * (x[a + 1] - x[a])
    return out

"""Least squares with a penalty, on trusted arrays: in all kernel functions, or in few
of them.

With a root R of the form L~ = R'R, of pairs or of items, the loss of functions with the
values V is that of plain least squares in R V.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from preflearn.core.kernels import indefinite
from preflearn.core.validation import Floats, Ids
from preflearn.pursuit.quadratic_forms import QueryForm
from preflearn.solvers.newton import conjugate_gradients

_EPS = float(np.finfo(np.float64).eps)
_MIN_SINGULAR_VALUE = 1e-150  # the square of a smaller one underflows
# relative to the largest eigenvalue: smaller ones are rounding, and larger negative ones
# are not
_EIGENVALUE_ROUNDING = 1e-13
_MAX_NEGATIVE = 1e-9
# an eigenvalue of differences is off by some hundred roundings of a value
_DIFFERENCE_ROUNDINGS = 100
# alpha relative to the trace: from there on Cholesky keeps ten digits
_MIN_ALPHA_OF_CHOLESKY = 1e-8
_CG_TOLERANCE = 1e-14  # of the residual
_CG_STEPS_PER_ITEM = 2  # rounding may take more steps than there are unknowns


class QueryRidge:
    """The minima of (s - K a)'L~(s - K a) + alpha a'K a: (R K R' + alpha I) b = R s,
    and a = R'b.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Where L~ sees differences only: up to constants of rows and columns.
    form : QueryForm
    s : ndarray of shape (n,)
    """

    def __init__(self, K: Floats, form: QueryForm, s: Floats):
        self.K = K
        self.form = form
        self._M = form.root(form.root(K).T)
        self._c = form.root(s)
        self.trace = float(np.trace(self._M))

    def values(self, a: Floats) -> Floats:
        """K a, shape (n,)."""
        return self.K @ a

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues, not negative, and eigenvectors of R K R'."""
        values, V = linalg.eigh(self._M, driver="evd", check_finite=False)
        return np.maximum(values, 0.0), V

    def solutions(self, alphas: Floats) -> Floats:
        """The coefficients for each alpha, shape (k, n), by the spectrum or, of one
        alone, by Cholesky."""
        b = None
        if len(alphas) == 1:
            b = self._solve_by_cholesky(float(alphas[0]))
        if b is None:
            values, V = self._spectrum
            b = V @ ((V.T @ self._c)[:, None] / (values[:, None] + alphas))
        return np.ascontiguousarray(self.form.root(b).T)

    def _solve_by_cholesky(self, alpha: float) -> Floats | None:
        """b, shape (n, 1); None where there is an eigenvalue below -alpha, which the
        spectrum takes for 0."""
        moved = self._M.copy()
        moved.flat[:: len(moved) + 1] += alpha
        try:
            factor = linalg.cho_factor(
                moved, lower=True, overwrite_a=True, check_finite=False
            )
        except linalg.LinAlgError:
            return None
        return linalg.cho_solve(factor, self._c[:, None], check_finite=False)

    def left_out(self, alphas: Floats) -> Floats:
        """Scores of each query by the fit without it, for each alpha, shape (k, n)."""
        values, V = self._spectrum
        c = self._c
        Z = self.K @ self.form.root(V)
        along = V.T @ c
        scores = np.zeros((len(alphas), len(c)))
        shrinking = 1 / (values + alphas[:, None])
        for ids in _queries_with_others(self.form, c):
            own = V[ids]
            seen = Z[ids]
            for row, shrink in zip(scores, shrinking, strict=True):
                weighted = own * shrink
                # G_QQ^-1 b_Q is what c_Q says beyond the fit without Q.
                beyond = np.linalg.solve(weighted @ own.T, weighted @ along)
                row[ids] = seen @ (shrink * along - beyond @ weighted)
        return scores


class SparseRidge:
    """The same minima for K = Z Z' with sparse Z, by conjugate gradients, without K.

    Parameters
    ----------
    Z : sparse array of shape (n, p)
    form : QueryForm
    s : ndarray of shape (n,)
    """

    def __init__(self, Z: Any, form: QueryForm, s: Floats):
        self.Z = Z
        self.form = form
        self._s = s
        self._c = form.root(s)
        self.trace = form.trace_of_gram(Z)

    def values(self, a: Floats) -> Floats:
        """K a, shape (n,)."""
        return self.Z @ (self.Z.T @ a)

    def solutions(self, alphas: Floats) -> Floats:
        """The coefficients for one alpha, shape (1, n); by a dense K where rounding
        keeps conjugate gradients from their end."""
        (alpha,) = alphas

        def times(b: Floats) -> Floats:
            return self.form.root(self.values(self.form.root(b))) + alpha * b

        def enough(b: Floats, residual: Floats, size: float, first: float) -> bool:
            return size <= _CG_TOLERANCE**2 * first

        b = np.zeros_like(self._c)
        residual = self._c.copy()
        most = _CG_STEPS_PER_ITEM * len(b)
        if not conjugate_gradients(times, np.copy, b, residual, enough, most):
            K = (self.Z @ self.Z.T).toarray()
            return QueryRidge(K, self.form, self._s).solutions(alphas)
        return self.form.root(b)[None]


class LinearRidge:
    """The same minima for K = Z Z', in p unknowns: (Z'L~Z + alpha I) w = Z'L~s, and a =
    L~(s - Z w) / alpha.

    Take the function from w: what is left of s, divided by a small alpha, tells Z'a = w
    with few digits.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        Where L~ sees differences only: up to a constant row.
    form : QueryForm
    s : ndarray of shape (n,)
    """

    def __init__(self, Z: Floats, form: QueryForm, s: Floats):
        self.Z = Z
        self._s = s
        self.form = form
        self._D = form.root(Z)
        self._c = form.root(s)
        self._inner = self._D.T @ self._D
        self._pull = self._c @ self._D
        self.trace = float(np.trace(self._inner))

    def solutions(self, alphas: Floats) -> Floats:
        """The coefficients for each alpha, shape (k, n); the w are kept in `weights`,
        shape (k, p)."""
        w = None
        if len(alphas) == 1 and alphas[0] >= _MIN_ALPHA_OF_CHOLESKY * self.trace:
            w = self._solve_by_cholesky(float(alphas[0]))
        if w is None:
            w = ridge(self._D, self._c, alphas)
        self.weights = w
        residuals = self._s[:, None] - self.Z @ self.weights.T
        return np.ascontiguousarray(self.form.times(residuals).T) / alphas[:, None]

    def _solve_by_cholesky(self, alpha: float) -> Floats | None:
        """w, shape (1, p), with a step of refinement; None where rounding makes the
        matrix indefinite."""
        moved = self._inner.copy()
        moved.flat[:: len(moved) + 1] += alpha
        try:
            factor = linalg.cho_factor(
                moved, lower=True, overwrite_a=True, check_finite=False
            )
        except linalg.LinAlgError:
            return None
        w = linalg.cho_solve(factor, self._pull, check_finite=False)
        # the gradient from what is left of s is more precise than that of the equations
        residual = (self._c - self._D @ w) @ self._D - alpha * w
        w = w + linalg.cho_solve(factor, residual, check_finite=False)
        return w[None]

    def left_out(self, alphas: Floats) -> Floats:
        """As `QueryRidge.left_out`, by equations that the rows of the query are taken
        out of."""
        scores = np.zeros((len(alphas), len(self._s)))
        for ids in _queries_with_others(self.form, self._c):
            D = self._D[ids]
            c = self._c[ids]
            w = _by_spectrum(self._inner - D.T @ D, self._pull - c @ D, alphas)
            scores[:, ids] = w @ self.Z[ids].T
        return scores


def _queries_with_others(form: QueryForm, c: Floats) -> Iterator[Ids]:
    """The items of each query without which the scores c of some others are not 0.

    Left-out scores of other queries are 0, as of a fit without data.
    """
    order = np.argsort(form.query, kind="stable")
    for ids in np.split(order, np.cumsum(form.sizes[:-1]).astype(np.int64)):
        if np.count_nonzero(c[ids]) < np.count_nonzero(c):
            yield ids


def _by_spectrum(M: Floats, v: Floats, alphas: Floats) -> Floats:
    """(M + alpha I)^-1 v for each alpha, shape (k, p), where M has no eigenvalue below
    0 but by rounding."""
    values, V = linalg.eigh(M, check_finite=False)
    return (v @ V / (np.maximum(values, 0.0) + alphas[:, None])) @ V.T


def ridge(D: Floats, target: Floats, alphas: Floats) -> Floats:
    """The w of least norm with |target - D w|² + alpha |w|² least, for each alpha >= 0,
    shape (k, r)."""
    U, sizes, V = linalg.svd(D, full_matrices=False, check_finite=False)
    kept = sizes > max(_EPS * max(D.shape) * sizes[0], _MIN_SINGULAR_VALUE)
    U = U[:, kept]
    sizes = sizes[kept]
    V = V[kept]
    return (sizes * (target @ U) / (np.square(sizes) + alphas[:, None])) @ V


def subset_ridge(
    Z: Floats,
    features: Floats,
    back: Floats,
    form: QueryForm,
    s: Floats,
    alphas: Floats,
) -> tuple[Floats, Floats]:
    """The minima of (s - Z a)'L~(s - Z a) + alpha |f|² over f = Z a, and the penalty
    |f|² of each.

    Parameters
    ----------
    Z : ndarray of shape (n, r)
        Values of r functions.
    features, back : ndarray of shape (n, k), (r, k)
        Values of functions that are orthonormal in the kernel, and their coefficients
        in the r functions.
    alphas : ndarray of shape (levels,)
        Where it is 0, the a of least norm is found; its penalty, which does not count,
        is given as 0.

    Returns
    -------
    coefs : ndarray of shape (levels, r)
    penalties : ndarray of shape (levels,)
    """
    target = form.root(s)
    w = ridge(form.root(features), target, alphas)
    coefs = w @ back.T
    penalties = np.square(w).sum(axis=1)
    if not alphas.all():
        coefs[alphas == 0] = ridge(form.root(Z), target, alphas[alphas == 0])
        penalties[alphas == 0] = 0.0
    return coefs, penalties


def orthonormal(Z: Floats, K: Floats) -> tuple[Floats, Floats]:
    """`features` and `back` of `subset_ridge`, by the kernel K between the centres of
    the functions.

    Raises
    ------
    NotPositiveSemidefiniteError
    """
    values, vectors = linalg.eigh(K, check_finite=False)
    if values[0] < -_MAX_NEGATIVE * max(values[-1], -values[0]):
        raise indefinite(K)
    back = _inverse_root(values, vectors, 0.0)
    return Z @ back, back


def wide_orthonormal(Z: Floats, E: Floats, noise: float) -> tuple[Floats, Floats]:
    """`orthonormal` for values Z of k - 1, E those between the centres, and their
    rounding.

    A kernel of x - x' may be so wide that K_RR is 1 up to rounding. Its first
    function k_1 has norm 1, and so u is the first column of K_RR = uu' + S; what is
    orthogonal to it, k_j - u_j k_1, comes from k - 1.
    """
    e = E[0]
    S = E - e[:, None] - e - np.outer(e, e)
    u = 1 + e
    S[0] = S[:, 0] = 0
    values, vectors = linalg.eigh(S, check_finite=False)
    inner = _inverse_root(values, vectors, _DIFFERENCE_ROUNDINGS * noise)
    features = (Z - Z[:, :1] * u) @ inner
    back = inner.copy()
    back[0] -= u @ inner
    first = np.zeros((len(S), 1))
    first[0] = 1
    return np.hstack([Z[:, :1], features]), np.hstack([first, back])


def _inverse_root(values: Floats, vectors: Floats, noise: float) -> Floats:
    """P, shape (r, r), with P P' = K^+; zeros in columns of eigenvalues of rounding."""
    kept = values > max(_EIGENVALUE_ROUNDING * values[-1], noise)
    scales: Floats = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return vectors * scales

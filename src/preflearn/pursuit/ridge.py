"""Penalized least squares in all or in few kernel functions.

The input is not checked.

With L~ = R'R, the loss of functions with the values V is that of ordinary least squares
with the values R V.
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
_MIN_SINGULAR_VALUE = 1e-150  # squares of smaller singular values underflow
# eigenvalues of smaller size, relative to the largest one, are rounding errors
_EIGENVALUE_ROUNDING = 1e-13
_MAX_NEGATIVE = 1e-9
# error of an eigenvalue of differences, in rounding errors of a value
_DIFFERENCE_ROUNDINGS = 100
# for larger alpha, relative to the trace, Cholesky keeps ten digits
_MIN_ALPHA_OF_CHOLESKY = 1e-8
_CG_TOLERANCE = 1e-14  # relative size of the residual
_CG_STEPS_PER_ITEM = 2  # rounding errors may require more steps than there are unknowns


class QueryRidge:
    """Minima of (s - K a)'L~(s - K a) + alpha a'K a for several alpha.

    They satisfy (R K R' + alpha I) b = R s and a = R'b.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix; if L~ depends on differences only, up to row and column
        constants.
    form : QueryForm
        Quadratic form of the loss, with the matrix L~.
    s : ndarray of shape (n,)
        Scores of the items.
    """

    def __init__(self, K: Floats, form: QueryForm, s: Floats):
        self.K = K
        self.form = form
        self._M = form.root(form.root(K).T)
        self._c = form.root(s)
        self.trace = float(np.trace(self._M))

    def values(self, a: Floats) -> Floats:
        """Return K a, shape (n,)."""
        return self.K @ a

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        """Return the eigenvalues, clipped at 0, and the eigenvectors of R K R'."""
        values, V = linalg.eigh(self._M, driver="evd", check_finite=False)
        return np.maximum(values, 0.0), V

    def solutions(self, alphas: Floats) -> Floats:
        """Return the coefficients for each alpha, shape (k, n).

        Several alphas are solved by the spectrum, a single one by Cholesky if it is
        accurate.
        """
        b = None
        if len(alphas) == 1:
            b = self._solve_by_cholesky(float(alphas[0]))
        if b is None:
            values, V = self._spectrum
            b = V @ ((V.T @ self._c)[:, None] / (values[:, None] + alphas))
        return np.ascontiguousarray(self.form.root(b).T)

    def _solve_by_cholesky(self, alpha: float) -> Floats | None:
        """Return b, shape (n, 1), or None if the factorization fails.

        It fails for an eigenvalue below -alpha, which the spectrum would replace by 0.
        """
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
        """Return scores of each query by the fit without it, for each alpha, (k, n)."""
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
                # G_QQ^-1 b_Q is the part of c_Q that the fit without Q does not
                # explain.
                beyond = np.linalg.solve(weighted @ own.T, weighted @ along)
                row[ids] = seen @ (shrink * along - beyond @ weighted)
        return scores


class SparseRidge:
    """The minima of `QueryRidge` for K = Z Z' with sparse Z, without forming K.

    They are computed by conjugate gradients.

    Parameters
    ----------
    Z : sparse array of shape (n, p)
        Features of the items.
    form : QueryForm
        Quadratic form of the loss, with the matrix L~.
    s : ndarray of shape (n,)
        Scores of the items.
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
        """Return the coefficients for one alpha, shape (1, n).

        If conjugate gradients do not converge due to rounding errors, a dense K is
        used.
        """
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
    """The minima of `QueryRidge` for K = Z Z', in p unknowns.

    They satisfy (Z'L~Z + alpha I) w = Z'L~s and a = L~(s - Z w) / alpha.

    Use w for the ranking function, since for small alpha, Z'a has fewer correct digits
    than w.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        Features; if L~ depends on differences only, up to a constant row.
    form : QueryForm
        Quadratic form of the loss, with the matrix L~.
    s : ndarray of shape (n,)
        Scores of the items.
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
        """Return the coefficients for each alpha, shape (k, n).

        The vectors w are stored in `weights`, shape (k, p).
        """
        w = None
        if len(alphas) == 1 and alphas[0] >= _MIN_ALPHA_OF_CHOLESKY * self.trace:
            w = self._solve_by_cholesky(float(alphas[0]))
        if w is None:
            w = ridge(self._D, self._c, alphas)
        self.weights = w
        residuals = self._s[:, None] - self.Z @ self.weights.T
        return np.ascontiguousarray(self.form.times(residuals).T) / alphas[:, None]

    def _solve_by_cholesky(self, alpha: float) -> Floats | None:
        """Return w, shape (1, p), or None if rounding makes the matrix indefinite.

        One step of iterative refinement is included.
        """
        moved = self._inner.copy()
        moved.flat[:: len(moved) + 1] += alpha
        try:
            factor = linalg.cho_factor(
                moved, lower=True, overwrite_a=True, check_finite=False
            )
        except linalg.LinAlgError:
            return None
        w = linalg.cho_solve(factor, self._pull, check_finite=False)
        # a gradient computed from the residual of s is more accurate than one from the
        # equations
        residual = (self._c - self._D @ w) @ self._D - alpha * w
        w = w + linalg.cho_solve(factor, residual, check_finite=False)
        return w[None]

    def left_out(self, alphas: Floats) -> Floats:
        """Return `QueryRidge.left_out`, by removing rows of the equations."""
        scores = np.zeros((len(alphas), len(self._s)))
        for ids in _queries_with_others(self.form, self._c):
            D = self._D[ids]
            c = self._c[ids]
            w = _by_spectrum(self._inner - D.T @ D, self._pull - c @ D, alphas)
            scores[:, ids] = w @ self.Z[ids].T
        return scores


def _queries_with_others(form: QueryForm, c: Floats) -> Iterator[Ids]:
    """Yield the items of each query, if other queries have scores c other than 0.

    If all other scores are 0, the left-out scores are 0, as for a fit without data.
    """
    order = np.argsort(form.query, kind="stable")
    for ids in np.split(order, np.cumsum(form.sizes[:-1]).astype(np.int64)):
        if np.count_nonzero(c[ids]) < np.count_nonzero(c):
            yield ids


def _by_spectrum(M: Floats, v: Floats, alphas: Floats) -> Floats:
    """Return (M + alpha I)^-1 v for each alpha, shape (k, p).

    M is positive semi-definite up to rounding errors.
    """
    values, V = linalg.eigh(M, check_finite=False)
    return (v @ V / (np.maximum(values, 0.0) + alphas[:, None])) @ V.T


def ridge(D: Floats, target: Floats, alphas: Floats) -> Floats:
    """Minimize |target - D w|² + alpha |w|² for each alpha >= 0, shape (k, r).

    If there are several minima, the one of minimum norm is returned.
    """
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
    """Minimize (s - Z a)'L~(s - Z a) + alpha |f|² over f = Z a, for each alpha.

    The penalties |f|² are also returned.

    Parameters
    ----------
    Z : ndarray of shape (n, r)
        Values of r functions.
    features, back : ndarray of shape (n, k), (r, k)
        Values of functions that are orthonormal in the kernel's function space, and
        their coefficients in terms of the r functions.
    alphas : ndarray of shape (levels,)
        Regularization strengths. For 0, the a of minimum norm is returned, with penalty
        0.

    Returns
    -------
    coefs : ndarray of shape (levels, r)
        Coefficients of the r functions, one row per alpha.
    penalties : ndarray of shape (levels,)
        Value of the penalty for each alpha.
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
    """Return `features` and `back` of `subset_ridge`, from the kernel of the centers.

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
    """Return `orthonormal` for a wide kernel, given by values of k - 1.

    Z are the values of k - 1 at the items, E those between the centers, and `noise` is
    their rounding error.

    For small gamma, all entries of K_RR may equal 1 up to rounding. The first function
    k_1 has norm 1, and K_RR = uu' + S with u the first column of K_RR. The components
    orthogonal to k_1, k_j - u_j k_1, are computed from k - 1.
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
    """Return P, shape (r, r), with P P' = K^+.

    Columns are zero for eigenvalues that are rounding errors.
    """
    kept = values > max(_EIGENVALUE_ROUNDING * values[-1], noise)
    scales: Floats = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return vectors * scales

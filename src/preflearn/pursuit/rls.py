"""Regularised least squares, of scores and of their differences.

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from sklearn.utils.validation import check_is_fitted

from preflearn.checks import LARGEST, Floats, as_array, check_real, check_scale, check_shape
from preflearn.ground.expansion import KernelChoice, origin, rounding
from preflearn.ground.gram import centred
from preflearn.ground.kernels import (
    SHIFTED,
    Kernel,
    check_definite,
    kernel_matrix,
    pivoted_features,
)
from preflearn.pursuit.forms import GraphForm, QueryForm, form_of, levelled
from preflearn.pursuit.learner import Functions, Held, ScoredItemsEstimator, functions_of, held_out, scored

_EPS = float(np.finfo(np.float64).eps)
_TINY = 1e-150  # its square is hardly a float
_FLOOR = 10 * _EPS  # alpha below this share of a trace is lost beside the matrix that it is added to


class Regularised(ScoredItemsEstimator):
    """Coefficients for some values of alpha, and one of them chosen."""

    alpha_: float
    alphas_: Floats
    coefs_: Floats
    objective_: float

    def _keep(self, alphas: Floats, coefs: Floats, errors: Floats | None) -> None:
        best = 0 if errors is None else int(np.lexsort((-alphas, errors))[0])  # of equal ones the largest
        self.alphas_, self.coefs_ = alphas, coefs
        self.alpha_, self.coef_ = float(alphas[best]), coefs[best]
        vars(self).pop("errors_", None)
        if errors is not None:
            self.errors_ = errors


class _KernelRidge(Regularised):
    """What RLS (`_mix` = 1) and RankRLS (`_mix` = 0) share: min (s - Ka)'L~(s - Ka) + alpha a'Ka."""

    _mix: float

    def __init__(
        self,
        alpha: float | Sequence[float] = 1.0,
        kernel: Kernel = "rbf",
        *,
        gamma: float | Literal["scale"] = "scale",
        degree: float = 3,
        coef0: float = 1.0,
    ) -> None:
        self.alpha: float | Sequence[float] = alpha
        self.kernel: Kernel = kernel
        self.gamma: float | Literal["scale"] = gamma
        self.degree = degree
        self.coef0 = coef0

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        validation: tuple[ArrayLike, ...] | None = None,
        graph: object | None = None,
    ) -> Self:
        """Learn from scored items.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : array-like of shape (n,)
            Scores; larger is better.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.
        validation : tuple (X, y) or (X, y, qid), optional
            Items that choose one of several alphas.
        graph : matrix W of shape (n, n), sparse or dense, optional
            In place of qid: the weight of each pair in eq. 2; of a directed graph (W + W') / 2.

        Raises
        ------
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the items.
        ValueError
            On bad parameters or input, an alpha that rounding hides, several alphas with nothing to choose
            one by (neither validation nor a second query), or where RankRLS finds no two items to compare.
        """
        alphas = check_alphas(self.alpha, 1 / LARGEST, "a positive number")
        X, y = scored(X, y)
        form = form_of(len(X), qid, graph, self._mix)
        if self._mix and graph is not None:
            form = QueryForm(np.zeros(len(X), dtype=np.int64), self._mix)
        held = held_out(validation, X.shape[1])
        if len(alphas) > 1 and held is None:
            _check_queries(form, "choosing one of several alphas without validation")
        functions = self._functions_of(X)
        K, system = self._system(functions, X, form, y)
        spectrum = system.spectrum() if len(alphas) > 1 else None
        coefs = system.solutions(alphas, spectrum)
        errors = None
        if held is not None:
            predicted = functions.seen(self._mix).columns(held.X) @ coefs.T
            errors = np.array([self._error(held, column) for column in predicted.T])
        elif spectrum is not None and isinstance(form, QueryForm):
            left = Held(X, y, form.query)
            errors = np.array([self._error(left, f) for f in left_out(K, form, system.c, spectrum, alphas)])
        self._keep(alphas, coefs, errors)
        self.objective_ = system.objective(K, self.coef_, self.alpha_)
        self._functions, self._training, self.n_features_in_ = functions, (X, form, y), X.shape[1]
        self.basis_ = np.arange(len(X))
        return self

    def leave_query_out(self) -> Floats:
        """Scores of the training items, each by the fit with `alpha_` without its query, shape (n,).

        The cost is that of one eigendecomposition for all queries. The scores of RankRLS are those of the
        fits but for a constant in each query, and 0 where no other query has two items to compare.

        Raises
        ------
        ValueError
            If the fit had only one query, or a graph.
        """
        check_is_fitted(self, "n_features_in_")
        X, form, y = self._training
        query_form = _check_queries(form, "leave_query_out")
        K, system = self._system(self._functions, X, form, y)
        return left_out(K, query_form, system.c, system.spectrum(), np.array([self.alpha_]))[0]

    def _functions_of(self, X: Floats) -> Functions:
        functions = functions_between(self, X)
        if self._mix:
            return functions
        if (
            self.kernel == "linear"
        ):  # moved items have the same differences of sums with coefficients of sum 0
            return functions._replace(less_one=partial(_moved_linear, origin(X)))
        return functions.seen(self._mix)

    def _system(
        self, functions: Functions, X: Floats, form: QueryForm | GraphForm, y: Floats
    ) -> tuple[Floats, _System]:
        """The Gram matrix, up to constants of rows and columns for RankRLS, and the equations in it."""
        K = functions.columns(X) if self._mix else functions.differ(X)
        check_scale(K, "the Gram matrix")
        if self.kernel not in (*SHIFTED, "linear"):
            check_definite(K, rounding(K))
        if isinstance(form, QueryForm):
            y = y if self._mix else levelled(form, y)
            return K, _System(form.root(form.root(K).T), form.root(y), form, y, None)
        # K - 1 is positive semi-definite on differences only, so it is centred first.
        level = centred(K) if self.kernel in SHIFTED else K
        F = pivoted_features(level, rounding(K))[0]
        return K, _System(F.T @ form.times(F), F.T @ form.times(y), form, y, F)

    def _error(self, held: Held, predicted: Floats) -> float:
        return float(np.mean(np.square(held.y - predicted))) if self._mix else held.error(predicted)


class RLS(_KernelRidge):
    """Regularised least squares of scores (kernel ridge regression without an intercept).

    The rival "RLS" of Table 1 of [Tsivtsivadze2013]_: with K_ij = k(x_i, x_j) it solves::

        minimise |s - K a|² + alpha a'K a,

    which is `RankRLS` with L~ = I (mix = 1 in eq. 5). It uses no pairs: queries only say what is left out; a
    graph is checked, and changes nothing.

    Parameters
    ----------
    alpha : float or sequence of float
        Positive. Of several the one with the least mean squared error is chosen, on `validation` or, without
        it, on each query by the fit without it; of equal ones the largest. All take one eigendecomposition.
    kernel, gamma, degree, coef0
        As in `SVMRank`; "precomputed": X is the Gram matrix, shape (n, n).

    Attributes
    ----------
    alpha_ : float
        The one that was given or chosen.
    alphas_ : ndarray of shape (k,)
    errors_ : ndarray of shape (k,)
        Of each alpha; only with several, or with validation.
    basis_ : ndarray of int, shape (n,)
        0, 1, ..., n - 1: all training items.
    coef_ : ndarray of shape (n,)
    coefs_ : ndarray of shape (k, n)
        For each alpha.
    objective_ : float
        The minimum, at `alpha_`.
    n_features_in_ : int

    Examples
    --------
    >>> model = RLS(alpha=2.0, kernel="linear").fit([[1.0], [2.0]], [1.0, 3.0])
    >>> model.rank_function([[1.0]]).round(6).tolist(), model.coef_.round(6).tolist()
    ([1.0], [0.0, 0.5])
    """

    _mix = 1.0


class RankRLS(_KernelRidge):
    """Regularised least squares of the differences of scores between the items of a query.

    The rival "RankRLS" of Table 1 of [Tsivtsivadze2013]_: with the loss of eq. 2 and K_ij = k(x_i, x_j) it
    solves::

        minimise (s - K a)'L(s - K a) + alpha a'K a.

    Parameters
    ----------
    alpha : float or sequence of float
        Positive. Of several the one with the least disagreement error over pairs of different scores is
        chosen, on `validation` or, without it, on each query by the fit without it; of equal ones the
        largest. All take one eigendecomposition.
    kernel, gamma, degree, coef0
        As in `SVMRank`; "precomputed": X is the Gram matrix, shape (n, n).

    Attributes
    ----------
    alpha_, alphas_, errors_, basis_, coef_, coefs_, objective_, n_features_in_
        As in `RLS`, with errors of pairs.

    Notes
    -----
    The gradient vanishes at a = L(s - K a) / alpha. Where K is singular there are other solutions with the
    same function; this one is returned. Its coefficients add up to 0 in each query, or connected part of the
    graph, so a constant added to the kernel, or to the scores of a query, changes nothing.

    With a root of L = R'R, which within a query of q items is sqrt(q) (I - 11'/q), a = R'b and
    (R K R' + alpha I) b = R s. With a graph, K = F F' takes the place of L: (F'LF + alpha I) w = F'L s.
    Without a query Q, b changes to b - G_Q G_QQ^-1 b_Q with G = (R K R' + alpha I)^-1, and K R' times that is
    `leave_query_out`.

    A query of one item adds nothing to the loss, and its coefficient is 0. Where the scores of each query are
    equal, so are all coefficients: 0. The loss of a query of q items grows with q²: compare alpha with that.
    An alpha below 10 roundings of the trace of R K R' is refused.

    Examples
    --------
    >>> model = RankRLS(alpha=1.0, kernel="linear").fit([[1.0], [2.0], [4.0]], [5.0, 6.0, 8.0])
    >>> model.coef_.round(6).tolist(), round(model.objective_, 6)
    ([-0.266667, -0.066667, 0.333333], 0.933333)
    """

    _mix = 0.0


class _System(NamedTuple):
    """(M + alpha I) b = c, and the coefficients of items that follow from b."""

    M: Floats  # R K R', or F'LF
    c: Floats
    form: QueryForm | GraphForm
    y: Floats
    F: Floats | None

    def spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues, not negative, and eigenvectors of M."""
        values, V = linalg.eigh(self.M, driver="evd", check_finite=False)
        return np.maximum(values, 0.0), V

    def solutions(self, alphas: Floats, spectrum: tuple[Floats, Floats] | None) -> Floats:
        """The coefficients for each alpha, shape (k, n), by the spectrum or, of one alone, by Cholesky."""
        floor = _FLOOR * float(np.trace(self.M))
        if alphas.min() < floor:
            raise ValueError(
                f"alpha is {alphas.min():.3g}; expected at least {floor:.3g}, since what is less is lost in "
                "rounding beside the kernel of the compared items"
            )
        b = None if spectrum else self._by_cholesky(float(alphas[0]))
        if b is None:
            values, V = spectrum or self.spectrum()
            b = V @ ((V.T @ self.c)[:, None] / (values[:, None] + alphas))
        if self.F is None:
            return np.ascontiguousarray(self.form.root(b).T)
        return (self.form.times(self.y[:, None] - self.F @ b) / alphas).T

    def _by_cholesky(self, alpha: float) -> Floats | None:
        """b, shape (n, 1); None where M has an eigenvalue below -alpha, which the spectrum takes for 0."""
        moved = self.M.copy()
        moved.flat[:: len(moved) + 1] += alpha
        try:
            factor = linalg.cho_factor(moved, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return None
        return linalg.cho_solve(factor, self.c[:, None], check_finite=False)

    def objective(self, K: Floats, coef: Floats, alpha: float) -> float:
        """The loss of these coefficients and their penalty."""
        f = K @ coef
        return float(self.form.squares((self.y - f)[:, None])[0]) + alpha * float(coef @ f)


def ridge(D: Floats, target: Floats, alphas: Floats) -> Floats:
    """The w of least norm with |target - D w|² + alpha |w|² least, for each alpha >= 0, shape (k, r)."""
    U, sizes, V = linalg.svd(D, full_matrices=False, check_finite=False)
    kept = sizes > max(_EPS * max(D.shape) * sizes[0], _TINY)
    U, sizes, V = U[:, kept], sizes[kept], V[kept]
    return (sizes * (target @ U) / (np.square(sizes) + alphas[:, None])) @ V


def left_out(
    K: Floats, form: QueryForm, c: Floats, spectrum: tuple[Floats, Floats], alphas: Floats
) -> Floats:
    """Scores of each query by the fit without it, for each alpha, shape (k, n)."""
    values, V = spectrum
    Z, along, scores = K @ form.root(V), V.T @ c, np.zeros((len(alphas), len(c)))
    shrinking = 1 / (values + alphas[:, None])
    order = np.argsort(form.query, kind="stable")
    for ids in np.split(order, np.cumsum(form.sizes[:-1]).astype(np.int64)):
        if np.count_nonzero(c[ids]) == np.count_nonzero(c):
            continue  # the others have nothing to say: 0
        own, seen = V[ids], Z[ids]
        for row, shrink in zip(scores, shrinking, strict=True):
            weighted = own * shrink
            # G_QQ^-1 b_Q is what c_Q says beyond the fit without Q.
            beyond = np.linalg.solve(weighted @ own.T, weighted @ along)
            row[ids] = seen @ (shrink * along - beyond @ weighted)
    return scores


def functions_between(choice: KernelChoice, X: Floats) -> Functions:
    """The kernel functions centred at the items; "precomputed": X is their Gram matrix."""
    if isinstance(choice.kernel, str) and choice.kernel == "precomputed":
        check_shape(X, "X", ("n", "n"), "with kernel='precomputed' the Gram matrix of the items")
    return functions_of(choice, X)


def check_alphas(alpha: object, least: float, expected: str) -> Floats:
    """One alpha or several as an array, shape (k,)."""
    array = as_array(alpha, "alpha")  # pyright: ignore[reportArgumentType]  (checked there)
    if array.ndim == 0:
        return np.array([check_real(alpha, "alpha", f"{expected}, or several", least, LARGEST)])
    check_shape(array, "alpha", ("k",), "numbers to choose from")
    if array.size == 0:
        raise ValueError("alpha is empty; expected at least one number")
    values: Any = alpha
    return np.array([check_real(v, f"alpha[{i}]", expected, least, LARGEST) for i, v in enumerate(values)])


def _check_queries(form: QueryForm | GraphForm, purpose: str) -> QueryForm:
    """The form as one of at least two queries."""
    if not isinstance(form, QueryForm):
        raise ValueError(f"{purpose} leaves out one query at a time, and the fit had a graph; expected qid")
    if len(form.sizes) < 2:
        raise ValueError(f"{purpose} leaves out one query at a time, and there is 1; expected at least 2")
    return form


def _moved_linear(middle: Floats, X: Floats, Y: Floats) -> Floats:
    """(x - middle)·(y - middle): with coefficients of sum 0, x·y but for a constant."""
    return kernel_matrix("linear", X - middle, Y - middle)

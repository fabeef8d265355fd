"""Regularised least squares, of scores and of their differences, with all items or with
few.

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from preflearn.core.expansion import Expansion, Functions, rounding
from preflearn.core.gram import check_symmetric
from preflearn.core.kernels import SHIFTED, Kernel, check_definite
from preflearn.core.validation import (
    LARGEST,
    Floats,
    check_array,
    check_count,
    check_real,
    check_scale,
    legacy_rng,
    raise_if_any,
    require,
)
from preflearn.pursuit.base import Given, Held, OneDictionaryEstimator
from preflearn.pursuit.quadratic_forms import Form, QueryForm
from preflearn.pursuit.ridge import (
    LinearRidge,
    kernel_ridge,
    orthonormal,
    subset_ridge,
    wide_orthonormal,
)

# alpha below this share of a trace is lost beside the matrix
_FLOOR = 10 * float(np.finfo(np.float64).eps)


class _Regularised(OneDictionaryEstimator):
    """Coefficients for some values of alpha, and one of them chosen."""

    def _keep(self, alphas: Floats, coefs: Floats, errors: Floats | None) -> None:
        # of equal ones the largest
        best = 0 if errors is None else int(np.lexsort((-alphas, errors))[0])
        self.alphas_ = alphas
        self.coefs_ = coefs
        self.alpha_ = float(alphas[best])
        self.coef_ = coefs[best]
        self._set_errors("errors_", errors)


@dataclass(eq=False, repr=False)
class _AllItems(_Regularised):
    """What RLS (`mix` = 1) and RankRLS (`mix` = 0) share: min (s - Ka)'L~(s - Ka) +
    alpha a'Ka."""

    alpha: float | Sequence[float] = 1.0
    kernel: Kernel = "rbf"

    def _functions_at(self, X: Floats) -> Functions:
        functions = super()._functions_at(X)
        return functions.seen(self.mix) if self.kernel in SHIFTED else functions

    def _learn(self, functions: Functions, data: Given) -> None:
        alphas = _checked_alphas(self.alpha, 1 / LARGEST, "a positive number")
        queries = None
        if len(alphas) > 1 and data.held is None:
            queries = _check_queries(
                data.form, "choosing one of several alphas without validation"
            ).query
        system = self._system(functions, data)
        floor = _FLOOR * system.trace
        expected = f"at least {floor:.3g}, since what is less is lost in rounding beside their kernel"
        require(alphas.min() >= floor, float(alphas.min()), "alpha", expected)
        coefs = system.solutions(alphas)
        self.basis_ = np.arange(len(data.y))
        told = functions.seen(self.mix).expansion(self.basis_, coefs.T)
        weights = None
        if isinstance(system, LinearRidge):
            weights = system.weights
            told = told._replace(centres=weights)
        errors = data.errors(told, bool(self.mix))
        if queries is not None:
            errors = Held(data.X, data.y, queries).errors(
                system.left_out(alphas).T, bool(self.mix)
            )
        self._keep(alphas, coefs, errors)
        w: Any = None if weights is None else weights[alphas == self.alpha_][0]
        f = system.Z @ w if isinstance(system, LinearRidge) else system.K @ self.coef_
        self._weights = w
        size = self.coef_ @ f if w is None else w @ w
        self.objective_ = float(data.form.squares(data.y - f) + self.alpha_ * size)

    def _learned(self, mix: float) -> Expansion:
        if self._weights is None:
            return super()._learned(mix)
        return Expansion(self._functions.seen(mix).k, self._weights[None], np.ones(1))

    def leave_query_out(self) -> Floats:
        """Scores of the training items, each by the fit with `alpha_` without its
        query, shape (n,).

        The cost is that of one eigendecomposition for all queries. The scores of
        RankRLS are those of the fits but for a constant in each query, and 0 where no
        other query has two items to compare.

        Raises
        ------
        ValueError
            If the fit had only one query, or a graph.
        """
        check_is_fitted(self, "n_features_in_")
        _check_queries(self._training.form, "leave_query_out")
        return self._system(self._functions, self._training).left_out(
            np.array([self.alpha_])
        )[0]

    def _system(self, functions: Functions, data: Given) -> Any:
        """The equations: in p unknowns where K is that of p < n features, for RankRLS
        up to constants."""
        X = data.X
        form = data.form
        kernel = functions.kernel
        if kernel == "linear" and X.shape[1] < X.shape[0]:
            Z = X if self.mix else X - functions.middle
            # whose largest entries are on its diagonal
            check_scale((Z * Z).sum(axis=1), "the Gram matrix")
            return LinearRidge(Z, form, data.y)
        K = (
            functions.k(X, functions.centres)
            if self.mix
            else functions.gram_up_to_constants(X)
        )
        check_scale(K, "the Gram matrix")
        if kernel not in (*SHIFTED, "linear"):
            check_definite(K, rounding(K))
        return kernel_ridge(K, form, data.y)


class RLS(_AllItems):
    """Regularised least squares of scores (kernel ridge regression without an
    intercept).

    The rival "RLS" of Table 1 of [Tsivtsivadze2013]_: with K_ij = k(x_i, x_j) it
    solves::

        minimise |s - K a|² + alpha a'K a,

    which is `RankRLS` with L~ = I (mix = 1 in eq. 5). It uses no pairs: queries only
    say what is left out; a graph is checked, and changes nothing.

    Parameters
    ----------
    alpha : float or sequence of float
        Positive. Of several the one with the least mean squared error is chosen, on
        `validation` or, without it, on each query by the fit without it; of equal ones
        the largest. All take one decomposition.
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

    Notes
    -----
    With a linear kernel of p < n features the equations have p unknowns, and cost O(n
    p²); else n, and O(n³). There scikit-learn's Ridge (fit_intercept=False) has the
    same answer, and takes less time for many items.

    Examples
    --------
    >>> model = RLS(alpha=2.0, kernel="linear").fit([[1.0], [2.0]], [1.0, 3.0])
    >>> model.rank_function([[1.0]]).round(6).tolist(), model.coef_.round(6).tolist()
    ([1.0], [0.0, 0.5])
    """

    mix = 1.0


class RankRLS(_AllItems):
    """Regularised least squares of the differences of scores between the items of a
    query.

    The rival "RankRLS" of Table 1 of [Tsivtsivadze2013]_: with the loss of eq. 2 and
    K_ij = k(x_i, x_j) it solves::

        minimise (s - K a)'L(s - K a) + alpha a'K a.

    Parameters
    ----------
    alpha : float or sequence of float
        Positive. Of several the one with the least disagreement error over pairs of
        different scores is chosen, on `validation` or, without it, on each query by the
        fit without it; of equal ones the largest. All take one decomposition.
    kernel, gamma, degree, coef0
        As in `SVMRank`; "precomputed": X is the Gram matrix, shape (n, n).

    Attributes
    ----------
    alpha_, alphas_, errors_, basis_, coef_, coefs_, objective_, n_features_in_
        As in `RLS`, with errors of pairs.

    Notes
    -----
    The gradient vanishes at a = L(s - K a) / alpha. Where K is singular there are other
    solutions with the same function; this one is returned. Its coefficients add up to 0
    in each query, or connected part of the graph, so a constant added to the kernel, or
    to the scores of a query, changes nothing.

    With a root of L = R'R, which within a query of q items is sqrt(q) (I - 11'/q), a =
    R'b and (R K R' + alpha I) b = R s. With a graph (L K + alpha I) a = L s is solved,
    once for each alpha. Without a query Q, b changes to b - G_Q G_QQ^-1 b_Q with G = (R
    K R' + alpha I)^-1, and K R' times that is `leave_query_out`.

    A query of one item adds nothing to the loss, and its coefficient is 0. Where the
    scores of each query are equal, so are all coefficients: 0. The loss of a query of q
    items grows with q²: compare alpha with that. An alpha below 10 roundings of the
    trace of R K R' is refused.

    With a linear kernel of p < n features X the function is w·x, with (X'LX + alpha I)
    w = X'L s, and a = L(s - X w) / alpha: p unknowns, for queries and graphs, and p for
    each query that is left out.

    Examples
    --------
    >>> model = RankRLS(alpha=1.0, kernel="linear").fit([[1.0], [2.0], [4.0]], [5.0, 6.0, 8.0])
    >>> model.coef_.round(6).tolist(), round(model.objective_, 6)
    ([-0.266667, -0.066667, 0.333333], 0.933333)
    """


@dataclass(eq=False, repr=False)
class SparseRankRLS(_Regularised):
    """RankRLS with the kernel functions of a random subset of the items: the subset of
    regressors.

    Section 5 of [Tsivtsivadze2013]_: for random rows R of the items, with K_R the
    columns R of K, it solves::

        minimise (s - K_R a)'L(s - K_R a) + alpha a'K_RR a.

    Parameters
    ----------
    n_basis : int
        The number r of functions; with r >= n all items take part.
    alpha : float or sequence of float
        At least 0. The paper prints no regularizer, which is alpha = 0: least squares,
        and of several solutions the coefficients of least norm. Of several alphas
        `validation` chooses, as in `RankRLS`.
    kernel, gamma, degree, coef0
        As in `RankRLS`.
    random_state : int, numpy Generator, RandomState or None
        Draws the subset.

    Attributes
    ----------
    basis_ : ndarray of int, shape (r,)
        The subset, in increasing order.
    coef_ : ndarray of shape (r,)
    coefs_ : ndarray of shape (k, r)
    alpha_, alphas_, errors_, objective_, n_features_in_
        As in `RankRLS`.

    Notes
    -----
    For alpha > 0 the function is that of RankRLS with the kernel k~(x, x') = k_R(x)
    K_RR^+ k_R(x'). At alpha = 0 no kernel says which one of several least squares
    solutions is meant. Eigenvalues of K_RR below 1e-13 of the largest count as 0. A
    graph takes r numbers an edge.

    Examples
    --------
    >>> model = SparseRankRLS(n_basis=2, alpha=0.0, kernel="linear", random_state=0)
    >>> model.fit([[1.0], [2.0], [4.0]], [5.0, 6.0, 8.0]).rank_function([[1.0], [4.0]]).round(6).tolist()
    [1.0, 4.0]
    """

    n_basis: int = 10
    alpha: float | Sequence[float] = 1.0
    kernel: Kernel = "rbf"
    _: KW_ONLY
    random_state: Any = None

    def _learn(self, functions: Functions, data: Given) -> None:
        n_basis = check_count(self.n_basis, "n_basis", 1)
        X = data.X
        form = data.form
        alphas = _checked_alphas(self.alpha, 0.0, "a number of at least 0")
        single = len(alphas) == 1 or data.held is not None
        require(
            single,
            self.alpha,
            "alpha",
            "one number, or validation, to choose one of several",
        )
        rng = legacy_rng(self.random_state, fresh=True)
        basis = np.sort(
            rng.choice(data.form.n, min(n_basis, data.form.n), replace=False)
        )
        levelled = functions.seen(0.0)
        Z = levelled.columns(X, basis)
        check_scale(Z, "the kernel")
        if self.kernel in SHIFTED:
            subset = wide_orthonormal(Z, levelled.columns(X[basis], basis), rounding(Z))
        else:
            K = functions.columns(X[basis], basis)
            check_symmetric(K, "K", tolerance=1e-8)
            subset = orthonormal(Z, K)
        coefs, penalties = subset_ridge(Z, *subset, form, data.y, alphas)
        self._keep(
            alphas, coefs, data.errors(levelled.expansion(basis, coefs.T), False)
        )
        loss = float(form.squares(data.y - Z @ self.coef_))
        self.objective_ = loss + self.alpha_ * float(
            penalties[alphas == self.alpha_][0]
        )
        self.basis_ = basis


def _checked_alphas(alpha: object, least: float, expected: str) -> Floats:
    """One alpha or several as an array, shape (k,)."""
    if isinstance(alpha, str) or not hasattr(alpha, "__len__"):
        return np.array(
            [check_real(alpha, "alpha", f"{expected}, or several", least, LARGEST)]
        )
    several: Any = alpha
    values = check_array(several, "alpha", ("k",), "numbers to choose from")
    raise_if_any((values < least) | (values > LARGEST), values, "alpha", expected)
    return values


def _check_queries(form: Form, purpose: str) -> QueryForm:
    """The form as one of at least two queries."""
    if not isinstance(form, QueryForm):
        raise ValueError(
            f"{purpose} leaves out one query at a time, and the fit had a graph; expected qid"
        )
    if len(form.sizes) < 2:
        raise ValueError(
            f"{purpose} leaves out one query at a time, and there is 1; expected at least 2"
        )
    return form

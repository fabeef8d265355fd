"""Regularized least squares of scores and of score differences.

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
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
from preflearn.metrics import disagreement_error
from preflearn.pursuit.base import (
    ScoredItemsEstimator,
    TrainingData,
    check_training_data,
    functions_at_items,
)
from preflearn.pursuit.ridge import (
    LinearRidge,
    QueryRidge,
    SparseRidge,
    orthonormal,
    subset_ridge,
    wide_orthonormal,
)

Equations = QueryRidge | LinearRidge
# relative to the trace of a matrix; a smaller alpha is lost in rounding
_SMALLEST_ALPHA = 10 * float(np.finfo(np.float64).eps)


@dataclass(eq=False, repr=False)
class RankRLS(ScoredItemsEstimator):
    """Regularized least squares of score differences within queries.

    Choose it for scored items if differences within a query matter: its solution and
    its leave-one-query-out errors for many alphas are fast to compute. For a sparse
    model use `RankingPursuit`; if only the order of the scores matters, use `SVMRank`.

    It is the baseline "RankRLS" in Table 1 of [Tsivtsivadze2013]_. With the loss of eq.
    2 and K_ij = k(x_i, x_j) it solves::

        minimize (s - K a)'L(s - K a) + alpha a'K a.

    Parameters
    ----------
    alpha : float or sequence of float
        Regularization strength, positive. From several values, the one with the lowest
        leave-one-query-out error is chosen: the disagreement error over pairs of
        different scores. If several values are equally good, the largest is chosen. All
        values share one matrix decomposition.
    kernel, gamma, degree, coef0
        Kernel and its parameters, as in `SVMRank`; "precomputed": X is the Gram matrix,
        shape (n, n).

    Attributes
    ----------
    alpha_, errors_, basis_, coef_, objective_, n_features_in_
        Attributes as in `RLS`, but with disagreement errors of pairs.

    Notes
    -----
    The gradient is zero at a = L(s - K a) / alpha. If K is singular, other coefficients
    give the same function; this solution is returned. Its coefficients add up to 0 in
    each query, so a constant added to the kernel, or to the scores of a query, has no
    effect.

    Let L = R'R, where R is sqrt(q) (I - 11'/q) within a query of q items. Then a = R'b
    and (R K R' + alpha I) b = R s. If query Q is left out, b becomes b - G_Q G_QQ^-1
    b_Q with G = (R K R' + alpha I)^-1; `leave_query_out` returns the product of K R'
    with this vector.

    A query of one item adds nothing to the loss, and its coefficient is 0. If the
    scores within each query are equal, all coefficients are 0. The loss of a query of q
    items grows with q², so choose alpha accordingly. An alpha below 10 times the
    rounding error of the trace of R K R' raises ValueError.

    With a linear kernel and p < n features, the function is w·x with (X'LX + alpha I) w
    = X'L s and a = L(s - X w) / alpha. These equations have p unknowns. The equations
    without one query have p unknowns, too.

    Examples
    --------
    >>> model = RankRLS(alpha=1.0, kernel="linear").fit([[1.0], [2.0], [4.0]], [5.0, 6.0, 8.0])
    >>> model.coef_.round(6).tolist(), round(model.objective_, 6)
    ([-0.266667, -0.066667, 0.333333], 0.933333)
    """

    alpha: float | Sequence[float] = 1.0
    kernel: Kernel = "rbf"
    _mix: ClassVar[float] = 0.0  # mix of the loss: 0 for pairs, 1 for single items

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to scored items.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Features. Sparse features remain sparse if the kernel is linear and n < p;
            otherwise they become dense.
        y : array-like of shape (n,)
            Scores; larger is better.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.

        Raises
        ------
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the items.
        ValueError
            If parameters, shapes, or values are not valid. If squares of values would
            over- or underflow, or alpha would be lost in rounding. If there are several
            alphas and only one query. If no two items are compared, except in `RLS`.
        """
        data = check_training_data(X, y, qid, self._mix, self.kernel)
        functions = functions_at_items(self, data.X)
        if self.kernel in SHIFTED:
            functions = functions.seen(self._mix)
        alphas = _check_alphas(self.alpha)
        equations: Equations | SparseRidge
        if sparse.issparse(data.X) and len(alphas) == 1:
            rows = np.asarray((data.X * data.X).sum(axis=1)).ravel()
            check_scale(rows, "the Gram matrix")
            equations = SparseRidge(data.X, data.form, data.y)
        else:
            equations = self._equations(functions, data)
        smallest = _SMALLEST_ALPHA * equations.trace
        expected = f"at least {smallest:.3g}, so that it is not lost in rounding"
        require(alphas.min() >= smallest, float(alphas.min()), "alpha", expected)

        best = 0
        vars(self).pop("errors_", None)
        if not isinstance(equations, SparseRidge) and len(alphas) > 1:
            self.errors_ = self._left_out_errors(equations, data, alphas)
            # the largest alpha of lowest error
            best = int(np.lexsort((-alphas, self.errors_))[0])
        self.alpha_ = float(alphas[best])
        self.coef_ = equations.solutions(alphas)[best]
        if isinstance(equations, LinearRidge):
            self._weights = equations.weights[best]
            f = equations.Z @ self._weights
            penalty = self._weights @ self._weights
        else:
            self._weights = None
            f = equations.values(self.coef_)
            penalty = self.coef_ @ f
        loss = data.form.squares(data.y - f)
        self.objective_ = float(loss + self.alpha_ * penalty)
        self.basis_ = np.arange(len(data.y))
        self._functions = functions
        self._training = data
        self.n_features_in_ = data.X.shape[1]
        return self

    def leave_query_out(self) -> Floats:
        """Return scores of the training items by fits without their query, shape (n,).

        The fits use `alpha_`.

        The time is that of one eigendecomposition for all queries. In RankRLS the
        scores of a query are determined up to a constant, and they are 0 if no other
        query has two items to compare.

        Raises
        ------
        ValueError
            If there was only one query in `fit`.
        """
        check_is_fitted(self, "n_features_in_")
        equations = self._equations(self._functions, self._training)
        return _left_out(equations, np.array([self.alpha_]))[0]

    def _left_out_errors(
        self, equations: Equations, data: TrainingData, alphas: Floats
    ) -> Floats:
        """Return the leave-one-query-out error of each alpha, shape (k,).

        The disagreement error counts pairs of different scores.
        """
        predicted = _left_out(equations, alphas).T
        if self._mix:
            return np.square(data.y[:, None] - predicted).mean(axis=0)
        query = data.form.query
        return np.array(
            [disagreement_error(data.y, f, query, ties="drop") for f in predicted.T]
        )

    def _equations(self, functions: Functions, data: TrainingData) -> Equations:
        """Return the normal equations; a linear kernel with p < n has p unknowns.

        RankRLS uses the kernel up to row and column constants.
        """
        X = data.X
        kernel = functions.kernel
        if kernel == "linear" and X.shape[1] < X.shape[0]:
            Z = X
            if not self._mix:
                Z = X - functions.middle
            # the largest entries of the Gram matrix are on its diagonal
            check_scale((Z * Z).sum(axis=1), "the Gram matrix")
            return LinearRidge(Z, data.form, data.y)
        if self._mix:
            K = functions.k(X, functions.centres)
        else:
            K = functions.gram_up_to_constants(X)
        check_scale(K, "the Gram matrix")
        if kernel not in (*SHIFTED, "linear"):
            check_definite(K, rounding(K))
        return QueryRidge(K, data.form, data.y)

    def _ranking_function(self, mix: float) -> Expansion:
        if self._weights is None:
            return super()._ranking_function(mix)
        # w is more accurate than the sum of its n terms, see LinearRidge
        return Expansion(self._functions.seen(mix).k, self._weights[None], np.ones(1))


class RLS(RankRLS):
    """Regularized least squares of scores: kernel ridge regression without intercept.

    Choose it as a regression baseline for `RankRLS`, or if the scores themselves are to
    be predicted.

    It is the baseline "RLS" in Table 1 of [Tsivtsivadze2013]_. With K_ij = k(x_i, x_j)
    it solves::

        minimize |s - K a|² + alpha a'K a,

    which is `RankRLS` with L~ = I (mix = 1 in eq. 5). It uses no pairs; query ids only
    determine what is left out in the choice of alpha.

    Parameters
    ----------
    alpha : float or sequence of float
        Regularization strength, positive. From several values, the one with the lowest
        leave-one-query-out mean squared error is chosen. If several values are equally
        good, the largest is chosen. All values share one matrix decomposition.
    kernel, gamma, degree, coef0
        Kernel and its parameters, as in `SVMRank`; "precomputed": X is the Gram matrix,
        shape (n, n).

    Attributes
    ----------
    alpha_ : float
        Value of alpha, given or chosen.
    errors_ : ndarray of shape (k,)
        Leave-one-query-out errors, only with several values of alpha.
    basis_ : ndarray of int, shape (n,)
        0, 1, ..., n - 1, since all training items are used.
    coef_ : ndarray of shape (n,)
        Coefficients a.
    objective_ : float
        Minimum of the objective for `alpha_`.
    n_features_in_ : int

    Notes
    -----
    With a linear kernel and p < n features, the equations have p unknowns and take O(n
    p²) operations; otherwise they have n unknowns and take O(n³). A single alpha is
    solved by a Cholesky factorization, or by the singular values if alpha is below
    1e-8 of the trace of the equations. Sparse features with n < p items are solved by
    conjugate gradients, in time proportional to the number of entries. For dense
    features scikit-learn's Ridge (fit_intercept=False) gives the same result in less
    time.

    Examples
    --------
    >>> model = RLS(alpha=2.0, kernel="linear").fit([[1.0], [2.0]], [1.0, 3.0])
    >>> model.rank_function([[1.0]]).round(6).tolist(), model.coef_.round(6).tolist()
    ([1.0], [0.0, 0.5])
    """

    _mix: ClassVar[float] = 1.0


@dataclass(eq=False, repr=False)
class SparseRankRLS(ScoredItemsEstimator):
    """RankRLS with the kernel functions of a random subset of the items.

    Choose it instead of `RankRLS` if there are too many items for an (n, n) kernel
    matrix. The method is known as subset of regressors.

    It is described in section 5 of [Tsivtsivadze2013]_. For random rows R of the items,
    with K_R the columns R of K, it solves::

        minimize (s - K_R a)'L(s - K_R a) + alpha a'K_RR a.

    Parameters
    ----------
    n_basis : int
        Number r of functions; with r >= n all items are used.
    alpha : float
        Regularization strength, at least 0. The paper has no regularizer, that is,
        alpha = 0. If there are then several least-squares solutions, the one with the
        coefficients of minimum norm is chosen.
    kernel, gamma, degree, coef0
        Kernel and its parameters, as in `RankRLS`.
    random_state : int, numpy Generator, RandomState or None
        Source of randomness for the subset.

    Attributes
    ----------
    basis_ : ndarray of int, shape (r,)
        Row numbers of the subset, in increasing order.
    coef_ : ndarray of shape (r,)
        Coefficients a.
    objective_, n_features_in_
        Attributes as in `RankRLS`.

    Notes
    -----
    For alpha > 0 the function is that of RankRLS with the kernel k~(x, x') = k_R(x)
    K_RR^+ k_R(x'). At alpha = 0 the kernel does not select one of several least-squares
    solutions. Eigenvalues of K_RR below 1e-13 of the largest count as 0.

    Examples
    --------
    >>> model = SparseRankRLS(n_basis=2, alpha=0.0, kernel="linear", random_state=0)
    >>> model.fit([[1.0], [2.0], [4.0]], [5.0, 6.0, 8.0]).rank_function([[1.0], [4.0]]).round(6).tolist()
    [1.0, 4.0]
    """

    n_basis: int = 10
    alpha: float = 1.0
    kernel: Kernel = "rbf"
    _: KW_ONLY
    random_state: Any = None

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to scored items.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Features. Sparse features remain sparse if the kernel is linear and n < p;
            otherwise they become dense.
        y : array-like of shape (n,)
            Scores; larger is better.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.

        Raises
        ------
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the subset.
        ValueError
            If parameters, shapes, or values are not valid, squares of values would
            over- or underflow, or no two items are compared.
        """
        data = check_training_data(X, y, qid, 0.0, self.kernel)
        functions = functions_at_items(self, data.X)
        n_basis = check_count(self.n_basis, "n_basis", 1)
        alpha = check_real(self.alpha, "alpha", "a number of at least 0", 0.0, LARGEST)
        rng = legacy_rng(self.random_state, allow_none=True)
        n = data.form.n
        basis = np.sort(rng.choice(n, min(n_basis, n), replace=False))

        relative = functions.seen(0.0)
        Z = relative.columns(data.X, basis)
        check_scale(Z, "the kernel")
        if self.kernel in SHIFTED:
            E = relative.columns(data.X[basis], basis)
            features, back = wide_orthonormal(Z, E, rounding(Z))
        else:
            K = functions.columns(data.X[basis], basis)
            check_symmetric(K, "K", tolerance=1e-8)
            features, back = orthonormal(Z, K)
        coefs, penalties = subset_ridge(
            Z, features, back, data.form, data.y, np.array([alpha])
        )
        self.coef_ = coefs[0]
        loss = float(data.form.squares(data.y - Z @ self.coef_))
        self.objective_ = loss + alpha * float(penalties[0])
        self.basis_ = basis
        self._functions = functions
        self.n_features_in_ = data.X.shape[1]
        return self


def _left_out(equations: Equations, alphas: Floats) -> Floats:
    """Return scores of each query by the fit without it, for each alpha, (k, n)."""
    n_queries = len(equations.form.sizes)
    expected = "at least 2, since each is left out in turn: pass qid, or a single alpha"
    require(n_queries > 1, n_queries, "the number of queries", expected)
    return equations.left_out(alphas)


def _check_alphas(alpha: object) -> Floats:
    """Return one or several alphas as an array, shape (k,)."""
    expected = "a positive number"
    least = 1 / LARGEST
    if isinstance(alpha, str) or not hasattr(alpha, "__len__"):
        return np.array(
            [check_real(alpha, "alpha", f"{expected} or several ones", least, LARGEST)]
        )
    several: Any = alpha
    values = check_array(several, "alpha", ("k",), "numbers to choose from")
    raise_if_any((values < least) | (values > LARGEST), values, "alpha", expected)
    return values

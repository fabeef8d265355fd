"""The subset of regressors: RankRLS with few of its functions (section 5 of P3).

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from sklearn.utils import check_random_state

from preflearn.checks import Floats, Ids, check_count, check_scale
from preflearn.ground.expansion import rounding
from preflearn.ground.gram import check_symmetric
from preflearn.ground.kernels import SHIFTED, Kernel, indefinite
from preflearn.pursuit.forms import form_of, levelled
from preflearn.pursuit.learner import Functions, held_out, scored
from preflearn.pursuit.rls import Regularised, check_alphas, functions_between, ridge

_RANK = 1e-13  # eigenvalues below this share of the largest are rounding
_NEGATIVE = 1e-9  # a negative one of a larger share is none
_NOISE = 100  # times the rounding of a value is that of an eigenvalue of their differences


class SparseRankRLS(Regularised):
    """RankRLS with the kernel functions of a random subset of the items: the subset of regressors.

    Section 5 of [Tsivtsivadze2013]_: for random rows R of the items, with K_R the columns R of K, it solves::

        minimise (s - K_R a)'L(s - K_R a) + alpha a'K_RR a.

    Parameters
    ----------
    n_basis : int
        The number r of functions; with r >= n all items take part.
    alpha : float or sequence of float
        At least 0. The paper prints no regularizer, which is alpha = 0: least squares, and of several
        solutions the coefficients of least norm. Of several alphas `validation` chooses, as in `RankRLS`.
    kernel, gamma, degree, coef0
        As in `RankRLS`.
    random_state : int, RandomState or None
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
    For alpha > 0 the function is that of RankRLS with the kernel k~(x, x') = k_R(x) K_RR^+ k_R(x'). At
    alpha = 0 no kernel says which one of several least squares solutions is meant. Eigenvalues of K_RR below
    1e-13 of the largest count as 0. A graph takes r numbers an edge.

    Examples
    --------
    >>> model = SparseRankRLS(n_basis=2, alpha=0.0, kernel="linear", random_state=0)
    >>> model.fit([[1.0], [2.0], [4.0]], [5.0, 6.0, 8.0]).rank_function([[1.0], [4.0]]).round(6).tolist()
    [1.0, 4.0]
    """

    def __init__(
        self,
        n_basis: int = 10,
        alpha: float | Sequence[float] = 1.0,
        kernel: Kernel = "rbf",
        *,
        gamma: float | Literal["scale"] = "scale",
        degree: float = 3,
        coef0: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.alpha: float | Sequence[float] = alpha
        self.kernel: Kernel = kernel
        self.gamma: float | Literal["scale"] = gamma
        self.degree = degree
        self.coef0 = coef0
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        validation: tuple[ArrayLike, ...] | None = None,
        graph: object | None = None,
    ) -> SparseRankRLS:
        """Learn from scored items.

        Parameters
        ----------
        X, y, qid, validation, graph
            As in `RankRLS.fit`.

        Raises
        ------
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the subset.
        ValueError
            On bad parameters or input, several alphas without validation, or where no items are compared.
        """
        n_basis = check_count(self.n_basis, "n_basis", 1)
        alphas = check_alphas(self.alpha, 0.0, "a number of at least 0")
        X, y = scored(X, y)
        form = form_of(len(X), qid, graph, 0.0)
        held = held_out(validation, X.shape[1])
        if len(alphas) > 1 and held is None:
            raise ValueError(
                f"alpha has {len(alphas)} values and there is no validation; expected it, to choose one"
            )
        functions = functions_between(self, X)
        rng = check_random_state(self.random_state)
        basis = np.sort(rng.choice(len(X), min(n_basis, len(X)), replace=False))
        Z = functions.differ(X, basis)
        check_scale(Z, "the kernel")
        y = levelled(form, y)
        subset = _Subset.of(functions, X, Z, basis, shifted=self.kernel in SHIFTED)
        coefs, zero = np.empty((len(alphas), len(basis))), alphas == 0
        target = form.root(y)
        if zero.any():
            coefs[zero] = ridge(form.root(Z), target, alphas[zero])
        if not zero.all():
            coefs[~zero] = ridge(form.root(subset.features), target, alphas[~zero]) @ subset.back.T
        errors = None
        if held is not None:
            predicted = functions.differ(held.X, basis) @ coefs.T
            errors = np.array([held.error(column) for column in predicted.T])
        self._keep(alphas, coefs, errors)
        loss = float(form.squares((y - Z @ self.coef_)[:, None])[0])
        self.objective_ = loss + self.alpha_ * subset.penalty(self.coef_)
        self._functions, self.basis_, self.n_features_in_ = functions, basis, X.shape[1]
        return self


class _Subset(NamedTuple):
    """K_RR = uu' + S, and functions that are orthonormal in its kernel."""

    features: Floats  # (n, r) values of these functions at the items, up to constants
    back: Floats  # (r, r) their coefficients in the kernel functions
    u: Floats  # (r,)
    S: Floats  # (r, r)

    @classmethod
    def of(cls, functions: Functions, X: Floats, Z: Floats, basis: Ids, shifted: bool) -> Self:
        """Of the functions of a subset, whose values at the items are Z, up to constants.

        A kernel of x - x' may be so wide that K_RR is 1 but for rounding. Its first function k_1 has norm 1,
        and so u is the first column; what is orthogonal to it, k_j - u_j k_1, is computed from k - 1.
        """
        if not shifted:
            K = functions.columns(X[basis], basis)
            check_symmetric(K, "K", tolerance=1e-8)
            values, vectors = linalg.eigh(K, check_finite=False)
            if values[0] < -_NEGATIVE * max(values[-1], -values[0]):
                raise indefinite(K)
            back = _inverse_root(values, vectors, 0.0)
            return cls(Z @ back, back, np.zeros(len(K)), K)
        E = functions.differ(X[basis], basis)
        e = E[0].copy()
        S, u = E - e[:, None] - e - np.outer(e, e), 1 + e
        S[0] = S[:, 0] = 0
        values, vectors = linalg.eigh(S, check_finite=False)
        inner = _inverse_root(values, vectors, _NOISE * rounding(Z))
        features, back = (Z - Z[:, :1] * u) @ inner, inner.copy()
        back[0] -= u @ inner
        first = np.zeros((len(S), 1))
        first[0] = 1
        return cls(np.hstack([Z[:, :1], features]), np.hstack([first, back]), u, S)

    def penalty(self, coef: Floats) -> float:
        """a'K_RR a."""
        return float(self.u @ coef) ** 2 + float(coef @ self.S @ coef)


def _inverse_root(values: Floats, vectors: Floats, noise: float) -> Floats:
    """P, shape (r, r), with P P' = K^+; a column of zeros for each eigenvalue that is 0 but for rounding."""
    kept = values > max(_RANK * values[-1], noise)
    scales: Floats = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return vectors * scales

"""Semi-supervised ranking pursuit in several views (section 3.1 of P3).

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from preflearn.core.estimator import check_new_items
from preflearn.core.expansion import Functions, functions_of
from preflearn.core.kernels import Kernel
from preflearn.core.validation import (
    LARGEST,
    Floats,
    Ids,
    as_array,
    check_array,
    check_choice,
    check_count,
    check_flag,
    check_list,
    check_real,
    require,
)
from preflearn.pursuit.base import ScoredItemsEstimator, check_training_data
from preflearn.pursuit.co_pursuit import CoPursuit, MultiViewItems
from preflearn.pursuit.dictionary import Dictionary
from preflearn.pursuit.greedy import follow
from preflearn.pursuit.quadratic_forms import QueryForm, form_of

_MAX_SYSTEM_ENTRIES = (
    4 * 10**6
)  # limit on the entries of the systems of all choices, without a shared index
_MAX_KEPT_BYTES = 1 << 28  # limit on the memory for function values of all views


class View(NamedTuple):
    """The columns of a view, and its kernel functions."""

    columns: Ids
    functions: Functions


@dataclass(eq=False, repr=False)
class SemiSupervisedRankingPursuit(ScoredItemsEstimator):
    """Sparse ranking functions in several views that agree on unscored items.

    Choose it if the features form several groups (views) that each predict the scores,
    and there are many unscored items. Without unscored items or views, use
    `RankingPursuit`.

    Each step appends a function to the ranking function f^(v) of each of M views. The
    steps lower eq. (3) of [Tsivtsivadze2013]_::

        sum_v (s - f^(v))'L(s - f^(v)) + nu sum_vu (fbar^(v) - fbar^(u))'Lbar(fbar^(v) -
        fbar^(u)) ,

    with values f^(v) at scored items, fbar^(v) at unscored ones, and the sum over
    ordered pairs of views.

    Parameters
    ----------
    views : sequence
        M >= 1 views, each an array of columns of X (numbers or a mask) or a slice. With
        kernel="precomputed" the columns are the values of N functions.
    n_basis : int
        Largest number P of steps.
    nu : float
        Weight of the disagreement between views, at least 0.
    algorithm : {"corrected", "printed"}
        Objective of a step. "corrected": eq. (3), over the new functions and
        coefficients. "printed": as in Figure 2, see the notes.
    shared_index : bool
        Whether the functions of a step have the same index in all views (footnote 4).
        If False, all N^M combinations are compared, which is possible only for small
        problems.
    kernel, gamma, degree, coef0
        Kernel and its parameters, as in `SVMRank`; gamma = "scale" is computed from the
        columns of each view.

    Attributes
    ----------
    basis_ : ndarray of int, shape (P, M)
        Row numbers of the scored items that are the centers, per step. An item may be
        chosen repeatedly.
    coefs_ : ndarray of shape (M, P)
        Coefficients of the functions, one row per view.
    objectives_ : ndarray of shape (P + 1,)
        Value of eq. (3) after 0, 1, ... steps.
    n_features_in_ : int

    Notes
    -----
    **Prediction.** `rank_function` returns the mean of the views, and `predict_views`
    the values of each view.

    **"printed"** differs from the minimization of eq. (3) in two ways. All views fit
    the same residual, s minus the mean of the views. Only the increments of a step
    should agree, not the functions. Eq. (3) may therefore increase in a step. For the
    agreement, Figure 2 also centers functions at unscored items. These would differ
    from the fitted functions, so here both algorithms use the same centers in both
    terms.

    **Singular systems.** B + C is positive semi-definite, and singular if some
    combination of the new functions is constant within all queries. The minimum-norm
    solution is then chosen. The pursuit ends early if no choice lowers its objective by
    more than rounding errors. If the decreases of several choices agree to 1e-9, the
    first one is taken.

    **Cost.** With a shared index, the setup takes O(M² n l) operations and P steps take
    O(P M n (n + l)), for n scored items as centers and l unscored ones. Memory is
    linear in l. Without a shared index the setup is O(M² n² l), and a step compares N^M
    choices in a time that does not depend on l.

    **Large nu.** For functions of equal size, nu can be up to about 1e10. For larger
    nu, rounding errors of the disagreement outweigh the scores, and the pursuit ends
    early.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 1.5], [2.0, 4.0], [5.0, 4.5]]
    >>> model = SemiSupervisedRankingPursuit([[0], [1]], n_basis=2, nu=0.1)
    >>> model = model.fit(X, [0.0, 1.0, 4.0, 3.0], X_unscored=[[1.0, 2.0], [3.0, 3.0]])
    >>> model.basis_.tolist(), model.predict_views(X).shape
    ([[0, 0], [2, 2]], (4, 2))
    """

    views: Sequence[Any]
    n_basis: int = 10
    nu: float = 1.0
    _: KW_ONLY
    algorithm: Literal["corrected", "printed"] = "corrected"
    shared_index: bool = True
    kernel: Kernel = "rbf"

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        X_unscored: ArrayLike | None = None,
        qid_unscored: ArrayLike | None = None,
    ) -> SemiSupervisedRankingPursuit:
        """Fit the model to scored items and unscored items.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features of the scored items.
        y : array-like of shape (n,)
            Scores; larger is better.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.
        X_unscored : array-like of shape (l, p), optional
            Unscored items, on which the views should agree; None: the scored items.
        qid_unscored : array-like of shape (l,), optional
            Query ids of the unscored items. They need not occur in `qid`.

        Raises
        ------
        ValueError
            If parameters, shapes, or values are not valid. If no two scored items, or
            no two unscored items, are compared. If, without a shared index, there are
            too many choices (a million for two views).
        """
        most = check_count(self.n_basis, "n_basis", 1)
        nu = check_real(
            self.nu, "nu", "a number of at least 0", least=0.0, most=LARGEST
        )
        check_choice(self.algorithm, "algorithm", ("corrected", "printed"))
        shared = check_flag(self.shared_index, "shared_index")
        data = check_training_data(X, y, qid, mix=0.0)
        views = self._views_of(data.X)
        choices = _choices(views, shared)
        side = other = _items_in_views(data.form, data.X, views)
        if X_unscored is not None or qid_unscored is not None:
            Xbar, formbar = _unscored(X_unscored, qid_unscored, data.X.shape[1])
            other = _items_in_views(formbar, Xbar, views)
        agreeing = None
        if nu > 0 and len(views) > 1:
            agreeing = other
        printed = self.algorithm == "printed"
        search = CoPursuit(
            side, agreeing, choices, data.y, nu, shared=shared, printed=printed
        )
        follow(search.step, most)
        self.objectives_ = np.array(search.objectives)
        self._views = views
        self.n_features_in_ = data.X.shape[1]
        self.basis_ = search.basis
        self.coefs_ = search.coefs.T
        return self

    def predict_views(self, X: ArrayLike) -> Floats:
        """Return f^(v)(x) of each view, shape (n, M)."""
        return self._by_view(check_new_items(self, X), 1.0)

    def rank_function(self, X: ArrayLike) -> Floats:
        """Return the mean of the views, shape (n,); larger is better."""
        return self.predict_views(X).mean(axis=1)

    def _relative_scores(self, X: Floats) -> Floats:
        return self._by_view(X, 0.0).mean(axis=1)

    def _by_view(self, X: Floats, mix: float) -> Floats:
        parts = zip(self._views, self.basis_.T, self.coefs_, strict=True)
        scores = [
            view.functions.seen(mix).expansion(ids, coef)(X[:, view.columns])
            for view, ids, coef in parts
        ]
        return np.column_stack(scores)

    def _views_of(self, X: Floats) -> list[View]:
        """Check the views, and return their columns and functions."""
        expected = "a sequence of at least one view"
        choices = check_list(self.views, "views", expected)
        require(len(choices) > 0, self.views, "views", expected)
        columns = [
            _columns(choice, f"views[{v}]", X.shape[1])
            for v, choice in enumerate(choices)
        ]
        return [View(ids, functions_of(self, X[:, ids])) for ids in columns]


def _columns(choice: Any, name: str, n_features: int) -> Ids:
    """Return the column numbers of a view."""
    index = choice
    if not isinstance(choice, slice):
        index = as_array(choice, name)
    try:
        ids = np.arange(n_features)[index]
    except IndexError:
        ids = np.empty(0, dtype=np.int64)
    last = n_features - 1
    expected = (
        f"at least one column, given as numbers from 0 to {last}, a mask, or a slice"
    )
    require(ids.ndim == 1 and len(ids) > 0, choice, name, expected)
    return ids


def _choices(views: list[View], shared: bool) -> Ids:
    """Return the combinations of functions, one per view, shape (choices, M)."""
    numbers = [len(view.functions.centres) for view in views]
    require(
        len(set(numbers)) == 1,
        numbers,
        "the list of the numbers of functions per view",
        "equal numbers",
    )
    N = numbers[0]
    M = len(numbers)
    if shared:
        return np.repeat(np.arange(N)[:, None], M, axis=1)
    expected = (
        f"at most {_MAX_SYSTEM_ENTRIES // M**2}, since all are tried: "
        "pass shared_index=True, or fewer scored items"
    )
    require(
        N**M * M**2 <= _MAX_SYSTEM_ENTRIES,
        N**M,
        f"the number of combinations of {N} functions in {M} views",
        expected,
    )
    return np.indices((N,) * M).reshape(M, -1).T


def _items_in_views(form: QueryForm, X: Floats, views: list[View]) -> MultiViewItems:
    """Return items with the functions of each view, up to constants."""
    memory = _MAX_KEPT_BYTES / len(views)
    parts = [(view.functions.seen(0.0), X[:, view.columns]) for view in views]
    return MultiViewItems(form, [Dictionary(*part, memory) for part in parts])


def _unscored(
    X: ArrayLike | None, qid: ArrayLike | None, n_features: int
) -> tuple[Floats, QueryForm]:
    """Check unscored items, and return them with the form that compares them."""
    if X is None:
        raise ValueError(
            "qid_unscored was passed without X_unscored; pass the unscored items, too"
        )
    X = check_array(X, "X_unscored", ("l", n_features), "the features of X")
    try:
        return X, form_of(len(X), qid, 0.0)
    except ValueError as error:
        raise ValueError(f"unscored items: {error}") from None

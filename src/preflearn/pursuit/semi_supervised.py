"""Sparse ranking functions in several views that agree on unscored items: section 3.1
of the paper.

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

from preflearn.core.estimator import check_asked
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

_MAX_SYSTEM_ENTRIES = 4 * 10**6  # of all choices without a shared index
_MAX_KEPT_BYTES = 1 << 28  # of the values of the functions of all views


class View(NamedTuple):
    """The columns of a view, and its functions of them."""

    columns: Ids
    functions: Functions


@dataclass(eq=False, repr=False)
class SemiSupervisedRankingPursuit(ScoredItemsEstimator):
    """A sparse ranking function a view, good on scored items and alike on unscored
    ones.

    A step appends a function to the f^(v) of each of M views. The steps lower (3) of
    [Tsivtsivadze2013]_::

        sum_v (s - f^(v))'L(s - f^(v)) + nu sum_vu (fbar^(v) - fbar^(u))'Lbar(fbar^(v) -
        fbar^(u)) ,

    with values f^(v) at scored items, fbar^(v) at unscored ones, and the sum over
    ordered pairs of views.

    Parameters
    ----------
    views : sequence
        M >= 1 views. Each is an array of columns of X (numbers, or a mask) or a slice.
        With kernel="precomputed" the columns are the values of N functions.
    n_basis : int
        The largest number P of steps.
    nu : float
        Weight of agreement, at least 0.
    algorithm : {"corrected", "printed"}
        "corrected": each step minimises (3) over the new functions and coefficients.
        "printed": Figure 2; see the notes.
    shared_index : bool
        Whether the functions of a step have one index in all views (footnote 4), or
        each its own: then all N^M choices are compared, for small problems.
    kernel, gamma, degree, coef0
        As in `SVMRank`; gamma = "scale" is that of a view's own columns.

    Attributes
    ----------
    basis_ : ndarray of int, shape (P, M)
        Scored items that are centres, step by step; one may come back.
    coefs_ : ndarray of shape (M, P)
    objectives_ : ndarray of shape (P + 1,)
        The value of (3) after 0, 1, ... steps.
    n_features_in_ : int

    Notes
    -----
    **The answer** is the mean of the views, `rank_function`; `predict_views` has each
    of them.

    **"printed"** differs from the minimisation of (3) in two ways: all views fit one
    residual, s minus the mean of the views, and only the increments of a step are to
    agree, not the functions. So (3) may rise from step to step. Figure 2 also centres
    functions at unscored items for the agreement; they would be other functions than
    those that are fitted, so here both algorithms use the one centre.

    **Singular systems.** B + C is positive semi-definite, and singular if some
    combination of the new functions is constant within all queries; the solution of
    least norm is taken. The pursuit ends early where no choice lowers its objective by
    more than rounding. Choices whose decreases agree to 1e-9 count as equal: the first
    is taken.

    **Cost.** With a shared index O(M² n l) to set up and O(P M n (n + l)) for P steps,
    for n scored items as centres and l unscored ones. Memory is linear in l. Without a
    shared index the setup is O(M² n² l); a step compares N^M choices at no further cost
    in l.

    **Large nu.** For functions of equal size up to about 1e10; beyond, rounding in what
    the views agree on outweighs the scores, and the pursuit ends early.

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
        """Learn from scored items, and from unscored ones where the views are to agree.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : array-like of shape (n,)
            Scores; larger is better.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.
        X_unscored : array-like of shape (l, p), optional
            None: the views are to agree on the scored items.
        qid_unscored : array-like of shape (l,), optional
            Query ids of the unscored items, which need not occur among those of the
            scored ones.

        Raises
        ------
        ValueError
            On bad parameters, shapes or values, where no two scored or unscored items
            are compared, and without a shared index where there are too many choices
            (of two views a million).
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
        """f^(v)(x) of each view, shape (n, M)."""
        return self._by_view(check_asked(self, X), 1.0)

    def rank_function(self, X: ArrayLike) -> Floats:
        """The mean of the views, shape (n,); larger is better."""
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
        """The views, checked."""
        expected = "a sequence of at least one view"
        choices = check_list(self.views, "views", expected)
        require(len(choices) > 0, self.views, "views", expected)
        columns = [
            _columns(choice, f"views[{v}]", X.shape[1])
            for v, choice in enumerate(choices)
        ]
        return [View(ids, functions_of(self, X[:, ids])) for ids in columns]


def _columns(choice: Any, name: str, n_features: int) -> Ids:
    """The numbers of a view's columns."""
    index = choice
    if not isinstance(choice, slice):
        index = as_array(choice, name)
    try:
        ids = np.arange(n_features)[index]
    except IndexError:
        ids = np.empty(0, dtype=np.int64)
    last = n_features - 1
    expected = (
        f"at least one column, as numbers from 0 to {last}, as a mask or as a slice"
    )
    require(ids.ndim == 1 and len(ids) > 0, choice, name, expected)
    return ids


def _choices(views: list[View], shared: bool) -> Ids:
    """The functions of each choice, one a view, shape (choices, M)."""
    numbers = [len(view.functions.centres) for view in views]
    require(
        len(set(numbers)) == 1,
        numbers,
        "the list of the views' numbers of functions",
        "equal ones",
    )
    N = numbers[0]
    M = len(numbers)
    if shared:
        return np.repeat(np.arange(N)[:, None], M, axis=1)
    expected = (
        f"at most {_MAX_SYSTEM_ENTRIES // M**2}, for all are tried: "
        "use shared_index=True, or fewer scored items"
    )
    require(
        N**M * M**2 <= _MAX_SYSTEM_ENTRIES,
        N**M,
        f"the number of choices of {M} views of {N} functions",
        expected,
    )
    return np.indices((N,) * M).reshape(M, -1).T


def _items_in_views(form: QueryForm, X: Floats, views: list[View]) -> MultiViewItems:
    """Items, and the functions of each view at them up to constants."""
    memory = _MAX_KEPT_BYTES / len(views)
    parts = [(view.functions.seen(0.0), X[:, view.columns]) for view in views]
    return MultiViewItems(form, [Dictionary(*part, memory) for part in parts])


def _unscored(
    X: ArrayLike | None, qid: ArrayLike | None, n_features: int
) -> tuple[Floats, QueryForm]:
    """Unscored items and what compares them, checked."""
    if X is None:
        raise ValueError(
            "qid_unscored is given, but X_unscored is not; expected the items"
        )
    X = check_array(X, "X_unscored", ("l", n_features), "the features of X")
    try:
        return X, form_of(len(X), qid, 0.0)
    except ValueError as error:
        raise ValueError(f"of the unscored items: {error}") from None

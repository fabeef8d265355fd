"""Sparse ranking functions in several views that agree on unscored items: section 3.1 of the paper.

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from preflearn.checks import (
    LARGEST,
    Floats,
    Ids,
    as_array,
    check_array,
    check_choice,
    check_count,
    check_flag,
    check_real,
    refuse,
    require,
)
from preflearn.ground.kernels import Kernel
from preflearn.pursuit.co_pursuit import CoPursuit, Side, Systems
from preflearn.pursuit.forms import GraphForm, QueryForm, form_of
from preflearn.pursuit.greedy import Step, followed
from preflearn.pursuit.learner import Functions, Held, ScoredItemsEstimator, functions_of, held_out, scored

_MOST = 10**6  # choices that an exhaustive search may compare


class SemiSupervisedRankingPursuit(ScoredItemsEstimator):
    """A sparse ranking function a view, good on scored items and alike on unscored ones.

    A step appends a function to the f^(v) of each of M views. The steps lower (3) of [Tsivtsivadze2013]_::

        sum_v (s - f^(v))'L(s - f^(v)) + nu sum_vu (fbar^(v) - fbar^(u))'Lbar(fbar^(v) - fbar^(u)) ,

    with values f^(v) at scored items, fbar^(v) at unscored ones, and the sum over ordered pairs of views.

    Parameters
    ----------
    views : sequence
        M >= 1 views. Each is an array of columns of X (numbers, or a mask) or a slice, with `kernel`; a name
        or callable of a kernel on all columns; or a tuple (columns, kernel). With "precomputed" the
        columns are the values of N functions.
    n_basis : int
        The largest number P of steps.
    nu : float
        Weight of agreement, at least 0.
    algorithm : {"corrected", "printed"}
        "corrected": each step minimises (3) over the new functions and coefficients. "printed": Figure 2;
        see the notes.
    shared_index : bool
        Whether the functions of a step have one index in all views (footnote 4), or each its own: then all
        N^M choices are compared, for small problems.
    kernel, gamma, degree, coef0
        As in `SVMRank`; gamma = "scale" is that of a view's own columns.
    dictionary : array-like of shape (N, p), optional
        Centres of the functions, of which a view takes its columns; None: the scored items.
    patience : int, optional
        With validation: stop when the error has not fallen for so many steps. None: never before n_basis.
    block_size : int
        Functions that are computed at a time, at most.

    Attributes
    ----------
    basis_ : ndarray of int, shape (P, M)
        Rows of the dictionary, step by step; one may come back.
    coefs_ : ndarray of shape (M, P)
    objectives_ : ndarray of shape (steps + 1,)
        (3) after 0, 1, ... steps, also those that validation did not keep.
    validation_errors_ : ndarray of shape (steps + 1,)
        With validation: disagreement error of the mean of the views, without ties.
    n_features_in_ : int

    Notes
    -----
    **The answer** is the mean of the views, `rank_function`; `predict_views` has each of them.

    **"printed"** differs from the minimisation of (3) in two ways: all views fit one residue, s less the mean
    of the views, and only the increments of a step are to agree, not the functions. So (3) may rise from
    step to step. Figure 2 also centres functions at unscored items for the agreement; they would be other
    functions than those that are fitted, so here both algorithms use the one centre.

    **Singular systems.** B + C is positive semi-definite, and singular if some combination of the new
    functions is constant within all queries; the solution of least norm is taken. The pursuit ends early
    where no choice lowers its objective by more than rounding. Choices whose decreases agree to 1e-9 count as
    equal: the first is taken.

    **Cost.** With a shared index O(M² n l) to set up and O(P M n (n + l)) for P steps, for n scored items as
    centres, l unscored ones and query ids; with a graph its edges count in place of l. Memory is linear in l.
    Without a shared index the setup is O(M² n² l); a step compares N^M choices at no further cost in l.

    **Large nu.** For functions of equal size up to about 1e10; beyond, rounding in what the views agree on
    outweighs the scores, and the pursuit ends early.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 1.5], [2.0, 4.0], [5.0, 4.5]]
    >>> model = SemiSupervisedRankingPursuit([[0], [1]], n_basis=2, nu=0.1)
    >>> model = model.fit(X, [0.0, 1.0, 4.0, 3.0], X_unscored=[[1.0, 2.0], [3.0, 3.0]])
    >>> model.basis_.tolist(), model.predict_views(X).shape
    ([[0, 0], [2, 2]], (4, 2))
    """

    def __init__(
        self,
        views: Sequence[Any],
        n_basis: int = 10,
        nu: float = 1.0,
        *,
        algorithm: Literal["corrected", "printed"] = "corrected",
        shared_index: bool = True,
        kernel: Kernel = "rbf",
        gamma: float | Literal["scale"] = "scale",
        degree: float = 3,
        coef0: float = 1.0,
        dictionary: ArrayLike | None = None,
        patience: int | None = None,
        block_size: int = 1024,
    ) -> None:
        self.views = views
        self.n_basis = n_basis
        self.nu = nu
        self.algorithm: Literal["corrected", "printed"] = algorithm
        self.shared_index = shared_index
        self.kernel: Kernel = kernel
        self.gamma: float | Literal["scale"] = gamma
        self.degree = degree
        self.coef0 = coef0
        self.dictionary = dictionary
        self.patience = patience
        self.block_size = block_size

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        X_unscored: ArrayLike | None = None,
        qid_unscored: ArrayLike | None = None,
        *,
        validation: tuple[ArrayLike, ...] | None = None,
        graph: object | None = None,
        graph_unscored: object | None = None,
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
            Query ids of the unscored items, which need not occur among those of the scored ones.
        validation : tuple (X, y) or (X, y, qid), optional
            Items that choose the number of steps: the first one of least error of the mean of the views.
        graph, graph_unscored : matrix of shape (n, n) and (l, l), sparse or dense, optional
            In place of query ids: the weight of each pair; of a directed graph (W + W') / 2.

        Raises
        ------
        ValueError
            On bad parameters, shapes or values, where no two scored or unscored items are compared, and
            without a shared index where there are more than a million choices.
        """
        most = check_count(self.n_basis, "n_basis", 1)
        nu = check_real(self.nu, "nu", "a number of at least 0", least=0.0, most=LARGEST)
        check_choice(self.algorithm, "algorithm", ("corrected", "printed"))
        check_flag(self.shared_index, "shared_index")
        block_size = check_count(self.block_size, "block_size", 1)
        patience = None if self.patience is None else check_count(self.patience, "patience", 1)
        X, y = scored(X, y)
        form = form_of(len(X), qid, graph, 0.0)
        held = held_out(validation, X.shape[1])
        views = self._views_of(X)
        functions = self._functions_of(views, X)
        n_functions = _number(functions, self.shared_index)
        side = Side.of(form, functions, [X[:, view.columns] for view in views], block_size)
        other = side
        if X_unscored is not None or qid_unscored is not None or graph_unscored is not None:
            Xbar, formbar = _unscored(X_unscored, qid_unscored, graph_unscored, X.shape[1])
            parts = [Xbar[:, view.columns] for view in views]
            other = Side.of(formbar, functions, parts, block_size)
        agreeing = other if nu > 0 and len(views) > 1 else None
        systems = Systems(side, agreeing, n_functions, nu, self.shared_index, block_size)
        search = CoPursuit(side, agreeing, systems, y, nu, self.algorithm == "printed")
        error = None if held is None else _held_error(held, views, functions)
        models, errors = followed(_steps(search), most, error, patience)
        best = len(models) - 1
        if held is not None:
            self.validation_errors_, best = errors, int(np.argmin(errors))
        elif hasattr(self, "validation_errors_"):
            del self.validation_errors_
        self.objectives_ = np.array([model.loss for model in models])
        self._views, self._view_functions, self.n_features_in_ = views, functions, X.shape[1]
        self.basis_, self.coefs_ = models[best].basis, models[best].coef.T
        return self

    def predict_views(self, X: ArrayLike) -> Floats:
        """f^(v)(x) of each view, shape (n, M)."""
        return self._by_view(self._features(X), differ=False)

    def rank_function(self, X: ArrayLike) -> Floats:
        """The mean of the views, shape (n,); larger is better."""
        return self.predict_views(X).mean(axis=1)

    def _levelled(self, X: Floats) -> Floats:
        return self._by_view(X, differ=True).mean(axis=1)

    def _by_view(self, X: Floats, differ: bool) -> Floats:
        found = np.zeros((len(X), len(self._views)))
        for v, (view, functions) in enumerate(zip(self._views, self._view_functions, strict=True)):
            columns = functions.differ if differ else functions.columns
            if len(self.basis_):
                found[:, v] = columns(X[:, view.columns], self.basis_[:, v]) @ self.coefs_[v]
        return found

    def _views_of(self, X: Floats) -> list[View]:
        """The views, checked."""
        listed = not isinstance(self.views, (str, dict)) and hasattr(self.views, "__len__")
        require(listed and len(self.views) > 0, self.views, "views", "a sequence of at least one view")
        return [self._view(choice, f"views[{v}]", X.shape[1]) for v, choice in enumerate(self.views)]

    def _view(self, choice: Any, name: str, n_features: int) -> View:
        columns, kernel = choice, self.kernel
        if _names_kernel(choice):
            columns, kernel = slice(None), choice
        elif isinstance(choice, tuple) and len(choice) == 2 and _names_kernel(choice[1]):
            columns, kernel = choice
        ids = _columns(columns, name, n_features)
        return View(ids, kernel, self.gamma, self.degree, self.coef0)

    def _functions_of(self, views: list[View], X: Floats) -> list[Functions]:
        """The functions of each view, centred at the rows of the dictionary."""
        if self.dictionary is None:
            return [functions_of(view, X[:, view.columns]) for view in views]
        centres = check_array(self.dictionary, "dictionary", ("N", X.shape[1]), "the features of X")
        return [functions_of(view, X[:, view.columns], centres[:, view.columns]) for view in views]


@dataclass
class View:
    """The columns of a view and its kernel."""

    columns: Ids
    kernel: Kernel
    gamma: float | Literal["scale"]
    degree: float
    coef0: float


def _names_kernel(value: Any) -> bool:
    return isinstance(value, str) or callable(value)


def _columns(choice: Any, name: str, n_features: int) -> Ids:
    """The numbers of a view's columns."""
    if isinstance(choice, slice):
        ids = np.arange(n_features)[choice]
    else:
        ids = as_array(choice, name)
        expected = "column numbers, a slice, a kernel, or a tuple (columns, kernel)"
        mask = ids.dtype.kind == "b" and ids.shape == (n_features,)
        require(mask or (ids.ndim == 1 and ids.dtype.kind in "iu"), choice, name, expected)
        ids = np.flatnonzero(ids) if mask else ids.astype(np.int64)
    require(len(ids) > 0, choice, name, "at least one column")
    refuse((ids < 0) | (ids >= n_features), ids, name, f"a column number, from 0 to {n_features - 1}")
    return ids


def _number(functions: list[Functions], shared: bool) -> int:
    """How many functions each view has."""
    numbers = [view.size for view in functions]
    if len(set(numbers)) > 1:
        raise ValueError(f"the views have {numbers} functions; expected equal numbers")
    N, M = numbers[0], len(numbers)
    if not shared and N**M > _MOST:
        raise ValueError(
            f"{M} views of {N} functions have {N}^{M} choices; expected at most {_MOST} for an exhaustive "
            "search: use shared_index=True, or a smaller dictionary"
        )
    return N


def _unscored(
    X: ArrayLike | None, qid: ArrayLike | None, graph: object | None, n_features: int
) -> tuple[Floats, QueryForm | GraphForm]:
    """Unscored items and what compares them, checked."""
    if X is None:
        raise ValueError("qid_unscored or graph_unscored is given, but X_unscored is not; expected the items")
    X = check_array(X, "X_unscored", ("l", n_features), "the features of X")
    try:
        return X, form_of(len(X), qid, graph, 0.0)
    except ValueError as error:
        raise ValueError(f"of the unscored items: {error}") from None


def _steps(search: CoPursuit) -> Iterator[Step]:
    yield search.model()
    while search.step():
        yield search.model()


def _held_error(held: Held, views: list[View], functions: list[Functions]) -> Callable[[Step], float]:
    """The error of models on held-out items; each model has a function a view more than the one before."""
    predicted = np.zeros(len(held.X))

    def error(model: Step) -> float:
        for newest, coef in zip(model.basis[-1:], model.coef[-1:], strict=True):
            for v, (view, dictionary) in enumerate(zip(views, functions, strict=True)):
                predicted[:] += coef[v] * dictionary.differ(held.X[:, view.columns], newest[v : v + 1])[:, 0]
        return held.error(predicted)

    return error

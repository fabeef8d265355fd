"""The ranking SVM from scored items: the hinge in place of the squared loss of pairs.

It is the rival of [Tsivtsivadze2013]_ that shares neither loss nor solver with the other learners of this
folder. The folder `path` follows its solutions for every C at once, so it is solved there: `path` is the one
method that others may stand on, and what is here turns scores into pairs and weights of pairs into
coefficients of items.

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
.. [Zapien2009] K. Zapien, G. Gasso, T. Gärtner, S. Canu, "Model selection for ranking SVM using
   regularization path", Machine Learning, InTech, 2009.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from preflearn.checks import Floats, Ids, check_left, check_number, refuse
from preflearn.ground.expansion import functions_of
from preflearn.ground.kernels import Kernel, kernel_parameters
from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path
from preflearn.path.ranking_path import RankingPath
from preflearn.pursuit.forms import graph_weights
from preflearn.pursuit.learner import Held, ScoredItemsEstimator, held_out, scored

CANCELLED = 1e-12  # of the largest coefficient: the weights of an item's pairs have cancelled


class RankSVM(ScoredItemsEstimator):
    """The ranking SVM on all pairs of a query with different scores; every C is tried where a path is asked.

    With one pair (i, j) for each two items of a query with s_i > s_j, it solves eq. 6 of [Zapien2009]_::

        minimise sum over pairs of max(0, 1 - (f(x_i) - f(x_j))) + lambda/2 |f|^2,    lambda = 1/C.

    Its dual weights alpha in [0, 1] of the pairs give the items the coefficients B'alpha / lambda.

    Parameters
    ----------
    C : float or "path"
        "path": all solutions, and of them the one with the least pair error on `validation`.
    kernel, gamma, degree, coef0
        As in `RankingPursuit`; "precomputed": X is the (n, n) Gram matrix of the items.

    Attributes
    ----------
    lam_ : float
        1 / C, given or chosen.
    pairs_ : ndarray of int, shape (m, 2)
        Better and worse item of each pair.
    alpha_ : ndarray of shape (m,)
        Weights of the pairs.
    support_ : ndarray of int
        Ids of the pairs with a weight.
    basis_ : ndarray of int, shape (P,)
        Items with a coefficient: those whose weights, as the better and as the worse one, do not cancel.
    coef_ : ndarray of shape (P,)
        f(x) = sum_j coef_[j] k(x, x_basis_[j]).
    path_ : RegularizationPath
        All solutions from the first breakpoint down to `lam_`, or further where the path chose it.
    n_features_in_ : int

    Examples
    --------
    >>> machine = RankSVM(C=1.0, kernel="linear").fit([[0.0], [1.0], [3.0]], [1, 2, 3])
    >>> machine.pairs_.tolist(), machine.alpha_.tolist(), machine.coef_.tolist()
    ([[1, 0], [2, 0], [2, 1]], [1.0, 0.0, 0.0], [-1.0, 1.0])
    """

    lam_: float
    pairs_: Ids
    alpha_: Floats
    support_: Ids
    path_: RankingPath

    def __init__(
        self,
        C: float | Literal["path"] = 1.0,
        kernel: Kernel = "rbf",
        *,
        gamma: float | Literal["scale"] = "scale",
        degree: float = 3,
        coef0: float = 1.0,
    ) -> None:
        self.C: float | Literal["path"] = C
        self.kernel: Kernel = kernel
        self.gamma: float | Literal["scale"] = gamma
        self.degree = degree
        self.coef0 = coef0

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        validation: tuple | None = None,
        graph: object | None = None,
    ) -> RankSVM:
        """Learn from scored items.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : array-like of shape (n,)
            Scores; larger is better, and only their order matters.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.
        validation : tuple (X, y) or (X, y, qid), optional
            Scored items that choose C; given if and only if ``C="path"``.
        graph : sparse or dense matrix of shape (n, n), optional
            In place of qid: symmetric, 1 where two items are compared, else 0. The better one follows from
            the scores, and edges between equal scores are left out.

        Raises
        ------
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the items.
        ValueError
            On bad parameters or input, a graph with other weights, a missing or a useless `validation`,
            where no pair is left, or where rounding ends the path before 1 / C.
        """
        X, y = scored(X, y)
        held = held_out(validation, X.shape[1])
        if (held is None) == (isinstance(self.C, str) and self.C == "path"):
            found = "missing with C='path'" if held is None else f"given with C={self.C!r}"
            raise ValueError(f"validation is {found}; expected both or neither: validation chooses C")
        lam = None if held else 1 / check_number(self, "C", positive=True, most=1e100)
        functions = functions_of(self, X)
        pairs, labels = Pairs.from_scores(X, y, qid) if graph is None else _edges(X, y, qid, graph)
        parameters = (
            {}
            if self.kernel == "precomputed"
            else kernel_parameters(self.kernel, X, self.gamma, self.degree, self.coef0)
        )
        trace = partial(ranksvm_path, pairs, labels, self.kernel, **parameters)  # "scale" by all items
        self.path_ = trace() if lam is None else _until(trace, lam)
        self.lam_ = _chosen(self.path_, held) if held else float(lam or 0)
        self.pairs_ = np.where((labels > 0)[:, None], pairs.index, pairs.index[:, ::-1])
        self.alpha_ = self.path_.alpha(self.lam_)
        self.support_ = np.flatnonzero(self.alpha_)
        gains = Pairs(X, self.pairs_).B.adjoint(self.alpha_)
        self.basis_ = np.flatnonzero(np.abs(gains) > CANCELLED * np.abs(gains).max())
        self.coef_ = gains[self.basis_] / self.lam_
        self._functions, self.n_features_in_ = functions, X.shape[1]
        return self


def _edges(X: Floats, y: Floats, qid: ArrayLike | None, graph: object) -> tuple[Pairs, NDArray[np.int8]]:
    """The edges of a graph between different scores, each once, and which end is better."""
    if qid is not None:
        raise ValueError("both qid and graph are given; expected one of them, which says what is compared")
    W = sparse.triu(graph_weights(graph, len(X)), k=1).tocoo()
    refuse(
        W.data != 1,
        W.data,
        "the weights (W + W') / 2 of graph",
        "1 on each edge, since all pairs of the ranking SVM have the same weight",
    )
    index = np.column_stack([W.row, W.col]).astype(np.int64)
    index = index[y[index[:, 0]] != y[index[:, 1]]]
    check_left(len(index), len(X), ", or of one edge, with different scores")
    return Pairs(X, index), np.sign(y[index[:, 0]] - y[index[:, 1]]).astype(np.int8)


def _until(trace: partial[RankingPath], lam: float) -> RankingPath:
    """The path down to lambda, which may lie above its first breakpoint."""
    path = trace(max_events=1)
    if len(path.breakpoints) and lam < path.breakpoints[0]:
        path = trace(lambda_min=lam)
    if lam < path.lambda_end:
        raise ValueError(
            f"C is {1 / lam:g}, but rounding ends the path at lambda = {path.lambda_end:g}; expected C of at "
            f"most {1 / path.lambda_end:g}"
        )
    return path


def _chosen(path: RankingPath, held: Held) -> float:
    """The lambda of least pair error on the held-out items."""
    return path.select(*Pairs.from_scores(held.X, held.y, held.qid)).lam

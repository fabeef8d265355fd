"""The experiments of section 6 of [Tsivtsivadze2013]_: many small problems, kernel widths,
and parameters.

For one user and one width of the Gaussian kernel, a method has a family of solutions
along its second parameter. This parameter is the number of functions of a pursuit,
alpha of least squares, or lambda of a ranking SVM. The module computes a whole family
by one search, one factorization, or one path of the internal solvers.

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.spatial.distance import cdist

from preflearn.core.compilation import njit
from preflearn.core.validation import Floats, Ids
from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path
from preflearn.pursuit.greedy import Backfit
from preflearn.pursuit.pursuit import searched
from preflearn.pursuit.quadratic_forms import QueryForm
from preflearn.pursuit.ridge import QueryRidge, orthonormal, subset_ridge
from preflearn_book.studies.ch10_users import UserTask

_WIDE = 1.0  # If gamma d² is smaller for all items, k - 1 is more accurate than k.
# A smaller coefficient, relative to the largest one, counts as 0.
_CANCELLED = 1e-12


class Problem(NamedTuple):
    """The task of a user in terms of squared distances, which all kernel widths share.

    Attributes
    ----------
    train : ndarray of shape (n, n)
    test : ndarray of shape (t', n)
        Squared distances of distinct test items, so that equal items are exactly tied.
    alike : ndarray of int, shape (t,)
        The row of `test` of each test item.
    y_train, y_test : ndarray of shape (n,), (t,)
    """

    train: Floats
    test: Floats
    alike: Ids
    y_train: Floats
    y_test: Floats

    @classmethod
    def of(cls, task: UserTask) -> Self:
        """Create the problem of a task, in which some test items have different scores."""
        items, alike = np.unique(task.X_test, axis=0, return_inverse=True)
        train: Any = cdist(task.X_train, task.X_train, "sqeuclidean")
        test: Any = cdist(items, task.X_train, "sqeuclidean")
        return cls(train, test, alike.ravel(), task.y_train, task.y_test)

    def kernel(self, gamma: float, constant: bool) -> tuple[Floats, Floats]:
        """exp(-gamma d²) between the training items, and linear functionals of its
        columns.

        The first rows of the second array are the kernel at the distinct test items. The
        next row is the mean of the kernel over the training items. The last row is the
        constant that was subtracted from the kernel. It is 1 for a wide kernel unless
        `constant` is true, and otherwise 0.
        """
        wide = not constant and gamma * max(self.train.max(), self.test.max()) < _WIDE
        function = np.expm1 if wide else np.exp
        K = function(-gamma * self.train)
        T = function(-gamma * self.test)
        return K, np.vstack([T, K.mean(axis=0), np.full(len(K), float(wide))])

    def form(self, mix: float) -> QueryForm:
        """The training items as one query."""
        return QueryForm(np.zeros(len(self.y_train), dtype=np.int64), mix)


class Family(NamedTuple):
    """Solutions for all values of the second parameter.

    Attributes
    ----------
    values : ndarray of shape (levels, t' + 2)
        The functionals of each solution (see `Problem.kernel`).
    n_basis : ndarray of int, shape (levels,)
        Number of functions with a nonzero coefficient.
    """

    values: Floats
    n_basis: Ids


class Method(NamedTuple):
    """A learner and the values of its second parameter to try.

    Attributes
    ----------
    name : str
    levels : sequence
        Values of the second parameter, for display.
    solve : callable
        Function from a problem and gamma to a Family.
    """

    name: str
    levels: Sequence[Any]
    solve: Callable[[Problem, float], Family]


# ---- Methods


def by_least_squares(name: str, alphas: Sequence[float], ranking: bool) -> Method:
    """RLS or RankRLS for every alpha, from one eigendecomposition.

    Parameters
    ----------
    name : str
    alphas : sequence of float
        Positive values.
    ranking : bool
        Whether to use RankRLS instead of RLS.
    """

    def solve(problem: Problem, gamma: float) -> Family:
        K, follow = problem.kernel(gamma, not ranking)
        form = problem.form(mix=1.0 - ranking)
        coef = QueryRidge(K, form, problem.y_train).solutions(np.asarray(alphas))
        return Family(coef @ follow.T, np.full(len(alphas), len(K)))

    return Method(name, alphas, solve)


def by_sparse_least_squares(
    name: str, sizes: Sequence[int], alphas: Sequence[float]
) -> Method:
    """Sparse RankRLS with nested random subsets of functions; levels are (size, alpha).

    Parameters
    ----------
    name : str
    sizes : sequence of int
        Numbers of functions. If there are fewer training items, all are used.
    alphas : sequence of float
        Nonnegative values. Section 5 has no regularizer, which corresponds to 0.
    """

    def solve(problem: Problem, gamma: float) -> Family:
        K, follow = problem.kernel(gamma, False)
        form = problem.form(0.0)
        s = problem.y_train
        # The draw is the same as in `SparseRankRLS` with random_state=0.
        order = np.random.RandomState(0).permutation(len(K))
        values = []
        for ids in (order[:size] for size in sizes):
            subset = orthonormal(K[:, ids], K[np.ix_(ids, ids)] + follow[-1, 0])
            coef, _ = subset_ridge(K[:, ids], *subset, form, s, np.asarray(alphas))
            values.append(coef @ follow[:, ids].T)
        return Family(
            np.vstack(values), np.repeat(np.minimum(sizes, len(K)), len(alphas))
        )

    return Method(name, list(product(sizes, alphas)), solve)


def by_ranking_svm(name: str, shares: Sequence[float]) -> Method:
    """RankSVM at fractions of the first breakpoint of each path.

    Above the first breakpoint, all pairs have the weight 1. In this unit, the same lambda
    suits users with few and with many pairs, and all kernel widths. (With a wider kernel,
    differences have smaller norms.) If rounding ends a path early, all smaller values use
    the solution at its end.
    """

    def solve(problem: Problem, gamma: float) -> Family:
        K, follow = problem.kernel(gamma, False)
        pairs, labels = Pairs.from_scores(K, problem.y_train)
        path = ranksvm_path(pairs, labels, "precomputed", max_events=1)
        first = 1.0
        if len(path.breakpoints):
            first = path.breakpoints[0]
        lams = first * np.asarray(shares)
        if lams.min() < path.lambda_end:
            path = ranksvm_path(pairs, labels, "precomputed", lambda_min=lams.min())
        lams = np.maximum(lams, path.lambda_end)
        alphas = np.array([path.alpha(lam) for lam in lams])
        coef = pairs.B.adjoint((labels * alphas).T) / lams
        used = np.abs(coef) > _CANCELLED * np.abs(coef).max(axis=0)
        return Family((follow @ coef).T, used.sum(axis=0))

    return Method(name, shares, solve)


def by_pursuit(
    name: str, stages: Sequence[int], mix: float = 0.0, backfit: Backfit = "after"
) -> Method:
    """Ranking pursuit, combined pursuit, or matching pursuit by number of steps.

    Parameters
    ----------
    name : str
    stages : sequence of int
        Numbers of steps. A pursuit that ends earlier keeps its last solution.
    mix, backfit
        Parameters of `RankingPursuit`.
    """

    def solve(problem: Problem, gamma: float) -> Family:
        K, follow = problem.kernel(gamma, mix > 0)
        search = searched(K, problem.form(mix), problem.y_train, max(stages), backfit)
        order = list(search.order)
        kept = np.minimum(stages, len(search.order))
        values = (follow[:, order] @ search.coefs()[:, kept]).T
        return Family(values, np.array([len(set(order[:p])) for p in kept]))

    return Method(name, stages, solve)


# ---- Errors


class Errors(NamedTuple):
    """Errors of solutions, as arrays of one shape, such as (tasks, widths, levels).

    Attributes
    ----------
    disagreement : ndarray
        Normalized disagreement error of eq. 1 on the test items, over pairs of
        different scores.
    disagreement_with_ties : ndarray
        The same over all pairs, as in the published eq. 1.
    squared : ndarray
        Mean squared error of f on the test items.
    squared_levelled : ndarray
        The same after adding a constant to f. The constant is chosen such that the
        mean of f over the training items equals the mean of their scores.
    n_basis : ndarray
        Number of functions with a nonzero coefficient.
    """

    disagreement: Floats
    disagreement_with_ties: Floats
    squared: Floats
    squared_levelled: Floats
    n_basis: Floats


def errors_of(problem: Problem, family: Family) -> Errors:
    """The errors of a family, each of shape (levels,)."""
    values = family.values[:, problem.alike]
    mean, constant = family.values[:, -2:].T
    wrong, separated, strict, pairs = _disagreements(values, problem.y_test)
    moved = problem.y_train.mean() - mean
    return Errors(
        wrong / (2 * strict),
        (wrong + separated) / (2 * pairs),
        np.square(values + constant[:, None] - problem.y_test).mean(axis=1),
        np.square(values + moved[:, None] - problem.y_test).mean(axis=1),
        family.n_basis.astype(np.float64),
    )


def curves(
    method: Method, problems: Sequence[Problem], gammas: Sequence[float]
) -> Errors:
    """The errors of a method for all widths and levels: arrays (tasks, widths, levels).

    Parameters
    ----------
    method : Method
    problems : sequence of Problem
    gammas : sequence of float
        Parameters of the kernel exp(-gamma d²).

    Examples
    --------
    >>> from preflearn_book.studies.ch10_users import Counts
    >>> X, y, none = np.arange(12.0)[:, None], np.arange(12.0) ** 2, np.zeros(0, dtype=np.int64)
    >>> task = UserTask(X[::2], y[::2], X[1::2], y[1::2], X[:0], y[:0], 0, none, Counts(0, 0, 0, 0))
    >>> method, gammas = by_pursuit("pursuit", [1, 2, 3]), [0.01, 0.1, 1.0]
    >>> width, level = tuned(curves(method, [Problem.of(task)], gammas))
    >>> gammas[width], method.levels[level]
    (0.01, 1)
    >>> judged(method, [Problem.of(task)], gammas[width], level).disagreement.tolist()
    [0.0]
    """
    errors = [
        [errors_of(problem, method.solve(problem, gamma)) for gamma in gammas]
        for problem in problems
    ]
    return Errors(*np.moveaxis(np.array(errors), 2, 0))


def tuned(errors: Errors, measure: str = "disagreement") -> tuple[int, int]:
    """Indices of the width and the level of lowest mean error over the tasks."""
    means = getattr(errors, measure).mean(axis=0)
    width, level = np.unravel_index(np.argmin(means), means.shape)
    return int(width), int(level)


def judged(
    method: Method, problems: Sequence[Problem], gamma: float, level: int
) -> Errors:
    """The errors for one width and one level, an index into `Method.levels`."""
    errors = curves(method, problems, [gamma])
    return Errors(*(values[:, 0, level] for values in errors))


@njit
def _disagreements(values, scores):
    """Counts of pairs, for each row of values and over all pairs.

    There are two counts for each row. The first adds 2 for each pair in the wrong order
    and 1 for each pair with different scores and equal values. The second adds 1 for
    each pair with equal scores and different values. The other two results are the
    number of pairs with different scores and the number of all pairs.
    """
    wrong = np.zeros(len(values))
    separated = np.zeros(len(values))
    strict = 0
    for i in range(len(scores)):
        for j in range(i):
            truth = np.sign(scores[i] - scores[j])
            strict += truth != 0
            for row in range(len(values)):
                gap = abs(truth - np.sign(values[row, i] - values[row, j]))
                if truth == 0:
                    separated[row] += gap
                else:
                    wrong[row] += gap
    return wrong, separated, strict, len(scores) * (len(scores) - 1) // 2

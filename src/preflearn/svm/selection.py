"""The search for C and the width of a Gaussian kernel, as in section 4 of [Venuto2017]_.

A fit for each point of a grid is more than it takes: one path over lambda = 1/C gives the machines of all C
at once, and one product with the kernel of the validation items gives all of their decisions.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import Floats, check_array, check_choice, check_kinds, check_labels, refuse
from preflearn.ground.estimator import ComparisonEstimator
from preflearn.ground.gram import fixed
from preflearn.ground.kernels import distinct_items, kernel_matrix
from preflearn.metrics import comparison_auc, comparison_loss, threshold
from preflearn.pairs import Incidence, Pairs, as_pairs
from preflearn.path import ranksvm_path
from preflearn.path.binary import trusted_path
from preflearn.path.binary_path import BinaryPath
from preflearn.svm.compare import SVMCompare
from preflearn.svm.machine import DegenerateBiasError, clear_threshold
from preflearn.svm.rank import SVMRank

METHODS = ("rank", "rank2", "compare")
_NEGATIVE = -1e-8  # beta below this counts as negative, as in SVMCompare
_SOUND = 1e-7  # a violation of the optimality conditions below it, relative to the largest F


class SelectedMachine(ComparisonEstimator):
    """A machine with a Gaussian kernel that `select_on_grid` found; it is fitted.

    Attributes
    ----------
    C, gamma : float
    valid_error, valid_auc : float
        Zero-one loss, and area under the comparison ROC, on the validation pairs.
    bias_ : float
        beta of compare; NaN for the others, which have none.
    tau_ : float
        The largest difference of scores that does not count.
    centres_, coef_ : ndarray of shape (k, p), (k,)
        r(x) = sum_j coef_[j] exp(-gamma |x - centres_[j]|^2).
    """

    C: float
    gamma: float
    valid_error: float
    valid_auc: float
    bias_: float
    centres_: Floats
    coef_: Floats

    def rank_function(self, X: ArrayLike) -> Floats:
        """Scores r(x) of items, shape (n,); larger is better."""
        X = check_array(X, "X", ("n", self.n_features_in_))
        return kernel_matrix("rbf", X, self.centres_, gamma=self.gamma) @ self.coef_


class GridSelection(NamedTuple):
    """What the search found for a method; of several as good, that of smallest C, then of smallest gamma.

    Attributes
    ----------
    by_error, by_auc : SelectedMachine
        The least error, and the largest AUC, on the validation pairs.
    n_degenerate : int
        Points of the grid with beta >= 0, which make no ranking function.
    every_c : SelectedMachine or None
        For compare: the least error over all C up to the largest of the grid; of several, that of largest C.
    """

    by_error: SelectedMachine
    by_auc: SelectedMachine
    n_degenerate: int
    every_c: SelectedMachine | None


def select_on_grid(
    train: tuple[Pairs, ArrayLike],
    valid: tuple[Pairs, ArrayLike],
    C_grid: ArrayLike,
    gamma_grid: ArrayLike,
    methods: Iterable[str] = METHODS,
) -> dict[str, GridSelection]:
    """The machines that a search over all C and gamma of a grid chooses on validation pairs.

    It finds what one fit for each point finds: of `SVMRank` with ties="ignore" (rank) or "duplicate"
    (rank2), or of `SVMCompare` (compare), without those that raise DegenerateBiasError. Where rounding ends a
    path early, the rest are such fits.

    Parameters
    ----------
    train, valid : tuple of Pairs and array-like of shape (m,)
        Pairs and labels to learn from, and to choose by.
    C_grid, gamma_grid : array-like of shape (k,), (g,)
        Increasing and positive; rbf kernels exp(-gamma |x - x'|^2).
    methods : iterable of {"rank", "rank2", "compare"}

    Returns
    -------
    selections : dict of str to GridSelection
        One for each method.

    Raises
    ------
    ValueError
        On bad pairs, labels or grids, or training pairs without ties or without preferences.
    DegenerateBiasError
        If no point of the grid makes a ranking function.

    Examples
    --------
    >>> train = Pairs([[0.0], [0.4], [1.0], [1.1]], [[0, 1], [2, 0], [2, 3], [3, 1]]), [0, 1, 0, 1]
    >>> found = select_on_grid(train, train, [1.0, 10.0], [0.1, 1.0], ["compare"])["compare"]
    >>> found.by_error.C, found.by_error.gamma, found.by_error.valid_error, found.n_degenerate
    (1.0, 1.0, 0.0, 0)
    """
    problem = _Problem.of(train, valid)
    C, gammas = _check_grid(C_grid, "C_grid"), _check_grid(gamma_grid, "gamma_grid")
    found: dict[str, list[_Machines]] = {method: [] for method in methods}
    every: list[_Machines] = []
    for method in found:
        check_choice(method, "methods", METHODS)
    for gamma in gammas:
        width = _Width.of(problem, gamma)
        for method, machines in found.items():
            if method == "compare":
                path = width.path(1 / C[-1])
                machines.append(width.compare(path, C))
                every += width.best_of_all(path, 1 / C[-1])
            else:
                machines.append(width.rank(method, C))
    return {
        method: _selection(problem, machines, every if method == "compare" else [])
        for method, machines in found.items()
    }


class _Problem(NamedTuple):
    """Training and validation pairs over their distinct items; the training pairs also as flipped rows."""

    items: Floats  # (n, p)
    B: Incidence  # (m, n)
    y: NDArray
    rows: Incidence  # the rows of `Pairs.flipped`: preferences, better item first, ties, and ties swapped
    labels: NDArray
    valid_items: Floats
    valid_b: Incidence
    valid_y: NDArray

    @classmethod
    def of(cls, train: tuple[Pairs, ArrayLike], valid: tuple[Pairs, ArrayLike]) -> _Problem:
        parts = []
        for given in (train, valid):
            pairs = as_pairs(given[0])
            ids, index = distinct_items(pairs)
            parts.append((Pairs(pairs.items[ids], index), check_labels(given[1], len(pairs))))
        (pairs, y), (others, valid_y) = parts
        check_kinds(y, "select_on_grid")
        flipped, labels = pairs.flipped(y)
        return cls(pairs.items, pairs.B, y, flipped.B, labels, others.items, others.B, valid_y)


class _Machines(NamedTuple):
    """Machines of one gamma, for some C."""

    gamma: float
    C: Floats  # (k,)
    coef: Floats  # (n, k), of the distinct items
    bias: Floats  # (k,)
    tau: Floats  # (k,)
    error: Floats  # (k,), infinite for those that make no ranking function
    auc: Floats  # (k,), minus infinity for those


class _Width(NamedTuple):
    """A problem seen through the kernel of one width."""

    problem: _Problem
    gamma: float
    gram: Floats  # (n, n)
    valid_gram: Floats  # (n_valid, n)
    K: Floats  # of the flipped rows

    @classmethod
    def of(cls, problem: _Problem, gamma: float) -> _Width:
        gram, valid_gram = (
            kernel_matrix("rbf", items, problem.items, gamma=gamma)
            for items in (problem.items, problem.valid_items)
        )
        return cls(problem, gamma, gram, valid_gram, _between(problem.rows, gram, problem.rows))

    def path(self, lambda_min: float) -> BinaryPath:
        return trusted_path(fixed(self.K), self.problem.labels.astype(np.float64), lambda_min)

    def compare(self, path: BinaryPath, C: Floats) -> _Machines:
        """SVMCompare for each C."""
        coef, bias = np.zeros((len(self.problem.items), len(C))), np.zeros(len(C))
        for k, cost in enumerate(C):
            if 1 / cost >= path.lambda_end and path.kkt_residual(1 / cost) <= _SOUND:
                coef[:, k] = self.problem.rows.adjoint(cost * self.problem.labels * path.alpha(1 / cost))
                bias[k] = path.bias(1 / cost)
            else:
                coef[:, k], bias[k] = self._fitted(SVMCompare(cost, gamma=self.gamma))
        degenerate = ~(bias < _NEGATIVE)
        return self._judged(C, coef / np.where(degenerate, np.inf, -bias), bias, np.ones(len(C)))

    def rank(self, method: str, C: Floats) -> _Machines:
        """SVMRank for each C."""
        m = len(self.problem.labels)
        preferences = np.flatnonzero(self.problem.labels > 0)
        rows = preferences if method == "rank" else np.append(preferences, np.arange(m))
        pairs = Pairs(self.gram, self.problem.rows.index[rows])
        first = float(pairs.B.gram(self.gram).times(np.ones(len(rows))).max())
        end = max(0.0, min(1 / C.max(), first / 2))
        path = ranksvm_path(pairs, np.ones(len(rows), dtype=int), "precomputed", lambda_min=end)
        coef = np.zeros((len(self.problem.items), len(C)))
        for k, cost in enumerate(C):
            if 1 / cost >= path.lambda_end and path.kkt_residual(1 / cost) <= _SOUND:
                coef[:, k] = cost * pairs.B.adjoint(path.alpha(1 / cost))
            else:
                ties = "ignore" if method == "rank" else "duplicate"
                coef[:, k], _ = self._fitted(SVMRank(cost, gamma=self.gamma, ties=ties))
        z = self.problem.B.differences(self.gram @ coef)
        tau = np.array([clear_threshold(self.problem.y, column) for column in z.T])
        return self._judged(C, coef, np.full(len(C), np.nan), tau)

    def best_of_all(self, path: BinaryPath, lambda_min: float) -> list[_Machines]:
        """The machine of the best lambda of the path, in the middle of its interval; none without one."""
        if len(path.breakpoints) == 0:
            return []
        rows, labels = Pairs(self.problem.valid_items, self.problem.valid_b.index).flipped(
            self.problem.valid_y
        )
        choice = path.select(_between(rows.B, self.valid_gram, self.problem.rows), labels)
        edges = np.append(choice.lambdas, max(path.lambda_end, lambda_min))
        inside = path.breakpoints[(path.breakpoints > edges[-1]) & (path.breakpoints < edges[0])]
        edges = np.unique(np.append(edges, inside))[::-1]
        # Between two of these lambda · beta is linear, and beta may change its sign once.
        scaled = edges * np.array([path.bias(lam) for lam in edges])
        turns = np.flatnonzero(scaled[1:] * scaled[:-1] < 0)
        share = scaled[turns] / (scaled[turns] - scaled[turns + 1])
        edges = np.sort(np.append(edges, edges[turns] + share * (edges[turns + 1] - edges[turns])))[::-1]
        middles = np.maximum(np.sqrt(edges[1:] * edges[:-1]), edges[1:])
        degenerate = np.array([path.bias(lam) >= _NEGATIVE for lam in middles])
        if degenerate.all():
            return []
        losses = choice.losses[np.searchsorted(-choice.lambdas, -middles, side="right") - 1]
        best = np.argmin(np.where(degenerate, np.inf, losses))
        return [self.compare(path, 1 / middles[[best]])]

    def _fitted(self, machine: SVMCompare | SVMRank) -> tuple[Floats, float]:
        """Coefficients of the items, not divided by the bias, and the bias; 0 if it is degenerate."""
        problem = self.problem
        try:
            machine.fit(Pairs(problem.items, problem.B.index), problem.y)
        except DegenerateBiasError:
            return np.zeros(len(problem.items)), 0.0
        return problem.B.adjoint(machine.dual_coef_), getattr(machine, "bias_", 0.0)

    def _judged(self, C: Floats, coef: Floats, bias: Floats, tau: Floats) -> _Machines:
        """With errors and areas on the validation pairs."""
        y, z = self.problem.valid_y, self.problem.valid_b.differences(self.valid_gram @ coef)
        error, auc = np.full(len(C), np.inf), np.full(len(C), -np.inf)
        for k in np.flatnonzero(~(bias >= _NEGATIVE)):
            error[k] = comparison_loss(y, threshold(z[:, k], tau[k]))
            auc[k] = comparison_auc(y, z[:, k])
        return _Machines(self.gamma, C, coef, bias, tau, error, auc)


def _between(rows: Incidence, gram: Floats, columns: Incidence) -> Floats:
    """The kernel between two lists of differences, given that between their items."""
    return columns.differences(np.ascontiguousarray(rows.differences(gram).T)).T


def _selection(problem: _Problem, grid: list[_Machines], every: list[_Machines]) -> GridSelection:
    error, auc = (np.array([getattr(column, name) for column in grid]).T for name in ("error", "auc"))
    if np.isinf(error).all():
        raise DegenerateBiasError("beta is 0 or more on the whole grid; expected a larger C, or more ties")
    by_error, by_auc = (
        _selected(problem, grid[best % len(grid)], best // len(grid))
        for best in (int(np.argmin(error)), int(np.argmax(auc)))
    )
    best_of_every = min(every, key=lambda one: (one.error[0], -one.C[0]), default=None)
    return GridSelection(
        by_error,
        by_auc,
        int(np.isinf(error).sum()),
        None if best_of_every is None else _selected(problem, best_of_every, 0),
    )


def _selected(problem: _Problem, machines: _Machines, place: int) -> SelectedMachine:
    machine, used = SelectedMachine(), machines.coef[:, place] != 0
    machine.C, machine.gamma, machine.n_features_in_ = (
        float(machines.C[place]), float(machines.gamma), problem.items.shape[1],
    )  # fmt: skip
    machine.valid_error, machine.valid_auc = float(machines.error[place]), float(machines.auc[place])
    machine.bias_, machine.tau_ = float(machines.bias[place]), float(machines.tau[place])
    machine.centres_, machine.coef_ = problem.items[used], machines.coef[used, place]
    return machine


def _check_grid(values: ArrayLike, name: str) -> Floats:
    grid = check_array(values, name, ("k",))
    refuse(grid <= 0, grid, name, "positive numbers")
    refuse(np.diff(grid, prepend=0.0) <= 0, grid, name, "increasing numbers")
    return grid

"""The experiments of section 4 of [Venuto2017]_: fit, choose C and the kernel width,
evaluate.

The search does not fit each point of the grid. One path over lambda = 1/C gives the
solutions for all C at once, and one product with the kernel of the validation items
gives all of their decision values.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.expansion import ItemKernel
from preflearn.core.gram import fixed
from preflearn.core.validation import Floats
from preflearn.metrics import comparison_auc, comparison_loss, threshold
from preflearn.pairs import Incidence, Pairs
from preflearn.path import ranksvm_path
from preflearn.path.binary import BinaryPath, trusted_path
from preflearn.path.ranking import RankingPath
from preflearn.svm import DegenerateBiasError, SVMCompare, SVMRank
from preflearn.svm.base import MAX_BETA, clear_threshold

_MODELS: dict[str, Any] = {
    "rank": SVMRank,
    "rank2": partial(SVMRank, ties="duplicate"),
    "compare": SVMCompare,
}
METHODS = tuple(_MODELS)
# Largest accepted violation of the optimality conditions, relative to the largest F.
_MAX_KKT_RESIDUAL = 1e-7

Labelled = tuple[Pairs, NDArray]  # pairs and their labels
Machine = SVMCompare | SVMRank


class GridSelection(NamedTuple):
    """The chosen and fitted models of a method.

    If several models are equally good, the one with the smallest C is chosen, then the
    one with the smallest gamma.

    Attributes
    ----------
    by_error, by_auc : SVMRank or SVMCompare
        The models with the lowest error and the largest AUC on the validation pairs.
    n_degenerate : int
        Number of points of the grid with beta >= 0, which give no ranking function.
    every_c : SVMCompare or None
        For compare, the model with the lowest error over all C up to the largest C of
        the grid. If there are several such models, the one with the largest C is
        chosen.
    """

    by_error: Machine
    by_auc: Machine
    n_degenerate: int
    every_c: Machine | None


class Outcome(NamedTuple):
    """Results of a method on one data set.

    Attributes
    ----------
    method : str
        One of `METHODS`, or "compare, every C", which chooses C from all values up to
        the largest C of the grid.
    test_error, test_auc : float
        Test error of `machine`; test AUC of `by_auc`.
    machine, by_auc : SVMRank or SVMCompare
        The models with the lowest validation error and the largest validation AUC.
    n_degenerate : int
        Number of points of the grid with beta >= 0.
    """

    method: str
    test_error: float
    test_auc: float
    machine: Machine
    n_degenerate: int
    by_auc: Machine


def compare_methods(
    train: Labelled,
    valid: Labelled,
    test: Labelled,
    C_grid: Floats,
    gamma_grid: Floats,
) -> list[Outcome]:
    """Test results of rank, rank2, and compare.

    `select_on_grid` chooses the models on the validation pairs.
    """

    def outcome(
        method: str, by_error: Machine, by_auc: Machine, n_degenerate: int
    ) -> Outcome:
        error = 1 - by_error.score(*test)
        auc = comparison_auc(test[1], by_auc.decision_function(test[0]))
        return Outcome(method, error, auc, by_error, n_degenerate, by_auc)

    outcomes = []
    for name, chosen in select_on_grid(train, valid, C_grid, gamma_grid).items():
        by_error, by_auc, n_degenerate, every_c = chosen
        outcomes.append(outcome(name, by_error, by_auc, n_degenerate))
        if name == "compare":
            every_c = every_c or by_error
            outcomes.append(outcome("compare, every C", every_c, every_c, 0))
    return outcomes


def direction_auc(
    train: Labelled,
    valid: Labelled,
    test: Labelled,
    C_grid: Floats,
    gamma_grid: Floats,
) -> tuple[float, float, float]:
    """Test AUC, C, and gamma of the direction u of SVMCompare, chosen by validation AUC.

    The sign of the bias does not matter. If rounding ends the path early, the values of
    C beyond its end are left out. Parameters and errors are those of "compare" in
    `select_on_grid`.
    """
    areas = []
    for gamma in gamma_grid:
        width = _Width(train, gamma)
        path = width.path(1 / C_grid[-1])
        evaluations = [_Evaluation(width, part) for part in (valid, test)]
        for lam in 1 / C_grid[path.lambda_end <= 1 / C_grid]:
            u = width.rows.adjoint(width.labels * path.alpha(lam))
            valid_auc, test_auc = (
                comparison_auc(part.y, part.differences(u)) for part in evaluations
            )
            areas.append((valid_auc, test_auc, 1 / lam, gamma))
    return max(areas, key=lambda row: row[0])[1:]


def select_on_grid(
    train: Labelled,
    valid: Labelled,
    C_grid: Floats,
    gamma_grid: Floats,
    methods: Iterable[str] = METHODS,
) -> dict[str, GridSelection]:
    """Choose C and gamma from a grid on validation pairs.

    The result is the same as with one fit per grid point. The fits are by `SVMRank` with
    ties="ignore" (rank) or "duplicate" (rank2), or by `SVMCompare` (compare). Points at
    which a fit raises DegenerateBiasError are left out. If rounding ends a path early,
    the remaining points are fitted one by one.

    Parameters
    ----------
    train, valid : tuple of Pairs and ndarray of shape (m,)
        Pairs and labels for training and for validation.
    C_grid, gamma_grid : ndarray of shape (k,), (g,)
        Increasing positive values. The kernels are exp(-gamma |x - x'|^2).
    methods : iterable of {"rank", "rank2", "compare"}

    Raises
    ------
    DegenerateBiasError
        If no point of the grid gives a ranking function.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [0.4], [1.0], [1.1]], [[0, 1], [2, 0], [2, 3], [3, 1]])
    >>> train = pairs, np.array([0, 1, 0, 1])
    >>> grid = np.array([1.0, 10.0]), np.array([0.1, 1.0])
    >>> found = select_on_grid(train, train, *grid, ["compare"])["compare"]
    >>> found.by_error.C, found.by_error.gamma, found.by_error.score(*train), found.n_degenerate
    (1.0, 1.0, 1.0, 0)
    """
    grids = C_grid, gamma_grid
    return {method: _selection(method, train, valid, *grids) for method in methods}


def _machine(method: str, C: float, gamma: float) -> Machine:
    return _MODELS[method](float(C), gamma=float(gamma))


def _selection(
    method: str, train: Labelled, valid: Labelled, C_grid: Floats, gamma_grid: Floats
) -> GridSelection:
    scores = []
    best_of_paths = []
    for gamma in gamma_grid:
        width = _Width(train, gamma)
        evaluation = _Evaluation(width, valid)
        if method == "compare":
            path = width.path(1 / C_grid[-1])
            solutions = width.solved(method, path, width.rows, width.labels, C_grid)
            scores.append(evaluation.compare(*solutions))
            best = evaluation.best_of_path(path, 1 / C_grid[-1])
            if best is not None:
                best_of_paths.append((*best, gamma))
        else:
            scores.append(evaluation.rank(*width.ranks(method, C_grid)))
    # Rows are values of C, columns of gamma.
    error, area = np.transpose(scores, (1, 2, 0))
    if np.isinf(error).all():
        raise DegenerateBiasError(
            "beta is 0 or more at every grid point; pass a larger C, or more ties"
        )

    def fit_at(place: np.intp) -> Machine:
        i, j = np.unravel_index(place, error.shape)
        return _machine(method, C_grid[i], gamma_grid[j]).fit(*train)

    by_error = fit_at(np.argmin(error))
    by_auc = fit_at(np.argmax(area))
    every_c = None
    if best_of_paths:
        _, C, gamma = min(best_of_paths, key=lambda row: (row[0], -row[1]))
        every_c = _machine(method, C, gamma).fit(*train)
    return GridSelection(by_error, by_auc, int(np.isinf(error).sum()), every_c)


class _Width:
    """The training pairs and the kernel matrix for one width."""

    def __init__(self, train: Labelled, gamma: float) -> None:
        self.gamma = gamma
        self.kernel = ItemKernel.of(SVMRank(gamma=float(gamma)), train[0])
        self.gram = self.kernel.gram()
        self.pairs = Pairs(self.kernel.items, self.kernel.B.index)
        self.y = train[1]
        # Preferences with the better item first, ties, swapped ties.
        flipped, labels = self.pairs.flipped(self.y)
        self.rows = flipped.B
        self.labels = labels.astype(np.float64)

    def path(self, lambda_min: float) -> BinaryPath:
        """SVMCompare for each lambda."""
        rows = np.arange(len(self.labels))
        gram = self.rows.gram(self.gram).block(rows, rows)
        return trusted_path(fixed(gram), self.labels, lambda_min)

    def ranks(self, method: str, C: Floats) -> tuple[Floats, Floats]:
        """Coefficients (n, k) and thresholds (k,) of SVMRank for each C."""
        used = np.flatnonzero(self.labels > 0)
        if method == "rank2":
            # Preferences appear twice, so that they have the same weight as a tie, which
            # appears in both orders.
            used = np.append(used, np.arange(len(self.labels)))
        pairs = Pairs(self.gram, self.rows.index[used])
        ones = np.ones(len(used), dtype=int)
        first = float(pairs.B.gram(self.gram).times(ones).max())
        end = max(0.0, min(1 / C.max(), first / 2))
        path = ranksvm_path(pairs, ones, "precomputed", lambda_min=end)
        coef, _ = self.solved(method, path, pairs.B, ones, C)
        z = self.pairs.B.differences(self.gram @ coef)
        return coef, np.array([clear_threshold(self.y, column) for column in z.T])

    def solved(
        self,
        method: str,
        path: BinaryPath | RankingPath,
        B: Incidence,
        signs: NDArray,
        C: Floats,
    ) -> tuple[Floats, Floats]:
        """Coefficients (n, k) of u and beta (k,), if it exists, for each C."""
        coef = np.zeros((B.shape[1], len(C)))
        bias = np.zeros(len(C))
        for k, cost in enumerate(C):
            if (
                1 / cost >= path.lambda_end
                and path.kkt_residual(1 / cost) <= _MAX_KKT_RESIDUAL
            ):
                coef[:, k] = cost * B.adjoint(signs * path.alpha(1 / cost))
                if isinstance(path, BinaryPath):
                    bias[k] = path.bias(1 / cost)
                continue
            try:
                machine = _machine(method, cost, self.gamma).fit(self.pairs, self.y)
            except DegenerateBiasError:
                continue
            coef[:, k] = self.pairs.B.adjoint(machine.dual_coef_)
            bias[k] = getattr(machine, "bias_", 0.0)
        return coef, bias


class _Evaluation:
    """Evaluation pairs, and the kernel between their items and the training items."""

    def __init__(self, width: _Width, part: Labelled) -> None:
        pairs, self.y = part
        self.width = width
        ids, self.B = pairs.B.compacted()
        self.K = width.kernel.functions.columns(pairs.items[ids])

    def differences(self, coef: Floats) -> Floats:
        """Score differences for coefficients (n,) or (n, k)."""
        return self.B.differences(self.K @ coef)

    def rank(self, coef: Floats, tau: Floats) -> tuple[Floats, Floats]:
        """Errors and AUCs of ranking functions with their thresholds."""
        z = self.differences(coef).T
        errors = [
            comparison_loss(self.y, threshold(gap, t))
            for gap, t in zip(z, tau, strict=True)
        ]
        return np.array(errors), np.array([comparison_auc(self.y, gap) for gap in z])

    def compare(self, coef: Floats, bias: Floats) -> tuple[Floats, Floats]:
        """Errors and AUCs of -u / beta; inf and -inf if this is not a ranking function."""
        errors = np.full(len(bias), np.inf)
        areas = np.full(len(bias), -np.inf)
        good = bias < MAX_BETA
        unit = np.ones(good.sum())
        errors[good], areas[good] = self.rank(coef[:, good] / -bias[good], unit)
        return errors, areas

    def best_of_path(
        self, path: BinaryPath, lambda_min: float
    ) -> tuple[float, float] | None:
        """Error and C of the best lambda on the path, in the middle of its interval."""
        if len(path.breakpoints) == 0:
            return None
        pairs = Pairs(np.zeros((self.B.shape[1], 1)), self.B.index)
        rows, labels = pairs.flipped(self.y)
        kernel = np.ascontiguousarray(rows.B.differences(self.K).T)
        columns = self.width.rows.differences(kernel).T
        choice = path.select(columns, labels)
        edges = np.append(choice.lambdas, max(path.lambda_end, lambda_min))
        inside = path.breakpoints[
            (path.breakpoints > edges[-1]) & (path.breakpoints < edges[0])
        ]
        edges = np.unique(np.append(edges, inside))[::-1]
        # Between two of these lambda · beta is linear, and beta may change its sign
        # once.
        scaled = edges * np.array([path.bias(lam) for lam in edges])
        turns = np.flatnonzero(scaled[1:] * scaled[:-1] < 0)
        fraction = scaled[turns] / (scaled[turns] - scaled[turns + 1])
        roots = edges[turns] + fraction * (edges[turns + 1] - edges[turns])
        edges = np.sort(np.append(edges, roots))[::-1]
        middles = np.maximum(np.sqrt(edges[1:] * edges[:-1]), edges[1:])
        degenerate = np.array([path.bias(lam) >= MAX_BETA for lam in middles])
        if degenerate.all():
            return None
        interval = np.searchsorted(-choice.lambdas, -middles, side="right") - 1
        losses = np.where(degenerate, np.inf, choice.losses[interval])
        C = 1 / middles[[np.argmin(losses)]]
        width = self.width
        solution = width.solved("compare", path, width.rows, width.labels, C)
        errors, _ = self.compare(*solution)
        return float(errors[0]), float(C[0])

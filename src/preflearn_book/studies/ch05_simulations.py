"""The experiments of section 4 of [Venuto2017]_: learn, choose C and the width of a
Gaussian kernel, judge.

A fit for each point of a grid is more than the search takes: one path over lambda = 1/C
gives the machines of all C at once, and one product with the kernel of the validation
items gives all of their decisions.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.expansion import ItemKernel
from preflearn.core.gram import fixed
from preflearn.core.validation import (
    LARGEST,
    Floats,
    check_array,
    check_kinds,
    check_labels,
    raise_if_any,
    require,
)
from preflearn.metrics import comparison_auc, comparison_loss, threshold
from preflearn.pairs import Incidence, Pairs, as_pairs
from preflearn.path import ranksvm_path
from preflearn.path.binary import BinaryPath, trusted_path
from preflearn.path.ranking import RankingPath
from preflearn.svm import DegenerateBiasError, SVMCompare, SVMRank
from preflearn.svm.base import MAX_BETA, clear_threshold

METHODS = ("rank", "rank2", "compare")
# a violation of the optimality conditions below it, relative to the largest F
_SOUND = 1e-7

Labelled = tuple[Pairs, NDArray]  # pairs and their labels
Machine = SVMCompare | SVMRank


class GridSelection(NamedTuple):
    """What the search found for a method, fitted; of several as good, of smallest C,
    then of smallest gamma.

    Attributes
    ----------
    by_error, by_auc : SVMRank or SVMCompare
        The least error, and the largest AUC, on the validation pairs.
    n_degenerate : int
        Points of the grid with beta >= 0, which make no ranking function.
    every_c : SVMCompare or None
        For compare: the least error over all C up to the largest of the grid; of
        several, that of largest C.
    """

    by_error: Machine
    by_auc: Machine
    n_degenerate: int
    every_c: Machine | None


class Outcome(NamedTuple):
    """A method on one data set.

    Attributes
    ----------
    method : str
        One of `METHODS`, or "compare, every C", whose C is any up to the largest of the
        grid.
    test_error, test_auc : float
        Of the machine of least validation error; of the machine of largest validation
        AUC.
    machine, by_auc : SVMRank or SVMCompare
        That of least validation error; that of largest validation AUC.
    n_degenerate : int
        Points of the grid with beta >= 0.
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
    C_grid: ArrayLike,
    gamma_grid: ArrayLike,
) -> list[Outcome]:
    """rank, rank2 and compare, chosen on validation pairs as in `select_on_grid` and
    judged on test pairs."""
    outcomes = []
    (_, test) = _checked(train, test)
    for name, (by_error, by_auc, failed, every) in select_on_grid(
        train, valid, C_grid, gamma_grid
    ).items():
        chosen = [(name, by_error, by_auc, failed)]
        if name == "compare":
            free = every or by_error
            chosen.append(("compare, every C", free, free, 0))
        for method, one, other, count in chosen:
            area = comparison_auc(test[1], other.decision_function(test[0]))
            outcomes.append(
                Outcome(method, 1 - one.score(*test), area, one, count, other)
            )
    return outcomes


def direction_auc(
    train: Labelled,
    valid: Labelled,
    test: Labelled,
    C_grid: ArrayLike,
    gamma_grid: ArrayLike,
) -> tuple[float, float, float]:
    """Test AUC of SVMCompare's u itself, whatever the sign of its bias; and C and
    gamma, by validation AUC.

    A C is left out where rounding ends the path above it. Parameters and errors are
    those of `select_on_grid`, whose "compare" it is.
    """
    train, *others = _checked(train, valid, test)
    check_kinds(train[1], "SVMCompare")
    areas = []
    C = _checked_grid(C_grid, "C_grid")
    for gamma in _checked_grid(gamma_grid, "gamma_grid"):
        width = _Width.of(train, gamma)
        path = width.path(1 / C[-1])
        judges = [_Judge.of(width, part) for part in others]
        for lam in 1 / C[path.lambda_end <= 1 / C]:
            u = width.rows.adjoint(width.labels * path.alpha(lam))
            found = (comparison_auc(judge.y, judge.differences(u)) for judge in judges)
            areas.append((*found, 1 / lam, gamma))
    return max(areas, key=lambda one: one[0])[1:]


def select_on_grid(
    train: Labelled,
    valid: Labelled,
    C_grid: ArrayLike,
    gamma_grid: ArrayLike,
    methods: Iterable[str] = METHODS,
) -> dict[str, GridSelection]:
    """The machines that a search over all C and gamma of a grid chooses on validation
    pairs.

    It finds what one fit for each point finds: of `SVMRank` with ties="ignore" (rank)
    or "duplicate" (rank2), or of `SVMCompare` (compare), without those that raise
    DegenerateBiasError. Where rounding ends a path early, the rest are such fits.

    Parameters
    ----------
    train, valid : tuple of Pairs and ndarray of shape (m,)
        Pairs and labels to learn from, and to choose by.
    C_grid, gamma_grid : array-like of shape (k,), (g,)
        Increasing and positive; rbf kernels exp(-gamma |x - x'|^2).
    methods : iterable of {"rank", "rank2", "compare"}

    Raises
    ------
    DegenerateBiasError
        If no point of the grid makes a ranking function.
    ValueError
        On pairs or labels that do not fit together, only ties or only preferences, or
        another grid.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [0.4], [1.0], [1.1]], [[0, 1], [2, 0], [2, 3], [3, 1]])
    >>> train = pairs, np.array([0, 1, 0, 1])
    >>> grid = np.array([1.0, 10.0]), np.array([0.1, 1.0])
    >>> found = select_on_grid(train, train, *grid, ["compare"])["compare"]
    >>> found.by_error.C, found.by_error.gamma, found.by_error.score(*train), found.n_degenerate
    (1.0, 1.0, 1.0, 0)
    """
    train, valid = _checked(train, valid)
    C = _checked_grid(C_grid, "C_grid")
    gamma = _checked_grid(gamma_grid, "gamma_grid")
    methods = list(methods)
    for method in methods:
        require(method in METHODS, method, "methods", f"some of {METHODS}")
        check_kinds(train[1], "SVMCompare", ties=method == "compare")
    return {method: _selection(method, train, valid, C, gamma) for method in methods}


def _checked(*parts: Labelled) -> list[Labelled]:
    """Pairs and labels, after a check of each, and of the number of features, which all
    share."""
    found = []
    for part in parts:
        require(
            isinstance(part, tuple) and len(part) == 2,
            part,
            "a part of the data",
            "(pairs, labels)",
        )
        pairs = as_pairs(part[0])
        p = pairs.shape[2]
        fit = as_pairs(parts[0][0]).shape[2]
        require(
            p == fit, p, "the number of features", f"{fit}, as the pairs to train have"
        )
        found.append((pairs, check_labels(part[1], len(pairs))))
    return found


def _checked_grid(values: ArrayLike, name: str) -> Floats:
    grid = check_array(values, name, ("k",), "increasing positive numbers")
    wrong = (np.diff(grid, prepend=0) <= 0) | (grid < 1 / LARGEST) | (grid > LARGEST)
    raise_if_any(
        wrong, grid, name, "a number from 1e-100 to 1e100, larger than the one before"
    )
    return grid


def _machine(method: str, C: float, gamma: float) -> Machine:
    if method == "compare":
        return SVMCompare(float(C), gamma=float(gamma))
    return SVMRank(
        float(C), gamma=float(gamma), ties="ignore" if method == "rank" else "duplicate"
    )


def _selection(
    method: str, train: Labelled, valid: Labelled, C_grid: Floats, gamma_grid: Floats
) -> GridSelection:
    errors = []
    areas = []
    free = []
    for gamma in gamma_grid:
        width = _Width.of(train, gamma)
        judge = _Judge.of(width, valid)
        if method == "compare":
            path = width.path(1 / C_grid[-1])
            found = judge.compare(
                *width.solved(method, path, width.rows, width.labels, C_grid)
            )
            free += [(*best, gamma) for best in judge.best_of_all(path, 1 / C_grid[-1])]
        else:
            found = judge.rank(width.ranks(method, C_grid))
        errors.append(found[0])
        areas.append(found[1])
    # C, gamma
    error = np.array(errors).T
    area = np.array(areas).T
    if np.isinf(error).all():
        raise DegenerateBiasError(
            "beta is 0 or more on the whole grid; expected a larger C, or more ties"
        )
    places = [
        np.unravel_index(best, error.shape)
        for best in (np.argmin(error), np.argmax(area))
    ]
    by_error, by_auc = (
        _machine(method, C_grid[i], gamma_grid[j]).fit(*train) for i, j in places
    )
    every = None
    if free:
        _, C, gamma = min(free, key=lambda one: (one[0], -one[1]))
        every = _machine(method, C, gamma).fit(*train)
    return GridSelection(by_error, by_auc, int(np.isinf(error).sum()), every)


class _Width(NamedTuple):
    """Training pairs seen through the kernel of one width; also as flipped rows, better
    item first."""

    gamma: float
    kernel: ItemKernel
    gram: Floats  # (n, n)
    y: NDArray
    rows: Incidence  # of `Pairs.flipped`: preferences, ties, and ties swapped
    labels: NDArray

    @classmethod
    def of(cls, train: Labelled, gamma: float) -> _Width:
        kernel = ItemKernel.of(SVMRank(gamma=float(gamma)), train[0])
        flipped, labels = Pairs(kernel.items, kernel.B.index).flipped(train[1])
        return cls(
            gamma, kernel, kernel.gram(), train[1], flipped.B, labels.astype(np.float64)
        )

    def path(self, lambda_min: float) -> BinaryPath:
        """SVMCompare for each lambda."""
        every = np.arange(len(self.labels))
        return trusted_path(
            fixed(self.rows.gram(self.gram).block(every, every)),
            self.labels,
            lambda_min,
        )

    def ranks(self, method: str, C: Floats) -> tuple[Floats, Floats]:
        """Coefficients (n, k) and thresholds (k,) of SVMRank for each C."""
        every = np.arange(len(self.labels))
        preferences = np.flatnonzero(self.labels > 0)
        used = preferences if method == "rank" else np.append(preferences, every)
        pairs = Pairs(self.gram, self.rows.index[used])
        ones = np.ones(len(used), dtype=int)
        first = float(pairs.B.gram(self.gram).times(ones).max())
        end = max(0.0, min(1 / C.max(), first / 2))
        path = ranksvm_path(pairs, ones, "precomputed", lambda_min=end)
        coef, _ = self.solved(method, path, pairs.B, ones, C)
        z = self.kernel.B.differences(self.gram @ coef)
        return coef, np.array([clear_threshold(self.y, column) for column in z.T])

    def solved(
        self,
        method: str,
        path: BinaryPath | RankingPath,
        B: Incidence,
        signs: NDArray,
        C: Floats,
    ) -> tuple[Floats, Floats]:
        """Coefficients (n, k) of u, and beta (k,) where there is one, for each C."""
        coef = np.zeros((B.shape[1], len(C)))
        bias = np.zeros(len(C))
        for k, cost in enumerate(C):
            if 1 / cost >= path.lambda_end and path.kkt_residual(1 / cost) <= _SOUND:
                coef[:, k] = cost * B.adjoint(signs * path.alpha(1 / cost))
                bias[k] = path.bias(1 / cost) if isinstance(path, BinaryPath) else 0.0
                continue
            try:
                machine = _machine(method, cost, self.gamma)
                machine.fit(Pairs(self.kernel.items, self.kernel.B.index), self.y)
            except DegenerateBiasError:
                continue
            coef[:, k], bias[k] = (
                self.kernel.B.adjoint(machine.dual_coef_),
                getattr(machine, "bias_", 0.0),
            )
        return coef, bias


class _Judge(NamedTuple):
    """Pairs to judge by, and the kernel between their items and those of the training
    pairs."""

    width: _Width
    B: Incidence
    y: NDArray
    K: Floats

    @classmethod
    def of(cls, width: _Width, pairs: Labelled) -> _Judge:
        ids, B = pairs[0].B.compacted()
        return cls(
            width, B, pairs[1], width.kernel.functions.columns(pairs[0].items[ids])
        )

    def differences(self, coef: Floats) -> Floats:
        """Of the scores, for coefficients (n,) or (n, k)."""
        return self.B.differences(self.K @ coef)

    def rank(self, found: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """Errors and areas of functions with their thresholds."""
        z = self.differences(found[0]).T
        tau = found[1]
        errors = [
            comparison_loss(self.y, threshold(one, t))
            for one, t in zip(z, tau, strict=True)
        ]
        return np.array(errors), np.array([comparison_auc(self.y, one) for one in z])

    def compare(self, coef: Floats, bias: Floats) -> tuple[Floats, Floats]:
        """Errors and areas of -u / beta; infinite and minus infinity where that is no
        ranking function."""
        errors = np.full(len(bias), np.inf)
        areas = np.full(len(bias), -np.inf)
        good = bias < MAX_BETA
        errors[good], areas[good] = self.rank(
            (coef[:, good] / -bias[good], np.ones(good.sum()))
        )
        return errors, areas

    def best_of_all(
        self, path: BinaryPath, lambda_min: float
    ) -> list[tuple[float, float]]:
        """Error and C of the best lambda of the path, in the middle of its interval;
        none without one."""
        if len(path.breakpoints) == 0:
            return []
        rows, labels = Pairs(np.zeros((self.B.shape[1], 1)), self.B.index).flipped(
            self.y
        )
        columns = self.width.rows.differences(
            np.ascontiguousarray(rows.B.differences(self.K).T)
        ).T
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
        share = scaled[turns] / (scaled[turns] - scaled[turns + 1])
        edges = np.sort(
            np.append(edges, edges[turns] + share * (edges[turns + 1] - edges[turns]))
        )[::-1]
        middles = np.maximum(np.sqrt(edges[1:] * edges[:-1]), edges[1:])
        degenerate = np.array([path.bias(lam) >= MAX_BETA for lam in middles])
        if degenerate.all():
            return []
        losses = choice.losses[
            np.searchsorted(-choice.lambdas, -middles, side="right") - 1
        ]
        C = 1 / middles[[np.argmin(np.where(degenerate, np.inf, losses))]]
        width = self.width
        errors, _ = self.compare(
            *width.solved("compare", path, width.rows, width.labels, C)
        )
        return [(float(errors[0]), float(C[0]))]

"""One data set of the experiments in section 4 of [Venuto2017]_: learn, choose, judge.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from preflearn.checks import Floats
from preflearn.ground.gram import fixed
from preflearn.ground.kernels import kernel_matrix
from preflearn.metrics import comparison_auc
from preflearn.pairs import Pairs
from preflearn.path.binary import trusted_path
from preflearn.svm.selection import METHODS, SelectedMachine, select_on_grid


class Outcome(NamedTuple):
    """A method on one data set.

    Attributes
    ----------
    method : str
        One of `METHODS`, or "compare, every C", whose C is any up to the largest of the grid.
    test_error, test_auc : float
        Of the machine of least validation error; of the machine of largest validation AUC.
    machine : SelectedMachine
        That of least validation error.
    n_degenerate : int
        Points of the grid with beta >= 0.
    """

    method: str
    test_error: float
    test_auc: float
    machine: SelectedMachine
    n_degenerate: int


def compare_methods(
    train: tuple[Pairs, ArrayLike],
    valid: tuple[Pairs, ArrayLike],
    test: tuple[Pairs, ArrayLike],
    C_grid: ArrayLike,
    gamma_grid: ArrayLike,
) -> list[Outcome]:
    """rank, rank2 and compare with a Gaussian kernel, chosen on validation pairs and judged on test pairs.

    Parameters
    ----------
    train, valid, test : tuple of Pairs and array-like of shape (m,)
        Pairs and labels.
    C_grid, gamma_grid : array-like
        As in `select_on_grid`.

    Raises
    ------
    ValueError
        As `select_on_grid` does, or on bad test pairs or labels.
    DegenerateBiasError
        If no point of the grid makes a ranking function.
    """
    found = select_on_grid(train, valid, C_grid, gamma_grid)
    chosen = [(name, found[name].by_error, found[name].by_auc, found[name].n_degenerate) for name in METHODS]
    free = found["compare"].every_c or found["compare"].by_error
    return [
        Outcome(
            name,
            1 - by_error.score(*test),
            comparison_auc(test[1], by_auc.decision_function(test[0])),
            by_error,
            failed,
        )
        for name, by_error, by_auc, failed in [*chosen, ("compare, every C", free, free, 0)]
    ]


def direction_auc(
    train: tuple[Pairs, ArrayLike],
    valid: tuple[Pairs, ArrayLike],
    test: tuple[Pairs, ArrayLike],
    C_grid: ArrayLike,
    gamma_grid: ArrayLike,
) -> float:
    """Test AUC of SVMcompare's u itself, whatever the sign of its bias; C and gamma by validation AUC.

    The parameters are those of `compare_methods`. A C is left out where rounding ends the path above it.
    """
    rows, labels = train[0].flipped(train[1])
    lambdas, areas = 1 / np.asarray(C_grid, dtype=np.float64), []
    for gamma in np.asarray(gamma_grid, dtype=np.float64):
        K, *kernels = (_between(part, rows, float(gamma)) for part in (rows, valid[0], test[0]))
        path = trusted_path(fixed(K), labels.astype(np.float64), lambdas.min())
        for lam in lambdas[lambdas >= path.lambda_end]:
            z = [path.decision_function(lam, kernel) - path.bias(lam) for kernel in kernels]
            areas.append([comparison_auc(part[1], d) for part, d in zip((valid, test), z, strict=True)])
    return max(areas, key=lambda both: both[0])[1]


def _between(pairs: Pairs, others: Pairs, gamma: float) -> Floats:
    """B K B' of two lists of pairs, by the kernel between the items that occur in them."""
    (rows, B), (columns, others_b) = pairs.B.compacted(), others.B.compacted()
    K = kernel_matrix("rbf", others.items[columns], pairs.items[rows], gamma=gamma)
    return B.differences(others_b.differences(K).T)

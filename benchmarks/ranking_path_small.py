"""ranksvm_path against cvxpy on the 300 small problems of the tests, at 20 random
lambdas each, and its KKT.

python benchmarks/ranking_path_small.py     some minutes
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import cvxpy as cp
import numpy as np
from _measure import markdown_table
from sklearn.metrics.pairwise import pairwise_kernels

from preflearn.path import ranksvm_path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from small_problems import COUNT, KINDS, small_problem

# from twice the first breakpoint down to this part of it
LAMBDAS = 20
SPAN = 1e4


def reference(
    problem: cp.Problem, w: cp.Variable, rows: np.ndarray, lam: float
) -> tuple[np.ndarray, float]:
    """Margins and objective by an interior point, or by OSQP and its polishing: what is
    lower."""
    found = []
    exact = {"tol_gap_abs": 1e-15, "tol_gap_rel": 1e-15, "tol_feas": 1e-13}
    polished = {"eps_abs": 1e-11, "eps_rel": 1e-11, "max_iter": 20_000, "polish": True}
    for solver, options in ((cp.CLARABEL, exact), (cp.OSQP, polished)):
        try:
            problem.solve(solver=solver, **options)
        except cp.SolverError:
            continue
        margins = rows @ w.value
        objective = np.maximum(0, 1 - margins).sum() + lam / 2 * float(
            w.value @ w.value
        )
        found.append((objective, solver, margins))
    objective, _, margins = min(found)
    return margins, objective


def worst_deviations(seed: int) -> tuple[float, float, float, int]:
    """Of the differences Bf and of the objective from cvxpy's, of KKT at all
    breakpoints; their number."""
    pairs, y, kernel = small_problem(seed)
    path = ranksvm_path(pairs, y, **kernel)
    K = pairwise_kernels(pairs.items, metric=kernel.pop("kernel"), **kernel)
    values, vectors = np.linalg.eigh(K)
    rows = pairs.incidence() @ (vectors * np.sqrt(np.maximum(values, 0.0))) * y[:, None]
    w = cp.Variable(len(K))
    cost = cp.Parameter(nonneg=True)
    loss = cp.sum(cp.pos(1 - rows @ w))
    # its tolerance is one of |w|^2
    problem = cp.Problem(cp.Minimize(cost * loss + cp.sum_squares(w) / 2))
    start = path.breakpoints[0] if len(path.breakpoints) else 1.0
    margin = objective = 0.0
    for value in 2 * start * SPAN ** -np.random.default_rng(seed).random(LAMBDAS):
        cost.value = 1 / value
        margins, least = reference(problem, w, rows, value)
        margin = max(
            margin, np.abs(y * path.decision_function(value, pairs) - margins).max()
        )
        objective = max(objective, abs(path.objective(value) - least))
    kkt = max((path.kkt_residual(at) for at in path.breakpoints), default=0.0)
    return margin, objective, kkt, len(path.breakpoints)


def main() -> None:
    warnings.simplefilter("ignore")  # of a solver that gave up, where the other did not
    found = np.array([worst_deviations(seed) for seed in range(COUNT)])
    rows = []
    for k, kind in enumerate(KINDS):
        margin, objective, kkt, count = found[k :: len(KINDS)].T
        rows.append(
            [
                kind,
                len(count),
                int(count.sum()),
                *(f"{v.max():.0e}" for v in (margin, objective, kkt)),
            ]
        )
    rows.append(
        [
            "all",
            COUNT,
            int(found[:, 3].sum()),
            *(f"{value:.0e}" for value in found[:, :3].max(axis=0)),
        ]
    )
    print(
        markdown_table(
            [
                "kind",
                "problems",
                "breakpoints",
                "Bf",
                "objective",
                "KKT at breakpoints",
            ],
            rows,
        )
    )


if __name__ == "__main__":
    main()

"""Time svm_path against one fit and against 20 fits of libsvm, on the same Gram matrix.

python benchmarks/path.py           1,000 to 4,000 points; a few minutes, because libsvm is slow at large C
python benchmarks/path.py --quick   1,000 points
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _measure import alternate, markdown_table, peak_megabytes, script_parser
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from preflearn.datasets import simulate_norm_pairs
from preflearn.path import svm_path

REFITS = 20
REPEATS = 3
# of libsvm; its float32 kernel limits the residual to about 1e-6
TOLERANCE = 1e-8
# last C, gammas
CASES = {
    "flipped pairs": (1000.0, (0.1, 0.5, 2.0)),
    "points": (100.0, (0.02, 0.1, 0.5)),
}


class Problem(NamedTuple):
    """A binary problem with as many validation points as training points."""

    K: np.ndarray
    y: np.ndarray
    K_valid: np.ndarray
    y_valid: np.ndarray


def flipped_pairs(m: int, gamma: float) -> Problem:
    """The binary problem of SVMCompare: differences of m flipped pairs, half of the
    comparisons ties."""
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(2):
        data = simulate_norm_pairs("l2", round(m / 1.5), 0.5, rng)
        parts.append(data.pairs.flipped(data.y))
    (train, y), (valid, y_valid) = parts

    def gram(rows, columns):
        K = rbf_kernel(rows.items, columns.items, gamma=gamma)
        return columns.B.differences(rows.B.differences(K).T).T

    return Problem(gram(train, train), y, gram(valid, train), y_valid)


def points(m: int, gamma: float) -> Problem:
    """m points of five features around a curved boundary with label noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * m, 5))
    y = np.where(
        X[:, 0] + X[:, 1] ** 2 - 1 + 0.7 * rng.standard_normal(2 * m) > 0, 1, -1
    )
    K = rbf_kernel(X, X[:m], gamma=gamma)
    return Problem(K[:m], y[:m], K[m:], y[m:])


def make(kind: str, m: int, gamma: float) -> Problem:
    return flipped_pairs(m, gamma) if kind == "flipped pairs" else points(m, gamma)


def libsvm(problem: Problem, C: float) -> SVC:
    return SVC(C=C, kernel="precomputed", tol=TOLERANCE, cache_size=1000).fit(
        problem.K, problem.y
    )


def worst_kkt(problem: Problem, svc: SVC) -> float:
    """The optimality residual of a fit, as in RegularizationPath.kkt_residual."""
    f = svc.decision_function(problem.K)
    alpha = np.zeros(len(problem.y))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0]) / svc.C
    excess = problem.y * f - 1
    wrong = np.where(
        alpha == 0, -excess, np.where(alpha >= 1 - 1e-12, excess, np.abs(excess))
    )
    return float(max(0.0, wrong.max()) / max(1.0, np.abs(f).max()))


def prepared(method: str, file: str, last: float) -> Callable[[], object]:
    """A call without arguments that runs a method on the problem in a file.

    All code is compiled before.
    """
    problem = Problem(**np.load(file))
    svm_path(np.eye(4), [1, 1, 1, -1])  # Load compiled code.
    if method == "path":
        return lambda: svm_path(problem.K, problem.y, lambda_min=1 / last)
    return lambda: libsvm(problem, last)


def megabytes(problem: Problem, last: float) -> list[float]:
    """Growth of the peak memory of a process that has loaded the problem, by the path and
    by one fit."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "problem.npz")
        np.savez(file, **problem._replace(K_valid=np.zeros(0))._asdict())
        return [
            peak_megabytes(prepared, method, file, last) for method in ("path", "fit")
        ]


def compare(kind: str, m: int, gamma: float) -> list[object]:
    """One row of the table."""
    problem = make(kind, m, gamma)
    last = CASES[kind][0]
    path = svm_path(problem.K, problem.y, lambda_min=1 / last)
    chosen = 1 / path.select(problem.K_valid, problem.y_valid).lam
    costs = np.geomspace(1 / path.breakpoints[0], last, REFITS)
    calls: list[Callable[[], object]] = [
        lambda: svm_path(problem.K, problem.y, lambda_min=1 / last),
        lambda: libsvm(problem, last),
        lambda: libsvm(problem, chosen),
        lambda: [libsvm(problem, C) for C in costs],
    ]
    whole, at_last, at_chosen, refits = alternate(calls, REPEATS if m <= 1000 else 1)
    some = path.breakpoints[:: max(1, len(path.breakpoints) // 200)]
    residual = max(path.kkt_residual(lam) for lam in some)
    row = [
        kind,
        len(problem.y),
        gamma,
        len(path.breakpoints),
        whole,
        last,
        at_last,
        whole / at_last,
    ]
    row += [
        chosen,
        at_chosen,
        whole / at_chosen,
        refits,
        whole / refits,
        *megabytes(problem, last),
    ]
    row += [residual, worst_kkt(problem, libsvm(problem, last))]
    print(*row, flush=True)
    return row


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 points only")
    sizes = (1000,) if parser.parse_args().quick else (1000, 2000, 4000)
    header = [
        "problem",
        "size",
        "gamma",
        "breakpoints",
        "path s",
        "last C",
        "fit s",
        "path / fit",
    ]
    header += [
        "chosen C",
        "fit there s",
        "path / fit there",
        f"{REFITS} fits s",
        f"path / {REFITS} fits",
    ]
    header += ["path MB", "fit MB", "path KKT", "fit KKT"]
    rows = [
        compare(kind, m, gamma)
        for kind, (_, gammas) in CASES.items()
        for m in sizes
        for gamma in gammas
    ]
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()

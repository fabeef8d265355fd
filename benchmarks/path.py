"""svm_path against libsvm: the whole path, one fit, and 20 refits, on the same RBF Gram.

python benchmarks/path.py           1,000 to 4,000 points
python benchmarks/path.py --quick   500 and 1,000 points
"""

from __future__ import annotations

import argparse

import numpy as np
from _measure import alternate, markdown_table
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from preflearn.path import svm_path

LAMBDAS = np.geomspace(100.0, 0.01, 20)
REPEATS = 3


def problem(m: int, gamma: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """m points of five features around a curved boundary with label noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 5))
    y = np.where(X[:, 0] + X[:, 1] ** 2 - 1 + 0.7 * rng.standard_normal(m) > 0, 1, -1)
    return rbf_kernel(X, gamma=gamma), y


def libsvm(K: np.ndarray, y: np.ndarray, lam: float) -> SVC:
    """One fit to an accuracy of 1e-8."""
    return SVC(C=1 / lam, kernel="precomputed", tol=1e-8, cache_size=1000).fit(K, y)


def worst_kkt(K: np.ndarray, y: np.ndarray, svc: SVC) -> float:
    """The optimality residual of a fit, as in RegularizationPath.kkt_residual."""
    f, alpha = svc.decision_function(K), np.zeros(len(y))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0]) / svc.C
    excess = y * f - 1
    wrong = np.where(alpha == 0, -excess, np.where(alpha >= 1 - 1e-12, excess, np.abs(excess)))
    return float(max(0.0, wrong.max()) / max(1.0, np.abs(f).max()))


def compare(m: int, gamma: float) -> list[object]:
    """One row of the table."""
    K, y = problem(m, gamma)

    def whole() -> object:
        return svm_path(K, y, lambda_min=LAMBDAS[-1])

    def one() -> object:
        return libsvm(K, y, LAMBDAS[-1])

    def refits() -> object:
        return [libsvm(K, y, lam) for lam in LAMBDAS]

    path_seconds, one_seconds, refit_seconds = alternate([whole, one, refits], REPEATS)
    path = whole()
    residual = max(
        path.kkt_residual(lam) for lam in path.breakpoints[:: max(1, len(path.breakpoints) // 200)]
    )
    return [m, gamma, len(path.breakpoints), path_seconds, one_seconds, refit_seconds,
            path_seconds / one_seconds, path_seconds / refit_seconds,
            residual, worst_kkt(K, y, one())]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 1,000 points")
    sizes = (500, 1000) if parser.parse_args().quick else (1000, 2000, 4000)
    header = ["points", "gamma", "breakpoints", "path s", "one fit s", "20 fits s", "path / one fit",
              "path / 20 fits", "path KKT", "fit KKT"]  # fmt: skip
    print(markdown_table(header, [compare(m, gamma) for m in sizes for gamma in (0.02, 0.1, 0.5)]))


if __name__ == "__main__":
    main()

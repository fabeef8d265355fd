"""AdditiveAnalogy at a million pairs, and against machines on the dense Gram matrix.

python benchmarks/analogy_additive.py             up to 1,000,000 pairs, 10 features, some minutes
python benchmarks/analogy_additive.py --quick     up to 100,000 pairs
python benchmarks/analogy_additive.py --peers     libsvm and scikit-learn's logistic regression on the Gram
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from _measure import alternate, markdown_table, peak_megabytes
from scipy import linalg
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from preflearn.analogy import AdditiveAnalogy, AnalogyOperator, analogy_kernel

FEATURES = 10
TEST = 20_000  # pairs that are not learned from
PEERS = ("AdditiveAnalogy", "LogisticRegression, lbfgs", "SVC, hinge loss")


def problem(n: int, d: int = FEATURES) -> tuple[np.ndarray, np.ndarray]:
    """Differences of uniform features, and labels whose log-odds are sums of waves."""
    rng = np.random.default_rng(0)
    U = rng.uniform(0, 1, (n, d)) - rng.uniform(0, 1, (n, d))
    odds = 4 * sum(np.sin(3 * (k + 1) * U[:, k]) / (k + 1) for k in range(d))
    return U, np.where(rng.random(n) < expit(odds), 1, -1)


def trained(n: int, C: float, tol: float) -> Callable[[], AdditiveAnalogy]:
    U, y = problem(n)
    AdditiveAnalogy().fit(U[:100], y[:100])  # compiles
    return lambda: AdditiveAnalogy(C, tol=tol).fit(U, y)


def counted_products(
    call: Callable[[], AdditiveAnalogy],
) -> tuple[AdditiveAnalogy, float, int]:
    """The machine, its seconds, and the products with the Gram matrix that it took."""
    plain = AnalogyOperator.times
    count = 0

    def times(self: AnalogyOperator, v: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        return plain(self, v)

    AnalogyOperator.times = times  # pyright: ignore[reportAttributeAccessIssue]
    start = time.perf_counter()
    machine = call()
    seconds = time.perf_counter() - start
    AnalogyOperator.times = plain
    return machine, seconds, count


def growth(sizes: list[int], costs: list[float], tol: float) -> list[list[object]]:
    """One line a size and a cost."""
    table: list[list[object]] = []
    for n in sizes:
        V, labels = (part[n:] for part in problem(n + TEST))
        for C in costs:
            machine, seconds, products = counted_products(trained(n, C, tol))
            memory = peak_megabytes(trained, n, C, tol)
            wrong = np.mean(np.sign(machine.decision_function(V)) != labels)
            line = [
                n,
                C,
                seconds,
                memory,
                f"{machine.dual_gap_:.1e}",
                machine.n_iter_,
                products,
            ]
            table.append([*line, f"{100 * wrong:.2f} %"])
            print(*table[-1], flush=True)
    return table


def prepared(name: str, n: int, C: float) -> Callable[[], tuple[np.ndarray, float]]:
    """A call that learns n pairs, from their differences on, and gives the values f at
    them and |g|^2."""
    U, y = problem(n)
    # compiles, as does the next line
    AdditiveAnalogy().fit(U[:100], y[:100]).decision_function(U[:100])
    analogy_kernel(U[:100])

    def ours() -> tuple[np.ndarray, float]:
        machine = AdditiveAnalogy(C, tol=1e-6).fit(U, y)
        scores = machine.decision_function(U)
        return scores, float(machine.dual_coef_ @ (scores - machine.bias_))

    def regression() -> tuple[np.ndarray, float]:
        factor = linalg.cholesky(
            analogy_kernel(U) + 1e-12 * np.eye(n), lower=True, overwrite_a=True
        )
        machine = LogisticRegression(C=C, tol=1e-4, max_iter=2000).fit(factor, y)
        return machine.decision_function(factor), float(np.sum(machine.coef_**2))

    def libsvm() -> tuple[np.ndarray, float]:
        SVC(C=C, kernel="precomputed", cache_size=1000).fit(analogy_kernel(U), y)
        return np.full(n, np.nan), np.nan  # of another loss

    return dict(zip(PEERS, (ours, regression, libsvm), strict=True))[name]


def objective(found: tuple[np.ndarray, float], n: int, C: float) -> float:
    scores, square = found
    return square / 2 + C * float(np.logaddexp(0, -problem(n)[1] * scores).sum())


def against_peers(sizes: list[int], C: float, repeats: int) -> list[list[object]]:
    """One line a size and a machine; the sizes of the Gram matrix and its factor count
    as memory."""
    table: list[list[object]] = []
    for n in sizes:
        calls = [prepared(name, n, C) for name in PEERS]
        seconds = alternate(calls, repeats if n <= 2000 else 1)
        losses = [objective(call(), n, C) for call in calls[:2]]
        for k, name in enumerate(PEERS):
            memory = peak_megabytes(prepared, name, n, C)
            loss = f"{losses[k] / losses[0] - 1:+.1e}" if k < 2 else "another loss"
            table.append([n, name, seconds[k], seconds[k] / seconds[0], memory, loss])
            print(*table[-1], flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="up to 100,000 pairs only")
    parser.add_argument(
        "--peers", action="store_true", help="against machines on the Gram matrix"
    )
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if options.peers:
            sizes = [100, 300, 1000, 2000] + [5000, 10_000] * (not options.quick)
            table = against_peers(sizes, 1.0, 5)
            header = [
                "pairs",
                "machine",
                "s",
                "of ours",
                "MB",
                "objective against ours",
            ]
        else:
            sizes = [10_000, 100_000] + [1_000_000] * (not options.quick)
            table = growth(sizes, [0.1, 1.0, 10.0, 100.0], 1e-3)
            header = [
                "pairs",
                "C",
                "s",
                "MB",
                "relative gap",
                "steps",
                "products",
                "test error",
            ]
    print(markdown_table(header, table))


if __name__ == "__main__":
    main()

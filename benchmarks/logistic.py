"""Time LogisticCompare against SVMCompare and scikit-learn.

The reference is logistic regression on all flipped differences.

python benchmarks/logistic.py             up to 1,000,000 pairs of 100,000 items, 50 features
python benchmarks/logistic.py --quick     20,000 pairs of 2,000 items
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from _measure import markdown_table, peak_megabytes, script_parser
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from svm import problem

from preflearn.pairs import Pairs
from preflearn.svm import LogisticCompare, SVMCompare

ALPHA = 1e-4
TEST = 20_000  # test pairs


class Fit(NamedTuple):
    """A fit u·d + beta of pairs. Its ranking function is -u·x / beta."""

    u: np.ndarray
    bias: float


def logistic(pairs: Pairs, y: np.ndarray) -> Fit:
    """LogisticCompare of preflearn."""
    model = LogisticCompare(ALPHA).fit(pairs, y)
    return Fit(model.weights_, model.bias_)


def svm(pairs: Pairs, y: np.ndarray) -> Fit:
    """SVMCompare of preflearn: the hinge loss with the same regularization."""
    model = SVMCompare(1 / (ALPHA * (len(y) + np.count_nonzero(y == 0))), "linear").fit(
        pairs, y
    )
    return Fit(-model.bias_ * model.coef_, model.bias_)


def regression(solver: str) -> Callable[[Pairs, np.ndarray], Fit]:
    """LogisticRegression of scikit-learn on the matrix of all flipped differences."""

    def fit(pairs: Pairs, y: np.ndarray) -> Fit:
        flipped, labels = pairs.flipped(y)
        model = LogisticRegression(
            C=1 / (ALPHA * len(labels)), solver=solver, tol=1e-4, max_iter=100
        )
        model.fit(flipped.differences(), labels)
        return Fit(model.coef_[0], float(np.ravel(model.intercept_)[0]))

    return fit


METHODS: dict[str, Callable[[Pairs, np.ndarray], Fit]] = {
    "LogisticCompare": logistic,
    "SVMCompare": svm,
    "LogisticRegression, newton-cholesky": regression("newton-cholesky"),
    "LogisticRegression, saga": regression("saga"),
}


def objective(fit: Fit, pairs: Pairs, y: np.ndarray) -> float:
    """The regularized logistic loss that LogisticCompare minimizes."""
    flipped, labels = pairs.flipped(y)
    z = labels * (fit.bias + flipped.B.differences(flipped.items @ fit.u))
    return float(np.logaddexp(0, -z).mean() + ALPHA / 2 * fit.u @ fit.u)


def error(fit: Fit, pairs: Pairs, y: np.ndarray) -> float:
    """The zero-one loss of the comparison function."""
    z = pairs.B.differences(pairs.items @ (-fit.u / fit.bias))
    return float(np.mean(np.where(np.abs(z) > 1, np.sign(z), 0) != y))


def prepared(method: str, m: int, n: int, p: int) -> Callable[[], Fit]:
    """A call without arguments that fits a method to the first m pairs."""
    pairs, y = problem(m + TEST, n, p)
    train = pairs[:m]
    labels = y[:m]
    return lambda: METHODS[method](train, labels)


def lines(m: int, n: int, p: int) -> list[list[object]]:
    """One row per method on one problem."""
    pairs, y = problem(m + TEST, n, p)
    table = []
    first = None
    for method in METHODS:
        call = prepared(method, m, n, p)
        start = time.perf_counter()
        fit = call()
        seconds = time.perf_counter() - start
        loss = objective(fit, pairs[:m], y[:m])
        first = loss if first is None else first
        memory = peak_megabytes(prepared, method, m, n, p)
        wrong = f"{100 * error(fit, pairs[m:], y[m:]):.2f} %"
        table.append(
            [m, n, p, method, seconds, memory, f"{loss / first - 1:+.1e}", wrong]
        )
        print(*table[-1], flush=True)
    return table


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="20,000 pairs only")
    table = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        sizes = [(20_000, 2_000, 50)]
        if not parser.parse_args().quick:
            sizes.append((1_000_000, 100_000, 50))
        for size in sizes:
            table += lines(*size)
    header = [
        "pairs",
        "items",
        "features",
        "method",
        "s",
        "MB",
        "excess logistic objective",
        "test error",
    ]
    print(markdown_table(header, table))


if __name__ == "__main__":
    main()

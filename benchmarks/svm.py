"""Compare SVMCompare with libsvm and liblinear, as scikit-learn calls them.

The script measures time, memory, and the objective.

python benchmarks/svm.py             kernels up to 20,000 pairs, linear up to 1,000,000 (libsvm needs 12 GB)
python benchmarks/svm.py --quick     kernels up to 2,000 pairs, linear up to 20,000
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from _measure import markdown_table, peak_megabytes, script_parser
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC, LinearSVC

from preflearn.core.kernels import pivoted_features
from preflearn.pairs import Pairs
from preflearn.svm import SVMCompare

COST = 1.0
GAMMA = 0.2
BIAS_SCALE = 10.0  # liblinear penalizes the bias by 1 over the square of this


class Fit(NamedTuple):
    """The solution of a solver: u·d of the pairs, |u|^2, and beta."""

    values: np.ndarray
    squared_norm: float
    bias: float


def problem(m: int, n: int, p: int, seed: int = 0) -> tuple[Pairs, np.ndarray]:
    """m noisy comparisons of n items with a smooth score. Half of the pairs are ties."""
    rng = np.random.default_rng(seed)
    items = rng.standard_normal((n, p))
    scores = items @ rng.standard_normal(p) / np.sqrt(p) + np.sin(items[:, 0])
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    differences = scores[first] - scores[second] + 0.5 * rng.standard_normal(m)
    y = np.where(
        np.abs(differences) < np.median(np.abs(differences)), 0, np.sign(differences)
    )
    return Pairs(items, np.column_stack([first, second])), y.astype(int)


# Load compiled code in each process before measuring.
SVMCompare().fit(*problem(50, 30, 2))


def objective(fit: Fit, y: np.ndarray) -> float:
    """The objective of eq. 15 at the solution of a solver."""
    z = fit.values
    beta = fit.bias
    preferred = np.maximum(0, 1 - beta - y * z)[y != 0].sum()
    tied = (np.maximum(0, 1 + beta + z) + np.maximum(0, 1 + beta - z))[y == 0].sum()
    return fit.squared_norm / 2 + COST * float(preferred + tied)


def compare(kernel: str, pairs: Pairs, y: np.ndarray) -> Fit:
    """SVMCompare of preflearn."""
    model = SVMCompare(COST, kernel, gamma=GAMMA).fit(pairs, y)
    values = -model.bias_ * model.decision_function(pairs)
    return Fit(values, float(model.dual_coef_ @ values), model.bias_)


def rows_of_flipped(fit_values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The u·d of the pairs, from the u·d of the flipped pairs.

    The flipped pairs are in the order of `Pairs.flipped`.
    """
    values = np.empty(len(y))
    positive, negative, tied = (np.flatnonzero(y == label) for label in (1, -1, 0))
    ends = np.cumsum([len(positive), len(negative), len(tied)])
    values[positive], values[negative] = (
        fit_values[: ends[0]],
        -fit_values[ends[0] : ends[1]],
    )
    values[tied] = fit_values[ends[1] : ends[2]]
    return values


def from_classifier(
    model: SVC | LinearSVC, decisions: np.ndarray, squared: float, y: np.ndarray
) -> Fit:
    bias = float(np.ravel(model.intercept_)[0])
    return Fit(rows_of_flipped(decisions - bias, y), squared, bias)


def straightforward(kernel: str, pairs: Pairs, y: np.ndarray) -> Fit:
    """Algorithm 1 as published: the kernel matrix of all flipped items, M'KM, libsvm."""
    flipped, labels = pairs.flipped(y)
    both = np.vstack([flipped.second, flipped.first])
    m = len(labels)
    K = pairwise_kernels(both, metric=kernel, filter_params=True, gamma=GAMMA)
    gram = K[:m, :m] - K[:m, m:] - K[m:, :m] + K[m:, m:]
    model = SVC(C=COST, kernel="precomputed").fit(gram, labels)
    decisions = model.decision_function(gram)
    squared = float(
        model.dual_coef_[0] @ (decisions - model.intercept_)[model.support_]
    )
    return from_classifier(model, decisions, squared, y)


def libsvm_on_indexed_gram(kernel: str, pairs: Pairs, y: np.ndarray) -> Fit:
    """libsvm on K-tilde, which is indexed from the Gram matrix of the items."""
    flipped, labels = pairs.flipped(y)
    K = pairwise_kernels(pairs.items, metric=kernel, filter_params=True, gamma=GAMMA)
    every = np.arange(len(labels))
    gram = flipped.B.gram(K).block(every, every)
    model = SVC(C=COST, kernel="precomputed").fit(gram, labels)
    decisions = model.decision_function(gram)
    squared = float(
        model.dual_coef_[0] @ (decisions - model.intercept_)[model.support_]
    )
    return from_classifier(model, decisions, squared, y)


def libsvm_on_features(kernel: str, pairs: Pairs, y: np.ndarray) -> Fit:
    """libsvm with its own kernel and cache, without a matrix over pairs."""
    flipped, labels = pairs.flipped(y)
    K = pairwise_kernels(pairs.items, metric=kernel, filter_params=True, gamma=GAMMA)
    L, _ = pivoted_features(K)
    d = flipped.B.differences(L)
    model = SVC(C=COST, kernel="linear").fit(d, labels)
    u = model.coef_[0]
    return from_classifier(model, d @ u + model.intercept_, float(u @ u), y)


def liblinear(_: str, pairs: Pairs, y: np.ndarray) -> Fit:
    """Dual coordinate descent of liblinear.

    It penalizes the bias, so the objective is only approximately that of eq. 15.
    """
    flipped, labels = pairs.flipped(y)
    d = flipped.differences()
    model = LinearSVC(
        C=COST, loss="hinge", intercept_scaling=BIAS_SCALE, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(d, labels)
    u = model.coef_[0]
    return from_classifier(model, d @ u + model.intercept_, float(u @ u), y)


METHODS: dict[str, Callable[[str, Pairs, np.ndarray], Fit]] = {
    "SVMCompare": compare,
    "Algorithm 1": straightforward,
    "libsvm, indexed Gram": libsvm_on_indexed_gram,
    "libsvm, features": libsvm_on_features,
    "liblinear": liblinear,
}


def prepared(method: str, kernel: str, m: int, n: int, p: int) -> Callable[[], Fit]:
    """A call without arguments that solves this problem with this method."""
    data = problem(m, n, p)
    return lambda: METHODS[method](kernel, *data)


def lines(
    kernel: str, m: int, n: int, p: int, references: list[str]
) -> list[list[object]]:
    """One row per method on one problem, preflearn first."""
    table = []
    least = None
    _, y = problem(m, n, p)
    for method in ["SVMCompare", *references]:
        call = prepared(method, kernel, m, n, p)
        start = time.perf_counter()
        fit = call()
        seconds = time.perf_counter() - start
        memory = peak_megabytes(prepared, method, kernel, m, n, p)
        value = objective(fit, y)
        least = value if least is None else least
        table.append(
            [kernel, m, n, p, method, seconds, memory, f"{value / least - 1:+.1e}"]
        )
        print(*table[-1], flush=True)
    return table


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="small problems only")
    quick = parser.parse_args().quick
    gram_references = ["Algorithm 1", "libsvm, indexed Gram", "libsvm, features"]
    table = lines("rbf", 500, 1_000, 2, gram_references)
    table += lines("rbf", 2_000, 500, 10, gram_references)
    table += lines("linear", 20_000, 2_000, 50, ["liblinear"])
    if not quick:
        table += lines("rbf", 5_000, 2_000, 10, ["libsvm, indexed Gram"])
        table += lines("rbf", 20_000, 2_000, 10, ["libsvm, indexed Gram"])
        table += lines("linear", 1_000_000, 100_000, 50, ["liblinear"])
    header = [
        "kernel",
        "pairs",
        "items",
        "features",
        "method",
        "s",
        "MB",
        "excess objective",
    ]
    print(markdown_table(header, table))


if __name__ == "__main__":
    main()

"""Time smooth losses and the linear program with slack, by numbers of pairs and items.

python benchmarks/regimes_losses.py             all
python benchmarks/regimes_losses.py --quick     a tenth of the pairs

The reference is L-BFGS of SciPy with gradients through the scores of the items, at its
default tolerance and at 1e-13. The times are processor seconds of one thread, the best
of two runs. The last column is the relative excess over the best objective.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from _measure import markdown_table, peak_megabytes, processor_seconds, script_parser
from scipy.optimize import minimize
from sklearn.kernel_approximation import RBFSampler

from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison
from preflearn.svm import LogisticCompare, LPCompare

Problem = tuple[Pairs, np.ndarray]
GAMMA = 0.05
COMPONENTS = 300


def problem(m: int, n: int, p: int, condition: float = 1.0) -> Problem:
    """Noisy comparisons of n items, half of them ties.

    With p = 0, the items are the rows of the identity matrix.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) if p else np.eye(n)
    scores = X @ rng.standard_normal(X.shape[1]) / np.sqrt(p or 1)
    if p:
        turn = np.linalg.qr(rng.standard_normal((p, p)))[0]
        X = X @ (turn * np.geomspace(1, 1 / condition, p)) @ turn.T
    first = rng.integers(0, n, m)
    pairs = Pairs(X, np.column_stack([first, (first + rng.integers(1, n, m)) % n]))
    d = pairs.B.differences(scores) + 0.5 * rng.standard_normal(m)
    return pairs, np.where(np.abs(d) < np.median(np.abs(d)), 0, np.sign(d)).astype(
        np.int8
    )


def logistic(alpha: float, kernel: str, pairs: Pairs, y: np.ndarray) -> float:
    return (
        LogisticCompare(alpha, kernel, gamma=GAMMA, random_state=0).fit(pairs, y).loss_
    )


def lbfgs(
    alpha: float, kernel: str, ftol: float, gtol: float, pairs: Pairs, y: np.ndarray
) -> float:
    """The same objective, with its gradient, in one pass over the pairs."""
    X = pairs.items
    ties = y == 0
    if kernel == "rbf":
        sampler = RBFSampler(gamma=GAMMA, n_components=COMPONENTS, random_state=0)
        X = sampler.fit_transform(X - X.mean(axis=0))
    first, second = (np.ascontiguousarray(column) for column in pairs.index.T)
    n = len(X)
    rows = len(y) + ties.sum()

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        scores = X @ x[:-1]
        d = scores[first] - scores[second]
        u = np.where(ties, x[-1] + d, -(x[-1] + y * d))
        v = x[-1] - d
        small = np.exp(-np.abs(u))
        other = np.exp(-np.abs(v))
        value = np.sum(np.maximum(u, 0) + np.log1p(small))
        value += np.sum((np.maximum(v, 0) + np.log1p(other)) * ties)
        q = np.where(u > 0, 1, small) / (1 + small)
        r = np.where(v > 0, 1, other) / (1 + other) * ties
        slope = np.where(ties, q - r, -y * q)
        of_bias = np.where(ties, q + r, -q).sum()
        pull = X.T @ (np.bincount(first, slope, n) - np.bincount(second, slope, n))
        gradient = np.append(pull / rows + alpha * x[:-1], of_bias / rows)
        return value / rows + alpha / 2 * (x[:-1] @ x[:-1]), gradient

    options = {"maxiter": 2000, "maxfun": 4000, "ftol": ftol, "gtol": gtol}
    return minimize(
        loss, np.zeros(X.shape[1] + 1), jac=True, method="L-BFGS-B", options=options
    ).fun


def ties(model: Davidson | OrdinalComparison, pairs: Pairs, y: np.ndarray) -> float:
    return model.fit(pairs, y).objective_


def program(radius: float, pairs: Pairs, y: np.ndarray) -> float:
    return -LPCompare(0.5, radius, gamma=0.1).fit(pairs, y).objective_


Call = Callable[[Pairs, np.ndarray], float]
TIGHT = (1e-13, 1e-9)
DEFAULT = (2.2e-9, 1e-5)


def regimes(scale: int) -> list[tuple[str, tuple, Call, Sequence[tuple[str, Call]]]]:
    """Name, problem, the method of preflearn, and the reference methods by name."""
    lines = []
    for name, kernel, alpha, size in [
        (
            "LogisticCompare, n 20,000, p 50",
            "linear",
            1e-4,
            (10**6 // scale, 20_000, 50),
        ),
        (
            "LogisticCompare, n 2,000, p 300",
            "linear",
            1e-4,
            (10**5 // scale, 2_000, 300),
        ),
        (
            "LogisticCompare, n 5,000, 300 Fourier features",
            "rbf",
            1e-5,
            (10**5 // scale, 5_000, 10),
        ),
        (
            "LogisticCompare, n 2,000, p 30, condition 1,900",
            "linear",
            1e-8,
            (10**5 // scale, 2_000, 30, 1900),
        ),
    ]:
        others = [
            ("L-BFGS", partial(lbfgs, alpha, kernel, *DEFAULT)),
            ("L-BFGS, tight", partial(lbfgs, alpha, kernel, *TIGHT)),
        ]
        lines.append((name, size, partial(logistic, alpha, kernel), others))
    for model in (Davidson(1.0), OrdinalComparison(alpha=1.0)):
        for size in ((10**5 // scale, 2_000, 0), (10**6 // scale, 20_000, 10)):
            name = f"{type(model).__name__}, n {size[1]:,}, " + (
                f"p {size[2]}" if size[2] else "one-hot"
            )
            lines.append((name, size, partial(ties, model), []))
    lines.append(
        (
            "LPCompare, n 2,000, RBF",
            (10**4 // scale, 2_000, 10),
            partial(program, 10.0),
            [],
        )
    )
    return lines


def prepared(call: Call, size: tuple) -> Callable[[], float]:
    data = problem(*size)
    return lambda: call(*data)


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the pairs")
    scale = 10 if parser.parse_args().quick else 1
    table = []
    for name, size, ours, others in regimes(scale):
        data = problem(*size)
        methods = [("ours", ours), *others]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [processor_seconds(partial(call, *data), 2) for _, call in methods]
        best = min(value for _, value in found)
        for (method, call), (seconds, value) in zip(methods, found, strict=True):
            memory = peak_megabytes(prepared, call, size)
            above = f"{value / best - 1:.0e}"
            table.append(
                [size[0], name, method, seconds, found[0][0] / seconds, memory, above]
            )
            print(*table[-1], flush=True)
    print(
        markdown_table(
            ["pairs", "problem", "method", "s", "ours / other", "MB", "excess"], table
        )
    )


if __name__ == "__main__":
    main()

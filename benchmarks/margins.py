"""Compare MarginQP with scikit-learn's SVC, and MarginLP with cvxpy.

The script measures time, memory, and the objective.

python benchmarks/margins.py             100 to 20,000 pairs
python benchmarks/margins.py --quick     100 and 1,000 pairs
python benchmarks/margins.py --solvers   why each solver was chosen
"""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np
from _measure import alternate, markdown_table, peak_megabytes, script_parser
from sklearn.svm import SVC

from preflearn.margins import MarginLP, MarginQP
from preflearn.pairs import Pairs

FEATURES = 10
REPEATS = 5


def problem(m: int, p: int = FEATURES, seed: int = 0) -> tuple[Pairs, np.ndarray]:
    """m separable pairs, half of them ties, with a moderate margin along a random
    direction."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(p)
    w /= np.linalg.norm(w)
    d = rng.standard_normal((m, p))
    values = d @ w
    boundary = np.median(np.abs(values))
    y = np.where(np.abs(values) < boundary, 0, np.sign(values)).astype(int)
    d += np.outer(0.3 * boundary * y, w)
    second = rng.standard_normal((m, p))
    return Pairs.from_arrays(second + d, second), y


def split(pairs: Pairs, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Differences of preferences, better minus worse, and differences of ties."""
    d = pairs.differences()
    return d[y != 0] * y[y != 0][:, None], d[y == 0]


def mu_of(w: np.ndarray, pairs: Pairs, y: np.ndarray) -> float:
    """The margin of the LP in direction w."""
    preferences, ties = split(pairs, y)
    s = (preferences @ w).min()
    t = np.abs(ties @ w).max()
    return float((s - t) / (s + t))


def distance_of(u: np.ndarray, pairs: Pairs, y: np.ndarray) -> float:
    """The distance between the hulls in direction u, which is the objective of the QP."""
    preferences, ties = split(pairs, y)
    return float(((preferences @ u).min() - np.abs(ties @ u).max()) / np.linalg.norm(u))


def svc(pairs: Pairs, y: np.ndarray) -> np.ndarray:
    """SVC with a large C on the flipped differences, eq. 8."""
    flipped, labels = pairs.flipped(y)
    return SVC(kernel="linear", C=1e6).fit(flipped.differences(), labels).coef_[0]


def cvxpy_lp(pairs: Pairs, y: np.ndarray, solver: str | None = None) -> np.ndarray:
    """Eq. 7 as written, in cvxpy."""
    preferences, ties = split(pairs, y)
    w = cp.Variable(pairs.shape[2])
    mu = cp.Variable(nonneg=True)
    limits = [mu <= 1 - cp.abs(ties @ w), mu <= preferences @ w - 1]
    with np.errstate(invalid="ignore"):  # cvxpy multiplies infinite bounds by zero.
        cp.Problem(cp.Maximize(mu), limits).solve(solver=solver)
    return np.asarray(w.value)


METHODS: dict[str, Callable[[Pairs, np.ndarray], np.ndarray]] = {
    "MarginQP": lambda pairs, y: MarginQP().fit(pairs, y).u_,
    "MarginLP": lambda pairs, y: MarginLP().fit(pairs, y).coef_,
    "SVC": svc,
    "cvxpy": cvxpy_lp,
    "cvxpy, HiGHS": lambda pairs, y: cvxpy_lp(pairs, y, cp.HIGHS),
}


def prepared(method: str, m: int, p: int = FEATURES) -> Callable[[], np.ndarray]:
    """A call without arguments that solves this problem with this method."""
    data = problem(m, p)
    return lambda: METHODS[method](*data)


def references(sizes: list[int]) -> str:
    """One row per problem, size, and other program."""
    lines = []
    matches = (
        ("QP", "MarginQP", "SVC"),
        ("LP", "MarginLP", "cvxpy"),
        ("LP", "MarginLP", "cvxpy, HiGHS"),
    )
    for kind, ours, reference in matches:
        objective = distance_of if kind == "QP" else mu_of
        for m in sizes:
            calls = [prepared(ours, m), prepared(reference, m)]
            seconds = alternate(calls, REPEATS)
            memory = [peak_megabytes(prepared, name, m) for name in (ours, reference)]
            values = [objective(call(), *problem(m)) for call in calls]
            difference = f"{(values[1] - values[0]) / values[0]:+.1e}"
            lines.append(
                [
                    f"{kind} against {reference}",
                    m,
                    *seconds,
                    seconds[1] / seconds[0],
                    *memory,
                    difference,
                ]
            )
    header = [
        "problem",
        "pairs",
        "ours s",
        "other s",
        "ratio",
        "ours MB",
        "other MB",
        "objective of the other",
    ]
    return markdown_table(header, lines)


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="100 and 1,000 pairs only")
    arguments = parser.parse_args()
    sizes = [100, 1_000] if arguments.quick else [100, 1_000, 5_000, 20_000]
    print(references(sizes))


if __name__ == "__main__":
    main()

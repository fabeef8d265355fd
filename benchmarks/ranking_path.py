"""Time ranksvm_path on complete graphs against fits of SVMRank.

python benchmarks/ranking_path.py              the four data sets, RBF and linear kernels
python benchmarks/ranking_path.py --refits     also with 100 fits without warm start (many minutes)
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from _measure import alternate, markdown_table, peak_megabytes, script_parser
from sklearn.metrics.pairwise import pairwise_kernels

from preflearn import datasets
from preflearn.core.gram import centred
from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path
from preflearn.svm import SVMRank

SPAN = 1e4  # ratio of the first and the last lambda
REFITS = 100


class Case(NamedTuple):
    """Preferences, with the better item first, and their kernel."""

    pairs: Pairs
    kernel: str
    gamma: float

    def path(self, span: float = SPAN):
        """The path from its first breakpoint down to this fraction of it."""
        return trace(self, lambda_min=first_breakpoint(self) / span)


def trace(case: Case, **arguments):
    pairs, kernel, gamma = case
    return ranksvm_path(
        pairs, np.ones(len(pairs), dtype=int), kernel, gamma=gamma, **arguments
    )


def first_breakpoint(case: Case) -> float:
    return float(trace(case, max_events=1).breakpoints[0])


def of_scores(X, scores, kernel: str, gamma: float | None = None) -> Case:
    """All pairs with different scores, with the better item first.

    Features are standardized, and gamma is 1/p.
    """
    X = np.asarray(X, dtype=float)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    pairs, y = Pairs.from_scores(X, scores)
    index = np.where((y > 0)[:, None], pairs.index, pairs.index[:, ::-1])
    return Case(Pairs(X, index), kernel, gamma or 1 / X.shape[1])


def data_case(name: str, kernel: str) -> Case:
    data = {
        "mixture": datasets.load_mixture,
        "Auto": datasets.load_auto,
        "Cancer": datasets.load_cancer,
        "Diabetes": datasets.load_diabetes,
    }[name]()
    return of_scores(data.X, data.scores, kernel)


# ---- One fit: minimize sum(slack) + lambda/2 |w|^2 with scores f = L w, K = L L', and sparse rows P f


def residual(case: Case, alpha: np.ndarray, lam: float) -> float:
    """max |alpha - clip(alpha + 1 - Pf, 0, 1)|, where f belongs to alpha."""
    K = centred(
        pairwise_kernels(
            case.pairs.items, metric=case.kernel, gamma=case.gamma, filter_params=True
        )
    )
    margins = case.pairs.B.gram(K).times(alpha) / lam
    return float(np.abs(alpha - np.clip(alpha + 1 - margins, 0, 1)).max())


def by_us(case: Case, lam: float):
    pairs, kernel, gamma = case
    model = SVMRank(C=1 / lam, kernel=kernel, gamma=gamma).fit(
        pairs, np.ones(len(pairs), dtype=int)
    )
    return model.dual_coef_ * lam


def solved_residual(case: Case, lam: float) -> float:
    return residual(case, np.clip(by_us(case, lam), 0.0, 1.0), lam)


# ---- Refits


def cold_refits(case: Case, lams: np.ndarray) -> float:
    start = time.perf_counter()
    for lam in lams:
        by_us(case, lam)
    return time.perf_counter() - start


# ---- Tables


def margin_sets(path) -> np.ndarray:
    """The size of the margin set after each event."""
    return np.cumsum([1 if kind == "enter" else -1 for _, _, kind in path.events])


def make_path(name: str, kernel: str) -> Callable[[], object]:
    case = data_case(name, kernel)
    trace(case, max_events=10)  # Compile before memory is measured.
    return case.path


def row(name: str, case: Case, repeats: int, megabytes: float) -> list[object]:
    path = case.path()
    lam = path.lambda_end
    seconds, solve = alternate([case.path, lambda: by_us(case, lam)], repeats)
    solved = solved_residual(case, lam)
    sizes = margin_sets(path)
    count = len(path.breakpoints)
    some = path.breakpoints[:: max(1, count // 500)]
    worst = max(path.kkt_residual(at) for at in some)
    m = len(path.alpha(lam))
    margin_set = f"{sizes.mean():.0f}, {sizes.max()}"
    return [
        name,
        m,
        count,
        count / m,
        margin_set,
        seconds,
        1e6 * seconds / count,
        megabytes,
        f"{worst:.0e}",
        solve,
        f"{solved:.0e}",
        seconds / solve,
        path.status,
    ]


HEADER = [
    "case",
    "pairs",
    "breakpoints",
    "per pair",
    "margin set: mean, largest",
    "path, s",
    "µs per event",
    "MB",
    "KKT, path",
    "SVMRank once, s",
    "KKT, SVMRank",
    "path / once",
    "status",
]


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--refits", action="store_true", help="with 100 refits")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ["mixture", "Auto", "Cancer", "Diabetes"]
    cases = [(name, kernel) for name in names for kernel in ("rbf", "linear")]
    if options.refits:
        refits(cases)
        return
    rows = []
    for name, kernel in cases:
        memory = peak_megabytes(make_path, name, kernel)
        rows.append(row(f"{name}, {kernel}", data_case(name, kernel), 3, memory))
    print(markdown_table(HEADER, rows))


def refits(cases: list[tuple[str, str]]) -> None:
    rows = []
    for name, kernel in cases:
        case = data_case(name, kernel)
        start = first_breakpoint(case)
        lams = np.geomspace(start, start / SPAN, REFITS)
        (path,) = alternate([case.path], 1)
        cold = cold_refits(case, lams)
        rows.append([f"{name}, {kernel}", path, cold, cold / path])
        print(rows[-1], flush=True)
    print(markdown_table(["case", "path, s", "100 fits, s", "fits / path"], rows))


if __name__ == "__main__":
    main()

"""ranksvm_path on full graphs against one solve by the best solver, and against 100
cold and warm refits.

python benchmarks/ranking_path.py              the four data sets, RBF and linear kernels
python benchmarks/ranking_path.py --quick      the mixture only
python benchmarks/ranking_path.py --refits     with 100 cold and 100 warm refits (many minutes)
python benchmarks/ranking_path.py --hard       constructed cases
python benchmarks/ranking_path.py --growth     sub-samples of Auto
python benchmarks/ranking_path.py --kkt        the optimality conditions at every breakpoint (an hour)
python benchmarks/ranking_path.py --peers      one solve by Clarabel, OSQP and PIQP (those that are installed)
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from _measure import alternate, markdown_table, peak_megabytes
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from preflearn import datasets
from preflearn.core.gram import centred
from preflearn.core.kernels import pivoted_features
from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path
from preflearn.solvers.hinge_dual import HingeTerms, maximise
from preflearn.svm import SVMRank
from preflearn.svm.kernel_problem import KernelProblem

SPAN = 1e4  # from the first breakpoint to the end
REFITS = 100
PATIENCE = 30.0  # seconds for one solve by a peer


class Case(NamedTuple):
    """Preferences, first item better, and their kernel."""

    pairs: Pairs
    kernel: str
    gamma: float

    def path(self, span: float = SPAN):
        """The path from its first breakpoint down to this part of it."""
        return trace(self, lambda_min=first_breakpoint(self) / span)


def trace(case: Case, **arguments):
    pairs, kernel, gamma = case
    return ranksvm_path(
        pairs, np.ones(len(pairs), dtype=int), kernel, gamma=gamma, **arguments
    )


def first_breakpoint(case: Case) -> float:
    return float(trace(case, max_events=1).breakpoints[0])


def of_scores(X, scores, kernel: str, gamma: float | None = None) -> Case:
    """All pairs with different scores, better item first; features standardised, gamma
    = 1/p."""
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


def noise(n: int, p: int, kernel: str, gamma: float | None = None) -> Case:
    rng = np.random.default_rng(0)
    return of_scores(rng.standard_normal((n, p)), rng.random(n) < 0.5, kernel, gamma)


def sparse_graph(n: int, m: int) -> Case:
    """Few pairs of many items."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5))
    first = rng.integers(n, size=m)
    second = (first + rng.integers(1, n, size=m)) % n
    better = X[first] @ np.ones(5) + 2 * rng.standard_normal(m) > X[second] @ np.ones(5)
    index = np.where(
        better[:, None],
        np.column_stack([first, second]),
        np.column_stack([second, first]),
    )
    return Case(Pairs(X, index), "rbf", 0.2)


def scaled_features() -> Case:
    """Features whose sizes span six decades: many small weights, an ill-conditioned
    Gram matrix."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 7)) * 10.0 ** np.arange(-3, 4)
    pairs, y = Pairs.from_scores(
        X, (X / X.std(axis=0)).sum(axis=1) + rng.standard_normal(200) > 0
    )
    index = np.where((y > 0)[:, None], pairs.index, pairs.index[:, ::-1])
    return Case(Pairs(X, index), "linear", 1.0)


def grid(side: int) -> Case:
    """Items on a grid of integers: every event is one of many at the same lambda."""
    X = np.array([(a, b) for a in range(side) for b in range(side)], dtype=float)
    return of_scores(X, (X.sum(axis=1) % 3 > 0) + (X[:, 0] > side / 2), "linear")


HARD: dict[str, Callable[[], Case]] = {
    "random classes, 200 items": lambda: noise(200, 5, "rbf"),
    "random classes, narrow kernel": lambda: noise(200, 5, "rbf", 5.0),
    "random classes, wide kernel": lambda: noise(200, 5, "rbf", 0.01),
    "3,000 pairs of 2,000 items": lambda: sparse_graph(2000, 3000),
    "200,000 pairs of 100 items": lambda: sparse_graph(100, 200_000),
    "six decades of scales": scaled_features,
    "integer grid, 400 items": lambda: grid(20),
}


# ---- One solve: minimise sum(slack) + lambda/2 |w|^2 with scores f = L w, K = L L', and sparse rows P f


def residual(case: Case, alpha: np.ndarray, lam: float) -> float:
    """max |alpha - clip(alpha + 1 - Pf, 0, 1)| with f of these alpha."""
    K = centred(
        pairwise_kernels(
            case.pairs.items, metric=case.kernel, gamma=case.gamma, filter_params=True
        )
    )
    margins = case.pairs.B.gram(K).times(alpha) / lam
    return float(np.abs(alpha - np.clip(alpha + 1 - margins, 0, 1)).max())


def program(case: Case, lam: float):
    """Quadratic term, linear term, and rows G with G v <= h and A v = 0, for v = (w, f,
    slack)."""
    K = centred(
        pairwise_kernels(
            case.pairs.items, metric=case.kernel, gamma=case.gamma, filter_params=True
        )
    )
    (L, _), P = pivoted_features(K), case.pairs.incidence()
    m = len(case.pairs)
    (n, r) = L.shape
    square = sparse.diags_array(np.repeat([lam, 0.0, 0.0], [r, n, m])).tocsc()
    linear = np.repeat([0.0, 0.0, 1.0], [r, n, m])
    zero = sparse.csr_array((m, r))
    one = sparse.eye_array(m)
    rows = sparse.vstack(
        [sparse.hstack([zero, -P, -one]), sparse.hstack([zero, 0 * P, -one])]
    ).tocsc()
    equal = sparse.hstack(
        [sparse.csr_array(L), -sparse.eye_array(n), sparse.csr_array((n, m))]
    ).tocsc()
    return square, linear, rows, np.repeat([-1.0, 0.0], [m, m]), equal


def by_clarabel(case: Case, lam: float):
    import clarabel

    square, linear, rows, right, equal = program(case, lam)
    options = clarabel.DefaultSettings()  # pyright: ignore[reportAttributeAccessIssue]
    options.verbose = False
    options.time_limit = PATIENCE
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-12
    none = clarabel.ZeroConeT  # pyright: ignore[reportAttributeAccessIssue]
    positive = clarabel.NonnegativeConeT  # pyright: ignore[reportAttributeAccessIssue]
    cones = [none(equal.shape[0]), positive(rows.shape[0])]
    right = np.concatenate([np.zeros(equal.shape[0]), right])
    solver = clarabel.DefaultSolver(  # pyright: ignore[reportAttributeAccessIssue]
        sparse.csc_matrix(square),
        linear,
        sparse.csc_matrix(sparse.vstack([equal, rows])),
        right,
        cones,
        options,
    )
    solution = solver.solve()
    return np.asarray(solution.z)[equal.shape[0] :][: len(case.pairs)]


def by_osqp(case: Case, lam: float):
    import osqp

    square, linear, rows, right, equal = program(case, lam)
    solver = osqp.OSQP()
    matrix = sparse.csc_matrix(sparse.vstack([equal, rows]))
    low = np.concatenate([np.zeros(equal.shape[0]), np.full(len(right), -np.inf)])
    high = np.concatenate([np.zeros(equal.shape[0]), right])
    solver.setup(
        sparse.csc_matrix(square),
        linear,
        matrix,
        low,
        high,
        verbose=False,
        eps_abs=1e-9,
        eps_rel=1e-9,
        max_iter=10**6,
        time_limit=PATIENCE,
        polishing=True,
    )
    return solver.solve().y[equal.shape[0] :][: len(case.pairs)]


def by_piqp(case: Case, lam: float):
    import piqp  # pyright: ignore[reportMissingImports]

    square, linear, rows, right, equal = program(case, lam)
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.setup(
        sparse.csc_matrix(square),
        linear,
        sparse.csc_matrix(equal),
        np.zeros(equal.shape[0]),
        sparse.csc_matrix(rows),
        None,
        right,
    )
    solver.solve()
    return np.asarray(solver.result.z_u)[: len(case.pairs)]


def by_us(case: Case, lam: float):
    pairs, kernel, gamma = case
    machine = SVMRank(C=1 / lam, kernel=kernel, gamma=gamma).fit(
        pairs, np.ones(len(pairs), dtype=int)
    )
    return machine.dual_coef_ * lam


PEERS = {"SVMRank": by_us, "clarabel": by_clarabel, "osqp": by_osqp, "piqp": by_piqp}


def one_solve(case: Case, lam: float, solve: Callable) -> tuple[float, float]:
    start = time.perf_counter()
    alpha = np.clip(solve(case, lam), 0.0, 1.0)
    return time.perf_counter() - start, residual(case, alpha, lam)


# ---- Refits


def cold_refits(case: Case, lams: np.ndarray) -> float:
    start = time.perf_counter()
    for lam in lams:
        by_us(case, lam)
    return time.perf_counter() - start


def warm_refits(case: Case, lams: np.ndarray) -> float:
    """The dual of SVMRank, each time from the weights of the lambda before."""
    machine = SVMRank(kernel=case.kernel, gamma=case.gamma)
    problem = KernelProblem.of(machine, case.pairs)
    m = len(case.pairs)
    gram = problem.hinge_problem(
        np.arange(m), HingeTerms.from_labels(np.ones(m), np.ones(m), False)
    ).gram
    start = time.perf_counter()
    s = None
    before = 1.0
    for lam in lams:
        rows = HingeTerms.from_labels(np.ones(m), np.full(m, 1 / lam), False)
        s = (
            np.zeros(len(rows.sign))
            if s is None
            else np.clip(s * (before / lam), 0.0, 1 / lam)
        )
        s, _ = maximise(gram, rows, s, 1e-12)
        before = lam
    return time.perf_counter() - start


# ---- Tables


def margin_sets(path) -> np.ndarray:
    """The size of the margin set after each event."""
    return np.cumsum([1 if kind == "enter" else -1 for _, _, kind in path.events])


def make_path(name: str, kernel: str) -> Callable[[], object]:
    case = data_case(name, kernel)
    trace(case, max_events=10)  # compiled, before memory is read
    return case.path


def make_hard(name: str) -> Callable[[], object]:
    case = HARD[name]()
    trace(case, max_events=10)
    return case.path


def row(name: str, case: Case, repeats: int, megabytes: float) -> list[object]:
    path = case.path()
    lam = path.lambda_end
    seconds, solve = alternate([case.path, lambda: by_us(case, lam)], repeats)
    _, solved = one_solve(case, lam, by_us)
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
    "µs an event",
    "MB",
    "KKT, path",
    "SVMRank once, s",
    "KKT, SVMRank",
    "path / once",
    "status",
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option in ("quick", "refits", "hard", "growth", "kkt", "peers"):
        parser.add_argument(f"--{option}", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ["mixture"] if options.quick else ["mixture", "Auto", "Cancer", "Diabetes"]
    cases = [(name, kernel) for name in names for kernel in ("rbf", "linear")]
    if options.hard:
        rows = [
            row(name, make(), 3, peak_megabytes(make_hard, name))
            for name, make in HARD.items()
        ]
        print(markdown_table(HEADER, rows))
    elif options.growth:
        growth()
    elif options.kkt:
        found = [
            (name, kernel, data_case(name, kernel).path()) for name, kernel in cases
        ]
        worst = [max(map(path.kkt_residual, path.breakpoints)) for _, _, path in found]
        rows = [
            [f"{n}, {k}", len(p.breakpoints), f"{w:.0e}"]
            for (n, k, p), w in zip(found, worst, strict=True)
        ]
        print(markdown_table(["case", "breakpoints", "largest KKT residual"], rows))
    elif options.peers:
        peers(cases)
    elif options.refits:
        refits(cases)
    else:
        rows = [
            row(
                f"{name}, {kernel}",
                data_case(name, kernel),
                3,
                peak_megabytes(make_path, name, kernel),
            )
            for name, kernel in cases
        ]
        print(markdown_table(HEADER, rows))


def peers(cases: list[tuple[str, str]]) -> None:
    rows = []
    for name, kernel in cases:
        case = data_case(name, kernel)
        lam = first_breakpoint(case) / SPAN
        by_us(case, 100 * lam)  # compiled
        for peer, solve in PEERS.items():
            if peer != "SVMRank" and importlib.util.find_spec(peer) is None:
                continue
            try:
                seconds, worst = one_solve(case, lam, solve)
                rows.append([f"{name}, {kernel}", peer, seconds, f"{worst:.0e}"])
            except Exception as error:  # a peer that gives up is a result, too
                rows.append([f"{name}, {kernel}", peer, "-", type(error).__name__])
            print(rows[-1], flush=True)
    print(markdown_table(["case", "solver", "seconds", "KKT"], rows))


def refits(cases: list[tuple[str, str]]) -> None:
    rows = []
    for name, kernel in cases:
        case = data_case(name, kernel)
        start = first_breakpoint(case)
        lams = np.geomspace(start, start / SPAN, REFITS)
        (path,) = alternate([case.path], 1)
        cold = cold_refits(case, lams)
        warm = warm_refits(case, lams)
        rows.append([f"{name}, {kernel}", path, cold, warm, cold / path, warm / path])
        print(rows[-1], flush=True)
    print(
        markdown_table(
            [
                "case",
                "path, s",
                "100 cold, s",
                "100 warm, s",
                "cold / path",
                "warm / path",
            ],
            rows,
        )
    )


def growth() -> None:
    """Time and breakpoints against m on nested sub-samples of Auto, and their slopes on
    a log-log scale."""
    data = datasets.load_auto()
    order = np.random.default_rng(0).permutation(392)
    rows = []
    for kernel in ("rbf", "linear"):
        found = []
        for n in (49, 98, 196, 392):
            case = of_scores(data.X[order[:n]], data.scores[order[:n]], kernel)
            (seconds,) = alternate([case.path], 3)
            found.append((len(case.pairs), len(case.path().breakpoints), seconds))
        m, count, seconds = np.log(np.array(found, dtype=float)).T
        slopes = np.polyfit(m, count, 1)[0], np.polyfit(m, seconds, 1)[0]
        rows += [[kernel, *part] for part in found]
        rows.append([kernel, "slope", float(slopes[0]), float(slopes[1])])
    print(markdown_table(["kernel", "pairs", "breakpoints", "seconds"], rows))


if __name__ == "__main__":
    main()

"""Time static models against other programs, and measure the coverage of intervals.

    python benchmarks/static_models.py                   # ten minutes
    python benchmarks/static_models.py --quick           # the smaller sizes, fewer leagues
    python benchmarks/static_models.py intervals         # one part: players, intervals

The times are processor seconds of one thread, the best of two runs after a warm-up.
`slope` is the largest gradient entry of the objective at the solution of each program.
The objective is minus the log-likelihood, plus 1/2 w·w if there is a penalty. Each other
program uses its loosest tolerance for which the slope is at most 1e-5, or its smallest.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import choix
import numpy as np
from _measure import markdown_table, peak_megabytes, processor_seconds, script_parser
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from preflearn.dynamics import Constant, DynamicComparisons, Probit, Wiener
from preflearn.matches import Matches
from preflearn.pairs import Incidence
from preflearn.ranking import Davidson, bradley_terry

Floats = NDArray[np.float64]
SLOPE = 1e-5
SIZES = [(20, 400), (1_000, 20_000), (50_000, 400_000)]
DENSE = 1_000  # largest number of players for programs with n x n arrays
PATIENCE = 15.0  # seconds after which mm_pairwise is stopped


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """The minimum processor time of three calls, or of one long call, and the last
    result."""
    return processor_seconds(call, 3, 10.0)


# ---- Two sides


def games(n: int, m: int) -> tuple[NDArray, NDArray]:
    """Players of each game, and the labels.

    Each pair of neighbors in a ring wins once against the other, so nobody is unbeaten.
    """
    rng = np.random.default_rng(0)
    s = rng.normal(size=n)
    first = rng.integers(n, size=m - 2 * n)
    index = np.column_stack([first, (first + rng.integers(1, n, m - 2 * n)) % n])
    won = np.where(
        rng.random(m - 2 * n) < expit(s[index[:, 0]] - s[index[:, 1]]), 1, -1
    )
    ring = np.tile(np.column_stack([np.arange(n), np.roll(np.arange(n), 1)]), (2, 1))
    return np.vstack([index, ring]), np.concatenate(
        [won, np.ones(n, int), -np.ones(n, int)]
    )


def mm(n: int, data: list) -> Floats:
    """Minorize-maximize steps of choix, two at a time, until convergence or time out."""
    w = np.zeros(n)
    begin = time.process_time()
    while time.process_time() - begin < PATIENCE:
        last = w
        w = choix.mm_pairwise(n, data, w, max_iter=2, tol=1e300)
        if np.abs(w - last).max() < SLOPE / 100:
            break
    return w


def solver(method: str, tol: float, n: int, m: int) -> Callable[[], Floats]:
    """A call that fits. Its data are prepared before."""
    index, y = games(n, m)
    wins = np.where(y[:, None] > 0, index, index[:, ::-1])
    if method == "bradley_terry":
        P = sparse.csr_array((np.ones(m), tuple(wins.T)), shape=(n, n))
        return lambda: bradley_terry(P)
    if method == "Davidson(1.0)":
        return lambda: Davidson(1.0).fit(index, y).coef_
    if method.startswith("choix"):
        data = [tuple(pair) for pair in wins.tolist()]
        calls = {
            "choix, ilsr_pairwise": lambda: choix.ilsr_pairwise(n, data, tol=tol),
            "choix, opt_pairwise": lambda: choix.opt_pairwise(
                n, data, alpha=0.5, tol=tol
            ),
            "choix, mm_pairwise": lambda: mm(n, data),
        }
        return calls[method]
    B = sparse.csr_array(Incidence(index, n).matrix())
    C = np.inf if "no penalty" in method else 1.0
    reference = LogisticRegression(
        C=C, fit_intercept=False, tol=tol, max_iter=10_000, solver=method.split(", ")[1]
    )
    return lambda: reference.fit(B, y).coef_[0]


def players(n: int, m: int) -> Iterator[list[object]]:
    """Rows of one size: preflearn, then the programs with the same objective."""
    index, y = games(n, m)
    B = sparse.csr_array(Incidence(index, n).matrix())

    def slope(w: Floats, alpha: float) -> float:
        return float(np.abs(B.T @ (y * expit(-y * (B @ w))) - alpha * w).max())

    few = n <= DENSE
    unpenalised = [
        "scikit-learn, lbfgs, no penalty",
        "scikit-learn, newton-cg, no penalty",
        "choix, mm_pairwise",
    ]
    penalised = ["scikit-learn, lbfgs", "scikit-learn, newton-cg"]
    if few:
        unpenalised += ["choix, ilsr_pairwise"]
        penalised += ["scikit-learn, newton-cholesky", "choix, opt_pairwise"]
    for alpha, own, references in (
        (0.0, "bradley_terry", unpenalised),
        (1.0, "Davidson(1.0)", penalised),
    ):
        ours = 0.0
        best = np.zeros(n)
        for method in (own, *references):
            # their tolerance is for the mean loss
            largest = SLOPE / m if method.startswith("scikit") else 1e-4
            for tol in largest * 10.0 ** -np.arange(
                1 if method in (own, "choix, mm_pairwise") else 6
            ):
                seconds, w = timed(solver(method, tol, n, m))
                if (left := slope(w, alpha)) <= SLOPE or seconds > PATIENCE:
                    break
            w = w - w.mean()
            if method == own:
                ours = seconds
                best = w
            apart = "" if method == own else f"{np.abs(w - best).max():.0e}"
            ratio = "" if method == own else seconds / ours
            whole = few or "mm" not in method
            megabytes = (
                peak_megabytes(partial(solver, method, tol), n, m)
                if whole and m > 400
                else ""
            )
            yield [n, m, method, seconds, f"{left:.0e}", ratio, apart, megabytes]


# ---- Intervals


def outcomes(rng: np.random.Generator, d: Floats) -> NDArray:
    """Draw outcomes of Davidson's model with nu = 0.6."""
    weights = np.cumsum([np.exp(-d / 2), np.full(len(d), 0.6), np.exp(d / 2)], axis=0)
    return (rng.random(len(d)) * weights[-1] > weights).sum(axis=0) - 1


def within(low: Floats, truth: Floats, high: Floats) -> float:
    return float(np.mean((low <= truth) & (truth <= high)))


def static_league(seed: int) -> Iterator[tuple[str, float, float]]:
    """Quantity, confidence level, and coverage for ten players and four games per pair."""
    rng = np.random.default_rng(seed)
    s = rng.normal(size=10)
    s -= s.mean()
    index = np.repeat(np.column_stack(np.triu_indices(10, 1)), 4, axis=0)
    d = s[index[:, 0]] - s[index[:, 1]]
    y = outcomes(rng, d)
    for name, model in (
        ("Davidson", Davidson()),
        ("Davidson, bias reduced", Davidson(bias_reduced=True)),
    ):
        model.fit(index, y)
        for level in (0.8, 0.95):
            yield (
                f"{name}: scores",
                level,
                within(*(model.interval(level).T[0], s, model.interval(level).T[1])),
            )
            low, high = model.interval(level, index[::4]).T
            yield f"{name}: differences", level, within(low, d[::4], high)
            ranks = model.ranks(level, n_draws=2000)
            yield f"{name}: ranks", level, within(ranks.low, rankdata(-s), ranks.high)


def judged_league(seed: int) -> Iterator[tuple[str, float, float]]:
    """Coverage for sixty judges of eight pairs, who give every answer three times."""
    rng = np.random.default_rng(seed)
    s = rng.normal(size=10)
    s -= s.mean()
    index = np.array([rng.choice(10, 2, replace=False) for _ in range(480)])
    y = outcomes(rng, s[index[:, 0]] - s[index[:, 1]])
    judge = np.repeat(np.arange(60), 8)
    index, y, judge = (np.repeat(part, 3, axis=0) for part in (index, y, judge))
    pairs = np.column_stack(np.triu_indices(10, 1))
    for name, cluster in (("cluster=judge", judge), ("no cluster", None)):
        model = Davidson().fit(index, y, cluster=cluster)
        for level in (0.8, 0.95):
            low, high = model.interval(level).T
            yield (
                f"each answer three times, {name}: scores",
                level,
                within(low, s, high),
            )
            low, high = model.interval(level, pairs).T
            yield (
                f"each answer three times, {name}: differences",
                level,
                within(low, s[pairs[:, 0]] - s[pairs[:, 1]], high),
            )


def moving_league(seed: int, n_games: int) -> Iterator[tuple[str, float, float]]:
    """Coverage on the last of 30 days for ten players whose scores are drawn from the
    prior."""
    rng = np.random.default_rng(seed)
    days = 30
    n = 10
    path = np.cumsum(
        np.vstack([rng.normal(size=n), np.sqrt(0.02) * rng.normal(size=(days, n))]),
        axis=0,
    )
    first = np.sort(rng.integers(days, size=n_games))
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(n_games)])
    d = path[first, index[:, 0]] - path[first, index[:, 1]]
    y = np.where(d + rng.normal(size=n_games) > 0, 1, -1)
    names = [f"p{k}" for k in range(n)]
    model = DynamicComparisons(
        Constant(1.0) + Wiener(0.02, origin=0.0), Probit(), n_threads=1
    )
    model.fit(Matches(Incidence(index, n).matrix(), first, names), y)
    at = first[-1]
    table = model.standings(float(at)).sort_values("name")
    who = table["name"].str[1:].astype(int).to_numpy()
    s = path[at, who]
    std = table["std"].to_numpy()
    pairs = np.column_stack(np.triu_indices(n, 1))
    mean, variance = model.moments(
        Matches(Incidence(pairs, n).matrix(), np.full(len(pairs), float(at)), names)
    )
    true = path[at, pairs[:, 0]] - path[at, pairs[:, 1]]
    said = f"DynamicComparisons, {n_games} games"
    for level, z in ((0.8, 1.2816), (0.95, 1.96)):
        score = table["score"].to_numpy()
        yield f"{said}: scores", level, within(score - z * std, s, score + z * std)
        apart = score - score.mean(), s - s.mean()
        yield (
            f"{said}: scores minus their mean",
            level,
            within(apart[0] - z * std, apart[1], apart[0] + z * std),
        )
        half = z * np.sqrt(variance)
        yield f"{said}: differences", level, within(mean - half, true, mean + half)
    low, high = (table[name].to_numpy() for name in ("rank_low", "rank_high"))
    yield f"{said}: ranks", 0.95, within(low, rankdata(-s), high)


def coverage(leagues: int) -> list[list[object]]:
    """Coverage of intervals: mean and standard error over leagues."""
    held: dict[tuple[str, float], list[float]] = {}
    kinds = (
        static_league,
        judged_league,
        *(partial(moving_league, n_games=n) for n in (30, 100, 400)),
    )
    for league in kinds:
        for seed in range(leagues):
            for name, level, share in league(seed):
                held.setdefault((name, level), []).append(share)
    return [
        [leagues, name, level, f"{np.mean(v):.3f} ± {np.std(v) / np.sqrt(leagues):.3f}"]
        for (name, level), v in held.items()
    ]


def show(title: str, header: str, rows: Sequence[Sequence[object]]) -> None:
    print(f"## {title}\n\n{markdown_table(header.split('|'), rows)}\n", flush=True)


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument(
        "parts", nargs="*", default=["players", "intervals"], help="players, intervals"
    )
    parser.add_argument(
        "--quick", action="store_true", help="the smaller sizes, fewer leagues"
    )
    chosen = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "players" in chosen.parts:
            sizes = SIZES[: 2 if chosen.quick else 3]
            lines = [line for size in sizes for line in players(*size)]
            header = "players|games|method|s|slope|s / ours|largest difference from ours|peak MB"
            show("Bradley–Terry and Davidson models", header, lines)
        if "intervals" in chosen.parts:
            lines = coverage(50 if chosen.quick else 500)
            show("Intervals", "leagues|quantity|confidence level|coverage", lines)


if __name__ == "__main__":
    main()

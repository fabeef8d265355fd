"""Compare `Matches.from_rankings` with trueskill 0.4.5, openskill 6.2.0, and integrals.

    python benchmarks/races.py            # needs trueskill and openskill; two minutes
    python benchmarks/races.py --quick    # fewer races

All players have the prior variance 1, and the noise of a performance has the variance
1/2. There are no ties. The first table is for one race, in which each result is compared
with an integral. The second table is for a season: trueskill and openskill update the
scores race by race, and preflearn learns from all races at once. The times are processor
seconds of one thread.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from _measure import peak_megabytes, print_tables, processor_seconds, script_parser
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from preflearn.dynamics import Constant, DynamicComparisons, PiecewiseConstant, Probit
from preflearn.matches import Matches

Floats = NDArray[np.float64]
NOISE = 0.5
HEADERS = {
    "One race": "sides|method|error of means|relative error of deviations|ms per race",
    "A season": "races|sides|players|method|s|RMS error|correlation|coverage of 95 % intervals|peak MB",
}


def races(order: NDArray) -> pd.DataFrame:
    """A table with one row per player in an event.

    Each row of `order` is an event, with the best player first.
    """
    n, k = order.shape
    event = np.repeat(np.arange(n), k)
    rank = np.tile(np.arange(k), n)
    names = [f"p{player:04}" for player in order.ravel()]
    return pd.DataFrame(
        {"event": event, "player": names, "rank": rank, "time": event.astype(float)}
    )


def model(covariance: Any) -> DynamicComparisons:
    return DynamicComparisons(covariance, Probit(), n_threads=1)


# ---- One race


def exact(n: int) -> tuple[Floats, Floats]:
    """Means and standard deviations of scores, given performances p_1 > ... > p_n.

    The integrals are computed from both ends.
    """
    z, step = np.linspace(-9, 9, 20_001, retstep=True)
    v = 1 + NOISE
    density = np.exp(-(z**2) / 2 / v)
    # all later performances are below z, all earlier ones above
    behind = [np.ones_like(z)]
    ahead = [np.ones_like(z)]
    for _ in range(n - 1):
        part = density * behind[-1]
        behind.append(step * (np.cumsum(part) - part / 2))
        part = density * ahead[-1]
        ahead.append(step * (np.cumsum(part[::-1])[::-1] - part / 2))
    weights = np.array([density * ahead[k] * behind[n - 1 - k] for k in range(n)])
    weights /= weights.sum(axis=1, keepdims=True)
    mean = weights @ z
    variance = weights @ z**2 - mean**2
    # moments of a score, given its performance
    return mean / v, np.sqrt(variance / v**2 + NOISE / v)


def performances(matches: Matches, y: NDArray, n: int) -> tuple[Floats, Floats]:
    fitted = model(Constant(1.0)).fit(matches, y)
    found = [fitted.scores(name, 0.0) for name in matches.features[:n]]
    return tuple(np.array(part, dtype=float) for part in zip(*found, strict=True))  # pyright: ignore[reportReturnType]


def one_process(matches: Matches, y: NDArray, n: int) -> tuple[Floats, Floats]:
    """One covariance for the score and the noise of a player.

    The moments of the score are computed by regression.
    """
    alone = Matches(matches.design[:, :n], matches.time, matches.features[:n])
    fitted = model(Constant(1.0) + PiecewiseConstant(NOISE, boundaries=(1.0,))).fit(
        alone, y
    )
    found = [fitted.scores(name, 0.0) for name in alone.features]
    mean, std = (np.array(part, dtype=float) for part in zip(*found, strict=True))
    v = 1 + NOISE
    return mean / v, np.sqrt(std**2 / v**2 + NOISE / v)


def trueskill_rater() -> Callable[[list], list]:
    game: Any = import_module("trueskill").TrueSkill(
        mu=0, sigma=1, beta=NOISE**0.5, tau=0, draw_probability=0
    )
    new = game.create_rating()
    return lambda ratings: [
        side[0] for side in game.rate([(one or new,) for one in ratings])
    ]


def openskill_rater() -> Callable[[list], list]:
    game: Any = import_module("openskill.models").PlackettLuce(
        mu=0, sigma=1, beta=NOISE**0.5, kappa=1e-6, tau=0
    )
    return lambda ratings: [
        side[0] for side in game.rate([[one or game.rating()] for one in ratings])
    ]


REFERENCES = {"trueskill": trueskill_rater, "openskill, PlackettLuce": openskill_rater}


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    call()
    start = time.process_time()
    for _ in range(repeats):
        call()
    return 1e3 * (time.process_time() - start) / repeats


def one_race(n: int) -> Iterator[list[object]]:
    mean, std = exact(n)
    matches, y = Matches.from_rankings(races(np.arange(n)[None]))
    calls: dict[str, Callable[[], Any]] = {
        "from_rankings": lambda: performances(matches, y, n),
        "noise in the covariance of players": lambda: one_process(matches, y, n),
    }
    for name, make in REFERENCES.items():
        rate = make()
        calls[name] = lambda rate=rate: zip(
            *[(r.mu, r.sigma) for r in rate([None] * n)], strict=True
        )
    for name, call in calls.items():
        means, deviations = (np.array(part) for part in call())
        off = (
            f"{np.abs(means - mean).max():.4f}",
            f"{np.abs(deviations / std - 1).max():.4f}",
        )
        yield [n, name, *off, milliseconds(call, 20)]


# ---- A season


def season(n_races: int, sides: int, players: int) -> tuple[Floats, NDArray]:
    """Scores, and the order of players in each race."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=players)
    order = np.array(
        [rng.choice(players, sides, replace=False) for _ in range(n_races)]
    )
    performance = s[order] + np.sqrt(NOISE) * rng.normal(size=order.shape)
    return s, np.take_along_axis(order, np.argsort(-performance, axis=1), axis=1)


def solver(
    method: str, n_races: int, sides: int, players: int
) -> Callable[[], tuple[Floats, Floats]]:
    order = season(n_races, sides, players)[1]
    if method == "from_rankings":
        frame = races(order)

        def ours() -> tuple[Floats, Floats]:
            fitted = model(Constant(1.0)).fit(*Matches.from_rankings(frame))
            table = (
                fitted.standings()
                .set_index("name")
                .reindex([f"p{k:04}" for k in range(players)])
            )
            return table["score"].fillna(0.0).to_numpy(), table["std"].fillna(
                1.0
            ).to_numpy()

        return ours

    def theirs() -> tuple[Floats, Floats]:
        rate = REFERENCES[method]()
        ratings = [None] * players
        for event in order.tolist():
            for player, rating in zip(
                event, rate([ratings[k] for k in event]), strict=True
            ):
                ratings[player] = rating
        found = [(0.0, 1.0) if r is None else (r.mu, r.sigma) for r in ratings]
        return np.array([m for m, _ in found]), np.array([d for _, d in found])

    return theirs


def whole_season(n_races: int, sides: int, players: int) -> Iterator[list[object]]:
    s = season(n_races, sides, players)[0]
    for method in ("from_rankings", *REFERENCES):
        call = solver(method, n_races, sides, players)
        if method == "from_rankings":
            call()  # Compile before timing.
        seconds, (mean, std) = processor_seconds(call)
        off = mean - s
        held = float(np.mean(np.abs(off) <= 1.96 * std))
        error = float(np.sqrt(np.mean((off - off.mean()) ** 2)))
        alike = float(np.corrcoef(mean, s)[0, 1])
        megabytes = peak_megabytes(solver, method, n_races, sides, players)
        yield [n_races, sides, players, method, seconds, error, alike, held, megabytes]


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer races")
    quick = parser.parse_args().quick
    sizes = [(1, 8, 8), (100, 8, 50), (1_000, 8, 200), (1_000, 2, 200), (100, 40, 200)]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = {
            "One race": [line for n in (2, 3, 5, 8) for line in one_race(n)],
            "A season": [
                line
                for size in sizes[: 2 if quick else 5]
                for line in whole_season(*size)
            ],
        }
    print_tables(HEADERS, tables)


if __name__ == "__main__":
    main()

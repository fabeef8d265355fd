"""Time Elo and Glicko on 700,000 matches against a compiled loop of the Elo update.

The loop has one K and works on arrays. The script also times single calls of Elo by the
number of players.

python benchmarks/ratings.py
"""

from __future__ import annotations

from functools import partial

import numpy as np
from _measure import alternate, markdown_table, processor_seconds
from numba import njit
from scipy import sparse

from preflearn.matches import Matches
from preflearn.ratings import Elo, Glicko

MATCHES = 700_000
PLAYERS = 10_000


def season(N: int, players: int) -> tuple[Matches, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    first = rng.integers(0, players, N)
    ids = np.column_stack([first, (first + rng.integers(1, players, N)) % players])
    rows = (np.tile([1.0, -1.0], N), ids.ravel(), np.arange(0, 2 * N + 1, 2))
    names = [f"player {k}" for k in range(players)]
    design = sparse.csr_array(rows, shape=(N, players))
    return (
        Matches(design, np.arange(N, dtype=float), names),
        rng.integers(-1, 2, N),
        ids,
    )


@njit
def plain_elo(ids, y, ratings, k):
    """The Elo update with one K on arrays, and the ratings before each match."""
    before = np.empty(ids.shape)
    for row in range(len(y)):
        a, b = ids[row]
        before[row, 0], before[row, 1] = ratings[a], ratings[b]
        surprise = (y[row] + 1) / 2 - 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400))
        ratings[a] += k * surprise
        ratings[b] -= k * surprise
    return before


def single_calls() -> None:
    """Print the microseconds of a call with one match, by the number of players."""
    rows = []
    for players in (1000, 30_000, 1_000_000):
        matches, y, _ = season(players, players)
        elo = Elo().fit(matches, y)
        ones = [
            Matches([[1.0, -1.0]], [players + k], ["player 1", f"player {k}"])
            for k in range(2, 52)
        ]
        added, _ = processor_seconds(partial(add_all, elo, ones))
        elo.predict_proba(ones[0])  # estimates nu_
        asked, _ = processor_seconds(partial(ask_all, elo, ones))
        rows.append([players, 1e6 * added / len(ones), 1e6 * asked / len(ones)])
    print(markdown_table(["players", "partial_fit us", "predict_proba us"], rows))


def add_all(elo: Elo, ones: list[Matches]) -> None:
    """Add matches one by one."""
    for match in ones:
        elo.partial_fit(match, [1])


def ask_all(elo: Elo, ones: list[Matches]) -> None:
    """Forecast matches one by one."""
    for match in ones:
        elo.predict_proba(match)


def main() -> None:
    matches, y, ids = season(MATCHES, PLAYERS)
    calls = [
        lambda: Elo().fit(matches, y),
        lambda: Glicko().fit(matches, y),
        lambda: plain_elo(ids, y, np.full(PLAYERS, 1200.0), 20.0),
    ]
    elo, glicko, plain = alternate(calls, 2)
    rows = [["Elo.fit", elo, elo / plain], ["Glicko.fit", glicko, glicko / plain]]
    rows.append(["compiled Elo", plain, 1.0])
    print(markdown_table(["method", "s", "divided by compiled Elo"], rows))
    single_calls()


if __name__ == "__main__":
    main()

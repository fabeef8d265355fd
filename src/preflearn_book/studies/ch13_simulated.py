"""Simulated matches of many players over centuries, like a database of chess games.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from preflearn.core.compilation import njit
from preflearn.core.validation import Floats
from preflearn.matches import Matches
from preflearn.pairs import Incidence

# e-foldings of activity over the span: in 500 years, it doubles every 29 years
_GROWTH = 12.0
_TIE_SHARE = 1 / 3
_CAREER = 0.024  # mean length of a career, as a fraction of the span: 12 of 500 years
_EXPONENT = 1.2  # exponent of Zipf's law
_HEAD = 1 / 400  # fraction of the most active players, for whom the law is nearly flat
# Variances of the scores, and the length scale in days.
CONSTANT = 0.5
MOVING = 0.25
LENGTHSCALE = 3652.5


class SimulatedMatches(NamedTuple):
    """Result of `simulate_matches`.

    Attributes
    ----------
    matches : Matches
    y : ndarray of int8, shape (N,)
        +1 if the first player won, 0 for a tie, -1 if the second player won.
    scores : ndarray of shape (N, 2)
        Scores of the first and of the second player at the match.
    margin : float
        Margin of the ordinal probit model that the outcomes are drawn from.
    """

    matches: Matches
    y: NDArray[np.int8]
    scores: Floats
    margin: float


def simulate_matches(
    n_matches: int,
    n_players: int,
    rng: np.random.Generator | int,
    *,
    span: float = 182_625.0,
) -> SimulatedMatches:
    """Simulate matches like the 7,169,202 chess matches in section 4.3 of [Maystre2019]_.

    Each player has a career. The density of its start grows exponentially, by a factor
    e^12 over the span (it doubles every 29 of 500 years). Therefore most matches are
    late. The length of a career has a gamma distribution with shape 3 and a mean of
    2.4 % of the span, and careers stop at the end of the span. Each player appears at
    least once. The other 2N - M appearances are drawn by Zipf's law with the weights
    (rank + M/400)^-1.2, in a random order of the players. Appearances are uniform over a
    career. In the order of time, appearances 2k and 2k + 1 form a match, on the day of
    the earlier one (rounded down). If both are of the same player, the next
    other player is the opponent.

    Scores are Gaussian processes: the sum of a constant with variance 0.5 and a
    Matérn 1/2 process with variance 0.25 and a length scale of 10 years. Outcomes follow
    the ordinal probit model (Table 1). With d = s_first - s_second and e ~ N(0, 1), the
    first player wins if d + e > margin, and the second if d + e < -margin. The margin is
    such that a third of the outcomes are ties on average.

    Parameters
    ----------
    n_matches : int
        N, at least one.
    n_players : int
        M, from 2 to 2N; every player is in a match.
    rng : numpy Generator or int
        Source of randomness, or its seed, at least 0.
    span : float
        Number of days from the first possible day, time 0, to the last; at least 1. The
        default is 500 years.

    Returns
    -------
    SimulatedMatches
        The matches, whose times are full days and whose features are "player 0" to
        "player M-1"; y; the scores of both players at each match; the margin.

    Examples
    --------
    >>> matches, y, scores, margin = simulate_matches(1000, 200, rng=0)
    >>> matches
    Matches(1000 matches, 200 features, time 103825 to 182624)
    >>> float((y == 0).mean()), round(margin, 3)
    (0.364, 0.681)
    """
    rng = np.random.default_rng(rng)
    appearing, time = _appearances(2 * n_matches, n_players, span, rng)
    players = _without_repeats(appearing).reshape(-1, 2)
    day = np.floor(time[::2])
    constant = rng.normal(scale=math.sqrt(CONSTANT), size=n_players)
    scores = constant[players]
    scores += _moving(players, day, n_players, rng.normal(size=players.shape))
    variance = 1 + 2 * (CONSTANT + MOVING)  # standard deviation of d + e
    margin = math.sqrt(variance) * float(ndtri((1 + _TIE_SHARE) / 2))
    noisy = scores[:, 0] - scores[:, 1] + rng.normal(size=n_matches)
    y = (noisy > margin).astype(np.int8) - (noisy < -margin).astype(np.int8)
    names = [f"player {k}" for k in range(n_players)]
    return SimulatedMatches(
        Matches(Incidence(players, n_players).matrix(), day, names), y, scores, margin
    )


def _appearances(
    n: int, n_players: int, span: float, rng: np.random.Generator
) -> tuple[NDArray, Floats]:
    """Players and times of n appearances, sorted by time; each player has at least one."""
    weights = (np.arange(n_players) + n_players * _HEAD) ** -_EXPONENT
    counts = 1 + rng.multinomial(
        n - n_players, rng.permutation(weights / weights.sum())
    )
    start = span / _GROWTH * np.log1p(rng.random(n_players) * math.expm1(_GROWTH))
    length = np.minimum(
        rng.gamma(3.0, span * _CAREER / 3, size=n_players), span - start
    )
    player = np.repeat(np.arange(n_players, dtype=np.int32), counts)
    time = start[player] + length[player] * rng.random(n)
    order = np.argsort(time)
    return player[order], time[order]


def _without_repeats(players: NDArray) -> NDArray:
    """Replace the second of two equal neighbors 2k and 2k + 1 by the next other player.

    The first one is kept, so that each player still appears. The last run of equal
    players is followed by no other player, so the player before the run is used.
    """
    repeated = np.flatnonzero(players[::2] == players[1::2])
    # The last position of each run of equal players, except the last run.
    changes = np.flatnonzero(players[1:] != players[:-1])
    following = np.searchsorted(changes, 2 * repeated)
    last = following == len(changes)
    players = players.copy()
    replacements = np.where(last, changes[-1], changes[following - last] + 1)
    players[2 * repeated + 1] = players[replacements]
    return players


@njit
def _moving(players, day, n_players, normal):
    """A Matérn 1/2 process of each player at each match.

    The correlation is exp(-gap / length scale).
    """
    last = np.full(n_players, -np.inf)
    state = np.zeros(n_players)
    scores = np.empty(players.shape)
    for n in range(len(players)):
        for side in range(2):
            m = players[n, side]
            keep = math.exp((last[m] - day[n]) / LENGTHSCALE)
            noise = math.sqrt(MOVING * (1 - keep * keep)) * normal[n, side]
            state[m] = keep * state[m] + noise
            last[m] = day[n]
            scores[n, side] = state[m]
    return scores

"""The points of both teams as Poisson counts, and the result that they decide (4.2.1 of
[Maystre2019]_).

The limits of Poisson-exp: with one score per team, the points of the two teams of a
match have the rates e^d and e^-d, where d is the difference of their scores (Table 1).
Their product is 1 for any two teams: the geometric mean of the two rates is one point.
But teams of the NBA score a hundred points each, and in international football, with
1.8 goals for the home team and 1.2 for the other on average, the mean is 1.5.

The remedy: a feature that is +1 in both rows of a match, of score c, gives rates whose
product is e^{2c}, but the same one in all matches. Two features for each team, attack
and defence, give ::

    log rate of the first = attack_first - defence_second,
    log rate of the second = attack_second - defence_first,

where all products are possible. `scoring_matches` makes these rows. The two log rates
have no feature in common, and features are independent in the approximate posterior
(eq. 4). So the log rates are independent, as `result_probabilities` assumes. A feature
in both rows of a match, such as the common c, would make them dependent.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import gammaln
from scipy.stats import norm

from preflearn.core.validation import Floats
from preflearn.matches import Matches

# Standard deviations of a log rate, and the weights of the trapezoid rule.
_GRID = np.linspace(-8, 8, 129)
_WEIGHTS = norm.pdf(_GRID) / norm.pdf(_GRID).sum()


def scoring_matches(frame: pd.DataFrame) -> tuple[Matches, Floats]:
    """Two rows per game, the points of the first and of the second team, for `Poisson`.

    x·s(t) is attack_first - defence_second in row 2g, attack_second - defence_first in
    row 2g + 1.

    Parameters
    ----------
    frame : DataFrame
        One row per game, sorted by time, with the columns first, second and time of
        `Matches.from_frame`, and first_score and second_score, the points of both.

    Returns
    -------
    matches : Matches
        2 G rows. Features: ("attack", name) and ("defence", name), names sorted.
    points : ndarray of shape (2 G,)

    Examples
    --------
    >>> frame = pd.DataFrame({"first": ["Ajax"], "second": ["Bray"], "time": [3.0],
    ...                       "first_score": [2], "second_score": [1]})
    >>> matches, points = scoring_matches(frame)
    >>> matches.features
    (('attack', 'Ajax'), ('attack', 'Bray'), ('defence', 'Ajax'), ('defence', 'Bray'))
    >>> matches.design.toarray().astype(int).tolist(), points.tolist()
    ([[1, 0, 0, -1], [0, 1, -1, 0]], [2.0, 1.0])
    """
    games, own = Matches.from_frame(frame, outcome="first_score")
    _, other = Matches.from_frame(frame, outcome="second_score")
    first = games.design.maximum(0)
    second = -games.design.minimum(0)
    design: Any = sparse.block_array([[first, -second], [second, -first]], format="csr")
    # The two rows of a game follow each other.
    rows = np.arange(2 * len(games)).reshape(2, -1).T.ravel()
    features = [
        (side, name) for side in ("attack", "defence") for name in games.features
    ]
    points = np.column_stack([own, other]).ravel().astype(np.float64)
    return Matches(design[rows], np.repeat(games.time, 2), features), points


def result_probabilities(mean: Floats, variance: Floats) -> Floats:
    """Probabilities of the results of games, by Poisson counts with uncertain rates.

    The two counts X, Y of a game are independent, with rates e^a and e^b, and a, b are
    independent and normal: the forecasts of the two rows of `scoring_matches`. So X
    and Y are independent mixtures of Poisson counts, and ::

        P(X > Y) = sum_k P(X = k) P(Y < k),   P(X = Y) = sum_k P(X = k) P(Y = k).

    Parameters
    ----------
    mean, variance : ndarray of shape (G, 2)
        Moments of the log rates of first and second.

    Returns
    -------
    ndarray of shape (G, 3)
        Loss, tie and win of the first. Rows add to 1.

    Notes
    -----
    Counts go up to what a rate of six standard deviations above the mean could give.
    Where the standard deviation of a log rate is at most one and rates are those of
    sports, each probability is right to 1e-7.

    Examples
    --------
    >>> mean, variance = np.array([[0.5, 0.0]]), np.array([[0.1, 0.1]])
    >>> result_probabilities(mean, variance).round(4).tolist()
    [[0.2407, 0.2354, 0.5239]]
    """
    results = []
    for means, deviations in zip(mean, np.sqrt(variance), strict=True):
        largest_rate = np.exp((means + 6 * deviations).max())
        counts = np.arange(largest_rate + 10 * np.sqrt(largest_rate) + 20)
        first = _count_probabilities(counts, means[0], deviations[0])
        second = _count_probabilities(counts, means[1], deviations[1])
        win = first[1:] @ np.cumsum(second)[:-1]
        loss = second[1:] @ np.cumsum(first)[:-1]
        results.append([loss, first @ second, win])
    probabilities = np.array(results)
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def _count_probabilities(counts: Floats, mean: float, deviation: float) -> Floats:
    """Probabilities of Poisson counts with a normal log rate."""
    log_rate = mean + deviation * _GRID[:, None]
    return _WEIGHTS @ np.exp(counts * log_rate - np.exp(log_rate) - gammaln(counts + 1))

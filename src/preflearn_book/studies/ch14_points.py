"""The points of both teams as Poisson counts, and the resulting outcomes (section 4.2.1 of
[Maystre2019]_).

The likelihood Poisson-exp has a limitation. With one score per team, the points of the
two teams have the rates e^d and e^-d, where d is the score difference (Table 1). The
product of the rates is 1 for any two teams, so their geometric mean is one point. But
NBA teams score about a hundred points each. In international football, the home team
scores 1.8 goals and the other team 1.2 goals on average, with a mean of 1.5.

If both rows of a match have +1 for a common feature with score c, the product of the
rates is e^{2c}, but it is the same in all matches. Two features for each team, attack
and defence, give ::

    log rate of the first = attack_first - defence_second,
    log rate of the second = attack_second - defence_first,

Then all products are possible. `scoring_matches` makes these rows. The two log rates
have no feature in common, and features are independent in the approximate posterior
(eq. 4). Therefore the log rates are independent, as `result_probabilities` assumes. A
feature in both rows of a match, such as the common feature above, would make them
dependent.

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

# Nodes, in standard deviations of a log rate, and weights of the trapezoidal rule.
_GRID = np.linspace(-8, 8, 129)
_WEIGHTS = norm.pdf(_GRID) / norm.pdf(_GRID).sum()


def scoring_matches(frame: pd.DataFrame) -> tuple[Matches, Floats]:
    """Two rows per game for `Poisson`: the points of the first and of the second team.

    x·s(t) is attack_first - defence_second in row 2g, attack_second - defence_first in
    row 2g + 1.

    Parameters
    ----------
    frame : DataFrame
        One row per game, sorted by time, with the columns first, second and time of
        `Matches.from_frame`, and with the points of both teams, first_score and
        second_score.

    Returns
    -------
    matches : Matches
        2 G rows. The features are ("attack", name) and ("defence", name), sorted by
        name.
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
    """Probabilities of the results of games, from Poisson counts with uncertain rates.

    The counts X and Y of a game have the rates e^a and e^b. Here a and b are independent
    and normal; they are the forecasts of the two rows of `scoring_matches`. Therefore X
    and Y are independent mixtures of Poisson counts, and ::

        P(X > Y) = sum_k P(X = k) P(Y < k),   P(X = Y) = sum_k P(X = k) P(Y = k).

    Parameters
    ----------
    mean, variance : ndarray of shape (G, 2)
        Moments of the log rates of first and second.

    Returns
    -------
    ndarray of shape (G, 3)
        Probabilities that the first team loses, ties, and wins. Each row sums to 1.

    Notes
    -----
    The sums include all counts that are plausible for a log rate of six standard
    deviations above the mean. If the standard deviation of a log rate is at most one and
    the rates are typical of sports, each probability is accurate to 1e-7.

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

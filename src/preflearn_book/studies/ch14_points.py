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
in both rows of a match, such as the common c, would make them dependent; the home
advantage is in the row of the first team only.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import i0e, i1e

from preflearn.core.compilation import njit
from preflearn.core.validation import Floats, check_array, raise_if_any
from preflearn.matches import ADVANTAGE, Matches

_MAX_MOMENT = 100.0  # of a log rate, and of its variance
_MIN_VARIANCE = 1e-14


def scoring_matches(
    frame: pd.DataFrame, *, advantage: str | None = None
) -> tuple[Matches, Floats]:
    """Two rows per game, the points of the first and of the second team, for `Poisson`.

    x·s(t) is attack_first - defence_second in row 2g, attack_second - defence_first in
    row 2g + 1.

    Parameters
    ----------
    frame : DataFrame
        One row per game, sorted by time, with the columns first, second and time of
        `Matches.from_frame`, and first_score and second_score, the points of both.
    advantage : str, optional
        A column, bool or number: the advantage of the first team. It becomes the feature
        "advantage" in the row of the first team, whose log rate is higher by its score.

    Returns
    -------
    matches : Matches
        2 G rows. Features: ("attack", name) and ("defence", name), names sorted; then
        "advantage".
    points : ndarray of shape (2 G,)

    Raises
    ------
    ValueError
        As `Matches.from_frame`, and on points that are not integers of at least 0.

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
    games, own = Matches.from_frame(frame, outcome="first_score", advantage=advantage)
    _, other = Matches.from_frame(frame, outcome="second_score")
    points = np.column_stack([own, other]).astype(np.float64)
    raise_if_any(
        (points < 0) | (points % 1 != 0),
        points,
        "points",
        "integers of at least 0",
    )
    names = [name for name in games.features if name != ADVANTAGE]
    players = games.players()
    rows = np.arange(2 * len(games))
    attack = players.ravel()
    defence = players[:, ::-1].ravel() + len(names)
    ones = np.ones(len(rows))
    entries = np.append(rows, rows), np.append(attack, defence)
    shape = (len(rows), 2 * len(names))
    blocks = [sparse.coo_array((np.append(ones, -ones), entries), shape=shape)]
    features: list[Hashable] = [
        (side, name) for side in ("attack", "defence") for name in names
    ]
    if advantage is not None:
        column = np.zeros((len(rows), 1))
        column[::2] = games.design[:, [games.features.index(ADVANTAGE)]].toarray()
        blocks.append(sparse.coo_array(column))
        features.append(ADVANTAGE)
    design: Any = sparse.hstack(blocks)
    return Matches(design, np.repeat(games.time, 2), features), points.ravel()


def result_probabilities(
    mean: ArrayLike, variance: ArrayLike, *, ties: bool = True
) -> Floats:
    """Probabilities of the results of games, by Poisson counts with uncertain rates.

    The two counts X, Y of a game are independent, with rates e^a and e^b, and a, b are
    independent and normal: the forecasts of the two rows of `scoring_matches`.

    Parameters
    ----------
    mean, variance : array-like of shape (G, 2)
        Moments of the log rates of first and second: means from -100 to 100, variances from 0
        to 100 (below 1e-14 they count as 1e-14).
    ties : bool
        Whether a game can end in a tie. If not, each team gets half the probability of
        equal points.

    Returns
    -------
    ndarray of shape (G, 3) or (G, 2)
        Loss, tie and win of the first; without ties, loss and win. Rows add to 1.

    Raises
    ------
    ValueError
        On other shapes, and moments out of range.

    Notes
    -----
    Counts are never enumerated, so that large and very uncertain rates cost no more
    than small ones. With r = var(a) / (var(a) + var(b)), u = a - b and w = (1 - r) a +
    r b are independent, and the rates are λ = e^{w + ru} and μ = e^{w - (1-r)u}. One
    more point for X wins a tied game, and one more for Y ties a game that X leads by
    one; so P(X > Y), given w, rises with u by ::

        r λ P(X = Y) + (1-r) μ P(X = Y + 1)
            = exp(-(√λ - √μ)²) (r λ I(0) + (1-r) √(λμ) I(1)),   I(k) = e^{-z} I_k(z), z = 2√(λμ),

    with modified Bessel functions. The average of P(X > Y) over u is the integral of
    this slope, which has its maximum near u = 0, times the probability that u is larger.
    It is computed by Gauss-Legendre quadrature on panels from 0 outwards, and the
    integral over w by Gauss-Hermite quadrature, or the trapezoid rule if w varies much.
    For log rates from -3 to 6 and variances from 1e-6 to 4, each probability is right to
    1e-10.

    Examples
    --------
    >>> result_probabilities([[0.5, 0.0]], [[0.1, 0.1]]).round(4).tolist()
    [[0.2407, 0.2354, 0.5239]]
    """
    mean = check_array(mean, "mean", ("G", 2), "log rates of first and second")
    variance = check_array(
        variance, "variance", (len(mean), 2), "of the log rates of first and second"
    )
    raise_if_any(
        abs(mean) > _MAX_MOMENT,
        mean,
        "mean",
        f"log rates from -{_MAX_MOMENT:g} to {_MAX_MOMENT:g}",
    )
    wrong = (variance < 0) | (variance > _MAX_MOMENT)
    raise_if_any(wrong, variance, "variance", f"variances from 0 to {_MAX_MOMENT:g}")
    results = _results(mean, np.maximum(variance, _MIN_VARIANCE))
    results /= results.sum(axis=1, keepdims=True)
    if not ties:
        return results[:, ::2] + results[:, 1:2] / 2
    return results


_CELLS = 32
_SHIFT = 2.0
_DEGREE = 7


def _bessel_table() -> Floats:
    """√(1+z) e^{-z} I_k(z), k = 0, 1, as polynomials in cells of z / (z + 2): relative
    errors of 1e-14."""
    t = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    q = (np.arange(_CELLS)[:, None] + (1 + t) / 2) / _CELLS
    z = _SHIFT * q / (1 - q)
    values = np.stack([f(z) * np.sqrt(1 + z) for f in (i0e, i1e)], axis=-1)
    return np.einsum(
        "dj,cjk->cdk", np.linalg.inv(np.vander(t, increasing=True)), values
    )


_BESSEL = _bessel_table()
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_HERMITE_NODES, _HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(8)
_HERMITE_WEIGHTS = _HERMITE_WEIGHTS / _HERMITE_WEIGHTS.sum()
_MAX_ROOT_GAP = 6.7  # between roots of rates: exp(-6.7²) = 3e-20
_MAX_DEVIATIONS = 8.5  # standard deviations of u
# On one side of 0, where both roots of rates grow at least as fast as exp(u / 4).
_MAX_PANELS = 100_000


@njit
def _results(mean, variance):
    """Probabilities of loss, tie and win of each game, shape (G, 3): averages over w."""
    results = np.zeros((len(mean), 3))
    for game in range(len(mean)):
        (a, b), (va, vb) = mean[game], variance[game]
        r = va / (va + vb)
        deviation = math.sqrt(va + vb)
        center = a + r * (b - a)
        spread = math.sqrt(va / (va + vb)) * math.sqrt(vb)
        if spread < 0.3:
            for k in range(len(_HERMITE_NODES)):
                w = center + spread * _HERMITE_NODES[k]
                _add_integrals(
                    results[game],
                    _HERMITE_WEIGHTS[k],
                    math.exp(0.5 * w),
                    r,
                    a - b,
                    deviation,
                )
            continue
        # The trapezoid rule has errors of exp(-pi² / 0.35) with this step.
        step = min(0.8, 0.35 / spread)
        for k in range(-math.ceil(7.5 / step), math.ceil(7.5 / step) + 1):
            weight = step / math.sqrt(2 * math.pi) * math.exp(-0.5 * (k * step) ** 2)
            w = center + spread * k * step
            _add_integrals(
                results[game], weight, math.exp(0.5 * w), r, a - b, deviation
            )
    return results


@njit
def _add_integrals(result, weight, half, r, mean, deviation):
    """Add the integrals over u at one w = 2 log half, on panels from 0 to both sides."""
    low = mean - _MAX_DEVIATIONS * deviation
    high = mean + _MAX_DEVIATIONS * deviation
    for direction in (-1, 1):
        u = 0.0
        done = False
        for _ in range(_MAX_PANELS):
            up, down, apart = _roots(half, r, u)
            flat = (direction < 0 and u <= low and up < 1e-9) or (
                direction > 0 and u >= high and down < 1e-9
            )
            done = flat or apart > _MAX_ROOT_GAP
            if done:
                break
            if direction > 0:
                near = low <= u < high
                border = high
                if u < low:
                    border = low
            else:
                near = low < u <= high
                border = low
                if u > high:
                    border = high
            # Three standard deviations of the slope, as a function of u.
            length = min(1.5, 4.2 / (r * up + (1 - r) * down))
            if near:
                length = min(length, 3 * deviation)
            end = u + direction * length
            if (u - border) * (end - border) < 0:
                end = border
            panel = _panel(min(u, end), max(u, end), near, half, r, mean, deviation)
            for k, part in enumerate(panel):
                result[k] += weight * part
            u = end
        if not done:
            raise ArithmeticError(
                "the integrals over the rates of points do not converge"
            )


@njit
def _roots(half, r, u):
    """The square roots of both rates, and their distance."""
    more = math.expm1(0.5 * r * u)
    less = math.expm1(-0.5 * (1 - r) * u)
    return half * (1 + more), half * (1 + less), half * abs(more - less)


@njit
def _panel(begin, end, near, half, r, mean, deviation):
    """The integrals of loss, tie and win over u from begin to end.

    Far from the mean, u is above or below it with certainty.
    """
    loss = tie = win = 0.0
    above = 0.0
    if begin < mean:
        above = 1.0
    for k in range(len(_NODES)):
        u = 0.5 * (begin + end + (end - begin) * _NODES[k])
        up, down, apart = _roots(half, r, u)
        bump = 0.5 * (end - begin) * _WEIGHTS[k] * math.exp(-apart * apart)
        even, lead = _bessel(2 * up * down)
        even = bump * even
        lead = bump * up * down * lead
        if near:
            away = (u - mean) / deviation
            above = 0.5 * math.erfc(away / math.sqrt(2))
            tie += even * math.exp(-0.5 * away * away)
        loss += ((1 - r) * down * down * even + r * lead) * (1 - above)
        win += (r * up * up * even + (1 - r) * lead) * above
    return loss, tie / (deviation * math.sqrt(2 * math.pi)), win


@njit
def _bessel(z):
    """e^{-z} I_0(z) and e^{-z} I_1(z)."""
    place = z / (z + _SHIFT) * _CELLS
    cell = min(int(place), _CELLS - 1)
    t = 2 * (place - cell) - 1
    zero = one = 0.0
    for power in range(_DEGREE, -1, -1):
        zero = zero * t + _BESSEL[cell, power, 0]
        one = one * t + _BESSEL[cell, power, 1]
    scale = 1 / math.sqrt(1 + z)
    return zero * scale, one * scale

"""The points of both teams as Poisson counts, and the result that they decide (4.2.1 of
[Maystre2019]_).

What Poisson-exp forces. With one score a team, the points of the two teams of a match
have the rates e^d and e^-d, where d is the difference of their scores (Table 1). Their
product is 1, whoever plays: the geometric mean of the two rates is one point. But teams
of the NBA make a hundred points each, and in international football, with 1.8 goals for
the home team and 1.2 for the other on average, it is 1.5.

What mends it. A feature that is +1 in both rows of a match, of score c, gives rates
whose product is e^{2c}: the right level of points, but the same one in all matches. Two
features a team, attack and defence, give ::

    log rate of the first = attack_first - defence_second,
    log rate of the second = attack_second - defence_first,

where all products are possible, and the level is in the attacks and defences.
`scoring_matches` makes these rows. The two log rates share no feature, and features are
independent in the approximate posterior (eq. 4): so are the log rates, and
`result_probabilities` takes them so. A feature in both rows of a match, as the common
c, would make them dependent; the advantage of the home ground is in the row of the
first only.

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

_LARGEST = 100.0  # log rate, and variance
_NARROWEST = 1e-14  # variance


def scoring_matches(
    frame: pd.DataFrame, *, advantage: str | None = None
) -> tuple[Matches, Floats]:
    """Two rows a game, the points of the first and those of the second, for the
    likelihood `Poisson`.

    x·s(t) is attack_first - defence_second in row 2g, attack_second - defence_first in
    row 2g + 1.

    Parameters
    ----------
    frame : DataFrame
        One row a game, sorted by time, with the columns first, second and time of
        `Matches.from_frame`, and first_score and second_score, the points of both.
    advantage : str, optional
        A column, bool or number, that says how much of an advantage the first has. It
        becomes the feature "advantage" in the first's row: by its score the log rate of
        the first is higher.

    Returns
    -------
    matches : Matches
        2 G rows. Features: ("attack", name) and ("defence", name), names sorted; then
        "advantage".
    points : ndarray of shape (2 G,)

    Raises
    ------
    ValueError
        As `Matches.from_frame`, and on points that are not whole numbers of at least 0.

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
        "whole numbers of at least 0",
    )
    names = [name for name in games.features if name != ADVANTAGE]
    players = games.players()
    rows = np.arange(2 * len(games))
    attack = players.ravel()
    defence = players[:, ::-1].ravel() + len(names)
    one = np.ones(len(rows))
    blocks = [
        sparse.coo_array(
            (np.append(one, -one), (np.append(rows, rows), np.append(attack, defence))),
            shape=(len(rows), 2 * len(names)),
        )
    ]
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
    """Probabilities of the result of games whose points are Poisson counts with
    uncertain rates.

    The two counts X, Y of a game are independent, with rates e^a and e^b, and a, b are
    independent and normal: the two rows of `scoring_matches`, forecast one after the
    other.

    Parameters
    ----------
    mean, variance : array-like of shape (G, 2)
        Of the log rates of first and second: means from -100 to 100, variances from 0
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

    of modified Bessel functions. The average of P(X > Y) over u is the integral of this
    slope, a bump around u = 0, times the probability that u exceeds the place. It goes
    by Gauss and Legendre on panels from 0 outwards; the one over w by Gauss and
    Hermite, or the trapezoid rule where it is wide. For log rates from -3 to 6 and
    variances from 1e-6 to 4, each probability is right to 1e-10.

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
        abs(mean) > _LARGEST,
        mean,
        "mean",
        f"log rates from -{_LARGEST:g} to {_LARGEST:g}",
    )
    wrong = (variance < 0) | (variance > _LARGEST)
    raise_if_any(wrong, variance, "variance", f"variances from 0 to {_LARGEST:g}")
    results = _results(mean, np.maximum(variance, _NARROWEST))
    results /= results.sum(axis=1, keepdims=True)
    return results if ties else results[:, ::2] + results[:, 1:2] / 2


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
_POINTS, _SHARES = np.polynomial.hermite_e.hermegauss(8)
_SHARES = _SHARES / _SHARES.sum()
_FARTHEST = 6.7  # between roots of rates: exp(-6.7²) = 3e-20
_REACH = 8.5  # standard deviations
# on one side: both roots of rates grow at least as fast as exp(u / 4) there
_PANELS = 100_000


@njit
def _results(mean, variance):
    """Probabilities of loss, tie and win of each game, shape (G, 3): the averages over
    w."""
    found = np.zeros((len(mean), 3))
    for game in range(len(mean)):
        (a, b), (va, vb) = mean[game], variance[game]
        r = va / (va + vb)
        deviation = math.sqrt(va + vb)
        center = a + r * (b - a)
        spread = math.sqrt(va / (va + vb)) * math.sqrt(vb)
        if spread < 0.3:
            for k in range(len(_POINTS)):
                w = center + spread * _POINTS[k]
                _add(found[game], _SHARES[k], math.exp(0.5 * w), r, a - b, deviation)
            continue
        # rates turn by e^{ih}: errors of exp(-pi² / 0.35)
        step = min(0.8, 0.35 / spread)
        for k in range(-math.ceil(7.5 / step), math.ceil(7.5 / step) + 1):
            share = step / math.sqrt(2 * math.pi) * math.exp(-0.5 * (k * step) ** 2)
            w = center + spread * k * step
            _add(found[game], share, math.exp(0.5 * w), r, a - b, deviation)
    return found


@njit
def _add(found, share, half, r, mean, deviation):
    """Add the integrals over u at one w = 2 log half, on panels from 0 to both sides."""
    low = mean - _REACH * deviation
    high = mean + _REACH * deviation
    for direction in (-1, 1):
        u = 0.0
        done = False
        for _ in range(_PANELS):
            up, down, apart = _roots(half, r, u)
            flat = (direction < 0 and u <= low and up < 1e-9) or (
                direction > 0 and u >= high and down < 1e-9
            )
            done = flat or apart > _FARTHEST
            if done:
                break
            if direction > 0:
                near = low <= u < high
                border = low if u < low else high
            else:
                near = low < u <= high
                border = high if u > high else low
            # three standard deviations of the bump
            length = min(1.5, 4.2 / (r * up + (1 - r) * down))
            if near:
                length = min(length, 3 * deviation)
            end = u + direction * length
            if (u - border) * (end - border) < 0:
                end = border
            for k, part in enumerate(
                _panel(min(u, end), max(u, end), near, half, r, mean, deviation)
            ):
                found[k] += share * part
            u = end
        if not done:
            raise ArithmeticError("the rates of points do not fall off")


@njit
def _roots(half, r, u):
    """The square roots of both rates, and how far apart they are."""
    more = math.expm1(0.5 * r * u)
    less = math.expm1(-0.5 * (1 - r) * u)
    return half * (1 + more), half * (1 + less), half * abs(more - less)


@njit
def _panel(begin, end, near, half, r, mean, deviation):
    """The integrals of loss, tie and win over u from begin to end; those far from its
    mean know the side."""
    loss = tie = win = 0.0
    above = 1.0 if begin < mean else 0.0
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

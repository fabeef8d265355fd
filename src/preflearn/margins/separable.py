"""Test of linear separability, with a proof in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.validation import Floats
from preflearn.margins.constraints import OrientedPairs, extremes
from preflearn.margins.interior_point import solve_margin_lp
from preflearn.pairs import Pairs

# limit on entries * features * bits² in a proof: a few seconds, enough for p = 20
_EXACT_WORK = 1e12
_MAX_PIVOTS = 20  # per feature; usually two or three are needed
_MAX_ROUNDS = 100  # extensions of a working set
_MAX_NAMED = 12  # pairs of a violated set that a message lists
# If the float solver is uncertain, pairs with a smaller slack enter the proof.
_DOUBTFUL = 1e-6
_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Separability:
    """Result of `separability`, with the numbers that prove it.

    Attributes
    ----------
    separable : bool
        Whether some w has ``w·(y_i d_i) > |w·d_j|`` for each preference i and each tie
        j.
    exact : bool
        Whether the result is proven in exact arithmetic; otherwise it is the result of
        a float solver.
    coef : ndarray of shape (p,) or None
        Separating weight vector w, if there is one.
    weights : ndarray of shape (m,) or None
        Proof that there is no such w: convex weights a_i of the preferences and signed
        weights b_j of the ties, ``sum |b_j| <= 1``, with sum a_i y_i d_i = sum b_j d_j.
        No w can separate the two sides.
    support : ndarray of int
        Ids of the pairs with nonzero weights: the violated set, at most p + 2 pairs.
    exact_weights : dict of int to Fraction
        The same weights as exact fractions; empty unless `exact`.
    """

    separable: bool
    exact: bool
    coef: Floats | None
    weights: Floats | None
    support: NDArray[np.int64]
    exact_weights: dict[int, Fraction]


class NotSeparableError(ValueError):
    """Error for comparisons that no weight vector separates.

    The attribute `certificate` is a `Separability` that proves it.
    """

    certificate: Separability


def separability(pairs: Pairs | ArrayLike, y: ArrayLike) -> Separability:
    """Decide, with a proof, whether some linear ranking function fits all pairs.

    The comparisons are separable if and only if the optimum of the LP, eq. 7 of
    [Venuto2017]_, is positive. Equivalently, the convex hull of the preferences y_i d_i
    and the convex hull of the ties in both orders have no point in common (Farkas'
    lemma). A float solver finds w or the common point. Integer arithmetic, in which the
    given floats are exact, then verifies or corrects it.

    Parameters
    ----------
    pairs : Pairs or array-like of shape (m, 2, p)
        Pairs, or the features of both items of each pair.
    y : array-like of shape (m,)
        Labels -1, 0, 1. Pairs that are all ties are separable, by w = 0. Pairs that are
        all preferences are separable if 0 is outside their hull.

    Returns
    -------
    answer : Separability

    Raises
    ------
    ValueError
        If pairs or labels are not valid, or differences are too large or too small to
        be squared as floats.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [3.0]], [[1, 0], [2, 1], [2, 0]])
    >>> separability(pairs, [0, 1, 1]).separable
    True
    >>> answer = separability(pairs, [1, 0, 1])
    >>> answer.separable, answer.exact_weights
    (False, {0: Fraction(1, 1), 1: Fraction(1, 2)})
    """
    data = OrientedPairs.validate(pairs, y)
    ties = data.ties
    scales = data.scales()
    if ties.all():
        return _separable(np.zeros(len(scales)))
    solution, working_set = solve_margin_lp(data, scales)
    coef = solution.coef / scales
    if solution.state > 0 and _separates(coef, data):
        return _separable(coef)
    dual = data.pair_multipliers(working_set, solution.dual)
    matters = dual != 0
    if abs(solution.state) < _DOUBTFUL:
        values = data.values @ coef
        matters |= np.where(ties, 1 - np.abs(values), values - 1) < _DOUBTFUL
    answer = _exact_answer(data, np.flatnonzero(matters))
    if answer is not None:
        return answer
    if solution.state > 0:
        return _separable(coef, exact=False)
    signed = np.where(ties, -dual, dual * data.sign) / np.abs(dual[~ties]).sum()
    return _not_separable(dict(enumerate(signed.tolist())), ties, exact=False)


def check_separates(coef: Floats, data: OrientedPairs) -> None:
    """Raise ValueError, with the reason, unless the weights separate the pairs.

    The check uses exact arithmetic.
    """
    s, t = extremes(data.values @ coef, data.ties)
    if s > t and _separates(coef, data):
        return
    answer = separability(data.pairs, data.y)
    if answer.separable or answer.weights is None:
        raise ValueError(
            "the comparisons are separable, but no weight vector was found, since the "
            "margin is close to rounding errors or the scales of the features differ "
            "greatly; standardize the features"
        )
    named = [
        f"{i} (label {data.y[i]:+d}, weight {answer.weights[i]:.3g})"
        for i in answer.support[:_MAX_NAMED]
    ]
    violated = ", ".join(named)
    if len(answer.support) > _MAX_NAMED:
        violated += f" and {len(answer.support) - _MAX_NAMED} more"
    error = NotSeparableError(
        f"the comparisons are not linearly separable: no linear ranking function is right "
        f"on all of the pairs {violated}. With these weights, the sum of the preferences "
        "(better minus worse item) equals the sum of the ties. Use a method with slack "
        "variables, such as SVMCompare"
    )
    error.certificate = answer
    raise error


def _separable(coef: NDArray | None, exact: bool = True) -> Separability:
    return Separability(True, exact, coef, None, np.empty(0, dtype=np.int64), {})


def _not_separable(
    weights: dict[int, Any], ties: NDArray, exact: bool = True
) -> Separability:
    nonzero = {i: weights[i] for i in sorted(weights) if weights[i]}
    support = np.array(list(nonzero), dtype=np.int64)
    floats = np.zeros(len(ties))
    floats[support] = [float(a) for a in nonzero.values()]
    if not exact:
        nonzero = {}
    return Separability(False, exact, None, floats, support, nonzero)


# A float is a fraction whose denominator is a power of two.
_fractions: Callable[[NDArray], NDArray] = np.frompyfunc(Fraction, 1, 1)


def _exact_rows(data: OrientedPairs, ids: NDArray) -> NDArray:
    """Return the rows y_i d_i or d_j as Fractions, without rounding, shape (k, p)."""
    items = _fractions(data.pairs.items[data.pairs.index[ids]])
    return (items[:, 0] - items[:, 1]) * data.sign[ids, None].astype(object)


def _separates(coef: Floats, data: OrientedPairs) -> bool:
    """Return whether s(w) > t(w) holds exactly.

    Fractions are used only if the result with floats is uncertain.
    """
    s, t = extremes(data.values @ coef, data.ties)
    size = float(data.largest() @ np.abs(coef))
    error = (len(coef) + 4) * (_EPS * size + np.finfo(np.float64).tiny)
    if s - error > t + error:
        return True
    (s, _), (t, _) = _exact_extremes(_fractions(coef), data)
    return bool(s > t)


def _exact_extremes(
    w: NDArray, data: OrientedPairs
) -> tuple[tuple[Any, int], tuple[Any, int]]:
    """Return the exact s and t for weights as Fractions, and the ids of their pairs.

    Fractions are needed only for pairs near the extremes.
    """
    ties = data.ties
    # scale, so that values are at most 1
    size = _fractions(data.largest()) @ np.abs(w) or 1
    values = data.values @ (w / size).astype(np.float64)
    s, t = extremes(values, ties)
    error = 4 * (len(w) + 4) * _EPS
    near = np.flatnonzero(
        np.where(ties, np.abs(values) >= t - error, values <= s + error)
    )
    exact = list(zip(_exact_rows(data, near) @ w, near.tolist(), strict=True))
    lowest = min((value, i) for value, i in exact if not ties[i])
    tied = [(abs(value), i) for value, i in exact if ties[i]]
    return lowest, max(tied, default=(0, lowest[1]))


def _exact_answer(data: OrientedPairs, working_set: NDArray) -> Separability | None:
    """Prove one of the two answers in integers; return None if it takes too long.

    The proof considers a working set of pairs. A common point of its two hulls proves
    that the pairs are not separable. If there is none, Farkas' lemma gives weights that
    separate the working set. Either they separate all pairs, or pairs that they do not
    separate are added to the working set.
    """
    for _ in range(_MAX_ROUNDS):
        exact = _exact_rows(data, working_set)
        tied = data.ties[working_set]
        result = _common_point(exact[~tied], exact[tied])
        if result is None:
            return None
        meet, answer = result
        if meet:
            ids = np.concatenate([working_set[~tied], working_set[tied]])
            weights = dict(zip(ids.tolist(), answer, strict=True))
            return _not_separable(weights, data.ties)
        (s, i), (t, j) = _exact_extremes(answer, data)
        if s > t:
            try:
                coef = (2 * answer / (s + t)).astype(np.float64)
            except OverflowError:  # too large for floats
                return _separable(None)
            return _separable(coef if _separates(coef, data) else None)
        working_set = np.union1d(working_set, [i, j])
    return None


def _common_point(preferences: NDArray, ties: NDArray) -> tuple[bool, NDArray] | None:
    """Find a common point of the hulls of preferences and ties, or a separating w.

    The hulls are conv(preferences) and conv(ties in both orders, and 0).

    The method is phase one of the simplex method with Bland's rule, in integers
    (Edmonds' fraction-free pivots), for the system sum a_i p_i - sum (b_j - c_j) t_j =
    0, sum a = 1, sum b + sum c + rest = 1, all variables >= 0.

    Returns
    -------
    meet : bool
    answer : ndarray of Fraction
        Weights of the common point: a_i, then b_j - c_j. If there is none: w with min
        w·p_i > max |w·t_j|. The function returns None instead of both if the
        computation would take too long.
    """
    n = len(preferences)
    k = len(ties)
    p = preferences.shape[1]
    size = n + 2 * k + 1
    columns = np.vstack([preferences, -ties, ties, np.zeros((1, p), dtype=object)]).T
    # per feature, so that its values become integers
    units = np.array([_common_unit(feature) for feature in columns])
    # The rows are the p equations of the features, the two sums, and the objective: the
    # sum of one artificial variable for each equation, the first basis.
    tableau = np.zeros((p + 3, size + p + 3), dtype=object)
    basis = size + np.arange(p + 2)
    tableau[:p, :size] = np.frompyfunc(int, 1, 1)(columns * units[:, None])
    tableau[p, :n] = 1
    tableau[p + 1, n:size] = 1
    tableau[np.arange(p + 2), basis] = 1
    tableau[[p, p + 1], -1] = 1
    tableau[-1, :size] = -tableau[:-1, :size].sum(axis=0)
    tableau[-1, -1] = -2
    # bits of the largest entries, which are determinants of up to p rows
    length = p * int(np.abs(tableau[:p]).max()).bit_length()
    if p * tableau.size * length**2 > _EXACT_WORK:
        return None
    denominator = 1
    for _ in range(_MAX_PIVOTS * p):
        entering = np.flatnonzero(tableau[-1, :size] < 0)
        if not entering.size:
            break
        column = entering[0]
        rising = np.flatnonzero(tableau[:-1, column] > 0)
        ratios = [
            (Fraction(tableau[r, -1], tableau[r, column]), basis[r], r) for r in rising
        ]
        row = min(ratios)[2]
        pivot_row = tableau[row].copy()
        pivot = tableau[row, column]
        # The division leaves no remainder (Edmonds).
        tableau = tableau * pivot - np.outer(tableau[:, column], pivot_row)
        tableau //= denominator
        tableau[row] = pivot_row
        basis[row] = column
        denominator = pivot
    else:
        return None
    if tableau[-1, -1] != 0:
        return False, (tableau[-1, size : size + p] - denominator) * units
    solution = np.full(size + p + 2, Fraction(0), dtype=object)
    solution[basis] = [Fraction(value, denominator) for value in tableau[:-1, -1]]
    ties = solution[n : n + k] - solution[n + k : n + 2 * k]
    return True, np.concatenate([solution[:n], ties])


def _common_unit(values: NDArray) -> Fraction:
    """Return the smallest factor that makes these Fractions coprime integers."""
    denominators = (x.denominator for x in values)
    numerators = (x.numerator for x in values)
    return Fraction(lcm(*denominators), gcd(*numerators) or 1)

"""Is a set of comparisons linearly separable? An answer with a proof, in exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import Floats
from preflearn.margins.central import largest_ratio
from preflearn.margins.rows import Rows, extremes
from preflearn.pairs import Pairs

_EXACT_WORK = 1e7  # units of `_pivot_cost` that a proof may take: some seconds, enough for p = 20
_SHOWN = 12  # pairs of a violated set that a message names
_CLOSE = 1e-6  # a slack from which a pair may matter where the float solver is in doubt
_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Separability:
    """The answer of `separability`, with the numbers that prove it.

    Attributes
    ----------
    separable : bool
        Whether some w has w·(y_i d_i) > |w·d_j| for each preference i and each tie j.
    exact : bool
        Whether the answer is proven without rounding; else it is that of a float solver.
    coef : ndarray of shape (p,) or None
        A separating weight vector w, where there is one.
    weights : ndarray of shape (m,) or None
        Where there is none: convex weights a_i of the preferences and signed weights b_j of the ties,
        sum |b_j| <= 1, with sum a_i y_i d_i = sum b_j d_j. No w can separate both sides.
    support : ndarray of int
        The ids of the pairs with a weight: the violated set, at most p + 2 pairs.
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
    """No weight vector puts all preferences beyond all ties; `certificate` proves it."""

    certificate: Separability


def separability(pairs: Pairs | ArrayLike, y: ArrayLike) -> Separability:
    """Decide whether a linear ranking function is right on all pairs, and prove the answer.

    The data are separable if and only if the optimum of the LP, eq. 7 of [Venuto2017]_, is positive,
    or equally if the convex hull of the preferences y_i d_i and that of the ties, taken both ways,
    have no point in common (Farkas' lemma). A float solver finds w or the common point; then integer
    arithmetic, in which the given floats are exact, verifies it or corrects it.

    Parameters
    ----------
    pairs : Pairs or array-like of shape (m, 2, p)
    y : array-like of shape (m,)
        Labels -1, 0, 1. Ties alone are separable by w = 0; preferences alone are if
        0 is outside their hull.

    Returns
    -------
    answer : Separability

    Raises
    ------
    ValueError
        On bad pairs or labels, or differences that floats hold badly.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [3.0]], [[1, 0], [2, 1], [2, 0]])
    >>> separability(pairs, [0, 1, 1]).separable
    True
    >>> answer = separability(pairs, [1, 0, 1])
    >>> answer.separable, answer.exact_weights
    (False, {0: Fraction(1, 1), 1: Fraction(1, 2)})
    """
    rows = Rows.of(pairs, y)
    ties, scales = rows.ties, rows.scales()
    if ties.all():
        return _separable(np.zeros(len(scales)))
    solution, work = largest_ratio(rows, scales)
    coef = solution.coef / scales
    if solution.state > 0 and _separates(coef, rows):
        return _separable(coef)
    dual = rows.multipliers(work, solution.dual)
    matters = dual != 0
    if abs(solution.state) < _CLOSE:
        values = rows.values @ coef
        matters |= np.where(ties, 1 - np.abs(values), values - 1) < _CLOSE
    answer = _exact_answer(_Integers(rows), np.flatnonzero(matters))
    if answer is not None:
        return answer
    if solution.state > 0:
        return _separable(coef, exact=False)
    signed = np.where(ties, -dual, dual * rows.sign) / np.abs(dual[~ties]).sum()
    return _not_separable(dict(enumerate(signed.tolist())), ties, exact=False)


def verified(coef: Floats, rows: Rows) -> Floats:
    """Return the weights if they separate without any rounding; else say why there are none."""
    s, t = extremes(rows.values @ coef, rows.ties)
    if s > t and _separates(coef, rows):
        return coef
    answer = separability(rows.pairs, rows.y)
    if answer.separable or answer.weights is None:
        raise ValueError(
            "no weight vector was found, though the comparisons are separable: by a margin near the "
            "rounding of floats, or with features of very different scale; expected wider margins or "
            "standardised features"
        )
    named = [f"{i} (label {rows.y[i]:+d}, weight {answer.weights[i]:.3g})" for i in answer.support]
    error = NotSeparableError(
        "the comparisons are not linearly separable. The violated set is made of the pairs "
        + ", ".join(named[:_SHOWN])
        + (f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else "")
        + ": with these weights, the mean of the preferences, turned the right way, lies among the ties, "
        "so no weight vector is right on all of them; use a method with slack variables, such as "
        "SVMCompare"
    )
    error.certificate = answer
    raise error


def _separable(coef: NDArray | None, exact: bool = True) -> Separability:
    return Separability(True, exact, coef, None, np.empty(0, dtype=np.int64), {})


def _not_separable(certificate: dict[int, Any], ties: NDArray, exact: bool = True) -> Separability:
    certificate = {i: certificate[i] for i in sorted(certificate) if certificate[i]}
    support = np.array(list(certificate), dtype=np.int64)
    weights = np.zeros(len(ties))
    weights[support] = [float(a) for a in certificate.values()]
    return Separability(False, exact, None, weights, support, certificate if exact else {})


class _Integers:
    """The oriented differences as integers: floats are fractions over powers of two, and each
    feature is multiplied by the smallest power of two that makes all its values whole."""

    def __init__(self, rows: Rows) -> None:
        self.B, self.ties, self.sign = rows.pairs.B, rows.ties, rows.sign.astype(object)
        mantissas, exponents = np.frexp(rows.pairs.items)
        used = mantissas != 0
        self.powers = np.where(used, exponents - 53, 2000).min(axis=0)
        self._mantissas = np.ldexp(mantissas, 53).astype(np.int64)
        self._shifts = np.where(used, exponents - 53 - self.powers, 0)

    def rows(self, ids: NDArray) -> NDArray:
        """The rows y_i d_i or d_j, shape (k, p), of Python integers."""
        used, B = self.B[ids].compacted()
        items: Any = self._mantissas[used].astype(object) << self._shifts[used].astype(object)
        return (items[B.first] - items[B.second]) * self.sign[ids, None]  # B f, whose numbers are floats

    def weights(self, coef: NDArray) -> NDArray:
        """Integers proportional to the weights of the integer features."""
        fractions = [
            Fraction(w) * Fraction(2) ** int(k) for w, k in zip(coef.tolist(), self.powers, strict=True)
        ]
        common = lcm(*(fraction.denominator for fraction in fractions))
        return np.array([int(fraction * common) for fraction in fractions], dtype=object)

    def floats(self, weights: NDArray, scale: int) -> Floats | None:
        """The weights 2 w / scale of the features as given, or None if doubles cannot hold them."""
        try:
            return np.array(
                [
                    float(Fraction(2 * w, scale) / Fraction(2) ** int(k))
                    for w, k in zip(weights, self.powers, strict=True)
                ]
            )
        except OverflowError:
            return None

    def extremes(self, weights: NDArray, ids: NDArray) -> tuple[int | float, int]:
        """Exact s and t of `extremes` over the pairs `ids`, in units of the integer weights."""
        values, ties = self.rows(ids) @ weights, self.ties[ids]
        return min(values[~ties], default=np.inf), max(np.abs(values[ties]), default=0)


def _separates(coef: Floats, rows: Rows) -> bool:
    """Whether s(w) > t(w) without rounding; integers are needed only for pairs near the extremes."""
    values, ties = rows.values @ coef, rows.ties
    error = float(rows.largest() @ np.abs(coef))
    error = (len(coef) + 4) * (_EPS * error + np.finfo(np.float64).tiny)
    s, t = extremes(values, ties)
    if s - error > t + error:
        return True
    near = np.flatnonzero(np.where(ties, np.abs(values) >= t - 2 * error, values <= s + 2 * error))
    data = _Integers(rows)
    s_exact, t_exact = data.extremes(data.weights(coef), near)
    return bool(s_exact > t_exact)


def _exact_answer(data: _Integers, work: NDArray) -> Separability | None:
    """Prove one answer or the other in integers, from a working set that grows; None: too large.

    A common point of the two hulls of the working set is a certificate. Without one, Farkas' lemma
    gives weights that separate the working set: they separate all pairs, or a pair that they
    do not separate is added.
    """
    ties, everything = data.ties, np.arange(len(data.ties))
    all_rows, budget = None, _EXACT_WORK
    for _ in range(len(ties) + 1):  # each time but the last adds a pair
        rows, tied = data.rows(work), ties[work]
        meet, answer, cost = _common_point(rows[~tied], rows[tied], budget)
        budget -= cost
        if budget < 0:
            return None
        if meet:
            ids = np.concatenate([work[~tied], work[tied]])
            return _not_separable(dict(zip(ids.tolist(), answer, strict=True)), ties)
        all_rows = data.rows(everything) if all_rows is None else all_rows
        values = all_rows @ answer
        values[ties] = np.abs(values[ties])
        extreme = [everything[~ties][values[~ties].argmin()]]
        if ties.any():
            extreme.append(everything[ties][values[ties].argmax()])
        s, t = values[extreme[0]], values[extreme[1:]].sum()
        if s > t:
            coef = data.floats(answer, s + t)
            if coef is not None:
                s, t = data.extremes(data.weights(coef), everything)
            return _separable(coef if s > t else None)
        work = np.union1d(work, extreme)
    return None


def _common_point(preferences: NDArray, ties: NDArray, budget: float) -> tuple[bool, NDArray, float]:
    """A common point of conv(preferences) and conv(ties, both ways, and 0), or a separating w.

    Phase one of the simplex method with Bland's rule, in integers (Edmonds' fraction-free pivots), on:
    sum a_i p_i - sum (b_j - c_j) t_j = 0, sum a = 1, sum b + sum c + rest = 1, all >= 0.

    Returns
    -------
    meet : bool
    answer : ndarray of object
        The point: Fractions a_i, then b_j - c_j. Without one: integers w with min w·p_i > max |w·t_j|.
    cost : float
        The sum of the `_pivot_cost`; if it exceeds the budget, the other results mean nothing.
    """
    n, k, p = len(preferences), len(ties), preferences.shape[1]
    size = n + 2 * k + 1
    tableau = np.zeros((p + 3, size + p + 3), dtype=object)
    tableau[:p, :size] = np.vstack([preferences, -ties, ties, np.zeros((1, p), dtype=object)]).T
    tableau[p, :n] = 1
    tableau[p + 1, n:size] = 1
    tableau[np.arange(p + 2), size + np.arange(p + 2)] = 1
    tableau[[p, p + 1], -1] = 1
    tableau[-1, :size] = -tableau[:-1, :size].sum(axis=0)
    tableau[-1, -1] = -2
    basis = size + np.arange(p + 2)
    denominator, entry = 1, int(np.abs(tableau[:p]).max())
    expected = 2 * p * _pivot_cost(tableau.size, entry**p)  # as many pivots, of determinants of p rows
    cost = 0.0 if expected <= budget else np.inf
    while (entering := np.flatnonzero(tableau[-1, :size] < 0)).size and cost <= budget:
        column = entering[0]
        pivot_row = _leaving(tableau[:-1, column], tableau[:-1, -1], basis)
        pivot = tableau[pivot_row, column]
        kept = tableau[pivot_row].copy()
        tableau = (tableau * pivot - np.outer(tableau[:, column], kept)) // denominator
        tableau[pivot_row] = kept
        basis[pivot_row], denominator = column, pivot
        cost += _pivot_cost(tableau.size, pivot)
    if tableau[-1, -1] == 0:
        solution = np.full(size + p + 2, Fraction(0), dtype=object)
        solution[basis] = [Fraction(int(value), int(denominator)) for value in tableau[:-1, -1]]
        differences = solution[n : n + k] - solution[n + k : n + 2 * k]
        return True, np.concatenate([solution[:n], differences]), cost
    return False, tableau[-1, size : size + p] - denominator, cost


def _pivot_cost(entries: int, pivot: int) -> float:
    """Products and quotients of long integers take a time that is quadratic in their length."""
    return entries * (0.3 + 4.4e-6 * int(pivot).bit_length() ** 2)


def _leaving(column: NDArray, values: NDArray, basis: NDArray) -> int:
    """The row of the smallest ratio value/entry; of equal ones, that of the smallest variable."""
    best = -1
    for row in np.flatnonzero(column > 0):
        if best >= 0:
            ahead = values[row] * column[best] - values[best] * column[row]
            if ahead > 0 or (ahead == 0 and basis[row] > basis[best]):
                continue
        best = int(row)
    return best

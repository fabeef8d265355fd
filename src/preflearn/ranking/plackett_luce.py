"""The Plackett-Luce model of rankings with ties.

It is the extension of the model by [Turner2020]_.

References
----------
.. [Turner2020] H. L. Turner, J. van Etten, D. Firth, I. Kosmidis, "Modelling rankings
   in R: the PlackettLuce package", Computational Statistics 35, 2020.
.. [Luce1959] R. D. Luce, "Individual choice behavior", Wiley, 1959.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from preflearn.core.compilation import njit, njit_inner
from preflearn.core.diagnosis import INFORMATIVE_PENALTY, warn_if_not_identified
from preflearn.core.outcome_losses import davidson_probabilities
from preflearn.core.validation import (
    LARGEST,
    Floats,
    Ids,
    check_list,
    check_number,
    check_weights,
    require,
    short_repr,
    warn_user,
)
from preflearn.ranking.uncertainty import Uncertain
from preflearn.solvers.newton import warn_about_gap
from preflearn.solvers.smooth_losses import DENSE

# a larger weight means that all choices that could be ties are ties
_MAX_LOG_TIE_WEIGHT = 15.0
# gradient at which to stop, relative to the weights of the rankings
_TARGET_SLOPE = 1e-9
_WARNING_SLOPE = 1e-4
_REMEDY = "raise alpha to 0.1 or more (1/alpha is the prior variance of the scores)"


class PlackettLuce(Uncertain, BaseEstimator):
    """Plackett-Luce model: worths of items from rankings with ties.

    Choose it if the data are rankings of several items, not only pairs, and each
    ranking may contain only some of the items. The model is that of section 2 of
    [Turner2020]_.

    A ranking is a sequence of choices. From the remaining items A, the set C is chosen
    as the best with probability::

        f(C) / sum of f(S) over S in A of at most D items,    f(S) = delta_|S| (prod of e^theta_i)^(1/|S|),

    where delta_1 = 1, D is the size of the largest tie in the data, and delta is 0 for
    sizes that do not occur. Without ties this is the model of [Luce1959]_. For two
    items it is Davidson's model with nu = delta_2. The fit minimizes alpha/2
    theta·theta minus the log-likelihood. Items that come after all others in unknown
    order, such as the drivers of a race who did not finish, are not tied: pass them as
    `unranked`.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, positive.

    Attributes
    ----------
    items_ : list of length n
        Sorted names of the items.
    coef_ : ndarray of shape (n,)
        Log-worths theta, with mean 0.
    tie_weights_ : dict of int to float
        Tie weights delta, by the number of tied items.
    objective_ : float
        Minimum of the penalized negative log-likelihood.

    Notes
    -----
    Sums over sets of k items are elementary symmetric polynomials of e^(theta/k), which
    are updated by one product per item. A ranking of L items therefore takes O(L D²)
    operations, although the sums have (L over D) terms. The loss is convex in (theta,
    log delta) and is minimized by L-BFGS. Standard errors need its second derivatives,
    which take O(L² D²) operations per ranking, for at most 5,000 items.

    **Alternative.** With 2,000 items or more, a program that allows no ties fits
    rankings without ties five times as fast: the twenty lines `plain_plackett_luce` of
    benchmarks/static_plain.py (0.06 s, compared with 0.3 s here).

    Examples
    --------
    >>> model = PlackettLuce().fit([["a", "b", "c"], ["b", "a", "c"], ["a", ("b", "c")], ["c", "a", "b"]])
    >>> model.items_, model.coef_.round(2).tolist()
    (['a', 'b', 'c'], [0.92, -0.16, -0.76])
    >>> model.standard_errors([("a", "c")]).round(2).tolist()
    [1.19]
    """

    items_: list[Any]
    coef_: Floats
    tie_weights_: dict[int, float]
    objective_: float

    def __init__(self, alpha: float = 1e-3) -> None:
        self.alpha = alpha

    def fit(
        self,
        rankings: Iterable[Sequence[Any]],
        sample_weight: ArrayLike | None = None,
        unranked: Iterable[Collection[Any]] | None = None,
    ) -> Self:
        """Maximize the penalized likelihood.

        Parameters
        ----------
        rankings : sequence of sequences
            Rankings, each a list of names from best to worst. Names must be of the same
            type (all strings or all numbers). A tuple, list, or set in a ranking
            contains tied items.
        sample_weight : array-like, optional
            Nonnegative weights of the rankings.
        unranked : sequence of collections, optional
            For each ranking, further items that are worse than all of its items, in
            unknown order: the sequence of choices ends before them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `rankings` is not a sequence, or names cannot be sorted. If a ranking
            contains an item twice, where its unranked items count, too. If no ranking
            has two items that are not tied.

        Warns
        -----
        ConvergenceWarning
            If no optimum was found, or the optimal weight of ties is infinite.
        NotIdentifiedWarning
            If alpha is below 0.1, and groups never met, or some items never lose to the
            others.
        """
        alpha = check_number(self, "alpha", positive=True, most=LARGEST)
        expected = "a list of rankings, each a list of names, best first"
        sets = [_sets(row) for row in check_list(rankings, "rankings", expected)]
        last = _unranked(unranked, len(sets))
        # An empty ranking stays empty, and is an error.
        sets = [
            [*row, rest] if row and rest else row
            for row, rest in zip(sets, last, strict=True)
        ]
        flat = [list(chain.from_iterable(ranking)) for ranking in sets]
        good = any(len(ranking) > 1 for ranking in sets)
        require(
            good,
            sets,
            "rankings",
            "at least one ranking with two items that are not tied",
        )
        weights = check_weights(sample_weight, len(sets))
        self.items_ = _sorted_names(sets, flat)
        n = len(self.items_)
        self._place = {name: k for k, name in enumerate(self.items_)}
        n_last = np.array([len(rest) for rest in last], dtype=np.int64)
        data, kinds = _choices(sets, flat, self._place, weights, n_last)
        if alpha < INFORMATIVE_PENALTY:
            model = f"PlackettLuce(alpha={alpha:g})"
            _warn_if_not_identified(model, self.items_, data)
        problem = _Problem(alpha, n, kinds, data)
        start = np.zeros(n + len(kinds) - 1)
        limits = (-_MAX_LOG_TIE_WEIGHT, _MAX_LOG_TIE_WEIGHT)
        bounds = [(None, None)] * n + [limits] * (len(kinds) - 1)
        options = {
            "maxiter": 10_000,
            "maxfun": 100_000,
            "ftol": 0.0,
            "gtol": _TARGET_SLOPE * weights.sum(),
        }
        best = minimize(
            problem.at,
            start,
            method="L-BFGS-B",
            jac=True,
            bounds=bounds,
            options=options,
        )
        slope = np.abs(problem.at(best.x)[1]).max() / weights.sum()
        remedy = f"raise alpha (now {alpha:g})"
        warn_about_gap("PlackettLuce", slope, _WARNING_SLOPE, remedy)
        unbounded = kinds[1:][np.abs(best.x[n:]) >= _MAX_LOG_TIE_WEIGHT]
        if unbounded.size:
            warn_user(
                f"the weight of ties of {' or '.join(map(str, unbounded))} items is infinite, "
                "since all choices that could be such ties are ties: add rankings in which "
                "some choices are not ties (alpha does not limit this weight)",
                ConvergenceWarning,
            )
        self.coef_ = best.x[:n]
        self._x = best.x
        self._problem = problem
        self._n_judgments = float(weights.sum())
        self.objective_ = float(best.fun)
        self._inverse = None
        deltas = np.exp(np.append(0.0, best.x[n:]))
        self.tie_weights_ = dict(zip(kinds.tolist(), deltas.tolist(), strict=True))
        return self

    def probabilities(self, d: Floats) -> Floats:
        """Return probabilities of -1, 0, 1 at differences d of theta."""
        return davidson_probabilities(d, self.tie_weights_.get(2, 0.0))

    def _rows_and_scores(self, pairs: Any) -> tuple[Any, Floats]:
        check_is_fitted(self, "coef_")
        n = len(self.coef_)
        require(n <= DENSE, n, "the number of items", f"at most {DENSE}")
        rows: Any = sparse.eye_array(n, format="csr")
        if pairs is not None:
            try:
                places = [(self._place[a], self._place[b]) for a, b in pairs]
                ids = np.array(places).reshape(-1, 2)
                rows = rows[ids[:, 0]] - rows[ids[:, 1]]
            except (KeyError, IndexError, TypeError, ValueError):
                raise ValueError(
                    f"pairs is {short_repr(pairs)}; expected pairs of names among "
                    f"{short_repr(self.items_)}"
                ) from None
        return rows, rows @ self.coef_

    def _covariance_function(self) -> Callable[[Any], Floats]:
        if self._inverse is None:
            self._inverse = np.linalg.inv(self._problem.hessian(self._x))
        n = len(self.coef_)
        V = self._inverse[:n, :n]
        return lambda rows: rows @ (rows @ V).T


def _sets(ranking: Any) -> list[list[Hashable]]:
    """Return the list of items at each place of a ranking."""
    expected = (
        "a list of items, best first; for a dict of ranks pass "
        "sorted(ranks, key=ranks.get)"
    )
    require(not isinstance(ranking, Mapping), ranking, "a ranking", expected)
    places = []
    for place in check_list(ranking, "a ranking", "a list of items, best first"):
        tied = isinstance(place, (tuple, list, set, frozenset))
        places.append(list(place) if tied else [place])
    return places


def _unranked(unranked: Any, m: int) -> list[list[Hashable]]:
    """Return the unranked items of each of m rankings."""
    if unranked is None:
        return [[]] * m
    expected = "one list of items for each ranking"
    rows = check_list(unranked, "unranked", expected)
    require(len(rows) == m, unranked, "unranked", f"{expected}, of which there are {m}")
    for row in rows:
        is_collection = isinstance(row, (tuple, list, set, frozenset))
        require(is_collection, row, "an entry of unranked", "a list of items")
    return [list(row) for row in rows]


def _sorted_names(
    sets: list[list[list[Hashable]]], flat: list[list[Hashable]]
) -> list[Any]:
    """Return the sorted names of all rankings; raise ValueError for repeated names."""
    expected = "at least one item, each item once, and no NaN"
    try:
        for row, names in enumerate(flat):
            once = 0 < len(names) == len(set(names))
            good = once and all(sets[row]) and all(name == name for name in names)
            require(good, sets[row], f"rankings[{row}]", expected)
        return sorted(set[Any]().union(*flat))
    except TypeError:
        raise ValueError(
            f"the items are {short_repr(flat)}; expected names of one type (all strings or "
            "all numbers)"
        ) from None


class _Choices(NamedTuple):
    """Rankings as compressed rows: ranking r is at start[r] to start[r + 1]."""

    start: Ids  # (m + 1,)
    item: Ids  # item numbers, best first
    size: Ids  # number of items in the tie that contains this item; 0 if unranked
    begins: NDArray[np.bool_]  # whether the item is the first of its tie
    weights: Floats  # (m,) weights of the rankings


def _choices(
    sets: list[list[list[Hashable]]],
    flat: list[list[Hashable]],
    place: Mapping[Any, int],
    weights: Floats,
    n_last: Ids,
) -> tuple[_Choices, Ids]:
    """Return rankings as compressed rows, and the sizes of ties in them, from 1 on.

    The last n_last items of a ranking are unranked.
    """
    lengths = [len(names) for names in flat]
    start = np.concatenate([[0], np.cumsum(lengths)])
    names = chain.from_iterable(flat)
    item = np.fromiter((place[name] for name in names), np.int64, start[-1])
    tied = np.fromiter((len(group) for row in sets for group in row), np.int64)
    size = np.repeat(tied, tied)
    begins = np.zeros(len(item), dtype=bool)
    begins[np.cumsum(tied) - tied] = True
    behind = np.repeat(start[1:], lengths) - np.arange(len(item))  # 1 for the last item
    is_unranked = behind <= np.repeat(n_last, lengths)
    size[is_unranked] = 0
    begins[is_unranked] = False
    used = begins & np.repeat(weights > 0, lengths)
    kinds = np.union1d(1, size[used])
    return _Choices(start, item, size, begins, weights), kinds


def _warn_if_not_identified(model: str, items: list[Any], data: _Choices) -> None:
    """Warn if groups never meet, or some items never lose to the others.

    It suffices to compare each item with the next one of its ranking, tied or not, and
    each unranked item with the last one that is ranked.
    """
    weight = np.repeat(data.weights, np.diff(data.start))
    later = weight > 0
    later[data.start[:-1]] = False
    later = np.flatnonzero(later)
    is_ranked = data.size > 0
    place = np.arange(len(is_ranked))
    before = np.maximum.accumulate(np.where(is_ranked, place, 0))[later - 1]
    index = np.column_stack([data.item[before], data.item[later]])
    labels = 1 * (data.begins[later] | ~is_ranked[later])
    warn_if_not_identified(model, items, index, labels, remedy=_REMEDY)


class _Problem(NamedTuple):
    """Negative penalized log-likelihood at x = (theta, log delta of ties)."""

    alpha: float
    n: int
    kinds: Ids  # sizes of ties, including 1
    data: _Choices

    def at(self, x: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient."""
        n = self.n
        theta = x[:n]
        value, gradient = _loss(np.insert(x, n, 0.0), n, self.kinds, *self.data)
        gradient = np.delete(
            gradient, n
        )  # without the entry of log delta_1, which is fixed at 0
        gradient[:n] += self.alpha * theta
        return value + self.alpha / 2 * (theta @ theta), gradient

    def hessian(self, x: Floats) -> Floats:
        """Return the second derivatives."""
        n = self.n
        system = _hessian(np.insert(x, n, 0.0), n, self.kinds, *self.data)
        system = np.delete(np.delete(system, n, axis=0), n, axis=1)
        system[np.arange(n), np.arange(n)] += self.alpha
        return system


@njit_inner
def _workspace(start, kinds):
    """Allocate arrays for `_ranking_loss` of the longest ranking.

    The last axis has each quantity and its derivative in a direction.
    """
    n_kinds = len(kinds)
    longest = 0
    for r in range(len(start) - 1):
        longest = max(longest, start[r + 1] - start[r])
    u = np.empty((n_kinds, longest, 2))
    E = np.zeros((n_kinds, longest + 1, kinds[-1] + 1, 2))
    total = np.empty((longest, 2))
    back = np.empty((kinds[-1] + 1, 2))
    scores = np.zeros((longest + n_kinds, 2))
    slopes = np.empty((longest + n_kinds, 2))
    return u, E, total, back, scores, slopes


@njit_inner
def _ranking_loss(work, kinds, first, L, size, begins):
    """Compute the negative log-likelihood of one ranking of L items, with derivatives.

    In `work`, scores[:, 0] contains theta of the items, best first, and log delta, and
    scores[:, 1] a direction. The function sets slopes to the gradient, and to the
    product of the second derivatives with the direction. For sets of k items, E[i, j]
    is the elementary symmetric polynomial of degree j of u = e^(theta/k) over the items
    from place i on. The last axis has each quantity and its derivative in the
    direction; each formula for a derivative differentiates the line before it.
    """
    u, E, total, back, scores, slopes = work
    top = scores[
        0, 0
    ]  # subtracting a constant changes no probability and avoids overflow
    for i in range(L):
        top = max(top, scores[i, 0])
        total[i, 0] = 0.0
        total[i, 1] = 0.0
    for c in range(len(kinds)):
        k = kinds[c]
        delta = np.exp(scores[L + c, 0])
        for j in range(1, k + 1):
            E[c, L, j, 0] = 0.0
            E[c, L, j, 1] = 0.0
        E[c, L, 0, 0] = 1.0
        for i in range(L - 1, -1, -1):
            a = np.exp((scores[i, 0] - top) / k)
            da = a * scores[i, 1] / k
            u[c, i, 0] = a
            u[c, i, 1] = da
            E[c, i, 0, 0] = 1.0
            for j in range(1, k + 1):
                e = E[c, i + 1, j - 1, 0]
                de = E[c, i + 1, j - 1, 1]
                E[c, i, j, 0] = E[c, i + 1, j, 0] + a * e
                E[c, i, j, 1] = E[c, i + 1, j, 1] + da * e + a * de
            e = E[c, i, k, 0]
            total[i, 0] += delta * e
            total[i, 1] += delta * (E[c, i, k, 1] + scores[L + c, 1] * e)
    value = 0.0
    for i in range(L):
        slopes[i, 0] = 0.0
        slopes[i, 1] = 0.0
        if size[first + i] > 0:  # the choices end before the unranked items
            slopes[i, 0] = -1.0 / size[first + i]
            value -= (scores[i, 0] - top) / size[first + i]
        if begins[first + i]:
            value += np.log(total[i, 0])
    for c in range(len(kinds)):
        k = kinds[c]
        delta = np.exp(scores[L + c, 0])
        slopes[L + c, 0] = 0.0
        slopes[L + c, 1] = 0.0
        for j in range(k + 1):
            back[j, 0] = 0.0  # derivatives of the value with respect to E[c, i, j]
            back[j, 1] = 0.0
        for i in range(L):
            if begins[first + i]:
                share = delta / total[i, 0]
                d_share = share * (scores[L + c, 1] - total[i, 1] / total[i, 0])
                back[k, 0] += share
                back[k, 1] += d_share
                e = E[c, i, k, 0]
                slopes[L + c, 0] += share * e
                slopes[L + c, 1] += d_share * e + share * E[c, i, k, 1]
                if size[first + i] == k:
                    slopes[L + c, 0] -= 1.0
                    value -= scores[L + c, 0]
            a = u[c, i, 0]
            da = u[c, i, 1]
            inner = 0.0
            d_inner = 0.0
            for j in range(1, k + 1):
                e = E[c, i + 1, j - 1, 0]
                de = E[c, i + 1, j - 1, 1]
                inner += back[j, 0] * e
                d_inner += back[j, 1] * e + back[j, 0] * de
                back[j - 1, 0] += a * back[j, 0]
                back[j - 1, 1] += da * back[j, 0] + a * back[j, 1]
            slopes[i, 0] += inner * a / k
            slopes[i, 1] += (d_inner * a + inner * da) / k
    return value


@njit
def _loss(x, n, kinds, start, item, size, begins, weights):
    """Compute the negative log-likelihood at x = (theta, log delta), and its gradient."""
    n_kinds = len(kinds)
    work = _workspace(start, kinds)
    scores = work[4]
    slopes = work[5]
    gradient = np.zeros(len(x))
    value = 0.0
    for r in range(len(weights)):
        first = start[r]
        L = start[r + 1] - first
        for i in range(L):
            scores[i, 0] = x[item[first + i]]
        for c in range(n_kinds):
            scores[L + c, 0] = x[n + c]
        w = weights[r]
        value += w * _ranking_loss(work, kinds, first, L, size, begins)
        for i in range(L):
            gradient[item[first + i]] += w * slopes[i, 0]
        for c in range(n_kinds):
            gradient[n + c] += w * slopes[L + c, 0]
    return value, gradient


@njit
def _hessian(x, n, kinds, start, item, size, begins, weights):
    """Compute the second derivatives of `_loss`, one column per item of each ranking."""
    n_kinds = len(kinds)
    work = _workspace(start, kinds)
    scores = work[4]
    slopes = work[5]
    place = np.empty(len(scores), dtype=np.int64)
    system = np.zeros((len(x), len(x)))
    for r in range(len(weights)):
        first = start[r]
        L = start[r + 1] - first
        for i in range(L + n_kinds):
            place[i] = n + i - L
            if i < L:
                place[i] = item[first + i]
            scores[i, 0] = x[place[i]]
            scores[i, 1] = 0.0
        for column in range(L + n_kinds):
            scores[column, 1] = 1.0
            _ranking_loss(work, kinds, first, L, size, begins)
            scores[column, 1] = 0.0
            for i in range(L + n_kinds):
                system[place[i], place[column]] += weights[r] * slopes[i, 1]
    return system

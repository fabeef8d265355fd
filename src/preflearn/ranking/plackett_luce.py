"""Rankings of more than two, with ties: the model of Plackett and Luce, as
[Turner2020]_ have extended it.

References
----------
.. [Turner2020] H. L. Turner, J. van Etten, D. Firth, I. Kosmidis, "Modelling rankings
   in R: the PlackettLuce package", Computational Statistics 35, 2020.
.. [Luce1959] R. D. Luce, "Individual choice behavior", Wiley, 1959.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from preflearn.core.diagnosis import INFORMATIVE_PENALTY, warn_if_not_identified
from preflearn.core.outcome_losses import davidson_probabilities
from preflearn.core.validation import (
    LARGEST,
    Floats,
    check_list,
    check_number,
    check_weights,
    require,
    short_repr,
    warn_user,
)
from preflearn.ranking.uncertainty import Uncertain
from preflearn.solvers.newton import warn_about_gap

_STEP = 1e-4  # of differences of gradients
_MAX_LOG_TIE_WEIGHT = 15.0  # beyond, all choices that could be ties are ties
_WARNING_SLOPE = 1e-4  # times the weights of the rankings


class PlackettLuce(Uncertain, BaseEstimator):
    """A worth for each item, from rankings of some of them, with ties, section 2 of
    [Turner2020]_.

    A ranking is a sequence of choices: of those that are left, A, the set C is the best
    with probability::

        f(C) / sum of f(S) over S in A of at most D items,    f(S) = delta_|S| (prod of e^theta_i)^(1/|S|),

    with delta_1 = 1 and D the largest tie in the data; delta is 0 for sizes that do not
    occur. Without ties this is the model of [Luce1959]_, and of two items Davidson's
    with nu = delta_2. The fit minimises alpha/2 theta·theta minus the sum of the
    log-likelihoods.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, positive.

    Attributes
    ----------
    items_ : list of length n
        Names, sorted.
    coef_ : ndarray of shape (n,)
        theta, with mean 0.
    tie_weights_ : dict of int to float
        delta by the number of items that are tied.
    objective_ : float

    Notes
    -----
    Sums over sets of k items are elementary symmetric polynomials of e^(theta/k), which
    grow by one product with each item: a ranking of L items takes O(L D²), though it
    has sums over (L over D) sets.

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
        self, rankings: Iterable[Sequence[Any]], sample_weight: ArrayLike | None = None
    ) -> Self:
        """Maximise the penalised likelihood.

        Parameters
        ----------
        rankings : sequence of sequences
            Each from the best to the worst of the items that were ranked, by names of
            one kind (text or numbers); a tuple, list or set stands for items that are
            tied.
        sample_weight : array-like, optional
            A weight for each ranking.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a ranking has an item twice, none has two items that are not tied, or
            names cannot be sorted.

        Warns
        -----
        ConvergenceWarning
            If no optimum was found, or a weight of ties has no bound.
        NotIdentifiedWarning
            If alpha is below 0.1, and groups never met, or a part of the items never
            loses to the rest.
        """
        alpha = check_number(self, "alpha", positive=True, most=LARGEST)
        sets = [_sets(ranking) for ranking in rankings]
        flat = [[name for tied in ranking for name in tied] for ranking in sets]
        good = any(len(ranking) > 1 for ranking in sets)
        require(good, sets, "rankings", "one with two items that are not tied")
        weights = check_weights(sample_weight, len(sets))
        self.items_ = _sorted_names(sets, flat)
        n = len(self.items_)
        longest = max(map(len, flat))
        self._place = {name: k for k, name in enumerate(self.items_)}
        table = np.full((longest, len(sets)), n)
        sizes = np.ones((longest, len(sets)))
        begins = np.zeros((longest, len(sets)), dtype=bool)
        for row, (ranking, names) in enumerate(zip(sets, flat, strict=True)):
            lengths = np.array([len(tied) for tied in ranking])
            table[: len(names), row] = [self._place[name] for name in names]
            sizes[: len(names), row] = np.repeat(lengths, lengths)
            begins[np.cumsum(lengths) - lengths, row] = True
        kinds = np.union1d(1, sizes[begins & (weights > 0)]).astype(int)
        if alpha < INFORMATIVE_PENALTY:
            # each item and the next one of its ranking, tied (0) or not (1)
            later = (table[1:] < n) & (weights > 0)
            index = np.column_stack([table[:-1][later], table[1:][later]])
            labels = 1 * begins[1:][later]
            model = f"PlackettLuce(alpha={alpha:g})"
            warn_if_not_identified(model, self.items_, index, labels)
        self._data = alpha, kinds, table, sizes, begins, weights
        limits = (-_MAX_LOG_TIE_WEIGHT, _MAX_LOG_TIE_WEIGHT)
        bounds = [(None, None)] * n + [limits] * (len(kinds) - 1)
        options = {
            "maxiter": 10_000,
            "maxfun": 100_000,
            "ftol": 0.0,
            "gtol": 1e-9 * weights.sum(),
        }
        start = np.zeros(len(bounds))
        best = minimize(
            _loss, start, self._data, "L-BFGS-B", True, bounds=bounds, options=options
        )
        slope = np.abs(_loss(best.x, *self._data)[1]).max() / weights.sum()
        remedy = f"raise alpha = {alpha:g}"
        warn_about_gap("PlackettLuce", slope, _WARNING_SLOPE, remedy)
        unbounded = kinds[1:][np.abs(best.x[n:]) >= _MAX_LOG_TIE_WEIGHT]
        if unbounded.size:
            warn_user(
                f"the weight of ties of {' or '.join(map(str, unbounded))} items has no bound, "
                "as all choices that could be ties are: expected rankings in which some "
                "are not (no alpha bounds it)",
                ConvergenceWarning,
            )
        self.coef_ = best.x[:n]
        self._x = best.x
        self.objective_ = float(best.fun)
        self._inverse = None
        deltas = np.exp(np.append(0.0, best.x[n:]))
        self.tie_weights_ = dict(zip(kinds.tolist(), deltas.tolist(), strict=True))
        return self

    def probabilities(self, d: Floats) -> Floats:
        """Probabilities of the outcomes -1, 0, 1 at differences d of theta, (m, 3)."""
        return davidson_probabilities(d, self.tie_weights_.get(2, 0.0))

    def _rows_and_scores(self, pairs: Any) -> tuple[Any, Floats]:
        check_is_fitted(self, "coef_")
        rows = np.eye(len(self.coef_))
        if pairs is None:
            rows -= rows.mean(axis=0)
        else:
            try:
                places = [(self._place[a], self._place[b]) for a, b in pairs]
                ids = np.array(places).reshape(-1, 2)
                rows = rows[ids[:, 0]] - rows[ids[:, 1]]
            except (KeyError, IndexError, TypeError, ValueError):
                raise ValueError(
                    f"pairs is {short_repr(pairs)}; expected two names each, "
                    f"among {short_repr(self.items_)}"
                ) from None
        return rows, rows @ self.coef_

    def _covariance_of(self, rows: Any) -> Floats:
        # the inverse of the second derivatives, by central differences of gradients
        if self._inverse is None:
            steps = _STEP * np.eye(len(self._x))
            up = [_loss(self._x + step, *self._data)[1] for step in steps]
            down = [_loss(self._x - step, *self._data)[1] for step in steps]
            self._inverse = np.linalg.inv(np.subtract(up, down) / (2 * _STEP))
        n = len(self.coef_)
        return rows @ self._inverse[:n, :n] @ rows.T


def _sets(ranking: Any) -> list[list[Hashable]]:
    """The items of each place of a ranking."""
    expected = "items, the best first: of a dict of ranks, sorted(ranks, key=ranks.get)"
    require(not isinstance(ranking, Mapping), ranking, "a ranking", expected)
    places = []
    for place in check_list(ranking, "a ranking", "items"):
        tied = isinstance(place, (tuple, list, set, frozenset))
        places.append(list(place) if tied else [place])
    return places


def _sorted_names(
    sets: list[list[list[Hashable]]], flat: list[list[Hashable]]
) -> list[Any]:
    """The names of all rankings, sorted; ValueError where one is missing or repeated."""
    expected = "each item once, at least one, and no NaN"
    try:
        for row, names in enumerate(flat):
            once = 0 < len(names) == len(set(names))
            good = once and all(sets[row]) and all(name == name for name in names)
            require(good, sets[row], f"ranking {row}", expected)
        return sorted(set[Any]().union(*flat))
    except TypeError:
        raise ValueError(
            f"the items are {short_repr(flat)}; expected names of one kind"
        ) from None


def _loss(
    x: Floats,
    alpha: float,
    kinds: NDArray,
    table: NDArray,
    sizes: Floats,
    begins: NDArray[np.bool_],
    weights: Floats,
) -> tuple[float, Floats]:
    """Minus the penalised log-likelihood at x = (theta, log delta of ties), and its
    gradient.

    Column r of the table has the items of ranking r, the best first, then n. E[i, m] is
    the elementary symmetric polynomial of degree m in the items from place i on.
    """
    n = len(x) - len(kinds) + 1
    (longest, count) = table.shape
    theta = np.append(x[:n], -np.inf)
    deltas = np.exp(np.append(0.0, x[n:]))
    # a constant per ranking, which changes no probability, avoids overflow
    scores = theta[table] - theta[table].max(axis=0)
    total = np.zeros((longest, count))
    steps = []
    for k, delta in zip(kinds, deltas, strict=True):
        worth = np.exp(scores / k)
        E = np.zeros((longest + 1, k + 1, count))
        E[:, 0] = 1.0
        for i in reversed(range(longest)):
            E[i, 1:] = E[i + 1, 1:] + worth[i] * E[i + 1, :-1]
        total += delta * E[:longest, k]
        steps.append((k, delta, worth, E))
    total = np.where(begins, total, 1.0)
    chosen = [np.sum(weights * (begins & (sizes == k))) for k in kinds]
    share = weights * begins / total
    present = table < n
    value = np.sum(weights * np.log(total)) - np.sum(
        weights * np.where(present, scores, 0.0) / sizes
    )
    slope = -weights * present / sizes
    slopes = []
    for (k, delta, worth, E), c in zip(steps, chosen, strict=True):
        back = np.zeros((k + 1, count))  # the derivatives in E[i]
        for i in range(longest):
            back[k] += delta * share[i]
            slope[i] += np.sum(back[1:] * E[i + 1, :-1], axis=0) * worth[i] / k
            back[:-1] += worth[i] * back[1:]
        slopes.append(np.sum(delta * share * E[:longest, k]) - c)
    value += alpha / 2 * (x[:n] @ x[:n]) - chosen[1:] @ x[n:]
    of_items = np.bincount(table.ravel(), slope.ravel(), n + 1)[:n] + alpha * x[:n]
    return float(value), np.append(of_items, slopes[1:])

"""The effect of being listed first: at home, with the white pieces, on the left."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from scipy.sparse.csgraph import connected_components

from preflearn.core.validation import check_choice
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson
from preflearn_book.sentences import between

# A weak penalty: a strong one would attribute score differences to the order.
_PENALTY = 0.1
# The penalty on the order effect is 1 / _SCALE**2 of the penalty on scores.
_SCALE = 10.0
_MAX_ITEMS = 1_000
_MIN_CYCLES = 10
# An interval that ends closer to 50 %, in percentage points, decides barely.
_BORDERLINE = 1.0


class OrderEffect(NamedTuple):
    """Log-odds that being listed first adds to a score, estimated with all scores.

    Attributes
    ----------
    estimate : float
        Estimate of the effect.
    half_width : float
        Half of the width of the 95 % interval.
    one_order : bool
        Whether each pair is listed in one order only, so that only cycles of pairs
        separate the effect from the scores.
    identified : bool
        Whether the data separate the effect from the scores: some pair is listed in
        both orders, or the pairs form at least ten independent cycles.
    """

    estimate: float
    half_width: float
    one_order: bool
    identified: bool = True

    def matters(self, advantage: str) -> bool:
        """Whether the models include the effect.

        Parameters
        ----------
        advantage : {"auto", "yes", "no"}
            "auto" includes the effect if it is identified and its 95 % interval
            excludes 0.

        Raises
        ------
        ValueError
            If `advantage` is another value.
        """
        check_choice(advantage, "advantage", ("auto", "yes", "no"))
        if advantage == "auto":
            return self.identified and abs(self.estimate) > self.half_width
        return advantage == "yes"

    def percentages(self) -> str:
        """Percentage of wins of the first against an equal, without ties."""
        log_odds = self.estimate + self.half_width * np.array([0.0, -1.0, 1.0])
        middle, low, high = 100 * special.expit(log_odds)
        ends = between(low, high, 0, 50.0).replace("\u00a0", " ")
        return f"{middle:.0f} % (95 % interval: {ends} %)"

    def verdict(self, advantage: str, subject: str, verb: str, without: str) -> str:
        """Sentence on whether the models include the effect, and why.

        Parameters
        ----------
        advantage : {"auto", "yes", "no"}
        subject : str
            Plural noun, such as "the models".
        verb, without : str
            What the subject does with and without the effect, such as "include this
            advantage" and "have no such advantage".

        Examples
        --------
        >>> effect = OrderEffect(0.5, 0.49, one_order=False)
        >>> effect.verdict("auto", "the models", "have it", "do not")
        'The interval barely excludes 50 %, so the models have it; with `-p advantage no`, the models do not.'
        """
        included = self.matters(advantage)
        does = verb if included else without
        if advantage != "auto":
            return f"As `-p advantage {advantage}` asks, {subject} {does}."
        if not self.identified:
            return f"{subject[:1].upper()}{subject[1:]} {does}."
        ends = self.estimate + self.half_width * np.array([-1.0, 1.0])
        distance = float(np.abs(100 * special.expit(ends) - 50.0).min())
        excludes = "excludes" if included else "includes"
        if distance >= _BORDERLINE:
            return f"The interval {excludes} 50 %, so {subject} {does}."
        choice, other = ("no", without) if included else ("yes", verb)
        return (
            f"The interval barely {excludes} 50 %, so {subject} {does}; with "
            f"`-p advantage {choice}`, {subject} {other}."
        )


def order_effect(
    index: NDArray[np.int64],
    y: NDArray[Any],
    amount: NDArray[Any] | None = None,
    cluster: NDArray[Any] | None = None,
) -> OrderEffect:
    """Estimate the effect of being listed first together with the scores of all items.

    The model is Davidson's with the score difference s_first - s_second + a * effect,
    where a is the `amount`. The percentage of wins of the first is not enough, because
    the better item may be listed first.

    Parameters
    ----------
    index : ndarray of shape (m, 2)
        Numbers of the first and the second item of each comparison.
    y : ndarray of shape (m,)
        Outcomes 1, 0, -1.
    amount : ndarray of shape (m,), optional
        Amount of the advantage in each comparison, such as 0 at a neutral venue; by
        default 1.
    cluster : ndarray of shape (m,), optional
        Judge of each comparison. The interval is the wider of the intervals with and
        without clustering by judge.

    Examples
    --------
    >>> index = np.array([[0, 1], [1, 0]] * 40)
    >>> order_effect(index, np.array([1, 1, 1, 1, 1, 1, -1, -1] * 10)).percentages()
    '75 % (95 % interval: 64 to 83 %)'
    """
    if amount is None:
        amount = np.ones(len(y))
    counts = np.bincount(index.ravel())
    frequent = np.argsort(-counts, kind="stable")[:_MAX_ITEMS]
    kept = np.isin(index, frequent).all(axis=1)
    _, ids = np.unique(index[kept], return_inverse=True)
    ids = ids.reshape(-1, 2)
    n = int(ids.max()) + 1
    pairs = _pairs_with_order(ids, n, amount[kept])
    fits = [Davidson(_PENALTY).fit(pairs, y[kept])]
    if cluster is not None:
        fits.append(Davidson(_PENALTY).fit(pairs, y[kept], cluster=cluster[kept]))
    row: Any = sparse.csr_array(([_SCALE], ([0], [n])), shape=(2, n + 1))
    moments = [model.moments(Pairs(row, [[0, 1]])) for model in fits]
    variance = max(float(variance[0]) for _, variance in moments)
    one_order = _is_one_order(index)
    return OrderEffect(
        float(moments[0][0][0]),
        1.96 * math.sqrt(variance),
        one_order,
        not one_order or _n_cycles(index) >= _MIN_CYCLES,
    )


def _is_one_order(index: NDArray[np.int64]) -> bool:
    """Whether no pair is listed in both orders."""
    pairs = np.unique(index, axis=0)
    width = int(index.max()) + 1
    return not np.isin(pairs @ [width, 1], pairs @ [1, width]).any()


def _n_cycles(index: NDArray[np.int64]) -> int:
    """Number of independent cycles in the graph of compared pairs."""
    pairs = np.unique(np.sort(index, axis=1), axis=0)
    items, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(-1, 2)
    edges = (np.ones(len(pairs)), (ends[:, 0], ends[:, 1]))
    graph = sparse.csr_array(edges, shape=(len(items), len(items)))
    n_components, _ = connected_components(graph, directed=False)
    return len(pairs) - len(items) + int(n_components)


def _pairs_with_order(ids: NDArray[np.int64], n: int, amount: NDArray[Any]) -> Pairs:
    """Pairs whose first item has the amount of its advantage as one more feature."""
    levels, level = np.unique(amount, return_inverse=True)
    items = sparse.eye_array(n, format="csr")
    sides = [
        sparse.hstack([items, np.full((n, 1), _SCALE * value)])
        for value in (0.0, *levels)
    ]
    index = np.column_stack([ids[:, 0] + n * (1 + level.ravel()), ids[:, 1]])
    stacked: Any = sparse.vstack(sides, format="csr")
    return Pairs(stacked, index)

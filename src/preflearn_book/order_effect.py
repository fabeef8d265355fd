"""The effect of being listed first: at home, with the white pieces, on the left."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from preflearn.core.validation import check_choice
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson

_PENALTY = 0.1  # of scores; a strong one would leave differences of items to the order
_SCALE = 10.0  # the order effect is pulled to 0 a hundred times less than scores
_MAX_ITEMS = 1_000


class OrderEffect(NamedTuple):
    """What being first adds to a score, in log-odds, estimated next to all scores.

    Attributes
    ----------
    estimate : float
    half_width : float
        Half of the interval of 95 %.
    one_order : bool
        Whether each pair is listed in one order only, so that the effect can be
        separated from the scores only by way of other pairs.
    """

    estimate: float
    half_width: float
    one_order: bool

    def matters(self, advantage: str) -> bool:
        """Whether models have the effect: "yes", "no", or "auto" where the data show it.

        Raises
        ------
        ValueError
            If `advantage` is none of these.
        """
        check_choice(advantage, "advantage", ("auto", "yes", "no"))
        if advantage == "auto":
            return abs(self.estimate) > self.half_width
        return advantage == "yes"

    def percentages(self) -> str:
        """How often the first wins against an equal, ties aside, with its interval."""
        ends = self.estimate + self.half_width * np.array([0.0, -1.0, 1.0])
        middle, low, high = 100 * special.expit(ends)
        return f"{middle:.0f} % (95 %: {low:.0f} to {high:.0f} %)"


def order_effect(
    index: NDArray[np.int64],
    y: NDArray[Any],
    amount: NDArray[Any] | None = None,
    cluster: NDArray[Any] | None = None,
) -> OrderEffect:
    """Estimate how much being first adds, next to the scores of all items.

    The model is Davidson's with the difference s_first - s_second + a * effect, where a
    is the `amount`. Wins of the first alone say nothing: the better item may be listed
    first.

    Parameters
    ----------
    index : ndarray of shape (m, 2)
        Numbers of the first and the second item of each comparison.
    y : ndarray of shape (m,)
        Outcomes 1, 0, -1.
    amount : ndarray of shape (m,), optional
        Amount of the advantage in each comparison, such as 0 at a neutral place; by
        default 1.
    cluster : ndarray of shape (m,), optional
        Judge of each comparison; the interval is the wider one with and without.

    Examples
    --------
    >>> index = np.array([[0, 1], [1, 0]] * 40)
    >>> order_effect(index, np.array([1, 1, 1, 1, 1, 1, -1, -1] * 10)).percentages()
    '75 % (95 %: 64 to 83 %)'
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
    listed = np.unique(index, axis=0)
    width = int(index.max()) + 1
    one_order = not np.isin(listed @ [width, 1], listed @ [1, width]).any()
    return OrderEffect(
        float(moments[0][0][0]), 1.96 * math.sqrt(variance), bool(one_order)
    )


def _pairs_with_order(ids: NDArray[np.int64], n: int, amount: NDArray[Any]) -> Pairs:
    """Pairs whose first item has one more feature: the amount of its advantage."""
    levels, level = np.unique(amount, return_inverse=True)
    items = sparse.eye_array(n, format="csr")
    sides = [
        sparse.hstack([items, np.full((n, 1), _SCALE * value)])
        for value in (0.0, *levels)
    ]
    index = np.column_stack([ids[:, 0] + n * (1 + level.ravel()), ids[:, 1]])
    stacked: Any = sparse.vstack(sides, format="csr")
    return Pairs(stacked, index)

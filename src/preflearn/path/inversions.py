"""Pairs in the wrong order, counted while scores move: compiled."""

from __future__ import annotations

import numpy as np

from preflearn.checks import Floats, Ids
from preflearn.compiled import njit


class Inversions:
    """How many pairs (better, other) are in the wrong order, as the scores of n items move from knot to knot.

    The items are kept in the order of their scores. Between two knots scores are linear, so two items change
    places at most once, and an insertion sort meets exactly these.
    """

    def __init__(self, index: Ids, scores: Floats):
        n = len(scores)
        self._order = np.argsort(-scores, kind="stable")
        place = np.empty(n, dtype=np.int64)
        place[self._order] = np.arange(n)
        better, other = index[:, 0], index[:, 1]
        self._keys, self._counts = np.unique(better * n + other, return_counts=True)
        self.wrong = int(np.count_nonzero(place[better] >= place[other]))

    def follow(self, lams: Floats, scores: Floats) -> tuple[Floats, Floats]:
        """The lambdas at which the count changes, and by how much.

        Parameters
        ----------
        lams : ndarray of shape (k,)
            Decreasing.
        scores : ndarray of shape (n, k)
            Those of the items there, linear in between.
        """
        places, changes = _exchanges(
            self._order, np.ascontiguousarray(scores.T), lams, self._keys, self._counts
        )
        self.wrong += int(changes.sum())
        return places, changes


@njit
def _exchanges(order, scores, lams, keys, counts):
    """Sort the order at each knot; note each exchange that changes the number of wrong pairs."""
    places, changes, used, n = np.empty(64), np.empty(64), 0, len(order)
    for k in range(1, len(lams)):
        before, after = scores[k - 1], scores[k]
        for i in range(1, n):
            item, j = order[i], i - 1
            while j >= 0 and after[order[j]] < after[item]:
                passed = order[j]
                order[j + 1] = passed
                change = _number(keys, counts, passed * n + item) - _number(keys, counts, item * n + passed)
                if change != 0:
                    if used == len(places):
                        places = np.append(places, np.empty(used))
                        changes = np.append(changes, np.empty(used))
                    ahead, behind = before[passed] - before[item], after[item] - after[passed]
                    share = max(ahead, 0.0) / (max(ahead, 0.0) + behind)
                    places[used], changes[used] = lams[k - 1] - share * (lams[k - 1] - lams[k]), change
                    used += 1
                j -= 1
            order[j + 1] = item
    return places[:used].copy(), changes[:used].copy()


@njit
def _number(keys, counts, key):
    """How often this pair occurs."""
    k = np.searchsorted(keys, key)
    return counts[k] if k < len(keys) and keys[k] == key else 0

"""The search among orders behind `preflearn.ranking.kemeny`: who reaches whom, and two ways to look."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, Ids
from preflearn.compiled import njit


def reachable(beats: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which items a chain leads to, the item itself among them."""
    reach = beats | np.eye(len(beats), dtype=bool)
    while True:
        further = reach.astype(np.float32) @ reach > 0
        if (further == reach).all():
            return reach
        reach = further


@njit
def best_order(excess: Floats) -> Ids:
    """The order with the largest sum of excess[i, j] over all i before j, over all orders."""
    n = len(excess)
    best = np.full(1 << n, -np.inf)
    last = np.zeros(1 << n, np.int64)
    best[0] = 0.0
    for chosen in range((1 << n) - 1):
        for i in range(n):
            if chosen >> i & 1 == 0:
                gain = best[chosen]
                for j in range(n):
                    if chosen >> j & 1 == 0:
                        gain += excess[i, j]
                if gain > best[chosen | 1 << i]:
                    best[chosen | 1 << i], last[chosen | 1 << i] = gain, i
    order, chosen = np.empty(n, np.int64), (1 << n) - 1
    for place in range(n - 1, -1, -1):
        order[place] = last[chosen]
        chosen ^= 1 << order[place]
    return order


@njit
def improved_order(excess: Floats) -> Ids:
    """The order 0, 1, ... improved by moves of one item, until none raises the sum."""
    n = len(excess)
    order = np.arange(n)
    least = 1e-12 * np.abs(excess).max()
    moved = True
    while moved:
        moved = False
        for start in range(n):
            i, best, target = order[start], least, start
            for step in (-1, 1):
                gain, place = 0.0, start + step
                while 0 <= place < n:
                    gain -= step * excess[i, order[place]]
                    if gain > best:
                        best, target = gain, place
                    place += step
            if target != start:
                moved = True
                step = 1 if target > start else -1
                for place in range(start, target, step):
                    order[place] = order[place + step]
                order[target] = i
    return order

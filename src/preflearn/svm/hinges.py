"""The problem that both solvers share, a sum of hinge losses of differences, and what proves an answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, Ids


class Rows(NamedTuple):
    """Hinges cost_i max(0, label_i (h_i - beta)): one of each pair, then the second ones of the last pairs.

    The two copies of a tie have opposite differences: two rows, one difference.
    """

    n_pairs: int
    sign: Floats  # (rows,)
    label: Floats  # (rows,)
    low: Floats  # (rows,) bounds of s, from 0 to label · cost
    high: Floats
    biased: bool

    @classmethod
    def of(cls, y: NDArray, cost: Floats, biased: bool) -> Rows:
        """The rows of eq. 8 for labels that are sorted, ties last; without beta, ties are preferences too."""
        ties = np.count_nonzero(y == 0)
        direction = np.append(np.where(y == 0, -1.0, y), np.ones(ties))
        label = np.append(np.where((y == 0) & biased, -1.0, 1.0), np.full(ties, -1.0 if biased else 1.0))
        bound = label * np.append(cost, cost[len(y) - ties :])
        return cls(len(y), label * direction, label, np.minimum(bound, 0), np.maximum(bound, 0), biased)

    @property
    def cost(self) -> Floats:
        return self.high - self.low

    def expanded(self, values: NDArray) -> NDArray:
        """Values of the pairs, for each row."""
        return np.append(values, values[2 * self.n_pairs - len(self.sign) :])

    def summed(self, values: Floats) -> Floats:
        """Values of the rows, added up for each pair."""
        total = values[: self.n_pairs].copy()
        total[2 * self.n_pairs - len(values) :] += values[self.n_pairs :]
        return total

    def slopes(self, z: Floats) -> Floats:
        return self.label - self.sign * self.expanded(z)

    def of_block(self, pairs: Ids) -> tuple[Ids, Rows]:
        """The rows of some pairs in order, and their places among all rows."""
        n_ties = len(self.sign) - self.n_pairs
        rows = np.append(pairs, pairs[pairs >= self.n_pairs - n_ties] + n_ties)
        sign, label, low, high = self.sign[rows], self.label[rows], self.low[rows], self.high[rows]
        return rows, Rows(len(pairs), sign, label, low, high, self.biased)

    def feasible(self, s: Floats) -> Floats:
        """The weights, with the heavier side scaled down until their sum is 0."""
        if not self.biased:
            return s
        up, down = s[s > 0].sum(), -s[s < 0].sum()
        return s * np.where(s > 0, min(1.0, down / up if up else 1.0), min(1.0, up / down if down else 1.0))


class Certificate(NamedTuple):
    """The value of the hinges at u = sum a_k d_k, and how far from the optimum it can be at most."""

    objective: float
    gap: float  # relative to the objective
    bias: float


def certificate(rows: Rows, z: Floats, squared: float, dual: float, noise: float) -> Certificate:
    """Of a function: from its differences z of scores and u·u, with the beta of least loss, and a dual value.

    Of several such beta, the middle. The rounding of z, by about `noise`, counts as part of the gap.
    """
    h = rows.slopes(z)
    bias = best_bias(rows, h) if rows.biased else 0.0
    loss = rows.label * (h - bias)
    objective = squared / 2 + float(rows.cost @ np.maximum(0.0, loss))
    doubt = noise * float(np.linalg.norm(rows.cost[loss > -noise]))
    return Certificate(objective, (abs(objective - dual) + doubt) / objective, bias)


def best_bias(rows: Rows, h: Floats) -> float:
    """The loss is convex and piecewise linear in beta: its slope rises by cost_i at h_i."""
    order = np.argsort(h)
    slope = np.cumsum(rows.cost[order]) - rows.high.sum()
    zero = 1e-12 * rows.cost.sum()
    low, high = np.searchsorted(slope, [-zero, zero])
    return float((h[order[low]] + h[order[min(high, len(h) - 1)]]) / 2)

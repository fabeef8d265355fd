"""The stepping engine of regularization paths: piecewise linear solutions of a parametric quadratic program.

Weights alpha in [0, 1] with signs y and F = K (y alpha) + linear + offset are kept optimal while time runs:

    alpha_i = 0 and y_i F_i >= margin,   alpha_i = 1 and y_i F_i <= margin,   y_i F_i = margin,

where the margin falls at the rate `drop` and sum(y alpha) grows at the rate `inflow`. Between two events
everything is linear in time. At an event the directions solve a complementarity problem of the points on
the margin, by pivots: it says what enters and leaves, however many points arrive at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Elbow", "Homotopy", "Middle"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

BOUND = 1e-12  # a weight this near to 0 or 1 is there
_SLOPE = 1e-10  # a slope below this part of its unit is rounding
_ON_MARGIN = 1e-11  # relative to the margin


class Elbow:
    """The points on the margin whose weights move, with the inverse of their Gram plus a constant tau.

    The constant changes nothing for weights of fixed sum, and makes the matrix positive definite
    exactly where the system bordered by the sum is regular.
    """

    def __init__(self, K: Floats):
        self._K, self._tau, self.size = K, float(np.mean(np.diag(K))) or 1.0, 0
        self._index, self._rows = np.empty(16, dtype=np.int64), np.empty((16, len(K)))
        self._gram, self._inverse = np.empty((16, 16)), np.empty((16, 16))

    @property
    def index(self) -> Ids:
        """Ids of the points, in the order of `rows` and of solutions."""
        return self._index[: self.size]

    @property
    def rows(self) -> Floats:
        """Rows of K of these points, shape (size, m)."""
        return self._rows[: self.size]

    def add(self, point: int) -> bool:
        """Take a point in; False, and nothing changes, if its row depends on those of the others."""
        n = self.size
        if n == len(self._index):
            self._grow()
        gram, inverse = self._gram[:n, :n], self._inverse[:n, :n]
        cross, own = self._K[point, self.index] + self._tau, self._K[point, point] + self._tau
        weights = inverse @ cross
        weights += inverse @ (cross - gram @ weights)
        rest = own - cross @ weights
        if rest <= 1e-12 * own:
            return False
        inverse += np.outer(weights, weights / rest)
        self._inverse[n, :n] = self._inverse[:n, n] = -weights / rest
        self._gram[n, :n] = self._gram[:n, n] = cross
        self._inverse[n, n], self._gram[n, n] = 1 / rest, own
        self._index[n], self._rows[n] = point, self._K[point]
        self.size = n + 1
        return True

    def remove(self, place: int) -> int:
        """Let the point at this place go and return its id; the last point takes its place."""
        point, last = int(self._index[place]), self.size - 1
        for matrix in (self._gram, self._inverse):
            matrix[[place, last], : last + 1] = matrix[[last, place], : last + 1]
            matrix[: last + 1, [place, last]] = matrix[: last + 1, [last, place]]
        self._index[place], self._rows[place] = self._index[last], self._rows[last]
        column = self._inverse[:last, last]
        self._inverse[:last, :last] -= np.outer(column, column / self._inverse[last, last])
        self.size = last
        return point

    def solve(self, values: Floats, total: float) -> tuple[Floats, float]:
        """delta and delta_0 with K delta + delta_0 = values on these points and sum(delta) = total."""
        n = self.size
        gram = self._gram[:n, :n]
        delta, shift = self._once(values, total)
        for _ in range(3):
            residual = values - shift - gram @ delta
            change, more = self._once(residual, total - delta.sum())
            delta, shift = delta + change, shift + more
            if np.abs(residual).max() <= 1e-9 * max(np.abs(values).max(), abs(total) * self._tau):
                break
            self._inverse[:n, :n] = np.linalg.inv(gram)
        return delta, shift + self._tau * total

    def _once(self, values: Floats, total: float) -> tuple[Floats, float]:
        inverse = self._inverse[: self.size, : self.size]
        ones, plain = inverse.sum(axis=0), inverse @ values
        shift = (plain.sum() - total) / ones.sum()
        return plain - shift * ones, shift

    def _grow(self) -> None:
        n = self.size
        for name in ("_index", "_rows", "_gram", "_inverse"):
            old = getattr(self, name)
            shape = (2 * n, 2 * n) if name in ("_gram", "_inverse") else (2 * n, *old.shape[1:])
            new = np.empty(shape, dtype=old.dtype)
            new[(slice(n),) * (2 if name in ("_gram", "_inverse") else 1)] = old
            setattr(self, name, new)


class Homotopy:
    """Optimal weights as time runs; `turn` finds the directions at the present time, `advance` follows them.

    Attributes
    ----------
    alpha, F : ndarray of shape (m,)
    offset, margin : float
    elbow : Elbow
    moves : ndarray of shape (elbow.size,)
        Change of the weights of the elbow per unit of time.
    slope : float
        Change of the offset per unit of time.
    """

    def __init__(self, K: Floats, y: Floats, alpha: Floats, linear: Floats, offset: float, margin: float, *,
                 elbow: Ids, drop: float, inflow: float):  # fmt: skip
        self.K, self.y, self.alpha, self.linear = K, y, alpha, linear
        self.offset, self.margin, self.drop, self.inflow = offset, margin, drop, inflow
        self.moves, self.slope, self.elbow = np.zeros(0), 0.0, Elbow(K)
        self.side = np.where(alpha > 0.5, -1.0, 1.0)
        self._largest = float(np.abs(np.diag(K)).max())
        self._unit = 1.0 if drop else float(np.mean(np.diag(K))) or 1.0
        self._parked: list[int] = []  # on the margin, but their rows depend on those of the elbow
        self._resting: Ids = np.zeros(0, dtype=np.int64)  # on the margin, not moving inward but for rounding
        self._changed = True  # the elbow, since the directions were computed
        self._hits: Ids = np.zeros(0, dtype=np.int64)
        self.log: list[tuple[int, str]] = []
        self._spread()
        for point in elbow:
            self._enter(int(point))
        self.log.clear()

    def turn(self, horizon: float) -> None:
        """Find the elbow and its directions from here on; `horizon` is the time that is left."""
        weak = self._outside_on_margin()
        self._parked, limit = [], 20 + 4 * (len(weak) + self.elbow.size)
        for count in range(10 * limit):
            index = self.elbow.index
            if self._changed:
                y = self.y[index]
                signed, self.slope = self.elbow.solve(-self.drop * y, self.inflow)
                self.moves, self._changed = y * signed, False
            choice = self._violator(weak, horizon, first=count > limit)
            if choice is None:
                self._resting = np.array(sorted(weak), dtype=np.int64)
                return
            if self.side[choice] == 0:
                self._leave(int(np.flatnonzero(index == choice)[0]))
                weak.add(choice)
                if self.elbow.size == 0:
                    self._jump()
                    weak = self._outside_on_margin()
            elif self._enter(choice):
                weak.discard(choice)
                self._parked = []
            else:
                self._parked.append(choice)
        raise ArithmeticError(f"no direction was found in {10 * limit} pivots at margin {self.margin}")

    def advance(self, horizon: float) -> float:
        """Go on to the next event, by at most `horizon`; returns the time that passed."""
        index, moves = self.elbow.index, self.moves
        alpha = self.alpha[index]
        room = np.full(len(index), np.inf)
        real = np.abs(moves) * horizon > BOUND
        np.divide(np.where(moves > 0, 1 - alpha, alpha), np.abs(moves), out=room, where=real)
        dF = (self.y[index] * moves) @ self.elbow.rows + self.slope
        closing = -self.side * (self.y * dF + self.drop)
        closing[self._resting] = 0.0
        gaps = np.maximum(self.side * (self.y * self.F - self.margin), 0.0)
        wait = np.full(len(gaps), np.inf)
        np.divide(gaps, closing, out=wait, where=closing > _SLOPE * self._unit)
        time = max(0.0, min(horizon, room.min(), wait.min()))
        self.alpha[index] = np.clip(alpha + time * moves, 0.0, 1.0)
        self.F += time * dF
        self.offset += time * self.slope
        self.margin -= time * self.drop
        self._hits = np.flatnonzero(wait <= time)
        return time

    def refresh(self) -> float:
        """Remove what rounding left in F and in the sum of the weights; return the violation before."""
        before = float(self.y @ self.alpha)
        self._spread()
        excess = self.y * self.F - self.margin
        violation = np.where(self.side == 0, np.abs(excess), -self.side * excess).max()
        index = self.elbow.index
        error = self.y[index] * self.margin - self.F[index]
        delta, shift = self.elbow.solve(error, 0.0 if self.inflow else -before)
        self.alpha[index] = np.clip(self.alpha[index] + self.y[index] * delta, 0.0, 1.0)
        self.F += delta @ self.elbow.rows + shift
        self.offset += shift
        return float(violation)

    def _spread(self) -> None:
        some = np.flatnonzero(self.alpha)
        signed = (self.y * self.alpha)[some]
        product = self.K @ (self.y * self.alpha) if 2 * len(some) > len(self.y) else signed @ self.K[some]
        self.F = product + self.linear + self.offset

    def _near(self) -> float:
        """The distance from the margin that counts as none: never below the rounding of F."""
        rounding = 1e-16 * self._largest * float(self.alpha.sum())
        return max(_ON_MARGIN * (self.margin if self.drop else self._unit), rounding)

    def _violator(self, weak: set[int], horizon: float, first: bool) -> int | None:
        """The point whose direction is wrong: by the most, or the first of them against cycles."""
        index, alpha = self.elbow.index, self.alpha[self.elbow.index]
        outward = np.where(alpha <= BOUND, -self.moves, np.where(alpha >= 1 - BOUND, self.moves, 0.0))
        points = np.array([i for i in weak if i not in self._parked], dtype=np.int64)
        dF = (self.y[index] * self.moves) @ self.elbow.rows[:, points] + self.slope
        inward = -self.side[points] * (self.y[points] * dF + self.drop) / self._unit
        wrong = np.append(outward * horizon, inward)
        everyone = np.append(index, points)
        bad = wrong > np.append(np.full(len(index), BOUND), np.full(len(points), _SLOPE))
        if not bad.any():
            return None
        return int(everyone[bad].min() if first else everyone[np.argmax(np.where(bad, wrong, -np.inf))])

    def _enter(self, point: int) -> bool:
        if not self.elbow.add(point):
            return False
        self.side[point], self._changed = 0.0, True
        self.log.append((point, "enter"))
        return True

    def _leave(self, place: int) -> None:
        point, self._changed = self.elbow.remove(place), True
        at_one = self.alpha[point] > 0.5
        self.alpha[point], self.side[point] = (1.0, -1.0) if at_one else (0.0, 1.0)
        self.log.append((point, "leave at 1" if at_one else "leave at 0"))

    def _jump(self) -> None:
        """With no point left on the margin the offset is free, up to the next that can take weight."""
        gaps = np.where(self.side > 0, self.y * self.F - self.margin, np.inf)
        point = int(np.argmin(gaps))
        jump = self.y[point] * gaps[point]
        self.F, self.offset = self.F - jump, self.offset - jump
        self._hits = np.zeros(0, dtype=np.int64)
        self._enter(point)

    def _outside_on_margin(self) -> set[int]:
        gaps = self.side * (self.y * self.F - self.margin)
        near = np.flatnonzero((np.abs(gaps) <= self._near()) & (self.side != 0))
        return set(near.tolist()) | {int(i) for i in self._hits if self.side[i] != 0}


class Middle(NamedTuple):
    """Extreme y_i (K y alpha)_i of the points at weight 1 and 0, which bound the offset where it is free.

    max(one_minus - lambda, lambda - zero_plus) <= offset <= min(lambda - one_plus, zero_minus - lambda)
    """

    one_plus: float
    one_minus: float
    zero_plus: float
    zero_minus: float

    @classmethod
    def of(cls, state: Homotopy) -> Middle:
        values = state.y * (state.F - state.offset)
        one, plus = state.alpha > 0.5, state.y > 0
        return cls(
            np.max(values[one & plus]),
            np.max(values[one & ~plus]),
            np.min(values[~one & plus], initial=np.inf),
            np.min(values[~one & ~plus], initial=np.inf),
        )

    def at(self, lam: float) -> float:
        low = max(self.one_minus - lam, lam - self.zero_plus)
        return (low + min(lam - self.one_plus, self.zero_minus - lam)) / 2

    def kinks(self) -> list[float]:
        return sorted({(self.one_minus + self.zero_plus) / 2, (self.one_plus + self.zero_minus) / 2})[::-1]

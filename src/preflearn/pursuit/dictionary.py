"""The values of N functions at n items, in as much memory as one allows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from preflearn.checks import LARGEST, Floats, Ids
from preflearn.compiled import njit_sums
from preflearn.ground.expansion import Functions

_HALF = 2.0**-24  # the relative rounding of float32
_WIDEST = 256  # functions that are computed at a time, at most
_BLOCK = 1 << 23  # their values R k
_TILE = 1 << 21  # their values, where they are not kept: memory is slow


class Dictionary:
    """The matrix K (n, N) of functions at items: products K'v, and single columns in full precision.

    Where K fits into `memory` the first pass over it keeps it in float64. Where it does not, and `single`
    allows it, it is kept in float32, of a symmetric kernel one triangle; then products have an error, which
    `spread` bounds. Else blocks of columns are computed anew for each product.

    Parameters
    ----------
    functions : Functions
    X : ndarray of shape (n, p)
    height : int
        Rows of what is made of a column, which bounds the blocks.
    memory : float
        Bytes.
    single : bool

    Attributes
    ----------
    spread : ndarray of shape (N,) or None
        The error of a product K'v is at most spread times the norm of v; None: rounding in float64 only.
    """

    def __init__(self, functions: Functions, X: Floats, height: int, memory: float, single: bool = False):
        self._functions, self._X, n, N = functions, X, len(X), len(functions.centres)
        self.size, width = N, max(1, min(_WIDEST, N, _BLOCK // max(n, height)))
        own = functions.centres is X
        self._symmetric = own and isinstance(functions.kernel, str) and functions.kernel != "linear"
        self._known = 0  # functions that are kept already
        self._full: Floats | None = None
        self._panels: list[tuple[float, np.ndarray]] = []
        self.spread: Floats | None = None
        entries = N * (n + width) / 2 if self._symmetric else n * N
        if 8 * n * N <= memory:
            self._full = np.empty((n, N))
        elif single and 4 * entries <= memory:
            self.spread = np.empty(N)
        else:
            width = max(1, min(width, _TILE // n))
        self._parts = [slice(start, min(start + width, N)) for start in range(0, N, width)]

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """All functions, some at a time, in full precision: which, and their columns (n, k)."""
        for part in self._parts:
            columns = self.columns(part) if part.stop <= self._known else self._computed(part)
            if part.start == self._known and (self._full is not None or self.spread is not None):
                self._keep(part, columns)
                self._known = part.stop
            yield part, columns

    def _keep(self, part: slice, columns: Floats) -> None:
        if self._full is not None:
            self._full[:, part] = columns
        elif self.spread is not None:
            self.spread[part] = _HALF * np.sqrt(np.einsum("ij,ij->j", columns, columns))
            below = columns[part.start :] if self._symmetric else columns
            unit = float(np.exp2(np.floor(np.log2(max(np.abs(below).max(), 1 / LARGEST)))))
            self._panels.append((unit, (below / unit).astype(np.float32)))

    def columns(self, ids: Ids | slice) -> Floats:
        """The columns with these ids, shape (n, k), in float64."""
        return self._computed(ids) if self._full is None else self._full[:, ids]

    def _computed(self, ids: Ids | slice) -> Floats:
        return self._functions.columns(self._X, ids)

    def times(self, v: Floats) -> Floats:
        """K'v, shape (N,), after the first pass."""
        if self._full is not None:
            return v @ self._full
        total = np.zeros(self.size)
        if self.spread is None:
            for part, columns in self.blocks():
                total[part] = v @ columns
        for part, (unit, panel) in zip(self._parts, self._panels, strict=False):
            if self._symmetric:
                _add_triangle(panel, unit * v, part.start, total)
            else:
                _add_panel(panel, unit * v, total[part])
        return total


def check_size(largest: float, name: str) -> None:
    """Raise ValueError where squares of values of this size, times weights, might leave the floats."""
    if not (largest == 0 or 1 / LARGEST <= largest <= LARGEST):
        raise ValueError(
            f"{name} are up to {largest:.3g} in size; expected 0, or from {1 / LARGEST:g} to {LARGEST:g}, "
            "since the squares of others leave the range of floats: rescale"
        )


@njit_sums
def _add_triangle(panel, v, begin, total):
    """Add the products of columns from `begin` on, of which the rows from `begin` on are given."""
    n_rows, width = panel.shape
    inside, upper = v[begin : begin + width], total[begin : begin + width]
    for i in range(n_rows):
        row, value, found = panel[i], v[begin + i], 0.0
        for j in range(width):
            found += row[j] * inside[j]
        total[begin + i] += found
        if i >= width:  # below the square on the diagonal: an entry stands for its mirror image too
            for j in range(width):
                upper[j] += row[j] * value


@njit_sums
def _add_panel(panel, v, total):
    """Add panel'v."""
    for i in range(panel.shape[0]):
        row, value = panel[i], v[i]
        for j in range(panel.shape[1]):
            total[j] += row[j] * value

"""The values of N functions at n items, in as much memory as one allows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from preflearn.checks import Floats, Ids, check_count, check_real
from preflearn.compiled import njit_sums
from preflearn.pursuit.forms import QuadraticForm
from preflearn.pursuit.learner import Functions, check_size

_HALF = 2.0**-24  # the relative rounding of float32


class Dictionary:
    """The matrix K (n, N) of functions at items: products K'v, and single columns in full precision.

    Where K fits into `memory` it is kept in float64. Where it does not it is kept in float32, of a symmetric
    kernel one triangle; then products have an error, which `spread` bounds. Where that does not fit either,
    blocks of `block_size` columns are computed anew for each product.

    Parameters
    ----------
    functions : Functions
    X : ndarray of shape (n, p)
    form : QuadraticForm
    start : ndarray of shape (n,)
        A vector whose product comes from the first pass.
    block_size : int
        Columns.
    memory : float
        Bytes.

    Attributes
    ----------
    first : ndarray of shape (N,)
        K'start.
    squares : ndarray of shape (N,)
        The diagonal of K'L~K.
    spread : ndarray of shape (N,) or None
        The error of a product K'v is at most spread times the norm of v; None: rounding in float64 only.
    """

    def __init__(
        self,
        functions: Functions,
        X: Floats,
        form: QuadraticForm,
        start: Floats,
        block_size: int,
        memory: float,
    ):
        block_size = check_count(block_size, "block_size", 1)
        memory = check_real(memory, "memory", "a number of bytes of at least 0", least=0.0)
        self._functions, self._X = functions, X
        n, N = len(X), functions.size
        self._edges = [*range(0, N, block_size), N]
        self._full: Floats | None = None
        self._panels: list[tuple[float, np.ndarray]] | None = None  # values are unit times panel
        self.spread: Floats | None = None
        entries = n * N / 2 + block_size * N / 2 if functions.own else n * N
        if 8 * n * N <= memory:
            self._full = np.empty((n, N))
        elif 4 * entries <= memory:
            self._panels, self.spread = [], np.empty(N)
        self.first, self.squares, largest = np.empty(N), np.empty(N), 0.0
        for part, columns in self._blocks():
            largest = max(largest, float(np.abs(columns).max()))
            if largest > 1:  # before products of it
                check_size(largest, "the values of the functions")
            self.first[part] = columns.T @ start
            self.squares[part] = form.squares(columns)
            self._keep(part, columns)
        check_size(largest, "the values of the functions")

    def _blocks(self) -> Iterator[tuple[slice, Floats]]:
        for begin, end in zip(self._edges[:-1], self._edges[1:], strict=True):
            part = slice(begin, end)
            yield part, self._functions.columns(self._X, part)

    def _keep(self, part: slice, columns: Floats) -> None:
        if self._full is not None:
            self._full[:, part] = columns
        elif self._panels is not None and self.spread is not None:
            self.spread[part] = _HALF * np.sqrt(np.einsum("ij,ij->j", columns, columns))
            below = columns[part.start :] if self._functions.own else columns
            unit = float(np.exp2(np.floor(np.log2(max(np.abs(below).max(), 1e-200)))))
            self._panels.append((unit, (below / unit).astype(np.float32)))

    def columns(self, ids: Ids) -> Floats:
        """The columns with these ids, shape (n, k), in float64."""
        if self._full is not None:
            return self._full[:, ids]
        return self._functions.columns(self._X, ids)

    def times(self, v: Floats) -> Floats:
        """K'v, shape (N,)."""
        if self._full is not None:
            return v @ self._full
        total = np.zeros(self._functions.size)
        if self._panels is None:
            for part, columns in self._blocks():
                total[part] = columns.T @ v
            return total
        for begin, (unit, panel) in zip(self._edges, self._panels, strict=False):
            if self._functions.own:
                _add_triangle(panel, unit * v, begin, total)
            else:
                _add_panel(panel, unit * v, total[begin : begin + panel.shape[1]])
        return total


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

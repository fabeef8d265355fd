"""The values of N functions at n items, within a memory limit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from preflearn.core.compilation import njit_sums
from preflearn.core.expansion import Functions
from preflearn.core.validation import LARGEST, Floats, Ids, require
from preflearn.pursuit.quadratic_forms import QueryForm

_FLOAT32_ROUNDING = 2.0**-24
_MAX_BLOCK_WIDTH = 256  # functions that are computed at a time
_MAX_BLOCK_VALUES = 1 << 23  # number of their values R k
_MAX_TILE_VALUES = (
    1 << 21
)  # the same if values are not stored, since memory access is slow


class Dictionary:
    """The matrix K (n, N) of function values: products K'v, and exact columns.

    If K fits into `memory`, the first pass over it stores it in float64. Otherwise, if
    `single` allows it and it fits, it is stored in float32, for a symmetric kernel as
    one triangle. Products then have an error, which `spread` bounds. Otherwise
    blocks of columns are recomputed for each product.

    Parameters
    ----------
    functions : Functions
        Functions of the dictionary.
    X : ndarray of shape (n, p)
        Features of the items at which the functions are evaluated.
    memory : float
        Limit in bytes for the stored values.
    single : bool
        Whether values may be stored in float32.

    Attributes
    ----------
    largest : float
        Largest absolute value, known after the first pass.
    spread : ndarray of shape (N,) or None
        Bound on the error of a product K'v, relative to the norm of v; None if there
        are only rounding errors of float64.
    """

    def __init__(
        self,
        functions: Functions,
        X: Floats,
        memory: float,
        single: bool = False,
    ):
        self._functions = functions
        self._X = X
        n = X.shape[0]
        N = functions.centres.shape[0]
        self.size = N
        width = max(1, min(_MAX_BLOCK_WIDTH, N, _MAX_BLOCK_VALUES // n))
        own = functions.centres is X
        self._symmetric = (
            own and isinstance(functions.kernel, str) and functions.kernel != "linear"
        )
        self._full: Floats | None = None
        self.largest = 0.0
        self._panels: list[tuple[float, np.ndarray]] = []
        self.spread: Floats | None = None
        entries = n * N
        if self._symmetric:
            entries = N * (n + width) / 2
        self._kept = 8 * n * N <= memory
        if not self._kept and single and 4 * entries <= memory:
            self.spread = np.empty(N)
        elif not self._kept:
            width = max(1, min(width, _MAX_TILE_VALUES // n))
        self._blocks = [
            slice(start, min(start + width, N)) for start in range(0, N, width)
        ]

    def squares(
        self, form: QueryForm, name: str = "the values of the functions"
    ) -> Floats:
        """Return k'Lk for all functions, shape (N,).

        This is the first pass over the functions, which stores their values if they
        fit.

        Raises
        ------
        ValueError
            If the largest value is too large or too small to be squared. The message
            calls the values `name`.
        """
        squares = np.empty(self.size)
        full = None
        if self._kept:
            full = np.empty((self._X.shape[0], self.size))
        for part, columns in self.blocks():
            self.largest = max(
                self.largest, float(columns.max()), -float(columns.min())
            )
            if self.largest > 1:  # scale before squaring
                check_size(self.largest, name)
            squares[part] = form.squares(columns)
            if full is not None:
                full[:, part] = columns
            elif self.spread is not None:
                norms = np.sqrt(np.einsum("ij,ij->j", columns, columns))
                self.spread[part] = _FLOAT32_ROUNDING * norms
                panel = columns
                if self._symmetric:
                    panel = columns[part.start :]
                largest = max(np.abs(panel).max(), 1 / LARGEST)
                unit = float(
                    np.exp2(np.floor(np.log2(largest)))
                )  # a power of two, so that the division is exact
                self._panels.append((unit, (panel / unit).astype(np.float32)))
        check_size(self.largest, name)
        self._full = full
        return squares

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of functions: their slice, and their columns (n, k) in float64."""
        for part in self._blocks:
            yield part, self.columns(part)

    def columns(self, ids: Ids | slice) -> Floats:
        """Return the columns with these ids in float64, shape (n, k)."""
        if self._full is None:
            return self._functions.columns(self._X, ids)
        return self._full[:, ids]

    def times(self, v: Floats) -> Floats:
        """Return K'v, shape (N,); call it after the first pass."""
        if self._full is not None:
            return v @ self._full
        total = np.zeros(self.size)
        if self.spread is None:
            for part, columns in self.blocks():
                total[part] = v @ columns
        for part, (unit, panel) in zip(self._blocks, self._panels, strict=False):
            start = 0
            stop = self.size
            if self._symmetric:
                start = part.start
                stop = part.stop
            _add(panel, unit * v[start:], total[part], total[stop:])
        return total


def check_size(largest: float, name: str) -> None:
    """Raise ValueError if squares of values of this size might over- or underflow."""
    good = largest == 0 or 1 / LARGEST <= largest <= LARGEST
    sizes = f"from {1 / LARGEST:g} to {LARGEST:g}"
    expected = (
        f"0, or {sizes}, so that squares stay within the range of floats: rescale them"
    )
    require(good, largest, f"the largest absolute value of {name}", expected)


@njit_sums
def _add(panel, v, own, below):
    """Add panel'v to `own`, and the mirrored part of a symmetric matrix to `below`.

    The mirrored part consists of the rows of the panel below its square diagonal block.
    """
    n_rows, width = panel.shape
    inside = v[:width]
    square = n_rows - len(below)
    for i in range(n_rows):
        row = panel[i]
        value = v[i]
        found = 0.0
        for j in range(width):
            own[j] += row[j] * value
        if i >= square:
            for j in range(width):
                found += row[j] * inside[j]
            below[i - square] += found

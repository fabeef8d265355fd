"""The values of N functions at n items, in as much memory as one allows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from preflearn.core.compilation import njit_sums
from preflearn.core.expansion import Functions
from preflearn.core.validation import LARGEST, Floats, Ids, require
from preflearn.pursuit.quadratic_forms import QueryForm

_FLOAT32_ROUNDING = 2.0**-24
_MAX_BLOCK_WIDTH = 256  # functions that are computed at a time
_MAX_BLOCK_VALUES = 1 << 23  # their values R k
_MAX_TILE_VALUES = 1 << 21  # the same where values are not kept, since memory is slow


class Dictionary:
    """The matrix K (n, N) of functions at items: products K'v, and single columns in
    full precision.

    Where K fits into `memory` the first pass over it keeps it in float64. Where it does
    not, and `single` allows it, it is kept in float32, of a symmetric kernel one
    triangle; then products have an error, which `spread` bounds. Else blocks of columns
    are computed anew for each product.

    Parameters
    ----------
    functions : Functions
    X : ndarray of shape (n, p)
    memory : float
        Bytes.
    single : bool

    Attributes
    ----------
    largest : float
        The size of the largest value, after the first pass.
    spread : ndarray of shape (N,) or None
        The error of a product K'v is at most spread times the norm of v; None: rounding
        in float64 only.
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
        """k'Lk of all functions, shape (N,): the first pass over them, which keeps what
        is to be kept.

        Raises
        ------
        ValueError
            Where the largest value, which messages call `name`, is beyond what can be
            squared.
        """
        squares = np.empty(self.size)
        full = None
        if self._kept:
            full = np.empty((self._X.shape[0], self.size))
        for part, columns in self.blocks():
            self.largest = max(
                self.largest, float(columns.max()), -float(columns.min())
            )
            if self.largest > 1:  # before its square
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
                unit = float(np.exp2(np.floor(np.log2(largest))))  # divides exactly
                self._panels.append((unit, (panel / unit).astype(np.float32)))
        check_size(self.largest, name)
        self._full = full
        return squares

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """All functions, some at a time, in full precision: which, and their columns
        (n, k)."""
        for part in self._blocks:
            yield part, self.columns(part)

    def columns(self, ids: Ids | slice) -> Floats:
        """The columns with these ids, shape (n, k), in float64."""
        if self._full is None:
            return self._functions.columns(self._X, ids)
        return self._full[:, ids]

    def times(self, v: Floats) -> Floats:
        """K'v, shape (N,), after the first pass."""
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
    """Raise ValueError where squares of values of this size, times weights, might leave
    the floats."""
    good = largest == 0 or 1 / LARGEST <= largest <= LARGEST
    sizes = f"from {1 / LARGEST:g} to {LARGEST:g}"
    expected = (
        f"0, or {sizes}, since the squares of others leave the range of floats: rescale"
    )
    require(good, largest, f"the largest size of {name}", expected)


@njit_sums
def _add(panel, v, own, below):
    """Add panel'v to `own`; to `below` what the last rows, under the square on the
    diagonal, are mirrored."""
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

"""Which functions come next, one a view: the search of section 3.1 and Figure 2 of [Tsivtsivadze2013]_.

With a factor R of L = R'R everything is an inner product of columns R k: so the agreement of views is
measured with the accuracy of each, and constants within a query are gone before anything is squared.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from preflearn.checks import Floats, Ids
from preflearn.pursuit.forms import GraphForm, QueryForm
from preflearn.pursuit.greedy import NOTHING, TIE, Step
from preflearn.pursuit.learner import Functions, check_size

_TILE = 1 << 20  # values of functions that are computed at a time
_KEPT = 1 << 25  # values up to which all are kept
_CHOICES = 1 << 16  # that are compared at a time
_DEPENDENT = 1e-13  # an eigenvalue of B + C, scaled to a diagonal of ones, that is rounding
_ROUNDING = 16 * np.finfo(np.float64).eps  # of a value of a function

Pair = tuple[int, int]  # of views


class Table:
    """The values of N functions at n items, kept, or computed anew tile by tile.

    Parameters
    ----------
    functions : Functions
    X : ndarray of shape (n, p)
    block_size : int
        Functions that are computed at a time.
    keep : bool
    """

    def __init__(self, functions: Functions, X: Floats, block_size: int, keep: bool):
        self._functions, self._X, self._block = functions, X, block_size
        self._kept = None
        if keep:
            self._kept = np.empty((len(X), functions.size))
            for part in slices(functions.size, block_size):
                self._kept[:, part] = self._computed(part)

    def columns(self, ids: Ids | slice) -> Floats:
        """The functions with these ids, up to a constant each, shape (n, k)."""
        return self._computed(ids) if self._kept is None else self._kept[:, ids]

    def adjoint(self, w: Floats) -> Floats:
        """K'w, shape (N,), for a w that adds up to 0 within each query."""
        if self._kept is not None:
            return w @ self._kept
        total = np.zeros(self._functions.size)
        for part in slices(len(total), self._block):
            for rows, values in self._tiles(part):
                total[part] += w[rows] @ values
        return total

    def _computed(self, ids: Ids | slice) -> Floats:
        found = np.empty((len(self._X), len(self._functions.centres[ids])))
        for rows, values in self._tiles(ids):
            found[rows] = values
        return found

    def _tiles(self, ids: Ids | slice) -> Iterator[tuple[slice, Floats]]:
        height = max(1, _TILE // len(self._functions.centres[ids]))
        for rows in slices(len(self._X), height):
            yield rows, self._functions.differ(self._X[rows], ids)


class Side(NamedTuple):
    """Items on which functions are judged, scored or unscored, and the functions of each view there."""

    form: QueryForm | GraphForm
    tables: list[Table]

    @classmethod
    def of(
        cls, form: QueryForm | GraphForm, functions: list[Functions], parts: list[Floats], block_size: int
    ) -> Side:
        """`parts`: the features of each view, shapes (n, p_v)."""
        keep = sum(view.size for view in functions) * form.n <= _KEPT
        tables = [Table(view, X, block_size, keep) for view, X in zip(functions, parts, strict=True)]
        return cls(form, tables)

    def roots(self, view: int, part: slice) -> Floats:
        """R k of some functions of a view."""
        return self.form.root(self.tables[view].columns(part))

    def columns(self, choice: Ids) -> Floats:
        """One function of each view, shape (n, M)."""
        return np.hstack([table.columns(choice[v : v + 1]) for v, table in enumerate(self.tables)])

    def adjoint(self, W: Floats) -> Floats:
        """The product of all functions of each view with its column of W, shape (N, M)."""
        return np.column_stack([table.adjoint(w) for table, w in zip(self.tables, W.T, strict=True)])

    def width(self, block_size: int) -> int:
        """Functions whose columns R k are held at a time."""
        height = len(self.form.root(np.zeros((self.form.n, 1))))
        return max(1, min(block_size, 4 * _TILE // max(height, self.form.n)))

    def products(
        self, n_functions: int, width: int, pairs: list[Pair]
    ) -> tuple[Floats, Floats, dict[Pair, Floats]]:
        """Products of functions of one index, by a pass over all of them.

        Returns
        -------
        squares : ndarray of shape (N, M)
            k'Lk.
        floor : ndarray of shape (M,)
            The most that a square is of rounding alone.
        cross : dict of ndarray of shape (N,)
            k^(v)'L k^(u) for the pairs (v, u).
        """
        n_views = len(self.tables)
        squares, largest = np.empty((n_functions, n_views)), np.zeros(n_views)
        cross = {pair: np.empty(n_functions) for pair in pairs}
        for part in slices(n_functions, width):
            roots = []
            for v, table in enumerate(self.tables):
                columns = table.columns(part)
                largest[v] = max(largest[v], columns.max(), -columns.min())
                if largest[v] > 1:  # before its square
                    check_size(float(largest[v]), f"the values of the functions of view {v}")
                roots.append(self.form.root(columns))
                squares[part, v] = np.einsum("ij,ij->j", roots[v], roots[v])
            for v, u in pairs:
                cross[v, u][part] = np.einsum("ij,ij->j", roots[v], roots[u])
        for v, size in enumerate(largest.tolist()):
            check_size(size, f"the values of the functions of view {v}")
        return squares, rounding(self.form, largest), cross

    def all_products(self, n_functions: int, width: int, pair: Pair) -> Floats:
        """k^(v)'L k^(u) of any two functions of the views v and u, shape (N, N)."""
        found = np.empty((n_functions, n_functions))
        for rows in slices(n_functions, width):
            roots = self.roots(pair[0], rows).T
            for columns in slices(n_functions, width):
                found[rows, columns] = roots @ self.roots(pair[1], columns)
        return found


class Systems:
    """The matrices B + C of Figure 2, for every choice of one function a view that the search may make.

    Parameters
    ----------
    scored, unscored : Side
        Without `unscored` nothing is to agree: C = 0.
    n_functions : int
    nu : float
    shared : bool
        Whether a choice is one index for all views, or any of the N^M.
    block_size : int
    """

    def __init__(
        self, scored: Side, unscored: Side | None, n_functions: int, nu: float, shared: bool, block_size: int
    ):
        self._shared, self._N, self._M = shared, n_functions, len(scored.tables)
        width = scored.width(block_size)
        self._diagonal, self.floor, self._cross = scored.products(n_functions, width, [])
        if unscored is not None:
            pairs, width = list(combinations(range(self._M), 2)), unscored.width(block_size)
            squares, floor, cross = unscored.products(n_functions, width, pairs if shared else [])
            if not shared:
                cross = {pair: unscored.all_products(n_functions, width, pair) for pair in pairs}
            self._diagonal = self._diagonal + 2 * nu * (self._M - 1) * squares
            self.floor = self.floor + 2 * nu * (self._M - 1) * floor
            self._cross = {pair: -2 * nu * found for pair, found in cross.items()}

    def __len__(self) -> int:
        return self._N if self._shared else self._N**self._M

    def choices(self, numbers: slice) -> Ids:
        """The functions of the choices with these numbers, shape (k, M)."""
        found = np.arange(*numbers.indices(len(self)))
        if self._shared:
            return np.repeat(found[:, None], self._M, axis=1)
        return np.column_stack(np.unravel_index(found, (self._N,) * self._M))

    def matrices(self, choices: Ids) -> Floats:
        """B + C, shape (k, M, M)."""
        found = np.zeros((len(choices), self._M, self._M))
        for v in range(self._M):
            found[:, v, v] = self._diagonal[choices[:, v], v]
        for (v, u), values in self._cross.items():
            where = choices[:, v] if self._shared else (choices[:, v], choices[:, u])
            found[:, v, u] = found[:, u, v] = values[where]
        return found


class CoPursuit:
    """A pursuit in several views on its way.

    Parameters
    ----------
    scored, unscored : Side
    systems : Systems
    scores : ndarray of shape (n,)
    nu : float
    printed : bool
        Whether e is that of Figure 2: one residue for all views, and agreement of the increments alone.
    """

    def __init__(
        self, scored: Side, unscored: Side | None, systems: Systems, scores: Floats, nu: float, printed: bool
    ):
        self._scored, self._unscored, self._systems = scored, unscored, systems
        self._nu, self._printed, self._M = nu, printed, len(scored.tables)
        self._s = scores - np.median(scores)  # only differences matter, and are exact to more digits
        check_size(float(np.abs(self._s).max()), "the differences of the scores y")
        self._f = np.zeros((scored.form.n, self._M))
        self._fbar = np.zeros((unscored.form.n if unscored else 0, self._M))
        self._order: list[Ids] = []
        self._amounts: list[Floats] = []
        self.objective = self._objective(self._f, self._fbar)
        noise = len(scored.tables) * float(rounding(scored.form, np.abs(self._s).max()))
        self._least = max(NOTHING * self.objective, noise)

    def model(self) -> Step:
        """What has been chosen so far: basis and coef of shape (P, M), and objective (3)."""
        shape = (len(self._order), self._M)
        basis = np.array(self._order, dtype=np.int64).reshape(shape)
        return Step(basis, np.array(self._amounts).reshape(shape), self.objective)

    def step(self) -> bool:
        """Add the best functions, one a view; False where none lowers what is minimised."""
        choice = self._best()
        if choice is None:
            return False
        columns = self._scored.columns(choice)
        bars = self._unscored.columns(choice) if self._unscored else self._fbar
        a = self._coefficients(choice, columns, bars)
        f, fbar = self._f + a * columns, self._fbar + a * bars
        objective = self._objective(f, fbar)
        if not self._printed and not objective < self.objective:
            return False
        self._f, self._fbar, self.objective = f, fbar, objective
        self._order.append(choice)
        self._amounts.append(a)
        return True

    def _best(self) -> Ids | None:
        """The choice of the largest decrease e'(B + C)^+ e, the first one of equals."""
        e = self._scored.adjoint(self._scored.form.times(self._residues()))
        if self._unscored and not self._printed:
            e -= self._unscored.adjoint(self._unscored.form.times(self._pull()))
        found = np.empty(len(self._systems))
        for part in slices(len(found), _CHOICES):
            choices = self._systems.choices(part)
            sides = e[choices, np.arange(self._M)]
            found[part] = decreases(self._systems.matrices(choices), sides, self._systems.floor)
        largest = float(found.max())
        if not largest > self._least:
            return None
        first = int(np.argmax(found >= largest * (1 - TIE)))
        return self._systems.choices(slice(first, first + 1))[0]

    def _coefficients(self, choice: Ids, columns: Floats, bars: Floats) -> Floats:
        """(B + C)^+ e, with e to full precision."""
        root = self._scored.form.root
        e = np.einsum("ij,ij->j", root(columns), root(self._residues()))
        if self._unscored and not self._printed:
            root = self._unscored.form.root
            e -= np.einsum("ij,ij->j", root(bars), root(self._pull()))
        return least_norm(self._systems.matrices(choice[None])[0], e, self._systems.floor)

    def _residues(self) -> Floats:
        """r of each view, shape (n, M)."""
        f = self._f
        if self._printed:  # line 8 of Figure 2
            f = np.broadcast_to(f.mean(axis=1, keepdims=True), f.shape)
        return self._s[:, None] - f

    def _pull(self) -> Floats:
        """2 nu sum_u (fbar_v - fbar_u), shape (l, M)."""
        return 2 * self._nu * self._M * (self._fbar - self._fbar.mean(axis=1, keepdims=True))

    def _objective(self, f: Floats, fbar: Floats) -> float:
        """(3); a sum over pairs of views is 2 M times that of squared distances from their mean."""
        value = self._scored.form.squares(self._s[:, None] - f).sum()
        if self._unscored:
            apart = self._unscored.form.squares(fbar - fbar.mean(axis=1, keepdims=True)).sum()
            value += 2 * self._nu * self._M * apart
        return float(value)


def decreases(A: Floats, e: Floats, floor: Floats) -> Floats:
    """e'A^+ e of several systems, the decrease of a quadratic function at its minimum.

    Parameters
    ----------
    A : ndarray of shape (k, M, M)
        Positive semi-definite.
    e : ndarray of shape (k, M)
        In the range of A.
    floor : ndarray of shape (M,)
        A diagonal entry up to this is rounding: the coefficient is 0.
    """
    S, scale = _scaled(A, floor)
    x = scale * e
    if x.shape[1] == 2:  # the eigenvectors are (1, 1) and (1, -1)
        values = 1 + np.outer(S[:, 0, 1], (1, -1))
        along = x @ (np.array([[1, 1], [1, -1]]) / np.sqrt(2))
    else:
        values, vectors = np.linalg.eigh(S)
        along = np.einsum("kij,ki->kj", vectors, x)
    kept = values > _DEPENDENT
    return (np.square(along) * kept / np.where(kept, values, 1.0)).sum(axis=1)


def least_norm(A: Floats, e: Floats, floor: Floats) -> Floats:
    """The solution of A a = e of least norm, shape (M,); arguments as in `decreases`, of one system."""
    S, scale = _scaled(A, floor)
    values, vectors = np.linalg.eigh(S)
    kept = values > _DEPENDENT
    a = scale * (vectors[:, kept] @ ((vectors[:, kept].T @ (scale * e)) / values[kept]))
    null = scale[:, None] * vectors[:, ~kept]
    return a - null @ np.linalg.lstsq(null, a)[0]


def _scaled(A: Floats, floor: Floats) -> tuple[Floats, Floats]:
    """A with a diagonal of ones, but zeros where there is only rounding, and the factors: views may differ
    in size by any power of ten."""
    diagonal = np.diagonal(A, axis1=-2, axis2=-1)
    usable = diagonal > floor
    scale = usable / np.sqrt(np.where(usable, diagonal, 1.0))
    return A * scale[..., :, None] * scale[..., None, :], scale


def rounding(form: QueryForm | GraphForm, size: Floats) -> Floats:
    """What v'Lv may be for values v of this size that differ by rounding alone."""
    noise = np.random.default_rng(0).standard_normal((form.n, 8))
    return float(form.squares(noise).mean()) * np.square(_ROUNDING * size)


def slices(length: int, width: int) -> Iterator[slice]:
    """The parts of a range, each of at most `width`."""
    for start in range(0, length, width):
        yield slice(start, min(start + width, length))

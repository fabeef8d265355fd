"""A kernel over the items of some pairs, and ranking functions as expansions in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, Ids, check_scale
from preflearn.ground.gram import centred, check_symmetric
from preflearn.ground.kernels import (
    SHIFTED,
    Kernel,
    check_definite,
    check_kernel,
    distinct_items,
    kernel_less_one,
    kernel_matrix,
    kernel_parameters,
)
from preflearn.pairs import Incidence, Pairs


class KernelChoice(Protocol):
    """The parameters of an estimator that name its kernel; `SVMCompare` documents them."""

    kernel: Kernel
    gamma: float | Literal["scale"]
    degree: float
    coef0: float


class Expansion(NamedTuple):
    """A ranking function r(x) = sum_j coef_j k(x, centre_j)."""

    k: Callable[[Floats, NDArray], Floats]
    centres: NDArray
    coef: Floats

    def __call__(self, X: Floats) -> Floats:
        """r of the rows of X, shape (n,)."""
        return self.k(X, self.centres) @ self.coef if len(self.coef) else np.zeros(len(X))


class ItemKernel(NamedTuple):
    """The distinct items that occur in some pairs, their kernel, and the incidence matrix over them."""

    kernel: Kernel
    k: Callable[[Floats, NDArray], Floats]  # (X, centres) to the matrix between them
    ids: Ids  # (n,) rows of the pairs' items
    items: Floats  # (n, p)
    centres: NDArray  # the items as k takes them: their ids where the Gram matrix is given
    B: Incidence  # (m, n)
    less_one: Callable[[Floats, NDArray], Floats]  # k - 1 of a kernel of x - x', which may be wide; else k

    @classmethod
    def of(cls, choice: KernelChoice, pairs: Pairs, merge: bool = True) -> Self:
        """The kernel of some pairs; items with equal features become one if `merge`."""
        check_kernel(choice.kernel)
        if choice.kernel == "precomputed":
            if len(set(pairs.items.shape)) > 1:
                raise ValueError(
                    f"the items of the pairs have shape {pairs.items.shape}; with kernel='precomputed' "
                    "they are the (n, n) Gram matrix of all items"
                )
            ids, B = pairs.B.compacted()
            return cls(choice.kernel, _columns, ids, pairs.items[ids], ids, B, _columns)
        if merge:
            ids, index = distinct_items(pairs)
            B = Incidence(index, len(ids))
        else:
            ids, B = pairs.B.compacted()
        items = pairs.items[ids]
        check_scale(items, "items")
        parameters = kernel_parameters(choice.kernel, items, choice.gamma, choice.degree, choice.coef0)
        k = less_one = partial(kernel_matrix, choice.kernel, **parameters)
        if choice.kernel in SHIFTED:  # an offset would spoil the squares in |x - x'|²
            k = partial(_shifted, k, origin(items))
            less_one = partial(kernel_less_one, choice.kernel, parameters["gamma"])
            less_one = partial(_shifted, less_one, origin(items))
        return cls(choice.kernel, k, ids, items, items, B, less_one)

    def gram(self) -> Floats:
        """The kernel between the items, shape (n, n)."""
        return self.k(self.items, self.centres)

    def centred_gram(self) -> tuple[Floats, float]:
        """The Gram matrix up to constants of rows and columns, which B K B' does not see, and its rounding.

        Raises
        ------
        ValueError
            If it is not symmetric, or not positive semi-definite by more than rounding.
        """
        if self.kernel == "linear":
            moved = self.items - origin(self.items)
            K = moved @ moved.T
            return K, rounding(K)
        K = self.less_one(self.items, self.centres)
        check_scale(K, "the Gram matrix")
        check_symmetric(K, "K")
        noise, K = rounding(K), centred(K)
        if self.kernel not in SHIFTED:
            check_definite(K, noise)
        return K, noise

    def expansion(self, item_coef: Floats) -> Expansion:
        """r(x) = sum_j item_coef_j k(x, x_j); a linear one is r(x) = w·x, with the one centre w."""
        if self.kernel == "linear":
            middle = origin(self.items)  # its part vanishes where the coefficients add up to 0
            w = item_coef @ (self.items - middle) + item_coef.sum() * middle
            return Expansion(self.k, w[None], np.ones(1))
        used = np.flatnonzero(item_coef)
        return Expansion(self.k, self.centres[used], item_coef[used])


def origin(items: Floats) -> Floats:
    """A point among the items: 0 where their offset is less than their spread."""
    low, high = items.min(axis=0), items.max(axis=0)
    spread = np.where(high > low, high - low, np.where(low == 0, 1.0, np.abs(low)))
    return spread * np.round((low / 2 + high / 2) / spread)


def rounding(values: Floats) -> float:
    """Of one of these values."""
    return float(np.finfo(np.float64).eps * np.abs(values).max())


def _shifted(k: Callable[[Floats, Floats], Floats], middle: Floats, X: Floats, Y: Floats) -> Floats:
    moved = X - middle
    return k(moved, moved if Y is X else Y - middle)


def _columns(rows_of_gram: Floats, ids: Ids) -> Floats:
    """The kernel of items that are given as rows of a Gram matrix, with those whose ids are given."""
    return rows_of_gram[:, ids]

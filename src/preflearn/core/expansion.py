"""Kernel functions, ranking functions that are their sums, and kernels of items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from preflearn.core.gram import centred, check_symmetric
from preflearn.core.kernels import (
    SHIFTED,
    Kernel,
    check_definite,
    check_kernel,
    distinct_items,
    kernel_matrix,
    kernel_minus_one,
    kernel_parameters,
)
from preflearn.core.validation import Floats, Ids, check_items, check_scale, check_shape
from preflearn.pairs import Incidence, Pairs


class KernelChoice(Protocol):
    """Kernel parameters of an estimator; `SVMCompare` documents them."""

    kernel: Kernel
    gamma: float | Literal["scale"]
    degree: float
    coef0: float


@dataclass(eq=False, repr=False)
class KernelParameters:
    """Mixin that stores the kernel parameters of an estimator, except `kernel`.

    The position of `kernel` among the parameters differs between estimators.
    """

    _: KW_ONLY
    gamma: float | Literal["scale"] = "scale"
    degree: float = 3
    coef0: float = 1.0


class Expansion(NamedTuple):
    """Ranking function r(x) = sum_j coef_j k(x, center_j).

    With several columns of coef there is one function per column.
    """

    k: Callable[[Floats, NDArray], Floats]
    centres: NDArray
    coef: Floats

    def __call__(self, X: Floats) -> Floats:
        """Return r for the rows of X, shape (n,)."""
        if len(self.coef) == 0:
            return np.zeros((X.shape[0], *self.coef.shape[1:]))
        return self.k(X, self.centres) @ self.coef


class Functions(NamedTuple):
    """The functions k(x, center_j) of a kernel, j = 0, ..., N - 1."""

    kernel: Kernel
    k: Callable[[Floats, NDArray], Floats]  # maps (X, centers) to their kernel matrix
    # k minus a constant per function, which keeps more significant digits
    minus_constant: Callable[[Floats, NDArray], Floats]
    centres: NDArray  # (N, p); with kernel="precomputed" the columns of X, (N,)
    middle: Floats | float = 0.0  # (p,), subtracted from the items by `minus_constant`

    def columns(self, X: Floats, ids: Ids | slice = slice(None)) -> Floats:
        """Return the values of the functions with these ids at X, shape (n, k)."""
        centres = self.centres[ids]
        if centres.shape[0] == 0:
            return np.zeros((X.shape[0], 0))
        return self.k(X, centres)

    def seen(self, mix: float) -> Self:
        """Return the functions in the form that a loss with this mix needs.

        With mix = 0 only differences of values count, so constants are subtracted.
        """
        if mix:
            return self
        return self._replace(k=self.minus_constant)

    def expansion(self, ids: Ids, coef: Floats) -> Expansion:
        """Return the sum of some functions, for one or more columns of coefficients.

        A sum of linear functions is stored by its weight vector w.
        """
        if self.kernel == "linear":
            w = coef.T @ (self.centres[ids] - self.middle)
            if not sparse.issparse(self.centres):
                # this term is 0 if the coefficients add up to 0
                w += np.multiply.outer(coef.sum(axis=0), self.middle)
            if w.ndim == 2:
                return Expansion(self.k, w, np.eye(len(w)))
            return Expansion(self.k, w[None], np.ones(1))
        return Expansion(self.k, self.centres[ids], coef)

    def gram_up_to_constants(self, X: Floats) -> Floats:
        """Return the kernel matrix of the centers X, up to row and column constants."""
        if self.kernel == "linear" and not sparse.issparse(X):
            moved = X - self.middle
            return moved @ moved.T
        return self.minus_constant(X, self.centres)


def functions_of(
    choice: KernelChoice, X: Floats, centres: Floats | None = None, name: str = "X"
) -> Functions:
    """Return the kernel functions centered at the rows of `centres`, or of X.

    gamma = "scale" refers to the features of X.

    With ``kernel="precomputed"`` X holds the values of N functions, shape (n, N).
    `name` is the name of X in messages.
    """
    kernel = choice.kernel
    check_kernel(kernel)
    if kernel == "precomputed":
        return given_functions(X.shape[1])
    check_scale(X, name)
    if centres is None:
        centres = X
    sample = X
    if sparse.issparse(X):
        sample = np.zeros((1, 1))  # a linear kernel does not use gamma
    parameters = kernel_parameters(
        kernel, sample, choice.gamma, choice.degree, choice.coef0
    )
    k = minus_constant = partial(kernel_matrix, kernel, **parameters)
    middle = 0.0
    if kernel in SHIFTED:
        minus_constant = partial(kernel_minus_one, kernel, parameters["gamma"])
    elif kernel == "linear" and not sparse.issparse(X):
        # (x - middle)·c, since an offset of x would make x·c large
        middle = origin(X)
        minus_constant = partial(_shifted_items, k, middle)
    return Functions(kernel, k, minus_constant, centres, middle)


def given_functions(size: int) -> Functions:
    """Return functions that are given by columns of their values at some items."""
    return Functions("precomputed", _picked, _picked, np.arange(size))


class ItemKernel(NamedTuple):
    """The distinct items of some pairs, with their kernel and incidence matrix."""

    functions: Functions  # centered at the items
    ids: Ids  # (n,) row numbers in the items of the pairs
    items: Floats  # (n, p)
    B: Incidence  # (m, n)

    @classmethod
    def of(cls, choice: KernelChoice, pairs: Pairs, merge: bool = True) -> Self:
        """Return the kernel of some pairs; `merge` merges items with equal features."""
        check_kernel(choice.kernel)
        precomputed = choice.kernel == "precomputed"
        if precomputed:
            meaning = "with kernel='precomputed', a Gram matrix"
            check_shape(pairs.items, "items", ("n", "n"), meaning)
        if merge and not precomputed:
            ids, index = distinct_items(pairs)
            B = Incidence(index, len(ids))
        else:
            ids, B = pairs.B.compacted()
        items = check_items(pairs.items[ids], "items", keep="few")
        functions = functions_of(choice, items, name="items")
        if precomputed:
            functions = functions._replace(centres=ids)
        return cls(functions, ids, items, B)

    @property
    def kernel(self) -> Kernel:
        return self.functions.kernel

    def gram(self) -> Floats:
        """Return the kernel matrix of the items, shape (n, n)."""
        # `centres` is the same array as `items`, which makes the diagonal exact
        return self.functions.k(self.items, self.functions.centres)

    def centred_gram(self) -> tuple[Floats, float]:
        """Return the centered Gram matrix, and the rounding error of its entries.

        Row and column constants are removed, which does not change B K B'.

        Raises
        ------
        ValueError
            If the Gram matrix is not symmetric, or has a negative eigenvalue beyond
            rounding errors.
        """
        K = self.functions.gram_up_to_constants(self.items)
        noise = rounding(K)
        if self.kernel == "linear":
            return K, noise
        check_scale(K, "the Gram matrix")
        check_symmetric(K, "K")
        K = centred(K)
        if self.kernel not in SHIFTED:
            check_definite(K, noise)
        return K, noise

    def expansion(self, item_coef: Floats) -> Expansion:
        """Return the function r(x) = sum_j item_coef_j k(x, x_j)."""
        used = np.flatnonzero(item_coef)
        return self.functions.expansion(used, item_coef[used])


def origin(items: Floats) -> Floats:
    """Return a point near the items: their offset, rounded to multiples of the spread."""
    low = items.min(axis=0)
    high = items.max(axis=0)
    spread = np.where(high > low, high - low, np.where(low == 0, 1.0, np.abs(low)))
    return spread * np.round((low / 2 + high / 2) / spread)


def rounding(values: Floats) -> float:
    """Return the rounding error of the largest value."""
    return float(np.finfo(np.float64).eps * np.abs(values).max())


def _shifted_items(
    k: Callable[[Floats, Floats], Floats], middle: Floats, X: Floats, Y: Floats
) -> Floats:
    return k(X - middle, Y)


def _picked(values: Floats, ids: Ids) -> Floats:
    """Return the columns of given values, such as those of a Gram matrix."""
    return values[:, ids]

"""Kernel functions at centres, their sums as ranking functions, and kernels of pairs."""

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
    """The parameters of an estimator that name its kernel; `SVMCompare` documents them."""

    kernel: Kernel
    gamma: float | Literal["scale"]
    degree: float
    coef0: float


@dataclass(eq=False, repr=False)
class KernelParameters:
    """The parameters of an estimator's kernel, without its name.

    Each estimator has `kernel` at its own place among its parameters.
    """

    _: KW_ONLY
    gamma: float | Literal["scale"] = "scale"
    degree: float = 3
    coef0: float = 1.0


class Expansion(NamedTuple):
    """A ranking function r(x) = sum_j coef_j k(x, centre_j), or one for each column of
    coef."""

    k: Callable[[Floats, NDArray], Floats]
    centres: NDArray
    coef: Floats

    def __call__(self, X: Floats) -> Floats:
        """r of the rows of X, shape (n,)."""
        if len(self.coef) == 0:
            return np.zeros((X.shape[0], *self.coef.shape[1:]))
        return self.k(X, self.centres) @ self.coef


class Functions(NamedTuple):
    """The functions k(x, centre_j), j = 0 ... N - 1, of a kernel."""

    kernel: Kernel
    k: Callable[[Floats, NDArray], Floats]  # (X, centres) to the matrix between them
    # k less a constant for each function, so that digits are kept
    minus_constant: Callable[[Floats, NDArray], Floats]
    centres: NDArray  # (N, p); with kernel="precomputed" the columns of X, (N,)
    middle: Floats | float = 0.0  # (p,), which `minus_constant` takes off the items

    def columns(self, X: Floats, ids: Ids | slice = slice(None)) -> Floats:
        """The functions with these ids at the rows of X, shape (n, k)."""
        centres = self.centres[ids]
        if centres.shape[0] == 0:
            return np.zeros((X.shape[0], 0))
        return self.k(X, centres)

    def seen(self, mix: float) -> Self:
        """The functions that a loss with this mix needs.

        With a mix of 0 only differences of values count, so constants are taken off.
        """
        if mix:
            return self
        return self._replace(k=self.minus_constant)

    def expansion(self, ids: Ids, coef: Floats) -> Expansion:
        """The sum of some of them, by one column of coefficients or several; linear
        ones have w as centre."""
        if self.kernel == "linear":
            w = coef.T @ (self.centres[ids] - self.middle)
            if not sparse.issparse(self.centres):
                # 0 if the coefficients add up to 0
                w += np.multiply.outer(coef.sum(axis=0), self.middle)
            if w.ndim == 2:
                return Expansion(self.k, w, np.eye(len(w)))
            return Expansion(self.k, w[None], np.ones(1))
        return Expansion(self.k, self.centres[ids], coef)

    def gram_up_to_constants(self, X: Floats) -> Floats:
        """The kernel between the centres X, up to constants of rows and columns."""
        if self.kernel == "linear" and not sparse.issparse(X):
            moved = X - self.middle
            return moved @ moved.T
        return self.minus_constant(X, self.centres)


def functions_of(
    choice: KernelChoice, X: Floats, centres: Floats | None = None, name: str = "X"
) -> Functions:
    """The functions of a kernel at the rows of `centres`, or of X, to whose features
    "scale" refers.

    With ``kernel="precomputed"`` X holds the values of N functions, shape (n, N).
    Messages call it `name`.
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
        sample = np.zeros((1, 1))  # the kernel is linear, so gamma does not matter
    parameters = kernel_parameters(
        kernel, sample, choice.gamma, choice.degree, choice.coef0
    )
    k = minus_constant = partial(kernel_matrix, kernel, **parameters)
    middle = 0.0
    if kernel in SHIFTED:
        minus_constant = partial(kernel_minus_one, kernel, parameters["gamma"])
    elif kernel == "linear" and not sparse.issparse(X):
        # x·c less middle·c, which an offset of x would make large
        middle = origin(X)
        minus_constant = partial(_shifted_items, k, middle)
    return Functions(kernel, k, minus_constant, centres, middle)


def given_functions(size: int) -> Functions:
    """Functions whose values at some items are given, as columns."""
    return Functions("precomputed", _picked, _picked, np.arange(size))


class ItemKernel(NamedTuple):
    """The distinct items that occur in some pairs, their kernel, and the incidence
    matrix over them."""

    functions: Functions  # at the items
    ids: Ids  # (n,) rows of the pairs' items
    items: Floats  # (n, p)
    B: Incidence  # (m, n)

    @classmethod
    def of(cls, choice: KernelChoice, pairs: Pairs, merge: bool = True) -> Self:
        """The kernel of some pairs; items with equal features become one if `merge`."""
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
        """The kernel between the items, shape (n, n)."""
        # `centres` is the same array as `items`, which makes the diagonal exact
        return self.functions.k(self.items, self.functions.centres)

    def centred_gram(self) -> tuple[Floats, float]:
        """The Gram matrix up to constants of rows and columns, which B K B' does not
        see, and its rounding.

        Raises
        ------
        ValueError
            If it is not symmetric, or not positive semi-definite by more than rounding.
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
        """r(x) = sum_j item_coef_j k(x, x_j)."""
        used = np.flatnonzero(item_coef)
        return self.functions.expansion(used, item_coef[used])


def origin(items: Floats) -> Floats:
    """A point near the items: their offset, rounded to multiples of their spread."""
    low = items.min(axis=0)
    high = items.max(axis=0)
    spread = np.where(high > low, high - low, np.where(low == 0, 1.0, np.abs(low)))
    return spread * np.round((low / 2 + high / 2) / spread)


def rounding(values: Floats) -> float:
    """The rounding error of the largest of some values."""
    return float(np.finfo(np.float64).eps * np.abs(values).max())


def _shifted_items(
    k: Callable[[Floats, Floats], Floats], middle: Floats, X: Floats, Y: Floats
) -> Floats:
    return k(X - middle, Y)


def _picked(values: Floats, ids: Ids) -> Floats:
    """Functions whose values are given, such as rows of a Gram matrix."""
    return values[:, ids]

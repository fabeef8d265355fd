"""Item kernels: Gram matrices by scikit-learn's names, and features whose inner
products they are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import (
    PAIRWISE_KERNEL_FUNCTIONS,
    manhattan_distances,
    pairwise_kernels,
)

from preflearn.core.gram import check_symmetric
from preflearn.core.validation import (
    Floats,
    Ids,
    as_floats,
    check_real,
    check_scale,
    check_shape,
    raise_if_any,
    require,
)
from preflearn.pairs import Pairs

Kernel = str | Callable[[Floats, Floats], Any]

SHIFTED = ("rbf", "laplacian")  # kernels of x - x' alone
# relative to the largest diagonal entry: smaller pivots are rounding errors, and larger
# remainders after the last pivot show a negative eigenvalue
_RANK_TOLERANCE = 1e-13
_NEGATIVE_TOLERANCE = 1e-9
_ERROR_GROWTH = 100  # of rounding errors in K, until they reach the remainder
_BLOCK = 1 << 10
# features, and numbers to add, up to which differences cost no more than a product
_MAX_FEATURES = 20
_MAX_TERMS = 10**7
_CANCELLATION = 1 / 100  # |x - x'|² / |x|² below which a product loses too many digits
_PSTRF, _TRTTF, _PFTRF = linalg.get_lapack_funcs(("pstrf", "trttf", "pftrf"))
_MIN_GAMMA = np.finfo(np.float64).tiny


class NotPositiveSemidefiniteError(ValueError):
    """A Gram matrix has a negative eigenvalue, so that no features have it as their
    inner products."""


def check_kernel(kernel: Kernel) -> None:
    """Raise ValueError unless `kernel` is a known name, "precomputed" or a callable."""
    known = sorted([*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"])
    good = callable(kernel) or (isinstance(kernel, str) and kernel in known)
    require(good, kernel, "kernel", f"a callable k(X, Y) or one of {known}")


def scale_gamma(gamma: float | str, X: Floats) -> float:
    """The width of a kernel: a positive number as it is, "scale" as 1 / (p · variance
    of X).

    The variance is the mean of those of the features, so that an offset of one changes
    nothing.

    Parameters
    ----------
    gamma : float or "scale"
    X : ndarray of shape (n, p)

    Raises
    ------
    ValueError
        If gamma is neither "scale" nor a positive number.

    Examples
    --------
    >>> scale_gamma("scale", np.array([[0.0, 2.0], [2.0, 0.0]]))
    0.5
    """
    if isinstance(gamma, str) and gamma == "scale":
        variance = float(X.var(axis=0).mean())
        gamma = 1.0
        if variance > _MIN_GAMMA:
            gamma = 1.0 / (X.shape[1] * variance)
    return check_real(gamma, "gamma", "'scale' or a positive number", least=_MIN_GAMMA)


def kernel_parameters(
    kernel: Kernel, items: Floats, gamma: float | str, degree: float, coef0: float
) -> dict[str, float]:
    """The parameters of `kernel_matrix` for the items of a fit; none for a callable."""
    if callable(kernel):
        return {}
    return {
        "gamma": scale_gamma(gamma, items),
        "degree": check_real(degree, "degree", "a number of at least 1", least=1),
        "coef0": check_real(coef0, "coef0"),
    }


def distinct_items(pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the pairs' items, one for each distinct item in use, and the pairs over
    these, shape (m, 2)."""
    ids, B = pairs.B.compacted()
    chosen, merged = distinct_rows(pairs.items[ids])
    return ids[chosen], merged[B.index]


def distinct_rows(X: Floats) -> tuple[Ids, Ids]:
    """The first row of each kind, of k kinds in order, and the kind of each row, shapes
    (k,) and (n,)."""
    if sparse.issparse(X):
        # CSR with entries in order: rows are equal if the bytes of their entries are
        nonzero: Any = sparse.csr_array(X, copy=True)
        nonzero.eliminate_zeros()
        numbers: dict[Any, int] = {}
        kinds = np.empty(X.shape[0], dtype=np.int64)
        for k, (start, end) in enumerate(pairwise(nonzero.indptr)):
            key = (
                nonzero.indices[start:end].tobytes(),
                nonzero.data[start:end].tobytes(),
            )
            kinds[k] = numbers.setdefault(key, len(numbers))
        return np.unique(kinds, return_index=True)[1], kinds
    _, chosen, merged = np.unique(X, axis=0, return_index=True, return_inverse=True)
    return chosen, merged.ravel()


def kernel_matrix(kernel: Kernel, X: Floats, Y: Floats, **parameters: float) -> Floats:
    """The kernel between the rows of X and those of Y, shape (n_x, n_y).

    Parameters
    ----------
    kernel : str or callable
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, or a callable k(X, Y)
        that returns the whole matrix.
    X, Y : ndarray of shape (n_x, p), (n_y, p)
    **parameters : float
        gamma, degree, coef0; those that the kernel does not have are left out.

    Raises
    ------
    ValueError
        If a callable returns another shape, values are not finite, or features do not
        suit the kernel.

    Notes
    -----
    The values are those of scikit-learn up to rounding errors of the size of those of k,
    also for "rbf" between items whose distance is small compared with their norms: see
    `squared_distances`.
    """
    if callable(kernel):
        K = as_floats(kernel(X, Y), "the kernel")
        check_shape(K, "the kernel", (len(X), len(Y)), "k(X, Y) gives the whole matrix")
    else:
        if kernel in ("chi2", "additive_chi2"):
            expected = f"features of at least 0, for the kernel {kernel!r}"
            for values in (X, Y):
                raise_if_any(values < 0, values, "X", expected)
        # values that are not finite raise below
        with np.errstate(over="ignore", invalid="ignore"):
            if kernel == "rbf":
                K = squared_distances(X, Y)
                K *= -(parameters.get("gamma") or 1 / X.shape[1])
                np.exp(K, out=K)
            else:
                K = pairwise_kernels(
                    X, Y, metric=kernel, filter_params=True, **parameters
                )
    expected = "finite values (standardise the features, or lower degree)"
    raise_if_any(~np.isfinite(K), K, "the kernel", expected)
    return K


def kernel_minus_one(kernel: Kernel, gamma: float, X: Floats, Y: Floats) -> Floats:
    """k(x, x') - 1 of one of `SHIFTED`, to full precision where k is wide, and 1 would
    hide the rest."""
    distances = squared_distances
    if kernel == "laplacian":
        distances = manhattan_distances
    return np.expm1(-gamma * distances(X, Y))


def squared_distances(X: Floats, Y: Floats) -> Floats:
    """|x - x'|² between the rows of X and of Y, each with a relative error near
    rounding, shape (n_x, n_y).

    A product of matrices, |x|² + |x'|² - 2 x·x', takes less time where features are
    many, and loses the digits in which large squares agree. It serves for items that
    are far from each other: with
    |x - x'|² >= c |x|², the three terms are at most 2 (3/c + 2) times their sum in size.
    """
    if X.shape[1] <= _MAX_FEATURES or X.size * len(Y) <= _MAX_TERMS:
        return cdist(X, Y, "sqeuclidean").astype(np.float64, copy=False)
    middle = Y.mean(axis=0)  # an offset would be a part of all squares
    moved = X - middle
    others = moved
    if Y is not X:
        others = Y - middle
    size = (moved**2).sum(axis=1)[:, None]
    squares = moved @ others.T
    squares *= -2
    squares += size
    squares += (others**2).sum(axis=1)
    rows, columns = np.nonzero(squares < _CANCELLATION * size)
    if 8 * len(rows) > squares.size:
        return cdist(X, Y, "sqeuclidean").astype(np.float64, copy=False)
    for part in np.array_split(np.arange(len(rows)), 1 + len(rows) // _BLOCK):
        squares[rows[part], columns[part]] = (
            (X[rows[part]] - Y[columns[part]]) ** 2
        ).sum(axis=1)
    return squares


def pivoted_features(K: Floats, rounding: float = 0.0) -> tuple[Floats, Ids]:
    """Features L of the lowest dimension with L L' = K, by a pivoted Cholesky
    factorisation.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        A symmetric positive semi-definite matrix.
    rounding : float
        Rounding error of the entries of K, if larger than that of their size.

    Returns
    -------
    L : ndarray of shape (n, r)
        r is the numerical rank: what remains of K is below 1e-13 of its largest entry
        on the diagonal.
    order : ndarray of shape (n,)
        Order of the items in which L is lower triangular.

    Raises
    ------
    NotPositiveSemidefiniteError
        If K has a negative eigenvalue, beyond rounding: the remainder after the last
        positive pivot is then not zero.
    ValueError
        If K is not symmetric.

    Examples
    --------
    >>> L, order = pivoted_features(np.array([[4.0, 2.0], [2.0, 1.0]]))
    >>> L.tolist()
    [[2.0], [1.0]]
    """
    check_scale(K, "the Gram matrix")
    check_symmetric(K, "K", tolerance=1e-8)
    top = float(K.diagonal().max())
    if not K.any():
        return np.zeros((len(K), 1)), np.arange(len(K))
    if top <= 0:
        raise indefinite(K)
    factor, pivots, rank, _ = _PSTRF(
        K, tol=max(_RANK_TOLERANCE * top, _ERROR_GROWTH * rounding), lower=1
    )
    L = np.empty((len(K), rank))
    order = pivots.astype(np.int64) - 1  # LAPACK counts from 1
    L[order] = np.tril(factor)[:, :rank]
    for start in range(0, len(K), _BLOCK):
        rows = slice(start, start + _BLOCK)
        # Rounding errors add up along a null vector, such as 1 for a centred K, so the
        # tolerance grows with n.
        tolerance = max(_NEGATIVE_TOLERANCE * top, _ERROR_GROWTH * len(K) * rounding)
        if np.abs(K[rows] - L[rows] @ L.T).max() > tolerance:
            raise indefinite(K)
    return L, order


def few_features(
    K: Floats, most: int, rounding: float, check: bool
) -> tuple[Floats, Ids] | None:
    """`pivoted_features`, or None if there are more than `most`.

    A part of K shows this first, without a factorisation of K. With `check`, a Cholesky
    factorisation tests K in this case too.
    """
    if len(K) > most:
        part = np.linspace(0, len(K) - 1, most + 1).astype(np.int64)
        corner = K[np.ix_(part, part)]
        largest = float(K.diagonal().max())
        tolerance = max(_RANK_TOLERANCE * largest, _ERROR_GROWTH * rounding)
        if _PSTRF(corner, tol=tolerance, lower=1)[2] > most:
            if check:
                check_definite(K, rounding)
            return None
    L, order = pivoted_features(K, rounding)
    if L.shape[1] > most:
        return None
    return L, order


def check_definite(K: Floats, rounding: float) -> None:
    """Raise if K has a negative eigenvalue beyond rounding, by a Cholesky factorisation."""
    check_symmetric(K, "K", tolerance=1e-8)
    if not K.any():
        return
    n = len(K)
    largest = float(K.diagonal().max())
    shift = max(_NEGATIVE_TOLERANCE * largest, _ERROR_GROWTH * rounding)
    packed, _ = _TRTTF(K.T, uplo="L")  # one triangle, in half the memory of K
    # The packed form (RFP) holds the diagonal in two strided parts.
    odd = n % 2
    packed[:: n + 2 - odd] += shift
    packed[n if odd else 1 :: n + 2 - odd] += shift
    if _PFTRF(n, packed, uplo="L", overwrite_a=1)[1] != 0:
        raise indefinite(K)


def indefinite(K: Floats) -> NotPositiveSemidefiniteError:
    """The error that says which eigenvalues K has."""
    eigenvalues = linalg.eigvalsh(K)
    return NotPositiveSemidefiniteError(
        f"the Gram matrix of the {len(K)} items has eigenvalues from {eigenvalues[0]:.3g} to "
        f"{eigenvalues[-1]:.3g}; expected none below 0: choose another kernel or other parameters of it"
    )

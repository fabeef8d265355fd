"""Kernels of items: their Gram matrices, and feature maps of these."""

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
# Both are relative to the largest diagonal entry. Smaller pivots are rounding errors; a
# larger remainder after the last pivot means that there is a negative eigenvalue.
_RANK_TOLERANCE = 1e-13
_NEGATIVE_TOLERANCE = 1e-9
_ERROR_GROWTH = 100  # factor by which rounding errors in K grow in the remainder
_BLOCK = 1 << 10
# Up to this number of features, or of terms in all sums, differences take no longer
# than a matrix product.
_MAX_FEATURES = 20
_MAX_TERMS = 10**7
_CANCELLATION = 1 / 100  # |x - x'|² / |x|² below which a product loses too many digits
_PSTRF, _TRTTF, _PFTRF = linalg.get_lapack_funcs(("pstrf", "trttf", "pftrf"))
_MIN_GAMMA = np.finfo(np.float64).tiny


class NotPositiveSemidefiniteError(ValueError):
    """Error for a Gram matrix that has a negative eigenvalue.

    Such a matrix is not a matrix of inner products for any features.
    """


def check_kernel(kernel: Kernel) -> None:
    """Raise ValueError unless `kernel` is a known name, "precomputed" or a callable."""
    known = sorted([*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"])
    good = callable(kernel) or (isinstance(kernel, str) and kernel in known)
    require(good, kernel, "kernel", f"a callable k(X, Y) or one of {known}")


def scale_gamma(gamma: float | str, X: Floats) -> float:
    """Return gamma of a kernel as a number; "scale" is 1 / (p · variance of X).

    The variance is the mean of the variances of the features, so that an offset of a
    feature has no effect.

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
    """Return the parameters of `kernel_matrix` for a fit; none for a callable."""
    if callable(kernel):
        return {}
    return {
        "gamma": scale_gamma(gamma, items),
        "degree": check_real(degree, "degree", "a number of at least 1", least=1),
        "coef0": check_real(coef0, "coef0"),
    }


def distinct_items(pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ids of the distinct items in pairs, and the pairs over these ids.

    The ids are the first row of each distinct item that occurs; the pairs have shape
    (m, 2) and refer to positions among these ids.
    """
    ids, B = pairs.B.compacted()
    chosen, merged = distinct_rows(pairs.items[ids])
    return ids[chosen], merged[B.index]


def distinct_rows(X: Floats) -> tuple[Ids, Ids]:
    """Return the first row number of each distinct row, and an id for each row.

    The shapes are (k,) for k distinct rows, and (n,) with ids from 0 to k - 1.
    """
    if sparse.issparse(X):
        # with sorted entries, rows are equal if the bytes of their entries are
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
    """Return the kernel matrix between the rows of X and Y, shape (n_x, n_y).

    Parameters
    ----------
    kernel : str or callable
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, or a callable k(X, Y)
        that returns the whole matrix.
    X, Y : ndarray of shape (n_x, p), (n_y, p)
        Features of the items of the rows and of the columns.
    **parameters : float
        Values of gamma, degree, and coef0; each kernel uses only its own parameters.

    Raises
    ------
    ValueError
        If a callable returns a wrong shape, values are not finite, or the kernel does
        not allow the features.

    Notes
    -----
    The values agree with scikit-learn up to rounding errors in k. For "rbf" this also
    holds between items whose distance is small compared with their norms, see
    `squared_distances`.
    """
    if callable(kernel):
        K = as_floats(kernel(X, Y), "the kernel")
        check_shape(
            K, "the kernel", (len(X), len(Y)), "k(X, Y) has to return the whole matrix"
        )
    else:
        if kernel in ("chi2", "additive_chi2"):
            expected = f"nonnegative features for kernel={kernel!r}"
            for values in (X, Y):
                raise_if_any(values < 0, values, "X", expected)
        # values that are not finite raise an error below
        with np.errstate(over="ignore", invalid="ignore"):
            if kernel == "rbf":
                K = squared_distances(X, Y)
                K *= -(parameters.get("gamma") or 1 / X.shape[1])
                np.exp(K, out=K)
            else:
                K = pairwise_kernels(
                    X, Y, metric=kernel, filter_params=True, **parameters
                )
    expected = "finite values; standardize the features, or lower degree"
    raise_if_any(~np.isfinite(K), K, "the kernel", expected)
    return K


def kernel_minus_one(kernel: Kernel, gamma: float, X: Floats, Y: Floats) -> Floats:
    """Return k(x, x') - 1 to full precision, for one of the `SHIFTED` kernels.

    If gamma is small, k is close to 1, and k - 1 computed from k would lose digits.
    """
    distances = squared_distances
    if kernel == "laplacian":
        distances = manhattan_distances
    return np.expm1(-gamma * distances(X, Y))


def squared_distances(X: Floats, Y: Floats) -> Floats:
    """Return |x - x'|² between the rows of X and Y to nearly full precision.

    The result has shape (n_x, n_y).

    The formula |x|² + |x'|² - 2 x·x' with a matrix product takes less time if there are
    many features, but loses digits if the squares nearly cancel. The formula is used
    only for items that are far from each other: with |x - x'|² >= c |x|², the three
    terms are at most 2 (3/c + 2) times as large as their sum.
    """
    if X.shape[1] <= _MAX_FEATURES or X.size * len(Y) <= _MAX_TERMS:
        return cdist(X, Y, "sqeuclidean").astype(np.float64, copy=False)
    middle = Y.mean(axis=0)  # an offset would enlarge all squares
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
    """Return features L of lowest dimension with L L' = K.

    They are computed by a pivoted Cholesky factorization.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric positive semi-definite matrix.
    rounding : float
        Rounding error of the entries of K, if it is larger than that of their storage.

    Returns
    -------
    L : ndarray of shape (n, r)
        Features, where r is the numerical rank: K - L L' is below 1e-13 of the largest
        diagonal entry of K.
    order : ndarray of shape (n,)
        Order of the items in which L is lower triangular.

    Raises
    ------
    NotPositiveSemidefiniteError
        If K has a negative eigenvalue beyond rounding errors, so that the remainder
        after the last positive pivot is not zero.
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
        # Rounding errors add up along a null vector, such as 1 for a centered K, so the
        # tolerance grows with n.
        tolerance = max(_NEGATIVE_TOLERANCE * top, _ERROR_GROWTH * len(K) * rounding)
        if np.abs(K[rows] - L[rows] @ L.T).max() > tolerance:
            raise indefinite(K)
    return L, order


def few_features(
    K: Floats, most: int, rounding: float, check: bool
) -> tuple[Floats, Ids] | None:
    """Return `pivoted_features`, or None if there are more than `most` of them.

    A submatrix of K of size `most` + 1 is tested first, which may avoid the
    factorization of K. With `check`, a Cholesky factorization of K looks for negative
    eigenvalues in this case too.
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
    """Raise NotPositiveSemidefiniteError unless a Cholesky factorization succeeds."""
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
    """Return an error whose message gives the range of the eigenvalues of K."""
    eigenvalues = linalg.eigvalsh(K)
    return NotPositiveSemidefiniteError(
        f"the Gram matrix of the {len(K)} items has eigenvalues from {eigenvalues[0]:.3g} to "
        f"{eigenvalues[-1]:.3g}; expected no negative ones: choose another kernel or other kernel parameters"
    )

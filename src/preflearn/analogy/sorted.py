"""Products with Gram matrices of the analogy kernel, without the matrices: by sorting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from preflearn.analogy.hats import HAT_OF_TWO, SortedFeature, joined, product, sorted_feature
from preflearn.analogy.kernel import Zero, analogy_kernel, check_differences, check_features, share
from preflearn.checks import LARGEST, Floats, as_array, check_array, check_choice, check_count, refuse

_SORTING, _JOINING = 100.0, 15.0  # nanoseconds a difference, about
_DEGREE = 0.15  # nanoseconds a feature, of the kernel itself
_BLOCK = 1 << 22  # kernel values at a time


class AnalogyOperator:
    """The Gram matrix of the analogy kernel as an operator that is never written down.

    Multiplies by K = `analogy_kernel(U, degree=degree, zero=zero)`, eq. 8 of [AhmadiFahandar2019]_ or, of
    degree 2, eq. 9, from the sorted differences of each feature.

    Parameters
    ----------
    U : array-like of shape (N, d)
        Differences of pairs in [-1, 1], as in `analogy_kernel`.
    degree : {1, 2}
    zero : {"apart", "positive"}
        Whether sign(0) is a sign of its own.

    Attributes
    ----------
    shape : tuple of int
        (N, N).
    features : list of SortedFeature
        Of each feature the order of its differences, these in that order, and where signs begin and end.

    Raises
    ------
    ValueError
        On differences that `analogy_kernel` refuses, or a degree other than 1 and 2.

    Notes
    -----
    Sorting takes O(d N log N), once, and keeps 12 bytes a difference. A product then takes O(d N) for degree
    1 and O(d^2 N log N) for degree 2, in memory of O(N). Of degree 2, few pairs are compared with each other,
    in blocks that are not kept; a Gram matrix that is kept is quicker where N is below some 100 d to 300 d.
    Sums are added in stretches, or with what rounding takes away, so that the error at N = 10^6 is some
    1e-14 sum |v|. All threads of Numba are used; their number changes no bit.

    References
    ----------
    .. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference learning with
       kernels", 2019.

    Examples
    --------
    >>> K = AnalogyOperator([[0.5, 0.0], [0.25, -0.5]])
    >>> K.times([1.0, 2.0]).tolist()
    [1.75, 2.375]
    >>> K.cross([[0.25, 0.25]], [1.0, 2.0]).tolist()
    [1.375]
    """

    __slots__ = ("degree", "features", "shape", "zero")

    def __init__(self, U: ArrayLike, degree: int = 1, zero: Zero = "apart") -> None:
        U = check_differences(U)
        self.degree = check_count(degree, "degree", 1)
        if self.degree > 2:
            raise ValueError(
                f"degree is {degree}; expected 1 or 2, whose products need no Gram: use analogy_kernel"
            )
        check_choice(zero, "zero", ("apart", "positive"))
        self.zero: Zero = zero
        self.shape = (len(U), len(U))
        self.features: list[SortedFeature] = share(
            lambda k: sorted_feature(U[:, k], zero), range(U.shape[1]), _SORTING * U.size
        )

    def times(self, v: ArrayLike) -> Floats:
        """K v.

        Parameters
        ----------
        v : array-like of shape (N,) or (N, k)

        Returns
        -------
        ndarray of the shape of v

        Raises
        ------
        ValueError
            On another shape, or values that are not finite or beyond 1e100.
        """
        v, (n, _) = self._checked(v), self.shape
        if self._comparing(n, n):
            return self._compared(None, v)
        return _columnwise(lambda column: product(self.features, self.degree, column), v)

    def cross(self, V: ArrayLike, v: ArrayLike) -> Floats:
        """K(V, U) v: what a machine with weights v on the pairs of U says of the pairs of V.

        Takes as long as a product with N + N2 pairs, and the sorting of V; so ask for many pairs at once. Of
        degree 2, few pairs are compared with each one of U, where that is quicker.

        Parameters
        ----------
        V : array-like of shape (N2, d)
        v : array-like of shape (N,) or (N, k)

        Returns
        -------
        ndarray of shape (N2,) or (N2, k)

        Raises
        ------
        ValueError
            On differences that `analogy_kernel` refuses, or as in `times`.
        """
        V = check_differences(V, "V")
        check_features(V, "V", len(self.features))
        (n, _), v, features = self.shape, self._checked(v), range(len(self.features))
        if self._comparing(len(V), n + len(V)):
            return self._compared(V, v)
        work = (_SORTING * len(V) + _JOINING * n) * len(features)
        both = share(lambda k: joined(self.features[k], V[:, k], self.zero), features, work)
        padded = np.concatenate([v, np.zeros((len(V), *v.shape[1:]))])  # the new pairs have no weight
        return _columnwise(lambda column: product(both, self.degree, column)[n:], padded)

    def _comparing(self, rows: int, both: int) -> bool:
        """Whether kernel values of that many rows are made sooner than sums over both sorted sets."""
        by_sorting = HAT_OF_TWO * both * (len(self.features) - 1) / 2
        return self.degree == 2 and _DEGREE * rows * self.shape[0] < by_sorting

    def _compared(self, V: Floats | None, v: Floats) -> Floats:
        """K(V, U) v in blocks of kernel values; None: K v."""
        U = np.empty((self.shape[0], len(self.features)))
        for k, feature in enumerate(self.features):
            U[feature.order, k] = feature.values
        V = U if V is None else V
        parts = np.array_split(V, -(-len(V) * len(U) // _BLOCK))
        blocks = (analogy_kernel(part, U, self.degree, zero=self.zero) for part in parts)
        # Without BLAS, whose threads change the order of sums.
        return np.concatenate([_columnwise(lambda w, K=K: (K * w).sum(axis=1), v) for K in blocks])

    def diagonal(self) -> Floats:
        """The diagonal of K, shape (N,): ones."""
        return np.ones(self.shape[0])

    def _checked(self, v: ArrayLike) -> Floats:
        v = as_array(v, "v")
        shape = (self.shape[0], "k")[: max(1, v.ndim)]
        v = check_array(v, "v", shape, "one weight a pair")
        refuse(np.abs(v) > LARGEST, v, "v", "weights from -1e100 to 1e100, whose sums do not overflow")
        return v


def _columnwise(product: Callable[[Floats], Floats], v: Floats) -> Floats:
    if v.ndim == 1:
        return product(v)
    return np.stack([product(np.ascontiguousarray(column)) for column in v.T], axis=1)

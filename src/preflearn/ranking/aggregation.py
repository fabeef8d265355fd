"""From degrees of pairwise preference to one order: rank aggregation, section 5.2 of
[AhmadiFahandar2019]_.

Each function takes the degrees P, with P[i, j] for "i is better than j", and returns
worths of the items, large is good. They may be shares or counts, and need not be
reciprocal; the diagonal does not count.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
.. [Ford1957] L. R. Ford, "Solution of a ranking problem from binary comparisons",
   American Mathematical Monthly 64, 1957.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, cg, spsolve
from scipy.special import expit

from preflearn.core.diagnosis import warn_if_not_identified
from preflearn.core.validation import (
    LARGEST,
    Floats,
    check_array,
    check_shape,
    raise_if_any,
    require,
)
from preflearn.pairs import Incidence

# of the largest degree: what must be exceeded to count, and what all get if no maximum
# exists
_LEAST = 1e-9
# step of Newton's method: how far two neighbours in the order may move apart
_LONGEST = 5.0
# after so many steps, which may go to and fro for ever, no farther than this
_LONG = 100
_SHORTER = 0.5
_ROUNDED = 1e-3  # a step below it that does not fall any more is rounding
_MOST_STEPS = 500
_EQUAL = 1e-8  # log-worths closer than this are one
_ROUNDING = 1e-12  # of the largest row sum
_FEW = 300  # items up to which equations are solved directly
# of a right-hand side that may be left, after so many products at most
_SHARE = 1e-4
_PRODUCTS = 500
_WHOLE = 20_000  # items up to which a sparse matrix is filled
_DEGREES = "a degree for each ordered pair of items"


def bradley_terry(P: ArrayLike | sparse.sparray) -> Floats:
    """Log-worths of most likelihood in the model of Bradley, Terry and Luce, eq. 11 of
    [AhmadiFahandar2019]_.

    Maximises, over theta > 0 with a product of 1 (section 5.2)::

        sum over i != j of p_ij log(theta_i / (theta_i + theta_j)).

    Parameters
    ----------
    P : array-like or sparse matrix of shape (n, n)
        Degrees or counts, not negative. Their scale does not matter.

    Returns
    -------
    worths : ndarray of shape (n,)
        log theta, with mean 0. Neighbours in the order closer than 1e-8 are made equal,
        and so are chains of them, so that rounding orders nothing.

    Raises
    ------
    ValueError
        If P is not square, negative somewhere, or not finite, or if it is sparse, of
        more than 20,000 items, and there is no maximum.

    Warns
    -----
    NotIdentifiedWarning
        If groups of items never met.

    Notes
    -----
    The maximum exists if and only if the graph of the p_ij > 0 is strongly connected
    ([Ford1957]_): there is no part of the items that never loses to the rest. Where
    that fails (degrees of 0 and 1, items that were never compared), or hangs on degrees
    below 1e-9 of the largest, this much is added to all p_ij with i != j. As the
    addition goes to 0, the worths of a and b grow apart without end if a chain of
    preferences leads from a to b, and none back: the chain decides. Without any
    preference all worths are 0.

    Where each p_ij + p_ji is the same, the order is that of the row sums, whatever is
    added: at the maximum the sum of p_ij over j is that of theta_i / (theta_i +
    theta_j), which grows with theta_i.

    Newton's method, as a rule in 5 to 60 steps, for total orders as well; its steps are
    shortened where neighbours in the order would move far apart, and only there. With
    more than 300 items and a maximum a step takes conjugate gradients, some ten
    products with the p_ij > 0, or a sparse factorisation where these do not converge;
    else it takes O(n^3), and a sparse P is filled.

    Examples
    --------
    >>> bradley_terry([[0, 3], [1, 0]]).round(6).tolist()  # theta in the ratio 3 : 1
    [0.549306, -0.549306]
    >>> worths = bradley_terry([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    >>> bool(np.isfinite(worths).all()), np.argsort(-worths).tolist()
    (True, [0, 1, 2])
    """
    degrees = _check_degrees(P)
    largest = degrees.max()
    if not largest > 0:
        return np.zeros(degrees.shape[0])
    if sparse.issparse(degrees):  # which would be multiplied by 1 / largest
        degrees.data /= largest
    else:
        degrees /= largest
    connected = connected_components(degrees > _LEAST, connection="strong")[0] == 1
    if not connected:
        n = degrees.shape[0]
        expected = (
            f"at most {_WHOLE} where no maximum exists and all entries are filled"
        )
        require(
            n <= _WHOLE or not sparse.issparse(P), n, "the number of items", expected
        )
        warn_if_not_identified(
            "bradley_terry", range(n), np.column_stack((degrees > _LEAST).nonzero())
        )
        degrees = degrees + _LEAST * ~np.eye(n, dtype=bool)
    return merged(_maximum(degrees, connected), _EQUAL)


def _maximum(P: Any, connected: bool) -> Floats:
    """Newton's method. Far from the maximum, items whose comparisons are settled would
    be thrown anywhere.

    Such an item leaves its neighbours behind, while items of a long order move far with
    theirs.
    """
    pairs = (sparse if sparse.issparse(P) else np).triu(P + P.T, 1).nonzero()
    B = Incidence(np.column_stack(pairs), P.shape[0])
    won = P[pairs]
    lost = P.T[pairs]
    worths = np.zeros(P.shape[0])
    last = np.inf
    graph = None
    if connected and P.shape[0] > _FEW:  # which pair an entry is of
        ends = np.hstack([B.index.T, B.index[:, ::-1].T])
        number = np.tile(np.arange(1, B.shape[0] + 1), 2)
        graph = sparse.csr_array((number, tuple(ends)), shape=P.shape)
    for count in range(_MOST_STEPS):
        d = B.differences(worths)
        ahead = expit(d)
        behind = expit(-d)
        slope = B.adjoint(won * behind - lost * ahead)
        weights = (won + lost) * ahead * behind
        step = _step(B, weights, slope, graph)
        length = float(np.ptp(step))
        apart = np.abs(np.diff(step[np.argsort(worths, kind="stable")])).max(
            initial=0.0
        )
        worths = worths + step / max(
            1.0, apart / (_LONGEST if count < _LONG else _SHORTER)
        )
        if length < _EQUAL / 100 or last <= length < _ROUNDED:
            break
        last = length
    return worths - worths.mean()


def _step(B: Incidence, weights: Floats, slope: Floats, graph: Any) -> Any:
    """Solve B'WB x = slope: of a filled matrix, by gradients, or by factors where these
    are many."""
    n = B.shape[1]
    if graph is None:
        off = np.zeros((n, n))
        off[B.first, B.second] = weights
        off += off.T
        # 1 / n keeps the mean
        return np.linalg.solve(np.diag(off.sum(axis=1)) - off + 1 / n, slope)
    off = sparse.csr_array(
        (weights[graph.data - 1], graph.indices, graph.indptr), shape=(n, n)
    )
    degree = off @ np.ones(n)
    laplacian = LinearOperator((n, n), lambda v: degree * v - off @ v, dtype=np.float64)  # pyright: ignore[reportCallIssue]
    slope = slope - slope.mean()  # which is rounding, and can't be reached
    inverse = sparse.diags_array(1 / degree)
    step, failed = cg(laplacian, slope, rtol=_SHARE, maxiter=_PRODUCTS, M=inverse)
    if failed:  # as of a long chain or ring, whose factors are sparse
        rest: Any = spsolve(B.laplacian(weights).tocsc()[1:, 1:], slope[1:])
        step = np.append(0.0, rest)
    return step


def row_sums(P: ArrayLike) -> Floats:
    """The sum of p_ij over all j other than i; of votes it is the count of Borda.

    Parameters
    ----------
    P : array-like of shape (n, n)
        As in `bradley_terry`.

    Returns
    -------
    worths : ndarray of shape (n,)
        Values that differ by rounding only are made equal.

    Raises
    ------
    ValueError
        As in `bradley_terry`.

    Examples
    --------
    >>> row_sums([[0, 0.75, 0.5], [0.25, 0, 0.5], [0.5, 0.5, 0]]).tolist()
    [1.25, 0.75, 1.0]
    """
    sums = _check_degrees(P).sum(axis=1)
    return merged(sums, _ROUNDING * float(sums.max()))


def copeland(P: ArrayLike) -> Floats:
    """How many items each one beats: the number of j with p_ij > p_ji, and half of
    those with equality.

    For reciprocal degrees, p_ij > p_ji says p_ij > 1/2. Two items that were never
    compared are equal.

    Parameters
    ----------
    P : array-like of shape (n, n)
        As in `bradley_terry`.

    Returns
    -------
    worths : ndarray of shape (n,)
        Between 0 and n - 1; they often coincide.

    Raises
    ------
    ValueError
        As in `bradley_terry`.

    Examples
    --------
    >>> copeland([[0, 0.75, 0.5], [0.25, 0, 0.5], [0.5, 0.5, 0]]).tolist()
    [1.5, 0.5, 1.0]
    """
    better = (degrees := _check_degrees(P)) > degrees.T
    return (better.sum(axis=1) - better.sum(axis=0) + better.shape[0] - 1) / 2


AGGREGATES: dict[str, Callable[[ArrayLike], Floats]] = {
    "bradley-terry": bradley_terry,
    "row sums": row_sums,
    "copeland": copeland,
}


def _check_degrees(P: Any) -> Any:
    """A copy with a diagonal of 0; sparse where P is."""
    if sparse.issparse(P):
        P = sparse.csr_array(P, dtype=np.float64)
        check_shape(P, "P", ("n", "n"), _DEGREES)
        raise_if_any(
            ~((P.data >= 0) & (P.data <= LARGEST)), P, "P", "degrees from 0 to 1e100"
        )
        return P - sparse.diags_array(P.diagonal())
    array = check_array(P, "P", ("n", "n"), _DEGREES)
    raise_if_any((array < 0) | (array > LARGEST), array, "P", "degrees from 0 to 1e100")
    return np.where(np.eye(len(array), dtype=bool), 0.0, array)


def merged(worths: Floats, tolerance: float) -> Floats:
    """Neighbours no farther apart than this become equal."""
    order = np.argsort(worths, kind="stable")
    ascending = worths[order]
    first = np.append(True, np.diff(ascending) > tolerance)
    found = np.empty(len(worths))
    found[order] = ascending[first][np.cumsum(first) - 1]
    return found

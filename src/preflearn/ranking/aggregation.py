"""Rank aggregation from degrees of pairwise preference.

See section 5.2 of [AhmadiFahandar2019]_.

Each function takes the degrees P, with P[i, j] for "i is better than j", and returns
worths of the items, where larger is better. The degrees may be fractions or counts, and
need not be reciprocal; the diagonal is ignored.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
.. [Ford1957] L. R. Ford, "Solution of a ranking problem from binary comparisons",
   American Mathematical Monthly 64, 1957.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
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

# Relative to the largest degree: smaller degrees do not count. If no maximum exists,
# this is added to all degrees.
_MIN_DEGREE = 1e-9
# Largest change of the difference between two neighbors in the order by one Newton
# step: at first, and after many steps, which may oscillate.
_MAX_GAP_CHANGE = 5.0
_N_LONG_STEPS = 100
_MAX_LATE_GAP_CHANGE = 0.5
_ROUNDING_STEP = 1e-3  # shorter steps that do not decrease any more are rounding errors
_MAX_STEPS = 500
_EQUAL_WORTHS = 1e-8  # log-worths that differ by less are made equal
_EQUAL_SUMS = 1e-12  # the same for row sums, relative to the largest
_MAX_DIRECT = 300  # number of items up to which equations are solved directly
_CG_TOLERANCE = 1e-4
_MAX_CG_STEPS = 500
_MAX_PAIRS_APART = 50_000_000  # pairs of items in different strongly connected parts
_REMEDY = (
    "use Davidson(alpha=0.1), fitted to the pairs (i, j) with P[i, j] > 0, label 1, and "
    "sample_weight=P[i, j], whose scores are finite"
)
_DEGREES = "a degree for each ordered pair of items"


def bradley_terry(P: ArrayLike | sparse.sparray) -> Floats:
    """Maximum-likelihood log-worths of the Bradley-Terry-Luce model.

    Use it to aggregate pairwise preferences or counts of wins to one order. For ties,
    standard errors, or finite scores of unbeaten items use `Davidson`.

    It maximizes over theta > 0 with product 1 (eq. 11 and section 5.2 of
    [AhmadiFahandar2019]_)::

        sum over i != j of p_ij log(theta_i / (theta_i + theta_j)).

    Parameters
    ----------
    P : array-like or sparse matrix of shape (n, n)
        Nonnegative degrees or counts. Their scale does not matter.

    Returns
    -------
    worths : ndarray of shape (n,)
        log theta, with mean 0. Neighbors in the order that differ by less than 1e-8 are
        made equal, and so are chains of them, so that rounding errors do not determine
        an order.

    Raises
    ------
    ValueError
        If P is not square, or has negative or infinite values; or if the maximum does
        not exist and more than 50 million pairs of items are in different strongly
        connected parts.

    Warns
    -----
    NotIdentifiedWarning
        If groups of items never met, or the maximum does not exist. The message names
        the items that never lost or never won, and suggests a penalized fit by
        `Davidson`, which gives finite scores.

    Notes
    -----
    The maximum exists if and only if the graph of the p_ij > 0 is strongly connected
    ([Ford1957]_), that is, each part of the items loses to the others at least once.
    This may not be the case (degrees of 0 and 1, items that were never compared), or it
    may depend on degrees below 1e-9 of the largest. Then 1e-9 of the largest degree is
    added to all p_ij with i != j. With more than 300 items, it is added only to pairs
    of different strongly connected parts, each of which has a maximum, so that one
    unbeaten player costs little time. As the added degree tends to 0, the difference
    between the worths of a and b tends to infinity if a chain of preferences leads from
    a to b, but none from b to a. The chain then determines the order. Without any
    preference all worths are 0.

    If all p_ij + p_ji are equal, the row sums give the same order, independent of the
    added degree. At the maximum the sum of p_ij over j equals the sum of theta_i /
    (theta_i + theta_j), which grows with theta_i.

    Newton's method usually takes 5 to 60 steps, also for total orders. Steps are
    shortened if neighbors in the order would move far apart. In parts of more than 300
    items, a step is computed by conjugate gradients (about ten products with the p_ij >
    0), or by a sparse factorization if these do not converge. In smaller parts a step
    takes O(n^3) operations. A step for the offsets of k parts takes O(k^3) operations,
    and a pass over the pairs of items of different parts.

    Examples
    --------
    >>> bradley_terry([[0, 3], [1, 0]]).round(6).tolist()  # theta in the ratio 3 : 1
    [0.549306, -0.549306]
    >>> worths = bradley_terry([[0, 1, 1], [0, 0, 1], [0, 0, 0]])  # warns: unbeaten
    >>> bool(np.isfinite(worths).all()), np.argsort(-worths).tolist()
    (True, [0, 1, 2])

    The penalized fit that the warning suggests:

    >>> from preflearn.ranking import Davidson
    >>> P = np.array([[0, 3, 1], [0, 0, 2], [0, 1, 0]])
    >>> i, j = P.nonzero()
    >>> model = Davidson(alpha=0.1)
    >>> _ = model.fit(np.column_stack([i, j]), np.ones(4), sample_weight=P[i, j])
    >>> model.coef_.round(2)
    array([ 2.05, -0.75, -1.3 ])
    """
    return fit_worths(check_degrees(P), warn=True)


def fit_worths(degrees: Any, warn: bool = False) -> Floats:
    """Return the worths of `bradley_terry` for checked degrees, which are overwritten.

    Internal calls do not `warn` if no maximum exists, since aggregated votes are often
    unanimous.
    """
    largest = degrees.max()
    n = degrees.shape[0]
    if not largest > 0:
        return np.zeros(n)
    if sparse.issparse(degrees):  # degrees /= largest would multiply by 1 / largest
        degrees.data /= largest
    else:
        degrees /= largest
    counted = degrees > _MIN_DEGREE
    n_parts, part = connected_components(counted, connection="strong")
    if n_parts > 1 and warn:
        index = np.column_stack(counted.nonzero())
        won = np.ones(len(index), dtype=np.int8)
        warn_if_not_identified("bradley_terry", range(n), index, won, remedy=_REMEDY)
    if n_parts == 1:
        worths = _maximum(degrees)
    elif n <= _MAX_DIRECT:
        worths = _maximum(degrees + _MIN_DEGREE * ~np.eye(n, dtype=bool))
    else:
        worths = _maximum_of_parts(degrees, part)
    return merge_close(worths, _EQUAL_WORTHS)


def _maximum(P: Any) -> Floats:
    """Return the worths for strongly connected degrees, with mean 0."""
    n = P.shape[0]
    pairs = (sparse if sparse.issparse(P) else np).triu(P + P.T, 1).nonzero()
    B = Incidence(np.column_stack(pairs), n)
    pair_numbers = None
    if n > _MAX_DIRECT:
        ends = np.hstack([B.index.T, B.index[:, ::-1].T])
        number = np.tile(np.arange(1, B.shape[0] + 1), 2)
        pair_numbers = sparse.csr_array((number, tuple(ends)), shape=P.shape)
    return _newton(B, P[pairs], P.T[pairs], 0.0, pair_numbers)


def _maximum_of_parts(P: Any, part: NDArray) -> Floats:
    """Maximize within each strongly connected part, and then over their offsets.

    Between two parts all preferences have the same direction, so the smallest degree is
    added to all pairs between parts.
    """
    worths = np.zeros(len(part))
    sizes = np.bincount(part)
    for k in np.flatnonzero(sizes > 1):
        members = np.flatnonzero(part == k)
        worths[members] = _maximum(P[members][:, members])
    largest = part == sizes.argmax()
    rest = np.flatnonzero(~largest)
    everyone = np.arange(len(part))
    n_pairs = len(rest) * len(part)
    expected = f"at most {_MAX_PAIRS_APART:,}, since no maximum exists: {_REMEDY}"
    require(
        n_pairs <= _MAX_PAIRS_APART,
        n_pairs,
        "the number of item pairs in different connected parts",
        expected,
    )
    # each pair among the other parts once, and all their pairs with the largest part
    apart = part[rest, None] != part
    apart &= largest | (rest[:, None] < everyone)
    row, second = apart.nonzero()
    first = rest[row]
    won = _filled(P[rest])[apart] + _MIN_DEGREE
    lost = _filled(P.T[rest])[apart] + _MIN_DEGREE
    B = Incidence(np.column_stack([part[first], part[second]]), len(sizes))
    offsets = _newton(B, won, lost, worths[first] - worths[second], None)
    worths += offsets[part]
    return worths - worths.mean()


def _filled(P: Any) -> Floats:
    if sparse.issparse(P):
        return P.toarray()
    return P


def _newton(
    B: Incidence, won: Floats, lost: Floats, shift: Floats | float, pair_numbers: Any
) -> Floats:
    """Maximize the likelihood by Newton's method with limited steps.

    The score differences are d = shift + B worths.

    Far from the maximum, the curvature of an item with nearly certain outcomes is tiny,
    and its step is far too long. Since such an item moves away from its neighbors,
    while the items of a long order may all move far together, the changes between
    neighbors are limited.
    """
    worths = np.zeros(B.shape[1])
    last = np.inf
    for count in range(_MAX_STEPS):
        d = shift + B.differences(worths)
        p_first = expit(d)
        p_second = expit(-d)
        slope = B.adjoint(won * p_second - lost * p_first)
        weights = (won + lost) * p_first * p_second
        step = _newton_step(B, weights, slope, pair_numbers)
        length = float(np.ptp(step))
        in_order = step[np.argsort(worths, kind="stable")]
        change = np.abs(np.diff(in_order)).max(initial=0.0)
        allowed = _MAX_GAP_CHANGE
        if count >= _N_LONG_STEPS:
            allowed = _MAX_LATE_GAP_CHANGE
        worths = worths + step / max(1.0, change / allowed)
        if length < _EQUAL_WORTHS / 100 or last <= length < _ROUNDING_STEP:
            break
        last = length
    return worths - worths.mean()


def _newton_step(
    B: Incidence, weights: Floats, slope: Floats, pair_numbers: Any
) -> Any:
    """Solve B'WB x = slope, by a dense or a sparse solver.

    With the sparse (n, n) matrix of pair numbers (from 1 on), conjugate gradients are
    used, or a sparse factorization if these do not converge.
    """
    n = B.shape[1]
    if pair_numbers is None:
        place = B.first * n + B.second
        off = np.bincount(place, weights, n * n).reshape(n, n)
        off = off + off.T
        # adding 1 / n fixes the mean
        return np.linalg.solve(np.diag(off.sum(axis=1)) - off + 1 / n, slope)
    entries = weights[pair_numbers.data - 1]
    structure = pair_numbers.indices, pair_numbers.indptr
    off = sparse.csr_array((entries, *structure), shape=(n, n))
    degree = off @ np.ones(n)
    laplacian = LinearOperator((n, n), lambda v: degree * v - off @ v, dtype=np.float64)  # pyright: ignore[reportCallIssue]
    # the mean is a rounding error outside the range of B'WB
    slope = slope - slope.mean()
    step, failed = cg(
        laplacian,
        slope,
        rtol=_CG_TOLERANCE,
        maxiter=_MAX_CG_STEPS,
        M=sparse.diags_array(1 / degree),
    )
    if failed:  # for example for a long chain or ring, whose factors are sparse
        rest: Any = spsolve(B.laplacian(weights).tocsc()[1:, 1:], slope[1:])
        step = np.append(0.0, rest)
    return step


def row_sums(P: ArrayLike) -> Floats:
    """Compute the sum of p_ij over all j except i; for votes, the Borda count.

    Parameters
    ----------
    P : array-like of shape (n, n)
        Nonnegative degrees or counts, as in `bradley_terry`.

    Returns
    -------
    worths : ndarray of shape (n,)
        Row sums. Values that differ only by rounding errors are made equal.

    Raises
    ------
    ValueError
        As in `bradley_terry`.

    Examples
    --------
    >>> row_sums([[0, 0.75, 0.5], [0.25, 0, 0.5], [0.5, 0.5, 0]]).tolist()
    [1.25, 0.75, 1.0]
    """
    sums = check_degrees(P).sum(axis=1)
    return merge_close(sums, _EQUAL_SUMS * float(sums.max()))


def copeland(P: ArrayLike) -> Floats:
    """Count the items j that each i beats, p_ij > p_ji; equality counts half.

    For reciprocal degrees, p_ij > p_ji means p_ij > 1/2. Two items that were never
    compared count as equal.

    Parameters
    ----------
    P : array-like of shape (n, n)
        Nonnegative degrees or counts, as in `bradley_terry`.

    Returns
    -------
    worths : ndarray of shape (n,)
        Counts between 0 and n - 1; they are often equal.

    Raises
    ------
    ValueError
        As in `bradley_terry`.

    Examples
    --------
    >>> copeland([[0, 0.75, 0.5], [0.25, 0, 0.5], [0.5, 0.5, 0]]).tolist()
    [1.5, 0.5, 1.0]
    """
    degrees = check_degrees(P)
    better = degrees > degrees.T
    return (better.sum(axis=1) - better.sum(axis=0) + better.shape[0] - 1) / 2


def check_degrees(P: Any) -> Any:
    """Check degrees, and return a copy with zero diagonal, sparse if P is."""
    expected = "degrees from 0 to 1e100"
    if sparse.issparse(P):
        P = sparse.csr_array(P, dtype=np.float64)
        check_shape(P, "P", ("n", "n"), _DEGREES)
        raise_if_any(~((P.data >= 0) & (P.data <= LARGEST)), P, "P", expected)
        return P - sparse.diags_array(P.diagonal())
    array = check_array(P, "P", ("n", "n"), _DEGREES)
    raise_if_any((array < 0) | (array > LARGEST), array, "P", expected)
    return np.where(np.eye(len(array), dtype=bool), 0.0, array)


def merge_close(worths: Floats, tolerance: float) -> Floats:
    """Make neighbors in the order equal if they differ by at most the tolerance."""
    order = np.argsort(worths, kind="stable")
    ascending = worths[order]
    first = np.append(True, np.diff(ascending) > tolerance)
    result = np.empty(len(worths))
    result[order] = ascending[first][np.cumsum(first) - 1]
    return result

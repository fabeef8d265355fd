"""What comparisons can tell: who is connected with whom, and whose score no data
bounds.

References
----------
.. [Ford1957] L. R. Ford, "Solution of a ranking problem from binary comparisons",
   American Mathematical Monthly 64, 1957.
.. [AlbertAnderson1984] A. Albert, J. A. Anderson, "On the existence of maximum
   likelihood estimates in logistic regression models", Biometrika 71, 1984.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from preflearn.core.validation import (
    as_array,
    check_array,
    check_index,
    require,
    short_repr,
    warn_user,
)
from preflearn.matches import ADVANTAGE, Matches, as_outcomes, given_outcomes
from preflearn.pairs import Incidence, Pairs, as_pairs
from preflearn.solvers.smooth_losses import DENSE

# a penalty that says something of its own; a weaker one is to leave it to the data
A_PRIOR = 0.1
_MOST = 10_000_000  # items without features


class NotIdentifiedWarning(UserWarning):
    """The data leave some scores open: what a fit says of them comes from its penalty
    or its prior."""


class Diagnosis(NamedTuple):
    """What comparisons identify, as `diagnose` found it; items by their names, or by
    their row numbers."""

    # items that are connected by comparisons, the largest component first
    components: list[list[Hashable]]
    unbeaten: list[Hashable]  # who won each of his comparisons
    # whether scores of most likelihood are infinite; None without outcomes
    separable: bool | None
    message: str


def diagnose(pairs: Any, y: ArrayLike | None = None) -> Diagnosis:
    """Say what comparisons identify: groups that never meet, unbeaten items, scores
    without a bound.

    Differences of scores are identified within a component of the comparison graph.
    There the scores of most likelihood are finite if and only if no part of the items
    never loses to the rest ([Ford1957]_); with features, if no w puts all outcomes on
    their side ([AlbertAnderson1984]_). Ties count as half a win each.

    Parameters
    ----------
    pairs : Pairs, Matches, or array-like
        Of shape (m, 2, p), or of int and shape (m, 2): row numbers of items without
        features.
    y : array-like of shape (m,), optional
        +1 first better, -1 second better, 0 tie; of matches the sign counts, as of
        differences of points.

    Returns
    -------
    diagnosis : Diagnosis
        With `components`, `unbeaten`, `separable` and a `message` in words. An item
        that was never compared is a component of its own. Line-ups connect all their
        players; "advantage" is no player.

    Raises
    ------
    ValueError
        On bad pairs, or labels that do not belong to them.

    Notes
    -----
    With features, with line-ups or with an advantage, `separable` takes a linear
    program; else O(m).

    Examples
    --------
    >>> found = diagnose([[0, 1], [1, 0], [2, 3]], [1, 1, 1])
    >>> found.components, found.unbeaten, found.separable
    ([[0, 1], [2, 3]], [2], True)
    >>> diagnose([[0, 1], [1, 2], [2, 0]], [1, 1, 1]).message
    'all items are connected, and their scores are identified'
    """
    names, design, rows = _players(pairs)
    if y is not None:
        read = as_array(
            given_outcomes(y, pairs) if isinstance(pairs, Matches) else as_outcomes(y),
            "y",
        )
        require(
            read.dtype.kind != "b", y, "y", "+1, 0 and -1: of True and False, 2 * y - 1"
        )
        y = np.sign(
            check_array(read, "y", design.shape[:1], "one outcome a comparison")
        )
    return diagnosed(names, design, rows, y)


def diagnosed(names: Any, design: Any, rows: Any, y: Any) -> Diagnosis:
    """What `diagnose` says of a design (m, n) of named players, with rows of features
    if there are some."""
    seen = design.indices
    (m, n) = design.shape
    comparison = np.repeat(np.arange(m), np.diff(design.indptr))
    n_groups, group = _parts(seen, seen[design.indptr[comparison]], n, "weak")
    order = np.argsort(group, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    components = [
        [names[k] for k in part] for part in sorted(groups, key=len, reverse=True)
    ]
    if y is None:
        return Diagnosis(components, [], None, _message(components))
    outcome = np.sign(design.data) * y[comparison]
    met, won, lost = (
        np.bincount(seen[k], minlength=n)
        for k in (outcome < 2, outcome > 0, outcome < 0)
    )
    unbeaten, winless = (
        [names[k] for k in np.flatnonzero((met > 0) & (met == c))] for c in (won, lost)
    )
    if rows is None:
        good = outcome >= 0
        other = seen.reshape(-1, 2)[:, ::-1].ravel()
        separable = _parts(seen[good], other[good], n, "strong")[0] > n_groups
    else:
        separable = _separable(rows, y)
    return Diagnosis(
        components,
        unbeaten,
        separable,
        _message(components, unbeaten, winless, separable),
    )


def warn_where_open(
    owner: str, names: Any, index: Any, y: Any = None, bounded: bool = False
) -> None:
    """Warn where groups never met or, unless the fit has `bounded` them, most likely
    scores are infinite.

    Without an index of players there are features, and some w was right on all pairs.
    """
    found = Diagnosis([], [], True, _message([], separable=True))
    if index is not None:
        found = diagnosed(names, Incidence(index, len(names)).matrix(), None, y)
    # who met nobody has a score of 0
    groups = [part for part in found.components if len(part) > 1]
    if len(groups) > 1 or (found.separable and not bounded):
        warn_user(f"{owner}: {found.message}", NotIdentifiedWarning)


def indicated(items: Any) -> NDArray[np.int64] | None:
    """The columns of the ones, where each row of items is an indicator: items without
    features; else None."""
    if not sparse.issparse(items) and np.count_nonzero(items) != len(items):
        return None  # which is quick to see
    items = sparse.csr_array(items)
    one = (
        items.nnz == items.shape[0]
        and (np.diff(items.indptr) == 1).all()
        and (items.data == 1).all()
    )
    return items.indices.astype(np.int64) if one else None


def without_features(index: ArrayLike, n_items: int | None = None) -> Pairs:
    """Pairs of items that have no features, from their row numbers: the items are
    sparse indicators."""
    n = int(np.max(index, initial=0)) + 1 if n_items is None else n_items
    require(
        n <= _MOST,
        n - 1,
        "the largest row number",
        f"below {_MOST:,}: number the items from 0 on",
    )
    items: Any = sparse.eye_array(n, format="csr")
    return Pairs._trusted(items, check_index(index, n))


def as_compared(pairs: Pairs | ArrayLike, n_items: int | None = None) -> Pairs:
    """Pairs as `as_pairs` takes them, or an (m, 2) array of row numbers of items
    without features."""
    if isinstance(pairs, Pairs) or sparse.issparse(pairs):
        return as_pairs(pairs, keep=True)
    array = as_array(pairs, "pairs")
    if array.ndim == 2 and array.dtype.kind == "O":  # as nullable integers become
        array = pd.DataFrame(array).infer_objects().to_numpy()
    whole = array.ndim == 2 and array.dtype.kind in "iu"
    return without_features(array, n_items) if whole else as_pairs(array, keep=True)


def _players(pairs: Any) -> tuple[Any, Any, Any]:
    """Names, a design of players, and rows of features where there is more to learn
    than their scores."""
    if not isinstance(pairs, Matches):
        pairs = as_compared(pairs)
        ids, (n, p), B = indicated(pairs.items), pairs.items.shape, pairs.B.matrix()
        if ids is None:
            return range(n), B, sparse.csr_array(B @ pairs.items)
        return range(p), Incidence(ids[pairs.index], p).matrix(), None
    names = pairs.features
    design = pairs.design
    chosen = [
        k for k, name in enumerate(names) if isinstance(name, str) and name != ADVANTAGE
    ]
    if 0 < len(chosen) < len(names):
        return [names[k] for k in chosen], design[:, chosen], design
    two = (np.diff(design.indptr) == 2).all() and (abs(design.data) == 1).all()
    return names, design, None if two and not design.sum(axis=1).any() else design


def _parts(
    first: NDArray, second: NDArray, n: int, connection: str
) -> tuple[int, NDArray]:
    graph = sparse.csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
    return connected_components(graph, connection=connection)


def _separable(rows: Any, y: NDArray) -> bool:
    """Whether some w has y (row·w) >= 0 in all preferences, > 0 in one, and row·w = 0
    in all ties.

    It maximises the sum of slacks up to 1: as w may be scaled, the maximum is 0 or at
    least 1.
    """
    ahead = sparse.diags_array(y[y != 0].astype(np.float64)) @ rows[y != 0]
    ties = rows[y == 0]
    n_ties = ties.shape[0]
    (m, p) = ahead.shape
    slack = sparse.hstack([-ahead, sparse.eye_array(m)])
    none = sparse.csr_array((n_ties, m))
    costs = np.repeat([0.0, -1.0], [p, m])
    bounds = [(None, None)] * p + [(0, 1)] * m
    best = linprog(
        costs, slack, np.zeros(m), sparse.hstack([ties, none]), np.zeros(n_ties), bounds
    )
    return bool(best.fun < -0.5)


def _message(
    components: list, unbeaten: Any = (), winless: Any = (), separable: bool = False
) -> str:
    said = []
    alone = [part[0] for part in components if len(part) == 1]
    if alone:
        said.append(
            f"{short_repr(alone)} met nobody: their scores are those of the prior"
        )
    if len(components) - len(alone) > 1:
        groups = ", ".join(short_repr(part) for part in components[:3] if len(part) > 1)
        said.append(
            f"{len(components) - len(alone)} groups never meet ({groups}): differences of scores between "
            "them are not identified, come from the prior or the penalty, and have a larger std than that of "
            "DynamicComparisons, whose scores are independent: compare within a group, or add comparisons"
        )
    if separable:
        kinds = (unbeaten, "lost or tied"), (winless, "won or tied")
        named = " and ".join(
            f"{short_repr(names)} never {what}" for names, what in kinds if names
        )
        said.append(
            (
                named
                or "a part of the items never loses to the rest, or some w is right on all pairs"
            )
            + ": the most likely scores are infinite, and a fit's are as large as its penalty or prior "
            "allows: "
            + "Davidson(bias_reduced=True) has finite ones, or "
            * (sum(map(len, components)) <= DENSE)
            + "choose alpha by validation"
        )
    return "; ".join(said) or "all items are connected, and their scores are identified"

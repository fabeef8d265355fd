"""Diagnosis of what comparisons identify: connected groups and finite scores.

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
from preflearn.matches import (
    Matches,
    as_outcomes,
    given_outcomes,
    is_player,
    two_players,
)
from preflearn.pairs import Incidence, Pairs, as_pairs
from preflearn.solvers.smooth_losses import DENSE

# Fits with a weaker penalty warn if the data alone do not identify the scores.
INFORMATIVE_PENALTY = 0.1
_MAX_ITEMS = 10_000_000  # without features


class NotIdentifiedWarning(UserWarning):
    """Warn that some scores depend on the penalty or prior, not on the data."""


class Diagnosis(NamedTuple):
    """Result of `diagnose`; items are given by name or by row number."""

    # items that are connected by comparisons, the largest component first
    components: list[list[Hashable]]
    unbeaten: list[Hashable]  # items that won all their comparisons
    # whether maximum-likelihood scores are infinite; None without outcomes
    separable: bool | None
    message: str
    # whether scores are infinite only in models with a parameter for ties, such as
    # `Davidson`: the scores and this parameter grow together; None without outcomes
    ties_unbounded: bool | None = None


def diagnose(pairs: Any, y: ArrayLike | None = None) -> Diagnosis:
    """Find unconnected groups, unbeaten items, and infinite scores.

    Score differences are identified within a connected component of the comparison
    graph. Maximum-likelihood scores are infinite if and only if some of the items of a
    component never lose to its other items ([Ford1957]_). With features, they are
    infinite if and only if some w agrees with all outcomes ([AlbertAnderson1984]_).
    Here a tie counts as half a win for each item.

    Models with a tie parameter (`Davidson`, `OrdinalComparison`) have a second
    condition. Their scores are also infinite if there are scores with two properties.
    First, the items of each preference are at least one unit apart in the right order.
    Second, the items of each tie are at most one unit apart. These scores and the tie
    parameter then grow without bound. Without features, such scores exist if and only
    if there is no cycle of comparisons in which all preferences have the direction of
    the cycle and outnumber the ties.

    Parameters
    ----------
    pairs : Pairs, Matches, or array-like
        Comparisons: an array of shape (m, 2, p), or integers of shape (m, 2), the row
        numbers of items without features.
    y : array-like of shape (m,), optional
        Outcomes: +1 first better, -1 second better, 0 tie. For matches only the sign
        counts, so that point differences can be passed.

    Returns
    -------
    diagnosis : Diagnosis
        Named tuple of `components`, `unbeaten`, `separable`, a `message` in words, and
        `ties_unbounded` (whether scores are infinite only in models with a parameter
        for ties). An item that was never compared forms a component by itself. A
        line-up connects all its players; "advantage" does not count as a player.

    Raises
    ------
    ValueError
        If the pairs are not valid, or the labels do not fit them.

    Notes
    -----
    With features, line-ups, or an advantage, `separable` is computed by a linear
    program; otherwise it takes O(m) operations. `ties_unbounded` is computed by a
    linear program if there are ties and no cycle of wins. This takes half a second for
    2,000 items and 12,000 comparisons, and half a minute for ten times as many.

    Examples
    --------
    >>> diagnosis = diagnose([[0, 1], [1, 0], [2, 3]], [1, 1, 1])
    >>> diagnosis.components, diagnosis.unbeaten, diagnosis.separable
    ([[0, 1], [2, 3]], [2], True)
    >>> diagnose([[0, 1], [1, 2], [2, 0]], [1, 1, 1]).message
    'all items are connected, and their scores are identified'
    >>> diagnose([[0, 1], [1, 2], [2, 0]], [1, 0, 0]).ties_unbounded
    True
    """
    names, design, rows = _players(pairs)
    if y is None:
        return diagnose_design(names, design, rows)
    if isinstance(pairs, Matches):
        outcomes = as_array(given_outcomes(y, pairs), "y")
    else:
        outcomes = as_array(as_outcomes(y), "y")
    expected = "+1, 0 and -1; for True and False pass 2 * np.asarray(y) - 1"
    require(outcomes.dtype.kind != "b", y, "y", expected)
    outcomes = check_array(
        outcomes, "y", design.shape[:1], "one outcome per comparison"
    )
    return diagnose_design(names, design, rows, np.sign(outcomes))


def diagnose_design(
    names: Any,
    design: Any,
    rows: Any,
    y: Any = None,
    remedy: str | None = None,
    ties_unbounded: bool | None = None,
) -> Diagnosis:
    """Diagnose a design matrix (m, n) of named players.

    `rows` are feature differences of the comparisons, or None.

    The message ends with the `remedy` for infinite scores; None selects the remedy for
    `Davidson`. A fitted model knows from its scores whether ties are unbounded; if
    None, a linear program decides.
    """
    players = design.indices
    (m, n) = design.shape
    comparison = np.repeat(np.arange(m), np.diff(design.indptr))
    first_players = players[design.indptr[comparison]]
    n_groups, group = _connected(players, first_players, n, "weak")
    order = np.argsort(group, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    components = [
        [names[k] for k in part] for part in sorted(groups, key=len, reverse=True)
    ]
    if y is None:
        return Diagnosis(components, [], None, _message(components))
    outcome = np.sign(design.data) * y[comparison]
    n_met = np.bincount(players, minlength=n)
    n_won = np.bincount(players[outcome > 0], minlength=n)
    n_lost = np.bincount(players[outcome < 0], minlength=n)
    unbeaten = [names[k] for k in np.flatnonzero((n_met > 0) & (n_met == n_won))]
    winless = [names[k] for k in np.flatnonzero((n_met > 0) & (n_met == n_lost))]
    if rows is None:
        # an edge from each player to all players that they beat or tied with
        not_lost = outcome >= 0
        opponent = players.reshape(-1, 2)[:, ::-1].ravel()
        strong = _connected(players[not_lost], opponent[not_lost], n, "strong")
        separable = strong[0] > n_groups
    else:
        separable = _separable(rows, y)
    if separable:
        ties_unbounded = False
    elif ties_unbounded is None:
        if rows is None:
            won = (players[outcome > 0], opponent[outcome > 0])
            ties_unbounded = _ties_unbounded(design, y, won)
        else:
            ties_unbounded = _ties_unbounded(rows, y)
    message = _message(components, unbeaten, winless, separable, remedy, ties_unbounded)
    return Diagnosis(components, unbeaten, separable, message, ties_unbounded)


def warn_if_not_identified(
    model: str,
    names: Any,
    index: Any,
    y: Any = None,
    bounded: bool = False,
    remedy: str | None = None,
    ties_unbounded: bool = False,
) -> None:
    """Warn if groups never met, or if scores are infinite and not `bounded`.

    Without an index of players the items have features, and the caller has found that
    some w is right on all pairs. The warning names the remedy.
    """
    if index is None:
        message = _message(
            [], separable=not ties_unbounded, ties_unbounded=ties_unbounded
        )
        diagnosis = Diagnosis([], [], not ties_unbounded, message, ties_unbounded)
    else:
        design = Incidence(index, len(names)).matrix()
        diagnosis = diagnose_design(names, design, None, y, remedy, ties_unbounded)
    # an item that was never compared has score 0 and needs no warning
    groups = [part for part in diagnosis.components if len(part) > 1]
    infinite = diagnosis.separable or diagnosis.ties_unbounded
    if len(groups) > 1 or (infinite and not bounded):
        warn_user(f"{model}: {diagnosis.message}", NotIdentifiedWarning)


def indicator_columns(items: Any) -> NDArray[np.int64] | None:
    """Return the column of the 1 in each row if all rows are one-hot, else None."""
    items = sparse.csr_array(items)
    if (np.diff(items.indptr) != 1).any() or (items.data != 1).any():
        return None
    return items.indices.astype(np.int64)


def without_features(index: ArrayLike, n_items: int | None = None) -> Pairs:
    """Make pairs of items without features, as one-hot rows, from row numbers."""
    n = n_items
    if n is None:
        n = int(np.max(index, initial=0)) + 1
    expected = f"a number below {_MAX_ITEMS:,}: number the items 0, 1, 2, ..."
    require(n <= _MAX_ITEMS, n - 1, "the largest row number", expected)
    items: Any = sparse.eye_array(n, format="csr")
    return Pairs._trusted(items, check_index(index, n, "pairs"))


def as_compared(pairs: Pairs | ArrayLike, n_items: int | None = None) -> Pairs:
    """Return Pairs from what `as_pairs` accepts, or from (m, 2) row numbers."""
    if isinstance(pairs, Pairs) or sparse.issparse(pairs):
        return as_pairs(pairs, keep=True)
    array = as_array(pairs, "pairs")
    # pandas converts nullable integers to objects
    if array.ndim == 2 and array.dtype.kind == "O":
        array = pd.DataFrame(array).infer_objects().to_numpy()
    if array.ndim == 2 and array.dtype.kind in "iu":
        return without_features(array, n_items)
    if array.ndim == 2 and array.size and array.dtype.kind in "OSU":
        expected = (
            "row numbers of items; run codes, names = pandas.factorize(np.ravel(pairs)) "
            "and pass codes.reshape(-1, 2)"
        )
        require(False, array[0].tolist(), "pairs[0]", expected)
    return as_pairs(array, keep=True)


def _players(pairs: Any) -> tuple[Any, Any, Any]:
    """Return the players' names, their design matrix, and feature rows or None."""
    if not isinstance(pairs, Matches):
        pairs = as_compared(pairs)
        n, p = pairs.items.shape
        ids = indicator_columns(pairs.items)
        if ids is None:
            B = pairs.B.matrix()
            return range(n), B, sparse.csr_array(B @ pairs.items)
        return range(p), Incidence(ids[pairs.index], p).matrix(), None
    names = pairs.features
    design = pairs.design
    chosen = [k for k, name in enumerate(names) if is_player(name)]
    if 0 < len(chosen) < len(names):
        return [names[k] for k in chosen], design[:, chosen], design
    all_named = np.ones(len(names), dtype=bool)
    _, line_up = two_players(design.indptr, design.indices, design.data, all_named)
    if line_up >= 0:
        return names, design, design
    return names, design, None


def _connected(
    first: NDArray, second: NDArray, n: int, connection: str
) -> tuple[int, NDArray]:
    """Return the number of connected components, and the component of each item."""
    graph = sparse.csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
    return connected_components(graph, connection=connection)


def _separable(rows: Any, y: NDArray) -> bool:
    """Return whether some w agrees with all outcomes.

    Such a w has y (row·w) >= 0 for all preferences, > 0 for one of them, and row·w = 0
    for all ties.

    The linear program maximizes the sum of slacks, each limited to 1. Since w may be
    scaled, the maximum is either 0 or at least 1.
    """
    preferences = sparse.diags_array(y[y != 0].astype(np.float64)) @ rows[y != 0]
    ties = rows[y == 0]
    n_ties = ties.shape[0]
    (m, p) = preferences.shape
    best = linprog(
        np.repeat([0.0, -1.0], [p, m]),
        A_ub=sparse.hstack([-preferences, sparse.eye_array(m)]),
        b_ub=np.zeros(m),
        A_eq=sparse.hstack([ties, sparse.csr_array((n_ties, m))]),
        b_eq=np.zeros(n_ties),
        bounds=[(None, None)] * p + [(0, 1)] * m,
    )
    return bool(best.fun < -0.5)


def _ties_unbounded(
    rows: Any, y: NDArray, won: tuple[NDArray, NDArray] | None = None
) -> bool:
    """Return whether scores and the parameter for ties can grow together.

    This is so if some w has y (row·w) >= 1 for all preferences and abs(row·w) <= 1 for
    all ties.

    In the direction (w, 1/2) of weights and log(nu), no likelihood term of Davidson's
    model then decreases; the same holds for an ordinal model in the direction (w, 1). A
    cycle of wins rules this out without a linear program: `won` has the players that
    won and their opponents.
    """
    ties = rows[y == 0]
    if ties.shape[0] in (0, len(y)):
        return False
    if won is not None:
        n = rows.shape[1]
        if _connected(*won, n, "strong")[0] < n:
            return False
    preferences: Any = sparse.diags_array(y[y != 0].astype(np.float64)) @ rows[y != 0]
    constraints = sparse.vstack([-preferences, ties, -ties])
    ends = np.repeat([-1.0, 1.0], [preferences.shape[0], 2 * ties.shape[0]])
    p = rows.shape[1]
    found = linprog(np.zeros(p), A_ub=constraints, b_ub=ends, bounds=[(None, None)] * p)
    return bool(found.success)


def _message(
    components: list,
    unbeaten: Any = (),
    winless: Any = (),
    separable: bool = False,
    remedy: str | None = None,
    ties_unbounded: bool = False,
) -> str:
    findings = []
    alone = [part[0] for part in components if len(part) == 1]
    if alone:
        findings.append(
            f"there are no comparisons of {short_repr(alone)}, so their scores are those "
            "of the prior"
        )
    n_groups = len(components) - len(alone)
    if n_groups > 1:
        groups = ", ".join(short_repr(part) for part in components[:3] if len(part) > 1)
        findings.append(
            f"{n_groups} groups never meet ({groups}), so score differences between them "
            "are not identified and come from the prior or the penalty: compare items "
            "within a group only, or add comparisons between groups"
        )
    if separable:
        kinds = ((unbeaten, "lost or tied"), (winless, "won or tied"))
        named = [f"{short_repr(names)} never {what}" for names, what in kinds if names]
        cause = (
            "some items never lose to the others, or a linear function of the features "
            "is right on all pairs"
        )
        if named:
            cause = " and ".join(named)
        findings.append(
            f"{cause}, so the maximum-likelihood scores are infinite, and the size of "
            "fitted scores depends on the penalty or prior alone: "
            f"{remedy or _remedy(components)}"
        )
    if ties_unbounded:
        findings.append(
            "too few outcomes contradict each other to bound the parameter for ties. "
            "The maximum-likelihood scores of Davidson and OrdinalComparison are "
            "therefore infinite, and the size of fitted scores depends on the penalty "
            "alone: "
            f"{remedy or _remedy(components)}"
        )
    if not findings:
        return "all items are connected, and their scores are identified"
    return "; ".join(findings)


def _remedy(components: list) -> str:
    """Return the advice on finite scores for models of ties, to end a message."""
    remedy = "choose alpha by validation"
    if sum(map(len, components)) <= DENSE:
        return f"use Davidson(bias_reduced=True), whose scores are finite, or {remedy}"
    return remedy

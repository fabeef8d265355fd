"""Weights at any lambda, from the changes of the margin set; compiled."""

from __future__ import annotations

from preflearn.core.compilation import njit, njit_inner
from preflearn.path.margin_set import MIN_PIVOT, add_pair, remove_pair, solve


@njit
def replay_pairs(graph, margin_set, alpha, knots, changes, lam, coefs):
    """Update the weights from the first of these knots down to lambda.

    The rows of `coefs` are set to B'alpha at the knots; the caller sets the first row.
    """
    gram = margin_set.gram
    used = 0
    for piece in range(len(knots) - 1):
        while used < len(changes) and changes[used, 0] == piece:
            pair = changes[used, 1]
            weight = changes[used, 2]
            if weight < 0:
                add_pair(
                    graph,
                    graph.first,
                    graph.second,
                    margin_set,
                    pair,
                    -1.0,
                    2 * MIN_PIVOT,
                )
            else:
                remove_pair(margin_set, _position(gram.places, pair))
                _set_weight(
                    graph, alpha, coefs, piece, pair, weight * graph.bound[pair]
                )
            used += 1
        solve(gram, margin_set.moves, 0.0, graph.tau)
        fallen = knots[piece] - max(lam, knots[piece + 1])
        _copy_row(coefs, piece)
        for k in range(gram.size[0]):
            pair = gram.places[k]
            weight = min(
                max(alpha[pair] + fallen * margin_set.moves[k], 0.0), graph.bound[pair]
            )
            _set_weight(graph, alpha, coefs, piece + 1, pair, weight)
        if lam >= knots[piece + 1]:
            return


@njit_inner
def _position(ids, wanted):
    for k in range(len(ids)):
        if ids[k] == wanted:
            return k
    return -1


@njit_inner
def _set_weight(pairs, alpha, coefs, knot, pair, weight):
    """Set the weight of a pair, and update B'alpha at a knot."""
    coefs[knot, pairs.first[pair]] += weight - alpha[pair]
    coefs[knot, pairs.second[pair]] -= weight - alpha[pair]
    alpha[pair] = weight


@njit_inner
def _copy_row(coefs, knot):
    """Copy a row to the next row, by a loop, since array assignments compile slowly."""
    for j in range(coefs.shape[1]):
        coefs[knot + 1, j] = coefs[knot, j]

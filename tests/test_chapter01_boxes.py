"""The theorem boxes of chapter 01, in exact fractions where possible, and on degenerate
graphs.

The graphs are multigraphs of few items: with items without a comparison, several
components, and pairs that are compared twice.
"""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference import rank, solve
from scipy import optimize
from scipy.sparse import csgraph, csr_array

from preflearn.pairs import Incidence


@st.composite
def graphs(draw):
    n = draw(st.integers(2, 6))
    edges = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(
        lambda edge: edge[0] != edge[1]
    )
    return n, draw(st.lists(edges, min_size=1, max_size=9))


def components(n, edges):
    first, second = np.array(edges).T
    return csgraph.connected_components(
        csr_array((np.ones(len(edges)), (first, second)), (n, n)), False
    )


def incidence(n, edges):
    B = np.zeros((len(edges), n), dtype=int)
    for row, (first, second) in zip(B, edges, strict=True):
        row[first] = 1
        row[second] = -1
    return B


@pytest.mark.theorem("prop-graph-null")
@example((2, [(0, 1), (1, 0), (0, 1)]))
@example((5, [(0, 1), (2, 3)]))
@given(graphs())
def test_differences_vanish_for_constants_on_components_only(graph):
    n, edges = graph
    count, of = components(n, edges)
    B = incidence(n, edges)
    assert (Incidence(np.array(edges), n).differences(np.eye(n)) == B).all()
    assert rank(B.tolist()) == n - count
    for f in product((-1, 0, 2), repeat=n):
        constant = all(
            len({f[item] for item in np.flatnonzero(of == k)}) == 1
            for k in range(count)
        )
        assert (not (B @ f).any()) == constant


@pytest.mark.theorem("prop-graph-centred")
@example((5, [(0, 1), (2, 3)]), 3, 0)
@given(graphs(), st.integers(1, 5), st.integers(0, 2**31))
def test_a_ridge_centers_each_component(graph, ridge, seed):
    rng = np.random.default_rng(seed)
    (n, edges) = graph
    (count, of), B = components(n, edges), incidence(n, edges)
    y = rng.integers(-1, 2, len(edges))
    least_squares = solve(
        (2 * B.T @ B + ridge * np.eye(n, dtype=int)).tolist(), (2 * B.T @ y).tolist()
    )
    assert [
        sum(least_squares[item] for item in np.flatnonzero(of == k))
        for k in range(count)
    ] == [0] * count

    # values of functions for all differences from -4 to 4
    losses = rng.normal(size=(len(edges), 9))
    f = rng.integers(-2, 3, n)
    g = f - np.array([f[of == k].mean() for k in of])

    def objective(f):
        at = np.round(B @ f).astype(int) + 4
        return losses[np.arange(len(edges)), at].sum() + ridge / 2 * f @ f

    assert (
        objective(g) == pytest.approx(objective(f))
        if np.allclose(f, g)
        else objective(g) < objective(f)
    )


@pytest.mark.theorem("prop-graph-borda")
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("copies", [1, 2])
def test_least_squares_on_a_complete_graph_are_win_counts(n, copies):
    edges = list(combinations(range(n), 2)) * copies
    B = incidence(n, edges)
    rng = np.random.default_rng(n)
    for y in rng.integers(-1, 2, (30, len(edges))):
        f = [Fraction(int(wins), copies * n) for wins in B.T @ y]
        assert sum(f) == 0
        assert [
            sum(int(count) * v for count, v in zip(row, f, strict=True))
            for row in B.T @ B
        ] == (B.T @ y).tolist()


def test_least_squares_on_another_graph_are_not_win_counts():
    B = incidence(3, [(0, 1), (1, 2)])
    wins = B.T @ [1, 0]
    f = np.linalg.pinv(B.T @ B) @ wins
    assert not np.allclose(f, wins * f[0])


def overlap(u, v):
    """Return the inner product of the features of u and v, which are indicators in the
    copy for their sign."""
    if (u > 0) - (u < 0) != (v > 0) - (v < 0):
        return Fraction(0)
    return max(Fraction(0), min(u, v) + 1 - max(u, v))


@pytest.mark.theorem("prop-graph-analogy")
@pytest.mark.parametrize("q", [1, 3, 4])
def test_the_analogy_kernel_is_an_inner_product(q):
    """The features can also be vectors of zeros and ones, with cells of width 1/q and
    one copy for each sign."""
    values = [Fraction(k, q) for k in range(-q, q + 1)]

    def cells(u):
        phi = np.zeros((3, 3 * q), dtype=int)
        phi[(u > 0) - (u < 0) + 1, int(u * q) + q : int(u * q) + 2 * q] = 1
        return phi.ravel()

    features = np.array([cells(u) for u in values])
    for (i, u), (j, v) in product(enumerate(values), repeat=2):
        alike = (u > 0) - (u < 0) == (v > 0) - (v < 0)
        printed = 1 - abs(u - v) if alike else Fraction(0)
        assert overlap(u, v) == printed == Fraction(int(features[i] @ features[j]), q)


def minimizer(B, y, psi, slope, a, ridge):
    """Minimize sum psi(z) - a y z + ridge/2 f'f by BFGS, up to rounding."""

    def both(f):
        z = B @ f
        value = psi(z).sum() - a * y @ z + ridge / 2 * f @ f
        return value, B.T @ (slope(z) - a * y) + ridge * f

    found = optimize.minimize(
        both, np.zeros(B.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-11}
    )
    assert np.abs(both(found.x)[1]).max() < 1e-7
    return found.x


LOSSES = {
    "squared": (np.square, lambda z: 2 * z, 2.0),
    "Bradley-Terry": (
        lambda z: np.log(2 * np.cosh(z / 2)),
        lambda z: np.tanh(z / 2) / 2,
        0.5,
    ),
    "flat near 0": (
        lambda z: np.maximum(np.abs(z) - 1, 0) ** 2,
        lambda z: 2 * (z - np.clip(z, -1, 1)),
        1.0,
    ),
}


@pytest.mark.theorem("prop-graph-sufficient")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "edges", [[(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 2), (2, 0), (0, 1), (1, 3)]]
)
def test_fits_of_smooth_symmetric_losses_depend_on_counts_only(loss, edges):
    psi, slope, a = LOSSES[loss]
    # item 3 may have no comparison
    B = incidence(4, edges)
    found = {}
    for y in product((-1, 0, 1), repeat=len(edges)):
        f = minimizer(B, np.array(y), psi, slope, a, 0.3)
        found.setdefault(tuple(B.T @ y), []).append(f)
    assert max(map(len, found.values())) > 1
    for fs in found.values():
        np.testing.assert_allclose(fs, np.broadcast_to(fs[0], np.shape(fs)), atol=1e-6)


@pytest.mark.theorem("prop-graph-sufficient")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("copies", [1, 2])
def test_counts_rank_where_all_pairs_are_compared_equally_often(loss, copies):
    psi, slope, a = LOSSES[loss]
    edges = list(combinations(range(4), 2)) * copies
    B = incidence(4, edges)
    rng = np.random.default_rng(copies)
    for y in rng.integers(-1, 2, (20, len(edges))):
        f = minimizer(B, y, psi, slope, a, 0.3)
        wins = B.T @ y
        for j, k in product(range(4), repeat=2):
            assert (f[j] > f[k] + 1e-6) == (wins[j] > wins[k])


def test_fits_of_a_hinge_depend_on_more_than_counts():
    """Two sets of outcomes have equal counts: a cycle, and three ties. A tie has the
    loss |z|, and a preference has a hinge loss."""
    B = incidence(3, [(0, 1), (1, 2), (2, 0), (0, 1), (0, 1)])

    def best(y):
        def objective(f):
            z = B @ f
            return (
                np.where(y == 0, np.abs(z), 2 * np.maximum(0, 1 - y * z)).sum()
                + 0.05 * f @ f
            )

        grid = np.linspace(-1, 1, 41)
        return min(
            product(grid, grid),
            key=lambda p: objective(np.array([p[0], p[1], -p[0] - p[1]])),
        )

    cycle = np.array([1, 1, 1, 1, 0])
    ties = np.array([0, 0, 0, 1, 0])
    assert (B.T @ cycle == B.T @ ties).all()
    assert not np.allclose(best(cycle), best(ties), atol=0.04)

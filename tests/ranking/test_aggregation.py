import warnings

import choix
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from ranking.comparisons import degrees, reciprocal
from scipy import sparse
from scipy.sparse import csgraph
from scipy.special import expit

from preflearn.ground import NotIdentifiedWarning
from preflearn.ranking import AGGREGATES, aggregation, bradley_terry, copeland, row_sums

SEEDS = st.integers(0, 2**32 - 1)


def unmet(P, worths):
    """What the equations of the maximum leave: sum_j p_ij - (p_ij + p_ji) theta_i / (theta_i + theta_j)."""
    P = np.where(np.eye(len(P), dtype=bool), 0.0, P)
    return P.sum(axis=1) - ((P + P.T) * expit(worths[:, None] - worths)).sum(axis=1)


# ---- Bradley, Terry and Luce


@pytest.mark.parametrize("spread", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("n", [2, 5, 40, 149])
def test_the_equations_of_the_maximum_hold(n, spread):
    P = degrees(n, n, spread)
    worths = bradley_terry(P)
    np.testing.assert_allclose(unmet(P, worths), 0, atol=1e-7 * P.sum(axis=1).max())
    assert worths.mean() == pytest.approx(0, abs=1e-8)


def test_where_choix_gives_up_it_still_finds_the_maximum():
    """50 items that meet their neighbours only: the chain of choix mixes slowly; it stops at 100 rounds."""
    ahead, back = 1.0, 1e-3
    P = ahead * np.eye(50, k=1) + back * np.eye(50, k=-1)
    with np.errstate(invalid="ignore"), pytest.raises(RuntimeError, match="Did not converge"):
        choix.ilsr_pairwise_dense(P)
    np.testing.assert_allclose(-np.diff(bradley_terry(P)), np.log(ahead / back), rtol=1e-6)


def steps_of_newton(monkeypatch, P):
    solved = []
    solve = np.linalg.solve
    with monkeypatch.context() as patch:
        patch.setattr(np.linalg, "solve", lambda A, b: (solved.append(1), solve(A, b))[1])
        bradley_terry(P)
    return len(solved)


@pytest.mark.parametrize("n", [30, 240])
def test_a_total_order_takes_as_few_steps_however_long_it_is(monkeypatch, n):
    order = np.random.default_rng(n).permutation(n)
    total = np.triu(np.ones((n, n)), 1)[np.ix_(order, order)]
    chain = (np.eye(n, k=1) + 1e-6 * np.eye(n, k=-1))[np.ix_(order, order)]
    assert steps_of_newton(monkeypatch, total) < 60
    assert steps_of_newton(monkeypatch, chain) < 60


def assert_balanced(P, accuracy):
    """The equations of the k best items, summed: within them all cancels, and what is left may be tiny."""
    worths = bradley_terry(P)
    order = np.argsort(-worths)
    P, chance = P[np.ix_(order, order)] / P.max(), expit(worths[order, None] - worths[order])
    if csgraph.connected_components(P > 1e-9, connection="strong")[0] > 1:
        P = P + 1e-9
    for k in range(1, len(P)):
        assert (P * chance.T)[:k, k:].sum() == pytest.approx((P.T * chance)[:k, k:].sum(), rel=accuracy)


@pytest.mark.parametrize(
    "P",
    [
        np.triu(np.ones((60, 60)), 1),
        # degrees below 1e-9 of the largest beside larger ones, where rounding used to end it early
        np.array([[0, 6.5471e-12, 0], [1.5820e-08, 0, 1], [3.0924e-09, 1.1341e-08, 0]]),
    ],
)
def test_the_equations_hold_where_a_billionth_is_added(P):
    assert_balanced(P, 1e-6)


@given(SEEDS, st.integers(1, 12), st.sampled_from([None, 2, 4, 10]), st.floats(0, 20))
@settings(deadline=None)
def test_on_complete_reciprocal_degrees_the_order_is_that_of_row_sums(seed, n, levels, spread):
    """At the maximum the row sum of i is a sum of theta_i / (theta_i + theta_j). Degrees 0 and 1 included."""
    P = reciprocal(seed, n, levels, spread)
    worths, sums = bradley_terry(P), row_sums(P)
    clear = np.abs(sums[:, None] - sums) > 1e-6
    ahead = np.sign(np.subtract.outer(worths, worths))
    np.testing.assert_array_equal(ahead[clear], np.sign(np.subtract.outer(sums, sums))[clear])
    if levels:
        assert (ahead[~clear] == 0).all()


def test_incomplete_degrees_may_differ_from_row_sums():
    """Item 0 won much against the weakest item only; what it lost to item 1 weighs more."""
    P = np.array([[0, 0.4, 9.0], [0.6, 0, 0.9], [1.0, 0.1, 0]])
    assert row_sums(P).argmax() == 0
    assert bradley_terry(P).argmax() == 1


@given(SEEDS, st.integers(2, 7), st.floats(0.05, 0.6))
@settings(deadline=None)
def test_where_no_maximum_exists_chains_of_preferences_decide(seed, n, density):
    rng = np.random.default_rng(seed)
    P = rng.uniform(0.2, 1, (n, n)) * (rng.random((n, n)) < density)
    np.fill_diagonal(P, 0)
    worths = bradley_terry(P)
    assert np.isfinite(worths).all()
    reach = np.isfinite(csgraph.shortest_path(P, unweighted=True))
    i, j = np.nonzero(reach & ~reach.T)
    assert (worths[i] > worths[j]).all()


@given(SEEDS, st.integers(2, 9), st.floats(0.05, 1), st.sampled_from([0.0, -4.0, -8.0, -12.0]))
@example(964879251, 8, 0.1875, -8.0)  # steps of one length went to and fro
@settings(deadline=None, max_examples=100)
def test_degrees_of_all_sizes_and_a_billionth_where_no_maximum_exists(seed, n, density, smallest):
    rng = np.random.default_rng(seed)
    P = 10.0 ** rng.uniform(smallest, 0, (n, n)) * (rng.random((n, n)) < density)
    np.fill_diagonal(P, 0)
    assume(P.any())
    assert_balanced(P, 1e-4)


@pytest.mark.parametrize(
    ("P", "expected"),
    [
        (np.zeros((4, 4)), [1, 1, 1, 1]),
        (np.eye(4), [1, 1, 1, 1]),
        ([[0.3]], [1]),
        (np.triu(np.ones((5, 5)), 1), [1, 2, 3, 4, 5]),
        (np.roll(np.eye(5), 1, axis=1), [1, 1, 1, 1, 1]),  # a cycle
        (np.kron(np.eye(2), [[0, 1], [0, 0]]), [1, 3, 1, 3]),  # two pairs that never met
        ([[0, 1e-300], [0, 0]], [1, 2]),
        ([[0, 1e100], [1, 0]], [1, 2]),
    ],
)
def test_degenerate_degrees(P, expected):
    worths = bradley_terry(P)
    assert np.isfinite(worths).all()
    assert [1 + int((worths > w).sum()) for w in worths] == expected


def test_chains_of_close_neighbours_become_equal():
    """As it is documented: the ends of the chain are 9e-7 apart."""
    worths = 0.9e-8 * np.arange(100)
    assert len(set(bradley_terry(expit(worths[:, None] - worths)))) == 1
    assert len(set(bradley_terry(expit(5 * (worths[:, None] - worths))))) == 100


def matches(n, m, seed=0):
    """Counts of wins of n players in m matches, sparse."""
    rng = np.random.default_rng(seed)
    worths = rng.normal(size=n)
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    won = rng.random(m) < expit(worths[first] - worths[second])
    index = np.where(won, (first, second), (second, first))
    return sparse.csr_array((np.ones(m), index), shape=(n, n))


@pytest.mark.parametrize("n", [40, 400])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_array, sparse.csc_matrix, np.asarray])
def test_sparse_counts_are_those_of_the_dense_matrix(monkeypatch, n, kind):
    P = matches(n, 30 * n)
    monkeypatch.setattr(aggregation, "_FEW", 10**6)  # by the n by n matrix
    expected = bradley_terry(P.toarray())
    monkeypatch.undo()
    given = P.toarray() if kind is np.asarray else P
    np.testing.assert_allclose(bradley_terry(kind(given)), expected, atol=1e-8)
    np.testing.assert_allclose(unmet(P.toarray(), expected), 0, atol=1e-9)
    for count in (row_sums, copeland):
        np.testing.assert_array_equal(count(kind(given)), count(P.toarray()))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("few", [0, 10**6])
def test_long_chains_and_items_without_a_win_by_both_ways(monkeypatch, form, few):
    """Conjugate gradients give up on the chain, and are not asked where there is no maximum."""
    monkeypatch.setattr(aggregation, "_FEW", few)
    monkeypatch.setattr(aggregation, "_PRODUCTS", 20)
    chain = np.eye(90, k=1) + 0.1 * np.eye(90, k=-1)
    np.testing.assert_allclose(-np.diff(bradley_terry(form(chain))), np.log(10), rtol=1e-7)
    P = matches(30, 200).toarray()
    P[3] = 0
    worths = bradley_terry(form(P))
    assert worths.argmin() == 3
    assert_balanced(P, 1e-6)


def test_bad_sparse_degrees_are_named(monkeypatch):
    for data, message in ((-0.1, r"P\[0, 1\] is -0.1"), (np.nan, "is nan"), (1e101, r"is 1e\+101")):
        with pytest.raises(ValueError, match=message):
            bradley_terry(sparse.csr_array(([data], ([0], [1])), shape=(2, 2)))
    with pytest.raises(ValueError, match=r"P has shape \(2, 3\); expected \(n, n\)"):
        bradley_terry(sparse.csr_array((2, 3)))
    assert bradley_terry(sparse.csr_array((3, 3))).tolist() == [0, 0, 0]
    monkeypatch.setattr(aggregation, "_WHOLE", 4)
    with pytest.raises(ValueError, match="the number of items is 5; expected at most 4 where no maximum"):
        bradley_terry(sparse.csr_array(np.triu(np.ones((5, 5)), 1)))


# ---- Counts


@given(SEEDS, st.integers(1, 9))
def test_row_sums_and_copeland_by_definition(seed, n):
    P = reciprocal(seed, n, levels=4) * 3
    sums = [sum(P[i, j] for j in range(n) if j != i) for i in range(n)]
    wins = [
        sum(P[i, j] > P[j, i] for j in range(n)) + sum(P[i, j] == P[j, i] for j in range(n) if j != i) / 2
        for i in range(n)
    ]
    np.testing.assert_allclose(row_sums(P), sums, rtol=1e-12)
    np.testing.assert_allclose(copeland(P), wins, rtol=1e-15)


def test_rounding_orders_nothing():
    """0.1 + 0.2 is not 0.3 in floating point."""
    P = np.zeros((4, 4))
    P[0, 1], P[0, 2], P[1, 2] = 0.1, 0.2, 0.3
    assert P[0].sum() != P[1].sum()
    assert row_sums(P)[0] == row_sums(P)[1]
    cycle = 0.7 * np.roll(np.eye(9), 1, axis=1) + 0.3 * np.roll(np.eye(9), -1, axis=1)
    assert len(set(bradley_terry(cycle))) == 1


# ---- All


@pytest.mark.parametrize("name", AGGREGATES)
@given(seed=SEEDS, n=st.integers(1, 9))
@settings(deadline=None, max_examples=40)
def test_names_scale_and_diagonal_do_not_matter(name, seed, n):
    aggregate = AGGREGATES[name]
    P = degrees(seed, n)
    rng = np.random.default_rng(seed)
    worths, order = aggregate(P), rng.permutation(n)
    np.testing.assert_allclose(aggregate(P[np.ix_(order, order)]), worths[order], atol=1e-7)
    scaled = aggregate(P * 1000 + np.diag(rng.uniform(0, 9, n)))
    np.testing.assert_allclose(scaled / (1000 if name == "row sums" else 1), worths, atol=1e-7)


@pytest.mark.parametrize("name", AGGREGATES)
@given(seed=SEEDS, n=st.integers(2, 8))
@settings(deadline=None, max_examples=40)
def test_turning_all_preferences_around_turns_the_order(name, seed, n):
    P = reciprocal(seed, n)
    forth, back = AGGREGATES[name](P), AGGREGATES[name](P.T)
    np.testing.assert_allclose(forth - forth.mean(), back.mean() - back, atol=1e-7)


@pytest.mark.parametrize("name", AGGREGATES)
@pytest.mark.parametrize(
    ("P", "message"),
    [
        ([[0, 1, 1], [0, 0, 1]], r"P has shape \(2, 3\); expected \(n, n\)"),
        (np.empty((0, 0)), "P is empty"),
        ([[0, -0.1], [1, 0]], r"P\[0, 1\] is -0.1; expected degrees from 0 to 1e100"),
        ([[0, np.nan], [1, 0]], r"P\[0, 1\] is nan; expected finite numbers"),
    ],
)
def test_bad_degrees_are_named(name, P, message):
    with pytest.raises(ValueError, match=message):
        AGGREGATES[name](P)


def ring(n, neighbours=3, games=20.0):
    """Sparse counts of players in a ring, whose strengths are a slow walk."""
    rng = np.random.default_rng(0)
    strength = np.cumsum(rng.normal(0, 0.1, n))
    i, k = np.repeat(np.arange(n), neighbours), np.tile(np.arange(1, neighbours + 1), n)
    j = (i + k) % n
    won = rng.binomial(int(games) - 2, expit(strength[i] - strength[j])) + 1.0
    return sparse.coo_array((np.r_[won, games - won], (np.r_[i, j], np.r_[j, i])), (n, n)).tocsr()


def test_a_long_ring_is_factored_and_never_filled(monkeypatch):
    """Gradients do not converge there; a filled matrix would take n x n."""
    P = ring(1500)
    monkeypatch.setattr(aggregation, "_PRODUCTS", 5)
    filled = aggregation._maximum(P.toarray() / P.max(), False)
    monkeypatch.setattr(np.linalg, "solve", None)
    found = bradley_terry(P)
    np.testing.assert_allclose(found, filled, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1.0])
def test_sparse_counts_of_any_size_and_kind(scale):
    P = np.array([[0, 3, 1], [1, 0, 2], [2, 1, 0]])
    expected = bradley_terry(P)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(bradley_terry(sparse.csr_array(P * scale)), expected, atol=1e-6)
        np.testing.assert_allclose(bradley_terry(sparse.csr_array(P.astype(np.int8))), expected, atol=1e-9)
        assert np.isfinite(bradley_terry(sparse.csr_array(P > 1))).all()


def test_players_at_random_are_never_factored(monkeypatch):
    """The last steps are rounding, whose sum is not 0: no gradients reach it, and factors would be full."""
    rng, n, m = np.random.default_rng(0), 4000, 200_000
    first = rng.integers(0, n, m)
    met = first, (first + rng.integers(1, n, m)) % n
    monkeypatch.setattr(aggregation, "spsolve", None)
    assert np.ptp(bradley_terry(sparse.coo_array((np.ones(m), met), (n, n)))) < 10


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_groups_that_never_meet_are_told_of(form):
    apart = np.array([[0, 2, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0.0]])
    with pytest.warns(NotIdentifiedWarning, match=r"2 groups never meet \(\[0, 1\], \[2, 3\]\)"):
        bradley_terry(form(apart))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bradley_terry(form(np.triu(np.ones((4, 4)), 1)))  # a total order
        bradley_terry(form(apart[:3, :3]))  # one was never compared

"""Rank aggregation compared with definitions, optimality conditions, and dense
equations."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from property_examples import examples
from ranking.comparisons import degrees, reciprocal
from scipy import sparse
from scipy.sparse import csgraph
from scipy.special import expit

from preflearn.core import NotIdentifiedWarning
from preflearn.ranking import Davidson, aggregation, bradley_terry, copeland, row_sums

SEEDS = st.integers(0, 2**32 - 1)


def unmet(P, worths):
    """Return the residuals sum_j p_ij - (p_ij + p_ji) theta_i / (theta_i + theta_j),
    which are zero at the maximum."""
    P = np.where(np.eye(len(P), dtype=bool), 0.0, P)
    return P.sum(axis=1) - ((P + P.T) * expit(worths[:, None] - worths)).sum(axis=1)


# ---- Bradley–Terry


def newton_steps(monkeypatch, P):
    solved = []
    solve = np.linalg.solve
    with monkeypatch.context() as patch:
        patch.setattr(
            np.linalg, "solve", lambda A, b: (solved.append(1), solve(A, b))[1]
        )
        bradley_terry(P)
    return len(solved)


@pytest.mark.parametrize("n", [30, 240])
def test_the_number_of_newton_steps_does_not_grow_with_a_total_order(monkeypatch, n):
    order = np.random.default_rng(n).permutation(n)
    total = np.triu(np.ones((n, n)), 1)[np.ix_(order, order)]
    chain = (np.eye(n, k=1) + 1e-6 * np.eye(n, k=-1))[np.ix_(order, order)]
    assert newton_steps(monkeypatch, total) < 60
    assert newton_steps(monkeypatch, chain) < 60


def assert_balanced(P, accuracy):
    """Check the residuals summed over the k best items. Comparisons among these items
    cancel exactly."""
    worths = bradley_terry(P)
    order = np.argsort(-worths)
    P = P[np.ix_(order, order)] / P.max()
    chance = expit(worths[order, None] - worths[order])
    if csgraph.connected_components(P > 1e-9, connection="strong")[0] > 1:
        P = P + 1e-9
    for k in range(1, len(P)):
        assert (P * chance.T)[:k, k:].sum() == pytest.approx(
            (P.T * chance)[:k, k:].sum(), rel=accuracy
        )


@pytest.mark.parametrize(
    "P",
    [
        np.triu(np.ones((60, 60)), 1),
        # degrees below 1e-9 of the largest and larger ones, for which rounding once
        # ended the search early
        np.array([[0, 6.5471e-12, 0], [1.5820e-08, 0, 1], [3.0924e-09, 1.1341e-08, 0]]),
    ],
)
def test_the_equations_hold_if_a_billionth_is_added_because_no_maximum_exists(P):
    assert_balanced(P, 1e-6)


@given(SEEDS, st.integers(1, 12), st.sampled_from([None, 2, 10]), st.floats(0, 20))
def test_reciprocal_degrees_are_ordered_as_their_row_sums(seed, n, levels, spread):
    """At the maximum, the row sum of i is a sum of theta_i / (theta_i + theta_j).

    Some degrees are 0 and 1.
    """
    P = reciprocal(seed, n, levels, spread)
    worths = bradley_terry(P)
    sums = row_sums(P)
    clear = np.abs(sums[:, None] - sums) > 1e-6
    ahead = np.sign(np.subtract.outer(worths, worths))
    np.testing.assert_array_equal(
        ahead[clear], np.sign(np.subtract.outer(sums, sums))[clear]
    )
    if levels:
        assert (ahead[~clear] == 0).all()


@given(
    SEEDS,
    st.integers(2, 9),
    st.floats(0.05, 1),
    st.sampled_from([0.0, -4.0, -8.0, -12.0]),
)
@example(964879251, 8, 0.1875, -8.0)  # full steps oscillate on this matrix
@examples(100)
def test_the_equations_hold_for_degrees_of_all_sizes(seed, n, density, smallest):
    rng = np.random.default_rng(seed)
    P = 10.0 ** rng.uniform(smallest, 0, (n, n)) * (rng.random((n, n)) < density)
    np.fill_diagonal(P, 0)
    assume(P.any())
    assert_balanced(P, 1e-4)


@pytest.mark.parametrize(
    ("P", "expected"),
    [
        (np.eye(4), [1, 1, 1, 1]),
        ([[0.3]], [1]),
        (np.triu(np.ones((5, 5)), 1), [1, 2, 3, 4, 5]),
        (np.roll(np.eye(5), 1, axis=1), [1, 1, 1, 1, 1]),  # a cycle
        # two pairs of items that are not connected
        (np.kron(np.eye(2), [[0, 1], [0, 0]]), [1, 3, 1, 3]),
        ([[0, 1e-300], [0, 0]], [1, 2]),
        ([[0, 1e100], [1, 0]], [1, 2]),
    ],
)
def test_degenerate_degrees(P, expected):
    worths = bradley_terry(P)
    assert np.isfinite(worths).all()
    assert [1 + int((worths > w).sum()) for w in worths] == expected


def test_chains_of_close_neighbours_become_equal():
    """This is documented, although the ends of the chain differ by 9e-7."""
    worths = 0.9e-8 * np.arange(100)
    assert len(set(bradley_terry(expit(worths[:, None] - worths)))) == 1
    assert len(set(bradley_terry(expit(5 * (worths[:, None] - worths))))) == 100


def matches(n, m, seed=0):
    """Return sparse counts of wins of n players in m matches."""
    rng = np.random.default_rng(seed)
    worths = rng.normal(size=n)
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    won = rng.random(m) < expit(worths[first] - worths[second])
    index = np.where(won, (first, second), (second, first))
    return sparse.csr_array((np.ones(m), index), shape=(n, n))


@pytest.mark.parametrize(
    ("n", "form"),
    [
        (40, sparse.csr_array),
        (400, sparse.coo_array),
        (400, sparse.csc_matrix),
        (400, np.asarray),
    ],
)
def test_sparse_counts_have_the_worths_of_the_dense_matrix(n, form):
    P = matches(n, 30 * n)
    counts = form(P.toarray())
    worths = bradley_terry(counts)
    np.testing.assert_allclose(unmet(P.toarray(), worths), 0, atol=1e-7)
    assert worths.mean() == pytest.approx(0, abs=1e-8)
    for count in (row_sums, copeland):
        np.testing.assert_array_equal(count(counts), count(P.toarray()))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("few", [0, 10**6])
def test_dense_and_sparse_equations_solve_long_chains_and_items_without_a_win(
    monkeypatch, form, few
):
    """Conjugate gradients stop early on the chain, and are not used if no maximum
    exists."""
    monkeypatch.setattr(aggregation, "_MAX_DIRECT", few)
    monkeypatch.setattr(aggregation, "_MAX_CG_STEPS", 20)
    chain = np.eye(90, k=1) + 0.1 * np.eye(90, k=-1)
    np.testing.assert_allclose(
        -np.diff(bradley_terry(form(chain))), np.log(10), rtol=1e-7
    )
    P = matches(30, 200).toarray()
    P[3] = 0
    worths = bradley_terry(form(P))
    assert worths.argmin() == 3
    assert_balanced(P, 1e-6)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize(
    ("degrees", "words"),
    [
        ([[0, 1, 1], [0, 0, 1]], "P .*2, 3"),
        ([[0, -0.1], [1, 0]], r"P\[0, 1\] is -0.1"),
        ([[0, np.nan], [1, 0]], r"P\[0, 1\] is nan"),
        ([[0, 1e101], [1, 0]], r"P\[0, 1\] is 1e\+101"),
    ],
)
def test_bad_degrees_are_named(form, degrees, words):
    for aggregate in (bradley_terry, row_sums, copeland):
        with pytest.raises(ValueError, match=words):
            aggregate(form(degrees))


def test_few_pairs_of_different_parts_are_formed_if_no_maximum_exists(monkeypatch):
    assert bradley_terry(sparse.csr_array((3, 3))).tolist() == [0, 0, 0]
    monkeypatch.setattr(aggregation, "_MAX_DIRECT", 4)
    monkeypatch.setattr(aggregation, "_MAX_PAIRS_APART", 10)
    with pytest.raises(ValueError, match=r"parts is 20.* 10, .*Davidson"):
        bradley_terry(sparse.csr_array(np.triu(np.ones((5, 5)), 1)))


@pytest.mark.filterwarnings("ignore::preflearn.core.NotIdentifiedWarning")
@examples(30)
@given(SEEDS, st.integers(3, 12), st.floats(0.1, 0.6), st.booleans())
def test_parts_have_their_own_maximum_and_offsets_that_balance(
    seed, n, density, filled
):
    """The result is that of adding a billionth to all pairs, which has little effect
    within a part."""
    rng = np.random.default_rng(seed)
    P = rng.integers(1, 4, (n, n)) * (rng.random((n, n)) < density)
    np.fill_diagonal(P, 0)
    assume(P.any())
    expected = bradley_terry(P)
    form = np.asarray if filled else sparse.csr_array
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregation, "_MAX_DIRECT", 0)
        found = bradley_terry(form(P))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_unbeaten_player_is_named_with_a_fit_that_has_finite_scores():
    P = matches(20, 200).toarray()
    P[:, 4] = 0
    with pytest.warns(NotIdentifiedWarning, match=r"\[4\] never lost.*Davidson"):
        bradley_terry(P)
    i, j = P.nonzero()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Davidson(0.1).fit(np.column_stack([i, j]), np.ones(len(i)), P[i, j])
    assert model.coef_.argmax() == 4


# ---- Counts


@given(SEEDS, st.integers(1, 9))
def test_row_sums_and_copeland_by_definition(seed, n):
    P = reciprocal(seed, n, levels=4) * 3
    sums = [sum(P[i, j] for j in range(n) if j != i) for i in range(n)]
    wins = [
        sum(P[i, j] > P[j, i] for j in range(n))
        + sum(P[i, j] == P[j, i] for j in range(n) if j != i) / 2
        for i in range(n)
    ]
    np.testing.assert_allclose(row_sums(P), sums, rtol=1e-12)
    np.testing.assert_allclose(copeland(P), wins, rtol=1e-15)


def test_rounding_does_not_order_items():
    """0.1 + 0.2 is not 0.3 in floating point."""
    P = np.zeros((4, 4))
    P[0, 1] = 0.1
    P[0, 2] = 0.2
    P[1, 2] = 0.3
    assert row_sums(P)[0] == row_sums(P)[1]
    cycle = 0.7 * np.roll(np.eye(9), 1, axis=1) + 0.3 * np.roll(np.eye(9), -1, axis=1)
    assert len(set(bradley_terry(cycle))) == 1


# ---- All aggregates


@pytest.mark.parametrize("aggregate", [bradley_terry, row_sums, copeland])
@given(seed=SEEDS, n=st.integers(1, 9))
def test_worths_follow_the_items_turn_with_the_preferences_and_ignore_scale_and_diagonal(
    aggregate, seed, n
):
    P = reciprocal(seed, n)
    forth = aggregate(P)
    back = aggregate(P.T)
    np.testing.assert_allclose(forth - forth.mean(), back.mean() - back, atol=1e-7)
    P = degrees(seed, n)
    rng = np.random.default_rng(seed)
    worths = aggregate(P)
    order = rng.permutation(n)
    np.testing.assert_allclose(
        aggregate(P[np.ix_(order, order)]), worths[order], atol=1e-7
    )
    scaled = aggregate(P * 1000 + np.diag(rng.uniform(0, 9, n)))
    np.testing.assert_allclose(
        scaled / (1000 if aggregate is row_sums else 1), worths, atol=1e-7
    )


def ring(n, neighbours=3, games=20.0):
    """Return sparse counts of players in a ring. The strengths are a random walk."""
    rng = np.random.default_rng(0)
    strength = np.cumsum(rng.normal(0, 0.1, n))
    i = np.repeat(np.arange(n), neighbours)
    k = np.tile(np.arange(1, neighbours + 1), n)
    j = (i + k) % n
    won = rng.binomial(int(games) - 2, expit(strength[i] - strength[j])) + 1.0
    return sparse.coo_array(
        (np.r_[won, games - won], (np.r_[i, j], np.r_[j, i])), (n, n)
    ).tocsr()


def test_a_long_ring_is_solved_by_a_sparse_factorization(monkeypatch):
    """Conjugate gradients do not converge for the ring, and a dense matrix would be too
    large."""
    P = ring(1500)
    monkeypatch.setattr(aggregation, "_MAX_CG_STEPS", 5)
    with monkeypatch.context() as patch:
        patch.setattr(aggregation, "_MAX_DIRECT", 1500)
        filled = aggregation.fit_worths(P.toarray())
    monkeypatch.setattr(np.linalg, "solve", None)
    found = bradley_terry(P)
    np.testing.assert_allclose(found, filled, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1.0])
def test_sparse_counts_may_be_tiny_integer_or_boolean(scale):
    P = np.array([[0, 3, 1], [1, 0, 2], [2, 1, 0]])
    expected = bradley_terry(P)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(
            bradley_terry(sparse.csr_array(P * scale)), expected, atol=1e-6
        )
        np.testing.assert_allclose(
            bradley_terry(sparse.csr_array(P.astype(np.int8))), expected, atol=1e-9
        )
        assert np.isfinite(bradley_terry(sparse.csr_array(P > 1))).all()


def test_random_matches_need_no_factorization(monkeypatch):
    """The factors would be dense.

    The last slopes are rounding errors, and conjugate gradients cannot remove their
    mean.
    """
    rng = np.random.default_rng(0)
    n = 4000
    m = 200_000
    first = rng.integers(0, n, m)
    met = first, (first + rng.integers(1, n, m)) % n
    monkeypatch.setattr(aggregation, "spsolve", None)
    assert np.ptp(bradley_terry(sparse.coo_array((np.ones(m), met), (n, n)))) < 10


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_groups_that_never_meet_cause_a_warning(form):
    apart = np.array([[0, 2, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0.0]])
    with pytest.warns(NotIdentifiedWarning, match=r"\[0, 1\], \[2, 3\]"):
        bradley_terry(form(apart))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aggregation.fit_worths(aggregation.check_degrees(form(apart)))
    with pytest.warns(NotIdentifiedWarning, match=r"no comparisons of \[2\]"):
        bradley_terry(form([[0, 2, 0], [0, 0, 0], [0, 0, 0]]))

"""Kemeny's order is tested against all orders."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from ranking.comparisons import degrees, reciprocal
from scipy.sparse import csgraph

from preflearn.ranking import copeland, row_sums
from preflearn_book.studies.ch16_orders import kemeny

SEEDS = st.integers(0, 2**32 - 1)


def disagreement(P, order):
    """Return Kemeny's objective: the sum of p_ji over all i before j."""
    return sum(P[j, i] for k, i in enumerate(order) for j in order[k + 1 :])


@given(SEEDS, st.integers(1, 7), st.sampled_from([None, 2, 4]))
@examples(40)
def test_kemeny_is_the_best_of_all_orders(seed, n, levels):
    P = reciprocal(seed, n, levels) if seed % 2 else degrees(seed, n)
    worths = kemeny(P)
    assert sorted(worths) == list(range(1, n + 1))
    least = min(disagreement(P, order) for order in permutations(range(n)))
    assert disagreement(P, np.argsort(-worths)) == pytest.approx(least, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_search_of_long_cycles_ends_where_no_move_of_one_item_helps(seed):
    P = reciprocal(seed, 22, spread=0.1)
    # P contains a cycle of more than 16 items
    assert csgraph.connected_components(P > P.T, connection="strong")[0] < 22 - 16
    order = np.argsort(-kemeny(P)).tolist()
    value = disagreement(P, order)
    assert (
        value
        <= disagreement(P, np.argsort(-row_sums(P), kind="stable").tolist()) + 1e-12
    )
    for item in order:
        rest = [i for i in order if i != item]
        for place in range(len(order)):
            assert (
                value <= disagreement(P, [*rest[:place], item, *rest[place:]]) + 1e-12
            )


def test_an_order_by_majorities_is_found_for_many_items():
    rng = np.random.default_rng(0)
    order = rng.permutation(150)
    place = np.argsort(order)
    P = np.where(place[:, None] < place, rng.uniform(0.5, 1, (150, 150)), 0)
    P = np.where(place[:, None] > place, 1 - P.T, P)
    np.testing.assert_array_equal(np.argsort(-kemeny(P)), order)
    np.testing.assert_array_equal(np.argsort(-copeland(P)), order)

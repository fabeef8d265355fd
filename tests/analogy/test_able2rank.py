from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_rankings import better_minus_worse, rankings

from preflearn.analogy import Able2Rank


def degree(u, v):
    """Eq. 5, averaged over features; differences of the two pairs."""
    return np.mean([1 - abs(x - y) if np.sign(x) == np.sign(y) else 0.0 for x, y in zip(u, v, strict=True)])


def plain(better, c, d, k):
    """The share of votes for c, by a loop; what is equal to the k-th shares what is left."""
    both = [(degree(u, c - d), degree(u, d - c)) for u in better]
    entries = [(max(one, two), (np.sign(one - two) + 1) / 2) for one, two in both]
    k = min(k, len(entries))
    least = sorted((strength for strength, _ in entries), reverse=True)[k - 1]
    above = [vote for strength, vote in entries if strength > least]
    equal = [vote for strength, vote in entries if strength == least]
    return (sum(above) + (k - len(above)) * np.mean(equal)) / k


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 60), levels=st.sampled_from([None, 1, 2, 4]))
def test_equals_a_plain_loop(seed, k, levels):
    X, rank = rankings(seed, n=9, levels=levels)
    Q, better = rankings(seed + 1, n=5, levels=levels)[0], better_minus_worse(X, rank)
    P = Able2Rank(k).fit(X, rank).preferences(Q)
    for i, j in combinations(range(5), 2):
        assert P[i, j] == pytest.approx(plain(better, Q[i], Q[j], k), abs=1e-12)
    assert (P + P.T == 1).all()
    assert (np.diag(P) == 0.5).all()


def test_a_copied_training_set_as_second_query_doubles_the_votes():
    X, rank = rankings(3)
    Q = rankings(4, n=5)[0]
    twice = Able2Rank(10).fit(np.vstack([X, X]), np.tile(rank, 2), np.repeat(["a", "b"], len(X)))
    np.testing.assert_array_equal(twice.preferences(Q), Able2Rank(5).fit(X, rank).preferences(Q))


def test_k_by_cross_validation():
    X, rank = rankings(6, n=30)
    machine = Able2Rank("cv", random_state=1).fit(X, rank)
    assert set(machine.losses_) == {10, 15, 20}
    assert machine.k_ == min(machine.losses_, key=machine.losses_.get)
    assert max(machine.losses_.values()) < 0.25  # of 0.5 by chance
    fixed = Able2Rank(machine.k_).fit(X, rank)
    np.testing.assert_array_equal(machine.preferences(X[:8]), fixed.preferences(X[:8]))


def test_too_few_objects_to_choose_are_named_and_leave_the_machine_as_it_was():
    machine = Able2Rank(5).fit(*rankings(8))
    before = machine.preferences(rankings(9)[0])
    with pytest.raises(ValueError, match="no half of the 3 objects has pairs to train"):
        machine.set_params(k="cv").fit(*rankings(0, n=3))
    np.testing.assert_array_equal(machine.preferences(rankings(9)[0]), before)


def test_the_loss_of_k_counts_wrong_directions_in_halves_of_the_objects():
    X, rank = rankings(7, n=14)
    machine = Able2Rank("cv", random_state=np.random.default_rng(2)).fit(X, rank)
    rng, wrong = np.random.default_rng(2), {10: [], 15: [], 20: []}
    for _ in range(3):
        half = rng.permutation(14) % 2
        for part in (0, 1):
            train, valid = np.flatnonzero(half == part), np.flatnonzero(half != part)
            for k, found in wrong.items():
                P = Able2Rank(k).fit(X[train], rank[train]).preferences(X[valid])
                better = rank[valid][:, None] < rank[valid]
                found += ((P < 0.5) + (P == 0.5) / 2)[better].tolist()
    assert machine.losses_ == pytest.approx({k: np.mean(found) for k, found in wrong.items()})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "k is 0; expected a whole number of at least 1"),
        ({"k": 2.5}, "k is 2.5; expected a whole number of at least 1 or 'cv'"),
        ({"k": "all"}, "k is 'all'; expected a whole number of at least 1 or 'cv'"),
    ],
)
def test_bad_parameters_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        Able2Rank().set_params(**change).fit(*rankings(0))

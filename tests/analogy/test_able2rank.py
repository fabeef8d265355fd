"""Able2Rank compared with plain loops over pairs."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from toy_rankings import better_minus_worse, rankings

from preflearn.analogy import Able2Rank


def degree(u, v):
    """Eq. 5, averaged over features; differences of the two pairs."""
    return np.mean(
        [
            1 - abs(x - y) if np.sign(x) == np.sign(y) else 0.0
            for x, y in zip(u, v, strict=True)
        ]
    )


def plain(better, c, d, k):
    """The fraction of votes for c, by a loop; values equal to the k-th share the
    remaining votes."""
    both = [(degree(u, c - d), degree(u, d - c)) for u in better]
    entries = [(max(one, two), (np.sign(one - two) + 1) / 2) for one, two in both]
    k = min(k, len(entries))
    least = sorted((strength for strength, _ in entries), reverse=True)[k - 1]
    above = [vote for strength, vote in entries if strength > least]
    equal = [vote for strength, vote in entries if strength == least]
    return (sum(above) + (k - len(above)) * np.mean(equal)) / k


@examples(40)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 60),
    levels=st.sampled_from([None, 1, 2, 4]),
)
def test_equals_a_plain_loop(seed, k, levels):
    X, scores = rankings(seed, n=9, levels=levels)
    Q = rankings(seed + 1, n=5, levels=levels)[0]
    better = better_minus_worse(X, scores)
    P = Able2Rank(k).fit(X, scores).preferences(Q)
    for i, j in combinations(range(5), 2):
        assert P[i, j] == pytest.approx(plain(better, Q[i], Q[j], k), abs=1e-12)
    assert (P + P.T == 1).all()
    assert (np.diag(P) == 0.5).all()


def test_k_has_the_least_loss_over_halves_of_the_objects():
    X, scores = rankings(7, n=14)
    model = Able2Rank("cv", random_state=np.random.default_rng(2)).fit(X, scores)
    rng = np.random.default_rng(2)
    wrong = {10: [], 15: [], 20: []}
    for _ in range(3):
        half = rng.permutation(14) % 2
        for part in (0, 1):
            train = np.flatnonzero(half == part)
            valid = np.flatnonzero(half != part)
            for k, found in wrong.items():
                P = Able2Rank(k).fit(X[train], scores[train]).preferences(X[valid])
                better = scores[valid][:, None] > scores[valid]
                found += ((P < 0.5) + (P == 0.5) / 2)[better].tolist()
    assert model.losses_ == pytest.approx(
        {k: np.mean(found) for k, found in wrong.items()}
    )
    assert model.k_ == min(model.losses_, key=model.losses_.get)
    fixed = Able2Rank(model.k_).fit(X, scores)
    np.testing.assert_array_equal(model.preferences(X[:8]), fixed.preferences(X[:8]))


@pytest.mark.parametrize("k", [0, 2.5, "all"])
def test_a_bad_k_is_named(k):
    with pytest.raises(ValueError, match=f"k is .?{k}.*'cv'"):
        Able2Rank(k).fit(*rankings(0))


def test_too_few_objects_for_a_choice_are_named_and_leave_the_model_as_it_was():
    model = Able2Rank(5).fit(*rankings(8))
    before = model.preferences(rankings(9)[0])
    with pytest.raises(ValueError, match=r"k is 'cv'.*3 objects"):
        model.set_params(k="cv").fit(*rankings(0, n=3))
    np.testing.assert_array_equal(model.preferences(rankings(9)[0]), before)

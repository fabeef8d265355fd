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
    """Degree of analogy of eq. 5 between two differences, averaged over features."""
    return np.mean(
        [
            1 - abs(x - y) if np.sign(x) == np.sign(y) else 0.0
            for x, y in zip(u, v, strict=True)
        ]
    )


def plain(better, c, d, k):
    """Return the fraction of votes for c, computed by a loop. Values that equal the
    k-th largest one share the remaining votes."""
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


@pytest.mark.parametrize("k", [0, 2.5, "all"])
def test_a_bad_k_is_named(k):
    with pytest.raises(ValueError, match=f"k is .?{k}"):
        Able2Rank(k).fit(*rankings(0))

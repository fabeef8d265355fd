"""Operators of the incidence matrix, and rows of hinges on them, compared with dense
definitions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from small_problems import noisy_comparisons

from preflearn.svm.differences import FeatureGram


@given(
    st.integers(0, 2**31), st.integers(2, 30), st.integers(2, 20), st.integers(1, 12)
)
def test_differences_are_those_of_the_incidence_matrix(seed, m, n, r):
    """Differences of features and of their Gram matrix: products, blocks, and the
    system of the interior point."""
    pairs, _ = noisy_comparisons(seed, m, n)
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((n, r))
    weights = rng.uniform(0.1, 2, m)
    v = rng.standard_normal(m)
    D = pairs.incidence().toarray() @ L
    some = rng.permutation(m)[: m // 2 + 1]
    others = rng.permutation(m)[: m // 3 + 1]
    of_features = FeatureGram(pairs.B, L)
    for gram in (of_features, pairs.B.gram(L @ L.T)):
        np.testing.assert_allclose(gram.diagonal(), (D**2).sum(axis=1), atol=1e-10)
        np.testing.assert_allclose(gram.times(v), D @ (D.T @ v), atol=1e-9)
        np.testing.assert_allclose(
            gram.block(some, others), D[some] @ D[others].T, atol=1e-10
        )
    np.testing.assert_allclose(
        of_features.weighted_gram(weights), (D.T * weights) @ D, atol=1e-11
    )

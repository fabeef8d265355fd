"""Low-rank functions for Newton's equations, compared with dense systems."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from toy_rankings import differences

from preflearn.analogy import analogy_kernel
from preflearn.analogy.low_rank import AllFunctions, CoarseFunctions, low_rank_functions


def test_the_coarse_kernel_is_the_kernel_if_all_differences_are_knots():
    """If there are few pairs, each sign has two knots, at the ends."""
    u = [-0.75, -0.25, 0.0, 0.5, 1.0]
    U = np.column_stack([u, u[::-1], np.roll(u, 2)])
    np.testing.assert_allclose(
        _coarse_kernel(CoarseFunctions(U)), analogy_kernel(U), atol=1e-12
    )


@examples(30)
@given(
    st.integers(0, 2**31),
    st.integers(2, 60),
    st.sampled_from(["any", "coarse", "mixed"]),
)
def test_the_coarse_equations_are_solved_and_leave_a_part_of_the_kernel(seed, n, kind):
    U = differences(seed, n, 3, kind)
    coarse = CoarseFunctions(U)
    rng = np.random.default_rng(seed)
    covered = _coarse_kernel(coarse)
    assert np.linalg.eigvalsh(analogy_kernel(U) - covered).min() > -1e-8 * n
    W = 10 ** rng.uniform(-6, 2, n)
    r = rng.standard_normal(n)
    system = np.block(
        [
            [np.eye(n) + W[:, None] * covered, W[:, None]],
            [np.ones((1, n)), np.zeros((1, 1))],
        ]
    )
    expected = np.linalg.solve(system, np.append(r, 0))[:-1]
    np.testing.assert_allclose(coarse.inverse(W)(r), expected, atol=1e-8)


def _coarse_kernel(coarse):
    """Return the coarse kernel, computed from the positions of the pairs between
    knots."""
    Phi = np.zeros((len(coarse.left), len(coarse.Q)))
    rows = np.arange(len(Phi))
    for left, share in zip(coarse.left.T, coarse.share.T, strict=True):
        Phi[rows, left] += 1 - share
        Phi[rows, left + 1] += share
    return Phi[:, :-1] @ np.linalg.solve(coarse.Q[:-1, :-1], Phi[:, :-1].T)


@examples(30)
@given(st.integers(0, 2**31), st.integers(2, 40), st.booleans())
def test_the_equations_of_few_pairs_are_solved(seed, n, biased):
    U = differences(seed, n, 3, "mixed")
    K = analogy_kernel(U)
    rng = np.random.default_rng(seed)
    W = 10 ** rng.uniform(-6, 2, n)
    r = rng.standard_normal(n)
    system = np.block(
        [[np.eye(n) + W[:, None] * K, W[:, None]], [np.ones((1, n)), np.zeros((1, 1))]]
    )
    system, right = (system, np.append(r, 0)) if biased else (system[:n, :n], r)
    expected = np.linalg.solve(system, right)[:n]
    np.testing.assert_allclose(
        AllFunctions(K, biased).inverse(W)(r), expected, atol=1e-8
    )


def test_few_pairs_with_many_features_have_one_unknown_per_pair():
    U = differences(15, 60, 3000)
    assert isinstance(low_rank_functions(U), AllFunctions)
    assert isinstance(low_rank_functions(differences(15, 3000, 3)), CoarseFunctions)


def test_many_equal_differences_leave_the_coarse_equations_definite():
    U = np.random.default_rng(1).integers(-2, 3, (100_000, 5)) / 2
    solved = CoarseFunctions(U).inverse(np.full(len(U), 24960914.71))(U[:, 0])
    assert np.isfinite(solved).all()

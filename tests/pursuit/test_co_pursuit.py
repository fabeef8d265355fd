"""The linear systems of a step in several views, some of which are singular."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflearn.pursuit.co_pursuit import Systems


def least_norm(A, e):
    return Systems(A[None], np.zeros(len(A))).solution(0, e)


def test_least_norm_and_decrease_of_singular_systems():
    # two equal functions that must agree, and a constant one
    A = np.array([[2.0, -2, 0], [-2, 2, 0], [0, 0, 0]])
    e = np.array([1.0, -1, 0])
    assert least_norm(A, e) == pytest.approx(np.linalg.pinv(A) @ e)
    assert Systems(A[None], np.zeros(3)).decreases(e[None]) == pytest.approx([0.5])
    size = np.diag([1e-8, 1.0, 1e6])  # views with functions of different sizes
    found = least_norm(size @ A @ size, size @ e)
    assert A @ size @ found == pytest.approx(e)
    assert found == pytest.approx([5e-9, -0.5, 0], abs=1e-7)


@given(st.integers(0, 500), st.integers(1, 4), st.integers(1, 4))
def test_decreases_are_those_of_the_pseudo_inverse(seed, M, rank):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(7, rank, M))
    A = np.swapaxes(F, 1, 2) @ F
    e = np.einsum("krm,kr->km", F, rng.normal(size=(7, rank)))
    pinvs = np.linalg.pinv(A, rcond=1e-10, hermitian=True)
    systems = Systems(A, np.zeros(M))
    assert systems.decreases(e) == pytest.approx(
        np.einsum("ki,kij,kj->k", e, pinvs, e), rel=1e-5
    )
    for k in range(7):
        assert systems.solution(k, e[k]) == pytest.approx(
            pinvs[k] @ e[k], rel=1e-4, abs=1e-5
        )

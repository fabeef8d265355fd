"""Least squares with a penalty: by the normal equations, of all functions and of few."""

import numpy as np
import pytest
from reference import laplacian, same_query
from scipy import sparse

from preflearn.pursuit.forms import GraphForm, QueryForm
from preflearn.pursuit.ridge import GraphRidge, LinearRidge, QueryRidge, ridge

ALPHAS = np.array([0.1, 2.0, 30.0])


def problem(seed, n=12):
    rng = np.random.default_rng(seed)
    query = rng.integers(0, 3, n)
    V = rng.normal(size=(n, n))
    return V @ V.T, rng.normal(size=n), query, laplacian(same_query(query))


def test_the_two_engines_solve_one_problem():
    K, s, query, L = problem(0)
    expected = [np.linalg.solve(L @ K + alpha * np.eye(12), L @ s) for alpha in ALPHAS]
    graph = GraphForm(sparse.csr_array(same_query(query)))
    for engine in (QueryRidge(K, QueryForm(query), s), GraphRidge(K, graph, s)):
        np.testing.assert_allclose(engine.solutions(ALPHAS), expected, atol=1e-9)
        np.testing.assert_allclose(engine.solutions(ALPHAS[1:2]), expected[1:2], atol=1e-9)
        assert engine.trace == pytest.approx(np.trace(L @ K))


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_p_unknowns_of_a_kernel_of_few_features(mix):
    _, s, query, L = problem(3)
    Z, L = np.random.default_rng(4).normal(size=(12, 3)) + 1, mix * np.eye(12) + (1 - mix) * L
    if mix == 0:
        Z = np.hstack([Z, Z[:, :1]])  # and of fewer than there are columns
    K, levelled = Z @ Z.T, Z - Z.mean(axis=0) if mix == 0 else Z
    forms = QueryForm(query, mix), GraphForm(sparse.csr_array(same_query(query)), mix)
    for form in forms if mix < 1 else forms[:1]:
        engine, twin = LinearRidge(levelled, form, s), GraphRidge(K, form, s)
        found = engine.solutions(ALPHAS)
        expected = np.array([np.linalg.solve(L @ K + alpha * np.eye(12), L @ s) for alpha in ALPHAS])
        np.testing.assert_allclose(found, expected, atol=1e-9)
        np.testing.assert_allclose(engine.weights, expected @ levelled, atol=1e-9)
        assert engine.trace == pytest.approx(twin.trace)


def test_least_squares_of_least_norm():
    D, target = np.random.default_rng(1).normal(size=(9, 4)), np.random.default_rng(2).normal(size=9)
    D = np.hstack([D, D[:, :1]])
    found = ridge(D, target, np.array([0.0, 3.0]))
    np.testing.assert_allclose(found[0], np.linalg.pinv(D) @ target, atol=1e-12)
    np.testing.assert_allclose(found[1], np.linalg.solve(D.T @ D + 3 * np.eye(5), D.T @ target), atol=1e-12)

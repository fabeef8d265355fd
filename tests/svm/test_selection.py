"""The search over a grid by paths against a search by one fit for each point."""

import contextlib
from itertools import product

import numpy as np
import pytest

from preflearn.datasets import simulate_norm_pairs
from preflearn.metrics import comparison_auc
from preflearn.svm import DegenerateBiasError, SVMCompare, SVMRank
from preflearn.svm import selection as module
from preflearn.svm.selection import METHODS, select_on_grid

C_GRID, GAMMA_GRID = np.logspace(-3, 3, 5), 2.0 ** np.linspace(-5, 2, 4)


def data(share, n=40, seed=0, norm="l1"):
    rng = np.random.default_rng([seed, round(100 * share)])
    train, valid = (simulate_norm_pairs(norm, n, share, rng)[:2] for _ in range(2))
    return train, valid


def fitted(method, C, gamma, train):
    if method == "compare":
        return SVMCompare(C, gamma=gamma).fit(*train)
    return SVMRank(C, gamma=gamma, ties={"rank": "ignore", "rank2": "duplicate"}[method]).fit(*train)


def search(method, train, valid):
    """The best machines by error and by area, and how many failed."""
    machines = []
    for C, gamma in product(C_GRID, GAMMA_GRID):
        try:
            machines.append(fitted(method, C, gamma, train))
        except DegenerateBiasError:
            continue
    errors = [1 - machine.score(*valid) for machine in machines]
    areas = [comparison_auc(valid[1], machine.decision_function(valid[0])) for machine in machines]
    failed = len(C_GRID) * len(GAMMA_GRID) - len(machines)
    return machines[np.argmin(errors)], machines[np.argmax(areas)], min(errors), max(areas), failed


def same(found, machine, pairs):
    expected = machine.decision_function(pairs)
    assert (found.C, found.gamma) == (machine.C, machine.gamma)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found.decision_function(pairs), expected, atol=1e-6 * scale)
    assert found.tau_ == pytest.approx(machine.tau_, abs=1e-6 * max(scale, 1))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("method", METHODS)
def test_equals_a_search_by_single_fits(method, share):
    train, valid = data(share)
    found = select_on_grid(train, valid, C_GRID, GAMMA_GRID, [method])[method]
    by_error, by_auc, error, area, failed = search(method, train, valid)
    same(found.by_error, by_error, valid[0])
    same(found.by_auc, by_auc, valid[0])
    assert found.by_error.valid_error == pytest.approx(error)
    assert found.by_auc.valid_auc == pytest.approx(area)
    assert found.by_error.score(*valid) == pytest.approx(1 - error)
    assert found.n_degenerate == failed
    assert (failed > 0) == (method == "compare" and share == 0.2)


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_every_c_is_no_worse_than_a_fine_grid(share):
    train, valid = data(share, seed=3)
    gammas = GAMMA_GRID[1:3]
    best = select_on_grid(train, valid, C_GRID, gammas, ["compare"])["compare"].every_c
    single = SVMCompare(best.C, gamma=best.gamma).fit(*train)
    assert best.valid_error == pytest.approx(1 - single.score(*valid))
    assert best.bias_ == pytest.approx(single.bias_, abs=1e-6)
    errors = []
    for C, gamma in product(np.geomspace(1e-2, C_GRID[-1], 40), gammas):
        try:
            errors.append(1 - SVMCompare(C, gamma=gamma).fit(*train).score(*valid))
        except DegenerateBiasError:
            continue
    assert best.valid_error <= min(errors) + 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_what_a_path_does_not_reach_is_fitted(method, monkeypatch):
    train, valid = data(0.5, n=20)
    expected = select_on_grid(train, valid, C_GRID, GAMMA_GRID[:2], [method])[method]
    monkeypatch.setattr(module, "_SOUND", -1.0)  # nothing is accurate enough
    found = select_on_grid(train, valid, C_GRID, GAMMA_GRID[:2], [method])[method]
    assert (found.by_error.C, found.by_error.gamma) == (expected.by_error.C, expected.by_error.gamma)
    z, other = (one.by_error.decision_function(valid[0]) for one in (found, expected))
    np.testing.assert_allclose(z, other, atol=1e-6 * np.abs(z).max())


def test_methods_and_order_do_not_matter():
    train, valid = data(0.5, n=30)
    every = select_on_grid(train, valid, C_GRID, GAMMA_GRID)
    assert list(every) == list(METHODS)
    alone = select_on_grid(train, valid, C_GRID, GAMMA_GRID, ["rank2"])["rank2"]
    np.testing.assert_array_equal(alone.by_error.coef_, every["rank2"].by_error.coef_)
    assert every["rank"].every_c is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C_grid": [1.0, -1.0]}, r"C_grid\[1\] is -1"),
        ({"C_grid": [2.0, 1.0]}, r"C_grid\[1\] is 1"),
        ({"gamma_grid": []}, "gamma_grid is empty"),
        ({"methods": ["svm"]}, "methods is 'svm'"),
    ],
)
def test_bad_input(change, message):
    train, valid = data(0.5, n=10)
    with pytest.raises(ValueError, match=message):
        select_on_grid(train, valid, **({"C_grid": [1.0], "gamma_grid": [1.0]} | change))


def test_a_grid_without_a_ranking_function():
    train, valid = data(0.1, n=40)
    with pytest.raises(DegenerateBiasError, match="whole grid"):
        select_on_grid(train, valid, [1e-4, 1e-3], [0.5], ["compare"])


@pytest.mark.parametrize("seed", range(6))
def test_every_c_is_no_worse_than_any_fit(seed):
    """With few ties beta changes its sign along the path, also inside an interval of one loss."""
    rng = np.random.default_rng(seed)
    train, valid = (simulate_norm_pairs("l2", 40, 0.2, rng) for _ in range(2))
    grid = np.geomspace(0.01, 100, 60)
    found = select_on_grid(train[:2], valid[:2], grid[[0, -1]], [0.3], ["compare"])["compare"].every_c
    errors = []
    for C in grid:
        with contextlib.suppress(DegenerateBiasError):
            errors.append(1 - SVMCompare(C, gamma=0.3).fit(*train[:2]).score(*valid[:2]))
    assert found.bias_ < 0
    assert found.valid_error <= min(errors) + 1e-12

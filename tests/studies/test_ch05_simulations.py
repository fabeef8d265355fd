"""The search over a grid by paths against one fit for each point; the methods and directions it judges."""

import contextlib
from itertools import product

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from preflearn.datasets import simulate_norm_pairs
from preflearn.metrics import comparison_auc
from preflearn.pairs import Pairs
from preflearn.svm import DegenerateBiasError, SVMCompare, SVMRank
from studies import ch05_simulations as module
from studies.ch05_simulations import METHODS, compare_methods, direction_auc, select_on_grid

C_GRID, GAMMA_GRID = np.logspace(-3, 3, 5), 2.0 ** np.linspace(-5, 2, 4)


def data(share, sizes=(40, 40), seed=0, norm="l1"):
    rng = np.random.default_rng([seed, round(100 * share)])
    return [simulate_norm_pairs(norm, size, share, rng)[:2] for size in sizes]


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


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("method", METHODS)
def test_equals_a_search_by_single_fits(method, share):
    train, valid = data(share)
    found = select_on_grid(train, valid, C_GRID, GAMMA_GRID, [method])[method]
    by_error, by_auc, error, area, failed = search(method, train, valid)
    for one, other in ((found.by_error, by_error), (found.by_auc, by_auc)):
        assert (type(one), one.get_params()) == (type(other), other.get_params())
        np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    assert found.by_error.score(*valid) == pytest.approx(1 - error)
    assert comparison_auc(valid[1], found.by_auc.decision_function(valid[0])) == pytest.approx(area)
    assert found.n_degenerate == failed
    assert (failed > 0) == (method == "compare" and share == 0.2)


@pytest.mark.parametrize("method", METHODS)
def test_what_a_path_does_not_reach_is_fitted(method, monkeypatch):
    train, valid = data(0.5, (20, 20))
    expected = select_on_grid(train, valid, C_GRID, GAMMA_GRID[:2], [method])[method]
    monkeypatch.setattr(module, "_SOUND", -1.0)  # nothing is accurate enough
    found = select_on_grid(train, valid, C_GRID, GAMMA_GRID[:2], [method])[method]
    assert found.by_error.get_params() == expected.by_error.get_params()
    assert found.n_degenerate == expected.n_degenerate


def test_methods_do_not_depend_on_each_other():
    train, valid = data(0.5, (30, 30))
    every = select_on_grid(train, valid, C_GRID, GAMMA_GRID)
    assert list(every) == list(METHODS)
    alone = select_on_grid(train, valid, C_GRID, GAMMA_GRID, ["rank2"])["rank2"]
    assert alone.by_error.get_params() == every["rank2"].by_error.get_params()
    assert every["rank"].every_c is None


def test_a_grid_without_a_ranking_function():
    train, valid = data(0.1)
    with pytest.raises(DegenerateBiasError, match="whole grid"):
        select_on_grid(train, valid, np.array([1e-4, 1e-3]), np.array([0.5]), ["compare"])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_every_c_is_no_worse_than_any_fit(seed, share):
    """With few ties beta changes its sign along the path, also inside an interval of one loss."""
    train, valid = data(share, seed=seed, norm="l2")
    grid = np.geomspace(0.01, 100, 40)
    found = select_on_grid(train, valid, grid[[0, -1]], np.array([0.3]), ["compare"])["compare"].every_c
    errors = []
    for C in grid:
        with contextlib.suppress(DegenerateBiasError):
            errors.append(1 - SVMCompare(C, gamma=0.3).fit(*train).score(*valid))
    assert found.bias_ < 0
    assert 1 - found.score(*valid) <= min(errors) + 1e-12


# ---- One data set


FEW_C, FEW_GAMMA, THREE = np.logspace(-2, 2, 3), np.array([0.1, 1.0]), (40, 40, 300)


def by_libsvm(train, valid, test):
    """Test AUC, C and gamma of u, chosen by validation AUC, from one fit a point of the grid."""
    rows, labels = train[0].flipped(train[1])

    def between(pairs, gamma):
        K = rbf_kernel(pairs.items, rows.items, gamma=gamma)
        return pairs.incidence() @ K @ rows.incidence().T

    areas = []
    for gamma, C in product(FEW_GAMMA, FEW_C):
        machine = SVC(C=C, kernel="precomputed", tol=1e-10).fit(between(rows, gamma), labels)
        z = [between(part[0], gamma)[:, machine.support_] @ machine.dual_coef_[0] for part in (valid, test)]
        found = (comparison_auc(part[1], d) for part, d in zip((valid, test), z, strict=True))
        areas.append((*found, C, gamma))
    return max(areas, key=lambda one: one[0])[1:]


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_direction_auc_equals_single_fits_of_libsvm(share):
    sets = data(share, THREE)
    assert direction_auc(*sets, FEW_C, FEW_GAMMA) == pytest.approx(by_libsvm(*sets), abs=1e-3)


def test_items_that_no_pair_names_do_not_matter():
    sets = data(0.3, THREE)
    more = np.full((5, 2), 9.0)
    padded = [(Pairs(np.vstack([pairs.items, more]), pairs.index), y) for pairs, y in sets]
    expected = direction_auc(*sets, FEW_C, FEW_GAMMA)
    assert direction_auc(*padded, FEW_C, FEW_GAMMA) == pytest.approx(expected, abs=1e-12)


def test_methods_are_those_that_the_search_chooses():
    train, valid, test = data(0.5, THREE)
    found = select_on_grid(train, valid, FEW_C, FEW_GAMMA)
    outcomes = {outcome.method: outcome for outcome in compare_methods(train, valid, test, FEW_C, FEW_GAMMA)}
    assert list(outcomes) == ["rank", "rank2", "compare", "compare, every C"]
    for name, selection in found.items():
        error = np.mean(selection.by_error.predict(test[0]) != test[1])
        assert outcomes[name].test_error == pytest.approx(error)
        area = comparison_auc(test[1], selection.by_auc.decision_function(test[0]))
        assert outcomes[name].test_auc == area
        assert outcomes[name].n_degenerate == selection.n_degenerate
        chosen = outcomes[name].by_auc
        assert (chosen.C, chosen.gamma) == (selection.by_auc.C, selection.by_auc.gamma)
    every, best = (outcomes[name].machine for name in ("compare, every C", "compare"))
    assert every.score(*valid) >= best.score(*valid)

"""The grid search along paths is tested against one fit for each grid point, and
against LIBSVM."""

import contextlib
from itertools import product

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from preflearn.datasets import simulate_norm_pairs
from preflearn.metrics import comparison_auc
from preflearn.svm import DegenerateBiasError, SVMCompare, SVMRank
from preflearn_book.studies import ch05_simulations as module
from preflearn_book.studies.ch05_simulations import (
    METHODS,
    direction_auc,
    select_on_grid,
)

C_GRID = np.logspace(-3, 3, 5)
GAMMA_GRID = 2.0 ** np.linspace(-5, 2, 4)
SMALL_C_GRID = np.logspace(-2, 2, 3)
SMALL_GAMMA_GRID = np.array([0.1, 1.0])
THREE_SETS = (40, 40, 300)


def simulated(tie_share, sizes=(40, 40), seed=0, norm="l1"):
    rng = np.random.default_rng([seed, round(100 * tie_share)])
    return [simulate_norm_pairs(norm, size, tie_share, rng)[:2] for size in sizes]


def fitted(method, C, gamma, train):
    if method == "compare":
        return SVMCompare(C, gamma=gamma).fit(*train)
    return SVMRank(
        C, gamma=gamma, ties={"rank": "ignore", "rank2": "duplicate"}[method]
    ).fit(*train)


def search_by_single_fits(method, train, valid):
    """Return the models of lowest error and largest area, and the number of degenerate
    fits."""
    models = []
    for C, gamma in product(C_GRID, GAMMA_GRID):
        with contextlib.suppress(DegenerateBiasError):
            models.append(fitted(method, C, gamma, train))
    errors = [1 - model.score(*valid) for model in models]
    areas = [
        comparison_auc(valid[1], model.decision_function(valid[0])) for model in models
    ]
    n_degenerate = len(C_GRID) * len(GAMMA_GRID) - len(models)
    return models[np.argmin(errors)], models[np.argmax(areas)], n_degenerate


@pytest.mark.parametrize("tie_share", [0.2, 0.8])
def test_grid_selection_equals_a_search_by_single_fits(tie_share):
    train, valid = simulated(tie_share)
    selections = select_on_grid(train, valid, C_GRID, GAMMA_GRID)
    assert list(selections) == list(METHODS)
    for method, selection in selections.items():
        by_error, by_auc, n_degenerate = search_by_single_fits(method, train, valid)
        for model, expected in (
            (selection.by_error, by_error),
            (selection.by_auc, by_auc),
        ):
            assert (type(model), model.get_params()) == (
                type(expected),
                expected.get_params(),
            )
            np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)
        assert selection.n_degenerate == n_degenerate
        assert (n_degenerate > 0) == (method == "compare" and tie_share == 0.2)


@pytest.mark.parametrize("method", METHODS)
def test_single_fits_replace_a_path_that_is_not_accurate(method, monkeypatch):
    train, valid = simulated(0.5, (20, 20))
    expected = select_on_grid(train, valid, C_GRID, GAMMA_GRID[:2], [method])[method]
    # makes every path count as inaccurate
    monkeypatch.setattr(module, "_MAX_KKT_RESIDUAL", -1.0)
    selection = select_on_grid(train, valid, C_GRID, GAMMA_GRID[:2], [method])[method]
    assert selection.by_error.get_params() == expected.by_error.get_params()
    assert selection.n_degenerate == expected.n_degenerate


def test_a_grid_without_a_ranking_function_is_an_error():
    train, valid = simulated(0.1)
    with pytest.raises(DegenerateBiasError, match="grid"):
        select_on_grid(
            train, valid, np.array([1e-4, 1e-3]), np.array([0.5]), ["compare"]
        )


@pytest.mark.parametrize(
    ("seed", "tie_share"), [(0, 0.2), (1, 0.2), (2, 0.2), (0, 0.5), (1, 0.5)]
)
def test_the_best_c_of_the_whole_path_has_no_larger_error_than_any_fit(seed, tie_share):
    """With few ties, beta changes its sign along the path, in some cases within an
    interval of constant loss."""
    train, valid = simulated(tie_share, seed=seed, norm="l2")
    grid = np.geomspace(0.01, 100, 40)
    model = select_on_grid(train, valid, grid[[0, -1]], np.array([0.3]), ["compare"])[
        "compare"
    ].every_c
    errors = []
    for C in grid:
        with contextlib.suppress(DegenerateBiasError):
            errors.append(1 - SVMCompare(C, gamma=0.3).fit(*train).score(*valid))
    assert model.bias_ < 0
    assert 1 - model.score(*valid) <= min(errors) + 1e-12


def direction_by_libsvm(train, valid, test):
    """Return test AUC, C and gamma of u, chosen by validation AUC, from one fit per
    grid point."""
    rows, labels = train[0].flipped(train[1])

    def kernel_with_rows(pairs, gamma):
        K = rbf_kernel(pairs.items, rows.items, gamma=gamma)
        return pairs.incidence() @ K @ rows.incidence().T

    candidates = []
    for gamma, C in product(SMALL_GAMMA_GRID, SMALL_C_GRID):
        model = SVC(C=C, kernel="precomputed", tol=1e-10).fit(
            kernel_with_rows(rows, gamma), labels
        )
        areas = [
            comparison_auc(
                y,
                kernel_with_rows(pairs, gamma)[:, model.support_] @ model.dual_coef_[0],
            )
            for pairs, y in (valid, test)
        ]
        candidates.append((*areas, C, gamma))
    return max(candidates, key=lambda candidate: candidate[0])[1:]


@pytest.mark.parametrize("tie_share", [0.2, 0.5])
def test_direction_auc_equals_single_fits_of_libsvm(tie_share):
    sets = simulated(tie_share, THREE_SETS)
    found = direction_auc(*sets, SMALL_C_GRID, SMALL_GAMMA_GRID)
    assert found == pytest.approx(direction_by_libsvm(*sets), abs=1e-3)

from itertools import product

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from preflearn.datasets import simulate_norm_pairs
from preflearn.metrics import comparison_auc
from preflearn.pairs import Pairs
from preflearn.svm import compare_methods, direction_auc, select_on_grid

C_GRID, GAMMA_GRID = np.logspace(-2, 2, 3), np.array([0.1, 1.0])


def three_sets(share, seed=0):
    rng = np.random.default_rng(seed)
    return [simulate_norm_pairs("l1", size, share, rng)[:2] for size in (40, 40, 300)]


def by_libsvm(train, valid, test):
    """The test AUC of u, chosen by validation AUC, from one fit a point of the grid."""
    rows, labels = train[0].flipped(train[1])

    def between(pairs, gamma):
        K = rbf_kernel(pairs.items, rows.items, gamma=gamma)
        return pairs.incidence() @ K @ rows.incidence().T

    areas = []
    for gamma, C in product(GAMMA_GRID, C_GRID):
        machine = SVC(C=C, kernel="precomputed", tol=1e-10).fit(between(rows, gamma), labels)
        z = [between(part[0], gamma)[:, machine.support_] @ machine.dual_coef_[0] for part in (valid, test)]
        areas.append([comparison_auc(part[1], d) for part, d in zip((valid, test), z, strict=True)])
    return max(areas, key=lambda both: both[0])[1]


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_direction_auc_equals_single_fits_of_libsvm(share):
    sets = three_sets(share)
    assert direction_auc(*sets, C_GRID, GAMMA_GRID) == pytest.approx(by_libsvm(*sets), abs=1e-3)


def test_items_that_no_pair_names_do_not_matter():
    sets = three_sets(0.3)
    padded = [
        (Pairs(np.vstack([pairs.items, rows := np.full((5, 2), 9.0)]), pairs.index), y) for pairs, y in sets
    ]
    assert len(padded[0][0].items) == len(sets[0][0].items) + len(rows)
    expected = direction_auc(*sets, C_GRID, GAMMA_GRID)
    assert direction_auc(*padded, C_GRID, GAMMA_GRID) == pytest.approx(expected, abs=1e-12)


def test_methods_are_those_that_the_search_chooses():
    train, valid, test = three_sets(0.5)
    found = select_on_grid(train, valid, C_GRID, GAMMA_GRID)
    outcomes = {
        outcome.method: outcome for outcome in compare_methods(train, valid, test, C_GRID, GAMMA_GRID)
    }
    assert list(outcomes) == ["rank", "rank2", "compare", "compare, every C"]
    for name, selection in found.items():
        assert outcomes[name].test_error == pytest.approx(
            np.mean(selection.by_error.predict(test[0]) != test[1])
        )
        area = comparison_auc(test[1], selection.by_auc.decision_function(test[0]))
        assert outcomes[name].test_auc == area
        assert outcomes[name].n_degenerate == selection.n_degenerate
    every = outcomes["compare, every C"].machine
    assert every.valid_error <= outcomes["compare"].machine.valid_error

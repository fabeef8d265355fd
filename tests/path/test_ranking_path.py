"""What the path of the ranking SVM answers: weights, margins, sets and the choice of lambda."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from small_problems import two_classes

from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path


def test_answers_fit_together():
    pairs, y = two_classes(25, seed=1)
    path = ranksvm_path(pairs, y, gamma=0.5)
    assert (np.diff(path.breakpoints) < 0).all()
    inside = {}
    for lam, pair, kind in path.events:
        assert np.isclose(path.breakpoints, lam, rtol=1e-9).any()
        assert (kind == "enter") != inside.get(pair, False)
        inside[pair] = kind == "enter"
        assert abs(path.margins(lam)[pair] - 1) < 1e-8
    every = max(path.kkt_residual(lam) for lam in path.breakpoints)
    assert path.worst_residual() == pytest.approx(every, abs=1e-12)
    for lam in path.breakpoints[0] * np.array([3.0, 0.5, 0.1, 0.01]):
        alpha, margins = path.alpha(lam), path.margins(lam)
        by_hand = np.abs(alpha - np.clip(alpha + 1 - margins, 0, 1)).max()
        assert path.kkt_residual(lam) == pytest.approx(by_hand, abs=1e-12)
        sets, alpha, margins = path.sets(lam), path.alpha(lam), path.margins(lam)
        assert sorted(np.concatenate(sets).tolist()) == list(range(len(y)))
        np.testing.assert_array_equal(alpha[sets.inside], 1.0)
        np.testing.assert_array_equal(alpha[sets.beyond], 0.0)
        np.testing.assert_allclose(margins[sets.on], 1.0, atol=1e-9)
        np.testing.assert_allclose(margins, y * path.decision_function(lam, pairs), atol=1e-10)
        by_hand = rbf_kernel(pairs.items, gamma=0.5) @ (pairs.incidence().T @ (y * alpha)) / lam
        np.testing.assert_allclose(path.decision_function(lam, pairs.items), by_hand, atol=1e-9)
    np.testing.assert_array_equal(path.alpha(2 * path.breakpoints[0]), 1.0)


def test_equal_scores_are_wrong_whoever_comes_first():
    """A feature that is the same in all training pairs moves no score."""
    path = ranksvm_path(Pairs([[0.0, 0.0], [1.0, 0.0]], [[1, 0]]), [1], "linear")
    for index in ([[1, 0]], [[0, 1]]):
        assert path.select(Pairs([[5.0, 1.0], [5.0, 2.0]], index), [1]).loss == 1.0
    pairs, y = two_classes(20, seed=0)
    narrow = ranksvm_path(pairs, y, gamma=1e8)
    valid, _ = two_classes(20, seed=1)
    for labels in (np.ones(len(valid), dtype=int), -np.ones(len(valid), dtype=int)):
        assert narrow.select(valid, labels).loss == 1.0

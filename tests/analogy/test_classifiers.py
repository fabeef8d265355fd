"""The models behind AnKerRank and the calibration of Platt, compared with their
optimality conditions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from toy_rankings import better_minus_worse, rankings

from preflearn.analogy import analogy_kernel, classifiers
from preflearn.analogy.classifiers import Problem, hinge, platt


def problem(seed, n, d, levels=None, degree=2):
    """Return pairs of items of a noisy nonlinear function, half of them reversed."""
    better = better_minus_worse(*rankings(seed, n, d, levels))
    labels = np.random.default_rng(seed).permutation(
        np.arange(len(better)) % 2 * 2.0 - 1
    )
    U = better * labels[:, None]
    return Problem(analogy_kernel(U, degree=degree), labels, True)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
def test_the_path_gives_the_same_svm_as_the_dual(C):
    given = problem(4, 14, 3, levels=3)
    coef, bias = hinge(given, C)
    path = classifiers._path(given, 1 / C)
    by_path = given.labels * path.alpha(1 / C) * C
    np.testing.assert_allclose(
        given.K @ coef + bias,
        given.K @ by_path + path.bias(1 / C),
        atol=1e-4 * max(1, C),
    )


def test_a_gap_of_the_svm_causes_a_warning(monkeypatch):
    monkeypatch.setattr(classifiers, "_MAX_GAP", -1.0)
    with pytest.warns(ConvergenceWarning, match=r"AnKerRank.*gap.*lower C \(now 3\)"):
        hinge(problem(0, 8, 2), 3.0)


@given(
    seed=st.integers(0, 10**6),
    sides=st.sampled_from(["mixed", "one", "separated"]),
    scale=st.floats(1e-6, 1e6),
)
def test_platt_is_the_minimum(seed, sides, scale):
    rng = np.random.default_rng(seed)
    labels = np.ones(20) if sides == "one" else rng.permutation([-1.0, 1.0] * 10)
    f = 3 + rng.normal(size=20) + (20 * labels if sides == "separated" else labels)
    plus = (labels > 0).sum()
    minus = (labels < 0).sum()
    target = np.where(labels > 0, (plus + 1) / (plus + 2), 1 / (minus + 2))
    a, b = platt(scale * f, labels)
    p = expit(a * scale * f + b)
    # both derivatives of the cross-entropy, which is convex
    assert abs(np.sum(p - target)) < 1e-6
    assert abs(np.sum((p - target) * f)) < 1e-5


def test_platt_of_equal_values_is_the_mean_of_the_targets():
    a, b = platt(np.full(6, 2.5), np.array([1.0, 1, 1, 1, -1, -1]))
    assert a == 0
    assert expit(b) == pytest.approx((4 * 5 / 6 + 2 * 1 / 4) / 6)


@pytest.mark.parametrize("C", [1.0, 1e4, 1e6])
@pytest.mark.parametrize("d", [1, 3])
def test_the_svm_with_bias_satisfies_its_optimality_conditions(C, d):
    for seed in range(4):
        given = problem(seed, 12, d, levels=[None, 4][seed % 2], degree=1 + seed % 2)
        coef, bias = hinge(given, C)
        margin = given.labels * (given.K @ coef + bias)
        weight = given.labels * coef
        assert weight.min() >= 0
        assert weight.max() <= C * (1 + 1e-9)
        assert abs(coef.sum()) < 1e-6 * C
        without = weight <= 1e-9 * C
        limit = weight >= C * (1 - 1e-9)
        assert np.all(margin[~limit] > 1 - 1e-4)
        assert np.all(margin[~without] < 1 + 1e-4)


def test_free_examples_are_on_their_margins_in_double_precision():
    C = 50.0
    (K, labels, _) = problem(1, 12, 3)
    rough = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, labels)
    off = []
    for coef, bias in (
        (
            np.bincount(rough.support_, rough.dual_coef_[0], len(labels)),
            rough.intercept_[0],
        ),
        hinge(Problem(K, labels, True), C),
    ):
        free = (coef != 0) & (np.abs(coef) < C * (1 - 1e-9))
        off.append(np.abs(labels * (K @ coef + bias) - 1)[free].max())
    assert off[1] < 1e-9 < off[0]


@pytest.mark.parametrize("loss", classifiers.LOSSES)
def test_an_undecided_pair_counts_as_wrong_in_both_orders(loss):
    """With the antisymmetric kernel and no bias, equal items of different ranks have f
    = 0 for every C."""
    better = better_minus_worse(*rankings(0, 12, 2))
    better[::5] = 0
    K = (analogy_kernel(better) - analogy_kernel(better, -better)) / 2
    labels = np.random.default_rng(1).choice([-1.0, 1.0], len(K))
    halves = np.array_split(np.random.default_rng(2).permutation(len(K)), 2)
    folds = [classifiers.Fold(*halves), classifiers.Fold(*halves[::-1])]
    plain = classifiers.select(Problem(K, np.ones(len(K)), False), folds, loss)
    turned = classifiers.select(
        Problem(labels[:, None] * K * labels, labels, False), folds, loss
    )
    np.testing.assert_allclose(turned.lambdas, plain.lambdas)
    np.testing.assert_allclose(turned.losses, plain.losses)
    assert plain.losses.min() >= len(better[::5]) / len(better)

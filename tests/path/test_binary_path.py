"""What the path of the machine with bias answers: bias, events, selection and gap, from what it returns."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from small_problems import points

from preflearn.path import svm_path


def test_bias_is_the_middle_of_its_interval_where_no_weight_is_inside():
    # Far apart, one of each class: both weights are 1 down to lambda = 1, then both fall.
    path = svm_path(np.eye(2), [1, -1])
    assert path.breakpoints.tolist() == [1.0]
    assert path.alpha(4.0).tolist() == [1.0, 1.0]
    assert path.alpha(0.25).tolist() == [0.25, 0.25]
    assert (path.bias(4.0), path.bias(0.25)) == (0.0, 0.0)
    assert path.lambda_end == 0  # nobody is inside the margin any more: f stays, and weights fall as lambda
    assert path.decision_function(1e-30, np.eye(2)).tolist() == [1.0, -1.0]
    seen = 0
    for seed in range(60):
        K, y = points("integers", 12, seed, p=2, share=0.4 + 0.1 * (seed % 2))
        path = svm_path(K, y)
        for lam in np.sqrt(path.breakpoints[1:] * path.breakpoints[:-1]):
            alpha = path.alpha(lam)
            if ((alpha > 1e-9) & (alpha < 1 - 1e-9)).any():
                continue
            limits = lam * y - K @ (y * alpha)
            above = limits[(alpha > 0.5) == (y > 0)].min()
            below = limits[(alpha > 0.5) != (y > 0)].max()
            assert path.bias(lam) * lam == pytest.approx((above + below) / 2, abs=1e-9)
            seen += above - below > 1e-6
    assert seen > 3


def test_events_tell_who_is_on_the_margin():
    K, y = points("rbf", 40, seed=1, share=0.4)
    path = svm_path(K, y)
    margin = set(np.flatnonzero((path.alpha(path.breakpoints[0]) % 1) > 1e-9).tolist())
    for lam, below in zip(path.breakpoints, np.append(path.breakpoints[1:], path.lambda_end), strict=True):
        for _, index, kind in (event for event in path.events if event[0] == lam):
            margin = margin | {index} if kind == "enter" else margin - {index}
        alpha = path.alpha((lam + below) / 2)
        assert set(np.flatnonzero((alpha > 1e-9) & (alpha < 1 - 1e-9)).tolist()) == margin


def test_the_last_of_the_best_intervals_ends_with_the_path():
    """The lambda that is selected has the loss that is reported, also below the last breakpoint."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((8, 2)), np.where(np.arange(8) % 2, 1, -1)
        new, labels = rng.standard_normal((12, 2)), rng.choice([-1, 1], 12)
        path = svm_path(rbf_kernel(X, gamma=0.5), y, lambda_min=10 ** rng.uniform(-2, -0.3))
        if len(path.breakpoints):
            K = rbf_kernel(new, X, gamma=0.5)
            choice = path.select(K, labels)
            f = path.decision_function(choice.lam, K)
            assert np.mean(np.where(f >= 0, 1, -1) != labels) == pytest.approx(choice.loss)


def test_scores_that_reach_nought_at_the_end_cross_it_there():
    """Affine combinations of kernel rows with f = 0 at the end: rounding may put the crossing below it."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((12, 2)), np.where(np.arange(12) % 2, 1, -1)
        path = svm_path(rbf_kernel(X, gamma=0.5), y, lambda_min=10 ** rng.uniform(-4, -2))
        a, b = rng.standard_normal((2, 50, 12))
        f_a, f_b = (path.decision_function(path.lambda_end, rows)[:, None] for rows in (a, b))
        choice = path.select((a * f_b - b * f_a) / (f_b - f_a), np.ones(50))
        assert choice.lambdas[-1] >= path.lambda_end


@pytest.mark.parametrize("seed", range(8))
def test_the_duality_gap_is_that_of_the_returned_function(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 3)), np.where(np.arange(30) % 2, 1, -1)
    K = (1 + X @ X.T) ** 3
    path = svm_path(K, y, lambda_min=0.1)
    for lam in (10.0, 1.0, 0.1):
        alpha, f = path.alpha(lam), path.decision_function(lam, K)
        w_w = (y * alpha) @ K @ (y * alpha) / lam**2
        primal = lam / 2 * w_w + np.maximum(0, 1 - y * f).sum()
        dual = alpha.sum() - lam / 2 * w_w
        assert path.duality_gap(lam) == pytest.approx((primal - dual) / primal, abs=1e-10)
        assert path.duality_gap(lam) < 1e-6

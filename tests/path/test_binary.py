"""The path of the SVM with bias, compared with other solvers, optimality conditions,
and exact fractions."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from small_problems import POINTS, along, points

from preflearn.datasets import simulate_norm_pairs
from preflearn.path import svm_path


@pytest.mark.parametrize("share", [0.5, 0.2])
@pytest.mark.parametrize("kind", POINTS)
def test_equals_libsvm_at_random_c(kind, share):
    K, y = points(kind, 80, seed=5, share=share)
    path = svm_path(K, y)

    def dual(alpha, lam):
        signed = y * alpha
        return signed @ K @ signed / 2 - lam * alpha.sum()

    for lam in along(path, 15, np.random.default_rng(1)):
        svc = SVC(C=1 / lam, kernel="precomputed", tol=1e-10).fit(K, y)
        alpha = np.zeros(len(y))
        alpha[svc.support_] = np.abs(svc.dual_coef_[0]) * lam
        assert dual(path.alpha(lam), lam) == pytest.approx(dual(alpha, lam), rel=1e-8)
        # w is unique, and so is the bias if a weight is inside (0, 1). LIBSVM rounds K
        # y y' to float32, so it is accurate to about 1e-6 of the sum that gives f.
        ours = path.decision_function(lam, K)
        theirs = svc.decision_function(K)
        rounding = 1e-5 * max(1.0, 1 / lam)
        np.testing.assert_allclose(
            ours - path.bias(lam), theirs - svc.intercept_[0], atol=rounding
        )
        if ((alpha > 1e-6) & (alpha < 1 - 1e-6)).any():
            assert path.bias(lam) == pytest.approx(svc.intercept_[0], abs=rounding)


@examples(60)
@given(
    st.sampled_from(POINTS),
    st.integers(2, 60),
    st.floats(0.05, 0.95),
    st.integers(0, 2**31),
)
def test_optimality_at_and_between_breakpoints(kind, m, share, seed):
    K, y = points(kind, m, seed, share)
    path = svm_path(K, y)
    lams = path.breakpoints
    assert (np.diff(lams) <= 0).all()
    assert (lams > 0).all()
    for lam in [*lams, *np.sqrt(lams[1:] * lams[:-1]), *(2 * lams[:1])]:
        assert path.kkt_residual(lam) < 1e-8
        assert ((path.alpha(lam) >= 0) & (path.alpha(lam) <= 1)).all()


def exact_residuals(K, y, alpha, offset, lam):
    """Yield the violations of the optimality conditions by the returned path, in exact
    arithmetic."""
    exact = [[Fraction(float(k)) for k in row] for row in K]
    signed = [Fraction(float(a)) * int(s) for a, s in zip(alpha, y, strict=True)]
    yield abs(sum(signed))
    for row, a, s in zip(exact, alpha, y, strict=True):
        excess = int(s) * (
            sum(k * b for k, b in zip(row, signed, strict=True)) + offset
        ) - Fraction(lam)
        yield -excess if a == 0 else excess if a == 1 else abs(excess)


@given(st.sampled_from(POINTS), st.integers(2, 8), st.integers(0, 2**31))
def test_tiny_problems_in_rationals(kind, m, seed):
    K, y = points(kind, m, seed, share=0.4)
    path = svm_path(K, y)
    for lam in path.breakpoints[:-1] * 0.75 + path.breakpoints[1:] * 0.25:
        offset = Fraction(path.bias(lam)) * Fraction(lam)
        alpha = path.alpha(lam)
        alpha = np.where(alpha < 1e-11, 0.0, np.where(alpha > 1 - 1e-11, 1.0, alpha))
        scale = np.abs(K).max() * m
        assert max(exact_residuals(K, y, alpha, offset, lam)) < 1e-9 * scale


@given(
    st.sampled_from(("rbf", "narrow")),
    st.integers(3, 30),
    st.floats(0.1, 0.9),
    st.integers(0, 2**31),
)
def test_invariances(kind, m, share, seed):
    K, y = points(kind, m, seed, share)
    rng = np.random.default_rng(seed)
    path = svm_path(K, y)
    order = rng.permutation(m)
    c = 10 ** rng.uniform(-4, 4)
    permuted = svm_path(K[np.ix_(order, order)], y[order])
    flipped = svm_path(K, -y)
    scaled = svm_path(c * K, y)
    for lam in along(path, 5, rng):
        alpha = path.alpha(lam)
        bias = path.bias(lam)
        for other, expected, sign, place in (
            (permuted, alpha[order], 1, lam),
            (flipped, alpha, -1, lam),
            (scaled, alpha, 1, c * lam),
        ):
            np.testing.assert_allclose(other.alpha(place), expected, atol=1e-6)
            assert other.bias(place) == pytest.approx(
                sign * bias, abs=1e-6 * max(1, abs(bias))
            )


def test_weights_that_never_change():
    corners = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    K = corners @ corners.T
    path = svm_path(K, [1, 1, -1, -1])
    assert len(path.breakpoints) == 0
    assert path.alpha(1e-3).tolist() == [1.0] * 4
    assert path.decision_function(1e-3, K).tolist() == [0.0] * 4
    with pytest.raises(ValueError, match="no breakpoint"):
        path.select(K, [1, 1, -1, -1])


@pytest.mark.parametrize(
    ("K", "y", "lambda_min", "message"),
    [
        ([[1.0, np.nan], [np.nan, 1.0]], [1, -1], 0, r"K\[0, 1\] is nan"),
        ([[1.0, 0.0]], [1, -1], 0, r"\(1, 2\)"),
        (np.eye(3), [1, -1], 0, r"y has shape \(2,\).*\(3,\)"),
        (np.eye(2), [1, 0], 0, r"y\[1\]"),
        (np.eye(2), [1, 1], 0, "both"),
        ([[1.0, 2.0], [2.0, 1.0]], [1, -1], 0, "eigenvalue.*-1 to 3"),
        (np.eye(400) - 0.1, np.tile([1, -1], 200), 0, "eigenvalue.*-39 to 1"),
        (np.eye(2), [1, -1], -1.0, "lambda_min is -1"),
        (1e-200 * np.eye(2), [1, -1], 0, "1e-200"),
        (1e150 * np.eye(2), [1, -1], 0, r"1e\+150"),
    ],
)
def test_bad_input_is_named(K, y, lambda_min, message):
    with pytest.raises(ValueError, match=message):
        svm_path(K, y, lambda_min=lambda_min)


@pytest.mark.parametrize(
    ("m", "share", "lambda_min"), [(700, 0.3, 0.0), (60, 0.5, 1e-14)]
)
def test_the_path_ends_where_rounding_takes_over(m, share, lambda_min):
    K, y = points("duplicates", m, seed=1, share=share)
    with pytest.warns(ConvergenceWarning, match="rounding"):
        path = svm_path(K, y, lambda_min=lambda_min)
    assert path.status == "rounding"
    assert lambda_min < path.lambda_end < 1e-6
    assert max(path.kkt_residual(lam) for lam in path.breakpoints[::20]) < 1e-8


def ties_around_zero():
    """Return points in which the smaller class is x and -x. For large lambda, all
    points of the larger class are on the margin."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((10, 4))
    t = rng.standard_normal((2, 4))
    X = np.vstack([X, t, -t])
    return X @ X.T, np.repeat([1.0, -1.0], [10, 4])


def ties_and_swaps():
    """Return a training set from the simulations of chapter 05, in which swaps that
    remove the largest violation can form a cycle."""
    pairs, y, _ = simulate_norm_pairs(
        "linf", 400, 0.3, np.random.default_rng([0, 16, 400, 30, 2])
    )
    rows, labels = pairs.flipped(y)
    every = np.arange(len(labels))
    return rows.B.gram(rbf_kernel(rows.items, gamma=2 ** (-52 / 9))).block(
        every, every
    ), labels


@pytest.mark.parametrize("make", [ties_around_zero, ties_and_swaps])
def test_all_of_the_larger_class_on_the_margin_at_the_start(make):
    path = svm_path(*make(), lambda_min=1e-4)
    assert path.lambda_end == pytest.approx(1e-4)
    first = path.breakpoints[0]
    assert (
        max(
            map(path.kkt_residual, (10 * first, first, 0.5 * first, 0.01 * first, 1e-4))
        )
        < 1e-8
    )


def test_rounding_in_a_gram_matrix_is_not_an_asymmetry():
    K, y = points("rbf", 300, seed=0)
    noise = 1e-13 * np.random.default_rng(0).standard_normal(K.shape)
    path = svm_path(K + noise, y, lambda_min=0.1)
    exact = svm_path(K, y, lambda_min=0.1)
    np.testing.assert_allclose(path.alpha(0.2), exact.alpha(0.2), atol=1e-8)
    K[280, 3] += 1e-6
    with pytest.raises(ValueError, match=r"K\[3, 280\].*K\[280, 3\]"):
        svm_path(K, y)


@pytest.mark.parametrize("kind", ["rbf", "linear", "narrow"])
def test_a_constant_in_the_kernel_changes_nothing_but_the_bias(kind):
    K, y = points(kind, 60, seed=2)
    path = svm_path(K, y, lambda_min=0.05)
    shifted = svm_path(K + 1e6, y, lambda_min=0.05)
    for lam in along(path, 20, np.random.default_rng(0)):
        lam = max(lam, 0.05)
        f = path.decision_function(lam, K[:7])
        np.testing.assert_allclose(
            shifted.decision_function(lam, K[:7] + 1e6), f, atol=1e-6
        )
        # the constant adds 1e6 sum(y alpha) = 0
        assert shifted.bias(lam) == pytest.approx(path.bias(lam), abs=1e-4)
        assert shifted.kkt_residual(lam) < 1e-7


@pytest.mark.parametrize("scale", [1e-13, 1.0, 1e13])
@pytest.mark.parametrize("kind", ["rbf", "linear", "narrow", "separable"])
def test_the_path_ends_before_decisions_are_rounding(kind, scale):
    K, y = points(kind, 40, seed=1)
    path = svm_path(scale * K, y)
    lowest = max(path.lambda_end, 1e-16 * path.breakpoints[0])
    for lam in np.geomspace(lowest, path.breakpoints[0], 40)[1:]:
        # With a narrow kernel, the elbow may be off the margin by 1e-12 of the largest
        # F, at every lambda.
        assert path.kkt_residual(lam) < (1e-3 if kind == "narrow" else 1e-5)


def test_the_gram_matrix_is_kept_and_not_copied():
    K, y = points("rbf", 1000, seed=0)
    tracemalloc.start()
    try:
        path = svm_path(K, y, lambda_min=30.0)
        kept, most = (size / K.nbytes for size in tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
    assert len(path.breakpoints) > 10
    assert kept < 0.3
    assert most < 0.8  # the peak includes half of K for its Cholesky factor


def test_a_constant_kernel_with_rounding_has_no_breakpoint():
    K = np.ones((3, 3))
    K[0, 2] = K[2, 0] = 1 - 9e-16
    path = svm_path(K, [-1, 1, -1])
    assert len(path.breakpoints) == 0
    assert path.lambda_end == 0


@pytest.mark.parametrize("seed", [9, 17])
def test_a_correction_of_rounding_stays_within_the_bounds(seed):
    # A wide kernel has few independent directions, so tiny errors of the margin are
    # large changes of weights.
    X = np.random.default_rng(seed).standard_normal((300, 3))
    path = svm_path(
        rbf_kernel(X, gamma=0.003), np.repeat([1.0, -1.0], [270, 30]), lambda_min=1e-3
    )
    assert path.kkt_residual(1e-3) < 1e-8


def test_the_path_of_two_distant_points():
    """Both weights are 1 down to lambda = 1. Below, both are proportional to lambda,
    and f does not change."""
    path = svm_path(np.eye(2), [1, -1])
    assert path.breakpoints.tolist() == [1.0]
    assert path.alpha(4.0).tolist() == [1.0, 1.0]
    assert path.alpha(0.25).tolist() == [0.25, 0.25]
    assert (path.bias(4.0), path.bias(0.25)) == (0.0, 0.0)
    assert path.lambda_end == 0
    assert path.decision_function(1e-30, np.eye(2)).tolist() == [1.0, -1.0]


def bias_interval(K, y, alpha, lam):
    """Return the smallest and the largest optimal bias, times lambda, if no weight is
    inside (0, 1)."""
    limits = lam * y - K @ (y * alpha)
    return limits[(alpha > 0.5) != (y > 0)].max(), limits[
        (alpha > 0.5) == (y > 0)
    ].min()


def test_the_bias_is_the_middle_of_its_interval_where_no_weight_is_inside():
    widths = []
    for seed in range(60):
        K, y = points("integers", 12, seed, p=2, share=0.4 + 0.1 * (seed % 2))
        path = svm_path(K, y)
        for lam in np.sqrt(path.breakpoints[1:] * path.breakpoints[:-1]):
            alpha = path.alpha(lam)
            if ((alpha < 1e-9) | (alpha > 1 - 1e-9)).all():
                below, above = bias_interval(K, y, alpha, lam)
                assert path.bias(lam) * lam == pytest.approx(
                    (below + above) / 2, abs=1e-9
                )
                widths.append(above - below)
    assert np.count_nonzero(np.array(widths) > 1e-6) > 3


def test_at_the_start_rounding_moves_no_weight_off_its_bound():
    # With 748 and 752 points, all weights of the smaller class are 1, and so are as
    # many of the larger class.
    K, y = points("rbf", 1500, seed=0, share=748 / 1500, p=2)
    path = svm_path(K, y, lambda_min=1e3)
    alpha = path.alpha(1e3)
    assert np.isin(alpha, [0.0, 1.0]).all()
    below, above = bias_interval(K, y, alpha, 1e3)
    assert path.bias(1e3) * 1e3 == pytest.approx((below + above) / 2, abs=1e-9)
    assert above - below > 1e-3


def test_events_give_the_points_on_the_margin():
    K, y = points("rbf", 40, seed=1, share=0.4)
    path = svm_path(K, y)
    margin = set(np.flatnonzero((path.alpha(path.breakpoints[0]) % 1) > 1e-9).tolist())
    for lam, below in zip(
        path.breakpoints, np.append(path.breakpoints[1:], path.lambda_end), strict=True
    ):
        for _, index, kind in (event for event in path.events if event[0] == lam):
            margin = margin | {index} if kind == "enter" else margin - {index}
        alpha = path.alpha((lam + below) / 2)
        assert (
            set(np.flatnonzero((alpha > 1e-9) & (alpha < 1 - 1e-9)).tolist()) == margin
        )


def test_the_last_of_the_best_intervals_ends_with_the_path():
    """The loss at the selected lambda is the reported loss, also below the last
    breakpoint."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((8, 2))
        y = np.where(np.arange(8) % 2, 1, -1)
        new = rng.standard_normal((12, 2))
        labels = rng.choice([-1, 1], 12)
        path = svm_path(
            rbf_kernel(X, gamma=0.5), y, lambda_min=10 ** rng.uniform(-2, -0.3)
        )
        if len(path.breakpoints):
            K = rbf_kernel(new, X, gamma=0.5)
            choice = path.select(K, labels)
            f = path.decision_function(choice.lam, K)
            assert np.mean(np.where(f >= 0, 1, -1) != labels) == pytest.approx(
                choice.loss
            )


def test_scores_that_reach_zero_at_the_end_cross_it_there():
    """Affine combinations of kernel rows have f = 0 at the end. Rounding may put the
    crossing below the end."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((12, 2))
        y = np.where(np.arange(12) % 2, 1, -1)
        path = svm_path(
            rbf_kernel(X, gamma=0.5), y, lambda_min=10 ** rng.uniform(-4, -2)
        )
        a, b = rng.standard_normal((2, 50, 12))
        f_a, f_b = (
            path.decision_function(path.lambda_end, rows)[:, None] for rows in (a, b)
        )
        choice = path.select((a * f_b - b * f_a) / (f_b - f_a), np.ones(50))
        assert choice.lambdas[-1] >= path.lambda_end


@pytest.mark.filterwarnings("ignore:svm_path. rounding ends the path")
@pytest.mark.parametrize("kind", ["linear", "integers", "duplicates", "rbf"])
def test_the_path_goes_on_until_a_bound_on_rounding_ends_it(kind):
    """The bound is 1e-9 of the largest score at an event, and 2e-7 if no event is
    left."""
    K, y = points(kind, 100, seed=0, p=2, gamma=1e-3 if kind == "rbf" else 0.5)
    path = svm_path(K, y)
    end = path.lambda_end
    tolerance = 1e-9 if kind == "rbf" else 2e-7
    assert path.status == ("rounding" if kind == "rbf" else "complete")
    if end > 1.01e-9 * path.breakpoints[0]:
        rounding = 1.1e-16 * path.alpha(end).sum() * K.diagonal().max() / end
        assert rounding > 0.98 * tolerance * max(
            1.0, np.abs(path.decision_function(end, K)).max()
        )
    assert (
        max(map(path.kkt_residual, np.geomspace(end, path.breakpoints[-1], 50)[1:]))
        < tolerance
    )

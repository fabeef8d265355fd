"""The path of the ranking SVM compared with other solvers, optimality conditions, and
plain NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import hinge_machine
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from small_problems import COUNT, same_comparisons, small_problem, two_classes

from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path


@pytest.mark.parametrize("seed", range(0, COUNT, 15))
def test_path_is_that_of_an_interior_point_solver(seed):
    pairs, y, kernel = small_problem(seed)
    path = ranksvm_path(pairs, y, **kernel)
    assert path.status in ("complete", "rounding")
    assert all(path.kkt_residual(lam) < 1e-8 for lam in path.breakpoints)
    values, vectors = np.linalg.eigh(
        pairwise_kernels(pairs.items, metric=kernel.pop("kernel"), **kernel)
    )
    D = y[:, None] * (pairs.incidence() @ (vectors * np.sqrt(np.maximum(values, 0))))
    start = path.breakpoints[0] if len(path.breakpoints) else 1.0
    for lam in start * np.exp(np.random.default_rng(seed).uniform(-7, 0.5, 5)):
        objective, w, *_ = hinge_machine(D, 1.0, ridge=lam, tol=1e-11)
        np.testing.assert_allclose(path.margins(lam), D @ w, atol=2e-6)
        assert path.objective(lam) == pytest.approx(objective, rel=1e-6, abs=1e-6)
        assert path.kkt_residual(lam) < 1e-8


def test_every_small_problem_is_followed_rightly():
    """This includes problems on which the algorithm as printed stops or fails."""
    for seed in range(COUNT):
        pairs, y, kernel = small_problem(seed)
        path = ranksvm_path(pairs, y, **kernel)
        last = max([path.lambda_end, *(1e-3 * path.breakpoints[:1])])
        assert all(
            path.kkt_residual(lam) < 1e-7
            for lam in path.breakpoints[path.breakpoints >= last]
        ), seed


@given(seed=st.integers(0, COUNT - 1), shuffle=st.integers(0, 1000))
def test_the_same_pairs_in_other_words_have_the_same_path(seed, shuffle):
    pairs, y, kernel = small_problem(seed)
    path = ranksvm_path(pairs, y, **kernel)
    for other, labels in same_comparisons(pairs, y, np.random.default_rng(shuffle)):
        again = ranksvm_path(other, labels, **kernel)
        assert (len(path.breakpoints) == 0) == (len(again.breakpoints) == 0)
        kept = min(len(path.breakpoints), len(again.breakpoints), 20)
        np.testing.assert_allclose(
            again.breakpoints[:kept], path.breakpoints[:kept], rtol=1e-7
        )
        for lam in np.outer(path.breakpoints[:1], [2.0, 0.7, 0.3, 0.01]).ravel():
            expected = path.decision_function(lam, pairs.items)
            np.testing.assert_allclose(
                again.decision_function(lam, pairs.items), expected, atol=1e-7
            )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_offset_of_the_features_changes_nothing(kernel):
    pairs, y = two_classes(30, seed=5)
    before = ranksvm_path(pairs, y, kernel, gamma=0.5, lambda_min=0.5)
    after = ranksvm_path(
        Pairs(pairs.items + 1e5, pairs.index), y, kernel, gamma=0.5, lambda_min=0.5
    )
    np.testing.assert_allclose(after.breakpoints, before.breakpoints, rtol=1e-6)
    assert max(after.kkt_residual(lam) for lam in after.breakpoints) < 1e-8


def test_a_gram_matrix_a_callable_and_arrays_are_taken_too():
    pairs, y = two_classes(20, seed=4)
    K = rbf_kernel(pairs.items, gamma=0.5)
    named = ranksvm_path(pairs, y, gamma=0.5)
    given_gram = ranksvm_path(Pairs(K, pairs.index), y, "precomputed")
    called = ranksvm_path(
        np.asarray(pairs), y, lambda X, Y: rbf_kernel(X, Y, gamma=0.5)
    )
    np.testing.assert_allclose(called.breakpoints, named.breakpoints, rtol=1e-7)
    expected = named.decision_function(1.0, pairs.items[:3])
    np.testing.assert_allclose(
        given_gram.decision_function(1.0, K[:3]), expected, atol=1e-9
    )
    np.testing.assert_allclose(
        called.decision_function(1.0, pairs.items[:3]), expected, atol=1e-9
    )


def test_max_events_keeps_what_was_computed():
    pairs, y = two_classes(60, seed=0)
    whole = ranksvm_path(pairs, y, gamma=0.5, lambda_min=1.0)
    part = ranksvm_path(pairs, y, gamma=0.5, max_events=30)
    assert (whole.status, part.status) == ("complete", "max_events")
    np.testing.assert_allclose(part.breakpoints, whole.breakpoints[:30], rtol=1e-12)
    assert part.lambda_end == pytest.approx(whole.breakpoints[30], rel=1e-10)
    np.testing.assert_allclose(
        part.alpha(part.breakpoints[-1]), whole.alpha(part.breakpoints[-1]), atol=1e-9
    )


PAIRS, Y = two_classes(10, seed=0)
FIRST = ranksvm_path(PAIRS, Y, max_events=1).breakpoints[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.where(np.arange(len(Y)) == 3, 0, Y)}, r"y\[3\] is 0.*ties \(1 of"),
        ({"pairs": PAIRS[:0], "y": Y[:0]}, "no pairs"),
        ({"lambda_min": 1e6}, "lambda_min is 1000000"),
        ({"lambda_min": FIRST}, "lambda_min"),
        ({"lambda_min": -1}, "lambda_min is -1"),
        ({"max_events": 0}, "max_events is 0"),
        ({"kernel": lambda X, Y: rbf_kernel(X, Y) * np.nan}, "finite"),
        ({"kernel": "rfb"}, "kernel is 'rfb'"),
        ({"kernel": lambda X, Y: -rbf_kernel(X, Y)}, "eigenvalue"),
        (
            {"kernel": lambda X, Y: rbf_kernel(X, Y) + 0.5 * np.eye(10, k=1)},
            "symmetric",
        ),
        (
            {"pairs": Pairs(PAIRS.items * 1e-100, PAIRS.index), "kernel": "linear"},
            "rescale",
        ),
    ],
)
def test_bad_input_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        ranksvm_path(**{"pairs": PAIRS, "y": Y} | changes)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_wide_kernel_is_not_lost_beside_1(kernel):
    """k - 1 is proportional to gamma in the limit. For the Gaussian kernel, B K B'
    divided by gamma tends to that of 2 x·x."""
    pairs, y = two_classes(40, 3)
    wide, wider = (
        ranksvm_path(pairs, y, kernel, gamma=gamma) for gamma in (1e-10, 1e-11)
    )
    end = max(wide.lambda_end / 1e-10, wider.lambda_end / 1e-11, 0.03)
    assert end < 1e-4 * wide.breakpoints[0] / 1e-10
    for lam in np.geomspace(end, 2 * wide.breakpoints[0] / 1e-10, 20):
        margins = wide.margins(1e-10 * lam)
        np.testing.assert_allclose(wider.margins(1e-11 * lam), margins, atol=1e-4)
        np.testing.assert_allclose(
            y * wide.decision_function(1e-10 * lam, pairs), margins, atol=1e-8
        )
        if kernel == "rbf":
            linear = ranksvm_path(pairs, y, "linear", lambda_min=lam / 4)
            np.testing.assert_allclose(linear.margins(lam / 2), margins, atol=1e-4)


def test_events_sets_and_scores_fit_the_weights():
    pairs, y = two_classes(25, seed=1)
    path = ranksvm_path(pairs, y, gamma=0.5)
    assert (np.diff(path.breakpoints) < 0).all()
    inside = {}
    for lam, pair, kind in path.events:
        assert np.isclose(path.breakpoints, lam, rtol=1e-9).any()
        assert (kind == "enter") != inside.get(pair, False)
        inside[pair] = kind == "enter"
        assert abs(path.margins(lam)[pair] - 1) < 1e-8
    for lam in path.breakpoints[0] * np.array([3.0, 0.5, 0.1, 0.01]):
        sets = path.sets(lam)
        alpha = path.alpha(lam)
        margins = path.margins(lam)
        residual = np.abs(alpha - np.clip(alpha + 1 - margins, 0, 1)).max()
        assert path.kkt_residual(lam) == pytest.approx(residual, abs=1e-12)
        assert sorted(np.concatenate(sets).tolist()) == list(range(len(y)))
        np.testing.assert_array_equal(alpha[sets.inside], 1.0)
        np.testing.assert_array_equal(alpha[sets.beyond], 0.0)
        np.testing.assert_allclose(margins[sets.on], 1.0, atol=1e-9)
        np.testing.assert_allclose(
            margins, y * path.decision_function(lam, pairs), atol=1e-10
        )
        scores = (
            rbf_kernel(pairs.items, gamma=0.5)
            @ (pairs.incidence().T @ (y * alpha))
            / lam
        )
        np.testing.assert_allclose(
            path.decision_function(lam, pairs.items), scores, atol=1e-9
        )


def test_equal_scores_are_wrong_in_either_order():
    """A feature that is constant in the training pairs does not change any score."""
    path = ranksvm_path(Pairs([[0.0, 0.0], [1.0, 0.0]], [[1, 0]]), [1], "linear")
    narrow = ranksvm_path(*two_classes(20, seed=0), gamma=1e8)
    for fitted, valid in (
        (path, Pairs([[5.0, 1.0], [5.0, 2.0]], [[1, 0]])),
        (narrow, two_classes(20, seed=1)[0]),
    ):
        for label in (-1, 1):
            assert fitted.select(valid, np.full(len(valid), label)).loss == 1.0


def test_scores_that_only_rounding_tells_apart_change_no_order():
    """The training pairs are symmetric in the last feature, so its weight is 0 up to
    rounding."""
    rng = np.random.default_rng(0)
    n = 20
    items = rng.uniform(-1, 1, (30, 4))
    items[1::2, :3] = items[::2, :3]
    X = rng.uniform(-1, 1, (n, 4))
    mirrored = np.vstack([np.zeros(4), X, X * [1, 1, 1, -1]])
    index = np.column_stack([np.arange(1, 2 * n + 1), np.zeros(2 * n, dtype=int)])
    path = ranksvm_path(
        Pairs(mirrored, index), np.tile(rng.choice([-1, 1], n), 2), "linear"
    )
    coef = path.decision_function(0.5 * path.breakpoints[-1], np.eye(4))
    assert abs(coef[3]) < 1e-11 < 0.01 < abs(coef[0])
    assert len(path.breakpoints) > 10
    assert (
        len(path.select(Pairs(items, np.arange(30).reshape(-1, 2)), np.ones(15)).losses)
        == 1
    )

"""The path of the ranking SVM against other solvers, its optimality conditions, and plain NumPy."""

import tracemalloc

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from small_problems import COUNT, small_problem

from preflearn.ground.kernels import NotPositiveSemidefiniteError
from preflearn.pairs import Pairs
from preflearn.path import RegularizationPath, ranksvm_path, walk
from preflearn.svm import SVMRank


def two_classes(n, seed, p=2, share=0.5):
    rng = np.random.default_rng(seed)
    scores = (rng.random(n) < share).astype(float)
    scores[:2] = 0, 1
    X = rng.standard_normal((n, p)) + scores[:, None]
    return Pairs.from_scores(X, scores)


def signed(pairs, y):
    return pairs.incidence().toarray() * np.asarray(y)[:, None]


def by_cvxpy(P, K, lam):
    """Margins Pf and the objective of eq. 6, from its primal with f = K beta; K = L L'."""
    values, vectors = np.linalg.eigh(K)
    L = vectors * np.sqrt(np.maximum(values, 0))
    w = cp.Variable(len(K))
    problem = cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - P @ L @ w)) + lam / 2 * cp.sum_squares(w)))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return P @ L @ w.value, problem.value


@pytest.mark.parametrize("seed", range(0, COUNT, 15))
def test_path_is_that_of_an_interior_point_solver(seed):
    pairs, y, kernel = small_problem(seed)
    path = ranksvm_path(pairs, y, **kernel)
    assert path.status in ("complete", "rounding")
    assert all(path.kkt_residual(lam) < 1e-8 for lam in path.breakpoints)
    K, P = pairwise_kernels(pairs.items, metric=kernel.pop("kernel"), **kernel), signed(pairs, y)
    start = path.breakpoints[0] if len(path.breakpoints) else 1.0
    for lam in start * np.exp(np.random.default_rng(seed).uniform(-7, 0.5, 5)):
        margins, objective = by_cvxpy(P, K, lam)
        np.testing.assert_allclose(path.decision_function(lam, pairs) * y, margins, atol=2e-6)
        assert path.objective(lam) == pytest.approx(objective, rel=1e-6, abs=1e-6)
        assert path.kkt_residual(lam) < 1e-8


def plain_path(P, K, end):
    """Breakpoints in general position: eq. 12 to 17 with numpy, a whole matrix, and no care."""
    Q, alpha = P @ K @ P.T, np.ones(len(P))
    lam, elbow, found = (Q @ alpha).max(), [int(np.argmax(Q @ alpha))], [(Q @ alpha).max()]
    while True:
        eta = np.linalg.solve(Q[np.ix_(elbow, elbow)], np.ones(len(elbow)))
        g, h = Q @ alpha, Q[:, elbow] @ eta
        rest = np.setdiff1d(np.arange(len(P)), elbow)
        meets = np.array([(g[i] - lam * h[i]) / (1 - h[i]) for i in rest])
        hits = [(value, int(i)) for value, i in zip(meets, rest, strict=True) if value < lam * (1 - 1e-10)]
        for k, i in enumerate(elbow):
            bound = 0.0 if eta[k] > 0 else 1.0
            hits.append((lam - (alpha[i] - bound) / eta[k], i))
        after, who = max((hit for hit in hits if hit[0] < lam * (1 - 1e-10)), default=(0.0, -1))
        if after <= end:
            return np.array(found)
        alpha[elbow] -= (lam - after) * eta
        if who in elbow:
            alpha[who] = np.round(alpha[who])
        elbow = [i for i in elbow if i != who] if who in elbow else [*elbow, who]
        lam = after
        found.append(lam)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("n", [5, 20, 60])
def test_breakpoints_are_those_of_plain_numpy(n, kernel):
    """On a tree: an even cycle of pairs would let two come to the margin at once, in general position too."""
    rng = np.random.default_rng(n)
    index = np.array([(k, rng.integers(k)) for k in range(1, n)])
    pairs, y = (
        Pairs(rng.standard_normal((n, n if kernel == "linear" else 2)), index),
        rng.choice([-1, 1], n - 1),
    )
    parameters = {"gamma": 0.5} if kernel == "rbf" else {}
    expected = plain_path(signed(pairs, y), pairwise_kernels(pairs.items, metric=kernel, **parameters), 0.1)
    path = ranksvm_path(pairs, y, kernel, lambda_min=0.1, **parameters)
    assert path.lambda_end == 0.1
    assert len(expected) > n / 2
    np.testing.assert_allclose(path.breakpoints, expected, rtol=1e-7)


def test_watching_some_pairs_changes_nothing(monkeypatch):
    pairs, y = two_classes(120, seed=0, p=4)
    some = ranksvm_path(pairs, y, gamma=0.3, lambda_min=0.05)
    monkeypatch.setattr(walk, "_FEW", len(y))
    all_of_them = ranksvm_path(pairs, y, gamma=0.3, lambda_min=0.05)
    assert len(y) > 3000
    assert some.status == all_of_them.status == "complete"
    np.testing.assert_allclose(some.breakpoints, all_of_them.breakpoints, rtol=1e-8)
    assert [event[1:] for event in some.events] == [event[1:] for event in all_of_them.events]
    assert max(some.kkt_residual(lam) for lam in some.breakpoints[::20]) < 1e-10


def test_one_lambda_is_the_machine_of_svmrank():
    pairs, y = two_classes(40, seed=3)
    path = ranksvm_path(pairs, y, gamma=0.5)
    for lam in (50.0, 5.0, 0.5, 0.05):
        machine = SVMRank(C=1 / lam, gamma=0.5).fit(pairs, y)
        expected = machine.decision_function(pairs)
        np.testing.assert_allclose(path.decision_function(lam, pairs), expected, atol=1e-6)
        assert path.objective(lam) * (1 / lam) == pytest.approx(machine.objective_, rel=1e-8)
        assert path.duality_gap(lam) < 1e-10


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, COUNT - 1), shuffle=st.integers(0, 1000))
def test_order_and_orientation_of_pairs_change_nothing(seed, shuffle):
    pairs, y, kernel = small_problem(seed)
    rng = np.random.default_rng(shuffle)
    order, items, swap = rng.permutation(len(y)), rng.permutation(len(pairs.items)), rng.random(len(y)) < 0.5
    index = np.argsort(items)[pairs.index]
    index[swap] = index[swap][:, ::-1]
    other = Pairs(pairs.items[items], index)[order]
    before = ranksvm_path(pairs, y, **kernel)
    after = ranksvm_path(other, np.where(swap, -y, y)[order], **kernel)
    if len(before.breakpoints) == 0:
        assert len(after.breakpoints) == 0
        return
    kept = min(len(before.breakpoints), len(after.breakpoints), 20)
    np.testing.assert_allclose(after.breakpoints[:kept], before.breakpoints[:kept], rtol=1e-7)
    for lam in before.breakpoints[0] * np.array([2.0, 0.7, 0.3, 0.01]):
        np.testing.assert_allclose(
            after.decision_function(lam, pairs.items), before.decision_function(lam, pairs.items), atol=1e-7
        )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, COUNT - 1), times=st.integers(2, 4))
def test_a_repeated_pair_counts_as_often(seed, times):
    """All pairs k times: the path at k lambda. One pair k times is tried by the small problems themselves."""
    pairs, y, kernel = small_problem(seed)
    once, often = (
        ranksvm_path(pairs, y, **kernel),
        ranksvm_path(pairs[np.tile(np.arange(len(y)), times)], np.tile(y, times), **kernel),
    )
    np.testing.assert_allclose(often.breakpoints[:3], times * once.breakpoints[:3], rtol=1e-8)
    lam = once.breakpoints[0] / 3 if len(once.breakpoints) else 1.0
    np.testing.assert_allclose(
        often.decision_function(times * lam, pairs), once.decision_function(lam, pairs), atol=1e-8
    )
    assert often.kkt_residual(times * lam) < 1e-8
    assert often.alpha(times * lam).shape == (times * len(y),)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_offset_of_the_features_changes_nothing(kernel):
    pairs, y = two_classes(30, seed=5)
    before = ranksvm_path(pairs, y, kernel, gamma=0.5, lambda_min=0.5)
    after = ranksvm_path(Pairs(pairs.items + 1e5, pairs.index), y, kernel, gamma=0.5, lambda_min=0.5)
    np.testing.assert_allclose(after.breakpoints, before.breakpoints, rtol=1e-6)
    assert max(after.kkt_residual(lam) for lam in after.breakpoints) < 1e-8


def test_answers_fit_together():
    pairs, y = two_classes(25, seed=1)
    path = ranksvm_path(pairs, y, gamma=0.5)
    assert isinstance(path, RegularizationPath)
    assert (np.diff(path.breakpoints) < 0).all()
    inside = {}
    for lam, pair, kind in path.events:
        assert np.isclose(path.breakpoints, lam, rtol=1e-9).any()
        assert (kind == "enter") != inside.get(pair, False)
        inside[pair] = kind == "enter"
        assert abs(path.margins(lam)[pair] - 1) < 1e-8
    assert max(path.kkt_residual(lam) for lam in path.breakpoints) < 1e-8
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


def test_alpha_and_g_are_linear_between_breakpoints():
    pairs, y = two_classes(25, seed=2)
    path = ranksvm_path(pairs, y, gamma=0.5)
    for begin, end in zip(path.breakpoints[:-1:7], path.breakpoints[1::7], strict=False):
        middle, share = 0.7 * begin + 0.3 * end, 0.7
        mixed = share * path.alpha(begin) + (1 - share) * path.alpha(end)
        np.testing.assert_allclose(path.alpha(middle), mixed, atol=1e-9)
        g = [lam * path.decision_function(lam, pairs) for lam in (begin, middle, end)]
        np.testing.assert_allclose(g[1], share * g[0] + (1 - share) * g[2], atol=1e-9 * begin)


def test_a_gram_matrix_a_callable_and_arrays_are_taken_too():
    pairs, y = two_classes(20, seed=4)
    K = rbf_kernel(pairs.items, gamma=0.5)
    named = ranksvm_path(pairs, y, gamma=0.5)
    given_gram = ranksvm_path(Pairs(K, pairs.index), y, "precomputed")
    called = ranksvm_path(np.asarray(pairs), y, lambda X, Y: rbf_kernel(X, Y, gamma=0.5))
    np.testing.assert_allclose(called.breakpoints, named.breakpoints, rtol=1e-7)
    expected = named.decision_function(1.0, pairs.items[:3])
    np.testing.assert_allclose(given_gram.decision_function(1.0, K[:3]), expected, atol=1e-9)
    np.testing.assert_allclose(called.decision_function(1.0, pairs.items[:3]), expected, atol=1e-9)


def test_max_events_keeps_what_was_computed():
    pairs, y = two_classes(60, seed=0)
    whole = ranksvm_path(pairs, y, gamma=0.5, lambda_min=1.0)
    part = ranksvm_path(pairs, y, gamma=0.5, max_events=30)
    assert (whole.status, part.status) == ("complete", "max_events")
    assert len(part.breakpoints) == 30
    np.testing.assert_allclose(part.breakpoints, whole.breakpoints[:30], rtol=1e-12)
    assert part.lambda_end == pytest.approx(whole.breakpoints[30], rel=1e-10)
    np.testing.assert_allclose(part.alpha(part.breakpoints[-1]), whole.alpha(part.breakpoints[-1]), atol=1e-9)
    with pytest.raises(ValueError, match="below the end of the path"):
        part.alpha(0.99 * part.lambda_end)


@pytest.mark.parametrize("loop", [2, 3, 4])
def test_a_cycle_has_no_breakpoint(loop):
    index = [(k, (k + 1) % loop) for k in range(loop)]
    path = ranksvm_path(Pairs(np.eye(loop), index), np.ones(loop, dtype=int))
    assert (path.status, len(path.breakpoints), path.events) == ("complete", 0, [])
    np.testing.assert_array_equal(path.alpha(0.1), 1.0)
    np.testing.assert_allclose(path.decision_function(0.1, np.eye(loop)), 0.0, atol=1e-12)
    assert path.kkt_residual(0.1) < 1e-12


def test_an_empty_margin_set_in_the_middle():
    """A strong pair leaves the margin before a weak one comes to it."""
    path = ranksvm_path(Pairs([[0.0], [10.0], [1.0]], [[1, 0], [2, 0]]), [1, 1], "linear")
    lam = next(lam for lam, _, kind in path.events if kind == "leave at 0")
    after = next(later for later, _, kind in path.events if kind == "enter" and later < lam)
    between = (lam + after) / 2
    assert len(path.sets(between).on) == 0
    assert path.kkt_residual(between) < 1e-12
    assert path.kkt_residual(after) < 1e-12


def test_memory_is_that_of_the_items_and_of_vectors():
    pairs, y = two_classes(300, seed=0, p=5)  # 22,500 pairs: their Gram matrix would take 4 GB
    ranksvm_path(pairs, y, gamma=0.2, max_events=10)
    tracemalloc.start()
    path = ranksvm_path(pairs, y, gamma=0.2, lambda_min=20.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(path.breakpoints) > 1000
    assert peak < 40e6


def pair_error(path, lam, pairs, y):
    return float(np.mean(np.sign(path.decision_function(lam, pairs)) != y))


@pytest.mark.parametrize("seed", range(6))
def test_selection_is_exact_over_all_lambda(seed):
    """Every lambda where two items of a pair may meet is a root on a piece; the error is constant between."""
    pairs, y = two_classes(16, seed=seed)
    valid, y_valid = two_classes(14, seed=100 + seed)
    path = ranksvm_path(pairs, y, gamma=0.7, lambda_min=0.02)
    knots = np.append(path.breakpoints, path.lambda_end)
    g = np.array([lam * path.decision_function(lam, valid) for lam in knots])
    meets = [*knots]
    for k in range(len(knots) - 1):
        turned = np.flatnonzero(g[k] * g[k + 1] < 0)
        share = g[k, turned] / (g[k, turned] - g[k + 1, turned])
        meets += (knots[k] + share * (knots[k + 1] - knots[k])).tolist()
    edges = np.unique(meets)[::-1]
    middles = (edges[1:] + edges[:-1]) / 2
    errors = np.array([pair_error(path, lam, valid, y_valid) for lam in middles])
    found = path.select(valid, y_valid)
    assert found.loss == errors.min()
    assert pair_error(path, found.lam, valid, y_valid) == found.loss
    held = found.losses[np.searchsorted(-found.lambdas, -middles, side="right") - 1]
    np.testing.assert_array_equal(held, errors)
    assert len(found.lambdas) > 3


def test_selection_by_a_loss_looks_at_the_breakpoints():
    pairs, y = two_classes(20, seed=0)
    valid, y_valid = two_classes(20, seed=1)
    path = ranksvm_path(pairs, y, gamma=0.7, lambda_min=0.1)

    def hinge(labels, differences):
        return float(np.maximum(0, 1 - labels * differences).mean())

    found = path.select(valid, y_valid, loss=hinge)
    expected = [hinge(y_valid, path.decision_function(lam, valid)) for lam in path.breakpoints]
    np.testing.assert_allclose(found.losses, expected, atol=1e-9)
    np.testing.assert_array_equal(found.lambdas, path.breakpoints)
    assert (found.lam, found.loss) == (path.breakpoints[np.argmin(expected)], found.losses.min())


def test_equal_items_are_never_in_order():
    pairs, y = two_classes(12, seed=0)
    twins = Pairs(np.vstack([pairs.items[0], pairs.items[0]]), [[0, 1]])
    path = ranksvm_path(pairs, y, gamma=0.7)
    assert path.select(twins, [1]).loss == path.select(twins, [-1]).loss == 1.0


def broken(**changes):
    pairs, y = two_classes(10, seed=0)
    arguments = {"pairs": pairs, "y": y, "kernel": "rbf"} | changes
    return ranksvm_path(**arguments)


def test_bad_input_says_what_is_wrong():
    pairs, y = two_classes(10, seed=0)
    tied = y.copy()
    tied[3] = 0
    with pytest.raises(ValueError, match=r"y\[3\] is 0, a tie, one of 1"):
        broken(y=tied)
    with pytest.raises(ValueError, match="no pairs"):
        broken(pairs=pairs[:0], y=y[:0])
    with pytest.raises(ValueError, match=r"lambda_min is 1e\+06, and above .* all weights are 1"):
        broken(lambda_min=1e6)
    first = broken().breakpoints[0]
    with pytest.raises(ValueError, match="all weights are 1"):
        broken(lambda_min=first)
    with pytest.raises(ValueError, match="lambda_min is -1"):
        broken(lambda_min=-1)
    with pytest.raises(ValueError, match="max_events is 0"):
        broken(max_events=0)
    with pytest.raises(NotPositiveSemidefiniteError, match="eigenvalues from"):
        broken(kernel=lambda X, Y: -rbf_kernel(X, Y))
    rough = rbf_kernel(pairs.items)
    rough[0, 1] += 0.5
    with pytest.raises(ValueError, match=r"expected a symmetric K"):
        broken(pairs=Pairs(rough, pairs.index), kernel="precomputed")
    with pytest.raises(ValueError, match="finite"):
        broken(kernel=lambda X, Y: rbf_kernel(X, Y) * np.nan)
    with pytest.raises(ValueError, match="kernel is 'rfb'"):
        broken(kernel="rfb")
    path = broken()
    for lam in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="lambda is"):
            path.alpha(lam)
    with pytest.raises(ValueError, match="X has shape"):
        path.decision_function(1.0, np.ones((2, 5)))
    with pytest.raises(ValueError, match="expected"):
        path.select(pairs, tied)
    loop = ranksvm_path(Pairs(np.eye(2), [[0, 1], [1, 0]]), [1, 1])
    with pytest.raises(ValueError, match="no breakpoint"):
        loop.select(pairs, y)


@pytest.mark.parametrize("seed", range(40))
def test_items_that_are_nearly_equal(seed):
    """Pairs that depend on each other but for 1e-7 are replayed as they were followed."""
    rng = np.random.default_rng(seed)
    base = rng.integers(-2, 3, (3, 2)).astype(float)
    X = base[rng.integers(3, size=6)] + 1e-7 * rng.standard_normal((6, 2))
    first = rng.integers(6, size=6)
    index = np.column_stack([first, (first + rng.integers(1, 6, size=6)) % 6])
    path = ranksvm_path(Pairs(X, index), np.ones(6, dtype=int), "linear")
    assert max((path.kkt_residual(lam) for lam in path.breakpoints), default=0) < 1e-6
    start = path.breakpoints[0] if len(path.breakpoints) else 1.0
    for lam in start * np.array([0.9, 0.1, 1e-2, 1e-3]):
        assert path.kkt_residual(max(lam, path.lambda_end)) < 1e-8


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


def test_the_end_is_sound_and_the_path_cannot_be_changed():
    pairs, y = two_classes(20, seed=0)
    path = ranksvm_path(pairs, y, gamma=0.5)
    assert path.kkt_residual(path.lambda_end or 1e-6) < 1e-8
    with pytest.raises(ValueError, match="read-only"):
        path.breakpoints[0] = 1.0
    assert repr(path).startswith(f"<RankingPath: {len(path.breakpoints)} breakpoints down to")
    with pytest.raises(ValueError, match="the loss at the breakpoints"):
        path.select(pairs, y, loss=lambda labels, z: float("nan"))
    with pytest.raises(ValueError, match="rescale the features"):
        ranksvm_path(Pairs(pairs.items * 1e-100, pairs.index), y, "linear")
    flat = ranksvm_path(Pairs(np.zeros((3, 3)), [[0, 1], [1, 2]]), [1, 1], "precomputed")
    assert len(flat.breakpoints) == 0


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_wide_kernel_is_not_lost_beside_1(kernel):
    """k - 1 falls in proportion to gamma; of the Gaussian one B K B' tends to that of 2 x·x."""
    pairs, y = two_classes(40, 3)
    wide, wider = (ranksvm_path(pairs, y, kernel, gamma=gamma) for gamma in (1e-10, 1e-11))
    end = max(wide.lambda_end / 1e-10, wider.lambda_end / 1e-11, 0.03)
    assert end < 1e-4 * wide.breakpoints[0] / 1e-10
    for lam in np.geomspace(end, 2 * wide.breakpoints[0] / 1e-10, 20):
        margins = wide.margins(1e-10 * lam)
        np.testing.assert_allclose(wider.margins(1e-11 * lam), margins, atol=1e-4)
        np.testing.assert_allclose(y * wide.decision_function(1e-10 * lam, pairs), margins, atol=1e-8)
        if kernel == "rbf":
            linear = ranksvm_path(pairs, y, "linear", lambda_min=lam / 4)
            np.testing.assert_allclose(linear.margins(lam / 2), margins, atol=1e-4)

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from preflearn.datasets import simulate_norm_pairs
from preflearn.path import svm_path, walk
from preflearn.svm import SVMCompare

KINDS = ("rbf", "linear", "separable", "duplicates", "integers", "narrow")


def problem(kind, m, seed, share=0.5, p=3):
    """A Gram matrix and labels; `share` of the labels are +1, at least one of each."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.permutation(m) < np.clip(round(share * m), 1, m - 1), 1.0, -1.0)
    X = rng.standard_normal((m, p))
    X[:, 0] += 0.7 * y
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, m // 2), m)]
    if kind == "integers":
        X = rng.integers(-1, 2, (m, p)) + np.where(y > 0, 1.0, 0.0)[:, None]
    if kind == "separable":
        X[:, 0] += 5 * y
    if kind in ("linear", "separable", "integers"):
        return X @ X.T, y
    return rbf_kernel(X, gamma=20.0 if kind == "narrow" else 0.5), y


def objective(K, y, alpha, lam):
    """The dual, to be minimised: lambda times that of the primal."""
    signed = y * alpha
    return signed @ K @ signed / 2 - lam * alpha.sum()


def between(path, count, rng):
    low = max(path.breakpoints[-1], 1e-3 * path.breakpoints[0])
    return np.exp(rng.uniform(np.log(low), np.log(1.5 * path.breakpoints[0]), count))


@pytest.mark.parametrize("share", [0.5, 0.2, 0.65])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_libsvm_at_random_c(kind, share):
    K, y = problem(kind, 80, seed=5, share=share)
    path = svm_path(K, y)
    for lam in between(path, 15, np.random.default_rng(1)):
        svc = SVC(C=1 / lam, kernel="precomputed", tol=1e-10).fit(K, y)
        alpha = np.zeros(len(y))
        alpha[svc.support_] = np.abs(svc.dual_coef_[0]) * lam
        best = objective(K, y, path.alpha(lam), lam)
        assert best == pytest.approx(objective(K, y, alpha, lam), rel=1e-8)
        # w is unique, and the bias too if a weight is inside (0, 1); libsvm rounds K y y' to float32, which
        # limits it to some 1e-6 of the sum that makes up f.
        ours, theirs = path.decision_function(lam, K), svc.decision_function(K)
        rounding = 1e-5 * max(1.0, 1 / lam)
        np.testing.assert_allclose(ours - path.bias(lam), theirs - svc.intercept_[0], atol=rounding)
        if ((alpha > 1e-6) & (alpha < 1 - 1e-6)).any():
            assert path.bias(lam) == pytest.approx(svc.intercept_[0], abs=rounding)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(KINDS), st.integers(2, 60), st.floats(0.05, 0.95), st.integers(0, 2**31))
def test_optimality_at_and_between_breakpoints(kind, m, share, seed):
    K, y = problem(kind, m, seed, share)
    path = svm_path(K, y)
    lams = path.breakpoints
    assert (np.diff(lams) <= 0).all()
    assert (lams > 0).all()
    for lam in [*lams, *np.sqrt(lams[1:] * lams[:-1]), *(2 * lams[:1])]:
        assert path.kkt_residual(lam) < 1e-8
        assert ((path.alpha(lam) >= 0) & (path.alpha(lam) <= 1)).all()


def test_optimality_of_a_larger_path():
    for kind, share in (("rbf", 0.5), ("rbf", 0.3), ("linear", 0.5), ("duplicates", 0.4)):
        K, y = problem(kind, 400, seed=2, share=share, p=5)
        path = svm_path(K, y, lambda_min=1e-3)
        assert path.lambda_end == pytest.approx(1e-3) or kind == "linear"
        assert max(path.kkt_residual(lam) for lam in path.breakpoints[::5]) < 1e-8


def exact_residuals(K, y, alpha, offset, lam):
    """Violations of the optimality conditions in exact arithmetic on what the path returned."""
    exact = [[Fraction(float(k)) for k in row] for row in K]
    signed = [Fraction(float(a)) * int(s) for a, s in zip(alpha, y, strict=True)]
    yield abs(sum(signed))
    for row, a, s in zip(exact, alpha, y, strict=True):
        excess = int(s) * (sum(k * b for k, b in zip(row, signed, strict=True)) + offset) - Fraction(lam)
        yield -excess if a == 0 else excess if a == 1 else abs(excess)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(KINDS), st.integers(2, 8), st.integers(0, 2**31))
def test_tiny_problems_in_rationals(kind, m, seed):
    K, y = problem(kind, m, seed, share=0.4)
    path = svm_path(K, y)
    for lam in path.breakpoints[:-1] * 0.75 + path.breakpoints[1:] * 0.25:
        offset = Fraction(path.bias(lam)) * Fraction(lam)
        alpha = path.alpha(lam)
        alpha = np.where(alpha < 1e-11, 0.0, np.where(alpha > 1 - 1e-11, 1.0, alpha))
        scale = np.abs(K).max() * m
        assert max(exact_residuals(K, y, alpha, offset, lam)) < 1e-9 * scale


@pytest.mark.parametrize("kind", KINDS)
def test_primal_by_cvxpy(kind):
    K, y = problem(kind, 12, seed=4, share=0.4)
    path = svm_path(K, y)
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    for lam in between(path, 4, np.random.default_rng(0)):
        w, b = cp.Variable(12), cp.Variable()
        loss = cp.sum(cp.pos(1 - cp.multiply(y, root @ w + b))) + lam / 2 * cp.sum_squares(w)
        best = cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL)
        f, signed = path.decision_function(lam, K), y * path.alpha(lam)
        ours = np.maximum(0, 1 - y * f).sum() + signed @ K @ signed / (2 * lam)
        assert ours == pytest.approx(best, rel=1e-6, abs=1e-7)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(("rbf", "narrow")), st.integers(3, 30), st.floats(0.1, 0.9), st.integers(0, 2**31))
def test_invariances(kind, m, share, seed):
    K, y = problem(kind, m, seed, share)
    rng = np.random.default_rng(seed)
    path, order, c = svm_path(K, y), rng.permutation(m), 10 ** rng.uniform(-4, 4)
    permuted, flipped = svm_path(K[np.ix_(order, order)], y[order]), svm_path(K, -y)
    scaled, shifted = svm_path(c * K, y), svm_path(K + 3.0, y)
    for lam in between(path, 5, rng):
        alpha, bias = path.alpha(lam), path.bias(lam)
        tolerance = 1e-6 * max(1, abs(bias))
        np.testing.assert_allclose(permuted.alpha(lam), alpha[order], atol=1e-6)
        np.testing.assert_allclose(flipped.alpha(lam), alpha, atol=1e-6)
        np.testing.assert_allclose(scaled.alpha(c * lam), alpha, atol=1e-6)
        np.testing.assert_allclose(shifted.alpha(lam), alpha, atol=1e-6)
        assert permuted.bias(lam) == pytest.approx(bias, abs=tolerance)
        assert flipped.bias(lam) == pytest.approx(-bias, abs=tolerance)
        assert scaled.bias(c * lam) == pytest.approx(bias, abs=tolerance)


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
        K, y = problem("integers", 12, seed, p=2, share=0.4 + 0.1 * (seed % 2))
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


def test_weights_that_never_change():
    corners = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    path = svm_path(corners @ corners.T, [1, 1, -1, -1])
    assert len(path.breakpoints) == 0
    assert path.alpha(1e-3).tolist() == [1.0] * 4
    assert path.decision_function(1e-3, corners @ corners.T).tolist() == [0.0] * 4
    with pytest.raises(ValueError, match="no breakpoint"):
        path.select(corners @ corners.T, [1, 1, -1, -1])


def test_events_tell_who_is_on_the_margin():
    K, y = problem("rbf", 40, seed=1, share=0.4)
    path = svm_path(K, y)
    margin = set(np.flatnonzero((path.alpha(path.breakpoints[0]) % 1) > 1e-9).tolist())
    for lam, below in zip(path.breakpoints, np.append(path.breakpoints[1:], path.lambda_end), strict=True):
        for _, index, kind in (event for event in path.events if event[0] == lam):
            margin = margin | {index} if kind == "enter" else margin - {index}
        alpha = path.alpha((lam + below) / 2)
        assert set(np.flatnonzero((alpha > 1e-9) & (alpha < 1 - 1e-9)).tolist()) == margin


@pytest.mark.parametrize("kind", ["rbf", "linear", "integers"])
def test_selection_over_every_lambda(kind):
    K, y = problem(kind, 90, seed=3, share=0.4)
    train, valid = np.arange(50), np.arange(50, 90)
    path = svm_path(K[np.ix_(train, train)], y[train])
    K_valid = K[np.ix_(valid, train)]

    def zero_one(truth, f):
        return float(np.mean((f >= -1e-10) != (truth > 0)))

    chosen = path.select(K_valid, y[valid])
    assert (
        chosen.loss == zero_one(y[valid], path.decision_function(chosen.lam, K_valid)) == chosen.losses.min()
    )
    middles = np.sqrt(chosen.lambdas[1:] * chosen.lambdas[:-1])
    for lam, loss in zip(middles, chosen.losses, strict=False):
        assert zero_one(y[valid], path.decision_function(lam, K_valid)) == loss
    grid = between(path, 300, np.random.default_rng(0))
    errors = [
        zero_one(y[valid], path.decision_function(lam, K_valid)) for lam in grid if lam < path.breakpoints[0]
    ]
    assert chosen.loss <= min(errors)

    hinge = path.select(K_valid, y[valid], loss=lambda truth, f: np.maximum(0, 1 - truth * f).mean())
    for lam, loss in zip(hinge.lambdas[::7], hinge.losses[::7], strict=True):
        f = path.decision_function(lam, K_valid)
        assert np.maximum(0, 1 - y[valid] * f).mean() == pytest.approx(loss, rel=1e-7)
    assert hinge.loss == hinge.losses.min()


@pytest.mark.parametrize(
    ("K", "y", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], [1, -1], "symmetric"),
        ([[1.0, np.nan], [np.nan, 1.0]], [1, -1], r"K\[0, 1\] is nan"),
        ([[1.0, 0.0]], [1, -1], r"shape \(1, 2\)"),
        (np.eye(3), [1, -1], "2 labels for 3"),
        (np.eye(2), [1, 0], r"y\[1\]"),
        (np.eye(2), [1, 1], "expected both"),
        ([[1.0, 2.0], [2.0, 1.0]], [1, -1], "eigenvalue of -1 "),
        (np.eye(400) - 0.1, np.tile([1, -1], 200), "eigenvalue of -39"),
    ],
)
def test_bad_problems(K, y, message):
    with pytest.raises(ValueError, match=message):
        svm_path(K, y)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        *[
            (lambda path, K, y, lam=lam: path.alpha(lam), "positive finite")
            for lam in (0.0, -1.0, np.nan, np.inf)
        ],
        (lambda path, K, y: path.bias(0.001), r"below the end of the path at 0\.01"),
        (
            lambda path, K, y: path.decision_function(1.0, np.ones((2, 3))),
            r"shape \(2, 3\); expected \(n, 30\)",
        ),
        (lambda path, K, y: path.decision_function(1.0, np.full((1, 30), np.nan)), "nan"),
        (lambda path, K, y: svm_path(K, y, lambda_min=-1.0), "lambda_min"),
    ],
)
def test_bad_queries(query, message):
    K, y = problem("rbf", 30, seed=0)
    with pytest.raises(ValueError, match=message):
        query(svm_path(K, y, lambda_min=0.01), K, y)


@pytest.mark.parametrize(("m", "share"), [(700, 0.3), (900, 0.5)])
def test_the_path_ends_where_rounding_takes_over(m, share):
    K, y = problem("duplicates", m, seed=1, share=share)
    with pytest.warns(ConvergenceWarning, match="rounding ends the path"):
        path = svm_path(K, y)
    assert 0 < path.lambda_end < 1e-6
    assert max(path.kkt_residual(lam) for lam in path.breakpoints[::20]) < 1e-8


def flipped_problem(n, seed, share=0.5, gamma=1.0):
    """Simulated comparisons, with the Gram matrix of their flipped differences (eq. 8 of P1)."""
    data = simulate_norm_pairs(2, n, share, np.random.default_rng(seed))
    flipped, labels = data.pairs.flipped(data.y)
    return data.pairs, data.y, differences_gram(flipped, flipped, gamma), labels


def differences_gram(rows, columns, gamma):
    K = rbf_kernel(rows.items, columns.items, gamma=gamma)
    return columns.B.differences(rows.B.differences(K).T).T


def test_machines_that_compare_at_every_c():
    # The comparison loss of SVMCompare counts the errors of the binary machine on the flipped pairs.
    pairs, y, K, labels = flipped_problem(60, seed=0)
    path = svm_path(K, labels)
    new = simulate_norm_pairs(2, 80, 0.5, np.random.default_rng(1))
    flipped, new_labels = new.pairs.flipped(new.y)
    K_new = differences_gram(flipped, pairs.flipped(y)[0], gamma=1.0)
    chosen = path.select(K_new, new_labels)
    for lam in between(path, 8, np.random.default_rng(2)):
        if lam > path.breakpoints[0]:
            continue
        machine = SVMCompare(C=1 / lam, gamma=1.0).fit(pairs, y)
        assert machine.bias_ == pytest.approx(path.bias(lam), abs=1e-6)
        errors = np.count_nonzero(machine.predict(new.pairs) != new.y)
        place = np.searchsorted(-chosen.lambdas, -lam, side="right") - 1
        assert errors == pytest.approx(chosen.losses[place] * len(new_labels), abs=1e-9)


def ties_around_nought(m, p, seed):
    """The smaller class comes as x and -x: for large lambda all points of the larger are on the margin."""
    rng = np.random.default_rng(seed)
    X, t = rng.standard_normal((m, p)), rng.standard_normal((m // 4, p))
    X = np.vstack([X, t, -t])
    return X @ X.T, np.repeat([1.0, -1.0], [m, 2 * (m // 4)])


def ties_and_swaps(norm, share, repeat, gamma):
    """A training set of the simulations of chapter 05, where largest violations go round in a cycle."""
    rng = np.random.default_rng([0, repeat, 400, round(100 * share), ("l1", "l2", "linf").index(norm)])
    pairs, y, _ = simulate_norm_pairs(norm, 400, share, rng)
    rows, labels = pairs.flipped(y)
    return differences_gram(rows, rows, gamma), labels


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (ties_around_nought, (10, 4, 3)),
        (ties_and_swaps, ("linf", 0.3, 16, 2 ** (-52 / 9))),
    ],
)
def test_all_of_the_larger_class_on_the_margin_at_the_start(make, arguments):
    K, y = make(*arguments)
    path = svm_path(K, y, lambda_min=1e-4)
    assert path.lambda_end == pytest.approx(1e-4)
    first = path.breakpoints[0]
    for lam in (10 * first, first, 0.5 * first, 0.01 * first, 1e-4):
        assert path.kkt_residual(lam) < 1e-8


def textbook_path(K, y, lam, alpha, elbow, end):
    """Breakpoints of [Hastie2004] where no two events coincide: dense algebra on all points at each."""
    elbow, found = list(elbow), []
    while True:
        signed, n = y[elbow], len(elbow)
        system = np.block([[K[np.ix_(elbow, elbow)], np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        rates = np.linalg.solve(system, np.append(signed, 0.0))  # change of y alpha, and of the offset
        offset = np.mean(lam * signed - K[elbow] @ (y * alpha))
        gaps = y * (K @ (y * alpha) + offset) - lam
        dgaps = y * (K[:, elbow] @ rates[:-1] + rates[-1]) - 1
        stay = np.where(np.isin(np.arange(len(y)), elbow), 0.0, dgaps)
        with np.errstate(divide="ignore", invalid="ignore"):
            hits = np.where(np.abs(stay) > 1e-9, gaps / stay, np.nan)
            da = signed * rates[:-1]
            leaves = np.where(da > 0, alpha[elbow], alpha[elbow] - 1) / da
        hits, leaves = np.where(hits > 1e-9, hits, np.inf), np.where(leaves > 1e-9, leaves, np.inf)
        step = min(hits.min(), leaves.min())
        if lam - step < end:
            return np.array(found)
        alpha[elbow] -= step * da
        lam -= step
        found.append(lam)
        if hits.min() < leaves.min():
            elbow.append(int(np.argmin(hits)))
        else:
            alpha[elbow[int(np.argmin(leaves))]] = np.round(alpha[elbow[int(np.argmin(leaves))]])
            elbow.pop(int(np.argmin(leaves)))


@pytest.mark.parametrize("seed", range(4))
def test_breakpoints_of_the_textbook(seed):
    K, y = problem("rbf", 70, seed, share=0.4)
    path = svm_path(K, y, lambda_min=0.02)
    first = path.breakpoints[1]
    begin = (first + path.breakpoints[2]) / 2
    alpha = path.alpha(begin)
    elbow = np.flatnonzero((alpha > 1e-9) & (alpha < 1 - 1e-9))
    expected = textbook_path(K, y, begin, alpha, elbow, 0.03)
    ours = path.breakpoints[(path.breakpoints < begin) & (path.breakpoints > 0.03)]
    np.testing.assert_allclose(ours, expected, rtol=1e-8)
    assert len(ours) > 50


@pytest.mark.parametrize("kind", ["rbf", "duplicates", "integers"])
@pytest.mark.parametrize(("events", "reach"), [(1, 1e-4), (30, 1e-4), (7, 0.05), (1000, 1.0)])
def test_who_is_watched_does_not_matter(kind, events, reach, monkeypatch):
    K, y = problem(kind, 90, seed=6, share=0.35)
    expected = svm_path(K, y, lambda_min=0.05)
    for name, value in (("_FEW", 3), ("_FEWER", events), ("_ROOM", 1), ("_REACH", reach)):
        monkeypatch.setattr(walk, name, value)
    path = svm_path(K, y, lambda_min=0.05)
    if kind == "rbf":
        np.testing.assert_allclose(path.breakpoints, expected.breakpoints, rtol=1e-9)
        assert [event[1:] for event in path.events] == [event[1:] for event in expected.events]
    for lam in between(expected, 20, np.random.default_rng(0)):
        if lam >= 0.05:
            assert path.kkt_residual(lam) < 1e-9
            ours, theirs = path.decision_function(lam, K), expected.decision_function(lam, K)
            np.testing.assert_allclose(ours, theirs, atol=1e-7 * np.abs(theirs).max())


def test_rounding_in_a_gram_matrix_is_no_asymmetry():
    K, y = problem("rbf", 300, seed=0)
    noise = 1e-13 * np.random.default_rng(0).standard_normal(K.shape)
    path, exact = svm_path(K + noise, y, lambda_min=0.1), svm_path(K, y, lambda_min=0.1)
    np.testing.assert_allclose(path.alpha(0.2), exact.alpha(0.2), atol=1e-8)
    K[280, 3] += 1e-6
    with pytest.raises(ValueError, match=r"K\[3, 280\] is .* but K\[280, 3\]"):
        svm_path(K, y)


@pytest.mark.parametrize("kind", ["rbf", "linear", "narrow"])
def test_a_constant_in_the_kernel_changes_nothing_but_the_bias(kind):
    K, y = problem(kind, 60, seed=2)
    path, shifted = svm_path(K, y, lambda_min=0.05), svm_path(K + 1e6, y, lambda_min=0.05)
    for lam in between(path, 20, np.random.default_rng(0)):
        lam = max(lam, 0.05)
        f = path.decision_function(lam, K[:7])
        np.testing.assert_allclose(shifted.decision_function(lam, K[:7] + 1e6), f, atol=1e-6)
        assert shifted.bias(lam) == pytest.approx(path.bias(lam), abs=1e-4)  # 1e6 sum(y alpha) = 0
        assert shifted.kkt_residual(lam) < 1e-7


@pytest.mark.parametrize("scale", [1e-13, 1.0, 1e13])
@pytest.mark.parametrize("kind", ["rbf", "linear", "narrow", "separable"])
def test_the_path_ends_before_decisions_are_rounding(kind, scale):
    K, y = problem(kind, 40, seed=1)
    path = svm_path(scale * K, y)
    lowest = max(path.lambda_end, 1e-16 * path.breakpoints[0])
    for lam in np.geomspace(lowest, path.breakpoints[0], 40)[1:]:
        # In a narrow kernel the elbow may rest 1e-12 of the largest F off the margin, at every lambda.
        assert path.kkt_residual(lam) < (1e-3 if kind == "narrow" else 1e-5)


def test_a_lambda_min_below_rounding_is_warned_about():
    with pytest.warns(ConvergenceWarning, match="rounding ends the path"):
        path = svm_path(*problem("duplicates", 60, seed=1), lambda_min=1e-14)
    assert path.status == "rounding"
    assert path.lambda_end > 1e-14


def test_a_scale_beyond_all_products_is_refused():
    K, y = problem("rbf", 10, seed=0)
    for scale in (1e-310, 1e-200, 1e150):
        with pytest.raises(ValueError, match=r"the largest entry of K is .*; expected 0, or 1e-100 to"):
            svm_path(scale * K, y)


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


def test_a_path_that_rounding_spoils_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), np.where(np.arange(30) % 2, 1, -1)
    with pytest.warns(ConvergenceWarning, match="at the end the duality gap is .* of the objective"):
        path = svm_path((1 + 30 * X @ X.T) ** 3, y, lambda_min=1e-7)
    assert path.duality_gap(1e-7) > 1e-4


def test_a_constant_and_its_rounding_is_no_kernel():
    K = np.ones((3, 3))
    K[0, 2] = K[2, 0] = 1 - 9e-16
    path = svm_path(K, [-1, 1, -1])
    assert len(path.breakpoints) == 0
    assert path.lambda_end == 0


@pytest.mark.parametrize("seed", [9, 17])
def test_a_correction_of_rounding_stays_within_the_bounds(seed):
    # Of a wide kernel, with few independent directions: tiny errors of the margin are large moves of weights.
    X = np.random.default_rng(seed).standard_normal((300, 3))
    path = svm_path(rbf_kernel(X, gamma=0.003), np.repeat([1.0, -1.0], [270, 30]), lambda_min=1e-3)
    assert path.kkt_residual(1e-3) < 1e-8

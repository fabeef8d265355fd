import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from preflearn.margins import MarginLP, MarginQP, NotSeparableError, central, cone_distance
from preflearn.pairs import Pairs

LABELS = {"both": (-1, 1), "first": (1,), "second": (-1,)}


def separable(seed, m=None, p=None, tie_share=None, labels=None, n_ties=None):
    """Random pairs that w separates: |w·d| < 1 for ties, y w·d > 1.2 for preferences."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 21)) if p is None else p
    m = int(rng.integers(4, 50)) if m is None else m
    tie_share = rng.choice([0.1, 0.5, 0.9]) if tie_share is None else tie_share
    n_ties = int(np.clip(round(tie_share * m), 1, m - 1)) if n_ties is None else n_ties
    labels = LABELS[labels or rng.choice(list(LABELS))]
    y = rng.permutation(np.append(np.zeros(n_ties, int), rng.choice(labels, m - n_ties)))
    w = rng.standard_normal(p)
    d = rng.standard_normal((m, p))
    wanted = np.where(y == 0, rng.uniform(-1, 1, m), y * (1.2 + rng.exponential(size=m)))
    d += np.outer(wanted - d @ w, w) / (w @ w)
    second = rng.standard_normal((m, p))
    return Pairs.from_arrays(second + d, second), y


def split(pairs, y):
    d = pairs.first - pairs.second
    return d[y != 0] * y[y != 0][:, None], d[y == 0]


def lp_by_simplex_dual(pairs, y):
    """The dual of eq. 7, as a primal: min sum of ties' minus preferences' weights, all at once."""
    preferences, ties = split(pairs, y)
    columns = np.vstack([preferences, -ties, ties]).T
    cost = np.repeat([-1.0, 1.0], [len(preferences), 2 * len(ties)])
    A = np.vstack([columns, np.ones(len(cost))])
    result = linprog(cost, A_eq=A, b_eq=np.append(np.zeros(len(columns)), 1.0), method="highs-ipm")
    assert result.status == 0
    return result.fun


def qp_by_cvxpy(pairs, y):
    preferences, ties = split(pairs, y)
    u, beta = cp.Variable(ties.shape[1]), cp.Variable()
    constraints = [beta + cp.abs(ties @ u) <= -1, beta + preferences @ u >= 1]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(u)), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value, u.value


def check_lp(lp, pairs, y):
    preferences, ties = split(pairs, y)
    assert 0 < lp.margin_ <= 1 + 1e-12
    assert (preferences @ lp.coef_).min() - 1 >= lp.margin_ - 1e-9
    assert 1 - np.abs(ties @ lp.coef_).max() >= lp.margin_ - 1e-9
    preferred = np.abs(lp.dual_coef_[y != 0]).sum()
    assert lp.margin_ == pytest.approx(1 - 2 * preferred, abs=1e-9)
    d = pairs.first - pairs.second
    np.testing.assert_allclose(lp.dual_coef_ @ d, 0, atol=1e-9 * np.abs(d).max())
    assert (lp.dual_coef_ * y >= 0).all()
    assert set(np.flatnonzero(lp.dual_coef_)) <= set(lp.active_)


def check_qp(qp, pairs, y):
    preferences, ties = split(pairs, y)
    assert qp.kkt_residual_ < 1e-10
    assert (qp.bias_ + preferences @ qp.u_).min() == pytest.approx(1, abs=1e-9)
    assert (qp.bias_ + np.abs(ties @ qp.u_)).max() == pytest.approx(-1, abs=1e-9)
    np.testing.assert_allclose(
        qp.dual_coef_ @ (pairs.first - pairs.second), qp.u_, atol=1e-9 * np.abs(qp.u_).max()
    )
    assert np.abs(qp.dual_coef_[y != 0]).sum() == pytest.approx(qp.u_ @ qp.u_ / 2, rel=1e-9)
    assert (qp.dual_coef_ * y >= 0).all()
    np.testing.assert_array_equal(qp.support_, np.flatnonzero(qp.dual_coef_))
    np.testing.assert_allclose(qp.coef_, -qp.u_ / qp.bias_)
    assert qp.margin_ == pytest.approx(-1 / qp.bias_)


def checked(pairs, y):
    """Both programs, after a comparison with independent formulations."""
    lp, qp = MarginLP().fit(pairs, y), MarginQP().fit(pairs, y)
    assert lp.margin_ == pytest.approx(lp_by_simplex_dual(pairs, y), abs=1e-7)
    value, u = qp_by_cvxpy(pairs, y)
    assert qp.u_ @ qp.u_ == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(qp.u_, u, atol=1e-6 * np.abs(u).max())
    check_lp(lp, pairs, y)
    check_qp(qp, pairs, y)
    return lp, qp


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 7, 9, 12, 16, 20])
def test_optima_agree_with_independent_formulations(p, labels):
    for k, share in enumerate([0.01, 0.5, 0.95]):
        pairs, y = separable([p, k], p=p, tie_share=share, labels=labels)
        lp, qp = checked(pairs, y)
        # Lemma 3.1: the weights of the QP are feasible for the LP, and no better than its own.
        assert qp.margin_ <= lp.margin_ + 1e-10
        np.testing.assert_array_equal(qp.predict(pairs), y)
        np.testing.assert_array_equal(lp.predict(pairs), y)


@pytest.mark.parametrize(("m", "p"), [(3000, 5), (500, 30), (12, 40)])
def test_larger_and_wider_problems(m, p):
    pairs, y = separable(m + p, m=m, p=p, tie_share=0.4, labels="both")
    lp, qp = MarginLP().fit(pairs, y), MarginQP().fit(pairs, y)
    assert lp.margin_ == pytest.approx(lp_by_simplex_dual(pairs, y), abs=1e-7)
    check_lp(lp, pairs, y)
    check_qp(qp, pairs, y)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**31), st.integers(1, 5))
def test_nearest_points_of_the_hulls(seed, p):
    pairs, y = separable(seed, m=12, p=p)
    qp = MarginQP().fit(pairs, y)
    preferences, ties = split(pairs, y)
    ties = np.vstack([ties, -ties])
    a, b = cp.Variable(len(preferences), nonneg=True), cp.Variable(len(ties), nonneg=True)
    problem = cp.Problem(
        cp.Minimize(cp.norm(preferences.T @ a - ties.T @ b)), [cp.sum(a) == 1, cp.sum(b) == 1]
    )
    problem.solve(solver=cp.CLARABEL)
    assert 2 / np.linalg.norm(qp.u_) == pytest.approx(problem.value, rel=1e-6, abs=1e-8)


def variants(pairs, y, rng):
    order = rng.permutation(len(pairs))
    yield pairs[order], y[order]
    flip = rng.random(len(pairs)) < 0.5
    yield (
        Pairs(pairs.items, np.where(flip[:, None], pairs.index[:, ::-1], pairs.index)),
        np.where(flip, -y, y),
    )
    renamed = rng.permutation(len(pairs.items))
    yield Pairs(pairs.items[renamed], np.argsort(renamed)[pairs.index]), y
    twice = np.append(np.arange(len(pairs)), rng.integers(0, len(pairs), 5))
    yield pairs[twice], y[twice]
    yield Pairs(pairs.items + rng.standard_normal(pairs.items.shape[1]), pairs.index), y
    yield np.stack([pairs.first, pairs.second], axis=1), y


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_invariances(seed, p):
    pairs, y = separable(seed, p=p)
    rng = np.random.default_rng(seed)
    lp, qp = MarginLP().fit(pairs, y), MarginQP().fit(pairs, y)
    for other, labels in variants(pairs, y, rng):
        lp2, qp2 = MarginLP().fit(other, labels), MarginQP().fit(other, labels)
        assert lp2.margin_ == pytest.approx(lp.margin_, abs=1e-9)
        np.testing.assert_allclose(lp2.coef_, lp.coef_, atol=1e-7 * np.abs(lp.coef_).max())
        np.testing.assert_allclose(qp2.u_, qp.u_, atol=1e-8 * np.abs(qp.u_).max())
        assert qp2.bias_ == pytest.approx(qp.bias_, rel=1e-8)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**31), st.integers(1, 6), st.floats(-6, 6))
def test_linear_maps(seed, p, exponent):
    pairs, y = separable(seed, p=p)
    rng = np.random.default_rng(seed)
    lp, qp = MarginLP().fit(pairs, y), MarginQP().fit(pairs, y)

    def mapped(A):
        return Pairs(pairs.items @ A.T, pairs.index)

    A = rng.standard_normal((p, p)) + 3 * np.eye(p)
    assert MarginLP().fit(mapped(A), y).margin_ == pytest.approx(lp.margin_, abs=1e-8)
    c = 10.0**exponent
    scaled = MarginQP().fit(mapped(c * np.eye(p)), y)
    np.testing.assert_allclose(scaled.u_ * c, qp.u_, atol=1e-8 * np.abs(qp.u_).max())
    assert scaled.bias_ == pytest.approx(qp.bias_, rel=1e-8)
    assert MarginLP().fit(mapped(c * np.eye(p)), y).margin_ == pytest.approx(lp.margin_, abs=1e-9)
    Q = np.linalg.qr(A)[0]
    np.testing.assert_allclose(MarginQP().fit(mapped(Q), y).u_, Q @ qp.u_, atol=1e-7 * np.abs(qp.u_).max())


@pytest.mark.parametrize("scales", [(1e3, 1, 1, 1), (1, 1e3, 1e-2, 1), (1e6, 1e6, 1e6, 1e6)])
def test_mixed_scales(scales):
    pairs, y = separable(5, m=100, p=4, tie_share=0.5, labels="both")
    scaled = Pairs(pairs.items * np.array(scales), pairs.index)
    assert MarginLP().fit(scaled, y).margin_ == pytest.approx(MarginLP().fit(pairs, y).margin_, abs=1e-10)
    assert MarginQP().fit(scaled, y).kkt_residual_ < 1e-9


def test_a_scale_beyond_floats_is_reported():
    pairs, y = separable(1, m=200, p=6, tie_share=0.5, labels="both")
    scaled = Pairs(pairs.items * np.array([1e6, 1e-6, 1, 1, 1, 1e3]), pairs.index)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        residual = MarginQP().fit(scaled, y).kkt_residual_
    assert (residual > 1e-7) == any(w.category is ConvergenceWarning for w in caught)


@pytest.mark.parametrize(("m", "p"), [(150, 100), (600, 60), (40, 400)])
def test_many_features(m, p):
    pairs, y = separable(m + p, m=m, p=p, tie_share=0.5, labels="both")
    lp, _ = checked(pairs, y)
    assert lp.kkt_residual_ < 1e-10


@pytest.mark.parametrize("estimator", [MarginLP(), MarginQP()])
@pytest.mark.parametrize("offset", [1e5, 1e8, -(2.0**40)])
def test_an_offset_of_all_items_changes_nothing(estimator, offset):
    pairs, y = separable(5, m=100, p=4, tie_share=0.5, labels="both")
    items = np.round(pairs.items * 2**10) / 2**10  # whose sums with the offset are exact
    plain = clone(estimator).fit(Pairs(items, pairs.index), y)
    moved = clone(estimator).fit(Pairs(items + offset, pairs.index), y)
    np.testing.assert_array_equal(moved.coef_, plain.coef_)
    assert moved.margin_ == plain.margin_


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("p", [1, 2, 10])
def test_a_narrow_margin_is_accurate_or_reported(gap, p):
    rng = np.random.default_rng(p)
    w = np.ones(p) / np.sqrt(p)
    d = rng.standard_normal((60, p))
    y = np.repeat([0, 1], 30)
    wanted = np.where(y == 0, rng.uniform(-1, 1, 60), 1 + gap + rng.exponential(size=60))
    wanted[: p + 1], wanted[30 : 31 + p] = 1, 1 + gap  # enough to hold w
    d += np.outer(wanted - d @ w, w)
    pairs = Pairs.from_arrays(d, 0 * d)
    preferences, ties = split(pairs, y)
    for estimator in (MarginLP(), MarginQP()):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = estimator.fit(pairs, y)
        assert (fitted.kkt_residual_ > 1e-7) == any(w.category is ConvergenceWarning for w in caught)
        assert (preferences @ fitted.coef_).min() > np.abs(ties @ fitted.coef_).max()
        error = 10 * (fitted.kkt_residual_ + 1e-15 / gap)  # the data themselves are rounded
        assert fitted.margin_ == pytest.approx(gap / (2 + gap), rel=error) or fitted.margin_ > gap / 2
        if isinstance(fitted, MarginLP):  # the certificate again, from what was returned
            bound = 1 - 2 * np.abs(fitted.dual_coef_[y != 0]).sum()
            missed = np.abs(fitted.dual_coef_ @ pairs.differences()) @ np.abs(fitted.coef_)
            assert bound + missed <= fitted.margin_ * (1 + fitted.kkt_residual_) + 1e-15


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_a_feature_of_another_scale(scale):
    pairs, y = separable(5, m=200, p=4, tie_share=0.5, labels="both")
    scaled = Pairs(pairs.items * [1, scale, 1, 1], pairs.index)
    lp = MarginLP().fit(scaled, y)
    assert lp.margin_ == pytest.approx(MarginLP().fit(pairs, y).margin_, rel=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        qp = MarginQP().fit(scaled, y)
    assert qp.kkt_residual_ < 1e-6
    np.testing.assert_array_equal(qp.predict(scaled), y)


@pytest.mark.parametrize("estimator", [MarginLP(), MarginQP()])
def test_pairs_that_contradict_each_other(estimator):
    pairs = Pairs([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [2.0, 1.0]], [[1, 0], [2, 1], [3, 2]])
    for y in ([1, 0, 0], [1, -1, 0], [0, 0, 1]):  # the same difference twice; a preference of equal items
        with pytest.raises(NotSeparableError):
            clone(estimator).fit(pairs, y)


def test_several_optima_of_the_lp_give_the_least_norm():
    for seed in range(30):
        pairs, y = separable(seed, m=14, p=int(3 + seed % 8), n_ties=1 + seed % 4)
        doubled = Pairs(np.hstack([pairs.items, pairs.items, 0 * pairs.items[:, :1]]), pairs.index)
        lp = MarginLP().fit(doubled, y)
        preferences, ties = split(doubled, y)
        w = cp.Variable(preferences.shape[1])
        limits = [preferences @ w >= 1 + lp.margin_ - 1e-9, cp.abs(ties @ w) <= 1 - lp.margin_ + 1e-9]
        least = cp.Problem(cp.Minimize(cp.sum_squares(w)), limits).solve(solver=cp.CLARABEL)
        assert lp.coef_ @ lp.coef_ == pytest.approx(least, rel=1e-5)


def test_ties_of_equal_items_only():
    pairs = Pairs([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [0.0, 0.0]], [[1, 0], [2, 0], [0, 3]])
    lp, qp = MarginLP().fit(pairs, [1, 1, 0]), MarginQP().fit(pairs, [1, 1, 0])
    assert (lp.margin_, qp.margin_) == (pytest.approx(1), pytest.approx(1))
    # the least w with w·d >= 2 for both preferences is (2, 2/3)
    np.testing.assert_allclose(lp.coef_, [2, 2 / 3], atol=1e-12)
    np.testing.assert_allclose(qp.coef_, [2, 2 / 3], atol=1e-12)
    assert qp.bias_ == pytest.approx(-1)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_cone_distance_vanishes_exactly_where_the_optima_coincide(seed, p):
    pairs, y = separable(seed, p=p)
    lp, qp = MarginLP().fit(pairs, y), MarginQP().fit(pairs, y)
    distance = cone_distance(lp, pairs, y)
    gap = np.abs(lp.coef_ - qp.coef_).max() / np.abs(lp.coef_).max()
    assert 0 <= distance <= 1 + 1e-12
    assert (distance < 1e-7) == (gap < 1e-7)
    assert (distance < 1e-7) == (lp.margin_ - qp.margin_ < 1e-9)


@pytest.mark.parametrize(
    ("lp", "columns", "m", "message"),
    [
        (None, [0, 1], 3, "lp is None; expected a fitted MarginLP"),
        (MarginQP(), [0, 1], 3, r"lp is MarginQP\(\); expected a fitted MarginLP"),
        (MarginLP(), [0, 1], 2, r"shape \(2, 2\); expected \(3, 2\): the pairs of the fit"),
        (MarginLP(), [0], 3, r"shape \(3, 1\); expected \(3, 2\): the pairs of the fit"),
    ],
)
def test_cone_distance_is_for_the_pairs_of_the_fit(lp, columns, m, message):
    pairs, y = Pairs([[0, 0], [4, 0], [0, 3], [1, 0]], [[1, 0], [2, 0], [3, 0]]), np.array([1, 1, 0])
    if isinstance(lp, MarginLP):
        with pytest.raises(NotFittedError):
            cone_distance(lp, pairs, y)
        lp = clone(lp).fit(pairs, y)
    with pytest.raises(ValueError, match=message):
        cone_distance(lp, Pairs(pairs.items[:, columns], pairs.index[:m]), y[:m])


def test_one_feature_always_coincides_and_two_need_not():
    pairs, y = separable(3, p=1)
    assert cone_distance(MarginLP().fit(pairs, y), pairs, y) == pytest.approx(0, abs=1e-12)
    # One tie (1, 0), one preference (2, 2): the LP can ignore the tie's direction, w = (0, 1), mu = 1;
    # the QP goes from the tie to the preference, u along (1, 2), and so after any scaling of features.
    items = np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 0.0]])
    for scale in (1.0, 0.01, 100.0):
        pairs, y = Pairs(items * [1.0, scale], [[1, 0], [2, 0]]), [1, 0]
        lp, qp = MarginLP().fit(pairs, y), MarginQP().fit(pairs, y)
        np.testing.assert_allclose(lp.coef_, [0, 1 / scale], atol=1e-12)
        np.testing.assert_allclose(qp.u_[1] / qp.u_[0], 2 * scale)
        sine = 1 / np.hypot(1, 2 * scale)
        assert cone_distance(lp, pairs, y) == pytest.approx(sine, rel=1e-9)
        assert qp.margin_ < lp.margin_ == pytest.approx(1)
    assert MarginQP().fit(Pairs(items, [[1, 0], [2, 0]]), y).margin_ == pytest.approx(5 / 7)


@pytest.mark.parametrize("estimator", [MarginLP(), MarginQP()])
class TestEstimators:
    def test_scikit_learn(self, estimator):
        assert clone(estimator).get_params() == {}
        assert estimator.set_params() is estimator
        pairs, y = separable(8, m=120, p=3, tie_share=0.4, labels="both")
        assert cross_val_score(clone(estimator), pairs, y, cv=4).mean() > 0.9
        assert cross_val_score(make_pipeline(clone(estimator)), pairs, y, cv=3).mean() > 0.9

    def test_fit_returns_self_and_leaves_its_input_alone(self, estimator):
        pairs, y = separable(9, m=40, p=3, labels="both")
        items, labels = pairs.items.copy(), y.copy()
        fitted = clone(estimator)
        assert fitted.fit(pairs, y) is fitted
        np.testing.assert_array_equal(pairs.items, items)
        np.testing.assert_array_equal(y, labels)
        assert fitted.n_features_in_ == 3
        np.testing.assert_allclose(fitted.rank_function(items), items @ fitted.coef_)

    def test_a_failed_fit_leaves_no_half_model(self, estimator):
        with pytest.raises(NotSeparableError):
            (unfitted := clone(estimator)).fit(Pairs([[0.0], [1.0]], [[1, 0], [1, 0]]), [1, 0])
        with pytest.raises(NotFittedError):
            unfitted.predict(Pairs([[0.0], [1.0]], [[1, 0]]))

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            ([0, 0, 0], "only ties"),
            ([1, -1, 1], "only preferences"),
            ([1, 0, 2], r"y\[2\]"),
            ([1, 0], "2 labels for 3 pairs"),
            ([1, 0, np.nan], r"y\[2\]"),
        ],
    )
    def test_bad_labels(self, estimator, y, message):
        pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1], [2, 0]])
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(pairs, y)

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.array([[[0.0], [np.nan]], [[1.0], [2.0]]]), "nan"),
            (np.array([[[0.0], [np.inf]], [[1.0], [2.0]]]), "inf"),
            (np.zeros((0, 2, 3)), "empty"),
            (np.zeros((2, 3)), "shape"),
            (np.array([[[1e308], [-1e308]], [[1.0], [2.0]]]), "overflows"),
            (np.array([[[1e-200], [0.0]], [[0.0], [2e-200]]]), "scale"),
        ],
    )
    def test_bad_pairs(self, estimator, array, message):
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(array, [1, 0][: len(array)])

    def test_rank_function_wants_the_same_features(self, estimator):
        pairs, y = separable(2, p=2)
        with pytest.raises(NotFittedError):
            clone(estimator).rank_function([[1.0, 2.0]])
        with pytest.raises(ValueError, match="3 features; expected 2"):
            clone(estimator).fit(pairs, y).rank_function([[1.0, 2.0, 3.0]])

    def test_not_separable(self, estimator):
        pairs = Pairs([[0.0], [1.0], [2.0], [5.0]], [[1, 0], [2, 0], [3, 0]])
        with pytest.raises(NotSeparableError, match=r"0 \(label \+1, weight 1\), 1 \(label \+0") as caught:
            clone(estimator).fit(pairs, [1, 0, 1])
        assert caught.value.certificate.support.tolist() == [0, 1]
        assert "slack" in str(caught.value)

    def test_separable_by_less_than_rounding(self, estimator):
        d = np.array([[7.0, 53.0], [41.0, 19.0], [24.0, np.nextafter(36.0, 0.0)]])
        with pytest.raises(ValueError, match="near the rounding") as caught:
            clone(estimator).fit(Pairs.from_arrays(d, 0 * d), [1, 1, 0])
        assert not isinstance(caught.value, NotSeparableError)


def test_nothing_binds_the_least_optimum(monkeypatch):
    # SciPy's nnls writes past its memory for a matrix without columns: it must never see one.
    def checked(A, b):
        assert A.shape[1] > 0
        return nnls(A, b)

    monkeypatch.setattr(central, "nnls", checked)
    pairs = Pairs([[-2.0, -1.0], [-2.0, -2.0], [-2.0, 1.0]], [[2, 0], [2, 1]])
    fitted = MarginLP().fit(pairs, [0, 1])
    np.testing.assert_allclose(fitted.coef_, [0.0, 2 / 5], atol=1e-12)
    assert fitted.margin_ == pytest.approx(1 / 5)

import warnings
from functools import partial

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from margins.problems import separable
from scipy.optimize import linprog
from sklearn.metrics.pairwise import pairwise_kernels
from small_problems import KERNELS, noisy_comparisons

from preflearn.margins import MarginLP, NotSeparableError
from preflearn.pairs import Pairs
from preflearn.svm import LPCompare, SVMCompare

compared = partial(noisy_comparisons, m=31, n=12)
PRECISE = {"solver": cp.CLARABEL, "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}


def soft_by_cvxpy(pairs, y, K, nu, radius, weights):
    """The program as stated, with one slack a pair, over the items that occur in the pairs."""
    rows = pairs.incidence() @ K[:, np.unique(pairs.index)]
    a, mu = cp.Variable(rows.shape[1]), cp.Variable()
    xi = cp.Variable(len(y), nonneg=True)
    tied, preferred = y == 0, y != 0
    limits = [mu <= 1, cp.norm1(a) <= radius, cp.abs(rows[tied] @ a) <= 1 - mu + xi[tied]]
    limits += [(rows[preferred] * y[preferred, None]) @ a >= 1 + mu - xi[preferred]]
    cost = weights / (nu * weights.sum())
    return cp.Problem(cp.Maximize(mu - cost @ xi), limits).solve(**PRECISE)


def margins(z, y):
    return np.where(y == 0, 1 - np.abs(z), y * z - 1)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # of the peer, at 1e-9
@given(
    st.integers(0, 2**31),
    st.sampled_from(sorted(KERNELS)),
    st.sampled_from([0.03, 0.2, 0.55, 1.0]),
    st.sampled_from([0.5, 5.0, 200.0]),
    st.sampled_from([0.2, 0.6]),
    st.booleans(),
)
@example(157103558, "linear", 0.03, 0.5, 0.2, False)  # one item occurs in no pair
def test_equals_cvxpy_and_satisfies_the_optimality_conditions(seed, kernel, nu, radius, tie_share, weighted):
    pairs, y = compared(seed, tie_share=tie_share)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 3, len(y)) if weighted else np.ones(len(y))
    lp = LPCompare(nu, radius, kernel, **KERNELS[kernel]).fit(pairs, y, weights if weighted else None)
    K = pairwise_kernels(pairs.items, metric=kernel, **KERNELS[kernel])
    assert lp.objective_ == pytest.approx(soft_by_cvxpy(pairs, y, K, nu, radius, weights), abs=1e-7)
    assert lp.dual_gap_ < 1e-8
    assert -1 - 1e-9 <= lp.objective_ <= lp.margin_ + 1e-12
    assert lp.margin_ <= 1 + 1e-9
    # primal: the scores are those of a combination of kernels within the radius
    assert np.abs(lp.item_coef_).sum() <= radius * (1 + 1e-12)
    z = pairs.incidence() @ K[:, lp.support_items_] @ lp.item_coef_
    np.testing.assert_allclose(lp.decision_function(pairs), z, atol=1e-9 * radius)
    clearance = margins(z, y) - lp.margin_
    np.testing.assert_allclose(lp.slack_, np.maximum(0, -clearance), atol=1e-8)
    cost = weights / (nu * weights.sum())
    assert lp.margin_ - cost @ lp.slack_ == pytest.approx(lp.objective_, abs=1e-9)
    # dual, and complementary slackness
    g = lp.dual_coef_
    assert (g * y >= 0).all()
    assert (np.abs(g) <= cost * (1 + 1e-9)).all()
    assert np.abs(g).sum() <= 1 + 1e-9
    assert lp.margin_ > 1 - 1e-7 or np.abs(g).sum() == pytest.approx(1, abs=1e-7)
    pull = K[:, np.unique(pairs.index)].T @ (pairs.incidence().T @ g)
    dual_value = 1 - 2 * np.abs(g[y != 0]).sum() + radius * np.abs(pull).max()
    assert dual_value == pytest.approx(lp.objective_, abs=1e-8)
    np.testing.assert_allclose(np.abs(g)[clearance < -1e-6], cost[clearance < -1e-6], rtol=1e-6)
    assert (np.abs(g)[clearance > 1e-6] < 1e-9).all()
    # the shares that nu bounds
    share = weights / weights.sum()
    assert share[clearance < -1e-7].sum() <= nu + 1e-9
    if lp.margin_ < 1 - 1e-6:
        assert share[clearance < 1e-7].sum() >= nu - 1e-9
    if lp.margin_ > 1e-6:
        assert share[lp.predict(pairs) != y].sum() <= nu + 1e-9
    else:  # mu <= 0 at the optimum: every margin above 0 costs more than it gives, here for our own r
        for mu in (0.01, 0.3, 1.0):
            assert share @ np.maximum(0, mu - margins(z, y)) >= nu * mu - 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_without_slack_it_is_the_margin_lp_from_a_least_radius_on(seed):
    pairs, y = separable(seed, m=30, p=4, tie_share=0.5)
    exact = MarginLP().fit(pairs, y)
    X, mu = pairs.items[np.unique(pairs.index)], exact.margin_
    d, n = pairs.differences() @ X.T, len(X)
    tied, preferred = d[y == 0], d[y != 0] * y[y != 0][:, None]
    rows = np.vstack([tied, -tied, -preferred])
    ends = np.repeat([1 - mu, -1 - mu], [2 * len(tied), len(preferred)]) + 1e-10
    least = linprog(np.ones(2 * n), A_ub=np.hstack([rows, -rows]), b_ub=ends).fun
    nu = 0.99 / len(y)
    lp = LPCompare(nu, 1.01 * least, "linear").fit(pairs, y)
    assert lp.margin_ == pytest.approx(mu, abs=1e-8)
    assert lp.objective_ == pytest.approx(mu, abs=1e-8)
    assert lp.slack_.max() < 1e-8
    assert LPCompare(nu, 0.9 * least, "linear").fit(pairs, y).margin_ < mu - 1e-4
    # The same optimum as long as its dual weights are within the costs, and no longer.
    largest = 1 / (len(y) * np.abs(exact.dual_coef_).max())
    assert LPCompare(0.99 * largest, 1.01 * least, "linear").fit(pairs, y).objective_ == pytest.approx(mu)
    assert LPCompare(min(1.0, 1.2 * largest), 1e3, "linear").fit(pairs, y).objective_ > mu + 1e-6


def test_a_negative_margin_without_slack_means_not_separable():
    pairs, y = compared(1, m=60, noise=2.0)
    with pytest.raises(NotSeparableError):
        MarginLP().fit(pairs, y)
    lp = LPCompare(0.5 / len(y), 1e3, "linear").fit(pairs, y)
    assert lp.margin_ < 0
    assert lp.slack_.max() < 1e-8


@settings(max_examples=15)
@given(st.integers(0, 2**31), st.sampled_from(sorted(KERNELS)), st.sampled_from([0.05, 0.4, 0.9]))
def test_items_and_pairs_that_are_left_out_do_not_matter(seed, kernel, nu):
    """From two items and a guess on an eighth of the pairs, to the optimum over all of them."""
    pairs, y = compared(seed, m=80, n=25)
    K = pairwise_kernels(pairs.items, metric=kernel, **KERNELS[kernel])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("preflearn.svm.soft_lp._NEW", 2)
        patch.setattr("preflearn.svm.soft_lp._FEW", 6)
        lp = LPCompare(nu, 5.0, kernel, **KERNELS[kernel]).fit(pairs, y)
    assert lp.objective_ == pytest.approx(soft_by_cvxpy(pairs, y, K, nu, 5.0, np.ones(len(y))), abs=1e-6)
    assert lp.dual_gap_ < 1e-8


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
@pytest.mark.parametrize("offset", [1e3, 1e5])
def test_offsets(kernel, offset):
    """A kernel of differences does not see them. A linear one does: its functions depend on the origin."""
    pairs, y = compared(6, m=61)
    moved = Pairs(pairs.items + offset, pairs.index)
    parameters = KERNELS[kernel]
    far = LPCompare(0.4, 3.0, kernel, **parameters).fit(moved, y)
    assert far.dual_gap_ < 1e-6
    z = far.decision_function(moved)
    slack = np.maximum(0, far.margin_ - margins(z, y))
    assert far.margin_ - slack.sum() / (0.4 * len(y)) == pytest.approx(far.objective_, abs=1e-5)
    if kernel == "linear" and offset < 1e4:  # beyond, cvxpy's answer is below our bound
        K = (pairs.items - pairs.items.mean(axis=0)) @ moved.items.T / offset
        expected = soft_by_cvxpy(pairs, y, K, 0.4, 3.0 * offset, np.ones(len(y)))
        assert far.objective_ == pytest.approx(expected, abs=1e-5)
    elif kernel != "linear":
        near = LPCompare(0.4, 3.0, kernel, **parameters).fit(pairs, y)
        assert far.objective_ == pytest.approx(near.objective_, abs=1e-4)


@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_the_radius_is_in_units_of_the_kernel(factor):
    pairs, y = compared(5, tie_share=0.6)
    lp = LPCompare(0.3, 7.0, lambda X, Y: X @ Y.T).fit(pairs, y)
    other = LPCompare(0.3, 7.0 / factor, lambda X, Y: factor * (X @ Y.T)).fit(pairs, y)
    assert other.objective_ == pytest.approx(lp.objective_, abs=1e-8)


def test_few_items_carry_the_ranking_function():
    pairs, y = compared(6, m=400, n=150, tie_share=0.5)
    lp, machine = LPCompare(0.4, 10.0).fit(pairs, y), SVMCompare(1.0).fit(pairs, y)
    compared_items = np.unique(pairs[machine.support_].index)
    assert 0 < len(lp.support_items_) < len(compared_items) / 3
    assert lp.score(pairs, y) > 0.8


def test_a_constant_kernel_leaves_no_ranking():
    pairs, y = Pairs(np.ones((4, 2)), [[0, 1], [1, 2], [2, 3]]), [1, 0, 0]
    for nu, objective, margin in ((0.5, 1 - 2 / 3 / 0.5, 1.0), (0.25, -1.0, -1.0)):
        for kernel in ("rbf", "linear"):
            lp = LPCompare(nu, kernel=kernel).fit(pairs, y)
            assert (lp.objective_, lp.margin_) == (pytest.approx(objective), pytest.approx(margin))
            assert lp.predict(pairs).tolist() == [0, 0, 0]
            assert lp.rank_function([[2.0, 3.0]]).tolist() == pytest.approx([0.0], abs=1e-9)


def test_a_hopeless_scale_is_never_silent():
    """Proved optimal, or warned about, or refused."""
    pairs, y = compared(2, tie_share=0.6)
    outcomes = []
    for radius in (1e-9, 1e6, 1e12, 1e200):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                proved = LPCompare(0.3, radius).fit(pairs, y).dual_gap_ <= 1e-6
            except ValueError as error:
                outcomes.append("refused" if "lower radius" in str(error) else str(error))
                continue
        assert proved != any("duality gap" in str(w.message) for w in caught)
        outcomes.append("proved" if proved else "warned")
    assert outcomes[0] == "proved"
    assert set(outcomes) <= {"proved", "warned", "refused"}

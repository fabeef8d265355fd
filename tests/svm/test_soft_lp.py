import warnings
from functools import partial

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from margins.problems import separable
from property_examples import examples
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from small_problems import KERNELS, noisy_comparisons

from preflearn.margins import MarginLP
from preflearn.pairs import Pairs
from preflearn.svm import LPCompare

compared = partial(noisy_comparisons, m=31, n=12)
PRECISE = {
    "solver": cp.CLARABEL,
    "tol_gap_abs": 1e-9,
    "tol_gap_rel": 1e-9,
    "tol_feas": 1e-9,
}


def soft_by_cvxpy(pairs, y, K, nu, radius, weights):
    """Solve the program as stated, with one slack per pair, over the items that occur
    in the pairs."""
    rows = pairs.incidence() @ K[:, np.unique(pairs.index)]
    a = cp.Variable(rows.shape[1])
    mu = cp.Variable()
    xi = cp.Variable(len(y), nonneg=True)
    tied = y == 0
    preferred = y != 0
    limits = [
        mu <= 1,
        cp.norm1(a) <= radius,
        cp.abs(rows[tied] @ a) <= 1 - mu + xi[tied],
    ]
    limits += [(rows[preferred] * y[preferred, None]) @ a >= 1 + mu - xi[preferred]]
    cost = weights / (nu * weights.sum())
    return cp.Problem(cp.Maximize(mu - cost @ xi), limits).solve(**PRECISE)


def margins(z, y):
    return np.where(y == 0, 1 - np.abs(z), y * z - 1)


# cvxpy's solver may warn at 1e-9
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@given(
    st.integers(0, 2**31),
    st.sampled_from(sorted(KERNELS)),
    st.sampled_from([0.03, 0.2, 0.55, 1.0]),
    st.sampled_from([0.5, 5.0, 200.0]),
    st.sampled_from([0.2, 0.6]),
    st.booleans(),
)
# one item does not occur in any pair
@example(157103558, "linear", 0.03, 0.5, 0.2, False)
def test_equals_cvxpy_and_satisfies_the_optimality_conditions(
    seed, kernel, nu, radius, tie_share, weighted
):
    pairs, y = compared(seed, tie_share=tie_share)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 3, len(y)) if weighted else np.ones(len(y))
    lp = LPCompare(nu, radius, kernel, **KERNELS[kernel]).fit(
        pairs, y, weights if weighted else None
    )
    K = pairwise_kernels(pairs.items, metric=kernel, **KERNELS[kernel])
    assert lp.objective_ == pytest.approx(
        soft_by_cvxpy(pairs, y, K, nu, radius, weights), abs=1e-7
    )
    assert lp.dual_gap_ < 1e-8
    assert -1 - 1e-9 <= lp.objective_ <= lp.margin_ + 1e-12
    assert lp.margin_ <= 1 + 1e-9
    # primal feasibility: the scores are those of a combination of kernels within the
    # radius
    assert np.abs(lp.item_coef_).sum() <= radius * (1 + 1e-12)
    z = pairs.incidence() @ K[:, lp.support_items_] @ lp.item_coef_
    np.testing.assert_allclose(lp.decision_function(pairs), z, atol=1e-9 * radius)
    clearance = margins(z, y) - lp.margin_
    np.testing.assert_allclose(lp.slack_, np.maximum(0, -clearance), atol=1e-8)
    cost = weights / (nu * weights.sum())
    assert lp.margin_ - cost @ lp.slack_ == pytest.approx(lp.objective_, abs=1e-9)
    # dual feasibility and complementary slackness
    g = lp.dual_coef_
    assert (g * y >= 0).all()
    assert (np.abs(g) <= cost * (1 + 1e-9)).all()
    assert np.abs(g).sum() <= 1 + 1e-9
    assert lp.margin_ > 1 - 1e-7 or np.abs(g).sum() == pytest.approx(1, abs=1e-7)
    pull = K[:, np.unique(pairs.index)].T @ (pairs.incidence().T @ g)
    dual_value = 1 - 2 * np.abs(g[y != 0]).sum() + radius * np.abs(pull).max()
    assert dual_value == pytest.approx(lp.objective_, abs=1e-8)
    np.testing.assert_allclose(
        np.abs(g)[clearance < -1e-6], cost[clearance < -1e-6], rtol=1e-6
    )
    assert (np.abs(g)[clearance > 1e-6] < 1e-9).all()
    # the fractions that nu bounds
    share = weights / weights.sum()
    assert share[clearance < -1e-7].sum() <= nu + 1e-9
    if lp.margin_ < 1 - 1e-6:
        assert share[clearance < 1e-7].sum() >= nu - 1e-9
    if lp.margin_ > 1e-6:
        assert share[lp.predict(pairs) != y].sum() <= nu + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_without_slack_it_is_the_margin_lp_from_a_least_radius_on(seed):
    pairs, y = separable(seed, m=30, p=4, tie_share=0.5)
    exact = MarginLP().fit(pairs, y)
    X = pairs.items[np.unique(pairs.index)]
    mu = exact.margin_
    d = pairs.differences() @ X.T
    n = len(X)
    tied = d[y == 0]
    preferred = d[y != 0] * y[y != 0][:, None]
    rows = np.vstack([tied, -tied, -preferred])
    ends = np.repeat([1 - mu, -1 - mu], [2 * len(tied), len(preferred)]) + 1e-10
    least = linprog(np.ones(2 * n), A_ub=np.hstack([rows, -rows]), b_ub=ends).fun
    nu = 0.99 / len(y)
    lp = LPCompare(nu, 1.01 * least, "linear").fit(pairs, y)
    assert lp.margin_ == pytest.approx(mu, abs=1e-8)
    assert lp.objective_ == pytest.approx(mu, abs=1e-8)
    assert lp.slack_.max() < 1e-8
    assert LPCompare(nu, 0.9 * least, "linear").fit(pairs, y).margin_ < mu - 1e-4
    # The optimum is the same if its dual weights are within the costs, and only then.
    largest = 1 / (len(y) * np.abs(exact.dual_coef_).max())
    assert LPCompare(0.99 * largest, 1.01 * least, "linear").fit(
        pairs, y
    ).objective_ == pytest.approx(mu)
    assert (
        LPCompare(min(1.0, 1.2 * largest), 1e3, "linear").fit(pairs, y).objective_
        > mu + 1e-6
    )


@examples(8)
@given(
    st.integers(0, 2**31),
    st.sampled_from(sorted(KERNELS)),
    st.sampled_from([0.05, 0.4, 0.9]),
)
def test_items_and_pairs_enter_in_small_blocks(seed, kernel, nu):
    """The fit starts from two items and an estimate from an eighth of the pairs, and
    reaches the optimum over all."""
    pairs, y = compared(seed, m=60, n=20)
    K = pairwise_kernels(pairs.items, metric=kernel, **KERNELS[kernel])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("preflearn.svm.soft_lp._NEW_ITEMS", 2)
        patch.setattr("preflearn.svm.soft_lp._MAX_FREED", 6)
        lp = LPCompare(nu, 5.0, kernel, **KERNELS[kernel]).fit(pairs, y)
    assert lp.objective_ == pytest.approx(
        soft_by_cvxpy(pairs, y, K, nu, 5.0, np.ones(len(y))), abs=1e-6
    )
    assert lp.dual_gap_ < 1e-8


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_an_offset_changes_nothing_for_a_kernel_of_differences(kernel):
    pairs, y = compared(6, m=61)
    moved = Pairs(pairs.items + 1e5, pairs.index)
    near, far = (
        LPCompare(0.4, 3.0, kernel, **KERNELS[kernel]).fit(data, y)
        for data in (pairs, moved)
    )
    assert far.dual_gap_ < 1e-6
    assert far.objective_ == pytest.approx(near.objective_, abs=1e-4)


def test_the_linear_kernel_depends_on_the_origin():
    pairs, y = compared(6, m=61)
    moved = Pairs(pairs.items + 1e3, pairs.index)
    far = LPCompare(0.4, 3.0, "linear").fit(moved, y)
    assert far.dual_gap_ < 1e-6
    slack = np.maximum(0, far.margin_ - margins(far.decision_function(moved), y))
    assert far.margin_ - slack.sum() / (0.4 * len(y)) == pytest.approx(
        far.objective_, abs=1e-5
    )
    K = (pairs.items - pairs.items.mean(axis=0)) @ moved.items.T / 1e3
    expected = soft_by_cvxpy(pairs, y, K, 0.4, 3e3, np.ones(len(y)))
    assert far.objective_ == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_the_radius_is_in_units_of_the_kernel(factor):
    pairs, y = compared(5, tie_share=0.6)
    lp = LPCompare(0.3, 7.0, "linear").fit(pairs, y)
    other = LPCompare(0.3, 7.0 / factor, lambda X, Y: factor * (X @ Y.T)).fit(pairs, y)
    assert other.objective_ == pytest.approx(lp.objective_, abs=1e-8)


@pytest.mark.parametrize(
    ("nu", "objective", "margin"), [(0.5, 1 - 2 / 3 / 0.5, 1.0), (0.25, -1.0, -1.0)]
)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_constant_kernel_leaves_no_ranking(kernel, nu, objective, margin):
    pairs = Pairs(np.ones((4, 2)), [[0, 1], [1, 2], [2, 3]])
    y = [1, 0, 0]
    lp = LPCompare(nu, kernel=kernel).fit(pairs, y)
    assert (lp.objective_, lp.margin_) == (
        pytest.approx(objective),
        pytest.approx(margin),
    )
    assert lp.predict(pairs).tolist() == [0, 0, 0]
    assert lp.rank_function([[2.0, 3.0]]).tolist() == pytest.approx([0.0], abs=1e-9)


@pytest.mark.parametrize("radius", [1e-9, 1e6, 1e12, 1e200])
def test_an_extreme_radius_is_never_silent(radius):
    """Either the optimum is proved, or a warning or an error states that it is not."""
    pairs, y = compared(2, tie_share=0.6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            gap = LPCompare(0.3, radius).fit(pairs, y).dual_gap_
        except ValueError as error:
            assert radius > 1
            assert "radius" in str(error)  # noqa: PT017
            return
    assert (gap > 1e-6) == any(
        warning.category is ConvergenceWarning for warning in caught
    )

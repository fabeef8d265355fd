"""The block dual: its weights satisfy the conditions of eq. 15, and the interior point
finds the same solution."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from small_problems import noisy_comparisons as compared

from preflearn.core.gram import DenseGram
from preflearn.pairs import Pairs
from preflearn.solvers.hinge_dual import HingeTerms, best_bias, certificate, maximise
from preflearn.svm import SVMCompare, SVMRank
from preflearn.svm.base import preferences_first
from preflearn.svm.differences import FeatureGram, HingeMatrix


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("n", [6, 60])
def test_rows_are_the_flipped_pairs(n, biased):
    """The rows are those of eq. 8 by `Pairs.flipped` in another order. Both copies of a
    tie share one difference."""
    rng = np.random.default_rng(n)
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(25)])
    pairs = Pairs(np.zeros((n, 1)), index)
    y = np.append([1, 0], rng.choice([-1, 0, 0, 0, 1], 23))
    order = preferences_first(y)
    cost = np.linspace(1, 2, 25)
    rows = HingeTerms.from_labels(y[order], cost, biased)
    flipped, labels = pairs.flipped(y)
    L = np.random.default_rng(0).standard_normal((n, 3))
    direction = rows.label * rows.sign
    dense = (
        direction[:, None]
        * (pairs.B[order].differences(L))[rows.expanded(np.arange(25))]
    )
    expected = flipped.incidence() @ L
    rank = np.lexsort(dense.T)
    other = np.lexsort(expected.T)
    np.testing.assert_allclose(dense[rank], expected[other])
    np.testing.assert_array_equal(
        rows.label[rank], labels[other] if biased else np.ones(len(labels))
    )
    np.testing.assert_array_equal(rows.cost[:25], cost)
    np.testing.assert_array_equal(rows.low, np.where(rows.label > 0, 0, -rows.cost))
    A = HingeMatrix(FeatureGram(pairs.B[order], L), rows)
    u = np.arange(1.0, 4.0)
    v = np.linspace(-1, 1, len(labels))
    weights = np.linspace(1, 2, len(labels))
    np.testing.assert_allclose(A.times(u), dense @ u)
    np.testing.assert_allclose(A.adjoint(v), dense.T @ v, atol=1e-12)
    np.testing.assert_allclose(A.gram(weights), (dense.T * weights) @ dense)
    pair = rows.expanded(np.arange(25))
    np.testing.assert_allclose(rows.summed(v), [v[pair == i].sum() for i in range(25)])
    np.testing.assert_allclose(
        rows.slopes(pairs.B[order].differences(L) @ u), rows.label * (1 - dense @ u)
    )


def test_the_best_bias_is_the_midpoint_of_the_optimal_interval():
    """Two hinges fall and two rise, so the loss is constant between the inner ends."""
    y = np.array([1, 1, -1, -1])
    rows = HingeTerms(
        4, np.ones(4), 1.0 * y, np.minimum(y, 0), np.maximum(y, 0), biased=True
    )
    h = np.array([-3.0, 1.0, 2.0, 9.0])
    assert best_bias(rows, h) == 1.5


def test_the_gap_includes_the_spread_of_the_objective_by_rounding_errors():
    rng = np.random.default_rng(0)
    noise = 1e-3
    rows = HingeTerms.from_labels(
        np.array([1, -1] * 5), rng.uniform(1, 2, 10), biased=False
    )
    exact = certificate(rows, np.zeros(10), 1.0, dual=0.0, noise=0.0).objective
    found = certificate(rows, np.zeros(10), 1.0, dual=exact, noise=noise)
    objectives = [
        certificate(rows, z, 1.0, 0.0, 0.0).objective
        for z in noise * rng.standard_normal((2000, 10))
    ]
    assert found.gap * found.objective == pytest.approx(np.std(objectives), rel=0.05)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_large_problem_satisfies_the_optimality_conditions(kernel):
    """Stationarity holds by construction of dual_coef_. The test checks the other
    conditions of eq. 15."""
    pairs, y = compared(1, m=3000, n=200, p=4, tie_share=0.6, noise=1.0)
    model = SVMCompare(5.0, kernel).fit(pairs, y)
    assert model.dual_gap_ < 1e-8
    assert len(model.support_) < len(y)
    beta = model.bias_
    dual = model.dual_coef_
    tied = y == 0
    assert beta < -1  # then at most one copy of a tie has slack
    z = -beta * model.decision_function(pairs)
    distance = np.where(tied, -1 - beta - np.abs(z), y * z + beta - 1)
    weight = dual * np.where(tied, -np.sign(z), y)
    assert (weight[~tied] >= 0).all()
    assert (np.abs(dual) <= 5.0 * (1 + 1e-12)).all()
    assert (weight[distance > 1e-5] == 0).all()
    np.testing.assert_allclose(weight[distance < -1e-5], 5.0, rtol=1e-9)
    assert weight[~tied].sum() == pytest.approx(np.abs(dual[tied]).sum(), rel=1e-7)


@pytest.mark.parametrize(("n", "m"), [(400, 600), (900, 500)])
def test_the_dual_and_the_interior_point_agree(n, m, monkeypatch):
    """The Gram matrix has full rank. One solver uses blocks, and the other all of its
    features."""
    pairs, y = compared(12, m=m, n=n, p=6)
    for model in (SVMCompare(5.0, gamma=0.2), SVMRank(5.0, gamma=0.2)):
        dual = clone(model).fit(pairs, y)
        monkeypatch.setattr(
            "preflearn.svm.kernel_problem.HingeProblem.dual_first",
            lambda *sizes: (False, 0.0),
        )
        interior = clone(model).fit(pairs, y)
        monkeypatch.undo()
        assert interior.objective_ == pytest.approx(dual.objective_, rel=1e-8)
        np.testing.assert_allclose(
            interior.decision_function(pairs), dual.decision_function(pairs), atol=1e-3
        )


def test_linearly_dependent_differences_have_a_solution():
    """Equations of more free weights than features, between integers, are singular."""
    gaps = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 4, size=(30, 3)).astype(float)
        index = np.array([rng.choice(30, 2, replace=False) for _ in range(400)])
        pairs = Pairs(X, index)
        d = pairs.differences() @ [1, 2, -1] + rng.logistic(size=400)
        y = np.where(np.abs(d) < 0.7, 0, np.sign(d)).astype(int)
        order = preferences_first(y)
        rows = HingeTerms.from_labels(y[order], np.full(400, 100.0), biased=True)
        every = np.arange(400)
        K = pairs.B[order].gram(X @ X.T).block(every, every)
        gaps.append(maximise(DenseGram(K), rows, np.zeros(len(rows.sign)), 1e-12)[1])
    assert np.median(gaps) < 1e-10


class Counted(DenseGram):
    """A Gram matrix that counts its products. The dual uses one product for each
    block."""

    times_called = 0

    def times(self, a):
        self.times_called += 1
        return super().times(a)


def test_the_dual_gives_up_after_its_patience():
    """At a large cost, with twice as many hinges as items, the dual converges
    slowly."""
    pairs, y = compared(0, m=600, n=300, p=3)
    order = preferences_first(y)
    rows = HingeTerms.from_labels(y[order], np.full(len(y), 1e4), biased=True)
    B = pairs.B[order]
    X = pairs.items
    K = B.gram(rbf_kernel(X, gamma=1 / 3)).block(np.arange(len(y)), np.arange(len(y)))
    blocks = []
    for patience in (0.0, 4 * 800 * 300**2, np.inf):
        gram = Counted(K)
        maximise(gram, rows, np.zeros(len(rows.sign)), 1e-10, patience)
        blocks.append(gram.times_called)
    assert blocks[0] <= 3 <= blocks[1] < 8 < 30 < blocks[2], blocks


@pytest.mark.parametrize("C", [1e4, 1e8])
def test_rounding_ends_the_dual(C):
    """A gap of 0 cannot be reached with a cost of 1e8 and no loss."""
    X = np.random.default_rng(3).uniform(size=(60, 4))
    labels = np.where(X @ [1, 2, 3, 1] > 3.5, 1.0, -1.0)
    gram = Counted(rbf_kernel(X))
    bound = C * labels
    rows = HingeTerms(
        60, np.ones(60), labels, np.minimum(bound, 0), np.maximum(bound, 0), True
    )
    s, gap = maximise(gram, rows, np.zeros(60), 0.0)
    assert gram.times_called < 15
    assert gap < 1e-14 * 60 * C
    assert abs(s.sum()) < 1e-12 * np.abs(s).sum()

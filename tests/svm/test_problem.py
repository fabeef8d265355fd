"""The kernel problem of a fit keeps the differences of its pairs."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels

from preflearn.ground.dual import Rows
from preflearn.pairs import Pairs
from preflearn.svm import SVMCompare
from preflearn.svm.problem import KernelProblem


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_a_problem_keeps_the_differences_of_the_pairs(kernel):
    """Of items that occur, and with equal ones merged: B L L'B' is that of all items, and so is r."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (12, 3)).astype(float)
    index = np.array([(i, (i + 1 + k) % 7) for i in range(7) for k in range(2)])
    name = "rbf" if kernel == "precomputed" else kernel
    K = pairwise_kernels(X, metric=name, filter_params=True, gamma=0.7)
    pairs = Pairs(K if kernel == "precomputed" else X, index)
    problem = KernelProblem.of(SVMCompare(kernel=kernel, gamma=0.7), pairs)
    if kernel == "precomputed":
        assert problem.ids.tolist() == list(range(7))
    else:
        assert len(problem.ids) == len(np.unique(X[:7], axis=0)) < 7
        np.testing.assert_array_equal(problem.B.differences(problem.items), pairs.differences())
    every = np.arange(len(index))
    rows = Rows.of(np.ones(len(index), dtype=int), np.ones(len(index)), False)
    space, expected = problem.space(every, rows), pairs.incidence() @ K @ pairs.incidence().T
    for gram in (space.gram, space.features()):
        np.testing.assert_allclose(gram.block(every, every), expected, atol=1e-12)
    dual = rng.standard_normal(len(index))
    scores = problem.expansion(problem.B.adjoint(dual))(K if kernel == "precomputed" else X)
    np.testing.assert_allclose(scores, K @ (pairs.incidence().T @ dual), atol=1e-12)
    assert problem.expansion(np.zeros(len(problem.ids)))(pairs.items).tolist() == [0.0] * 12


def close_items(apart, spread, seed):
    """Each of twenty items twice, a little apart, and noisy comparisons of any two."""
    rng = np.random.default_rng(seed)
    one = spread * rng.normal(size=(20, 3))
    items = np.vstack([one, one + apart * rng.normal(size=(20, 3))])
    index = np.vstack([rng.permuted(np.tile(np.arange(40), (160, 1)), axis=1)[:, :2], np.c_[:20, 20:40]])
    scores = np.sin(items[:, 0]) + 0.3 * items[:, 1]
    d = scores[index[:, 0]] - scores[index[:, 1]] + 0.3 * rng.normal(size=len(index))
    return Pairs(items, index), np.where(np.abs(d) < 0.3, 0, np.sign(d)).astype(int)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("apart", "spread", "C"),
    [(1e-6, 3, 10), (1e-6, 3, 1e3), (1e-6, 3, 1e5), (1e-5, 3, 1e4), (1e-5, 1e3, 1e4)],
)
def test_the_gap_knows_the_rounding_of_the_kernel(apart, spread, C, seed):
    pairs, y = close_items(apart, spread, seed)
    gamma = 1 / spread**2
    machine = SVMCompare(C, gamma=gamma).fit(pairs, y)
    items, centres = (X.astype(np.longdouble) for X in (pairs.items, machine._expansion.centres))
    a = machine._expansion.coef * np.longdouble(-machine.bias_)
    K, own = (np.exp(-np.longdouble(gamma) * ((X[:, None] - centres) ** 2).sum(-1)) for X in (items, centres))
    f, beta = K @ a, np.longdouble(machine.bias_)
    z, ties = f[pairs.index[:, 0]] - f[pairs.index[:, 1]], y == 0
    rows = np.concatenate([beta + y[~ties] * z[~ties], -beta - z[ties], -beta + z[ties]])
    objective = a @ own @ a / 2 + C * np.maximum(0, 1 - rows).sum()
    assert abs(objective / machine.objective_ - 1) <= machine.dual_gap_ + 1e-14


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_close_items_move_the_function_no_further_than_the_gap_says(C, seed):
    pairs, y = close_items(1e-5, 3, seed)
    new = 3 * np.random.default_rng(seed).normal(size=(50, 3))
    scores, reach = [], 0.0
    for order in ([0, 1, 2], [2, 0, 1]):  # sums are rounded in another order
        machine = SVMCompare(C, gamma=0.1).fit(Pairs(pairs.items[:, order], pairs.index), y)
        scores.append(-machine.bias_ * machine.rank_function(new[:, order]))
        reach += np.sqrt(
            2 * machine.dual_gap_ * machine.objective_
        )  # of |u - u*|, since 1/2 u·u is in eq. 15
    assert np.abs(scores[0] - scores[1]).max() <= reach

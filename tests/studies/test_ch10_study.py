"""The families of `study` are those of the estimators, and its errors those of `metrics`."""

import numpy as np
import pytest

from preflearn.checks import shown
from preflearn.metrics import disagreement_error
from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path
from preflearn.pursuit import RLS, RankingPursuit, RankRLS, SparseRankRLS
from studies.ch10_study import (
    Errors,
    Problem,
    by_least_squares,
    by_pursuit,
    by_ranking_svm,
    by_sparse_least_squares,
    curves,
    errors_of,
    judged,
    tuned,
)
from studies.ch10_users import Counts, UserTask

ALPHAS = [0.01, 0.5, 30.0]
GAMMA = 0.05


def task(seed, n=14, t=9, scale=1.0):
    """Scores of few levels, and a test item that occurs twice."""
    rng = np.random.default_rng(seed)
    X, y = scale * rng.normal(size=(n + t, 4)), rng.integers(0, 5, n + t).astype(float)
    X[n + 1], y[n : n + 3], y[:2] = X[n], [1, 2, 4], [1, 2]
    none = np.zeros(0, dtype=np.int64)
    return UserTask(X[:n], y[:n], X[n:], y[n:], X[:0], y[:0], seed, none, Counts(0, 0, 0, 0))


def fits(task, method, fitted):
    """Each level of a family against the estimator `fitted(k)`: f up to a constant, its level, its size."""
    family = method.solve(Problem.of(task), GAMMA)
    problem = Problem.of(task)
    assert len(method.levels) == len(family.values)
    for k, (values, size) in enumerate(zip(family.values, family.n_basis, strict=True)):
        model = fitted(k)
        f = model.rank_function(task.X_test)
        np.testing.assert_allclose(values[problem.alike] + values[-1], f, rtol=1e-6, atol=1e-7)
        level = model.rank_function(task.X_train).mean()
        assert values[-2] + values[-1] == pytest.approx(level, rel=1e-6, abs=1e-7)
        assert size == len(set(model.basis_.tolist()))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("learner", [RLS, RankRLS])
def test_least_squares_are_the_estimators(seed, learner):
    data, method = task(seed), by_least_squares("", ALPHAS, ranking=learner is RankRLS)
    fits(data, method, lambda k: learner(ALPHAS[k], gamma=GAMMA).fit(data.X_train, data.y_train))


@pytest.mark.parametrize("seed", range(3))
def test_sparse_least_squares_are_the_estimator(seed):
    data, method = task(seed), by_sparse_least_squares("", [2, 5, 40], [0.0, *ALPHAS], seed=seed)

    def fitted(k):
        size, alpha = method.levels[k]
        model = SparseRankRLS(size, alpha, gamma=GAMMA, random_state=seed)
        return model.fit(data.X_train, data.y_train)

    fits(data, method, fitted)


@pytest.mark.parametrize("mix", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("backfit", [False, "after", "pre"])
def test_pursuits_are_the_estimator(mix, backfit):
    data, method = task(4), by_pursuit("", [1, 2, 5, 8, 11], mix, backfit)

    def fitted(k):
        model = RankingPursuit(method.levels[k], gamma=GAMMA, mix=mix, backfit=backfit)
        return model.fit(data.X_train, data.y_train)

    fits(data, method, fitted)


def test_a_pursuit_that_ends_stays_where_it_is():
    data, stages = task(5), range(1, 60)
    family = by_pursuit("", stages).solve(Problem.of(data), 3.0)
    model = RankingPursuit(60, gamma=3.0).fit(data.X_train, data.y_train)
    last = len(model.losses_) - 1
    assert last == 13  # of 14 functions on 14 items whose constant is lost
    assert (family.values[last - 1 :] == family.values[-1]).all()
    assert family.n_basis[-1] == last


@pytest.mark.parametrize("seed", range(3))
def test_ranking_svms_are_on_the_path(seed):
    data, shares = task(seed), [2.0, 0.9, 0.3, 0.02]
    problem = Problem.of(data)
    family = by_ranking_svm("", shares).solve(problem, GAMMA)
    pairs, labels = Pairs.from_scores(data.X_train, data.y_train)
    path = ranksvm_path(pairs, labels, gamma=GAMMA)
    new = Pairs(data.X_test, [[k, k + 1] for k in range(8)])
    for share, values, size in zip(shares, family.values, family.n_basis, strict=True):
        lam = share * path.breakpoints[0]
        gaps = new.B.differences(values[problem.alike])
        np.testing.assert_allclose(gaps, path.decision_function(lam, new), rtol=1e-6, atol=1e-7)
        coef = pairs.B.adjoint(labels * path.alpha(lam))
        assert size == np.sum(np.abs(coef) > 1e-12 * np.abs(coef).max())


def methods():
    return [
        by_least_squares("RLS", ALPHAS, ranking=False),
        by_least_squares("RankRLS", ALPHAS, ranking=True),
        by_sparse_least_squares("Sparse RankRLS", [3, 6], [0.0, *ALPHAS]),
        by_ranking_svm("RankSVM", [1.0, 0.1]),
        *(by_pursuit("Pursuit", [1, 3, 9], mix, kind) for mix in (0, 0.5, 1) for kind in (False, "after")),
    ]


def test_errors_are_those_of_metrics():
    data = task(6)
    problem = Problem.of(data)
    for method in methods():
        family = method.solve(problem, GAMMA)
        errors = errors_of(problem, family)
        assert all(values.shape == (len(method.levels),) for values in errors)
        for k, values in enumerate(family.values):
            f, y = values[problem.alike] + values[-1], data.y_test
            assert errors.disagreement[k] == pytest.approx(disagreement_error(y, f, ties="drop"))
            assert errors.disagreement_with_ties[k] == pytest.approx(disagreement_error(y, f, ties="keep"))
            assert errors.squared[k] == pytest.approx(np.mean((f - y) ** 2))
            level = data.y_train.mean() - values[-2] - values[-1]
            assert errors.squared_levelled[k] == pytest.approx(np.mean((f + level - y) ** 2))
            assert errors.n_basis[k] == family.n_basis[k]


@pytest.mark.parametrize("method", methods(), ids=lambda method: method.name)
def test_narrow_and_wide_kernels(method):
    """A narrow kernel knows nothing of new items. The order by a wide one is found although 1 hides it."""
    for data in (task(7), task(7, scale=100.0)):
        problem = Problem.of(data)
        found = curves(method, [problem], 2.0 ** np.array([-60, -40, -15, 0, 15]))
        assert all(np.isfinite(values).all() for values in found)
        assert (found.disagreement[:, -1] == 0.5).all()
        family = method.solve(problem, 2.0**15)
        assert (family.values[:, :-2] == 0).all()


def test_a_wide_kernel_is_that_of_squared_distances():
    """1 - gamma d² in the limit: with alpha in proportion to gamma the order no longer changes."""
    problem, order = Problem.of(task(8)), []
    for gamma in (1e-11, 1e-14, 1e-17):
        family = by_least_squares("", [gamma], ranking=True).solve(problem, gamma)
        order.append(family.values[0, :-2])
    np.testing.assert_allclose(order[1], order[0], rtol=1e-6)
    np.testing.assert_allclose(order[2], order[1], rtol=1e-6)


def test_equal_test_items_are_tied():
    problem = Problem.of(task(9))
    assert len(problem.test) == 8
    assert problem.alike[0] == problem.alike[1]


def test_choice_and_judgement():
    problems = [Problem.of(task(seed)) for seed in range(6)]
    method, gammas = by_pursuit("", [1, 2, 4]), [0.01, 0.1, 1.0]
    found = curves(method, problems, gammas)
    assert all(values.shape == (6, 3, 3) for values in found)
    for measure in Errors._fields:
        width, level = tuned(found, measure)
        means = getattr(found, measure).mean(axis=0)
        assert means[width, level] == means.min()
    width, level = tuned(found)
    errors = judged(method, problems[:2], gammas[width], level)
    for one, all_of_them in zip(errors, found, strict=True):
        np.testing.assert_array_equal(one, all_of_them[:2, width, level])


def test_equal_scores_cannot_be_judged():
    with pytest.raises(ValueError, match=r"y_test of user .* holds 9 times 2"):
        Problem.of(task(0)._replace(y_test=np.full(9, 2.0)))


@pytest.mark.parametrize("wrong", [0, 0.5, np.inf, None, "2"], ids=shown)
def test_a_size_is_a_number_of_items(wrong):
    with pytest.raises(ValueError, match=r"^a size is .*; expected a whole number of at least 1"):
        by_sparse_least_squares("", [2, wrong], ALPHAS)


@pytest.mark.parametrize("wrong", [-1, 3, 0.5, True, None, "1", [1], 10**400], ids=shown)
def test_a_level_is_one_of_the_method(wrong):
    problem, method = Problem.of(task(0)), by_pursuit("pursuit", [1, 2, 3])
    with pytest.raises(
        ValueError, match=r"^level is .*; expected a (whole number|place in the levels of 'purs)"
    ):
        judged(method, [problem], 1.0, wrong)

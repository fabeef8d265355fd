"""The families of `study` equal the estimators, and its errors equal those of
`metrics`."""

import numpy as np
import pytest

from preflearn.metrics import disagreement_error
from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path
from preflearn.pursuit import RLS, RankingPursuit, RankRLS, SparseRankRLS
from preflearn_book.studies.ch10_study import (
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
from preflearn_book.studies.ch10_users import Counts, UserTask

ALPHAS = [0.01, 0.5, 30.0]
GAMMA = 0.05


def task(seed, n=14, t=9, scale=1.0):
    """Return scores of few levels, and a test item that occurs twice."""
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(n + t, 4))
    y = rng.integers(0, 5, n + t).astype(float)
    X[n + 1] = X[n]
    y[n : n + 3] = [1, 2, 4]
    y[:2] = [1, 2]
    none = np.zeros(0, dtype=np.int64)
    return UserTask(
        X[:n], y[:n], X[n:], y[n:], X[:0], y[:0], seed, none, Counts(0, 0, 0, 0)
    )


def check_family(task, method, estimator_at):
    """Compare each solution with the fitted estimator: f up to a constant, its mean,
    and its functions."""
    problem = Problem.of(task)
    family = method.solve(problem, GAMMA)
    assert len(method.levels) == len(family.values)
    for k, (values, size) in enumerate(zip(family.values, family.n_basis, strict=True)):
        model = estimator_at(k).fit(task.X_train, task.y_train)
        f = model.rank_function(task.X_test)
        np.testing.assert_allclose(
            values[problem.alike] + values[-1], f, rtol=1e-6, atol=1e-7
        )
        mean = model.rank_function(task.X_train).mean()
        assert values[-2] + values[-1] == pytest.approx(mean, rel=1e-6, abs=1e-7)
        assert size == len(set(model.basis_.tolist()))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("learner", [RLS, RankRLS])
def test_least_squares_are_the_estimators(seed, learner):
    method = by_least_squares("", ALPHAS, ranking=learner is RankRLS)
    check_family(task(seed), method, lambda k: learner(ALPHAS[k], gamma=GAMMA))


@pytest.mark.parametrize("seed", range(2))
def test_sparse_least_squares_are_the_estimator(seed):
    method = by_sparse_least_squares("", [2, 5, 40], [0.0, *ALPHAS])
    check_family(
        task(seed),
        method,
        lambda k: SparseRankRLS(*method.levels[k], gamma=GAMMA, random_state=0),
    )


@pytest.mark.parametrize("mix", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("backfit", [False, "after", "pre"])
def test_pursuits_are_the_estimator(mix, backfit):
    method = by_pursuit("", [1, 2, 5, 8, 11], mix, backfit)
    check_family(
        task(4),
        method,
        lambda k: RankingPursuit(
            method.levels[k], gamma=GAMMA, mix=mix, backfit=backfit
        ),
    )


def test_a_pursuit_that_ends_keeps_its_last_solution():
    data = task(5)
    family = by_pursuit("", range(1, 60)).solve(Problem.of(data), 3.0)
    last = (
        len(RankingPursuit(60, gamma=3.0).fit(data.X_train, data.y_train).losses_) - 1
    )
    assert last == 13  # 14 functions on 14 items minus one dimension for the constant
    kept = np.broadcast_to(family.values[-1], family.values[last - 1 :].shape)
    np.testing.assert_allclose(family.values[last - 1 :], kept, rtol=1e-7, atol=1e-9)
    assert family.n_basis[-1] == last


@pytest.mark.parametrize("seed", range(2))
def test_ranking_svms_are_on_the_path(seed):
    data = task(seed)
    shares = [2.0, 0.9, 0.3, 0.02]
    problem = Problem.of(data)
    family = by_ranking_svm("", shares).solve(problem, GAMMA)
    pairs, labels = Pairs.from_scores(data.X_train, data.y_train)
    path = ranksvm_path(pairs, labels, gamma=GAMMA)
    test_pairs = Pairs(data.X_test, [[k, k + 1] for k in range(8)])
    for share, values, size in zip(shares, family.values, family.n_basis, strict=True):
        lam = share * path.breakpoints[0]
        differences = test_pairs.B.differences(values[problem.alike])
        expected = path.decision_function(lam, test_pairs)
        np.testing.assert_allclose(differences, expected, rtol=1e-6, atol=1e-7)
        coef = pairs.B.adjoint(labels * path.alpha(lam))
        assert size == np.sum(np.abs(coef) > 1e-12 * np.abs(coef).max())


METHODS = [
    by_least_squares("RLS", ALPHAS, ranking=False),
    by_least_squares("RankRLS", ALPHAS, ranking=True),
    by_sparse_least_squares("Sparse RankRLS", [3, 6], [0.0, *ALPHAS]),
    by_ranking_svm("RankSVM", [1.0, 0.1]),
    by_pursuit("Ranking pursuit", [1, 3, 9], 0, False),
    by_pursuit("Matching pursuit", [1, 3, 9], 1, "after"),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_errors_are_those_of_metrics(method):
    data = task(6)
    problem = Problem.of(data)
    # two of nine items are equal, so their scores are tied
    assert len(problem.test) == 8
    family = method.solve(problem, GAMMA)
    errors = errors_of(problem, family)
    assert len(family.values) == len(method.levels)
    for k, values in enumerate(family.values):
        f = values[problem.alike] + values[-1]
        y = data.y_test
        assert errors.disagreement[k] == pytest.approx(
            disagreement_error(y, f, ties="drop")
        )
        assert errors.disagreement_with_ties[k] == pytest.approx(
            disagreement_error(y, f, ties="keep")
        )
        assert errors.squared[k] == pytest.approx(np.mean((f - y) ** 2))
        shift = data.y_train.mean() - values[-2] - values[-1]
        assert errors.squared_levelled[k] == pytest.approx(
            np.mean((f + shift - y) ** 2)
        )
        assert errors.n_basis[k] == family.n_basis[k]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_narrow_and_wide_kernels(method):
    """A narrow kernel is 0 at new items. A wide kernel keeps its order, although
    rounding would make it 1."""
    for data in (task(7), task(7, scale=100.0)):
        problem = Problem.of(data)
        errors = curves(method, [problem], 2.0 ** np.array([-60, -40, -15, 0, 15]))
        assert all(np.isfinite(values).all() for values in errors)
        assert (errors.disagreement[:, -1] == 0.5).all()
        assert (method.solve(problem, 2.0**15).values[:, :-2] == 0).all()


def test_a_wide_kernel_is_that_of_squared_distances():
    """For the kernel 1 - gamma d² and alpha proportional to gamma, the solution does
    not depend on gamma."""
    problem = Problem.of(task(8))
    wide, wider = (
        by_least_squares("", [gamma], ranking=True).solve(problem, gamma).values[0, :-2]
        for gamma in (1e-11, 1e-17)
    )
    np.testing.assert_allclose(wider, wide, rtol=1e-6)


def test_the_tuned_width_and_level_have_the_least_mean_error():
    problems = [Problem.of(task(seed)) for seed in range(6)]
    method = by_pursuit("", [1, 2, 4])
    gammas = [0.01, 0.1, 1.0]
    errors = curves(method, problems, gammas)
    for measure in ("disagreement", "squared"):
        means = getattr(errors, measure).mean(axis=0)
        assert means.shape == (3, 3)
        assert means[tuned(errors, measure)] == means.min()
    width, level = tuned(errors)
    for at_best, everywhere in zip(
        judged(method, problems[:2], gammas[width], level), errors, strict=True
    ):
        np.testing.assert_array_equal(at_best, everywhere[:2, width, level])

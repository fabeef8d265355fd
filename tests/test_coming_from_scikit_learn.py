"""The page for users of scikit-learn: its code gives the results on the page, and
translations agree on other data."""

import io

import numpy as np
import pytest
from side_by_side import Page
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score

from preflearn.metrics import disagreement_error
from preflearn.pairs import Pairs
from preflearn.pursuit import RankingPursuit, RankRLS
from preflearn.ranking import Davidson, bradley_terry
from preflearn.svm import SVMRank

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
SCORES = X @ [1.0, -1.0, 0.5] + RNG.normal(size=12)
PAIRS, Y = Pairs.from_scores(X, SCORES)


def test_code_of_both_programs_gives_what_the_page_shows():
    page = Page("coming_from_scikit_learn", "scikit-learn")
    page.check_form()
    page.check_same(page.run("here"), page.run("scikit-learn"), least=5, tolerance=1e-5)


def test_weighted_logistic_regression_is_that_of_scikit_learn():
    weights = np.random.default_rng(1).random(len(Y))
    reference = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10)
    expected = reference.fit(PAIRS.differences(), Y, sample_weight=weights).coef_[0]
    ours = Davidson(0.5).fit(PAIRS, Y, sample_weight=weights).coef_
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_bradley_terry_is_logistic_regression_without_a_penalty():
    games = np.array([(0, 1), (1, 2), (0, 2), (2, 0), (1, 0), (0, 1)])
    labels = np.array([1, -1, 1, 1, 1, -1])
    counts = np.zeros((3, 3))
    rows = np.eye(3)[games[:, 0]] - np.eye(3)[games[:, 1]]
    np.add.at(counts, tuple(np.where(labels[:, None] > 0, games, games[:, ::-1]).T), 1)
    reference = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10).fit(
        rows, labels
    )
    np.testing.assert_allclose(
        bradley_terry(counts), reference.coef_[0] - reference.coef_.mean(), atol=1e-5
    )


def test_least_squares_of_one_query_are_those_of_ridge_regression_with_an_intercept():
    ours = RankRLS(alpha=3.0, kernel="linear").fit(X, SCORES).rank_function(X)
    reference = Ridge(alpha=3.0 / len(X)).fit(X, SCORES).predict(X)
    np.testing.assert_allclose(np.diff(ours), np.diff(reference), atol=1e-8)


@pytest.mark.parametrize("learner", [SVMRank(), RankRLS(), RankingPursuit(1)])
def test_a_file_of_sparse_queries_is_learned_as_it_is_loaded(learner):
    text = b"3 qid:1 1:0.5 2:1\n1 qid:1 1:0.1\n2 qid:2 2:1\n0 qid:2 1:1\n"
    items, scores, qid = load_svmlight_file(io.BytesIO(text), query_id=True)
    f = learner.set_params(kernel="linear").fit(items, scores, qid).rank_function(items)
    assert f[0] > f[1]
    assert f[2] > f[3]


def test_disagreement_with_two_grades_is_the_area_above_the_roc_curve():
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 2, 20)
    scores = rng.normal(size=20)
    assert 1 - disagreement_error(grades, scores, ties="drop") == pytest.approx(
        roc_auc_score(grades, scores)
    )

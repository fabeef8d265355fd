"""The page for users of scikit-learn: its code runs, its numbers come out, and its traps are there."""

import io
import itertools
import warnings

import numpy as np
import pytest
from side_by_side import Page
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from preflearn.ground import ItemKFold, LeakageWarning, OnItems, QueryKFold
from preflearn.metrics import disagreement_error
from preflearn.pairs import Pairs
from preflearn.pursuit import RankingPursuit, RankRLS
from preflearn.ranking import Davidson, bradley_terry
from preflearn.svm import SVMRank

PAGE = Page("coming_from_scikit_learn", "scikit-learn")
GIVEN = {}
exec(next(block for kind, block, _ in PAGE.blocks if kind == "both"), GIVEN)
X, S, INDEX, Y, CLEAR = (GIVEN[name] for name in ("X", "s", "index", "y", "clear"))
PAIRS = Pairs(X, INDEX)
D, LABELS = PAIRS[CLEAR].differences(), Y[CLEAR]


@pytest.fixture(scope="module")
def ours():
    return PAGE.run("here")


@pytest.fixture(scope="module")
def theirs():
    return PAGE.run("scikit-learn")


def test_code_gives_what_the_page_shows(ours, theirs):
    assert sum(map(len, ours.values())) > 10
    assert sum(map(len, theirs.values())) >= 10


def test_both_programs_give_the_same(ours, theirs):
    PAGE.check_same(ours, theirs, least=5, tolerance=1e-5)


def test_form_of_the_page():
    PAGE.check_form()


# ---- What the page says without code


def test_weights_and_no_penalty():
    weights = np.random.default_rng(0).random(len(LABELS))
    peer = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10).fit(D, LABELS, sample_weight=weights)
    ours = Davidson(0.5).fit(PAIRS[CLEAR], LABELS, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, peer.coef_[0], atol=1e-5)
    games = np.array([(0, 1), (1, 2), (0, 2), (2, 0), (1, 0), (0, 1)])
    labels = np.array([1, -1, 1, 1, 1, -1])
    counts, rows = np.zeros((3, 3)), np.eye(3)[games[:, 0]] - np.eye(3)[games[:, 1]]
    np.add.at(counts, tuple(np.where(labels[:, None] > 0, games, games[:, ::-1]).T), 1)
    peer = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10).fit(rows, labels)
    np.testing.assert_allclose(bradley_terry(counts), peer.coef_[0] - peer.coef_.mean(), atol=1e-5)


def test_three_classes_do_not_know_of_swaps():
    every, ties = PAIRS.differences(), Davidson(0.5).fit(PAIRS, Y)
    peer = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10).fit(every, Y)
    assert np.abs(peer.predict_proba(every) - peer.predict_proba(-every)[:, ::-1]).max() > 0.05
    swapped = Pairs(X, INDEX[:, ::-1])
    np.testing.assert_allclose(ties.predict_proba(PAIRS), ties.predict_proba(swapped)[:, ::-1], atol=1e-12)


def test_least_squares_of_one_query_have_an_intercept():
    ours = RankRLS(alpha=3.0, kernel="linear").fit(X, S).rank_function(X)
    peer = Ridge(alpha=3.0 / len(X)).fit(X, S).predict(X)
    np.testing.assert_allclose(np.diff(ours), np.diff(peer), atol=1e-8)


def test_sparse_queries_go_into_learners_as_they_are():
    text = b"3 qid:1 1:0.5 2:1\n1 qid:1 1:0.1\n2 qid:2 2:1\n0 qid:2 1:1\n"
    items, scores, qid = load_svmlight_file(io.BytesIO(text), query_id=True)
    for learner in (SVMRank(kernel="linear"), RankRLS(kernel="linear"), RankingPursuit(1, kernel="linear")):
        f = learner.fit(items, scores, qid).rank_function(items)
        assert f[0] > f[1]
        assert f[2] > f[3]


def test_area_under_the_curve():
    rng = np.random.default_rng(0)
    grades, scores = rng.integers(0, 2, 20), rng.normal(size=20)
    assert 1 - disagreement_error(grades, scores, ties="drop") == pytest.approx(roc_auc_score(grades, scores))


def preferences(machine):
    """What a machine on differences says of each two items, in both orders."""
    said = np.zeros((len(X), len(X)))
    for a, b in itertools.permutations(range(len(X)), 2):
        said[a, b] = machine.predict([X[a] - X[b]])[0]
    return said


def test_a_kernel_of_differences_contradicts_itself():
    said = preferences(SVC(gamma=0.5, C=2.0).fit(D, LABELS))
    same = np.triu(said == said.T, 1).sum()
    assert f"of all 66 pairs of items, {same} get the same answer" in PAGE.text
    said = preferences(SVC(gamma=0.5, C=2.0).fit(np.vstack([D, -D]), np.r_[LABELS, -LABELS]))
    assert (said == -said.T).all()
    a, b, c = next(
        (a, b, c)
        for a, b, c in itertools.permutations(range(len(X)), 3)
        if said[a, b] == said[b, c] == said[c, a] == 1
    )
    assert f"prefers item {a} to {b}, {b} to {c}, and {c} to {a}" in PAGE.text


def test_folds():
    """Of pairs they leak, and say so; of items and queries they go into searches as they are."""
    rng = np.random.default_rng(0)
    Z, t = rng.normal(size=(30, 3)), rng.random(30)
    pairs, y = Pairs.from_scores(Z, t)
    model = make_pipeline(OnItems(StandardScaler()), SVMRank(kernel="rbf", C=10.0))
    with pytest.warns(LeakageWarning):
        cross_val_score(model, pairs, y, cv=KFold(3, shuffle=True, random_state=0))
    qid = np.repeat(np.arange(6), 5)
    of_queries, z = Pairs.from_scores(Z, t, qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(model, {"svmrank__C": [0.1, 10.0]}, cv=ItemKFold(3)).fit(pairs, y)
        groups = qid[of_queries.index[:, 0]]
        search = GridSearchCV(model, {"svmrank__C": [0.1, 10.0]}, cv=QueryKFold(3))
        search.fit(of_queries, z, groups=groups)
    assert search.best_params_["svmrank__C"] in (0.1, 10.0)


def test_one_class_and_a_scaler_of_differences():
    winners = D * LABELS[:, None]
    with pytest.raises(ValueError, match="class"):
        LogisticRegression().fit(winners, np.ones(len(winners)))
    turned, ones = PAIRS[CLEAR].flipped(LABELS)
    assert (ones == 1).all()
    expected = Davidson(0.5).fit(PAIRS[CLEAR], LABELS).coef_
    np.testing.assert_allclose(Davidson(0.5).fit(turned, ones).coef_, expected, atol=1e-6)
    scaled = StandardScaler().fit(winners)
    assert np.abs(scaled.transform(winners) + scaled.transform(-winners)).max() > 0.5

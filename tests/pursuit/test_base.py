"""What the learners from scored items have in common: what they refuse, and what a fit keeps."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from preflearn.metrics import disagreement_error
from preflearn.pairs import Pairs
from preflearn.pursuit import RLS, RankingPursuit, RankRLS, SemiSupervisedRankingPursuit, SparseRankRLS

LEARNERS = [
    RankingPursuit(2),
    RLS(),
    RankRLS(),
    SparseRankRLS(2, random_state=5),
    SemiSupervisedRankingPursuit([[0]], 2),
]
EACH = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)


@EACH
@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({"kernel": "wide"}, {}, "kernel is 'wide'"),
        ({"gamma": -1.0}, {}, "gamma is -1.0"),
        ({"n_basis": 0}, {}, "n_basis is 0; expected a whole number of at least 1"),
        ({}, {"X": [[1.0], [np.nan], [2.0]]}, r"X\[1, 0\] is nan"),
        ({}, {"X": [], "y": []}, "X has shape"),
        ({}, {"y": [1.0, 2.0]}, r"y has shape \(2,\)"),
        ({}, {"y": [1.0, np.inf, 2.0]}, r"y\[1\] is inf"),
        ({}, {"qid": [1, 2]}, r"qid has shape \(2,\)"),
        ({}, {"qid": [0, 0, 1], "graph": np.ones((3, 3))}, "both qid and graph are given"),
        ({}, {"qid": [0, 1, 2]}, "no two of the 3 items are compared"),
        ({}, {"graph": np.eye(3)}, "no two of the 3 items are compared"),
        ({}, {"graph": -np.ones((3, 3))}, r"graph\[0, 0\] is -1"),
        ({}, {"graph": np.ones((2, 2))}, r"graph has shape \(2, 2\)"),
        ({}, {"validation": [1, 2]}, r"validation is \[1, 2\]; expected a tuple"),
        ({}, {"validation": ([[1.0, 2.0]], [1.0])}, "the X of validation has shape"),
        ({}, {"validation": ([[1.0]], [1.0])}, "no pair is left"),
    ],
)
def test_bad_input_is_named(learner, parameters, arguments, message):
    if not set(parameters) <= set(learner.get_params()):
        return
    if isinstance(learner, SemiSupervisedRankingPursuit) and {"graph", "validation"} & set(arguments):
        return  # it has neither
    given = {"X": [[0.0], [1.0], [3.0]], "y": [0.0, 1.0, 1.5], **arguments}
    if isinstance(learner, RLS) and "no two" in message:  # regression needs no pairs
        clone(learner).fit(**given)
        return
    with pytest.raises(ValueError, match=message):
        clone(learner).set_params(**parameters).fit(**given)


@EACH
def test_it_is_an_estimator_whose_answers_follow_from_its_scores(learner):
    rng = np.random.default_rng(1)
    X, y, qid = rng.normal(size=(24, 1)), rng.normal(size=24), rng.integers(0, 5, 24)
    found = clone(learner).set_params(kernel="poly", degree=2).fit(X, y, qid)
    copy = clone(found)
    assert copy.get_params() == found.get_params()
    assert not hasattr(copy, "basis_")
    scores = found.rank_function(X)
    np.testing.assert_array_equal(copy.fit(X, y, qid).rank_function(X), scores)
    assert found.n_features_in_ == 1
    pairs, labels = Pairs.from_scores(X, y, qid)
    differences = pairs.B.differences(scores)
    np.testing.assert_allclose(found.decision_function(pairs), differences, atol=1e-9)
    assert found.predict(pairs).tolist() == np.sign(differences).tolist()
    wrong = disagreement_error(y, scores, qid, ties="drop")
    assert found.score(X, y, qid) == pytest.approx(1 - wrong)
    assert np.mean(found.predict(pairs) != labels) == pytest.approx(wrong)


@EACH
def test_what_happens_after_a_fit_does_not_change_it(learner):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 1)), rng.normal(size=8)
    kept, model = X.copy(), clone(learner).fit(X, y)
    expected = model.rank_function(kept)
    X[:], y[:] = 0, 0
    model.set_params(kernel="linear")
    np.testing.assert_array_equal(model.rank_function(kept), expected)
    with pytest.raises(ValueError, match="X has 2 features; expected 1"):
        model.rank_function([[0.0, 1.0]])


@EACH
def test_predict_of_items_names_rank_function(learner):
    X = np.array([[0.0], [1.0], [3.0]])
    fitted = clone(learner).fit(X, X.ravel())
    for asked in (X, sparse.csr_array(X)):
        with pytest.raises(ValueError, match=r"pairs has shape \(3, 1\); .* of items rank_function gives"):
            fitted.predict(asked)
    assert fitted.rank_function(X).shape == (3,)

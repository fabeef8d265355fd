"""What the learners from scored items share: the input that they reject, and what a fit
keeps."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from preflearn.pairs import Pairs
from preflearn.pursuit import (
    RLS,
    RankingPursuit,
    RankRLS,
    SemiSupervisedRankingPursuit,
    SparseRankRLS,
)

X3 = [[0.0], [1.0], [3.0]]
Y3 = [0.0, 1.0, 1.5]
SEMI_SUPERVISED = SemiSupervisedRankingPursuit([[0]], 2)
SUPERVISED = [RankingPursuit(2), RankRLS(), SparseRankRLS(2, random_state=5)]
LEARNERS = [*SUPERVISED, RLS(), SEMI_SUPERVISED]
EACH = pytest.mark.parametrize(
    "learner", LEARNERS, ids=lambda learner: type(learner).__name__
)


def cases(learners, arguments, message):
    return [(learner, arguments, message) for learner in learners]


@pytest.mark.parametrize(
    ("learner", "arguments", "message"),
    [
        *cases(
            [clone(one).set_params(gamma=-1.0) for one in LEARNERS], {}, "gamma is -1.0"
        ),
        *cases(
            [clone(one).set_params(kernel="wide") for one in LEARNERS],
            {},
            "kernel is 'wide'",
        ),
        *(
            (clone(LEARNERS[i]).set_params(n_basis=0), {}, "n_basis is 0")
            for i in (0, 2, 4)
        ),
        *cases(LEARNERS, {"X": [[1.0], [np.nan], [2.0]]}, r"X\[1, 0\] is nan"),
        *cases(LEARNERS, {"y": [1.0, 2.0]}, r"y has shape \(2,\)"),
        *cases(LEARNERS, {"qid": [1, 2]}, r"qid has shape \(2,\)"),
        *cases(
            [*SUPERVISED, SEMI_SUPERVISED],
            {"qid": [0, 1, 2]},
            "3 items.* at least two items",
        ),
    ],
)
def test_bad_input_is_named(learner, arguments, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(**{"X": X3, "y": Y3} | arguments)


@EACH
def test_decisions_and_errors_follow_from_the_scores(learner):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(24, 1))
    y = rng.normal(size=24)
    qid = rng.integers(0, 5, 24)
    found = clone(learner).set_params(kernel="poly", degree=2).fit(X, y, qid)
    copy = clone(found)
    assert copy.get_params() == found.get_params()
    scores = found.rank_function(X)
    np.testing.assert_array_equal(copy.fit(X, y, qid).rank_function(X), scores)
    pairs, labels = Pairs.from_scores(X, y, qid)
    differences = pairs.B.differences(scores)
    np.testing.assert_allclose(found.decision_function(pairs), differences, atol=1e-9)
    assert found.predict(pairs).tolist() == np.sign(differences).tolist()
    wrong = np.mean(found.predict(pairs) != labels)
    assert found.score(X, y, qid) == pytest.approx(1 - wrong)


@EACH
def test_what_happens_after_a_fit_does_not_change_it(learner):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 1))
    y = rng.normal(size=8)
    kept = X.copy()
    model = clone(learner).fit(X, y)
    expected = model.rank_function(kept)
    X[:] = 0
    y[:] = 0
    model.set_params(kernel="linear")
    np.testing.assert_array_equal(model.rank_function(kept), expected)
    with pytest.raises(ValueError, match=r"\b2\b.*\b1\b"):
        model.rank_function([[0.0, 1.0]])
    for asked in (kept, sparse.csr_array(kept)):
        with pytest.raises(ValueError, match="rank_function"):
            model.predict(asked)

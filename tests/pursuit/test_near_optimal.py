"""Several models of nearly the least loss: found by trying all, and what is made of them."""

from itertools import combinations

import numpy as np
import pytest
from pursuit.scored import mixed, problem
from reference import least_squares
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.pursuit import RankingPursuit


def test_near_optimal_models_are_near_optimal():
    X, s, qid = problem(14, n=12)
    found = RankingPursuit(3, gamma=1.0).fit(X, s, qid).near_optimal(epsilon=0.5, beam=400)
    K, L = rbf_kernel(X, gamma=1.0), mixed(qid)
    every = {three: least_squares(K[:, three], L, s)[1] for three in combinations(range(12), 3)}
    limit = 1.5 * min(every.values())
    expected = {ids for ids, loss in every.items() if loss <= limit}
    assert {tuple(sorted(m.basis.tolist())) for m in found.models} == expected
    for model in found.models:
        assert model.loss == pytest.approx(least_squares(K[:, model.basis], L, s)[1])
        assert model.coef == pytest.approx(least_squares(K[:, model.basis], L, s)[0], rel=1e-5)


def test_a_beam_of_one_is_the_pursuit_that_refits_before_it_chooses():
    X, s, qid = problem(15, n=20)
    model = RankingPursuit(6, backfit="pre").fit(X, s, qid)
    (only,) = model.near_optimal(epsilon=0.0, beam=1).models
    assert only.basis.tolist() == model.basis_.tolist()
    assert only.coef == pytest.approx(model.coef_)


def test_models_are_combined():
    X, s, qid = problem(16, n=20)
    found = RankingPursuit(3, gamma=0.5).fit(X, s, qid).near_optimal(epsilon=0.3, beam=6)
    scores = found.predict_models(X)
    centred = scores - [scores[qid == q].mean(axis=0) for q in qid]
    assert found.rank_function(X, "mean", qid) == pytest.approx(centred.mean(axis=1))
    assert found.rank_function(X, "median", qid) == pytest.approx(np.median(centred, axis=1))
    better = [(scores[qid == q] < row).sum(axis=0) + 1 for row, q in zip(scores, qid, strict=True)]
    assert found.rank_function(X, "borda", qid) == pytest.approx(np.mean(better, axis=1))
    weights = found.validated_weights(X, s, qid)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1.0)
    agreement = found.agreement(X, qid)
    assert agreement == pytest.approx(agreement.T)
    assert agreement.diagonal() == pytest.approx(1.0)


@pytest.mark.parametrize("mix", [0.0, 1.0])
def test_a_model_without_functions_has_near_optimal_ones_too(mix):
    X, _, qid = problem(0)
    near = RankingPursuit(3, mix=mix).fit(X, np.zeros(len(X)), qid).near_optimal()
    assert len(near) == 1
    assert not near.predict_models(X).any()
    assert not near.rank_function(X).any()
    assert near.agreement(X).tolist() == [[1.0]]
    assert near.validated_weights(X, np.arange(len(X))).tolist() == [1.0]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"weights has shape \(1,\); expected \(2,\)"),
        ([0.0, 0.0], "at least one positive number"),
        ([-1.0, 1.0], r"weights\[0\] is -1"),
    ],
)
def test_bad_weights_of_models_are_named(weights, message):
    X, y, qid = problem(3)
    near = RankingPursuit(2).fit(X, y, qid).near_optimal(epsilon=10.0, beam=2)
    with pytest.raises(ValueError, match=message):
        near.rank_function(X, weights=weights)
    with pytest.raises(ValueError, match=r"y has shape \(3,\)"):
        near.validated_weights(X, y[:3])
    with pytest.raises(ValueError, match=r"y\[0\] is nan"):
        near.validated_weights(X, np.nan * y)


def test_bad_questions_are_named():
    X, y, qid = problem(4)
    model = RankingPursuit(2).fit(X, y, qid)
    with pytest.raises(ValueError, match="epsilon is -1"):
        model.near_optimal(epsilon=-1)
    with pytest.raises(ValueError, match="beam is 0"):
        model.near_optimal(beam=0)
    with pytest.raises(ValueError, match="aggregate is 'vote'"):
        model.near_optimal().rank_function([[0.0, 0.0]], "vote")

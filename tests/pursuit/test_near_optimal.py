"""Several models with nearly the lowest loss, compared with an exhaustive search, and
their mean."""

from itertools import combinations

import numpy as np
import pytest
from pursuit.scored import mixed, problem
from reference import least_squares
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.pursuit import RankingPursuit


def test_near_optimal_models_are_near_optimal():
    X, s, qid = problem(14, n=12)
    found = (
        RankingPursuit(3, gamma=1.0).fit(X, s, qid).near_optimal(epsilon=0.5, beam=400)
    )
    K = rbf_kernel(X, gamma=1.0)
    L = mixed(qid)
    every = {
        three: least_squares(K[:, three], L, s)[1]
        for three in combinations(range(12), 3)
    }
    limit = 1.5 * min(every.values())
    expected = {ids for ids, loss in every.items() if loss <= limit}
    assert {tuple(sorted(m.basis.tolist())) for m in found.models} == expected
    for model in found.models:
        assert model.loss == pytest.approx(least_squares(K[:, model.basis], L, s)[1])
        assert model.coef == pytest.approx(
            least_squares(K[:, model.basis], L, s)[0], rel=1e-5
        )


def test_a_beam_of_one_is_the_pursuit_that_refits_before_it_chooses():
    X, s, qid = problem(15, n=20)
    model = RankingPursuit(6, backfit="pre").fit(X, s, qid)
    (only,) = model.near_optimal(epsilon=0.0, beam=1).models
    assert only.basis.tolist() == model.basis_.tolist()
    assert only.coef == pytest.approx(model.coef_)


def test_models_are_combined():
    X, s, qid = problem(16, n=20)
    found = (
        RankingPursuit(3, gamma=0.5).fit(X, s, qid).near_optimal(epsilon=0.3, beam=6)
    )
    K = rbf_kernel(X, gamma=0.5)
    scores = np.column_stack([K[:, model.basis] @ model.coef for model in found.models])
    assert np.ptp(found.predict_models(X) - scores, axis=0) == pytest.approx(
        0, abs=1e-9
    )


@pytest.mark.parametrize(("name", "value"), [("epsilon", -1), ("beam", 0)])
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        RankingPursuit(2).fit(*problem(4)).near_optimal(**{name: value})

"""Greedy selection: each step compared with brute force over the dictionary, and when
it stops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pursuit.scored import mixed, problem
from reference import least_squares
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.pursuit import RankingPursuit

BACKFITS = (False, "after", "pre")


def brute_force(K, L, s, n_basis, backfit):
    """Implement Figure 1: try every function at each step. If decreases are equal, the
    first function is chosen."""
    chosen = []
    coef = np.zeros(0)
    losses = [float(s @ L @ s)]
    for _ in range(n_basis):
        r = s - K[:, chosen] @ coef
        if backfit == "pre":
            found = [
                least_squares(K[:, [*chosen, j]], L, s)[1] for j in range(K.shape[1])
            ]
        else:
            found = [least_squares(K[:, [j]], L, r)[1] for j in range(K.shape[1])]
        if backfit:
            found = [np.inf if j in chosen else loss for j, loss in enumerate(found)]
        j = int(
            np.argmax(np.array(found) <= min(found) + 1e-9 * (losses[-1] - min(found)))
        )
        chosen.append(j)
        one = least_squares(K[:, [j]], L, r)[0]
        coef = least_squares(K[:, chosen], L, s)[0] if backfit else np.append(coef, one)
        r = s - K[:, chosen] @ coef
        losses.append(float(r @ L @ r))
    return chosen, coef, losses


@pytest.mark.parametrize("backfit", BACKFITS)
@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(2))
def test_each_step_is_that_of_brute_force(seed, mix, backfit):
    X, s, qid = problem(seed)
    model = RankingPursuit(5, gamma=0.7, mix=mix, backfit=backfit).fit(X, s, qid)
    chosen, coef, losses = brute_force(
        rbf_kernel(X, gamma=0.7), mixed(qid, mix), s, 5, backfit
    )
    assert model.basis_.tolist() == chosen
    assert model.losses_ == pytest.approx(losses, rel=1e-9)
    assert model.coef_ == pytest.approx(coef, rel=1e-6)
    assert model.rank_function(X) == pytest.approx(rbf_kernel(X, X[chosen], 0.7) @ coef)


@given(
    st.builds(lambda seed: problem(seed, n=10), st.integers(0, 300)),
    st.sampled_from(["after", "pre"]),
)
def test_duplicate_items_are_one_function(data, backfit):
    """A copy of an item in the dictionary is never chosen, because the first one is."""
    X, s, qid = data
    K = rbf_kernel(X, gamma=1.0)
    twice = np.hstack([K, K])
    one = RankingPursuit(20, "precomputed", backfit=backfit).fit(K, s, qid)
    other = RankingPursuit(20, "precomputed", backfit=backfit).fit(twice, s, qid)
    assert other.basis_.tolist() == one.basis_.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_of_functions_with_equal_decreases_the_first_is_chosen(seed):
    """The decreases of an item and of its mirror image differ by rounding errors."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(20, 2))
    s = rng.normal(size=20)
    X = np.vstack([half, -half])
    order = rng.permutation(40)
    model = RankingPursuit(1, backfit="pre").fit(X[order], np.append(s, -s)[order])
    (first,) = model.basis_
    mirrored = np.flatnonzero(order % 20 == order[first] % 20)
    assert first == mirrored[0]


@pytest.mark.parametrize("backfit", BACKFITS)
@pytest.mark.parametrize("n", [3, 23])
@pytest.mark.parametrize("score", [0.1, 1e8 + 0.1])
def test_equal_scores_choose_nothing_whatever_their_value(backfit, n, score):
    X, _, _ = problem(0, n=n)
    # in floats, the mean of n values 0.1 is not 0.1
    model = RankingPursuit(4, backfit=backfit).fit(X, np.full(n, score))
    assert len(model.basis_) == 0
    assert model.losses_.tolist() == [0.0]
    assert not model.rank_function(X).any()
    assert not model.near_optimal().predict_models(X).any()


@pytest.mark.parametrize("backfit", BACKFITS)
def test_an_offset_of_linear_functions_does_not_make_the_loss_rise(backfit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=20)
    for kernel in ("linear", "poly"):
        losses = RankingPursuit(8, kernel, backfit=backfit).fit(X + 1e8, y).losses_
        assert (np.diff(losses) <= 1e-9 * losses[0]).all()


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ((1e90, 1.0), "functions"),
        ((1e-90, 1.0), "functions"),
        ((1.0, 1e-160), "scores y"),
        ((1e30, 1e90), "scores .* times .*functions"),
    ],
)
def test_sizes_whose_squares_are_not_floats_are_named(factors, message):
    X, y, _ = problem(2)
    with pytest.raises(ValueError, match=message):
        RankingPursuit(3, "linear").fit(factors[0] * X, factors[1] * y)

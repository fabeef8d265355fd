"""Ranking pursuit: each step against brute force over the dictionary, and what must not change it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import laplacian, least_squares, same_query
from sklearn.base import clone
from sklearn.linear_model import orthogonal_mp

from preflearn.pairs import Pairs
from preflearn.pursuit import RankingPursuit

BACKFITS = (False, "after", "pre")


def mixed(qid, mix=0.0):
    """L~ of eq. 5."""
    return mix * np.eye(len(qid)) + (1 - mix) * laplacian(same_query(qid))


def rbf(X, Y, gamma):
    return np.exp(-gamma * np.square(X[:, None] - Y[None]).sum(axis=-1))


def brute_force(K, L, s, n_basis, backfit):
    """Figure 1 in words: try every function at each step; decreases that are equal go to the first."""
    chosen, coef = [], np.zeros(0)
    losses = [float(s @ L @ s)]
    for _ in range(n_basis):
        found = []
        for j in range(K.shape[1]):
            if backfit and j in chosen:
                found.append(np.inf)
            elif backfit == "pre":
                found.append(least_squares(K[:, [*chosen, j]], L, s)[1])
            else:
                r = s - K[:, chosen] @ coef
                found.append(least_squares(K[:, [j]], L, r)[1])
        j = int(np.argmax(np.array(found) <= min(found) + 1e-9 * (losses[-1] - min(found))))
        r = s - K[:, chosen] @ coef
        chosen.append(j)
        coef = (
            least_squares(K[:, chosen], L, s)[0]
            if backfit
            else np.append(coef, least_squares(K[:, [j]], L, r)[0])
        )
        r = s - K[:, chosen] @ coef
        losses.append(float(r @ L @ r))
    return chosen, coef, losses


def problem(seed, n=14, p=2):
    rng = np.random.default_rng(seed)
    qid = np.sort(rng.integers(0, 3, n))
    qid[:2] = 0
    return rng.normal(size=(n, p)), rng.normal(size=n), rng.permutation(qid)


@pytest.mark.parametrize("backfit", BACKFITS)
@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_each_step_is_that_of_brute_force(seed, mix, backfit):
    X, s, qid = problem(seed)
    model = RankingPursuit(5, gamma=0.7, mix=mix, backfit=backfit).fit(X, s, qid)
    chosen, coef, losses = brute_force(rbf(X, X, 0.7), mixed(qid, mix), s, 5, backfit)
    assert model.basis_.tolist() == chosen
    assert model.losses_ == pytest.approx(losses, rel=1e-9)
    assert model.coef_ == pytest.approx(coef, rel=1e-6)
    assert model.rank_function(X) == pytest.approx(rbf(X, X[chosen], 0.7) @ coef)


@pytest.mark.parametrize("seed", range(5))
def test_regression_is_scikit_learns_orthogonal_matching_pursuit(seed):
    rng = np.random.default_rng(seed)
    columns, s = rng.normal(size=(30, 50)), rng.normal(size=30)
    columns /= np.linalg.norm(columns, axis=0)
    model = RankingPursuit(8, "precomputed", mix=1.0, backfit="after").fit(columns, s)
    coef = orthogonal_mp(columns, s, n_nonzero_coefs=8)
    assert set(model.basis_.tolist()) == set(np.flatnonzero(coef).tolist())
    assert model.coef_ == pytest.approx(coef[model.basis_])


small = st.builds(lambda seed: problem(seed, n=10), st.integers(0, 300))
settings = st.tuples(st.sampled_from(BACKFITS), st.sampled_from([0.0, 0.5]))


@given(small, settings, st.integers(0, 99))
def test_order_of_the_items_changes_nothing(data, chosen, seed):
    (X, s, qid), (backfit, mix) = data, chosen
    order = np.random.default_rng(seed).permutation(len(s))
    one = RankingPursuit(3, mix=mix, backfit=backfit, gamma=1.0).fit(X, s, qid)
    other = RankingPursuit(3, mix=mix, backfit=backfit, gamma=1.0).fit(X[order], s[order], qid[order])
    assert order[other.basis_].tolist() == one.basis_.tolist()
    assert other.rank_function(X) == pytest.approx(one.rank_function(X), rel=1e-7, abs=1e-9)


@given(small, st.sampled_from(BACKFITS), st.floats(-1e3, 1e3), st.floats(0.1, 1e3), st.sampled_from([-1, 1]))
def test_a_shift_of_the_scores_of_a_query_changes_nothing_and_a_scale_scales(
    data, backfit, shift, scale, sign
):
    (X, s, qid), scale = data, sign * scale
    one = RankingPursuit(3, backfit=backfit, gamma=1.0).fit(X, s, qid)
    other = RankingPursuit(3, backfit=backfit, gamma=1.0).fit(X, scale * s + shift * qid, qid)
    assert other.basis_.tolist() == one.basis_.tolist()
    assert other.coef_ == pytest.approx(scale * one.coef_, rel=1e-6)


@given(small, st.sampled_from(["after", "pre"]))
def test_duplicate_items_are_one_function(data, backfit):
    """A copy of an item in the dictionary is never chosen: the first one is."""
    X, s, qid = data
    K = rbf(X, X, 1.0)
    twice = np.hstack([K, K])
    one = RankingPursuit(20, "precomputed", backfit=backfit).fit(K, s, qid)
    other = RankingPursuit(20, "precomputed", backfit=backfit).fit(twice, s, qid)
    assert other.basis_.tolist() == one.basis_.tolist()


def test_more_functions_than_the_rank_end_early():
    X, s, qid = problem(5)
    model = RankingPursuit(99, "linear").fit(X, s, qid)
    assert len(model.basis_) == 2
    assert model.losses_[-1] == pytest.approx(least_squares(X, mixed(qid), s)[1])


def test_a_query_of_one_item_adds_nothing():
    X, s, qid = problem(6)
    extra = RankingPursuit(4, gamma=1.0, dictionary=X).fit(
        np.vstack([X, [[9.0, 9.0]]]), np.append(s, 99.0), np.append(qid, 7)
    )
    alone = RankingPursuit(4, gamma=1.0).fit(X, s, qid)
    assert extra.basis_.tolist() == alone.basis_.tolist()
    assert extra.losses_ == pytest.approx(alone.losses_)


def test_wide_kernel_ranks_as_its_limit_does():
    """exp(-gamma d²) = 1 - gamma d² + ...: the 1 must not hide the rest."""
    X, s, qid = problem(9)
    one, other = (RankingPursuit(2, gamma=g, backfit=False).fit(X, s, qid) for g in (1e-10, 1e-11))
    assert one.basis_.tolist() == other.basis_.tolist()
    assert other.coef_ == pytest.approx(10 * one.coef_, rel=1e-5)
    pairs, _ = Pairs.from_scores(X, s, qid)
    assert other.decision_function(pairs) == pytest.approx(one.decision_function(pairs), rel=1e-5)


def test_validation_keeps_the_first_of_the_best():
    X, s, qid = problem(10, n=40)
    new_X, new_s, new_qid = problem(11, n=30)
    model = RankingPursuit(15).fit(X, s, qid, validation=(new_X, new_s, new_qid))
    best = int(np.argmin(model.validation_errors_))
    assert len(model.basis_) == best
    assert len(model.losses_) == len(model.validation_errors_) == 16
    for p in range(16):
        basis, coef = model.stage(p)
        staged = clone(model).fit(X, s, qid)
        staged.basis_, staged.coef_ = basis, coef
        assert 1 - staged.score(new_X, new_s, new_qid) == pytest.approx(model.validation_errors_[p])


def test_validation_of_regression_is_by_squared_error():
    X, s, _ = problem(12, n=30)
    model = RankingPursuit(4, mix=1.0).fit(X, s, validation=(X, s))
    assert model.validation_errors_ == pytest.approx(model.losses_ / 30)


def test_predictions_follow_the_label_convention():
    X, s, _ = problem(13)
    pairs, y = Pairs.from_scores(X, s)
    model = RankingPursuit(14, gamma=5.0).fit(X, s)
    assert model.predict(pairs).tolist() == y.tolist()
    assert model.decision_function(pairs) == pytest.approx(pairs.B.differences(model.rank_function(X)))
    assert model.score(X, s) == 1.0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mix": -0.1}, "mix is -0.1; expected a number from 0"),
        ({"mix": 1.5}, "mix is 1.5"),
        ({"mix": np.nan}, "mix is nan"),
        ({"backfit": True}, "backfit is True; expected False, 'after' or 'pre'"),
        ({"backfit": "both"}, "backfit is 'both'"),
        ({"memory": -1}, "memory is -1"),
        ({"dictionary": [[1.0, 2.0]]}, "dictionary has shape"),
    ],
)
def test_bad_parameters_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        RankingPursuit(**settings).fit([[0.0], [1.0]], [0.0, 1.0])


def test_questions_to_a_fitted_model_are_checked():
    model = RankingPursuit(2).fit([[0.0], [1.0], [3.0]], [0, 1, 3])
    with pytest.raises(ValueError, match="p is 9; expected a number of steps"):
        model.stage(9)


@pytest.mark.parametrize("backfit", BACKFITS)
@pytest.mark.parametrize("n", [3, 6, 7, 23])
@pytest.mark.parametrize("score", [0.1, 0.7, 1e8 + 0.1])
def test_equal_scores_choose_nothing_whatever_their_value(backfit, n, score):
    X, _, _ = problem(0, n=n)
    model = RankingPursuit(4, backfit=backfit).fit(X, np.full(n, score))  # n times 0.1 over n is not 0.1
    assert len(model.basis_) == 0
    assert model.losses_.tolist() == [0.0]
    assert not model.rank_function(X).any()


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
        ((1e90, 1.0), "the values of the functions are up to .* in size; expected 0, or from 1e-100 to 1e"),
        ((1e-90, 1.0), "the values of the functions are up to .*e-18. in size; expected 0, or from 1e-100"),
        ((1.0, 1e-160), "the differences of the scores y are up to .*e-16. in size; expected 0, or from"),
        ((1e30, 1e90), "in the loss the scores have the norm .*, the functions up to .*; expected a product"),
    ],
)
def test_sizes_whose_squares_are_no_floats_are_named(factors, message):
    X, y, _ = problem(2)
    with pytest.raises(ValueError, match=message):
        RankingPursuit(3, "linear").fit(factors[0] * X, factors[1] * y)

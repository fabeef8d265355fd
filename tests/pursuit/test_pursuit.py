"""Ranking pursuit: each step against brute force over the dictionary, and what must not change it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import laplacian, same_query
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


def least(K, L, s):
    """Coefficients and loss of least squares in the form L, through its eigenvectors."""
    values, vectors = np.linalg.eigh(L)
    R = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    a = np.linalg.lstsq(R @ K, R @ s, rcond=1e-12)[0]
    r = s - K @ a
    return a, float(r @ L @ r)


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
                found.append(least(K[:, [*chosen, j]], L, s)[1])
            else:
                r = s - K[:, chosen] @ coef
                found.append(least(K[:, [j]], L, r)[1])
        j = int(np.argmax(np.array(found) <= min(found) + 1e-9 * (losses[-1] - min(found))))
        r = s - K[:, chosen] @ coef
        chosen.append(j)
        coef = least(K[:, chosen], L, s)[0] if backfit else np.append(coef, least(K[:, [j]], L, r)[0])
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


@pytest.mark.parametrize("backfit", BACKFITS)
@pytest.mark.parametrize("memory", [4 * 40 * 40, 0], ids=["float32", "recomputed"])
@pytest.mark.parametrize("own", [True, False])
def test_memory_changes_no_choice(memory, backfit, own):
    X, s, qid = problem(1, n=40)
    dictionary = None if own else np.random.default_rng(5).normal(size=(40, 2))
    settings = {"gamma": 0.5, "backfit": backfit, "dictionary": dictionary}
    whole, other = (RankingPursuit(12, memory=m, **settings).fit(X, s, qid) for m in (1e9, memory))
    assert other.basis_.tolist() == whole.basis_.tolist()
    assert other.coef_ == pytest.approx(whole.coef_, rel=1e-6)


@pytest.mark.parametrize("backfit", ["after", "pre"])
def test_choices_that_float32_cannot_tell_apart_are_those_of_float64(backfit):
    """Centres in pairs a millionth apart: their decreases differ by less than float32 sees."""
    rng = np.random.default_rng(2)
    X, s = rng.normal(size=(30, 1)), rng.normal(size=30)
    centres = np.repeat(rng.normal(size=(15, 1)), 2, axis=0)
    centres[1::2] += 1e-6
    settings = {"gamma": 1.0, "dictionary": centres, "backfit": backfit}
    whole, other = (RankingPursuit(6, memory=m, **settings).fit(X, s) for m in (1e9, 4 * 30 * 30))
    assert other.basis_.tolist() == whole.basis_.tolist()


@pytest.mark.parametrize("backfit", ["after", "pre"])
@pytest.mark.parametrize("mix", [0.0, 0.4])
def test_residual_is_orthogonal_to_the_chosen_functions(backfit, mix):
    X, s, qid = problem(3, n=30)
    model = RankingPursuit(10, mix=mix, backfit=backfit).fit(X, s, qid)
    for p in range(11):
        basis, coef = model.stage(p)
        K = rbf(X, X[basis], 1 / (2 * X.var(axis=0).mean()))
        L = mixed(qid, mix)
        assert np.abs(K.T @ L @ (s - K @ coef)).max(initial=0) < 1e-9
        assert model.losses_[p] == pytest.approx(least(K, L, s)[1])
        assert len(set(basis.tolist())) == p


@pytest.mark.parametrize("seed", range(5))
def test_regression_is_scikit_learns_orthogonal_matching_pursuit(seed):
    rng = np.random.default_rng(seed)
    columns, s = rng.normal(size=(30, 50)), rng.normal(size=30)
    columns /= np.linalg.norm(columns, axis=0)
    model = RankingPursuit(8, "precomputed", mix=1.0, backfit="after").fit(columns, s)
    coef = orthogonal_mp(columns, s, n_nonzero_coefs=8)
    assert set(model.basis_.tolist()) == set(np.flatnonzero(coef).tolist())
    assert model.coef_ == pytest.approx(coef[model.basis_])


def test_matching_pursuit_of_one_query_is_that_of_centred_columns():
    """With one query L = n (I - 11'/n): ranking is regression on what is left of a constant."""
    X, s, _ = problem(4, n=20)
    K = rbf(X, X, 0.6)
    ranking = RankingPursuit(6, "precomputed", mix=0.0).fit(K, s)
    regression = RankingPursuit(6, "precomputed", mix=1.0).fit(K - K.mean(axis=0), s - s.mean())
    assert ranking.basis_.tolist() == regression.basis_.tolist()
    assert ranking.coef_ == pytest.approx(regression.coef_)
    assert ranking.losses_ == pytest.approx(20 * regression.losses_)


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


@given(small, st.sampled_from(BACKFITS), st.floats(-1e3, 1e3), st.floats(0.1, 1e3))
def test_a_shift_of_the_scores_of_a_query_changes_nothing_and_a_scale_scales(data, backfit, shift, scale):
    X, s, qid = data
    one = RankingPursuit(3, backfit=backfit, gamma=1.0).fit(X, s, qid)
    other = RankingPursuit(3, backfit=backfit, gamma=1.0).fit(X, scale * s + shift * qid, qid)
    assert other.basis_.tolist() == one.basis_.tolist()
    assert other.coef_ == pytest.approx(scale * one.coef_, rel=1e-6)


@given(small)
def test_reversed_scores_reverse_the_ranking(data):
    X, s, qid = data
    one, other = (RankingPursuit(4, gamma=1.0).fit(X, sign * s, qid) for sign in (1, -1))
    assert other.rank_function(X) == pytest.approx(-one.rank_function(X))


@given(small, st.sampled_from(["after", "pre"]))
def test_duplicate_items_are_one_function(data, backfit):
    """A copy of an item in the dictionary is never chosen: the first one is."""
    X, s, qid = data
    K = rbf(X, X, 1.0)
    twice = np.hstack([K, K])
    one = RankingPursuit(20, "precomputed", backfit=backfit).fit(K, s, qid)
    other = RankingPursuit(20, "precomputed", backfit=backfit).fit(twice, s, qid)
    assert other.basis_.tolist() == one.basis_.tolist()


def test_an_edge_of_weight_two_is_an_edge_twice():
    X, s, _ = problem(7)
    W = np.zeros((14, 14))
    W[:7, 7:] = 1
    doubled, heavy = W.copy(), W.copy()
    doubled[7:, :7] = W[:7, 7:].T  # both directions
    heavy[:7, 7:] = 2
    one, other = (RankingPursuit(4).fit(X, s, graph=graph) for graph in (doubled, heavy))
    assert one.basis_.tolist() == other.basis_.tolist()
    assert one.losses_ == pytest.approx(other.losses_)


def test_graph_of_the_queries_gives_the_model_of_the_queries():
    X, s, qid = problem(8)
    W = same_query(qid)
    one, other = RankingPursuit(5).fit(X, s, qid), RankingPursuit(5).fit(X, s, graph=W)
    assert other.basis_.tolist() == one.basis_.tolist()
    assert other.coef_ == pytest.approx(one.coef_)


def test_more_functions_than_the_rank_end_early():
    X, s, qid = problem(5)
    model = RankingPursuit(99, "linear").fit(X, s, qid)
    assert len(model.basis_) == 2
    assert model.losses_[-1] == pytest.approx(least(X, mixed(qid), s)[1])


def test_equal_scores_need_no_function():
    model = RankingPursuit(3).fit([[0.0], [1.0], [2.0]], [4.0, 4.0, 4.0])
    assert (len(model.basis_), model.losses_.tolist()) == (0, [0.0])
    assert model.rank_function([[5.0]]).tolist() == [0.0]


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


def test_near_optimal_models_are_near_optimal():
    X, s, qid = problem(14, n=12)
    found = RankingPursuit(3, gamma=1.0).fit(X, s, qid).near_optimal(epsilon=0.5, beam=400)
    K, L = rbf(X, X, 1.0), mixed(qid)
    every = {
        (a, b, c): least(K[:, [a, b, c]], L, s)[1] for a in range(12) for b in range(a) for c in range(b)
    }
    limit = 1.5 * min(every.values())
    expected = {ids for ids, loss in every.items() if loss <= limit}
    assert {tuple(sorted(m.basis.tolist(), reverse=True)) for m in found.models} == expected
    for model in found.models:
        assert model.loss == pytest.approx(least(K[:, model.basis], L, s)[1])
        assert model.coef == pytest.approx(least(K[:, model.basis], L, s)[0], rel=1e-5)


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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_basis": 0}, "n_basis is 0; expected a whole number of at least 1"),
        ({"mix": -0.1}, "mix is -0.1; expected a number from 0"),
        ({"mix": 1.5}, "mix is 1.5"),
        ({"mix": np.nan}, "mix is nan"),
        ({"backfit": True}, "backfit is True; expected False, 'after' or 'pre'"),
        ({"backfit": "both"}, "backfit is 'both'"),
        ({"kernel": "gauss"}, "kernel is 'gauss'"),
        ({"gamma": -1}, "gamma is -1"),
        ({"memory": -1}, "memory is -1"),
        ({"dictionary": [[1.0, 2.0]]}, "dictionary has shape"),
    ],
)
def test_bad_parameters_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        RankingPursuit(**settings).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[0.0], [np.nan]], [0, 1]), r"X\[1, 0\] is nan"),
        (([[0.0], [1.0]], [0, np.inf]), r"y\[1\] is inf"),
        (([[0.0], [1.0]], [0, 1, 2]), "y has shape"),
        (([[0.0], [1.0]], [0, 1], [0, 1]), "no two of the 2 items are compared"),
        (([[0.0], [1.0]], [0, 1], None, ([[0.0]], [1])), "no pair is left"),
        (([[0.0], [1.0]], [0, 1], None, [[0.0], [1.0]]), "validation is .*; expected a tuple"),
        (([[0.0], [1.0]], [0, 1], None, ([[0.0, 1.0]], [1])), "the X of validation has shape"),
        (([], []), "X has shape"),
    ],
)
def test_bad_input_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        RankingPursuit().fit(*arguments)


def test_questions_to_a_fitted_model_are_checked():
    model = RankingPursuit(2).fit([[0.0], [1.0], [3.0]], [0, 1, 3])
    with pytest.raises(ValueError, match="X has shape"):
        model.rank_function([[0.0, 1.0]])
    with pytest.raises(ValueError, match="p is 9; expected a number of steps"):
        model.stage(9)
    with pytest.raises(ValueError, match="epsilon is -1"):
        model.near_optimal(epsilon=-1)
    with pytest.raises(ValueError, match="beam is 0"):
        model.near_optimal(beam=0)
    with pytest.raises(ValueError, match="aggregate is 'vote'"):
        model.near_optimal().rank_function([[0.0]], "vote")


@pytest.mark.parametrize("backfit", BACKFITS)
@pytest.mark.parametrize("n", [3, 6, 7, 23])
@pytest.mark.parametrize("score", [0.1, 0.7, 1e8 + 0.1])
def test_equal_scores_choose_nothing_whatever_their_value(backfit, n, score):
    X, _, _ = problem(0, n=n)
    model = RankingPursuit(4, backfit=backfit).fit(X, np.full(n, score))  # n times 0.1 over n is not 0.1
    assert len(model.basis_) == 0
    assert model.losses_.tolist() == [0.0]
    assert not model.rank_function(X).any()


@pytest.mark.parametrize("mix", [0.0, 1.0])
def test_a_model_without_functions_has_near_optimal_ones_too(mix):
    X, _, qid = problem(0)
    near = RankingPursuit(3, mix=mix).fit(X, np.zeros(len(X)), qid).near_optimal()
    assert len(near) == 1
    assert not near.predict_models(X).any()
    assert not near.rank_function(X).any()
    assert near.agreement(X).tolist() == [[1.0]]
    assert near.validated_weights(X, np.arange(len(X))).tolist() == [1.0]


@pytest.mark.parametrize("backfit", BACKFITS)
def test_an_offset_of_linear_functions_does_not_make_the_loss_rise(backfit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=20)
    for kernel in ("linear", "poly"):
        losses = RankingPursuit(8, kernel, backfit=backfit).fit(X + 1e8, y).losses_
        assert (np.diff(losses) <= 1e-9 * losses[0]).all()


@pytest.mark.parametrize("memory", [0, 4 * 14 * 14, 1e9])
@pytest.mark.parametrize("size", [1e-20, 1e-12, 1e25])
def test_the_unit_of_functions_changes_no_choice(memory, size):
    X, y, qid = problem(1)
    base = RankingPursuit(3, "linear").fit(X, y, qid)
    other = RankingPursuit(3, "linear", memory=memory).fit(size * X, y, qid)  # float32 ends at 3e38
    assert other.basis_.tolist() == base.basis_.tolist()
    np.testing.assert_allclose(other.losses_, base.losses_, rtol=1e-9)


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


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"weights has shape \(1,\); expected \(2,\)"),
        ([0.0, 0.0], "at least one positive number"),
        ([np.nan, 1.0], r"weights\[0\] is nan"),
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


def test_what_happens_after_a_fit_does_not_change_it():
    X, y, qid = problem(4)
    kept, centres = X.copy(), X[:9].copy()
    model = RankingPursuit(4, dictionary=centres).fit(X, y, qid)
    expected, near = model.rank_function(kept), model.near_optimal(1.0, 3).predict_models(kept)
    X[:], centres[:], y[:] = 0, 0, 0
    model.set_params(mix=1.0, kernel="linear", dictionary=None)
    np.testing.assert_array_equal(model.rank_function(kept), expected)
    np.testing.assert_array_equal(model.near_optimal(1.0, 3).predict_models(kept), near)

"""AnKerRank compared with scikit-learn on dense Gram matrices, and its optimality
conditions."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from toy_rankings import better_minus_worse, rankings

from preflearn.analogy import AnKerRank, analogy_kernel
from preflearn.analogy.classifiers import platt
from preflearn.metrics import ranking_loss


def probe(seed, d=3):
    return np.random.default_rng(seed).uniform(-1, 1, (40, d))


# ---- One model


def training_examples(X, scores, orientation, seed):
    """Return the differences from which a model learns, and their labels."""
    U = better_minus_worse(X, scores)
    if orientation == "both":
        return np.vstack([U, -U]), np.repeat([1.0, -1.0], len(U))
    y = (
        np.random.default_rng(seed).choice([-1.0, 1.0], len(U))
        if orientation == "coin"
        else np.ones(len(U))
    )
    return U * y[:, None], y


@pytest.mark.parametrize("orientation", ["coin", "both"])
@pytest.mark.parametrize("zero", ["apart", "positive"])
@pytest.mark.parametrize("degree", [1, 2])
@given(
    seed=st.integers(0, 10**6),
    log_c=st.floats(-2, 2),
    levels=st.sampled_from([None, 3]),
)
@examples(5)
def test_it_is_the_svm_of_scikit_learn_on_the_gram_matrix(
    degree, zero, orientation, seed, log_c, levels
):
    X, scores = rankings(seed, levels=levels)
    C = 10**log_c
    V = probe(seed)
    model = AnKerRank(
        C, degree=degree, zero=zero, orientation=orientation, random_state=seed
    ).fit(X, scores)
    U, y = training_examples(X, scores, orientation, seed)
    # LIBSVM stores the kernel in single precision. A smaller tolerance may end far from
    # the optimum.
    svc = SVC(C=C, kernel="precomputed", tol=1e-6, max_iter=100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.fit(analogy_kernel(U, degree=degree, zero=zero), y)
    expected = svc.decision_function(analogy_kernel(V, U, degree=degree, zero=zero))
    np.testing.assert_allclose(
        model.decision_function(V), expected, atol=1e-5 * max(1, C)
    )


@pytest.mark.parametrize("degree", [1, 2])
@given(
    seed=st.integers(0, 10**6),
    log_c=st.floats(-4, 4),
    levels=st.sampled_from([None, 2]),
)
@examples(15)
def test_the_svm_without_bias_is_at_its_optimum(degree, seed, log_c, levels):
    X, scores = rankings(seed, n=8, levels=levels)
    C = 10**log_c
    V = probe(seed)
    model = AnKerRank(
        C, degree=degree, orientation="antisymmetric", random_state=0
    ).fit(X, scores)
    U, _ = training_examples(X, scores, "antisymmetric", 0)
    coef = np.zeros(len(U))
    coef[model.support_] = model.dual_coef_
    K = (analogy_kernel(U, degree=degree) - analogy_kernel(U, -U, degree=degree)) / 2
    assert -1e-9 * C <= coef.min() <= coef.max() <= C * (1 + 1e-9)
    primal = C * np.maximum(1 - K @ coef, 0).sum() + coef @ K @ coef / 2
    dual = coef.sum() - coef @ K @ coef / 2
    assert abs(primal - dual) <= 1e-6 * primal
    np.testing.assert_allclose(
        model.decision_function(-V), -model.decision_function(V), atol=1e-12
    )
    assert model.intercept_ == 0
    assert model.platt_[1] == pytest.approx(0, abs=1e-9)


def test_both_orientations_choose_as_the_antisymmetric_kernel_does():
    X, scores = rankings(1, n=16)
    both, odd = (
        AnKerRank(orientation=o, random_state=3).fit(X, scores)
        for o in ("both", "antisymmetric")
    )
    assert pytest.approx(2 * both.C_, rel=1e-6) == odd.C_
    assert odd.curve_.loss == both.curve_.loss
    np.testing.assert_allclose(odd.preferences(X), both.preferences(X), atol=1e-3)


@pytest.mark.parametrize("orientation", ["coin", "antisymmetric"])
@pytest.mark.parametrize(
    ("loss", "C"), [("logistic", 3.0), ("logistic", 1e6), ("squared", 3.0)]
)
def test_other_losses_are_at_their_optimum(orientation, loss, C):
    """The coefficients are -C times the slopes at f, up to a vector of small norm. With
    a bias their sum is 0."""
    X, scores = rankings(11, n=25)
    odd = orientation == "antisymmetric"
    biased = loss == "logistic" and orientation == "coin"
    U, y = training_examples(X, scores, orientation, 0)
    K = (analogy_kernel(U) - analogy_kernel(U, -U)) / 2 if odd else analogy_kernel(U)
    model = AnKerRank(
        C, degree=1, loss=loss, orientation=orientation, random_state=0
    ).fit(X, scores)
    assert model.support_.tolist() == list(range(300))
    f = K @ model.dual_coef_ + model.intercept_
    coef = model.dual_coef_
    np.testing.assert_allclose(
        model.decision_function(U), f, atol=1e-9 * np.abs(coef).sum()
    )
    slopes, losses = {
        "logistic": (-y * expit(-y * f), np.logaddexp(0, -y * f)),
        "squared": (f - y, (f - y) ** 2 / 2),
    }[loss]
    gap = coef + C * slopes
    assert gap @ K @ gap / 2 <= 1e-8 * (C * losses.sum() + coef @ K @ coef / 2)
    assert (abs(gap.sum()) <= 1e-6 * C) if biased else model.intercept_ == 0
    assert model.platt_[0] > 0


# ---- The choice of C


def brute_curve(X, scores, seed, lam, n_repeats, split):
    """Return the fraction of wrong validation pairs at one lambda. LIBSVM fits a model
    in each fold."""
    rng = np.random.default_rng(seed)
    U = better_minus_worse(X, scores)
    index = np.array([(i, j) for i in range(len(X)) for j in range(i + 1, len(X))])
    y = rng.choice([-1.0, 1.0], len(U))
    U = U * y[:, None]
    wrong = 0
    total = 0
    for _ in range(n_repeats):
        if split == "pairs":
            half = rng.permutation(len(U)) % 2
        else:
            of_item = rng.permutation(len(X)) % 2
            half = np.where(
                of_item[index[:, 0]] == of_item[index[:, 1]], of_item[index[:, 0]], 2
            )
        for part in (0, 1):
            train = half == part
            valid = half == 1 - part
            K = analogy_kernel(U[train], degree=2)
            svc = SVC(
                C=len(U) / (lam * train.sum()), kernel="precomputed", tol=1e-9
            ).fit(K, y[train])
            f = svc.decision_function(analogy_kernel(U[valid], U[train], degree=2))
            wrong = wrong + np.sum((f >= 0) != (y[valid] > 0))
            total = total + valid.sum()
    return wrong / total


@pytest.mark.parametrize("split", ["pairs", "objects"])
def test_the_curve_is_that_of_single_fits(split):
    X, scores = rankings(6, n=14)
    model = AnKerRank(n_repeats=2, split=split, random_state=7).fit(X, scores)
    curve = model.curve_
    assert 1 / curve.lam == model.C_
    assert curve.loss == curve.losses.min()
    assert brute_curve(X, scores, 7, curve.lam, 2, split) == pytest.approx(curve.loss)
    middles = np.sqrt(curve.lambdas[1:] * curve.lambdas[:-1])
    # LIBSVM is not exact
    wide = np.flatnonzero(curve.lambdas[:-1] > 1.02 * curve.lambdas[1:])
    for k in wide[:: max(1, len(wide) // 12)]:
        assert brute_curve(X, scores, 7, middles[k], 2, split) == pytest.approx(
            curve.losses[k]
        )


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_other_losses_choose_from_a_grid(loss):
    model = AnKerRank(loss=loss, random_state=0).fit(*rankings(3))
    np.testing.assert_allclose(model.curve_.lambdas, 10.0 ** np.arange(3, -7, -1))
    assert (
        pytest.approx(1 / model.curve_.lambdas[np.argmin(model.curve_.losses)])
        == model.C_
    )


# ---- From decision values to preferences


def test_the_calibration_uses_values_of_pairs_that_were_held_out():
    X, scores = rankings(10, n=12)
    model = AnKerRank(4.0, n_repeats=1, random_state=2).fit(X, scores)
    rng = np.random.default_rng(2)
    U = better_minus_worse(X, scores)
    y = rng.choice([-1.0, 1.0], len(U))
    U, half, f = U * y[:, None], rng.permutation(len(U)) % 2, np.empty(len(U))
    for part in (0, 1):
        train = half == part
        svc = SVC(C=4.0 * len(U) / train.sum(), kernel="precomputed", tol=1e-9)
        svc.fit(analogy_kernel(U[train], degree=2), y[train])
        f[~train] = svc.decision_function(analogy_kernel(U[~train], U[train], degree=2))
    np.testing.assert_allclose(model.platt_, platt(f, y), atol=1e-3)


@given(
    seed=st.integers(0, 10**6),
    orientation=st.sampled_from(["coin", "both", "antisymmetric"]),
)
@examples(20)
def test_preferences_are_reciprocal_and_follow_the_items(seed, orientation):
    X, scores = rankings(seed, n=8)
    model = AnKerRank(2.0, orientation=orientation, random_state=seed).fit(X, scores)
    Q = rankings(seed + 1, n=6)[0]
    Q[3] = Q[1]
    P = model.preferences(Q)
    assert (P + P.T == 1).all()
    assert (np.diag(P) == 0.5).all()
    assert 0 <= P.min() <= P.max() <= 1
    assert P[1, 3] == pytest.approx(0.5, abs=1e-15)
    a, b = model.platt_
    chance = [
        expit(a * model.decision_function((Q[:1] - Q[1:2]) * s)[0] + b) for s in (1, -1)
    ]
    assert P[0, 1] == pytest.approx((1 + chance[0] - chance[1]) / 2, abs=1e-12)
    order = np.random.default_rng(seed).permutation(6)
    np.testing.assert_allclose(
        model.preferences(Q[order]), P[np.ix_(order, order)], atol=1e-12
    )


# ---- Small and unusual training sets


def test_queries_are_compared_within_and_ties_make_no_pair():
    X, scores = rankings(0, n=12)
    qid = np.repeat([5, 7, 9], 4)
    scores[1] = scores[0]
    model = AnKerRank(
        1.0, loss="squared", orientation="antisymmetric", random_state=0
    ).fit(X, scores, qid)
    U = np.vstack(
        [better_minus_worse(X[qid == q], scores[qid == q]) for q in (5, 7, 9)]
    )
    np.testing.assert_allclose(model.differences_, U)
    assert model.support_.tolist() == list(range(17))


def test_two_items():
    X = [[0.0, 0.5], [1.0, 0.5]]
    for orientation in ("both", "antisymmetric"):
        model = AnKerRank(1.0, orientation=orientation).fit(X, [0, 1])
        assert model.rank(X).tolist() == [2, 1]
        assert model.rank([[0.2, 0.5], [0.1, 0.5]]).tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"pairs is 1.*orientation"):
        AnKerRank(1.0).fit(X, [0, 1])
    with pytest.raises(ValueError, match=r"C is 'path'.*number"):
        AnKerRank(orientation="both").fit(X, [0, 1])


@pytest.mark.parametrize("orientation", ["both", "antisymmetric"])
@pytest.mark.parametrize("n", [3, 4, 5])
def test_few_items_in_order_of_one_feature_are_ranked_in_that_order(n, orientation):
    X = np.column_stack([np.linspace(0, 1, n), np.full(n, 0.5)])
    model = AnKerRank(1.0, orientation=orientation).fit(X, np.arange(n))
    assert model.rank(X).tolist() == list(range(n, 0, -1))


def test_coins_do_not_all_fall_on_one_side():
    for seed in range(8):
        model = AnKerRank(1.0, loss="squared", random_state=seed).fit(
            [[0.0], [0.4], [1.0]], [0, 1, 2]
        )
        assert model.rank([[0.9], [0.2]]).tolist() == [1, 2]
        assert len(set(np.sign(model.differences_[:, 0]))) == 2


@pytest.mark.parametrize("orientation", ["coin", "antisymmetric"])
def test_equal_items_share_their_rank_and_leave_no_choice(orientation):
    X = np.full((6, 2), 0.5)
    with pytest.raises(ValueError, match=r"C.*number"):
        AnKerRank(orientation=orientation, random_state=0).fit(X, range(6))
    model = AnKerRank(1.0, orientation=orientation, random_state=0).fit(X, range(6))
    assert model.rank(X).tolist() == [1] * 6


@pytest.mark.parametrize("slope", [1.0, -1.0])
def test_a_negative_slope_of_the_calibration_does_not_reverse_the_order(
    slope, monkeypatch
):
    monkeypatch.setattr(
        "preflearn.analogy.anker_rank.platt", lambda *given: (slope, 0.25)
    )
    X, scores = rankings(0)
    model = AnKerRank(1.0, random_state=0).fit(X, scores)
    assert model.platt_ == (max(slope, 0.0), 0.25)
    if slope > 0:
        assert ranking_loss(-scores, model.rank(X)) < 0.5
    else:
        assert len(set(model.rank(X))) == 1


# ---- Bad input


@pytest.mark.parametrize(
    ("name", "value", "others"),
    [
        *(
            ("C", 0, {}),
            ("C", 1e7, {"loss": "logistic"}),
            ("C", "cv", {}),
            ("n_repeats", 0, {}),
        ),
        *(
            ("degree", 1.5, {}),
            ("orientation", "odd", {}),
            ("split", "items", {}),
            ("loss", "huber", {}),
        ),
        *(
            ("zero", "negative", {}),
            ("zero", "positive", {"orientation": "antisymmetric"}),
        ),
    ],
)
def test_bad_parameters_are_named(name, value, others):
    with pytest.raises(ValueError, match=f"^{name} is {value!r}"):
        AnKerRank().set_params(**others | {name: value}).fit(*rankings(0))

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from toy_rankings import better_minus_worse, rankings

from preflearn.analogy import AnKerRank, analogy_kernel
from preflearn.analogy.machines import platt
from preflearn.metrics import ranking_loss


def probe(seed, d=3):
    return np.random.default_rng(seed).uniform(-1, 1, (40, d))


# ---- One machine


def examples(X, rank, orientation, seed):
    """The differences that a machine learns from, and their labels."""
    U = better_minus_worse(X, rank)
    if orientation == "both":
        return np.vstack([U, -U]), np.repeat([1.0, -1.0], len(U))
    y = np.random.default_rng(seed).choice([-1.0, 1.0], len(U)) if orientation == "coin" else np.ones(len(U))
    return U * y[:, None], y


@pytest.mark.parametrize("orientation", ["coin", "both"])
@pytest.mark.parametrize("zero", ["apart", "positive"])
@pytest.mark.parametrize("degree", [1, 2])
@given(seed=st.integers(0, 10**6), log_c=st.floats(-2, 2), levels=st.sampled_from([None, 3]))
@settings(max_examples=5)
def test_equals_scikit_learn_on_the_dense_gram(degree, zero, orientation, seed, log_c, levels):
    X, rank = rankings(seed, levels=levels)
    C, V = 10**log_c, probe(seed)
    machine = AnKerRank(C, degree=degree, zero=zero, orientation=orientation, random_state=seed).fit(X, rank)
    U, y = examples(X, rank, orientation, seed)
    # In single precision libsvm gets to 1e-6 at best; where more is asked it may end far from the optimum.
    svc = SVC(C=C, kernel="precomputed", tol=1e-6, max_iter=100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.fit(analogy_kernel(U, degree=degree, zero=zero), y)
    expected = svc.decision_function(analogy_kernel(V, U, degree=degree, zero=zero))
    np.testing.assert_allclose(machine.decision_function(V), expected, atol=1e-5 * max(1, C))


@pytest.mark.parametrize("degree", [1, 2])
@given(seed=st.integers(0, 10**6), log_c=st.floats(-4, 4), levels=st.sampled_from([None, 2]))
@settings(max_examples=15)
def test_the_machine_without_bias_is_at_its_optimum(degree, seed, log_c, levels):
    """Which is that of both orientations at half the cost: a box of the chapter."""
    X, rank = rankings(seed, n=8, levels=levels)
    C, V = 10**log_c, probe(seed)
    machine = AnKerRank(C, degree=degree, orientation="antisymmetric", random_state=0).fit(X, rank)
    U, _ = examples(X, rank, "antisymmetric", 0)
    coef = np.zeros(len(U))
    coef[machine.support_] = machine.dual_coef_
    K = (analogy_kernel(U, degree=degree) - analogy_kernel(U, -U, degree=degree)) / 2
    assert -1e-9 * C <= coef.min() <= coef.max() <= C * (1 + 1e-9)
    primal = C * np.maximum(1 - K @ coef, 0).sum() + coef @ K @ coef / 2
    dual = coef.sum() - coef @ K @ coef / 2
    assert abs(primal - dual) <= 1e-6 * primal
    np.testing.assert_allclose(machine.decision_function(-V), -machine.decision_function(V), atol=1e-12)
    assert machine.intercept_ == 0
    assert machine.platt_[1] == pytest.approx(0, abs=1e-9)


def test_both_and_antisymmetric_choose_the_same():
    X, rank = rankings(1, n=16)
    both, odd = (AnKerRank(orientation=o, random_state=3).fit(X, rank) for o in ("both", "antisymmetric"))
    assert pytest.approx(2 * both.C_, rel=1e-6) == odd.C_
    assert odd.curve_.loss == both.curve_.loss
    np.testing.assert_allclose(odd.preferences(X), both.preferences(X), atol=1e-3)


@pytest.mark.parametrize("orientation", ["coin", "antisymmetric"])
@pytest.mark.parametrize(
    ("loss", "C"), [("logistic", 1e-3), ("logistic", 3.0), ("logistic", 1e6), ("squared", 3.0)]
)
def test_other_losses_are_at_their_optimum(orientation, loss, C):
    """Coefficients are -C times slopes at f, up to a vector of small norm, with sum 0 beside a bias."""
    X, rank = rankings(11, n=25)
    odd, biased = orientation == "antisymmetric", loss == "logistic" and orientation == "coin"
    U, y = examples(X, rank, orientation, 0)
    K = (analogy_kernel(U) - analogy_kernel(U, -U)) / 2 if odd else analogy_kernel(U)
    machine = AnKerRank(C, degree=1, loss=loss, orientation=orientation, random_state=0).fit(X, rank)
    assert machine.support_.tolist() == list(range(300))
    f, coef = K @ machine.dual_coef_ + machine.intercept_, machine.dual_coef_
    np.testing.assert_allclose(machine.decision_function(U), f, atol=1e-9 * np.abs(coef).sum())
    slopes, losses = {
        "logistic": (-y * expit(-y * f), np.logaddexp(0, -y * f)),
        "squared": (f - y, (f - y) ** 2 / 2),
    }[loss]
    gap = coef + C * slopes
    assert gap @ K @ gap / 2 <= 1e-8 * (C * losses.sum() + coef @ K @ coef / 2)
    assert (abs(gap.sum()) <= 1e-6 * C) if biased else machine.intercept_ == 0
    assert machine.platt_[0] > 0


# ---- The choice of C


def brute_curve(X, rank, seed, lam, n_repeats, split):
    """The share of wrong validation pairs at one lambda, by libsvm in each fold."""
    rng = np.random.default_rng(seed)
    U = better_minus_worse(X, rank)
    index = np.array([(i, j) for i in range(len(X)) for j in range(i + 1, len(X))])
    y = rng.choice([-1.0, 1.0], len(U))
    U, wrong, total = U * y[:, None], 0, 0
    for _ in range(n_repeats):
        if split == "pairs":
            half = rng.permutation(len(U)) % 2
        else:
            of_item = rng.permutation(len(X)) % 2
            half = np.where(of_item[index[:, 0]] == of_item[index[:, 1]], of_item[index[:, 0]], 2)
        for part in (0, 1):
            train, valid = half == part, half == 1 - part
            K = analogy_kernel(U[train], degree=2)
            svc = SVC(C=len(U) / (lam * train.sum()), kernel="precomputed", tol=1e-9).fit(K, y[train])
            f = svc.decision_function(analogy_kernel(U[valid], U[train], degree=2))
            wrong, total = wrong + np.sum((f >= 0) != (y[valid] > 0)), total + valid.sum()
    return wrong / total


@pytest.mark.parametrize("split", ["pairs", "objects"])
def test_the_curve_is_that_of_single_fits(split):
    X, rank = rankings(6, n=14)
    machine = AnKerRank(n_repeats=2, split=split, random_state=7).fit(X, rank)
    curve = machine.curve_
    assert 1 / curve.lam == machine.C_
    assert curve.loss == curve.losses.min()
    assert brute_curve(X, rank, 7, curve.lam, 2, split) == pytest.approx(curve.loss)
    middles = np.sqrt(curve.lambdas[1:] * curve.lambdas[:-1])
    wide = np.flatnonzero(curve.lambdas[:-1] > 1.02 * curve.lambdas[1:])  # libsvm is not exact
    for k in wide[:: max(1, len(wide) // 12)]:
        assert brute_curve(X, rank, 7, middles[k], 2, split) == pytest.approx(curve.losses[k])


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_other_losses_choose_from_a_grid(loss):
    machine = AnKerRank(loss=loss, random_state=0).fit(*rankings(3))
    np.testing.assert_allclose(machine.curve_.lambdas, 10.0 ** np.arange(3, -7, -1))
    assert pytest.approx(1 / machine.curve_.lambdas[np.argmin(machine.curve_.losses)]) == machine.C_


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("orientation", ["coin", "antisymmetric"])
def test_it_learns_a_curved_order(loss, orientation):
    X, rank = rankings(8, n=30)
    Q, true = rankings(9, n=30)
    machine = AnKerRank(loss=loss, orientation=orientation, random_state=1).fit(X, rank)
    assert ranking_loss(true, machine.rank(Q)) < 0.2
    assert machine.platt_[0] > 0


# ---- From decision values to preferences


def test_platt_is_out_of_fold():
    X, rank = rankings(10, n=12)
    machine = AnKerRank(4.0, n_repeats=1, random_state=2).fit(X, rank)
    rng, U = np.random.default_rng(2), better_minus_worse(X, rank)
    y = rng.choice([-1.0, 1.0], len(U))
    U, half, f = U * y[:, None], rng.permutation(len(U)) % 2, np.empty(len(U))
    for part in (0, 1):
        train = half == part
        svc = SVC(C=4.0 * len(U) / train.sum(), kernel="precomputed", tol=1e-9)
        svc.fit(analogy_kernel(U[train], degree=2), y[train])
        f[~train] = svc.decision_function(analogy_kernel(U[~train], U[train], degree=2))
    np.testing.assert_allclose(machine.platt_, platt(f, y), atol=1e-3)
    plain = LogisticRegression(C=np.inf).fit(f[:, None], y)  # without Platt's targets it is near
    assert machine.platt_[0] == pytest.approx(plain.coef_[0, 0], rel=0.3)


@given(seed=st.integers(0, 10**6), orientation=st.sampled_from(["coin", "both", "antisymmetric"]))
@settings(max_examples=20)
def test_preferences_are_reciprocal_and_follow_the_items(seed, orientation):
    X, rank = rankings(seed, n=8)
    machine = AnKerRank(2.0, orientation=orientation, random_state=seed).fit(X, rank)
    Q = rankings(seed + 1, n=6)[0]
    Q[3] = Q[1]
    P = machine.preferences(Q)
    assert (P + P.T == 1).all()
    assert (np.diag(P) == 0.5).all()
    assert 0 <= P.min() <= P.max() <= 1
    assert P[1, 3] == pytest.approx(0.5, abs=1e-15)
    a, b = machine.platt_
    chance = [expit(a * machine.decision_function((Q[:1] - Q[1:2]) * s)[0] + b) for s in (1, -1)]
    assert P[0, 1] == pytest.approx((1 + chance[0] - chance[1]) / 2, abs=1e-12)
    order = np.random.default_rng(seed).permutation(6)
    np.testing.assert_allclose(machine.preferences(Q[order]), P[np.ix_(order, order)], atol=1e-12)


# ---- Small and odd training sets


def test_queries_are_compared_within_and_ties_make_no_pair():
    X, rank = rankings(0, n=12)
    qid = np.repeat([5, 7, 9], 4)
    rank[1] = rank[0]
    machine = AnKerRank(1.0, loss="squared", orientation="antisymmetric", random_state=0).fit(X, rank, qid)
    U = np.vstack([better_minus_worse(X[qid == q], rank[qid == q]) for q in (5, 7, 9)])
    np.testing.assert_allclose(machine.differences_, U)
    assert machine.support_.tolist() == list(range(17))


def test_two_items():
    X = [[0.0, 0.5], [1.0, 0.5]]
    for orientation in ("both", "antisymmetric"):
        machine = AnKerRank(1.0, orientation=orientation).fit(X, [2, 1])
        assert machine.rank(X).tolist() == [2, 1]
        assert machine.rank([[0.2, 0.5], [0.1, 0.5]]).tolist() == [1, 2]
    with pytest.raises(ValueError, match="number of pairs is 1; expected more, as one pair makes one class"):
        AnKerRank(1.0).fit(X, [2, 1])
    with pytest.raises(ValueError, match="no fold of the 1 pairs has two kinds of examples"):
        AnKerRank(orientation="both").fit(X, [2, 1])


@pytest.mark.parametrize("seed", range(8))
def test_coins_do_not_all_fall_on_one_side(seed):
    machine = AnKerRank(1.0, loss="squared", random_state=seed).fit([[0.0], [0.4], [1.0]], [3, 2, 1])
    assert machine.rank([[0.9], [0.2]]).tolist() == [1, 2]
    assert len(set(np.sign(machine.differences_[:, 0]))) == 2


@pytest.mark.parametrize("orientation", ["coin", "both", "antisymmetric"])
def test_items_that_are_all_alike(orientation):
    X = np.full((6, 2), 0.5)
    with pytest.raises(ValueError, match="in all folds every C gives the same machine"):
        AnKerRank(orientation=orientation, random_state=0).fit(X, range(6))
    machine = AnKerRank(1.0, orientation=orientation, random_state=0).fit(X, range(6))
    assert machine.rank(X).tolist() == [1] * 6


@pytest.mark.parametrize("slope", [1.0, -1.0])
def test_a_negative_slope_does_not_turn_the_order_around(slope, monkeypatch):
    monkeypatch.setattr("preflearn.analogy.anker_rank.platt", lambda *given: (slope, 0.25))
    X, rank = rankings(0)
    machine = AnKerRank(1.0, random_state=0).fit(X, rank)
    assert machine.platt_ == (max(slope, 0.0), 0.25)
    assert ranking_loss(rank, machine.rank(X)) < 0.5 or slope < 0
    assert len(set(machine.rank(X))) == 1 or slope > 0


# ---- Bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": 0}, "C is 0; expected a number from 1e-100 to 1e\\+100 or 'path'"),
        ({"C": 1e7, "loss": "logistic"}, "C is 10000000.0; expected a number from 1e-06 to 1e\\+06"),
        ({"C": "cv"}, "C is 'cv'; expected a number from .* or 'path'"),
        ({"degree": 1.5}, "degree is 1.5; expected a whole number"),
        ({"orientation": "odd"}, "orientation is 'odd'; expected 'coin' or"),
        ({"n_repeats": 0}, "n_repeats is 0; expected a whole number of at least 1"),
        ({"split": "items"}, "split is 'items'; expected 'pairs' or 'objects'"),
        ({"loss": "huber"}, "loss is 'huber'; expected 'hinge' or"),
        ({"zero": "negative"}, "zero is 'negative'; expected 'apart' or 'positive'"),
        ({"orientation": "antisymmetric", "zero": "positive"}, "zero is 'positive'; expected 'apart' with"),
    ],
)
def test_bad_parameters_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        AnKerRank().set_params(**change).fit(*rankings(0))


@pytest.mark.parametrize("n", [3, 4, 5])
def test_few_items_either_choose_or_say_why(n):
    X, rank = rankings(0, n=n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            assert AnKerRank(random_state=0, split="objects").fit(X, rank).C_ > 0
        except ValueError as error:
            assert "expected a number, or more pairs or queries" in str(error)  # noqa: PT017


def test_a_path_that_ends_early_gives_its_last_machine_and_its_cost():
    ended = 0
    for seed in range(12):
        X, rank = rankings(seed, n=9, d=1, levels=3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            machine = AnKerRank(1e12, degree=1, orientation="antisymmetric", random_state=0).fit(X, rank)
        assert np.isfinite(machine.decision_function(probe(0, d=1))).all()
        told = re.findall(r"at C = (\S+), taken in place of 1e\+12", "".join(str(w.message) for w in caught))
        assert len(told) == (machine.C_ < 1e12) <= 1
        assert f"{machine.C_:.3g}" == (told or ["1e+12"])[0]
        assert np.abs(machine.dual_coef_).max() <= machine.C_ * (1 + 1e-9)
        ended += len(told)
    assert ended

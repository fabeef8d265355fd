"""The theorem boxes of chapter 14, sentence by sentence."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Elo,
    Logit,
    Matches,
    Matern12,
    OrdinalProbit,
    Poisson,
    Probit,
    TrueSkill,
    evidence_gradient,
    parameters_of,
    with_parameters,
)

OUTCOMES = np.array(list(product((0, 1), repeat=4)))  # of four matches, one a row


def joint_of_the_four_items():
    """P(y) of all outcomes of the four items' matches: probit, scores of variance 1, by quadrature."""
    B = np.array([[-1, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1], [-1, 0, 0, 1]])
    z, w = np.polynomial.hermite_e.hermegauss(24)
    s = np.stack(np.meshgrid(*[z] * 4, indexing="ij")).reshape(4, -1)
    weights = np.prod(np.stack(np.meshgrid(*[w / w.sum()] * 4)).reshape(4, -1), axis=0)
    chance = ndtr(B @ s)
    return np.array([np.where(y[:, None], chance, 1 - chance).prod(axis=0) @ weights for y in OUTCOMES])


def joints():
    rng = np.random.default_rng(7)
    yield joint_of_the_four_items()
    yield np.full(16, 1 / 16)
    yield from rng.dirichlet(np.full(16, 0.3), size=20)
    apart = rng.uniform(0.1, 0.9, size=4)  # independent matches
    yield np.where(OUTCOMES, apart, 1 - apart).prod(axis=1)


def log_p(joint, y, known):
    """log P of the matches in `known` having their outcomes in y."""
    known = list(known)
    return np.log(joint[(OUTCOMES[:, known] == y[known]).all(axis=1)].sum())


@pytest.mark.theorem("prop-sports-evidence")
@pytest.mark.parametrize("joint", list(joints()))
def test_evidence_is_the_sum_of_forecasts(joint):
    probable = [(p, y) for p, y in zip(joint, OUTCOMES, strict=True) if p > 0]
    together, one_out = [], []
    for p, y in probable:
        whole = log_p(joint, y, range(4))
        for order in permutations(range(4)):  # (a)
            steps = [log_p(joint, y, order[: k + 1]) - log_p(joint, y, order[:k]) for k in range(4)]
            assert sum(steps) == pytest.approx(whole, abs=1e-9)
            late = sum(steps[2:])  # (b): the last two are the test set
            assert late == pytest.approx(whole - log_p(joint, y, order[:2]), abs=1e-9)
        past = log_p(joint, y, (0, 1))
        day = [log_p(joint, y, (0, 1, k)) - past for k in (2, 3)]
        together.append(p * (whole - past - sum(day)))
        one_out.append(p * sum(whole - log_p(joint, y, [m for m in range(4) if m != k]) for k in range(4)))
    assert sum(together) >= -1e-12  # (c): on average a day's matches are more probable together
    mean = sum(p * np.log(p) for p, _ in probable)
    assert sum(one_out) >= mean - 1e-12  # (d)


def test_equality_of_the_evidence_box_is_that_of_independent_matches():
    *_, apart = joints()
    for p, y in zip(apart, OUTCOMES, strict=True):
        one_out = sum(np.log(p) - log_p(apart, y, [m for m in range(4) if m != k]) for k in range(4))
        assert one_out == pytest.approx(np.log(p))


def problem(likelihood, rng, n=14, n_players=4):
    X = np.zeros((n, n_players))
    for row in X:
        row[rng.choice(n_players, 2, replace=False)] = 1, -1
    X = X[:, X.any(axis=0)]
    results = [0, 1, 2] if isinstance(likelihood, Poisson) else [-1, 0, 1] if likelihood.has_ties else [-1, 1]
    time = np.sort(rng.uniform(0, 10, n))
    return Matches(X, time, [str(m) for m in range(X.shape[1])]), rng.choice(results, size=n)


@pytest.mark.theorem("prop-sports-gradient")
@pytest.mark.parametrize("method", ["ep", "kl"])
@pytest.mark.parametrize("likelihood", [Probit(), Logit(), OrdinalProbit(0.5), Poisson()])
def test_gradient_at_fixed_pseudo_observations(method, likelihood):
    rng, covariance = np.random.default_rng(3), Constant(0.4) + Matern12(0.8, lengthscale=3.0)
    for _ in range(3):
        matches, y = problem(likelihood, rng)
        model = DynamicComparisons(covariance, likelihood, method, tol=1e-11).fit(matches, y)
        values, step, refitted = parameters_of(model), 1e-3, []
        for name in values:
            ends = [
                with_parameters(model, {name: values[name] * np.exp(sign * step)}).fit(matches, y)
                for sign in (1, -1)
            ]
            refitted.append(
                (ends[0].log_marginal_likelihood_ - ends[1].log_marginal_likelihood_) / (2 * step)
            )
        np.testing.assert_allclose(evidence_gradient(model), refitted, atol=2e-6)


@pytest.mark.theorem("prop-sports-gradient")
def test_gradient_needs_the_fixed_point():
    """With pseudo-observations of one sweep the derivative is not that of refitted models."""
    matches, y = problem(Probit(), np.random.default_rng(5))
    rough = DynamicComparisons(Constant(4.0), Probit(), rate=1.0, tol=1e-11, max_iter=1)
    with pytest.warns(UserWarning, match="no convergence"):
        rough.fit(matches, y)
    fine = DynamicComparisons(Constant(4.0), Probit(), tol=1e-11).fit(matches, y)
    assert abs(evidence_gradient(rough) - evidence_gradient(fine)).max() > 1e-2


def hybrid(likelihood, y, c, v):
    """Means and variances of both scores after a match, by a grid."""
    s = [m + np.sqrt(w) * np.linspace(-10, 10, 1001) for m, w in zip(c, v, strict=True)]
    first, second = np.meshgrid(*s, indexing="ij")
    u = (first - second).ravel()
    logs = likelihood.log_density(np.full(u.size, y), u).reshape(first.shape)
    logs -= (first - c[0]) ** 2 / (2 * v[0]) + (second - c[1]) ** 2 / (2 * v[1])
    p = np.exp(logs - logs.max())
    sides = p.sum(axis=1) / p.sum(), p.sum(axis=0) / p.sum()
    mean = np.array([a @ b for a, b in zip(sides, s, strict=True)])
    return mean, np.array([a @ b**2 for a, b in zip(sides, s, strict=True)]) - mean**2


@pytest.mark.theorem("prop-sports-elo")
@pytest.mark.parametrize(("margin", "results"), [(0.0, (1, -1)), (0.6, (1, 0, -1))])
def test_trueskill_keeps_the_moments_of_the_hybrid(margin, results):
    likelihood = OrdinalProbit(margin) if margin else Probit()
    pair, names = [[1, -1]], ["A", "B"]
    for outcomes in product(results, repeat=2):  # (a), also from unequal means
        system = TrueSkill(variance=0.7, dynamics=0.2, margin=margin)
        system.fit(Matches(pair * 2, [0.0, 1.0], names), outcomes)
        after = hybrid(likelihood, outcomes[0], np.zeros(2), np.full(2, 0.7))
        np.testing.assert_allclose(system.before_[1], after[0], atol=1e-7)
        np.testing.assert_allclose(system.deviation_before_[1] ** 2, after[1] + 0.2, atol=1e-7)
        after = hybrid(likelihood, outcomes[1], after[0], after[1] + 0.2)
        np.testing.assert_allclose(system.ratings_, after[0], atol=1e-6)
        np.testing.assert_allclose(system.deviations_**2, after[1], atol=1e-6)


@pytest.mark.theorem("prop-sports-elo")
@pytest.mark.parametrize("likelihood", [Probit(), Logit(), OrdinalProbit(0.4)])
def test_elo_is_the_step_of_small_variances(likelihood):
    rng = np.random.default_rng(2)
    for _ in range(5):  # (b)
        c, y = rng.normal(size=2), int(rng.choice([-1, 0, 1] if likelihood.has_ties else [-1, 1]))
        d = c[0] - c[1]
        edge = likelihood.log_density([y, y], [d - 1e-5, d + 1e-5])
        slope = (edge[1] - edge[0]) / 2e-5
        gaps = []
        for rate in (1e-2, 1e-3):
            _, d1, _ = (float(a[0]) for a in likelihood.log_partition([y], [d], [2 * rate]))
            gaps.append(abs(rate * d1 - rate * slope))
        assert gaps[0] < 1e-3
        assert gaps[1] < gaps[0] / 50 + 1e-12  # of second order: a hundredth
    elo = Elo(likelihood=likelihood, rate=0.1).fit(Matches([[1, -1]] * 2, [0.0, 1.0], "AB"), [1, -1])
    score = 0.0
    for y in (1, -1):
        edge = likelihood.log_density([y, y], [2 * score - 1e-5, 2 * score + 1e-5])
        score += 0.1 * (edge[1] - edge[0]) / 2e-5
    np.testing.assert_allclose(elo.ratings_, [score, -score], atol=1e-8)


@pytest.mark.theorem("prop-sports-elo")
@pytest.mark.parametrize("step", [1e-4, 0.00653, 0.3, 5.0])
def test_where_the_variance_of_trueskill_settles(step):
    limit = np.pi * step / 2 + np.sqrt((np.pi * step / 2) ** 2 + np.pi * step / 2)  # (c)
    for start in (0.0, limit / 3, 3 * limit, 50.0):
        v, path = start, []
        for _ in range(200_000 if step < 1e-3 else 20_000):
            _, _, d2 = Probit().log_partition([1], [0.0], [2 * v]) if len(path) < 3 else (0, 0, [np.nan])
            known = -2 / (np.pi * (1 + 2 * v))
            assert np.isnan(d2[0]) or d2[0] == pytest.approx(known)
            v = v + v * v * known + step
            path.append(v)
        assert v == pytest.approx(limit, rel=1e-6)
        assert (np.diff(path) * (limit - start) >= -1e-12).all()  # from one side
    assert limit**2 * 2 / (np.pi * (1 + 2 * limit)) == pytest.approx(step)


@pytest.mark.theorem("prop-sports-poisson")
def test_poisson_rates_of_one_feature_and_of_two():
    rng = np.random.default_rng(4)
    s, n = rng.normal(size=6), 6
    rates = np.exp(s[:, None] - s)
    np.testing.assert_allclose(rates * rates.T, 1)  # (a)
    assert (rates + rates.T >= 2 - 1e-12).all()
    attack, defence = rng.normal(size=n), rng.normal(size=n)
    two = attack[:, None] - defence
    np.testing.assert_allclose((attack + 0.7)[:, None] - (defence + 0.7), two)  # (b)
    off = ~np.eye(n, dtype=bool)
    rows = np.zeros((off.sum(), 2 * n))
    for row, (i, j) in zip(rows, np.argwhere(off), strict=True):
        row[i], row[n + j] = 1, -1
    assert np.linalg.matrix_rank(rows) == 2 * n - 1  # the constant is all that is left
    np.testing.assert_allclose(rows @ np.ones(2 * n), 0)
    given = np.array([[0.0, 1.3], [-0.4, 0.0]])  # two teams: both rates are free
    meeting = np.array([[1, 0, 0, -1], [0, 1, -1, 0]])
    assert np.linalg.matrix_rank(meeting) == 2
    np.testing.assert_allclose(meeting @ np.linalg.pinv(meeting) @ given[[0, 1], [1, 0]], given[[0, 1], [1, 0]])


@pytest.mark.theorem("prop-sports-poisson")
@pytest.mark.parametrize(("n", "level"), [(2, 1.0), (5, -0.7), (30, np.log(100))])
def test_variance_that_a_level_asks_for(n, level):
    def minus_evidence(log_kappa):
        """Of very many matches, all with the same rates: the prior, integrated along the line."""
        kappa, t = np.exp(log_kappa), np.linspace(-60, 60, 400_001)
        logs = -n * (t**2 + (t - level) ** 2) / (2 * kappa) - n * np.log(2 * np.pi * kappa)
        return -(np.log(np.exp(logs - logs.max()).sum()) + logs.max())

    found = np.exp(minimize_scalar(minus_evidence, bounds=(-6, 6), method="bounded").x)
    assert found == pytest.approx(n * level**2 / (4 * n - 2), rel=1e-3)  # (c)


@pytest.mark.theorem("prop-sports-poisson")
def test_variance_that_a_level_asks_for_in_the_package():
    n, level, rng = 4, np.log(40.0), np.random.default_rng(1)
    rows = np.zeros((n * (n - 1) * 12, 2 * n))
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j] * 12
    for row, (i, j) in zip(rows, pairs, strict=True):
        row[i], row[n + j] = 1, -1
    matches = Matches(rows, np.zeros(len(rows)), [str(k) for k in range(2 * n)])
    y = rng.poisson(40.0, size=len(rows))

    def minus_evidence(log_kappa):
        model = DynamicComparisons(Constant(float(np.exp(log_kappa))), Poisson(), "kl")
        return -model.fit(matches, y).log_marginal_likelihood_

    found = np.exp(minimize_scalar(minus_evidence, bounds=(0, 3), method="bounded").x)
    assert found == pytest.approx(n * level**2 / (4 * n - 2), rel=0.15)


def test_ties_of_trueskill_are_those_of_the_ordinal_probit():
    """What the boxes call TrueSkill and the model of the package mean the same margin."""
    system = TrueSkill(variance=0.5, margin=0.4).fit(Matches([[1, -1]], [0.0], "AB"), [0])
    assert system.ratings_ == pytest.approx([0, 0])
    p = TrueSkill(variance=0.5, margin=0.4).fit(Matches([[1, -1]], [0.0], "CD"), [1])
    chance = np.exp(log_ndtr(-0.4 / np.sqrt(2)))
    fresh = p.predict_proba(Matches([[1, -1]], [0.0], "XY"))[0]
    np.testing.assert_allclose(fresh, [chance, 1 - 2 * chance, chance], atol=1e-9)

"""Sweeps and fixed points of the engine, against the dense twins of dense.py and against brute force."""

import itertools
import warnings

import numpy as np
import pytest
from dynamics import dense
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import (
    Affine,
    Constant,
    DynamicComparisons,
    Gaussian,
    Linear,
    Logit,
    Matern12,
    Matern32,
    Matern52,
    OrdinalLogit,
    OrdinalProbit,
    Periodic,
    PiecewiseConstant,
    Poisson,
    Probit,
    Skellam,
    SquaredExponential,
    Wiener,
)
from preflearn.matches import Matches

LIKELIHOODS = {  # ours, the twin, outcomes to draw from
    "probit": (Probit(), dense.probit(), [1, -1]),
    "logit": (Logit(), dense.logit(), [1, -1]),
    "ordinal probit": (OrdinalProbit(margin=0.4), dense.ordinal_probit(0.4), [1, 0, -1]),
    "ordinal logit": (OrdinalLogit(margin=0.4), dense.ordinal_logit(0.4), [1, 0, -1]),
    "Poisson": (Poisson(), dense.poisson(), [0, 1, 2, 3]),
    "Gaussian": (Gaussian(variance=0.5), dense.gaussian(0.5), [0.7, -1.2, 2.0, 0.1]),
    "Skellam": (Skellam(base_rate=1.3), dense.skellam(1.3), [0, 2, -1]),
}
COVARIANCES = [
    Constant(0.7),
    PiecewiseConstant(0.8, boundaries=(0.9, 1.7)),
    Wiener(0.6, origin=-0.5),
    Matern12(0.9, 1.5),
    Matern32(0.9, 1.5),
    Matern52(0.9, 1.5),
    Linear(0.5, origin=-1),
    Affine(0.5, 0.3),
    Constant(0.5) + Wiener(0.4, origin="first"),
    Affine(0.3, 0.2, origin="first") + Wiener(0.4, origin=-1),
    Constant(0.5) + Matern12(0.5, 1.0),
    Linear(0.3) + Matern32(0.5, 1.0),
    PiecewiseConstant(0.5, boundaries=(1.5,)) + Matern52(0.5, 2.0),
    Matern12(0.4, 0.3) + Matern32(0.4, 3.0) + Constant(0.2),
    Constant(0.5) * Matern52(1.0, 2.0),
    PiecewiseConstant(1.0, boundaries=(1.1,)) * Matern12(0.8, 1.0),
    Wiener(0.5, origin=-1) * Matern12(1.0, 2.0),
    Linear(0.5, origin=-1) * Matern32(1.0, 2.0),
    Matern12(1.0, 2.0) * Matern52(0.8, 2.0),
    (Constant(0.5) + Linear(0.3)) * Matern12(1.0, 2.0) + Constant(0.1),
]

every_likelihood = pytest.mark.parametrize(
    ("likelihood", "density", "outcomes"), LIKELIHOODS.values(), ids=LIKELIHOODS
)
every_covariance = pytest.mark.parametrize("covariance", COVARIANCES, ids=repr)
both_methods = pytest.mark.parametrize("method", ["ep", "kl"])


def matches_of(design, time=None):
    design = np.asarray(design, dtype=float)
    time = np.arange(len(design)) if time is None else time
    return Matches(design, time, [f"f{k}" for k in range(design.shape[1])])


def random_matches(rng, n=9, n_features=4, size=2, span=3.0, signs=(1.0, -1.0)):
    """Rows of `size` features, half of them (rounded up) for the first; times that repeat here and there."""
    design = np.zeros((n, n_features))
    for row in design:
        row[rng.choice(n_features, size, replace=False)] = np.resize(signs, size)
    return matches_of(design, np.sort(rng.uniform(0, span, n).round(1)))


def fitted(covariance, likelihood, matches, y, method, **options):
    model = DynamicComparisons(covariance, likelihood, method, **({"tol": 1e-11, "max_iter": 500} | options))
    return model.fit(matches, y)


def assert_equals_dense(model, density, y, rate=0.5, atol=1e-8):
    """Sites, marginals at the matches, scores elsewhere, evidence."""
    problem = dense.Problem(model.matches_, model.covariance)
    fixed = dense.fixed_point(problem, density, y, model.method, rate=rate, tol=1e-12)
    assert fixed.converged
    assert model.converged_
    q = fixed.state
    deviation = np.sqrt(q.variance)
    np.testing.assert_allclose(model.pseudo_observations_[:, 0] * deviation, q.alpha * deviation, atol=atol)
    np.testing.assert_allclose(model.pseudo_observations_[:, 1] * q.variance, q.beta * q.variance, atol=atol)
    assert model.log_marginal_likelihood_ == pytest.approx(fixed.log_evidence, abs=atol)
    last = model.matches_.time[-1]
    for m, name in enumerate(model.features_):
        mine = problem.time[problem.feature == m]
        times = np.concatenate([mine, mine + 0.01, [last, last + 0.7, last + 400.0]])
        mean, deviation = dense.scores(problem, q, m, times)
        found = model.scores(name, times)
        np.testing.assert_allclose(found[0], mean, atol=atol * max(1, np.abs(mean).max()))
        np.testing.assert_allclose(found[1], deviation, atol=atol * max(1, deviation.max()))


# ---- Sweeps, one by one


def sweeps_equal_the_twins(covariance, likelihood, density, matches, y, method, rate, n_sweeps=6, rtol=1e-8):
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model = fitted(covariance, likelihood, matches, y, method, rate=rate, max_iter=n_sweeps)
    twin = dense.fixed_point(
        dense.Problem(matches, covariance), density, y, method, rate=rate, max_iter=n_sweeps, keep=True
    )
    np.testing.assert_allclose(model.trace_["residual"], twin.residuals, rtol=rtol)
    np.testing.assert_allclose(model.trace_["evidence"], twin.evidences, rtol=rtol)
    before_last = twin.history[-1]
    sites = np.column_stack([before_last.alpha, before_last.beta])
    np.testing.assert_allclose(model.pseudo_observations_, sites, rtol=rtol, atol=rtol)
    assert model.n_iter_ == n_sweeps == len(model.trace_)
    assert not model.converged_


@every_covariance
@both_methods
def test_every_sweep_equals_the_dense_one_by_covariance(covariance, method):
    rng = np.random.default_rng(0)
    matches = random_matches(rng, n=12)
    y = rng.choice([1, 0, -1], 12)
    likelihood, density, _ = LIKELIHOODS["ordinal probit"]
    sweeps_equal_the_twins(covariance, likelihood, density, matches, y, method, 0.7)


@every_likelihood
@both_methods
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_sweep_equals_the_dense_one_by_likelihood(likelihood, density, outcomes, method, size):
    rng = np.random.default_rng(1)
    matches = random_matches(rng, size=size, signs=(1.0, -1.0, 0.5))
    y = rng.choice(outcomes, len(matches))
    sweeps_equal_the_twins(Matern32(0.6, 1.5), likelihood, density, matches, y, method, 0.6)


# ---- Fixed points


@pytest.mark.parametrize(
    ("method", "covariance"),
    [*(("ep", covariance) for covariance in COVARIANCES), *(("kl", some) for some in COVARIANCES[3::7])],
    ids=repr,
)
def test_fixed_points_equal_the_dense_ones_by_covariance(method, covariance):
    rng = np.random.default_rng(2)
    matches = random_matches(rng)
    y = rng.choice([1, -1], len(matches))
    assert_equals_dense(fitted(covariance, Probit(), matches, y, method), dense.probit(), y)


@every_likelihood
@both_methods
def test_fixed_points_equal_the_dense_ones_by_likelihood(likelihood, density, outcomes, method):
    rng = np.random.default_rng(3)
    matches = random_matches(rng, n=7)
    y = rng.choice(outcomes, len(matches))
    model = fitted(Constant(0.2) + Matern12(0.5, 1.0), likelihood, matches, y, method)
    assert_equals_dense(model, density, y)


@every_covariance
def test_a_gaussian_likelihood_gives_the_exact_means(covariance):
    """EP and reverse-KL alike; with one feature a row all is exact, after one sweep."""
    rng = np.random.default_rng(4)
    pairs, y = random_matches(rng), rng.standard_normal(9)
    problem = dense.Problem(pairs, covariance)
    exact = dense.exact_gaussian(problem, y, 0.5)
    for method in ("ep", "kl"):
        model = fitted(covariance, Gaussian(variance=0.5), pairs, y, method)
        for m, name in enumerate(model.features_):
            mine = problem.feature == m
            np.testing.assert_allclose(model.scores(name, problem.time[mine])[0], exact.mean[mine], atol=1e-8)
        alone = matches_of(np.resize(np.diag([1.0, -1.0, 0.5]), (9, 3)), pairs.time)
        model = fitted(covariance, Gaussian(variance=0.5), alone, y, method, rate=1.0)
        assert model.n_iter_ <= 3
        single = dense.Problem(alone, covariance)
        whole = dense.exact_gaussian(single, y, 0.5)
        assert model.log_marginal_likelihood_ == pytest.approx(whole.log_evidence, abs=1e-8)
        for m, name in enumerate(model.features_):
            mean, deviation = dense.exact_gaussian_scores(single, y, 0.5, m, np.array([0.5, 1.0, 7.0]) + 3)
            found = model.scores(name, np.array([0.5, 1.0, 7.0]) + 3)
            np.testing.assert_allclose(found[0], mean, atol=1e-8)
            np.testing.assert_allclose(found[1], deviation, atol=1e-8)


@every_likelihood
def test_moments_match_at_the_fixed_point_of_ep(likelihood, density, outcomes):
    """Cavity times p(y | x's) of each match, by brute force, has the means and variances of q."""
    rng = np.random.default_rng(5)
    matches = random_matches(rng, n=6, n_features=3)
    y = rng.choice(outcomes, 6)
    model = fitted(Matern12(0.8, 1.0), likelihood, matches, y, "ep")
    problem = dense.Problem(matches, model.covariance)
    q = dense.state(problem, *model.pseudo_observations_.T)
    cavity_mean, cavity_variance = q.cavity
    for n in range(6):
        mine = problem.row == n
        x, c, v = problem.x[mine], cavity_mean[mine], cavity_variance[mine]
        tilted = dense.brute_force(
            [x], v, lambda y, d, shift=x @ c: density(y, d + shift), y[n : n + 1], n_points=121
        )
        np.testing.assert_allclose(tilted.mean + c, q.mean[mine], atol=1e-7)
        np.testing.assert_allclose(tilted.variance, q.variance[mine], atol=1e-7)


@every_likelihood
def test_evidence_and_bound_against_brute_force(likelihood, density, outcomes):
    rng = np.random.default_rng(6)
    design, variances = np.array([[1.0, -1, 0], [0, 1, -1], [1, 0, -1], [1, -1, 0]]), [0.8, 0.5, 0.3]
    y = rng.choice(outcomes, 4)
    covariance = {"f0": Constant(0.8), "f1": Constant(0.5), "*": Constant(0.3)}
    true = dense.brute_force(design, variances, density, y, n_points=71)
    ep = fitted(covariance, likelihood, matches_of(design), y, "ep")
    kl = fitted(covariance, likelihood, matches_of(design), y, "kl")
    assert kl.log_marginal_likelihood_ < true.log_evidence
    assert abs(ep.log_marginal_likelihood_ - true.log_evidence) < 0.3
    for model, atol in ((ep, 0.1), (kl, 0.15)):
        for m in range(3):
            mean, deviation = model.scores(f"f{m}", 2.0)
            assert mean == pytest.approx(true.mean[m], abs=atol)
            assert deviation == pytest.approx(np.sqrt(true.variance[m]), abs=atol)


@every_likelihood
@pytest.mark.parametrize("row", [[2.0], [1.0, -1.0], [0.5, -1.0, 1.5]])
def test_one_match_is_exact_under_ep(likelihood, density, outcomes, row):
    y = outcomes[:1]
    model = fitted(Constant(0.7), likelihood, matches_of([row]), y, "ep")
    true = dense.brute_force([row], [0.7] * len(row), density, y, n_points=71 if len(row) == 3 else 161)
    assert model.log_marginal_likelihood_ == pytest.approx(true.log_evidence, abs=1e-8)
    for m in range(len(row)):
        mean, deviation = model.scores(f"f{m}", 0.0)
        assert (mean, deviation**2) == pytest.approx((true.mean[m], true.variance[m]), abs=1e-8)


# ---- Convergence


@every_likelihood
@pytest.mark.parametrize("variance", [1.0, 30.0])
def test_the_bound_never_falls(likelihood, density, outcomes, variance):
    """With rate="auto", over the steps that are kept; at rate 1 it does, with the wide prior."""
    rng = np.random.default_rng(7)
    matches = random_matches(rng, n=12, size=3)
    model = fitted(Constant(variance), likelihood, matches, rng.choice(outcomes, 12), "kl", tol=1e-9)
    assert model.converged_
    bound = model.trace_["evidence"][model.trace_["accepted"]].to_numpy()
    assert np.all(np.diff(bound) >= -1e-11 * np.abs(bound[1:]))
    assert model.log_marginal_likelihood_ == bound[-1]


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [(Probit(), 1), (Logit(), 1), (OrdinalProbit(0.3), 1), (Poisson(), 0), (Poisson(), 5), (Skellam(1.0), 3)],
)
@pytest.mark.parametrize("variance", [20.0, 150.0])
def test_one_match_under_a_wide_prior(likelihood, y, variance):
    """Where Algorithm 1 with reverse-KL at rate 1 falls into a two-cycle (chapter 13)."""
    model = fitted(Constant(variance), likelihood, matches_of([[1.0]]), [y], "kl", tol=1e-9)
    assert model.converged_
    slow = fitted(
        Constant(variance), likelihood, matches_of([[1.0]]), [y], "kl", tol=1e-9, rate=0.1, max_iter=3000
    )
    assert model.log_marginal_likelihood_ == pytest.approx(slow.log_marginal_likelihood_, abs=1e-8)


LINE_UPS = {  # players in a match, players, matches
    "2v2": (4, 5, 15),
    "5v5": (10, 12, 20),
    "same 2v2": (4, 4, 10),
    "same 5v5": (10, 10, 10),
}


def line_ups(rng, kind):
    size, n_features, n = LINE_UPS[kind]
    design = np.zeros((n, n_features))
    for row in design:
        players = np.arange(size) if kind.startswith("same") else rng.permutation(n_features)[:size]
        row[players[: size // 2]], row[players[size // 2 :]] = 1, -1
    return matches_of(design)


@both_methods
@pytest.mark.parametrize("kind", LINE_UPS)
@pytest.mark.parametrize("variance", [1.0, 30.0])
@pytest.mark.parametrize("name", ["probit", "Gaussian", "Poisson"])
def test_line_ups_converge(method, kind, variance, name):
    """Same line-ups with both outcomes are the worst: plain sweeps grow by up to p - 1 = 9 each."""
    rng = np.random.default_rng(8)
    matches = line_ups(rng, kind)
    likelihood, density, outcomes = LIKELIHOODS[name]
    y = np.resize(outcomes, len(matches))
    model = fitted(Constant(variance), likelihood, matches, y, method, tol=1e-8)
    assert model.converged_, model.trace_["residual"].to_list()
    problem = dense.Problem(matches, model.covariance)
    alpha, beta = model.pseudo_observations_.T
    update = {"ep": dense.ep_sites, "kl": dense.kl_sites}[method]
    q = dense.state(problem, alpha, beta)
    found = update(problem, density, y, q)
    assert np.max(np.sqrt(q.variance) * np.abs(found[0] - alpha)) < 1e-6
    assert np.max(q.variance * np.abs(found[1] - beta)) < 1e-6
    if name == "Gaussian":
        exact = dense.exact_gaussian(problem, y, 0.5)
        np.testing.assert_allclose(q.mean, exact.mean, atol=1e-4)


@both_methods
def test_an_advantage_converges(method):
    rng = np.random.default_rng(9)
    players = random_matches(rng, n=12)
    design = np.column_stack([players.design.toarray(), np.ones(12)])
    matches = Matches(design, players.time, ["a", "b", "c", "d", "advantage"])
    y = rng.choice([1, 1, -1], 12)
    model = fitted({"advantage": Constant(0.5), "*": Matern32(1.0, 2.0)}, Logit(), matches, y, method)
    assert_equals_dense(model, dense.logit(), y)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_league_with_a_feature_for_each_pair_converges(seed):
    """Many matches in few scores: where no leap of EP is taken back, it is not there after 1000 sweeps."""
    rng, rows = np.random.default_rng(seed), np.arange(2000)
    pairs = np.array(list(itertools.combinations(range(6), 2)))
    which = rng.integers(0, len(pairs), len(rows))
    design = np.zeros((len(rows), 6 + len(pairs)))
    design[rows, pairs[which, 0]], design[rows, pairs[which, 1]], design[rows, 6 + which] = 1, -1, 1
    y = np.sign(design @ rng.normal(size=design.shape[1]) + rng.normal(size=len(rows)))
    covariance = {f"f{k}": Constant(5.0) for k in range(6)} | {"*": Constant(4.3)}
    model = fitted(covariance, Probit(), matches_of(design), y, "ep", tol=1e-6, max_iter=400)
    assert model.converged_
    assert not model.trace_["accepted"].all()


def test_gaussian_ep_where_rate_one_diverges_with_two_features_a_row():
    design = [[-1, 0, 1], [0, 1, -1], [-1, 1, 0], [0, 1, -1], [-1, 0, 1], [-1, 1, 0]]
    time = [-2.7616, -1.5002, -0.0428, -0.0416, 2.5944, 2.6035]
    y = np.array([1.0, -1, 1, 1, -1, 1])
    model = fitted(Affine(1.0, 20.0), Gaussian(variance=0.03), matches_of(design, time), y, "ep", tol=1e-9)
    assert model.converged_
    problem = dense.Problem(model.matches_, model.covariance)
    q = dense.state(problem, *model.pseudo_observations_.T)
    np.testing.assert_allclose(q.mean, dense.exact_gaussian(problem, y, 0.03).mean, atol=1e-6)


@both_methods
def test_the_rates_lead_to_one_fixed_point(method):
    rng = np.random.default_rng(10)
    matches, y = random_matches(rng, n=15), rng.choice([1, -1], 15)
    automatic, fixed = (
        fitted(Matern12(1.0, 2.0), Probit(), matches, y, method, rate=rate, max_iter=1000)
        for rate in ("auto", 0.4)
    )
    np.testing.assert_allclose(automatic.pseudo_observations_, fixed.pseudo_observations_, atol=1e-8)
    assert automatic.n_iter_ < fixed.n_iter_


def test_what_does_not_converge_says_so():
    matches = line_ups(np.random.default_rng(0), "same 5v5")
    y = np.resize([1, -1], 10)
    with pytest.warns(ConvergenceWarning, match=r"no convergence in 30 sweeps: .* leave rate='auto'"):
        model = fitted(Constant(1.0), Probit(), matches, y, "ep", rate=1.0, max_iter=30)
    assert not model.converged_
    assert np.all(np.isfinite(model.scores("f0", [0.0, 3.0])))
    with pytest.warns(ConvergenceWarning, match="no convergence in 2 sweeps"):
        assert not fitted(Constant(1.0), Probit(), matches, y, "kl", max_iter=2).converged_


def test_an_overflow_says_what_to_do():
    rows = line_ups(np.random.default_rng(0), "same 5v5")
    with pytest.raises(ValueError, match="overflow at rate 1; expected a rate at which sweeps converge"):
        fitted(Constant(30.0), Gaussian(0.5), rows, np.arange(10), "ep", rate=1.0, max_iter=1000)
    with pytest.raises(ValueError, match=r"the likelihood overflows .* expected a prior variance"):
        fitted(Constant(1e100), Gaussian(1e-100), matches_of([[1e90]]), [1.0], "kl")


@both_methods
def test_what_is_kept_is_what_was_accepted(method):
    """Also where the sweeps end too early: sites and evidence are of one state."""
    matches = line_ups(np.random.default_rng(0), "same 5v5")
    y = np.resize([1, -1], 10)
    problem = dense.Problem(matches, Constant(30.0))
    update = {"ep": dense.ep_sites, "kl": dense.kl_sites}[method]
    for max_iter in range(1, 12):
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model = fitted(Constant(30.0), Probit(), matches, y, method, max_iter=max_iter)
        q = dense.state(problem, *model.pseudo_observations_.T)
        evidence = update(problem, dense.probit(), y, q)[2]
        assert model.log_marginal_likelihood_ == pytest.approx(evidence, rel=1e-7)
        accepted = model.trace_["evidence"][model.trace_["accepted"]].iloc[-1]
        assert model.log_marginal_likelihood_ == accepted


# ---- Degenerate schedules


@both_methods
def test_simultaneous_matches(method):
    """The same two players meet at one time, and others too; all at one time."""
    rng = np.random.default_rng(11)
    for time in (np.zeros(8), np.repeat([0.0, 1.0], 4)):
        matches = matches_of(random_matches(rng, n=8, n_features=3).design.toarray(), time)
        y = rng.choice([1, 0, -1], 8)
        for covariance in (Matern32(1.0, 0.5), Wiener(1.0, origin=-1.0)):
            model = fitted(covariance, OrdinalProbit(0.4), matches, y, method)
            assert_equals_dense(model, dense.ordinal_probit(0.4), y)


@both_methods
@pytest.mark.filterwarnings("ignore:the lengthscale .* is very short:UserWarning")
@pytest.mark.parametrize("covariance", [Matern12(1.0, 0.5), Matern52(1.0, 0.5), Constant(0.5) + Wiener(0.01)])
def test_gaps_of_centuries_and_of_an_instant(covariance, method):
    rng = np.random.default_rng(12)
    time = [0.0, 1e-9, 0.3, 500.0, 500.0 + 1e-7, 900.0, 4000.0]
    matches = matches_of(random_matches(rng, n=7, n_features=3).design.toarray(), time)
    y = rng.choice([1, -1], 7)
    model = fitted(covariance, Probit(), matches, y, method)
    assert_equals_dense(model, dense.probit(), y, rate=0.2)


@both_methods
@pytest.mark.parametrize("row", [[1.0], [1.0, -1.0]], ids=["one feature", "two players"])
@pytest.mark.parametrize("name", ["probit", "ordinal logit"])
def test_repeated_identical_outcomes(method, row, name):
    """All pseudo-observations of a feature move in step: Algorithm 1 at rate 1 falls into a two-cycle."""
    likelihood, density, _ = LIKELIHOODS[name]
    model = fitted(Constant(30.0), likelihood, matches_of([row] * 8), np.ones(8), method)
    assert_equals_dense(model, density, np.ones(8), rate=0.3)
    if len(row) == 2:
        assert model.scores("f0", 0.0)[0] == pytest.approx(-model.scores("f1", 0.0)[0], abs=1e-8)


@both_methods
@pytest.mark.parametrize("n", [300, 3000])
def test_hundreds_of_identical_outcomes(method, n):
    """No pseudo-observation moves much, but their sum does. By symmetry all are equal: the twin is small."""
    alpha, beta = 0.0, 0.0
    for _ in range(400):
        variance = 1 / (1 + n * beta)
        mean = n * alpha * variance
        if method == "ep":
            variance = 1 / (1 + (n - 1) * beta)
            mean = (n - 1) * alpha * variance
            _, d1, d2 = dense.log_partition(dense.probit(), [1], [2 * mean], [2 * variance])
            new = (d1[0] - mean * d2[0]) / (1 + variance * d2[0]), -d2[0] / (1 + variance * d2[0])
        else:
            _, d1, d2 = dense.expected(dense.probit(), [1], [2 * mean], [2 * variance])
            new = d1[0] - mean * d2[0], -d2[0]
        alpha, beta = (0.8 * old + 0.2 * to for old, to in zip((alpha, beta), new, strict=True))
    model = fitted(Constant(1.0), Probit(), matches_of([[1.0, -1.0]] * n), np.ones(n), method, tol=1e-9)
    assert model.converged_
    variance = 1 / (1 + n * beta)
    assert model.scores("f0", 0.0) == pytest.approx((n * alpha * variance, np.sqrt(variance)), abs=1e-5)


@both_methods
def test_features_that_are_seen_once(method):
    rng = np.random.default_rng(13)
    design = np.kron(np.eye(4), [1.0, -1.0, 0.5])
    y = rng.choice([1, -1], 4)
    for covariance in COVARIANCES:
        model = fitted(covariance, Probit(), matches_of(design), y, method)
        assert_equals_dense(model, dense.probit(), y)


@both_methods
@pytest.mark.parametrize(
    "covariance", [Periodic(0.5, 1.0, 2.0), SquaredExponential(0.5, 1.0) + Constant(0.2)]
)
def test_approximate_covariances(covariance, method):
    """As the dense twin of the state-space model to rounding, and as that of the covariance to its error."""
    rng = np.random.default_rng(14)
    matches = random_matches(rng)
    y = rng.choice([1, -1], len(matches))
    model = fitted(covariance, Probit(), matches, y, method)
    exact = dense.Problem(matches, covariance)
    implied = dense.Problem(matches, dense.Implied(covariance.state_space()))
    for problem, atol in ((implied, 1e-8), (exact, 1e-2)):
        q = dense.fixed_point(problem, dense.probit(), y, method, rate=0.5).state
        for m, name in enumerate(model.features_):
            mine = problem.feature == m
            mean, deviation = model.scores(name, problem.time[mine])
            np.testing.assert_allclose(mean, q.mean[mine], atol=atol)
            np.testing.assert_allclose(deviation, np.sqrt(q.variance[mine]), atol=atol)


@both_methods
def test_a_process_that_is_certain_at_its_first_match(method):
    """A Wiener process whose first match is at its origin: the score is 0 there, whatever the outcome."""
    matches = matches_of([[1.0, -1.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 2.0])
    model = fitted(Wiener(0.5), Probit(), matches, [1, 1, -1], method)
    mean, deviation = model.scores("f0", [0.0, 1.0])
    assert (mean[0], deviation[0]) == pytest.approx((0, 0), abs=1e-12)
    later = fitted(Wiener(0.5), Probit(), matches[1:], [1, -1], method)
    np.testing.assert_allclose(mean, later.scores("f0", [0.0, 1.0])[0], atol=1e-9)
    expected = later.log_marginal_likelihood_ + np.log(0.5)
    assert model.log_marginal_likelihood_ == pytest.approx(expected, abs=1e-9)


@both_methods
def test_surprises_in_the_far_tails(method):
    """A sure favourite loses: finite, and equal to the twins."""
    matches = matches_of([[1.0, -1.0]] * 3)
    y = np.array([30.0, 28.0, 31.0])
    sure = fitted(Matern12(400.0, 50.0), Gaussian(variance=1.0), matches, y, method)
    assert_equals_dense(sure, dense.gaussian(1.0), y, atol=1e-7)
    covariance = {"f0": Constant(400.0), "f1": Constant(1e-6)}
    upset = fitted(covariance, Probit(), matches_of([[1.0, -1.0]] * 40), np.resize([1, 1, 1, -1], 40), method)
    assert np.all(np.isfinite(upset.pseudo_observations_))

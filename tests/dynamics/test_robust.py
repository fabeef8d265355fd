"""Likelihoods that are not log-concave: integrals, fits by EP and reverse-KL, and
hyperparameters."""

import json
import warnings

import numpy as np
import pytest
from dynamics import dense
from dynamics.problems import (
    MOVING,
    assert_equals_dense,
    both_methods,
    fitted,
    matches_of,
    own_density,
    random_matches,
)
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from scipy import stats
from scipy.integrate import quad

from preflearn.core.compilation import njit
from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Lapse,
    Likelihood,
    Logit,
    OrdinalLogit,
    OrdinalProbit,
    Poisson,
    Probit,
    StudentT,
    likelihoods,
    load,
    maximise_evidence,
    one_step_ahead,
    parameters_of,
    with_parameters,
)
from preflearn.dynamics.model_selection.evidence import gradient_of

ROBUST = {
    likelihood: outcomes
    for likelihood, outcomes in likelihoods.EXAMPLES.items()
    if not likelihood.log_concave
}
every_robust = pytest.mark.parametrize(
    ("likelihood", "outcomes"), ROBUST.items(), ids=map(repr, ROBUST)
)
PAIRS = [(one, y) for one, outcomes in likelihoods.EXAMPLES.items() for y in outcomes]


# ---- Log-concavity


@pytest.mark.parametrize("likelihood", likelihoods.EXAMPLES, ids=repr)
def test_second_differences_agree_with_log_concave(likelihood):
    """Second differences of log p on a grid are positive for some outcome if and only
    if the likelihood is not log-concave. The same holds for second derivatives of log E
    p."""
    grid = np.linspace(-12, 12, 1201)
    differences = []
    derivatives = []
    for y in likelihoods.EXAMPLES[likelihood]:
        outcome = np.full(len(grid), y)
        log_p = likelihood.log_density(outcome, grid)
        rounding = 1e-15 * np.abs(log_p).max()
        differences.append(np.diff(log_p, 2).max() - 8 * rounding)
        variance = np.full(len(grid), 0.5)
        derivatives.append(likelihood.log_partition(outcome, grid, variance)[2].max())
    assert (max(differences) <= 0) == likelihood.log_concave
    assert (max(derivatives) <= 0) == likelihood.log_concave


# ---- Integrals


def log_expectation(likelihood, y, mean, variance, power=1.0):
    """Return log E p^power for u ~ N(mean, variance), by SciPy's quadrature between
    many points."""
    deviation = np.sqrt(variance)

    def integrand(x):
        log_p = likelihood.log_density([y], [mean + deviation * x])[0]
        return np.exp(power * log_p - 0.5 * x * x) / np.sqrt(2 * np.pi)

    near = (y - mean) / deviation
    points = sorted({*range(-12, 13, 2), *np.clip([near - 1, near, near + 1], -11, 11)})
    return np.log(quad(integrand, -14, 14, points=points, epsabs=0, epsrel=1e-11)[0])


@njit
def _call(function, a, b, y, mean, variance, power):
    return function(a, b, y, mean, variance, power)


def powered(likelihood, y, mean, variance, power):
    function = likelihood.compiled_power()
    return _call(function, *likelihood.parameters, float(y), mean, variance, power)


def assert_derivatives(integral, mean):
    """Check the derivatives of a function mean -> (value, first, second) by central
    differences."""
    step = 1e-4
    low, middle, high = (integral(mean + k * step) for k in (-1, 0, 1))
    assert middle[1] == pytest.approx((high[0] - low[0]) / (2 * step), abs=1e-5)
    assert middle[2] == pytest.approx((high[1] - low[1]) / (2 * step), abs=1e-5)


@pytest.mark.parametrize(("likelihood", "y"), PAIRS, ids=repr)
@pytest.mark.parametrize(("mean", "variance"), [(0.4, 0.3), (-3.0, 2.0)])
def test_powers_equal_quadrature(likelihood, y, mean, variance):
    for power in (0.02, 0.6):
        found = powered(likelihood, y, mean, variance, power)
        expected = log_expectation(likelihood, y, mean, variance, power)
        assert found[0] == pytest.approx(expected, abs=1e-9)
        assert_derivatives(
            lambda at, power=power: powered(likelihood, y, at, variance, power), mean
        )
    limit = powered(likelihood, y, mean, variance, 1 - 1e-12)
    whole = np.ravel(likelihood.log_partition([y], [mean], [variance]))
    np.testing.assert_allclose(limit, whole, rtol=1e-9, atol=1e-9)


EXTREME = [
    (StudentT(0.1, 0.5), 4.0),
    (StudentT(1.0, 3.0), 30.0),
    (StudentT(2.0, 1e4), -7.0),
    (Lapse(Probit(), 1e-6), -1),
    (Lapse(OrdinalProbit(0.5), 0.9), 0),
    (Lapse(Logit(), 0.3), 1),
]


@pytest.mark.parametrize(("likelihood", "y"), EXTREME, ids=repr)
@pytest.mark.parametrize("mean", [0.0, 5.0])
@pytest.mark.parametrize("variance", [0.01, 3.0, 60.0])
def test_integrals_equal_quadrature(likelihood, y, mean, variance):
    def integral(at):
        return np.ravel(likelihood.log_partition([y], [at], [variance]))

    expected = log_expectation(likelihood, y, mean, variance)
    assert integral(mean)[0] == pytest.approx(expected, abs=1e-8)
    assert_derivatives(integral, mean)
    assert 1 + variance * integral(mean)[2] > 0


def test_the_density_is_that_of_scipy():
    y = np.linspace(-9, 9, 31)
    for scale, df in ((0.3, 0.5), (2.0, 5.0), (1.0, 1e4)):
        np.testing.assert_allclose(
            StudentT(scale, df).log_density(y, np.full(31, 0.7)),
            stats.t(df, 0.7, scale).logpdf(y),
            rtol=1e-10,
        )
    lapse = Lapse(OrdinalLogit(0.4), 0.2)
    for outcome in (-1, 0, 1):
        plain = np.exp(OrdinalLogit(0.4).log_density(np.full(31, outcome), y))
        found = np.exp(lapse.log_density(np.full(31, outcome), y))
        np.testing.assert_allclose(found, 0.8 * plain + 0.2 / 3, rtol=1e-12)


@pytest.mark.parametrize("df", [0.5, 4.0, 1e4])
def test_forecasts_of_points_are_those_of_the_distribution(df):
    likelihood = StudentT(1.5, df, margin=0.5)
    mean = np.array([0.0, 1.0, -20.0])
    found = likelihood.probabilities(mean, np.zeros(3))
    t = stats.t(df, 0, 1.5)
    loss = t.cdf(-0.5 - mean)
    win = t.sf(0.5 - mean)
    np.testing.assert_allclose(found[:, [0, 2]], np.transpose([loss, win]), atol=1e-11)
    variance = 2.0
    exact = quad(lambda u: t.sf(0.5 - u) * stats.norm(1, variance**0.5).pdf(u), -14, 16)
    found = likelihood.probabilities([1.0], [variance])
    assert found[0, 2] == pytest.approx(exact[0], abs=1e-8)
    assert found.sum() == pytest.approx(1.0, abs=1e-14)


@every_robust
@given(mean=st.floats(-6, 6), variance=st.floats(0.01, 9))
@examples(10)
def test_reverse_kl_has_a_lower_bound_and_its_derivatives(
    likelihood, outcomes, mean, variance
):
    """The bound is below E log p, computed by the trapezoid rule, and equals it if u is
    known."""
    x = np.linspace(-9, 9, 401)
    weights = np.exp(-0.5 * x * x) / np.exp(-0.5 * x * x).sum()
    step = 1e-4
    for y in outcomes:

        def bound(m, v, y=y):
            return np.ravel(likelihood.expected([y], [m], [v]))

        log_p = likelihood.log_density(np.full(401, y), mean + np.sqrt(variance) * x)
        value, first, second = bound(mean, variance)
        assert value <= weights @ log_p + 1e-9
        assert second <= 0
        rise = bound(mean + step, variance)[0] - bound(mean - step, variance)[0]
        assert first == pytest.approx(rise / (2 * step), abs=1e-6)
        rise = bound(mean, variance + step)[0] - bound(mean, variance - step)[0]
        assert second == pytest.approx(rise / step, abs=1e-5)
        exact = likelihood.log_density([y], [mean])[0]
        assert bound(mean, 0.0)[0] == pytest.approx(exact, rel=1e-12)


# ---- Fits


def outcomes_with_surprises(likelihood, matches, seed):
    rng = np.random.default_rng(seed)
    d = matches.design @ np.linspace(2, -2, matches.design.shape[1])
    if isinstance(likelihood, StudentT):
        y = d + 0.5 * rng.normal(size=len(d))
        y[::4] += 9
        return y
    y = np.sign(d)
    y[::4] *= -1
    return y


@every_robust
@pytest.mark.parametrize("covariance", [Constant(9.0), MOVING], ids=repr)
def test_fixed_points_equal_the_dense_ones(likelihood, outcomes, covariance):
    """Under the wide prior, some pseudo-observations have negative precisions."""
    matches = random_matches(np.random.default_rng(4), n=12)
    y = outcomes_with_surprises(likelihood, matches, 0)
    model = fitted(covariance, likelihood, matches, y)
    if covariance == Constant(9.0):
        assert model.pseudo_observations_[:, 1].min() < 0
    assert_equals_dense(model, own_density(likelihood), rate=0.4)


@every_robust
def test_one_match_is_exact_under_ep(likelihood, outcomes):
    """This includes weights below 1."""
    for weight in (1.0, 0.4):
        for y in outcomes:
            model = fitted(
                Constant(3.0),
                likelihood,
                matches_of([[1.0, -1.0]]),
                [y],
                sample_weight=[weight],
            )
            density = own_density(likelihood)
            true = dense.brute_force(
                [[1.0, -1.0]],
                [3.0, 3.0],
                lambda y, d, p=density, weight=weight: weight * p(y, d),
                [y],
            )
            assert model.log_marginal_likelihood_ == pytest.approx(
                true.log_evidence, abs=1e-7
            )
            moments = np.transpose([model.scores(name, 0.0) for name in ("f0", "f1")])
            np.testing.assert_allclose(moments[0], true.mean, atol=1e-7)
            np.testing.assert_allclose(moments[1] ** 2, true.variance, atol=1e-7)


@every_robust
def test_evidence_and_bound_against_exact_integration(likelihood, outcomes):
    """Three players have four matches, and the last outcome is a surprise."""
    design = np.array([[1.0, -1, 0], [0, 1, -1], [1, 0, -1], [1, 0, -1]])
    y = [outcomes[0]] * 3 + [outcomes[-1] if outcomes[-1] < 0 else outcomes[2]]
    variances = [0.8, 0.5, 0.3]
    covariance = {f"f{k}": Constant(v) for k, v in enumerate(variances)}
    true = dense.brute_force(
        design, variances, own_density(likelihood), y, n_points=51, width=6.0
    )
    ep, kl = (
        fitted(covariance, likelihood, matches_of(design), y, method)
        for method in ("ep", "kl")
    )
    assert kl.log_marginal_likelihood_ < true.log_evidence
    assert ep.log_marginal_likelihood_ == pytest.approx(true.log_evidence, abs=0.3)
    for model in (ep, kl):
        mean = [model.scores(name, 2.0)[0] for name in model.features_]
        np.testing.assert_allclose(mean, true.mean, atol=0.2)


@every_robust
def test_the_bound_of_reverse_kl_rises(likelihood, outcomes):
    matches = random_matches(np.random.default_rng(4), n=30)
    y = outcomes_with_surprises(likelihood, matches, 1)
    model = fitted(MOVING, likelihood, matches, y, "kl", tol=1e-8)
    assert model.converged_
    assert (model.pseudo_observations_[:, 1] >= 0).all()
    bounds = model.trace_["evidence"][model.trace_["accepted"]]
    assert (np.diff(bounds) > -1e-9 * np.abs(bounds).max()).all()


@both_methods
def test_many_degrees_of_freedom_are_normal_noise(method):
    matches = random_matches(np.random.default_rng(4))
    y = np.random.default_rng(0).normal(size=len(matches))
    student, normal = (
        fitted(MOVING, likelihood, matches, y, method)
        for likelihood in (StudentT(0.8, 1e4), Gaussian(0.64))
    )
    for name in normal.features_:
        np.testing.assert_allclose(
            student.scores(name, [1.0, 9.0]), normal.scores(name, [1.0, 9.0]), atol=1e-3
        )


def test_an_outlier_moves_scores_less_than_under_normal_noise():
    matches = matches_of([[1.0, -1.0]] * 8)
    y = np.array([1.0, 0.5, 1.5, 1.0, 0.8, 1.2, 1.0, -30.0])
    means = {
        likelihood: fitted(Constant(9.0), likelihood, matches, y).scores("f0", 0.0)[0]
        for likelihood in (Gaussian(1.0), StudentT(1.0, 3.0))
    }
    assert means[Gaussian(1.0)] < -1
    assert means[StudentT(1.0, 3.0)] == pytest.approx(0.5, abs=0.1)


# ---- Hyperparameters, files, forecasts


@pytest.mark.parametrize(
    ("likelihood", "names"),
    [
        (
            Lapse(OrdinalProbit(0.4), 0.1),
            {"likelihood.margin": 0.4, "likelihood.rate": 0.1},
        ),
        (Lapse(Logit(), 0.1), {"likelihood.rate": 0.1}),
        (
            StudentT(1.5, 5.0, margin=0.5),
            {"likelihood.scale": 1.5, "likelihood.df": 5.0},
        ),
    ],
)
def test_parameters_are_named_and_changed(likelihood, names):
    model = DynamicComparisons(Constant(2.0), likelihood)
    assert parameters_of(model) == {"Constant.variance": 2.0, **names}
    for name in names:
        changed = with_parameters(model, {name: 0.7})
        assert parameters_of(changed)[name] == 0.7
        assert with_parameters(changed, names).likelihood == likelihood
    again = Likelihood.from_dict(json.loads(json.dumps(likelihood.to_dict())))
    assert again == likelihood


@pytest.mark.parametrize(
    "likelihood", [Lapse(Probit(), 0.02), StudentT(2.0, 20.0)], ids=repr
)
def test_the_evidence_has_a_maximum_and_the_model_is_saved(likelihood, tmp_path):
    """The maximum is found by the gradient, which is that of refitted models."""
    matches = random_matches(np.random.default_rng(4), n=60)
    y = outcomes_with_surprises(likelihood, matches, 2)
    model = DynamicComparisons(Constant(4.0), likelihood, tol=1e-9)
    found = maximise_evidence(model, matches, y, gtol=0.02)
    assert found.converged
    assert found.evidence > model.fit(matches, y).log_marginal_likelihood_ + 1
    name, value = list(parameters_of(model).items())[-1]
    low, high = (
        with_parameters(model, {name: value * np.exp(step)})
        .fit(matches, y)
        .log_marginal_likelihood_
        for step in (-1e-3, 1e-3)
    )
    gradient = gradient_of(model.fit(matches, y), [name])
    assert gradient[0] == pytest.approx((high - low) / 2e-3, abs=1e-4)
    found.model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.likelihood == found.model.likelihood
    probabilities = found.model.predict_proba(matches)
    np.testing.assert_array_equal(again.predict_proba(matches), probabilities)
    assert 0.5 < found.model.score(matches, y) < 1


@every_robust
def test_one_step_ahead_forecasts(likelihood, outcomes):
    matches = random_matches(np.random.default_rng(4), n=24)
    y = outcomes_with_surprises(likelihood, matches, 3)
    model = DynamicComparisons(Constant(4.0), likelihood, tol=1e-8)
    with warnings.catch_warnings(action="error"):
        found = one_step_ahead(model, matches, y, 22, tol=1e-7)
    for k, n in enumerate((22, 23)):
        past = model.fit(matches[:n], y[:n])
        if matches.time[n] > matches.time[n - 1]:
            np.testing.assert_allclose(
                found.probabilities[k],
                past.predict_proba(matches[n : n + 1])[0],
                atol=1e-4,
            )


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Lapse(Gaussian(1.0), 0.1), "likelihood"),
        (lambda: Lapse(Poisson()), "likelihood"),
        (lambda: Lapse("probit"), "likelihood"),
        (lambda: Lapse(Lapse(Probit())), "likelihood"),
        (lambda: Lapse(Probit(), 0.0), "rate"),
        (lambda: Lapse(Probit(), 1.0), "rate"),
        (lambda: StudentT(0.0), "scale"),
        (lambda: StudentT(1.0, 0.1), "df"),
        (lambda: StudentT(1.0, 4.0, -1.0), "margin"),
    ],
)
def test_bad_parameters_are_named(make, named):
    with pytest.raises(ValueError, match=named):
        make()

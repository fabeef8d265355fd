"""Convergence to the fixed point with rate="auto", also where sweeps at rate 1 do not
converge."""

import itertools

import numpy as np
import pytest
from dynamics import dense
from dynamics.problems import (
    LIKELIHOODS,
    LINE_UPS,
    PRIOR,
    assert_equals_dense,
    both_methods,
    every_likelihood,
    fit_small,
    fitted,
    is_finite,
    line_ups,
    matches_of,
    random_matches,
    updated,
)

from preflearn.dynamics import (
    Affine,
    Constant,
    Gaussian,
    Linear,
    Logit,
    OrdinalLogit,
    Probit,
)


@every_likelihood
@pytest.mark.parametrize("variance", [1.0, 30.0])
def test_the_bound_never_falls(likelihood, density, outcomes, variance):
    """This holds for the accepted steps. At rate 1 and with the wide prior, the bound
    decreases."""
    rng = np.random.default_rng(7)
    matches = random_matches(rng, n=12, size=3)
    model = fitted(
        Constant(variance),
        likelihood,
        matches,
        rng.choice(outcomes, 12),
        "kl",
        tol=1e-9,
    )
    assert model.converged_
    bound = model.trace_["evidence"][model.trace_["accepted"]].to_numpy()
    assert np.all(np.diff(bound) >= -1e-11 * np.abs(bound[1:]))
    assert model.log_marginal_likelihood_ == bound[-1]


@pytest.mark.parametrize(
    ("name", "y"),
    [
        ("Probit", 1),
        ("Logit", 1),
        ("OrdinalProbit", 1),
        ("Poisson", 0),
        ("Poisson", 5),
        ("Skellam", 3),
    ],
)
def test_one_match_under_a_wide_prior(name, y):
    """Algorithm 1 with reverse-KL at rate 1 ends in a two-cycle here (chapter 13)."""
    quick, slow = (
        fitted(
            Constant(150.0),
            LIKELIHOODS[name][0],
            matches_of([[1.0]]),
            [y],
            "kl",
            tol=1e-9,
            **options,
        )
        for options in ({}, {"rate": 0.1, "max_iter": 3000})
    )
    assert quick.converged_
    assert quick.log_marginal_likelihood_ == pytest.approx(
        slow.log_marginal_likelihood_, abs=1e-8
    )


@both_methods
@pytest.mark.parametrize("kind", LINE_UPS)
@pytest.mark.parametrize("variance", [1.0, 30.0])
@pytest.mark.parametrize("name", ["Probit", "Gaussian", "Poisson"])
def test_line_ups_converge(method, kind, variance, name):
    """Equal line-ups with both outcomes are the hardest case: a plain sweep increases
    errors by up to p - 1 = 9 times."""
    matches = line_ups(np.random.default_rng(8), kind)
    likelihood, density, outcomes = LIKELIHOODS[name]
    y = np.resize(outcomes, len(matches))
    model = fitted(Constant(variance), likelihood, matches, y, method, tol=1e-8)
    assert model.converged_, model.trace_["residual"].to_list()
    q, alpha, beta, _ = updated(model, density)
    assert np.max(np.sqrt(q.variance) * np.abs(alpha - q.alpha)) < 1e-6
    assert np.max(q.variance * np.abs(beta - q.beta)) < 1e-6
    if name == "Gaussian":
        design = matches.design.toarray()
        exact, *_ = dense.exact_gaussian(model.covariance, 0.5, design, matches.time, y)
        np.testing.assert_allclose(q.mean, exact[design != 0], atol=1e-4)


def test_a_league_with_a_feature_for_each_pair_converges():
    """There are many matches and few scores. If no step of EP is rejected, it takes
    more than 1000 sweeps."""
    rng = np.random.default_rng(0)
    rows = np.arange(2000)
    pairs = np.array(list(itertools.combinations(range(6), 2)))
    which = rng.integers(0, len(pairs), len(rows))
    design = np.zeros((len(rows), 6 + len(pairs)))
    design[rows, pairs[which, 0]] = 1
    design[rows, pairs[which, 1]] = -1
    design[rows, 6 + which] = 1
    y = np.sign(design @ rng.normal(size=design.shape[1]) + rng.normal(size=len(rows)))
    covariance = {f"f{k}": Constant(5.0) for k in range(6)} | {"*": Constant(4.3)}
    model = fitted(covariance, Probit(), matches_of(design), y, tol=1e-6, max_iter=400)
    assert model.converged_
    assert not model.trace_["accepted"].all()


@both_methods
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_results_are_those_of_the_last_accepted_sweep(method):
    """This includes sweeps that end too early: sites and evidence then belong to one
    state."""
    matches = line_ups(np.random.default_rng(0), "same 5v5")
    for max_iter in range(1, 12):
        model = fitted(
            Constant(30.0),
            Probit(),
            matches,
            np.resize([1, -1], 10),
            method,
            max_iter=max_iter,
        )
        assert model.log_marginal_likelihood_ == pytest.approx(
            updated(model, dense.probit)[3], rel=1e-7
        )
        accepted = model.trace_["evidence"][model.trace_["accepted"]].iloc[-1]
        assert model.log_marginal_likelihood_ == accepted


@both_methods
@pytest.mark.parametrize(
    "row", [[1.0], [1.0, -1.0]], ids=["one feature", "two players"]
)
@pytest.mark.parametrize("name", ["Probit", "OrdinalLogit"])
def test_repeated_identical_outcomes(method, row, name):
    """All pseudo-observations of a feature move together. Algorithm 1 at rate 1 ends in
    a two-cycle."""
    likelihood, density, _ = LIKELIHOODS[name]
    model = fitted(
        Constant(30.0), likelihood, matches_of([row] * 8), np.ones(8), method
    )
    assert_equals_dense(model, density, rate=0.3)


@both_methods
@pytest.mark.parametrize("n", [300, 3000])
def test_hundreds_of_identical_outcomes(method, n):
    """No pseudo-observation moves much, but their sum does.

    By symmetry, all are equal.
    """
    alpha = 0.0
    beta = 0.0
    # number of pseudo-observations in the distribution from which an update starts
    others = n - 1 if method == "ep" else n
    integral = dense.log_partition if method == "ep" else dense.expected
    for _ in range(400):
        variance = 1 / (1 + others * beta)
        mean = others * alpha * variance
        _, (d1,), (d2,) = integral(dense.probit, [1], [2 * mean], [2 * variance])
        scale = 1 + variance * d2 if method == "ep" else 1.0
        new = (d1 - mean * d2) / scale, -d2 / scale
        alpha, beta = (
            0.8 * old + 0.2 * to for old, to in zip((alpha, beta), new, strict=True)
        )
    model = fitted(
        Constant(1.0),
        Probit(),
        matches_of([[1.0, -1.0]] * n),
        np.ones(n),
        method,
        tol=1e-9,
    )
    assert model.converged_
    variance = 1 / (1 + n * beta)
    assert model.scores("f0", 0.0) == pytest.approx(
        (n * alpha * variance, np.sqrt(variance)), abs=1e-5
    )


# ---- Overflow


@pytest.mark.parametrize(
    ("covariance", "likelihood", "scale", "shift"),
    [
        (PRIOR, Logit(), 9e6, 0.0),
        (PRIOR, OrdinalLogit(0.3), 9e6, 0.0),
        (Linear(1e6, origin=0.0), Probit(), 1.0, 9e3),
        (Affine(1e-12, 1e6, origin=0.0), Probit(), 1.0, 9e3),
    ],
)
@both_methods
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_sweep_that_overflows_is_no_convergence_and_leaves_no_nan(
    covariance, likelihood, scale, shift, method
):
    """NaN is not a change of 0. Such a sweep is rejected, also if it is the last
    one."""
    for max_iter in (2, 3, 40):
        model = fit_small(
            covariance, likelihood, scale, shift, method=method, max_iter=max_iter
        )
        assert is_finite(model)
        assert np.isfinite(model.trace_.evidence[model.trace_.accepted]).all()
        last = model.trace_.iloc[-1]
        assert model.converged_ == (last.accepted and last.residual <= model.tol)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_precise_observation_may_follow_one_without_information():
    """The logarithm of beta increases by more than 709, starting from beta = 0."""
    with np.errstate(over="raise"):
        assert is_finite(
            fit_small(likelihood=Gaussian(1e-12), method="kl", max_iter=50)
        )

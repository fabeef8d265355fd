"""Covariances, likelihoods with their densities, and small sets of matches for the
tests of dynamics."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from dynamics import dense
from scipy.special import gamma, kv, log_expit, log_ndtr

from preflearn.dynamics import (
    Affine,
    Constant,
    DynamicComparisons,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    PiecewiseConstant,
    Probit,
    SquaredExponential,
    Wiener,
    covariances,
    likelihoods,
)
from preflearn.matches import Matches


def season(time):
    return 0 if time < 0.5 else 1 if time < 2.0 else 2


def matern(nu, variance, distance):
    """The general formula with the Bessel function K: Rasmussen and Williams (2006),
    eq. 4.14."""
    u = math.sqrt(2 * nu) * distance
    return variance * (2 ** (1 - nu) / gamma(nu) * u**nu * kv(nu, u) if u else 1.0)


FORMULAS = {  # independent references for `gram`
    Constant(0.7): lambda t, u: 0.7,
    PiecewiseConstant(2.0, (0.5, 2.0)): lambda t, u: 2.0 * (season(t) == season(u)),
    Wiener(0.3, origin=-1.0): lambda t, u: 0.3 * (min(t, u) + 1),
    Matern12(0.6, 1.3): lambda t, u: 0.6 * math.exp(-abs(t - u) / 1.3),
    Matern32(0.6, 1.3): lambda t, u: matern(1.5, 0.6, abs(t - u) / 1.3),
    Matern52(0.8, 2.0): lambda t, u: matern(2.5, 0.8, abs(t - u) / 2.0),
    Linear(0.5, origin=-1.0): lambda t, u: 0.5 * (t + 1) * (u + 1),
    Affine(1.2, 0.3, origin=-0.5): lambda t, u: 1.2 + 0.3 * (t + 0.5) * (u + 0.5),
    Periodic(0.9, 0.8, 2.5): lambda t, u: (
        0.9 * math.exp(-2 * math.sin(math.pi * (t - u) / 2.5) ** 2 / 0.64)
    ),
    SquaredExponential(0.9, 0.8): lambda t, u: (
        0.9 * math.exp(-((t - u) ** 2) / 2 / 0.64)
    ),
}
# covariances with an exact state-space model
ATOMS = (
    *(covariance for covariance, error in covariances.EXAMPLES.items() if error == 0),
    Wiener(0.4, "first"),
    Linear(0.3, "first"),
    Affine(origin="first"),
)
PAIRS = tuple(combinations_with_replacement(ATOMS, 2))
EXACT = (*ATOMS, *(a + b for a, b in PAIRS), *(a * b for a, b in PAIRS))
COVARIANCES = [  # covariances of the fits: each kind alone, in a sum, and in a product
    *ATOMS[:-3],
    Constant(0.5) + Wiener(0.4, origin="first"),
    Affine(0.3, 0.2, origin="first") + Wiener(0.4, origin=-1),
    Constant(0.5) + Matern12(0.5, 1.0),
    Linear(0.3, origin=0.0) + Matern32(0.5, 1.0),
    PiecewiseConstant(0.5, boundaries=(1.5,)) + Matern52(0.5, 2.0),
    Matern12(0.4, 0.3) + Matern32(0.4, 3.0) + Constant(0.2),
    Constant(0.5) * Matern52(1.0, 2.0),
    PiecewiseConstant(1.0, boundaries=(1.1,)) * Matern12(0.8, 1.0),
    Wiener(0.5, origin=-1) * Matern12(1.0, 2.0),
    Linear(0.5, origin=-1) * Matern32(1.0, 2.0),
    Matern12(1.0, 2.0) * Matern52(0.8, 2.0),
    (Constant(0.5) + Linear(0.3, origin=0.0)) * Matern12(1.0, 2.0) + Constant(0.1),
]
# one covariance for each state size
SIZES = tuple({c.state_space().size: c for c in COVARIANCES}.values())
PRIOR = Constant(0.5) + Matern32(0.5, 2.0)
MOVING = Constant(0.3) + Matern12(0.6, 1.5)
DENSITIES = {  # independent references for `log_density`
    "Probit": dense.probit,
    "Logit": dense.logit,
    "OrdinalProbit": dense.ordinal(log_ndtr, 0.4),
    "OrdinalLogit": dense.ordinal(log_expit, 0.4),
    "Poisson": dense.poisson,
    "Gaussian": dense.gaussian(0.5),
    "Skellam": dense.skellam(1.3),
}


def own_density(likelihood):
    """Return log p(y | d) computed by the likelihood itself, for arrays that are
    broadcast."""

    def density(y, d):
        y, d = np.broadcast_arrays(np.asarray(y, dtype=float), d)
        return likelihood.log_density(y.ravel(), d.ravel()).reshape(d.shape)

    return density


def with_density(likelihood, outcomes):
    """Return a likelihood, a reference for its density, and outcomes from which to
    draw."""
    density = DENSITIES.get(type(likelihood).__name__) or own_density(likelihood)
    return likelihood, density, list(outcomes)


LIKELIHOODS = {  # the log-concave ones
    type(likelihood).__name__: with_density(likelihood, outcomes)
    for likelihood, outcomes in likelihoods.EXAMPLES.items()
    if likelihood.log_concave
}
NAMES = ("Ann", "Bob", "Cy", "Dee")
LINE_UPS = {  # players per match, number of players, number of matches
    "2v2": (4, 5, 15),
    "5v5": (10, 12, 20),
    "same 2v2": (4, 4, 10),
    "same 5v5": (10, 10, 10),
}

every_likelihood = pytest.mark.parametrize(
    ("likelihood", "density", "outcomes"), LIKELIHOODS.values(), ids=LIKELIHOODS
)
every_covariance = pytest.mark.parametrize("covariance", COVARIANCES, ids=repr)
both_methods = pytest.mark.parametrize("method", ["ep", "kl"])


# ---- Matches, and fits of them


def matches_of(design, time=None):
    design = np.asarray(design, dtype=float)
    time = np.arange(len(design)) if time is None else time
    return Matches(design, time, [f"f{k}" for k in range(design.shape[1])])


def random_design(rng, n, n_features, size=2, signs=(1.0, -1.0)):
    """Return rows with `size` features, of which half (rounded up) are on the first
    side."""
    design = np.zeros((n, n_features))
    for row in design:
        row[rng.choice(n_features, size, replace=False)] = np.resize(signs, size)
    return design


def random_matches(rng, n=9, n_features=4, size=2, span=3.0, signs=(1.0, -1.0)):
    """Return matches at times of which some are equal."""
    design = random_design(rng, n, n_features, size, signs)
    return matches_of(design, np.sort(rng.uniform(0, span, n).round(1)))


def with_three_covariances(n):
    """Matches with a constant advantage in all rows, and three covariances."""
    players = random_matches(np.random.default_rng(0), n, 5, span=9.0)
    design = np.column_stack([np.ones(n), players.design.toarray()])
    covariance = {"f0": Constant(0.4), "f1": Matern52(0.7, 2.0), "*": MOVING}
    return matches_of(design, players.time), covariance


def line_ups(rng, kind):
    size, n_features, n = LINE_UPS[kind]
    signs = np.repeat([1.0, -1.0], size // 2)
    same = kind.startswith("same")
    return matches_of(
        np.tile(signs, (n, 1))
        if same
        else random_design(rng, n, n_features, size, signs)
    )


def small(seed=0, n=12, outcomes=(1, 0, -1), names=NAMES, begin=0.0):
    """Return matches between two of four players at a few repeated times, and
    outcomes."""
    rng = np.random.default_rng(seed)
    design = random_design(rng, n, len(names))
    return Matches(
        design, begin + np.sort(rng.integers(0, n, n) / 4), names
    ), rng.choice(outcomes, n)


def informative(n=60, margin=0.3):
    """Return matches of players with different scores, so that the evidence has an
    interior maximum."""
    matches, _ = small(n=n)
    d = matches.design @ np.array([1.2, 0.4, -0.4, -1.2]) + np.random.default_rng(
        100
    ).normal(size=n)
    return matches, np.where(np.abs(d) < margin, 0, np.sign(d)) if margin else np.sign(
        d
    )


def fitted(
    covariance,
    likelihood,
    matches,
    y,
    method="ep",
    sample_weight=None,
    offset=None,
    **options,
):
    options = {"tol": 1e-11, "max_iter": 500} | options
    model = DynamicComparisons(covariance, likelihood, method, **options)
    return model.fit(matches, y, sample_weight, offset)


def fit_small(covariance=PRIOR, likelihood=None, scale=1.0, shift=0.0, **options):
    matches, y = small(n=30, outcomes=(1, -1))
    scaled = Matches(scale * matches.design, matches.time + shift, NAMES)
    return DynamicComparisons(covariance, likelihood or Probit(), **options).fit(
        scaled, y
    )


def curves(model, names=NAMES, times=(-1.0, 0.0, 0.6, 2.75, 9.0)):
    """Return means and standard deviations of all scores at some times."""
    return np.array([model.scores(name, times) for name in names])


# ---- Assertions about fits


def is_finite(model):
    """Return whether everything that a model returns is finite."""
    later = Matches(
        model.matches_.design[:4], np.repeat(model.matches_.time[-1], 4), NAMES
    )
    scores = [model.scores(name, model.matches_.time[-5:] + 1) for name in NAMES]
    returned = (
        scores,
        model.pseudo_observations_,
        model.log_marginal_likelihood_,
        model.moments(later),
    )
    returned = *returned, model.predict_proba(later)
    return all(np.isfinite(found).all() for found in returned)


def updated(model, density):
    """Return the reference at the sites of a model, the sites after one more update,
    and the evidence."""
    problem = dense.Problem(model.matches_, model.covariance)
    q = dense.state(problem.gram, *model.pseudo_observations_.T)
    return q, *dense.UPDATES[model.method](problem, density, model.outcomes_, q)


def assert_equals_dense(model, density, rate=0.5, atol=1e-8, covariance=None):
    """Compare sites, marginals at the matches, scores at other times, and the evidence,
    for the covariance of the model or for another one."""
    problem = dense.Problem(model.matches_, covariance or model.covariance)
    fixed = dense.fixed_point(
        problem, density, model.outcomes_, model.method, rate=rate, tol=1e-12
    )
    assert fixed.converged
    assert model.converged_
    q = fixed.state
    deviation = np.sqrt(q.variance)
    np.testing.assert_allclose(
        model.pseudo_observations_[:, 0] * deviation, q.alpha * deviation, atol=atol
    )
    np.testing.assert_allclose(
        model.pseudo_observations_[:, 1] * q.variance, q.beta * q.variance, atol=atol
    )
    assert model.log_marginal_likelihood_ == pytest.approx(fixed.log_evidence, abs=atol)
    last = model.matches_.time[-1]
    for m, name in enumerate(model.features_):
        mine = problem.time[problem.feature == m]
        times = np.concatenate([mine, mine + 0.01, [last, last + 0.7, last + 400.0]])
        for found, expected in zip(
            model.scores(name, times), dense.scores(problem, q, m, times), strict=True
        ):
            np.testing.assert_allclose(
                found, expected, atol=atol * max(1, np.abs(expected).max())
            )

"""TrueSkill compared with the joint normal distribution of both skills, one match at a
time."""

import math

import numpy as np
import pytest
from ratings.seasons import TRUESKILLS, one_after_the_other, played
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.base import clone

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    OrdinalProbit,
    Probit,
    Wiener,
)
from preflearn.matches import Matches
from preflearn.ratings import TrueSkill

every_system = pytest.mark.parametrize("system", TRUESKILLS.values(), ids=TRUESKILLS)


def season(seed, ties):
    return played(seed, n=5, N=30, ties=0.3 if ties else 0, a_day=3, day=1.5)


def tilted_moments(y, center, spread, margin):
    """Return the mean and variance of u ~ N(center, spread) given the outcome, and its
    probability, by the trapezoid rule."""
    z, step = np.linspace(-12, 12, 2001, retstep=True)
    u = center + math.sqrt(spread) * z
    chance = ndtr(margin - u) - ndtr(-margin - u) if y == 0 else ndtr(y * u - margin)
    weight = step * chance * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    total = weight.sum()
    mean = weight @ u / total
    return mean, weight @ (u - mean) ** 2 / total, total


def plain_trueskill(system, matches, y):
    """Update one match at a time by the joint normal distribution of both skills."""
    belief = {}
    before = []
    for (a, b), h, t, outcome in one_after_the_other(matches, y, system.advantage):
        prior = []
        for p in (a, b):
            mean, variance, last = belief.get(p, (0.0, system.variance, None))
            elapsed = 0 if last is None else 1 if system.step == "match" else t - last
            prior.append((mean, variance + system.dynamics * elapsed))
        (m1, v1), (m2, v2) = prior
        before.append((m1, m2, v1, v2))
        u, spread, _ = tilted_moments(outcome, m1 - m2 + h, v1 + v2, system.margin)
        for p, sign, m, v in ((a, 1, m1, v1), (b, -1, m2, v2)):
            gain = sign * v / (v1 + v2)  # coefficient of a regression on the difference
            belief[p] = (
                m + gain * (u - (m1 - m2 + h)),
                v + gain**2 * (spread - (v1 + v2)),
                t,
            )
    return np.array(before), {
        matches.features[p]: values[:2] for p, values in belief.items()
    }


@every_system
@pytest.mark.parametrize("seed", range(2))
def test_it_is_assumed_density_filtering(system, seed):
    matches, y = season(seed, system.margin > 0)
    fitted = clone(system).fit(matches, y)
    before, belief = plain_trueskill(system, matches, y)
    np.testing.assert_allclose(fitted.before_, before[:, :2], atol=1e-8)
    np.testing.assert_allclose(fitted.deviation_before_**2, before[:, 2:], rtol=1e-8)
    for name, mean, deviation in zip(
        fitted.players_, fitted.ratings_, fitted.deviations_, strict=True
    ):
        assert (mean, deviation**2) == pytest.approx(belief[name], abs=1e-8)


@pytest.mark.parametrize(("margin", "outcome"), [(0.0, -1), (0.4, 0), (0.4, 1)])
def test_of_one_match_it_is_the_engines_posterior(margin, outcome):
    matches = Matches([[1, -1]], [2.0], ["a", "b"])
    likelihood = OrdinalProbit(margin) if margin else Probit()
    engine = DynamicComparisons(
        Constant(0.8) + Wiener(0.1, origin="first"), likelihood, tol=1e-10
    )
    engine.fit(matches, [outcome])
    system = TrueSkill(variance=0.8, dynamics=0.1, step="time", margin=margin).fit(
        matches, [outcome]
    )
    for k, name in enumerate(("a", "b")):
        mean, deviation = engine.scores(name, [2.0])
        assert (system.ratings_[k], system.deviations_[k]) == pytest.approx(
            (mean[0], deviation[0]), abs=1e-8
        )
    later = Matches([[1, -1]], [7.0], ["a", "b"])
    np.testing.assert_allclose(
        system.predict_proba(later), engine.predict_proba(later), atol=1e-8
    )


@pytest.mark.parametrize(
    ("outcome", "first", "second"),
    [(1, (29.396, 7.171), (20.604, 7.171)), (0, (25.0, 6.458), (25.0, 6.458))],
)
def test_the_usual_scale_of_trueskill(outcome, first, second):
    """The first match of two players on the scale of 25, with a draw probability of
    0.1, has well-known results."""
    sigma = 25 / 3
    beta = 25 / 6
    tau = 25 / 300
    unit = math.sqrt(2) * beta
    epsilon = norm.ppf(0.55) * unit
    system = TrueSkill(
        (sigma**2 + tau**2) / unit**2, tau**2 / unit**2, margin=epsilon / unit
    )
    system.fit(Matches([[1, -1]], [0], ["a", "b"]), [outcome])
    found = np.column_stack([25 + unit * system.ratings_, unit * system.deviations_])
    np.testing.assert_allclose(found, [first, second], atol=5.1e-4)


@every_system
def test_forecasts_average_the_likelihood_over_the_skills(system):
    matches, y = season(5, system.margin > 0)
    fitted = clone(system).fit(matches[:20], y[:20])
    later = matches[20:]
    p = fitted.predict_proba(later)
    ids = later.players()  # all columns are players, in order
    elapsed = 1 if system.step == "match" else later.time[:, None] - fitted.last_[ids]
    spread = (fitted.deviations_[ids] ** 2 + system.dynamics * elapsed).sum(axis=1)
    labels = [-1, 0, 1] if system.margin else [-1, 1]
    assert fitted.classes_.tolist() == labels
    for row, d in enumerate(fitted.decision_function(later)):
        expected = [
            tilted_moments(label, d, spread[row], system.margin)[2] for label in labels
        ]
        np.testing.assert_allclose(p[row], expected, atol=1e-9)
    unseen = Matches([[1, -1]], [100], ["x", "z"])
    expected = [
        tilted_moments(label, 0.0, 2 * system.variance, system.margin)[2]
        for label in labels
    ]
    if not system.advantage:
        np.testing.assert_allclose(
            fitted.predict_proba(unseen, "ignore")[0], expected, atol=1e-9
        )

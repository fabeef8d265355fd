"""A mixture of fitted models: moments, quantiles and ranks of a mixture."""

import numpy as np
import pytest
from dynamics.problems import NAMES, small
from scipy import stats

from preflearn.dynamics import (
    AveragedComparisons,
    Constant,
    DynamicComparisons,
    Matern12,
    OrdinalProbit,
    Probit,
)
from preflearn.matches import Matches

WEIGHTS = [0.5, 0.2, 0.3]


PLAIN = (Probit(),) * 3


def mixture(likelihoods=PLAIN, outcomes=(1, -1)):
    matches, y = small(n=30, outcomes=outcomes)
    covariances = Constant(0.05), Matern12(0.7, 2.0), Constant(2.0)
    fits = [
        DynamicComparisons(covariance, likelihood).fit(matches, y)
        for covariance, likelihood in zip(covariances, likelihoods, strict=True)
    ]
    return AveragedComparisons(fits, WEIGHTS), matches, y


def draws_of(found, matches, size, rng):
    """Score differences, (N, size), and the model of each draw."""
    which = rng.choice(len(WEIGHTS), size, p=WEIGHTS)
    moments = np.array([model.moments(matches) for model in found.models_])
    mean, variance = moments[which].transpose(1, 2, 0)
    return rng.normal(mean, np.sqrt(variance)), which


def test_moments_and_quantiles_are_those_of_draws():
    found, matches, _ = mixture()
    draws, _ = draws_of(found, matches[:4], 200_000, np.random.default_rng(1))
    mean, variance = found.moments(matches[:4])
    np.testing.assert_allclose(mean, draws.mean(axis=1), atol=0.02)
    np.testing.assert_allclose(variance, draws.var(axis=1), rtol=0.03)
    for level in (0.5, 0.95):
        expected = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=1)
        np.testing.assert_allclose(
            found.interval(matches[:4], level), expected.T, atol=0.03
        )


def test_intervals_of_chances_are_those_of_draws_where_margins_differ():
    likelihoods = OrdinalProbit(0.2), OrdinalProbit(0.5), OrdinalProbit(1.0)
    found, matches, _ = mixture(likelihoods, (1, 0, -1))
    draws, which = draws_of(found, matches[:4], 100_000, np.random.default_rng(1))
    chances = np.array(
        [stats.norm.cdf(row - np.array([0.2, 0.5, 1.0])[which]) for row in draws]
    )
    expected = np.quantile(chances, [0.025, 0.975], axis=1)
    np.testing.assert_allclose(found.proba_interval(matches[:4]), expected.T, atol=0.01)
    proba = found.predict_proba(matches[:4])
    np.testing.assert_allclose(proba[:, -1], chances.mean(axis=1), atol=0.01)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_a_mixture_of_one_is_the_model():
    matches, y = small(n=30, outcomes=(1, -1))
    model = DynamicComparisons(Constant(0.5), Probit()).fit(matches, y)
    found = AveragedComparisons([model], [1.0])
    np.testing.assert_allclose(found.moments(matches), model.moments(matches))
    np.testing.assert_array_equal(found.predict(matches), model.predict(matches))
    assert found.score(matches, y) == model.score(matches, y)
    mean, std = model.scores("Ann", [0.0, 1.0])
    np.testing.assert_allclose(found.scores("Ann", [0.0, 1.0]), (mean, std))
    ends = np.column_stack([mean - 1.959964 * std, mean + 1.959964 * std])
    np.testing.assert_allclose(found.score_interval("Ann", [0.0, 1.0]), ends, rtol=1e-6)
    assert found.log_marginal_likelihood_ == model.log_marginal_likelihood_
    own = found.standings()
    theirs = model.standings()
    assert list(own["name"]) == list(theirs["name"])
    centered = theirs["score"] - theirs["score"].mean()
    np.testing.assert_allclose(own["score"], centered, atol=1e-12)


def test_joint_scores_agree_with_differences_and_standings():
    found, matches, _ = mixture()
    last = matches.time[-1]
    mean, covariance = found.joint_scores(NAMES, last)
    x = np.zeros(len(NAMES))
    x[[1, 3]] = 1, -1
    difference = found.difference(NAMES[1], NAMES[3], last)
    np.testing.assert_allclose(difference[0], x @ mean, atol=1e-12)
    np.testing.assert_allclose(difference[1] ** 2, x @ covariance @ x)
    center = np.eye(len(NAMES)) - 1 / len(NAMES)
    table = found.standings().set_index("name").loc[list(NAMES)]
    np.testing.assert_allclose(table["score"], center @ mean, atol=1e-12)
    variance = np.diag(center @ covariance @ center)
    np.testing.assert_allclose(table["std"], np.sqrt(variance))
    assert (table["low"] < table["score"]).all()
    assert (table["score"] < table["high"]).all()


def test_differences_at_times_in_any_order():
    found, _, _ = mixture()
    mean, std = found.difference("Ann", "Bob", [3.0, 0.0, 9.0])
    alone = [found.difference("Ann", "Bob", t) for t in (3.0, 0.0, 9.0)]
    np.testing.assert_allclose(np.column_stack([mean, std]), alone)


def test_rank_intervals_hold_the_share_of_the_mixture():
    """Two players: both ranks are possible if 2.5 % of the mixture say so."""
    matches = Matches([[1, -1]] * 30, np.arange(30.0), ["Ann", "Bob"])
    for lost, certain in ((1, True), (14, False)):
        y = np.repeat([1, -1], [30 - lost, lost])
        fits = [
            DynamicComparisons(Constant(v), Probit()).fit(matches, y) for v in (0.3, 1)
        ]
        table = AveragedComparisons(fits, [0.4, 0.6]).standings()
        assert table["name"].tolist() == ["Ann", "Bob"]
        assert (table["rank_high"][0] == 1) == certain


@pytest.mark.parametrize(
    ("weights", "named"),
    [([1.0], "one weight per model"), ([2, -1], "at least 0"), ([1, 1], "sum")],
)
def test_wrong_weights_are_named(weights, named):
    matches, y = small(n=30, outcomes=(1, -1))
    model = DynamicComparisons(Constant(0.5), Probit()).fit(matches, y)
    with pytest.raises(ValueError, match=named):
        AveragedComparisons([model, model], weights)


@pytest.mark.parametrize("models", [[], 0.5, 10**120], ids=["empty", "float", "int"])
def test_models_must_be_a_list(models):
    with pytest.raises(ValueError, match=r"models.*list"):
        AveragedComparisons(models, [1.0])


def message_of(function, *arguments):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        function(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("posterior", ["factorized", "joint"])
@pytest.mark.parametrize("name", ["Zoe", "Anne", 3, 2.5, None, ["Ann"]], ids=repr)
def test_unknown_names_have_the_message_of_a_model(posterior, name):
    matches, y = small(n=30, outcomes=(1, -1))
    model = DynamicComparisons(Constant(0.5), Probit(), posterior=posterior)
    model.fit(matches, y)
    found = AveragedComparisons([model, model], [0.5, 0.5])
    for method, arguments in (
        ("scores", (name, 1.0)),
        ("difference", ("Ann", name, 1.0)),
        ("difference", (name, "Ann", 1.0)),
        ("joint_scores", (["Ann", name], 1.0)),
    ):
        expected = message_of(getattr(model, method), *arguments)
        assert message_of(getattr(found, method), *arguments) == expected
        assert "features_" in expected
    text = message_of(model.scores, name, 1.0)
    assert text == message_of(found.score_interval, name, 1.0)
    if name == "Anne":
        assert "closest: 'Ann'" in text
    if name == 3:
        assert "feature is 3" in text


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("difference", ("Ann", "Ann", 1.0)),
        ("difference", ("Ann", "Bob", "soon")),
        ("joint_scores", (["Ann", "Ann"], 1.0)),
        ("joint_scores", ([], 1.0)),
        ("joint_scores", ("Ann", 1.0)),
        ("joint_scores", (3, 1.0)),
        ("joint_scores", (["Ann"], float("nan"))),
    ],
)
def test_other_mistakes_about_scores_have_the_message_of_a_model(method, arguments):
    found, _, _ = mixture()
    expected = message_of(getattr(found.models_[0], method), *arguments)
    assert message_of(getattr(found, method), *arguments) == expected


def test_unknown_names_of_matches_and_levels_are_named():
    found, matches, _ = mixture()
    with pytest.raises(ValueError, match="level"):
        found.interval(matches, level=95)
    other = Matches([[1, -1]], [1.0], ["Ann", "Zoe"])
    with pytest.raises(ValueError, match="Zoe"):
        found.predict_proba(other, unseen="raise")

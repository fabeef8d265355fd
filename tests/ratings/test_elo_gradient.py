import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ratings.seasons import played
from sklearn.base import clone

from preflearn.dynamics import Gaussian, Logit, OrdinalLogit, OrdinalProbit, Probit
from preflearn.matches import Matches
from preflearn.metrics import log_loss
from preflearn.ratings import Elo

LIKELIHOODS = [Logit(), Probit(), OrdinalLogit(0.6), OrdinalProbit(0.4)]
every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda found: type(found).__name__)


def season(seed, likelihood):
    return played(seed, n=5, N=40, ties=0.3 if likelihood.has_ties else 0, a_day=3)


@every_likelihood
@pytest.mark.parametrize("seed", range(2))
def test_each_match_is_a_step_up_the_gradient(likelihood, seed):
    matches, y = season(seed, likelihood)
    elo = Elo(likelihood=likelihood, rate=0.3, advantage=0.25).fit(matches, y)
    scores, before = dict.fromkeys(range(5), 0.0), []
    home = matches.design.toarray()[:, 5] * 0.25
    for (a, b), h, outcome in zip(matches.players().tolist(), home, y, strict=True):
        before.append((scores[a], scores[b]))
        d = scores[a] - scores[b] + h
        up, down = likelihood.log_density([outcome] * 2, [d + 1e-5, d - 1e-5])
        slope = (up - down) / 2e-5
        scores[a], scores[b] = scores[a] + 0.3 * slope, scores[b] - 0.3 * slope
    np.testing.assert_allclose(elo.before_, before, atol=1e-8)
    ends = [scores[int(name[1:])] for name in elo.players_]
    np.testing.assert_allclose(elo.ratings_, ends, atol=1e-8)
    np.testing.assert_array_equal(np.bincount(matches.players().ravel(), minlength=5), elo.games_)


def test_with_logit_it_is_elo_in_another_unit():
    matches, y = played(3, ties=0)
    points = Elo(k=24, initial=0, advantage=40).fit(matches, y)
    unit = 400 / math.log(10)
    scores = Elo(likelihood=Logit(), rate=24 / unit, advantage=40 / unit).fit(matches, y)
    np.testing.assert_allclose(unit * scores.before_, points.before_, atol=1e-10)
    np.testing.assert_allclose(unit * scores.ratings_, points.ratings_, atol=1e-10)
    np.testing.assert_allclose(scores.predict_proba(matches), points.predict_proba(matches)[:, [0, 2]])


def test_without_a_likelihood_the_rate_is_not_used_and_with_one_the_points_are_not():
    matches, y = played(4, ties=0.3)
    for changed in ({"rate": 0.9}, {"rate": 0.01}):
        np.testing.assert_array_equal(
            Elo(k=20, **changed).fit(matches, y).before_, Elo(k=20).fit(matches, y).before_
        )
    reference = Elo(likelihood=OrdinalLogit(0.5)).fit(matches, y)
    other = Elo(k=99, initial=0, scale=100, likelihood=OrdinalLogit(0.5)).fit(matches, y)
    np.testing.assert_array_equal(other.before_, reference.before_)


@every_likelihood
def test_forecasts_are_those_of_the_likelihood(likelihood):
    matches, y = season(5, likelihood)
    elo = Elo(likelihood=likelihood, advantage=0.3).fit(matches, y)
    p, d = elo.predict_proba(matches), elo.decision_function(matches)
    labels = [-1, 0, 1] if likelihood.has_ties else [-1, 1]
    assert elo.classes_.tolist() == labels
    for column, label in zip(p.T, labels, strict=True):
        np.testing.assert_allclose(np.log(column), likelihood.log_density(np.full(len(y), label), d))
    np.testing.assert_array_equal(elo.predict(matches), np.array(labels)[p.argmax(axis=1)])
    assert np.isfinite(log_loss(y, p))


@every_likelihood
def test_a_common_shift_does_not_matter(likelihood):
    matches, y = season(6, likelihood)
    system = Elo(likelihood=likelihood, rate=0.7, advantage=0.2)
    assert clone(system).fit(matches, y).ratings_.sum() == pytest.approx(0, abs=1e-12)
    parts = [clone(system).fit(matches[:20], y[:20]) for _ in range(2)]
    assert len(parts[0].players_) == 5  # nobody begins at 0 later
    parts[0].ratings_ = parts[0].ratings_ + 3.0
    shifted, again = (part.partial_fit(matches[20:], y[20:]).ratings_ for part in parts)
    np.testing.assert_allclose(shifted, again + 3.0, atol=1e-10)


def test_equals_are_a_tie_for_predict():
    elo = Elo(likelihood=Logit()).fit(Matches([[1, -1]], [0], ["a", "b"]), [1])
    unknown = Matches([[1, -1], [1, -1]], [1, 1], ["x", "y"])
    assert elo.predict_proba(unknown).tolist() == [[0.5, 0.5]] * 2
    assert elo.predict(unknown).tolist() == [0, 0]


@every_likelihood
@settings(max_examples=50)
@given(
    one=st.tuples(st.floats(-30, 30), st.floats(-30, 30)),
    two=st.tuples(st.floats(-30, 30), st.floats(-30, 30)),
    y=st.sampled_from([-1, 0, 1]),
)
def test_a_step_of_rate_1_brings_two_players_scores_no_further_apart(likelihood, one, two, y):
    """Why larger rates are refused: with a probit likelihood scores may explode."""
    if y == 0 and not likelihood.has_ties:
        return
    pair, after = Matches([[1, -1]], [1], ["a", "b"]), []
    for scores in (one, two):
        elo = Elo(likelihood=likelihood, rate=1.0).fit(pair, [1])
        elo.ratings_ = np.array(scores)
        after.append(elo.partial_fit(pair, [y]).ratings_)
    assert np.linalg.norm(after[0] - after[1]) <= np.linalg.norm(np.subtract(one, two)) + 1e-9


@every_likelihood
def test_scores_grow_at_most_linearly_whatever_happens(likelihood):
    matches = Matches([[1, -1]] * 2000, range(2000), ["a", "b"])
    elo = Elo(likelihood=likelihood, rate=1.0).fit(matches, np.resize([1, -1], 2000))
    most = max(abs(likelihood.log_partition([y], [0.0], [0.0])[1][0]) for y in (-1, 1))
    assert np.abs(elo.before_).max() <= most * 2000
    assert np.isfinite(elo.predict_proba(matches)).all()
    won = Elo(likelihood=likelihood, rate=1.0).fit(matches, np.ones(2000))
    assert won.ratings_[0] > 1
    assert np.isfinite(won.predict_proba(matches)).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rate": 0}, "rate is 0; expected a number above 0 and at most 1"),
        ({"rate": 1.5}, "rate is 1.5; expected a number above 0 and at most 1"),
        ({"rate": np.nan}, "rate is nan; expected a number above 0"),
        ({"likelihood": "logit"}, "likelihood is 'logit'; expected None, Probit"),
        ({"likelihood": Gaussian(2.0)}, "likelihood is Gaussian.*; expected None, Probit"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        Elo(**({"likelihood": Logit()} | parameters)).fit(*played(0, ties=0))


def test_bad_matches_are_named():
    matches, y = played(0, ties=0.3)
    tie = int(np.flatnonzero(y == 0)[0])
    with pytest.raises(ValueError, match=rf"y\[{tie}\] is 0.0; expected one of \[-1, 1\], for Logit"):
        Elo(likelihood=Logit()).fit(matches, y)

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from preflearn.dynamics import (
    Affine,
    Constant,
    DynamicComparisons,
    Gaussian,
    Matern12,
    Matern32,
    OrdinalLogit,
    OrdinalProbit,
    Poisson,
    Probit,
    Skellam,
    Wiener,
    one_step_ahead,
)
from preflearn.matches import Matches
from preflearn.metrics import log_loss
from preflearn.ratings import Elo, TrueSkill, earlier_forecasts
from preflearn_book.studies.ch14_points import result_probabilities
from preflearn_book.studies.ch14_sports import (
    ResultForecasts,
    bradley_terry_probabilities,
    forecast_results,
    interaction_model,
    observations,
    published_model,
    training_size,
)

TABLE = pd.read_csv(
    Path(__file__).parents[2] / "data/published/P4_tables.csv", comment="#"
)
MOVING = Constant(0.3) + Matern12(0.5, lengthscale=10.0)
YEAR = 365.25
TENNIS = Affine(0.366, 0.001 / YEAR**2, origin="first") + Wiener(
    0.147 / YEAR, origin="first"
)


def season(n=60, n_teams=5, ties=True, seed=0):
    rng = np.random.default_rng(seed)
    teams = np.array([rng.choice(n_teams, 2, replace=False) for _ in range(n)])
    points = rng.poisson(np.exp(0.6 + 0.2 * (teams[:, ::-1] - teams)))
    points[:, 0] += (points[:, 0] == points[:, 1]) & (not ties)
    names = np.array([f"team {k}" for k in range(n_teams)])
    return pd.DataFrame(
        {
            "first": names[teams[:, 0]],
            "second": names[teams[:, 1]],
            "time": np.arange(n) // 4 * 1.0,  # four games per day
            "outcome": np.sign(points[:, 0] - points[:, 1]),
            "first_score": points[:, 0],
            "second_score": points[:, 1],
            "home": rng.random(n) < 0.8,
        }
    )


# ---- Table 8


def ou(variance, years):
    return Matern12(variance, lengthscale=years * YEAR)


NBA = "NBA basketball"
FOOTBALL = "World football"
MODELS = [
    (NBA, "Ours", None, Constant(0.003) + ou(0.152, 3.324), Probit()),
    (
        NBA,
        "Figure 4",
        None,
        Constant(0.003) + Matern32(0.138, lengthscale=1.753 * YEAR),
        Probit(),
    ),
    (
        FOOTBALL,
        "Table 4",
        "Gaussian",
        Constant(4.062) + ou(2.922, 175.025),
        Gaussian(3.003, margin=0.5),
    ),
    (FOOTBALL, "Table 4", "Poisson-exp", Constant(0.3) + ou(0.21, 83.61), Poisson()),
    (
        "ChessBase small",
        "Ours",
        None,
        Constant(0.307) + Wiener(0.01 / YEAR, "first"),
        OrdinalProbit(0.558),
    ),
    ("ATP tennis", "Ours", "Probit", TENNIS, Probit()),
]
SYSTEMS = [
    (FOOTBALL, "Elo", None, Elo(likelihood=OrdinalLogit(0.578), rate=0.196)),
    (FOOTBALL, "TrueSkill", None, TrueSkill(1.42, 0.001, margin=0.381)),
]


@pytest.mark.parametrize(
    "row", MODELS + SYSTEMS, ids=lambda row: " ".join(map(str, row[:3]))
)
def test_models_of_table_8(row):
    dataset, model, likelihood, *parts = row
    expected = DynamicComparisons(*parts) if len(parts) == 2 else parts[0]
    assert repr(published_model(TABLE, dataset, model, likelihood)) == repr(expected)


def test_all_rows_of_table_8_are_models():
    rows = TABLE[TABLE["place"] == "Table 8"][
        ["dataset", "model", "likelihood"]
    ].drop_duplicates()
    assert len(rows) == 26
    for row in rows.itertuples(index=False):
        published_model(TABLE, *row)


def test_the_advantage_has_its_own_prior():
    model = published_model(TABLE, FOOTBALL, "Table 5", advantage_variance=0.1)
    assert model.covariance["advantage"] == Constant(0.1)
    assert model.covariance["*"] == Constant(0.895) + Matern12(
        0.22, lengthscale=44.472 * 365.25
    )


# ---- Forecasts


def test_observations_have_the_kind_of_the_likelihood():
    frame = season()
    for likelihood in (None, OrdinalProbit(0.3)):
        assert observations(frame, likelihood)[1].tolist() == frame["outcome"].tolist()
    points = frame[["first_score", "second_score"]].to_numpy()
    assert observations(frame, Poisson())[1].tolist() == points.ravel().tolist()
    assert observations(frame, advantage="home")[0].features[-1] == "advantage"


@pytest.mark.parametrize(
    ("kind", "first", "second"), [("uint8", 1, 2), ("int8", 100, -100), ("int64", 1, 2)]
)
@pytest.mark.parametrize("likelihood", [Gaussian(3.0), Skellam(1.5)], ids=repr)
def test_differences_of_points_do_not_overflow(likelihood, kind, first, second):
    points = {
        "first_score": np.array([first] * 8, kind),
        "second_score": np.array([second] * 8, kind),
    }
    assert (
        observations(season(n=8).assign(**points), likelihood)[1].tolist()
        == [first - second] * 8
    )


@pytest.mark.parametrize(
    "likelihood", [OrdinalProbit(0.3), Gaussian(2.0, margin=0.5)], ids=repr
)
def test_forecasts_are_those_of_a_refit_each_day(likelihood):
    frame = season()
    model = DynamicComparisons(MOVING, likelihood)
    # the forecasts start at game 42, the third of its day
    found = forecast_results(model, frame)
    assert found.outcomes.tolist() == frame["outcome"].tolist()[42:]
    matches, y = observations(frame, likelihood)
    np.testing.assert_array_equal(
        found.probabilities, one_step_ahead(model, matches, y, 42).probabilities
    )
    close = forecast_results(model, frame, tol=1e-8).probabilities
    for row, known in enumerate(np.searchsorted(matches.time, matches.time[42:])):
        refit = DynamicComparisons(MOVING, likelihood).fit(matches[:known], y[:known])
        np.testing.assert_allclose(
            close[[row]], refit.predict_proba(matches[[42 + row]]), atol=1e-5
        )
    assert not hasattr(model, "matches_")


@pytest.mark.parametrize("ties", [True, False])
def test_forecasts_from_points_of_both_teams(ties):
    frame = season(ties=ties)
    model = DynamicComparisons(MOVING, Poisson())
    ahead = one_step_ahead(model, *observations(frame, Poisson()), 84)
    moments = ahead.mean.reshape(-1, 2), ahead.variance.reshape(-1, 2)
    found = forecast_results(model, frame).probabilities
    assert found.shape == (18, 3 if ties else 2)
    expected = result_probabilities(*moments)
    if not ties:
        expected = expected[:, [0, 2]] + expected[:, [1]] / 2
    np.testing.assert_array_equal(found, expected)


def test_forecasts_of_rating_systems():
    frame = season()
    elo = Elo(likelihood=OrdinalLogit(0.3), rate=0.2)
    found = forecast_results(elo, frame)
    expected = earlier_forecasts(elo, *Matches.from_frame(frame), 42)
    np.testing.assert_array_equal(found.probabilities, expected)


# ---- Scores


def test_losses_and_hits():
    forecasts = ResultForecasts(
        np.array(
            [
                [0.2, 0.3, 0.5],
                [0.4, 0.2, 0.4],
                [0.4, 0.2, 0.4],
                [1 / 3, 1 / 3, 1 / 3],
                [0.5, 0.3, 0.2],
            ]
        ),
        np.array([1, -1, 0, 0, 0], dtype=np.int8),
    )
    np.testing.assert_allclose(forecasts.losses(), -np.log([0.5, 0.4, 0.2, 1 / 3, 0.3]))
    np.testing.assert_allclose(forecasts.hits(), [1, 0.5, 0, 1 / 3, 0])
    assert forecasts.losses().mean() == pytest.approx(
        log_loss(forecasts.outcomes, forecasts.probabilities)
    )


# ---- Figure 5


def test_interactions_learn_rock_paper_scissors():
    pairs = [("paper", "rock"), ("rock", "scissors"), ("scissors", "paper")] * 10
    first, second = zip(*pairs, strict=True)
    frame = pd.DataFrame({"first": first, "second": second, "time": 0.0, "outcome": 1})
    matches, y = Matches.from_frame(frame, interactions=True)
    model = interaction_model(matches, 4.0, 3.0).fit(matches, y)
    assert model.covariance["rock"] == Constant(4.0)
    assert model.covariance["*"] == Constant(3.0)
    assert model.predict_proba(matches[:3])[:, 1].min() > 0.9


def test_bradley_terry_is_penalized_logistic_regression():
    frame = season(n=200, ties=False)
    matches, y = Matches.from_frame(frame)
    alpha = 0.3
    x = matches.design.toarray()
    model = LogisticRegression(
        C=1 / (2 * alpha), fit_intercept=False, solver="newton-cholesky", tol=1e-12
    )
    expected = model.fit(x, y).predict_proba(x)
    np.testing.assert_allclose(
        bradley_terry_probabilities(matches, y, matches, alpha), expected, atol=1e-7
    )


def test_seventy_percent_of_the_matches_train_rounded_down():
    assert [training_size(n) for n in (3, 10, 11)] == [2, 7, 7]

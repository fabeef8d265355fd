"""Properties of every rating system."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from ratings.seasons import TRUESKILLS, davidson, played
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from preflearn.dynamics import Gaussian, Logit, OrdinalProbit
from preflearn.matches import Matches, TimeWarning
from preflearn.ratings import Elo, Glicko, TrueSkill, earlier_forecasts

POINTS = {
    "fide": Elo(),
    "elo": Elo(k=24, advantage=35),
    "glicko": Glicko(c=20),
    "periods": Glicko(c=20, period=3, advantage=35),
}
SCORES = {
    "logit": Elo(likelihood=Logit(), rate=0.7, advantage=0.2),
    "ordinal probit": Elo(likelihood=OrdinalProbit(0.4), rate=0.7, advantage=0.2),
}
SYSTEMS = POINTS | SCORES | TRUESKILLS
every_system = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
in_points = pytest.mark.parametrize("system", POINTS.values(), ids=POINTS)


def has_nu(system):
    return any(system is other for other in POINTS.values())


def season(system, seed, **sizes):
    """Return a season, with ties if the system supports them."""
    return played(seed, ties=0.3 if 0 in system.classes_ else 0, **sizes)


def by_name(system, what="ratings_"):
    return dict(zip(system.players_, getattr(system, what), strict=True))


# ---- Fits


@every_system
@examples(10)
@given(seed=st.integers(0, 10**6))
def test_sides_names_order_and_the_origins_of_time_and_ratings_do_not_matter(
    system, seed
):
    matches, y = season(system, seed, N=30)
    swapped = Matches(-matches.design, matches.time, matches.features)
    reference = clone(system).fit(matches, y)
    turned = clone(system).fit(swapped, -y)
    np.testing.assert_allclose(
        turned.ratings_, reference.ratings_, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        turned.before_, reference.before_[:, ::-1], rtol=1e-12, atol=1e-12
    )
    rtol = 1e-5 if has_nu(system) else 1e-7  # nu is found by a numerical search
    found = turned.predict_proba(swapped)
    expected = reference.predict_proba(matches)[:, ::-1]
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-12)
    order = np.append(np.random.default_rng(seed).permutation(6), 6)
    names = [matches.features[k] for k in order]
    again = clone(system).fit(
        Matches(matches.design[:, order], matches.time + 999, names), y
    )
    assert by_name(again) == pytest.approx(by_name(reference), rel=1e-12, abs=1e-10)
    if getattr(system, "likelihood", None) is not None:
        # systems with a likelihood have no initial rating: their scores start at 0
        return
    # all ratings are far below 2400
    lifted = clone(system).set_params(initial=system.initial + 100).fit(matches, y)
    np.testing.assert_allclose(
        lifted.ratings_, reference.ratings_ + 100, rtol=1e-12, atol=1e-9
    )
    np.testing.assert_allclose(
        lifted.predict_proba(matches), expected[:, ::-1], rtol=1e-5, atol=1e-12
    )


@every_system
def test_matches_can_be_added(system):
    matches, y = season(system, 9)
    cut = np.searchsorted(matches.time, 6)  # a boundary between two periods
    whole = clone(system).fit(matches, y)
    parts = clone(system).partial_fit(matches[:cut], y[:cut])
    parts.partial_fit(matches[cut:], y[cut:])
    for what in (
        ("ratings_", "deviations_") if hasattr(whole, "deviations_") else ("ratings_",)
    ):
        assert by_name(parts, what) == pytest.approx(by_name(whole, what), rel=1e-12)
    np.testing.assert_allclose(
        parts.before_, whole.before_[cut:], rtol=1e-12, atol=1e-12
    )
    assert hasattr(whole, "nu_") == has_nu(system)
    if has_nu(system):
        assert parts.nu_ == pytest.approx(whole.nu_, rel=1e-5)
    # fit forgets earlier matches
    again = clone(system).fit(matches[cut:], y[cut:]).fit(matches, y)
    np.testing.assert_array_equal(
        again.predict_proba(matches), whole.predict_proba(matches)
    )
    with pytest.raises(ValueError, match=r"time.* 0\.0.* 11"):
        parts.partial_fit(matches[:cut], y[:cut])


@every_system
def test_systems_are_estimators(system):
    matches, y = season(system, 16)
    assert clone(system).get_params() == system.get_params()
    with pytest.raises(NotFittedError):
        clone(system).predict_proba(matches)
    grid = {"advantage": [0.0, 0.1]}
    search = GridSearchCV(
        clone(system), grid, cv=TimeSeriesSplit(3), scoring="neg_log_loss"
    )
    assert np.isfinite(search.fit(matches, y).cv_results_["mean_test_score"]).all()
    fitted = clone(system).fit(matches, y)
    assert fitted.score(matches, y) == pytest.approx(
        np.mean(fitted.predict(matches) == y)
    )
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        again.predict_proba(matches), fitted.predict_proba(matches)
    )


# ---- Forecasts


@every_system
def test_forecasts_are_by_the_present_ratings_and_those_of_newcomers(system):
    matches, y = season(system, 10)
    fitted = clone(system).fit(matches, y)
    d = fitted.decision_function(matches)
    home = matches.design.toarray()[:, 6] * system.advantage
    np.testing.assert_allclose(d, fitted.ratings_[matches.players()] @ [1, -1] + home)
    p = fitted.predict_proba(matches)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert (np.sign(p[:, -1] - p[:, 0]) == np.sign(d)).all()
    np.testing.assert_array_equal(
        fitted.predict(matches), fitted.classes_[p.argmax(axis=1)]
    )
    names = ["x", "z", "advantage"]
    unseen = fitted.predict_proba(
        Matches([[1, -1, 0]], matches.time[-1:], names), "ignore"
    )
    assert unseen[0, 0] == pytest.approx(unseen[0, -1])


@in_points
def test_ties_keep_the_expected_score(system):
    matches, y = played(10)
    fitted = clone(system).fit(matches, y)
    p = fitted.predict_proba(matches)
    np.testing.assert_allclose(
        p, davidson(p[:, 2] + p[:, 1] / 2, fitted.nu_), rtol=1e-9
    )
    if isinstance(system, Elo):
        score = 1 / (1 + 10 ** (-fitted.decision_function(matches) / 400))
        np.testing.assert_allclose(p[:, 2] + p[:, 1] / 2, score, rtol=1e-12)


@in_points
def test_a_sport_without_ties_has_none_in_its_forecasts_and_one_of_ties_only_has_little_else(
    system,
):
    matches, y = played(13, ties=0)
    fitted = clone(system).fit(matches, y)
    assert fitted.nu_ == 0
    assert (fitted.predict_proba(matches)[:, 1] == 0).all()
    assert (fitted.predict(matches) != 0).all()
    fitted = clone(system).set_params(advantage=0).fit(matches, 0 * y)
    assert (fitted.ratings_ == fitted.initial).all()
    assert (fitted.predict_proba(matches)[:, 1] > 0.999).all()
    assert (fitted.predict(matches) == 0).all()


@pytest.mark.parametrize(
    "system",
    [
        Elo(k=1e7),
        Glicko(deviation=1e6),
        TrueSkill(1e6, 1e6),
        TrueSkill(1e-12, 0.0),
        TrueSkill(1e8, 1.0, margin=1e-3),
        TrueSkill(1.0, margin=30),
    ],
    ids=repr,
)
def test_extreme_parameters_stay_finite(system):
    matches, y = season(system, 9)
    fitted = clone(system).fit(matches, y)
    assert np.isfinite(fitted.ratings_).all()
    assert (getattr(fitted, "deviations_", np.ones(1)) > 0).all()
    np.testing.assert_allclose(fitted.predict_proba(matches).sum(axis=1), 1, rtol=1e-12)


# ---- Forecasts from earlier times


def refits_by_day(system, matches, y, start):
    """Refit on all earlier matches for every day. The value of nu is that of the first
    day."""
    known = int(np.searchsorted(matches.time, matches.time[start]))
    rows = []
    for day in np.unique(matches.time[known:]):
        past = matches.time < day
        today = matches.time == day
        p = clone(system).fit(matches[past], y[past]).predict_proba(matches[today])
        if has_nu(system):
            p = davidson(
                p[:, 2] + p[:, 1] / 2, clone(system).fit(matches[:known], y[:known]).nu_
            )
        rows.append(p)
    return np.concatenate(rows)[start - known :]


@every_system
def test_each_day_is_forecast_from_all_earlier_days(system):
    matches, y = season(system, 0)
    start = 17  # within a day
    p = earlier_forecasts(system, matches, y, start)
    # Glicko forecasts from the ratings at the start of the period
    if (period := getattr(system, "period", None)) is not None:
        matches = Matches(
            matches.design, matches.time // period * period, matches.features
        )
    assert p.shape == (len(y) - start, len(system.classes_))
    np.testing.assert_allclose(p, refits_by_day(system, matches, y, start), rtol=1e-8)
    assert not hasattr(system, "players_")


# ---- Bad input


@every_system
def test_bad_matches_are_named_and_leave_the_old_fit(system):
    matches, y = season(system, 17)
    fitted = clone(system).fit(matches, y)
    before = fitted.predict_proba(matches)
    four = Matches([[1, 1, -1, -1]], [0], list("abcd"))
    two = Matches([[1, -1]], [0], ["a", "b"])
    rejected = [
        (matches[:0], [], {}, "matches"),
        (np.ones((3, 2)), [1, 1, 1], {}, "matches"),
        (matches, np.full(len(y), 2), {}, r"y\[0\]"),
        (matches, y[1:], {}, "y "),
        (four, [1], {"advantage": 0}, "match 0"),
        (two, [1], {"advantage": 10}, "advantage"),
    ]
    if 0 not in system.classes_:
        rejected.append((matches, 0 * y, {}, r"y\[0\]"))
    for wrong, outcomes, changes, named in rejected:
        with pytest.raises(ValueError, match=named):
            fitted.set_params(**changes).fit(wrong, outcomes)
        fitted.set_params(**system.get_params())
        np.testing.assert_array_equal(fitted.predict_proba(matches), before)


@pytest.mark.parametrize(
    ("system", "named"),
    [
        (Elo(k="uscf"), "k is 'uscf'"),
        (Elo(scale=-400), "scale"),
        (Elo(initial=np.nan), "initial"),
        (Elo(initial={"p0": 1500}), "initial"),
        (Elo(advantage=np.inf), "advantage"),
        (Elo(likelihood=Logit(), rate=0), "rate"),
        (Elo(likelihood=Logit(), rate=1.5), "rate"),
        (Elo(likelihood="logit"), "likelihood"),
        (Elo(likelihood=Gaussian(2.0)), "likelihood"),
        (Glicko(deviation=0), "deviation"),
        (Glicko(c=-1), "c is -1"),
        (Glicko(period=0), "period"),
        (TrueSkill(variance=0), "variance"),
        (TrueSkill(dynamics=-0.1), "dynamics"),
        (TrueSkill(step="day"), "step"),
        (TrueSkill(margin=-1), "margin"),
    ],
    ids=repr,
)
def test_bad_parameters_are_named(system, named):
    with pytest.raises(ValueError, match=named):
        system.fit(*played(0, ties=0))


@pytest.mark.parametrize(
    ("system", "change"),
    [
        (Elo(), {"likelihood": Logit()}),
        (Elo(likelihood=Logit()), {"likelihood": None}),
        (TrueSkill(), {"margin": 0.5}),
    ],
)
def test_ratings_of_another_likelihood_are_not_mixed(system, change):
    matches, y = played(19, ties=0)
    fitted = clone(system).fit(matches, y)
    before = fitted.ratings_
    next_match = Matches([[1, -1]], matches.time[-1:], ["p0", "p1"])
    fitted.set_params(**change)
    for use in (
        fitted.predict_proba,
        fitted.predict,
        lambda _: fitted.partial_fit(next_match, [1]),
    ):
        with pytest.raises(ValueError, match=r"likelihood.*fit"):
            use(matches)
    np.testing.assert_array_equal(fitted.ratings_, before)
    again = clone(system).set_params(**change).fit(matches, y).predict_proba(matches)
    np.testing.assert_array_equal(fitted.fit(matches, y).predict_proba(matches), again)


def test_ratings_that_were_read_do_not_change_later():
    one = Matches([[1.0, -1.0]], [0.0], ["Ann", "Bob"])
    elo = Elo().fit(one, [1])
    before = elo.ratings_
    kept = before.copy()
    elo.partial_fit(Matches([[1.0, -1.0]], [1.0], ["Bob", "Cy"]), [1])
    assert (before == kept).all()
    assert elo.players_ == ("Ann", "Bob", "Cy")
    assert len(elo.ratings_) == len(elo.games_) == 3
    assert not hasattr(elo, "deviations_")


def test_bad_questions_of_earlier_forecasts_are_named():
    matches, y = played(3)
    for start in (0, 60, 2.5, True, 4):  # matches 0 to 4 are on the first day
        with pytest.raises(ValueError, match=f"start is {start}"):
            earlier_forecasts(Elo(), matches, y, start)
    with pytest.raises(ValueError, match="system"):
        earlier_forecasts("elo", matches, y, 20)


THREE = Matches([[1, -1, 0], [-1, 0, 1], [0, 1, -1]], [0.0, 1.0, 2.0], ["a", "b", "c"])


# ---- Initial ratings, units of time, and handicaps


def test_who_begins_above_2400_has_the_k_of_the_elite_from_the_start():
    elo = Elo(initial=2450.0).fit(THREE[:1], [1])
    np.testing.assert_allclose(elo.ratings_, [2455, 2445])


@pytest.mark.parametrize(
    "system", [Glicko(), TrueSkill(0.25, 0.001, step="time")], ids=repr
)
def test_times_in_another_unit_than_the_rate_are_warned_of(system):
    matches, y = played(3, ties=0)
    days = Matches(matches.design, np.linspace(0, 3650, len(y)), matches.features)
    for unit, start in ((86_400_000, 0), (1 / 365, 2004)):
        wrong = Matches(matches.design, start + unit * days.time, matches.features)
        with pytest.warns(TimeWarning, match="unit"):
            clone(system).fit(wrong, y)
    with warnings.catch_warnings(action="error"):
        clone(system).fit(days, y)


def test_an_advantage_of_one_adds_handicaps_as_they_are():
    frame = pd.DataFrame(
        {"first": "a", "second": "b", "time": [0.0], "outcome": [1], "ahead": [80.0]}
    )
    matches, y = Matches.from_frame(frame, advantage="ahead")
    expected = 1 / (1 + 10 ** (-80 / 400))
    assert Elo(k=20, advantage=1).fit(matches, y).ratings_[0] == pytest.approx(
        1200 + 20 * (1 - expected)
    )

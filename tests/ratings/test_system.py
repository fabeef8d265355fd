"""What holds of every rating system."""

import pickle
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ratings.seasons import TRUESKILLS, davidson, played
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from preflearn.dynamics import Gaussian, Logit, OrdinalLogit, OrdinalProbit, Probit
from preflearn.matches import Matches, OutcomeWarning, TimeWarning, UnseenWarning
from preflearn.metrics import log_loss
from preflearn.ratings import Elo, Glicko, TrueSkill, earlier_forecasts

POINTS = {
    "fide": Elo(),
    "elo": Elo(k=24, advantage=35),
    "glicko": Glicko(c=20),
    "periods": Glicko(c=20, period=3, advantage=35),
}
SCORES = {
    "logit": Elo(likelihood=Logit(), rate=0.7, advantage=0.2),
    "probit": Elo(likelihood=Probit(), rate=0.7, advantage=0.2),
    "ordinal logit": Elo(likelihood=OrdinalLogit(0.6), rate=0.7, advantage=0.2),
    "ordinal probit": Elo(likelihood=OrdinalProbit(0.4), rate=0.7, advantage=0.2),
}
SYSTEMS = POINTS | SCORES | TRUESKILLS
every_system = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
in_points = pytest.mark.parametrize("system", POINTS.values(), ids=POINTS)


def has_nu(system):
    return any(system is other for other in POINTS.values())


def season(system, seed, **sizes):
    """With ties, if the system knows them."""
    return played(seed, ties=0.3 if 0 in system.classes_ else 0, **sizes)


def by_name(system, what="ratings_"):
    return dict(zip(system.players_, getattr(system, what), strict=True))


# ---- Fits


@every_system
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_sides_names_order_and_the_origin_of_time_do_not_matter(system, seed):
    matches, y = season(system, seed, N=30)
    swapped = Matches(-matches.design, matches.time, matches.features)
    reference, turned = clone(system).fit(matches, y), clone(system).fit(swapped, -y)
    np.testing.assert_allclose(turned.ratings_, reference.ratings_, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(turned.before_, reference.before_[:, ::-1], rtol=1e-12, atol=1e-12)
    rtol = 1e-5 if has_nu(system) else 1e-7  # nu is found by a search
    found, expected = turned.predict_proba(swapped), reference.predict_proba(matches)[:, ::-1]
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-12)
    start = int(np.argmax(matches.time > 0))
    found, expected = (earlier_forecasts(system, *data, start) for data in ((swapped, -y), (matches, y)))
    np.testing.assert_allclose(found, expected[:, ::-1], rtol=1e-5, atol=1e-12)
    order = np.append(np.random.default_rng(seed).permutation(6), 6)
    names = [matches.features[k] for k in order]
    again = clone(system).fit(Matches(matches.design[:, order], matches.time + 999, names), y)
    assert by_name(again) == pytest.approx(by_name(reference), rel=1e-12, abs=1e-10)


@every_system
def test_a_common_level_does_not_matter(system):
    matches, y = season(system, 9)
    fits = [clone(system).fit(matches[:30], y[:30]) for _ in range(2)]
    assert len(fits[0].players_) == 6  # nobody is new later
    fits[0].ratings_ = fits[0].ratings_ + 100  # far below 2400
    lifted, reference = (fitted.partial_fit(matches[30:], y[30:]) for fitted in fits)
    np.testing.assert_allclose(lifted.ratings_, reference.ratings_ + 100, rtol=1e-12, atol=1e-9)
    if has_nu(system):
        changed = clone(system).set_params(initial=system.initial + 100)
        np.testing.assert_allclose(changed.fit(matches, y).ratings_, lifted.ratings_, rtol=1e-12)


@every_system
def test_matches_can_be_added(system):
    matches, y = season(system, 9)
    cut = np.searchsorted(matches.time, 6)  # between two periods
    whole, parts = clone(system).fit(matches, y), clone(system).partial_fit(matches[:cut], y[:cut])
    parts.partial_fit(matches[cut:], y[cut:])
    for what in ("ratings_", "deviations_") if hasattr(whole, "deviations_") else ("ratings_",):
        assert by_name(parts, what) == pytest.approx(by_name(whole, what), rel=1e-12)
    np.testing.assert_allclose(parts.before_, whole.before_[cut:], rtol=1e-12, atol=1e-12)
    assert hasattr(whole, "nu_") == has_nu(system)
    if has_nu(system):
        assert parts.nu_ == pytest.approx(whole.nu_, rel=1e-5)
    again = clone(system).fit(matches[cut:], y[cut:]).fit(matches, y)  # it forgets
    np.testing.assert_array_equal(again.predict_proba(matches), whole.predict_proba(matches))
    message = r"time of the first match is 0.0; expected at least 11, that of the"
    with pytest.raises(ValueError, match=message):
        parts.partial_fit(matches[:cut], y[:cut])


@every_system
def test_systems_follow_the_contract_of_scikit_learn(system):
    matches, y = season(system, 16)
    assert clone(system).get_params() == system.get_params()
    with pytest.raises(NotFittedError):
        clone(system).predict_proba(matches)
    name = "initial" if has_nu(system) else "rate" if isinstance(system, Elo) else "variance"
    value = getattr(system, name)
    grid, folds = {name: [value, value / 2]}, TimeSeriesSplit(3)
    search = GridSearchCV(clone(system), grid, cv=folds, scoring="neg_log_loss")
    scores = search.fit(matches, y).cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert (scores[0] == pytest.approx(scores[1], rel=1e-9)) == has_nu(system)  # only differences count
    fitted = clone(system).fit(matches, y)
    assert fitted.score(matches, y) == pytest.approx(np.mean(fitted.predict(matches) == y))
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(matches), fitted.predict_proba(matches))


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
    np.testing.assert_array_equal(fitted.predict(matches), fitted.classes_[p.argmax(axis=1)])
    assert np.isfinite(log_loss(y, p))
    names = ["x", "z", "advantage"]
    strangers = fitted.predict_proba(Matches([[1, -1, 0]], matches.time[-1:], names), "ignore")
    assert strangers[0, 0] == pytest.approx(strangers[0, -1])


@in_points
def test_ties_keep_the_expected_score(system):
    matches, y = played(10)
    fitted = clone(system).fit(matches, y)
    p = fitted.predict_proba(matches)
    np.testing.assert_allclose(p, davidson(p[:, 2] + p[:, 1] / 2, fitted.nu_), rtol=1e-9)
    if isinstance(system, Elo):
        score = 1 / (1 + 10 ** (-fitted.decision_function(matches) / 400))
        np.testing.assert_allclose(p[:, 2] + p[:, 1] / 2, score, rtol=1e-12)


@in_points
def test_a_sport_without_ties_has_none_in_its_forecasts_and_one_of_ties_only_has_little_else(system):
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
    fitted = system.fit(matches, y)
    assert np.isfinite(fitted.ratings_).all()
    assert (getattr(fitted, "deviations_", np.ones(1)) > 0).all()
    p = fitted.predict_proba(matches)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)


# ---- Forecasts from earlier times


def one_day_after_the_other(system, matches, y, start):
    """A fit for every day, of all earlier matches; nu is that of the first day."""
    known, rows = int(np.searchsorted(matches.time, matches.time[start])), []
    for day in np.unique(matches.time[known:]):
        past, today = matches.time < day, matches.time == day
        p = clone(system).fit(matches[past], y[past]).predict_proba(matches[today])
        if has_nu(system):
            p = davidson(p[:, 2] + p[:, 1] / 2, clone(system).fit(matches[:known], y[:known]).nu_)
        rows.append(p)
    return np.concatenate(rows)[start - known :]


@every_system
@pytest.mark.parametrize("start", [17, 33])
def test_each_day_is_forecast_from_all_earlier_days(system, start):
    matches, y = season(system, 0)
    p = earlier_forecasts(system, matches, y, start)
    if (period := getattr(system, "period", None)) is not None:  # by the rating at its start
        matches = Matches(matches.design, matches.time // period * period, matches.features)
    assert p.shape == (len(y) - start, len(system.classes_))
    np.testing.assert_allclose(p, one_day_after_the_other(system, matches, y, start), rtol=1e-8)
    assert not hasattr(system, "players_")


# ---- Bad input


@every_system
def test_bad_matches_are_named_and_leave_the_old_fit(system):
    matches, y = season(system, 17)
    fitted = clone(system).fit(matches, y)
    before = fitted.predict_proba(matches)

    def refused(message, wrong, outcomes, **changes):
        with pytest.raises(ValueError, match=message):
            fitted.set_params(**changes).fit(wrong, outcomes)
        fitted.set_params(**system.get_params())
        np.testing.assert_array_equal(fitted.predict_proba(matches), before)

    refused("no matches", matches[:0], [])
    refused("matches is array.*; expected Matches", np.ones((3, 2)), [1, 1, 1])
    refused(r"y\[0\] is 2", matches, np.full(len(y), 2))
    refused("60", matches, y[1:])
    refused(
        r"match 0 is \[1.0, 1.0, -1.0, -1.0\]; expected one",
        Matches([[1, 1, -1, -1]], [0], list("abcd")),
        [1],
        advantage=0,
    )
    refused("have no feature 'advantage'", Matches([[1, -1]], [0], ["a", "b"]), [1], advantage=10)
    if 0 not in system.classes_:
        tied = np.where(np.arange(60) == 1, 0, y)
        refused(r"y\[1\] is 0.0; expected one of \[-1, 1\], for (Log|Prob)it", matches, tied)


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (Elo(k="uscf"), "k is 'uscf'; expected a positive number"),
        (Elo(scale=-400), "scale is -400; expected a positive number"),
        (Elo(initial=np.nan), "initial is nan; expected a finite number"),
        (Elo(advantage=np.inf), "advantage is inf; expected a finite number"),
        (Elo(likelihood=Logit(), rate=0), "rate is 0; expected a number above 0 and at most 1"),
        (Elo(likelihood=Logit(), rate=1.5), "rate is 1.5; expected a number above 0 and at most 1"),
        (Elo(likelihood="logit"), "likelihood is 'logit'; expected None, Probit"),
        (Elo(likelihood=Gaussian(2.0)), "likelihood is Gaussian.*; expected None, Probit"),
        (Glicko(deviation=0), "deviation is 0; expected a positive number"),
        (Glicko(c=-1), "c is -1; expected a number of at least 0"),
        (Glicko(period=0), "period is 0; expected a positive number"),
        (TrueSkill(variance=0), "variance is 0; expected a positive number"),
        (TrueSkill(dynamics=-0.1), "dynamics is -0.1; expected a number of at least 0"),
        (TrueSkill(step="day"), "step is 'day'; expected 'match' or 'time'"),
        (TrueSkill(margin=-1), "margin is -1; expected a number of at least 0"),
    ],
    ids=repr,
)
def test_bad_parameters_are_named(system, message):
    with pytest.raises(ValueError, match=message):
        system.fit(*played(0, ties=0))


@pytest.mark.parametrize(
    ("system", "change"),
    [
        (Elo(), {"likelihood": Logit()}),
        (Elo(likelihood=Logit()), {"likelihood": Probit()}),
        (Elo(likelihood=Logit()), {"likelihood": None}),
        (TrueSkill(), {"margin": 0.5}),
    ],
)
def test_ratings_of_another_likelihood_are_not_mixed(system, change):
    matches, y = played(19, ties=0)
    fitted = clone(system).fit(matches, y)
    before, next_match = fitted.ratings_, Matches([[1, -1]], matches.time[-1:], ["p0", "p1"])
    fitted.set_params(**change)
    message = r"the likelihood is .*; expected .*, which the ratings were fitted with; or call `fit` again"
    for use in (fitted.predict_proba, fitted.predict, lambda _: fitted.partial_fit(next_match, [1])):
        with pytest.raises(ValueError, match=message):
            use(matches)
    np.testing.assert_array_equal(fitted.ratings_, before)
    again = clone(system).set_params(**change).fit(matches, y).predict_proba(matches)
    np.testing.assert_array_equal(fitted.fit(matches, y).predict_proba(matches), again)


def test_a_start_out_of_range_is_named():
    matches, y = played(3)
    for start in (0, 60, -1, 2.5, None, True, "1"):
        with pytest.raises(ValueError, match=r"start is .*; expected the number of a match, from 1 to 59"):
            earlier_forecasts(Elo(), matches, y, start)
    with pytest.raises(ValueError, match=r"start is 4; expected .* 0 is the first time"):
        earlier_forecasts(Elo(), matches, y, 4)
    with pytest.raises(ValueError, match="system is 'elo'; expected a rating system"):
        earlier_forecasts("elo", matches, y, 20)


# ---- What users bring: weights, initial ratings, names, half points

EACH = {
    "Elo": (Elo(k=40.0), {"a": 1500.0, "b": 1350.0}),
    "Elo, fide": (Elo(), {"a": 2450.0, "b": 2300.0}),
    "Elo, likelihood": (Elo(likelihood=OrdinalProbit(0.3), rate=0.5), {"a": 0.7, "b": -0.2}),
    "Glicko": (Glicko(), {"a": 1900.0, "b": 1400.0}),
    "TrueSkill": (TrueSkill(margin=0.3, step="time"), {"a": 0.7, "b": -0.2}),
}
each = pytest.mark.parametrize(("system", "initial"), EACH.values(), ids=EACH)
TWO = Matches([[1, -1, 0], [-1, 0, 1], [0, 1, -1]], [0.0, 1.0, 2.0], ["a", "b", "c"])


def assert_rated_alike(one, other):
    for name in {"ratings_", "deviations_"} & {*vars(one)}:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10, atol=1e-12)


@each
def test_a_match_of_weight_two_is_rated_twice(system, initial):
    """One after the other; by Glicko, which looks at a period at once, two in one period."""
    if isinstance(system, Glicko):
        system = clone(system).set_params(period=1.0)
    if isinstance(system, Elo):
        system = clone(system).set_params(k=40.0)  # by the rules of the FIDE it depends on the games
    matches, y = played(3, N=40)
    matches = Matches(matches.design, np.arange(40.0), matches.features)
    weights = np.random.default_rng(0).integers(1, 4, 40)
    several = np.repeat(np.arange(40), weights)
    whole = clone(system).fit(matches, y, sample_weight=weights)
    twice = clone(system).fit(matches[several], y[several])
    assert_rated_alike(whole, twice)
    later = Matches(matches.design[:4], np.full(4, 50.0), matches.features)
    np.testing.assert_allclose(whole.decision_function(later), twice.decision_function(later), atol=1e-9)
    if isinstance(system, Glicko | TrueSkill):  # the ties of Elo's forecasts see each rating before a match
        np.testing.assert_allclose(whole.predict_proba(later), twice.predict_proba(later), atol=1e-6)
    ahead = earlier_forecasts(system, matches, y, 20, sample_weight=weights)
    doubled = earlier_forecasts(system, matches[several], y[several], int(weights[:20].sum()))
    if system._likelihood() is not None:
        np.testing.assert_allclose(ahead, doubled[np.cumsum(weights[20:]) - weights[20:]], atol=1e-9)
    part = clone(system).fit(matches[:20], y[:20], weights[:20])
    assert_rated_alike(whole, part.partial_fit(matches[20:], y[20:], weights[20:]))


@each
def test_a_part_of_a_match_moves_less_and_none_not_at_all(system, initial):
    moved = []
    for weight in (1.0, 0.5, 0.1, 0.0):
        before = clone(system).fit(TWO, [1, -1, 0], [weight, 1.0, 1.0]).before_
        moved.append(before[1, 1] - before[0, 0])
    assert np.all(np.diff(moved) < 0)
    assert moved[-1] == 0


def test_a_part_of_a_match_is_a_part_of_the_step():
    """Elo: of K; TrueSkill: of what a match adds to mean / variance and to 1 / variance."""
    whole, part = (Elo(k=40.0).fit(TWO[:1], [1], [weight]).ratings_ - 1200 for weight in (1.0, 0.3))
    np.testing.assert_allclose(part, 0.3 * whole)
    one, third = (TrueSkill().fit(TWO[:1], [1], [weight]) for weight in (1.0, 1 / 3))
    precision, third_of_it = (fitted.deviations_**-2 for fitted in (one, third))
    np.testing.assert_allclose(third_of_it - 1, (precision - 1) / 3)
    np.testing.assert_allclose(third.ratings_ * third_of_it, one.ratings_ * precision / 3)


@each
def test_ratings_begin_where_they_are_said_to(system, initial):
    usual = clone(system).fit(TWO, [1, 0, -1]).before_[0, 0]
    fitted = clone(system).set_params(initial=initial).fit(TWO, [1, 0, -1])
    assert fitted.before_[0].tolist() == [initial["a"], initial["b"]]
    assert fitted.before_[1, 0] == usual  # of c, who is not named
    newcomer = Matches([[1, -1]], [2.0], ["a", "z"])
    known = clone(system).set_params(initial=initial | {"z": initial["b"]}).fit(TWO, [1, 0, -1])
    assert known.decision_function(newcomer, "ignore")[0] == fitted.ratings_[0] - initial["b"]
    assert fitted.decision_function(newcomer, "ignore")[0] == fitted.ratings_[0] - usual
    for wrong in ({"a": np.nan}, {"a": "1500"}, {"a": None}):
        with pytest.raises(ValueError, match=r"initial\['a'\] is .*; expected a number"):
            clone(system).set_params(initial=wrong).fit(TWO, [1, 0, -1])


def test_who_begins_above_2400_is_elite_from_the_start():
    elo = Elo(initial={"a": 2450.0, "b": 2450.0}).fit(TWO[:1], [1])
    np.testing.assert_allclose(elo.ratings_, [2455, 2445])


@each
def test_frames_are_forecast_by_names_and_misspelt_ones_are_told(system, initial):
    frame = pd.DataFrame({"home": list("abc"), "away": list("bca"), "time": range(3), "outcome": [1, -1, 0]})
    fitted = clone(system).fit(*Matches.from_frame(frame, first="home", second="away"))
    ask = pd.DataFrame({"home": ["c", "b"], "away": ["a", "a"], "time": [4, 5]})
    asked = Matches([[-1, 0, 1], [-1, 1, 0]], [4.0, 5.0], ["a", "b", "c"])
    np.testing.assert_array_equal(fitted.predict_proba(ask), fitted.predict_proba(asked))
    np.testing.assert_array_equal(fitted.predict(ask), fitted.predict(asked))
    misspelt = ask.assign(home=["cc", "b"])
    for call in (fitted.predict_proba, fitted.predict, fitted.decision_function):
        with pytest.warns(
            UnseenWarning, match=r"nothing was learned of 'cc' \(.* known name is 'c'\)"
        ) as found:
            call(misspelt)
        assert [one.filename for one in found] == [__file__]
        with pytest.raises(ValueError, match="nothing was learned of 'cc'"):
            call(misspelt, unseen="raise")


@each
def test_wins_and_losses_as_1_and_0_are_warned_of_and_half_points_work(system, initial):
    matches, y = played(1)
    with pytest.warns(
        OutcomeWarning, match="y holds only 1, 1/2 and 0, read as wins, ties and losses"
    ) as found:
        half = clone(system).fit(matches, (y + 1) / 2)
    assert found[0].filename == __file__
    assert_rated_alike(half, clone(system).fit(matches, y))
    with pytest.warns(OutcomeWarning, match=r"read as .* ties; where 0 is a loss, pass 2 \* y - 1"):
        clone(system).fit(matches, np.maximum(y, 0))


@pytest.mark.parametrize("weight", [-1.0, np.nan, 1001.0])
def test_bad_weights_are_named(weight):
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is .*; expected (weights from 0 to|finite)"):
        Elo().fit(TWO, [1, 0, -1], [weight, 1, 1])


@each
def test_outcomes_that_no_frame_had_are_looked_at(system, initial):
    """A frame of fixtures was taken for one that had been asked what 1 and 0 mean."""
    frame = pd.DataFrame({"first": list("aabb") * 2, "second": list("bccc") * 2, "time": range(8)})
    scores, y = np.tile([1, 0], 4), np.tile([1, -1], 4)
    fixtures = Matches.from_frame(frame, outcome=None)
    matches, _ = Matches.from_frame(frame.assign(outcome=y))
    fitted = clone(system).fit(matches, y)
    calls = clone(system).fit, fitted.score, lambda *asked: earlier_forecasts(system, *asked, 2)
    for ask in (fixtures, matches, Matches(matches.design, matches.time, matches.features)):
        for call, wrong in product(calls, (scores, pd.Series(scores, dtype="Int64"))):
            with pytest.warns(OutcomeWarning, match=r"y holds only 1 and 0, .*pass 2 \* y - 1$") as told:
                call(ask, wrong)
            assert [one.filename for one in told] == [__file__]
        with warnings.catch_warnings(action="error"):
            right = clone(system).fit(ask, 2 * scores - 1)
        assert_rated_alike(right, fitted)
        with pytest.warns(OutcomeWarning, match="y holds only 1, 1/2 and 0"):
            half = fitted.score(ask, [1, 0.5, 1, 0] * 2)
        assert half == np.mean(fitted.predict(ask) == [1, 0, 1, -1] * 2)
    with warnings.catch_warnings(action="error"):  # the frame said what they mean
        labels = Matches.from_frame(frame.assign(outcome=scores), outcomes="labels")
        clone(system).fit(*labels).score(*labels)


@each
def test_who_is_rated_before_may_be_named_by_a_number(system, initial):
    """A frame makes "1" of 1, so ratings of 1 did nothing; nor did those of a name with a slip in it."""
    frame = pd.DataFrame({"first": [1, 3], "second": [2, 1], "time": [0, 1], "outcome": [1, -1]})
    matches, y = Matches.from_frame(frame)
    with warnings.catch_warnings(action="error"):
        by_number = clone(system).set_params(initial={1: initial["a"]}).fit(matches, y)
        by_text = clone(system).set_params(initial={"1": initial["a"]}).fit(matches, y)
    assert by_number.before_[0, 0] == by_text.before_[0, 0] == initial["a"]
    for wrong in (7, "7"):
        with pytest.warns(UnseenWarning, match=r"initial names '7' \(the nearest .* is '.'\), but") as told:
            clone(system).set_params(initial={wrong: initial["a"]}).fit(matches, y)
        assert told[0].filename == __file__


@each
def test_a_score_warns_and_refuses_as_forecasts_do(system, initial):
    fitted, ask = clone(system).fit(TWO, [1, 0, -1]), Matches([[1, -1]], [3.0], ["a", "cc"])
    with pytest.warns(UnseenWarning, match="unseen='raise' refuses them") as told:
        fitted.score(ask, [1])
    assert [one.filename for one in told] == [__file__]
    with pytest.raises(ValueError, match="nothing was learned of 'cc'"):
        fitted.score(ask, [1], unseen="raise")


@each
def test_dates_and_numbers_are_not_mixed(system, initial):
    days = pd.DataFrame({"first": ["a"], "second": ["b"], "time": ["2020-01-01"], "outcome": [1]})
    numbers = days.assign(time=[18263.0])
    for known, other, expected in ((days, numbers, "dates"), (numbers, days, "numbers")):
        fitted = clone(system).fit(*Matches.from_frame(known))
        message = f"the kind of times is .*; expected {expected}, as those before"
        with pytest.raises(ValueError, match=message):
            fitted.predict_proba(other)
        with pytest.raises(ValueError, match=message):
            fitted.partial_fit(*Matches.from_frame(other))
    made = numbers.assign(time=pd.to_datetime(numbers["time"], unit="D"))  # as it advises
    fitted = clone(system).fit(*Matches.from_frame(days))
    later = Matches([[1, -1]], [18263.0], ["a", "b"])
    np.testing.assert_array_equal(fitted.predict_proba(made), fitted.predict_proba(later))


@pytest.mark.parametrize("system", [Glicko(), TrueSkill(0.25, 0.001, step="time")], ids=repr)
def test_times_in_another_unit_than_the_rate_are_warned_of(system):
    matches, y = played(3, ties=0)
    days = Matches(matches.design, np.linspace(0, 3650, len(y)), matches.features)
    for unit, start in ((86_400_000, 0), (1 / 365, 2004)):
        wrong = Matches(matches.design, start + unit * days.time, matches.features)
        with pytest.warns(TimeWarning, match="a score moves by .*; expected rates in the unit of") as told:
            clone(system).set_params(advantage=0).fit(wrong, y)
        assert told[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        clone(system).set_params(advantage=0).fit(days, y)


def test_where_weight_is_not_repetition():
    """As the notes say: two periods, two games, two steps of dynamics, and nu by two ratings."""
    game, twice = TWO[:1], TWO[[0, 0]]

    def top(system, matches, weights):
        return clone(system).fit(matches, [1] * len(matches), weights).ratings_[0]

    assert top(Glicko(), game, [2]) == pytest.approx(1747.2, abs=0.05)
    assert top(Glicko(), game, [2]) == pytest.approx(top(Glicko(period=1.0), twice, None))
    assert top(Glicko(), twice, None) == pytest.approx(1720.2, abs=0.05)
    month = TWO[np.zeros(31, dtype=int)]
    assert top(Elo(), month, None) < top(Elo(), game, [31]) - 1  # K is 15 after 30 games
    step = TrueSkill(1.0, 0.5)
    assert abs(top(step, game, [2]) - top(step, twice, None)) > 0.05
    step.set_params(step="time")
    assert top(step, game, [2]) == pytest.approx(top(step, twice, None))
    elo = Elo(k=20.0)
    whole, both = elo.fit(TWO, [1, 0, -1], [2, 1, 1]).nu_, elo.fit(TWO[[0, 0, 1, 2]], [1, 1, 0, -1]).nu_
    assert 1e-4 < abs(whole - both) < 0.1


def test_an_advantage_of_one_adds_handicaps_as_they_are():
    frame = pd.DataFrame({"first": "a", "second": "b", "time": [0.0], "outcome": [1], "ahead": [80.0]})
    matches, y = Matches.from_frame(frame, advantage="ahead")
    expected = 1 / (1 + 10 ** (-80 / 400))
    assert Elo(k=20, advantage=1).fit(matches, y).ratings_[0] == pytest.approx(1200 + 20 * (1 - expected))

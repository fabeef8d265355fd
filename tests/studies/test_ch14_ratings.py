import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ratings.seasons import played
from scipy.special import expit
from sklearn.base import clone

from preflearn.dynamics import Logit, OrdinalLogit
from preflearn.matches import Matches
from preflearn.metrics import log_loss
from preflearn.ratings import Elo, Glicko, TrueSkill, earlier_forecasts
from preflearn.ratings.system import _fit_nu
from studies.ch14_ratings import select_rating

SYSTEMS = [
    Elo(),
    Elo(k=24, advantage=35),
    Elo(likelihood=OrdinalLogit(0.5), advantage=0.1),
    Glicko(c=20, advantage=35),
    TrueSkill(dynamics=0.05, margin=0.4, advantage=0.1),
    TrueSkill(dynamics=0.05, margin=0.4, step="time"),
]
NAMES = ["fide", "elo", "gradient", "glicko", "trueskill", "trueskill-time"]
every_system = pytest.mark.parametrize("system", SYSTEMS, ids=NAMES)


def one_day_after_the_other(system, matches, y, start):
    """A fit for every day, of all earlier matches."""
    known, rows = int(np.searchsorted(matches.time, matches.time[start])), []
    for day in np.unique(matches.time[known:]):
        past, today = matches.time < day, matches.time == day
        fitted = clone(system).fit(matches[past], y[past])
        if fitted._likelihood() is None:
            fitted._nu = _fit_nu(fitted._log_odds_before[0][:known], y[:known])
        rows.append(fitted.predict_proba(matches[today]))
    return np.concatenate(rows)[start - known :]


@every_system
@pytest.mark.parametrize("start", [7, 30, 33])
def test_each_day_is_forecast_from_all_earlier_days(system, start):
    matches, y = played(0)
    p = earlier_forecasts(system, matches, y, start)
    assert p.shape == (len(y) - start, 3)
    np.testing.assert_allclose(p, one_day_after_the_other(system, matches, y, start), rtol=1e-10)
    assert not hasattr(system, "players_")


@pytest.mark.parametrize("system", [Elo(likelihood=Logit()), TrueSkill(step="time")])
def test_without_ties_there_are_two_columns(system):
    matches, y = played(1, ties=0)
    p = earlier_forecasts(system, matches, y, 20)
    assert p.shape == (40, 2)
    np.testing.assert_allclose(p, one_day_after_the_other(system, matches, y, 20), rtol=1e-10)
    assert (earlier_forecasts(Elo(), matches, y, 20)[:, 1] == 0).all()


def test_with_periods_the_rating_is_that_at_the_start_of_the_period():
    matches, y = played(2)
    glicko = Glicko(c=20, period=3)
    p = earlier_forecasts(glicko, matches, y, 30)
    weeks = Matches(matches.design, matches.time // 3 * 3, matches.features)
    np.testing.assert_allclose(p, one_day_after_the_other(glicko, weeks, y, 30), rtol=1e-10)


@every_system
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), day=st.integers(3, 11))
def test_a_forecast_knows_nothing_of_its_day_or_later(system, seed, day):
    matches, y = played(seed)
    y[:3] = -1, 0, 1
    other = np.where(matches.time < day, y, np.roll(y, 1))
    one, two = (earlier_forecasts(system, matches, labels, 15) for labels in (y, other))
    known = matches.time[15:] <= day
    np.testing.assert_array_equal(one[known], two[known])


@every_system
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_sides_do_not_matter(system, seed):
    matches, y = played(seed)
    swapped = Matches(-matches.design, matches.time, matches.features)
    turned = earlier_forecasts(system, swapped, -y, 20)
    np.testing.assert_allclose(turned, earlier_forecasts(system, matches, y, 20)[:, ::-1], rtol=1e-5)


def test_a_start_out_of_range_is_named():
    matches, y = played(3)
    for start in (0, 60, -1, 2.5, None, True, "1"):
        with pytest.raises(ValueError, match=r"start is .*; expected the number of a match, from 1 to 59"):
            earlier_forecasts(Elo(), matches, y, start)
    with pytest.raises(ValueError, match="match 4 is at time 0, as the first one is"):
        earlier_forecasts(Elo(), matches, y, 4)
    with pytest.raises(ValueError, match="system is 'elo'; expected a rating system"):
        earlier_forecasts("elo", matches, y, 20)


RANGES = {"rate": (0.01, 0.9), "likelihood.margin": (0.1, 2.0)}
GRADIENT = Elo(likelihood=OrdinalLogit(0.5))


def test_the_loss_is_that_of_forecasts_from_earlier_days():
    matches, y = played(4)
    found = select_rating(GRADIENT, matches, y, RANGES, 12, random_state=0, start=20)
    table = found.configurations
    assert list(table) == [*RANGES, "loss"]
    for name, (low, high) in RANGES.items():
        assert table[name].between(low, high).all()
    for rate, margin, loss in table.to_numpy():
        p = earlier_forecasts(Elo(likelihood=OrdinalLogit(margin), rate=rate), matches, y, 20)
        assert log_loss(y[20:], p) == pytest.approx(loss, rel=1e-12)
    assert found.best == table["loss"].argmin()
    chosen = table.loc[found.best]
    assert found.system.get_params()["rate"] == chosen["rate"]
    assert found.system.likelihood == OrdinalLogit(chosen["likelihood.margin"])
    assert GRADIENT.likelihood == OrdinalLogit(0.5)


def test_the_first_match_with_an_earlier_one_is_the_default_start():
    matches, y = played(5)
    one, two = (select_rating(GRADIENT, matches, y, RANGES, 3, random_state=1, start=s) for s in (None, 5))
    assert one.configurations.equals(two.configurations)


def test_the_number_of_processes_does_not_matter():
    matches, y = played(6)
    one, two = (select_rating(GRADIENT, matches, y, RANGES, 20, random_state=2, n_jobs=n) for n in (1, 2))
    assert one.configurations.equals(two.configurations)
    assert one.best == two.best


def test_it_finds_how_fast_skills_move():
    """Skills that are drawn anew every 40 days need a larger rate than skills that stay."""
    rng, rates = np.random.default_rng(3), []
    for every in (40, 2000):
        skill = np.repeat(2 * rng.standard_normal((-(-2000 // every), 4)), every, axis=0)
        index = np.array([rng.choice(4, 2, replace=False) for _ in range(2000)])
        d = skill[np.arange(2000), index[:, 0]] - skill[np.arange(2000), index[:, 1]]
        y = np.where(rng.random(2000) < expit(d), 1, -1)
        design = np.zeros((2000, 4))
        design[np.arange(2000), index[:, 0]], design[np.arange(2000), index[:, 1]] = 1, -1
        matches = Matches(design, range(2000), list("abcd"))
        found = select_rating(
            Elo(likelihood=Logit()), matches, y, {"rate": (0.01, 1.0)}, 40, random_state=0, start=200
        )
        rates.append(found.system.get_params()["rate"])
    assert rates[0] > 2 * rates[1]


def test_a_best_value_near_the_end_of_its_range_is_named():
    matches, y = played(7, N=200)
    found = select_rating(TrueSkill(margin=0.4), matches, y, {"variance": (1e-9, 1e-6)}, 40, random_state=0)
    assert found.near_boundary == {"variance": "high"}
    wide = select_rating(TrueSkill(margin=0.4), matches, y, {"margin": (1e-3, 1e2)}, 60, random_state=0)
    assert wide.near_boundary == {}


@pytest.mark.parametrize(
    ("system", "ranges", "message"),
    [
        (GRADIENT, {}, "ranges is {}; expected a range of at least one of"),
        (
            GRADIENT,
            {"margin": (0.1, 1)},
            "a parameter with a range is 'margin'; expected one of .*likelihood",
        ),
        (Elo(likelihood=Logit()), {"likelihood.margin": (0.1, 1)}, "is 'likelihood.margin'; expected one of"),
        (Elo(), {"k": (10, 30)}, "a parameter with a range is 'k'; expected one of"),  # "fide" is no number
        (GRADIENT, {"rate": (0.5, 0.1)}, r"ranges\['rate'\] is \(0.5, 0.1\); expected two positive numbers"),
        (GRADIENT, {"rate": (0, 0.1)}, r"ranges\['rate'\] is \(0, 0.1\); expected two positive numbers"),
        (GRADIENT, {"rate": 0.1}, r"ranges\['rate'\] is 0.1; expected two positive numbers"),
        (GRADIENT, {"rate": (0.1, 3)}, "rate is 3.0; expected a number above 0 and at most 1"),
        ("elo", {"rate": (0.1, 1)}, "system is 'elo'; expected a rating system"),
    ],
)
def test_bad_ranges_are_named(system, ranges, message):
    with pytest.raises(ValueError, match=message):
        select_rating(system, *played(8), ranges, 3, random_state=0)


def test_bad_input_is_named():
    matches, y = played(9)
    with pytest.raises(ValueError, match="n_configurations is 0; expected a whole number of at least 1"):
        select_rating(GRADIENT, matches, y, RANGES, 0, random_state=0)
    with pytest.raises(ValueError, match=r"the time of all matches is .*; expected a later one"):
        select_rating(GRADIENT, matches[:5], y[:5], RANGES, 3, random_state=0)
    with pytest.raises(ValueError, match="there are no matches"):
        select_rating(GRADIENT, matches[:0], y[:0], RANGES, 3, random_state=0)
    y = np.append(np.ones(30), np.zeros(30))  # no ties before, so nu is 0
    with pytest.raises(ValueError, match="each of 3 configurations gives some outcome the probability 0"):
        select_rating(Elo(k=20), matches, y, {"k": (10, 30)}, 3, random_state=0, start=30)


@pytest.mark.parametrize(
    ("system", "name"), [(Elo(k=20.0, likelihood=Logit()), "k"), (Elo(k=20.0), "rate"), (GRADIENT, "scale")]
)
def test_a_parameter_that_does_nothing_is_not_searched(system, name):
    with pytest.raises(ValueError, match=f"a parameter with a range is '{name}'; expected one of"):
        select_rating(system, *played(8), {name: (0.1, 1.0)}, 3, random_state=0)

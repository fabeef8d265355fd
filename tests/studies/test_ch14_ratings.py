import numpy as np
import pytest
from ratings.seasons import played
from scipy.special import expit

from preflearn.dynamics import Logit, OrdinalLogit
from preflearn.matches import Matches
from preflearn.metrics import log_loss
from preflearn.ratings import Elo, TrueSkill, earlier_forecasts
from studies.ch14_ratings import select_rating

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
    assert found.model.get_params()["rate"] == chosen["rate"]
    assert found.model.likelihood == OrdinalLogit(chosen["likelihood.margin"])
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
        system, ranges = Elo(likelihood=Logit()), {"rate": (0.01, 1.0)}
        found = select_rating(system, matches, y, ranges, 40, random_state=0, start=200)
        rates.append(found.model.get_params()["rate"])
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
        (GRADIENT, {"margin": (0.1, 1)}, "range is 'margin'; expected one of .*likelihood"),
        (
            GRADIENT,
            {"scale": (0.1, 1)},
            "range is 'scale'; expected one of",
        ),  # idle, as the next two
        (Elo(k=20.0, likelihood=Logit()), {"k": (0.1, 1)}, "range is 'k'; expected one of"),
        (Elo(k=20.0), {"rate": (0.1, 1)}, "range is 'rate'; expected one of"),
        (Elo(likelihood=Logit()), {"likelihood.margin": (0.1, 1)}, "is 'likelihood.margin'; expected one of"),
        (Elo(), {"k": (10, 30)}, "a parameter with a range is 'k'; expected one of"),  # "fide" is no number
        (GRADIENT, {"rate": (0.5, 0.1)}, r"ranges\['rate'\] is \(0.5, 0.1\); expected two positive numbers"),
        (GRADIENT, {"rate": 0.1}, r"ranges\['rate'\] is 0.1; expected two positive numbers"),
        (GRADIENT, {"rate": (0.1, 3)}, "rate is 3.0; expected a number above 0 and at most 1"),
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

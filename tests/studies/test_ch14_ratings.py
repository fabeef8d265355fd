import numpy as np
import pytest
from ratings.seasons import played

from preflearn.dynamics import Logit, OrdinalLogit
from preflearn.metrics import log_loss
from preflearn.ratings import Elo, TrueSkill, earlier_forecasts
from preflearn_book.studies.ch14_ratings import select_rating

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
        p = earlier_forecasts(
            Elo(likelihood=OrdinalLogit(margin), rate=rate), matches, y, 20
        )
        assert log_loss(y[20:], p) == pytest.approx(loss, rel=1e-12)
    assert found.best == table["loss"].argmin()
    chosen = table.loc[found.best]
    assert found.model.get_params()["rate"] == chosen["rate"]
    assert found.model.likelihood == OrdinalLogit(chosen["likelihood.margin"])
    assert GRADIENT.likelihood == OrdinalLogit(0.5)


def test_the_first_match_with_an_earlier_one_is_the_default_start():
    matches, y = played(5)
    by_default = select_rating(GRADIENT, matches, y, RANGES, 3, random_state=1)
    at_5 = select_rating(GRADIENT, matches, y, RANGES, 3, random_state=1, start=5)
    assert by_default.configurations.equals(at_5.configurations)


@pytest.mark.nightly
def test_the_number_of_processes_does_not_matter():
    matches, y = played(6)
    one, two = (
        select_rating(GRADIENT, matches, y, RANGES, 20, random_state=2, n_jobs=n)
        for n in (1, 2)
    )
    assert one.configurations.equals(two.configurations)
    assert one.best == two.best


def test_a_best_value_near_the_end_of_its_range_is_named():
    matches, y = played(7, N=200)
    found = select_rating(
        TrueSkill(margin=0.4),
        matches,
        y,
        {"variance": (1e-9, 1e-6)},
        40,
        random_state=0,
    )
    assert found.near_boundary == {"variance": "high"}
    wide = select_rating(
        TrueSkill(margin=0.4), matches, y, {"margin": (1e-3, 1e2)}, 60, random_state=0
    )
    assert wide.near_boundary == {}


@pytest.mark.parametrize(
    ("system", "ranges", "named"),
    [
        (GRADIENT, {"scale": (0.1, 1)}, "'scale'"),  # idle where there is a likelihood
        (Elo(k=20.0, likelihood=Logit()), {"k": (0.1, 1)}, "'k'"),
        (Elo(), {"k": (10, 30)}, "'k'"),  # "fide" is not a number
        (GRADIENT, {"rate": (0.5, 0.1)}, r"'rate'.*\(0.5, 0.1\)"),
        (GRADIENT, {"rate": (0.1, 3)}, "rate is 3"),
    ],
)
def test_bad_ranges_are_named(system, ranges, named):
    with pytest.raises(ValueError, match=named):
        select_rating(system, *played(8), ranges, 3, random_state=0)


def test_matches_that_cannot_be_searched_are_an_error():
    matches, y = played(9)
    with pytest.raises(ValueError, match="time"):
        select_rating(GRADIENT, matches[:5], y[:5], RANGES, 3, random_state=0)
    with pytest.raises(ValueError, match="matches"):
        select_rating(GRADIENT, matches[:0], y[:0], RANGES, 3, random_state=0)
    y = np.append(np.ones(30), np.zeros(30))  # no ties before, so nu is 0
    with pytest.raises(ValueError, match="probability 0"):
        select_rating(
            Elo(k=20), matches, y, {"k": (10, 30)}, 3, random_state=0, start=30
        )

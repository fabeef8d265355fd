import pytest
from ratings.seasons import played

from preflearn.dynamics import OrdinalLogit
from preflearn.metrics import log_loss
from preflearn.ratings import Elo, TrueSkill, earlier_forecasts
from preflearn_book.studies.ch14_ratings import select_rating

RANGES = {"rate": (0.01, 0.9), "likelihood.margin": (0.1, 2.0)}
GRADIENT = Elo(likelihood=OrdinalLogit(0.5))


def test_the_loss_is_that_of_forecasts_from_earlier_days():
    matches, y = played(4)
    found = select_rating(GRADIENT, matches, y, RANGES, 12, random_state=0)
    table = found.configurations
    assert list(table) == [*RANGES, "loss"]
    for name, (low, high) in RANGES.items():
        assert table[name].between(low, high).all()
    for rate, margin, loss in table.to_numpy():
        p = earlier_forecasts(
            Elo(likelihood=OrdinalLogit(margin), rate=rate), matches, y, 5
        )
        assert log_loss(y[5:], p) == pytest.approx(loss, rel=1e-12)
    assert found.best == table["loss"].argmin()
    chosen = table.loc[found.best]
    assert found.model.get_params()["rate"] == chosen["rate"]
    assert found.model.likelihood == OrdinalLogit(chosen["likelihood.margin"])
    assert GRADIENT.likelihood == OrdinalLogit(0.5)


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

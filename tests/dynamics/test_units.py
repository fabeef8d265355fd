import pytest

from preflearn.dynamics.covariances.units import Look, Units, deviation, number


@pytest.mark.parametrize(
    ("unit", "period", "rate"), [("day", "year", 365.25), ("year", "year", 1.0), ("round", "round", 1.0)]
)
def test_rates_are_of_a_year_where_it_is_known(unit, period, rate):
    units = Units(unit)
    assert (units.period, units.rate, units.known) == (period, rate, unit != "round")


def test_amounts_are_short():
    assert [number(value) for value in (1234.5, 0.0012345, 1.0)] == ["1,234", "0.00123", "1"]
    assert deviation(0.25) == "standard deviation 0.5"
    assert [Units("day").length(days) for days in (1, 364, 365.2, 3652.5)] == [
        "1 day",
        "364 days",
        "1 year",
        "10 years",
    ]


def test_a_look_is_told():
    told = Look("rough", "0.37", 0.5).told(Units("week"), 4.0, 2.0)
    assert told == (
        "a rough curve around 0, of standard deviation 2; its correlation falls to 0.37 over 2 weeks and to "
        "one half over 1 week"
    )


def test_origins_are_told():
    assert Units("day").origin("first") == "each feature's first match"
    assert Units("day").origin(20.0) == "time 20"

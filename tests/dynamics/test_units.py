from preflearn.dynamics.covariances.units import beginning, curve, deviation, length, number


def test_amounts_are_short():
    assert [number(value) for value in (1234.5, 999.7, 0.0012345)] == ["1,234", "1,000", "0.00123"]
    assert deviation(0.25) == "standard deviation 0.5"
    assert [length(days) for days in (1, 364, 365.2, 3652.5)] == ["1 day", "364 days", "1 year", "10 years"]


def test_a_curve_is_told():
    assert curve("rough", "0.37", 0.5, 4.0, 2.0) == (
        "a rough curve around 0, of standard deviation 2; its correlation falls to 0.37 over 2 days and to "
        "one half over 1 day"
    )


def test_origins_are_told():
    assert beginning("first") == "each feature's first match"
    assert beginning(20.0) == "time 20"

import numpy as np
import pandas as pd
import pytest

from preflearn_book.studies import ch17_compared as compared


def runs_of(losses, seconds=None, units=1):
    """Return runs with a table of losses, domains by learners."""
    rows = [
        {
            "family": "a",
            "domain": domain,
            "unit": str(unit),
            "learner": name,
            "loss": loss + 0.01 * unit,
        }
        | {"fit_s": (seconds or {}).get(name, 1.0), "forecast_s": 0.0}
        for domain, found in losses.iterrows()
        for name, loss in found.items()
        for unit in range(units)
    ]
    return pd.DataFrame(rows)


TABLE = pd.DataFrame(
    {
        "good": [0.10, 0.20, 0.10],
        "near": [0.11, 0.21, 0.12],
        "constant": [0.5, 0.5, 0.5],
    },
    index=["x", "y", "z"],
)


def test_the_controls_are_not_among_the_ranked_learners():
    ranked = compared.without_controls(TABLE.assign(random=0.6))
    assert list(ranked) == ["good", "near"]
    assert list(compared.without_controls(ranked)) == ["good", "near"]


@pytest.mark.parametrize(("k", "q"), [(3, 2.343), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_has_the_published_quantiles(k, q):
    """The 5 % quantiles are those of Table 5 of Demšar (2006)."""
    losses = pd.DataFrame(np.random.default_rng(0).normal(size=(12, k)))
    found = compared.average_ranks(losses).difference
    assert found == pytest.approx(q * np.sqrt(k * (k + 1) / 72), rel=3e-4)


def test_groups_are_the_largest_runs_within_the_difference():
    mean = pd.Series({"a": 1.0, "b": 1.8, "c": 2.0, "d": 4.0})
    groups = {d: compared.Ranks(mean, d, 0.1, 5).groups() for d in (0.1, 0.5, 1.0, 9.0)}
    assert groups == {0.1: [], 0.5: [("b", "c")], 1.0: [("a", "c")], 9.0: [("a", "d")]}


def noisy_runs(excess, n_units, family="time"):
    """Return runs of one domain. The loss of "other" exceeds that of "best" by about
    the given amount, and that of "constant" exceeds it by 1."""
    rng = np.random.default_rng(4)
    best = rng.normal(size=n_units)
    losses = {
        "best": best,
        "other": best + excess + 0.02 * rng.normal(size=n_units),
        "constant": best + 1.0,
    }
    rows = [
        (family, "x", str(unit), name, loss, 1.0, 0.0)
        for name, values in losses.items()
        for unit, loss in enumerate(values)
    ]
    columns = ["family", "domain", "unit", "learner", "loss", "fit_s", "forecast_s"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize(
    ("excess", "close", "non_inferior", "inferior"),
    [(0.02, True, True, True), (0.07, True, None, True), (0.5, False, False, True)],
)
def test_verdicts_are_those_at_all_margins(excess, close, non_inferior, inferior):
    """The margin is 0.1, a tenth of the distance to the constant. The second case is
    not within half of it."""
    table = compared.standing(noisy_runs(excess, 8), "time")
    found = table.loc[("x", "other")]
    assert found["close"] == close
    for word, expected in (("non_inferior", non_inferior), ("inferior", inferior)):
        if expected is None:
            assert pd.isna(found[word])
        else:
            assert found[word] == expected
    assert found["fraction"] == pytest.approx(excess, abs=0.02)
    at = [found[f"at {margin}"] for margin in ("0.5 margins", "1 margin", "2 margins")]
    assert at == [excess < limit for limit in (0.05, 0.1, 0.2)]
    assert not table.loc[("x", "constant"), "non_inferior"]
    assert table.loc[("x", "best"), "non_inferior"]


@pytest.mark.parametrize(("n_units", "family"), [(4, "time"), (8, "objects")])
def test_few_units_or_units_that_depend_on_each_other_decide_nothing(n_units, family):
    table = compared.standing(noisy_runs(0.5, n_units, family), family)
    assert table["non_inferior"].isna().all()
    assert table["inferior"].isna().all()
    assert table["close"].tolist() == [True, False, False]


def test_losses_that_do_not_differ_from_the_constant_decide_nothing():
    runs = noisy_runs(0.0, 8)
    constant = runs["learner"] == "constant"
    runs.loc[constant, "loss"] -= 1.0
    assert not compared.standing(runs, "time")["non_inferior"].any()


def test_two_learners_of_a_domain_are_compared_only_if_both_were_run():
    runs = noisy_runs(0.5, 8)
    difference = compared.in_domain(runs, "time", "x", "other", "best")
    assert difference.inferior
    assert difference.mean == pytest.approx(-0.5, abs=0.02)
    assert compared.in_domain(runs, "time", "x", "third", "best") is None
    assert compared.in_domain(runs, "time", "y", "other", "best") is None


def test_the_front_holds_learners_that_no_quicker_one_beats():
    runs = runs_of(TABLE, {"good": 3.0, "near": 0.5, "constant": 0.7}, units=2)
    found = compared.summary(runs.assign(family="time"), "time")
    assert found["on_front"].to_dict() == {
        "good": True,
        "near": True,
        "constant": False,
    }
    assert found["close"].to_dict() == {"good": 3, "near": 3, "constant": 0}


def test_a_learner_without_all_domains_is_named():
    runs = runs_of(TABLE)
    short = runs[(runs["learner"] != "near") | (runs["domain"] != "y")]
    with pytest.raises(ValueError, match="'near'"):
        compared.by_domain(short, "a")

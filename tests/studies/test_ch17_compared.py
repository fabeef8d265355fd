import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from studies import ch17_compared as compared


def runs_of(losses, seconds=None, units=1):
    """Runs with a table of losses, domains by learners."""
    rows = [
        {"arena": "a", "domain": domain, "unit": str(unit), "learner": name, "loss": loss + 0.01 * unit}
        | {"fit_s": (seconds or {}).get(name, 1.0), "forecast_s": 0.0}
        for domain, found in losses.iterrows()
        for name, loss in found.items()
        for unit in range(units)
    ]
    return pd.DataFrame(rows)


TABLE = pd.DataFrame(
    {"good": [0.10, 0.20, 0.10], "near": [0.11, 0.21, 0.12], "constant": [0.5, 0.5, 0.5]},
    index=["x", "y", "z"],
)


@pytest.mark.parametrize(("k", "q"), [(3, 2.343), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_has_the_published_quantiles(k, q):
    """Table 5 of Demšar (2006) prints them for 5 %."""
    losses = pd.DataFrame(np.random.default_rng(0).normal(size=(12, k)))
    found = compared.average_ranks(losses).difference
    assert found == pytest.approx(q * np.sqrt(k * (k + 1) / 72), rel=3e-4)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_ranks_do_not_depend_on_order_or_scale(seed):
    rng = np.random.default_rng(seed)
    losses = pd.DataFrame(rng.integers(0, 4, (6, 4)).astype(float), columns=list("abcd"))
    ranks = compared.average_ranks(losses)
    assert ranks.mean.sum() == pytest.approx(4 * 5 / 2)
    by_hand = np.mean([rankdata(row) for row in losses.to_numpy()], axis=0)
    np.testing.assert_allclose(ranks.mean[list("abcd")], by_hand)
    moved = compared.average_ranks(2 * losses.iloc[::-1][list("dcba")] + 1)
    pd.testing.assert_series_equal(moved.mean.sort_index(), ranks.mean.sort_index())


def test_groups_are_the_largest_runs_within_the_difference():
    mean = pd.Series({"a": 1.0, "b": 1.8, "c": 2.0, "d": 4.0})
    assert compared.Ranks(mean, 0.5, 0.1, 5).groups() == [("b", "c")]
    assert compared.Ranks(mean, 1.0, 0.1, 5).groups() == [("a", "c")]
    assert compared.Ranks(mean, 0.1, 0.1, 5).groups() == []
    assert compared.Ranks(mean, 9.0, 0.1, 5).groups() == [("a", "d")]


def signed_rank_by_loops(first, second, band, draws, rng):
    """The sum over pairs of domains, term by term."""
    gains, won = [0.0, *(second - first)], np.zeros(3)
    for weights in rng.dirichlet([0.5] + [1.0] * len(first), draws):
        held = np.zeros(3)
        for i, one in enumerate(gains):
            for j, other in enumerate(gains):
                at = (one + other) / 2
                held[0 if at > band else 1 if at >= -band else 2] += weights[i] * weights[j]
        won[np.argmax(held)] += 1
    return won / draws


def test_chances_agree_with_sums_term_by_term():
    rng = np.random.default_rng(3)
    first = rng.normal(0.30, 0.03, 6)
    second = first + rng.normal(0.015, 0.03, 6)
    slow = signed_rank_by_loops(first, second, 0.02, 2000, np.random.default_rng(1))
    fast = compared.chances(first, second, 0.02)
    np.testing.assert_allclose(list(fast.values()), slow, atol=0.05)
    assert 0.05 < slow[0] < 0.95


def test_chances_are_exchanged_with_the_learners():
    first, second = np.array([0.1, 0.2, 0.3, 0.1]), np.array([0.15, 0.18, 0.42, 0.2])
    there, back = compared.chances(first, second, 0.02, 5), compared.chances(second, first, 0.02, 5)
    assert there["better"] == pytest.approx(back["worse"])
    assert sum(there.values()) == pytest.approx(1)
    assert compared.chances(first, first, 0.02)["level"] == 1


def test_standing_names_who_is_level_and_cheapest():
    runs = runs_of(TABLE, {"good": 3.0, "near": 0.5, "constant": 0.1}, units=2)
    found = compared.standing(runs, "a", 0.015)
    assert found.loc["x", "level"] == ("good", "near")
    assert found.loc["x", "cheapest"] == "near"
    assert found.loc["z", "level"] == ("good",)
    assert found.loc["z", "cheapest"] == "good"
    assert found.loc["y", "loss"] == pytest.approx(0.205)


def test_the_front_holds_who_is_not_beaten_by_a_quicker_one():
    found = compared.summary(runs_of(TABLE, {"good": 3.0, "near": 0.5, "constant": 0.7}), "a", 0.015)
    assert list(found.index) == ["good", "near", "constant"]
    assert found["on_front"].to_dict() == {"good": True, "near": True, "constant": False}
    assert found["level"].to_dict() == {"good": 3, "near": 2, "constant": 0}
    assert found.loc["good", "excess"] == 0
    assert found.loc["near", "seconds"] == pytest.approx(0.5)


def test_a_learner_without_a_domain_is_named():
    runs = runs_of(TABLE)
    short = runs[(runs["learner"] != "near") | (runs["domain"] != "y")]
    with pytest.raises(ValueError, match="learners without all domains of a is \\['near'\\]; expected none"):
        compared.by_domain(short, "a")
    with pytest.raises(ValueError, match="the arena is 'b'"):
        compared.by_domain(runs, "b")


def test_intervals_are_over_units():
    found = compared.intervals(runs_of(TABLE, units=3)).set_index(["domain", "learner"])
    assert found.loc[("x", "good"), "units"] == 3
    assert found.loc[("x", "good"), "error"] == pytest.approx(0.01 / np.sqrt(3))

import numpy as np
import pandas as pd
import pytest

from preflearn_book.studies import ch17_compared as compared


def runs_of(losses, seconds=None, units=1):
    """Return runs with a table of losses, domains by learners."""
    rows = [
        {
            "arena": "a",
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


@pytest.mark.parametrize(("k", "q"), [(3, 2.343), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_has_the_published_quantiles(k, q):
    """Table 5 of Demšar (2006) has them for 5 %."""
    losses = pd.DataFrame(np.random.default_rng(0).normal(size=(12, k)))
    found = compared.average_ranks(losses).difference
    assert found == pytest.approx(q * np.sqrt(k * (k + 1) / 72), rel=3e-4)


def test_groups_are_the_largest_runs_within_the_difference():
    mean = pd.Series({"a": 1.0, "b": 1.8, "c": 2.0, "d": 4.0})
    groups = {d: compared.Ranks(mean, d, 0.1, 5).groups() for d in (0.1, 0.5, 1.0, 9.0)}
    assert groups == {0.1: [], 0.5: [("b", "c")], 1.0: [("a", "c")], 9.0: [("a", "d")]}


def signed_rank_by_loops(first, second, margin, draws, rng):
    """Sum over pairs of domains, term by term."""
    gains = [0.0, *(second - first)]
    wins = np.zeros(3)
    for weights in rng.dirichlet([0.5] + [1.0] * len(first), draws):
        mass = np.zeros(3)
        for i, gain in enumerate(gains):
            for j, other in enumerate(gains):
                mean = (gain + other) / 2
                mass[int(mean <= margin) + int(mean < -margin)] += (
                    weights[i] * weights[j]
                )
        wins[np.argmax(mass)] += 1
    return wins / draws


def test_chances_agree_with_sums_term_by_term_and_are_exchanged_with_the_learners():
    rng = np.random.default_rng(3)
    first = rng.normal(0.30, 0.03, 6)
    second = first + rng.normal(0.015, 0.03, 6)
    slow = signed_rank_by_loops(first, second, 0.02, 2000, np.random.default_rng(1))
    found = compared.chances(first, second, 0.02)
    np.testing.assert_allclose(list(found.values()), slow, atol=0.05)
    assert 0.05 < slow[0] < 0.95
    assert found["better"] == pytest.approx(
        compared.chances(second, first, 0.02)["worse"]
    )


def test_the_front_holds_learners_that_no_quicker_one_beats():
    runs = runs_of(TABLE, {"good": 3.0, "near": 0.5, "constant": 0.7}, units=2)
    standing = compared.standing(runs, "a", 0.015)
    assert standing["level"].to_dict() == {
        "x": ("good", "near"),
        "y": ("good", "near"),
        "z": ("good",),
    }
    found = compared.summary(runs, "a", 0.015)
    assert found["on_front"].to_dict() == {
        "good": True,
        "near": True,
        "constant": False,
    }
    assert found["level"].to_dict() == {"good": 3, "near": 2, "constant": 0}


def test_a_learner_without_all_domains_is_named():
    runs = runs_of(TABLE)
    short = runs[(runs["learner"] != "near") | (runs["domain"] != "y")]
    with pytest.raises(ValueError, match="'near'"):
        compared.by_domain(short, "a")

"""The example program that ranks the participants of races."""

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from preflearn.ranking import PlackettLuce

PROGRAM = runpy.run_path(str(Path(__file__).parents[1] / "examples/rank_races.py"))


def races(names, n=30, seed=0, first=0):
    """Races whose winners are mostly the first of the names; the last did not finish."""
    rng = np.random.default_rng(seed)
    rows = []
    for race in range(first, first + n):
        order = np.argsort(np.arange(len(names)) + rng.gumbel(size=len(names)))
        places = [*map(str, range(1, len(names))), "DNF"]
        rows += [
            (race, names[k], place) for k, place in zip(order, places, strict=True)
        ]
    return pd.DataFrame(rows, columns=["race", "driver", "place"])


def printed(frame, tmp_path, capsys):
    path = tmp_path / "races.csv"
    frame.sample(frac=1, random_state=0).to_csv(path, index=False)
    PROGRAM["main"](path, "race", "driver", "place")
    return capsys.readouterr().out


def test_ties_and_texts_are_places():
    rows = [
        (1, "a", "10"),
        (1, "b", "9"),
        (1, "c", "9"),
        (1, "d", "DNF"),
        (1, "e", "R"),
    ]
    frame = pd.DataFrame([*rows, (2, "a", "1")], columns=["race", "driver", "place"])
    rankings = PROGRAM["read_rankings"](frame, "race", "driver", "place")
    assert rankings == [[("b", "c"), ("a",), ("d", "e")]]


def test_the_ranking_is_that_of_the_model_and_forecasts_are_tested(tmp_path, capsys):
    names = list("dcba")
    text = printed(races(names), tmp_path, capsys)
    assert "The scores forecast better than guessing" in text
    assert "never met" not in text
    rows = re.findall(r"^ +\d +([a-d]) +(-?\d\.\d+) +(\d\.\d+)", text, re.MULTILINE)
    assert [row[0] for row in rows] == names
    rankings = PROGRAM["read_rankings"](races(names), "race", "driver", "place")
    model = PlackettLuce(0.1).fit(rankings)
    errors = dict(zip(model.items_, model.standard_errors(), strict=True))
    for name, _, error in rows:
        assert float(error) == pytest.approx(errors[name], abs=0.006)


def test_random_places_are_not_forecast_better_than_guessing():
    rng = np.random.default_rng(1)
    rankings = [[(name,) for name in rng.permutation(list("abcd"))] for _ in range(40)]
    losses = PROGRAM["held_out_losses"](rankings)
    assert np.isfinite(losses).all()
    assert "do not forecast better than guessing" in PROGRAM["verdict"](losses)


def test_groups_that_never_met_are_ranked_apart(tmp_path, capsys):
    frame = pd.concat([races(list("abc")), races(list("xyz"), first=30)])
    text = printed(frame, tmp_path, capsys)
    assert "form 2 groups that never met" in text
    first, second = text.split("Group 1\n")[1].split("Group 2\n")
    assert re.findall(r" ([a-z]) ", first) == list("abc")
    assert re.findall(r" ([a-z]) ", second) == list("xyz")


def test_a_participant_occurs_once_per_event():
    frame = races(list("abc"), 2).replace("b", "a")
    with pytest.raises(ValueError, match="a is listed twice in 0"):
        PROGRAM["read_rankings"](frame, "race", "driver", "place")

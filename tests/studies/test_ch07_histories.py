"""Match features compared with a slow row-by-row count, and season splits compared with
a loop over rows."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from datasets.chess_files import write_chess
from hypothesis import given
from hypothesis import strategies as st
from optional import optional_import

from preflearn_book.studies.ch07_histories import (
    forward_splits,
    match_features,
    season_split,
)

MONTH = 365.25 / 12


def random_matches(seed, n=60, players=5, months=6):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, players, n)
    second = (first + rng.integers(1, players, n)) % players
    frame = pd.DataFrame(
        {
            "first": first.astype(str),
            "second": second.astype(str),
            "time": np.sort(rng.integers(0, months, n)),
            "outcome": rng.integers(-1, 2, n),
            "advantage": rng.random(n) < 0.7,
        }
    )
    elo = rng.choice([1100.0, 1200.0, 1400.0, 1601.0], size=(n, 2))
    return frame, elo, rng.normal(2200, 100, size=(n, 2))


def mean_or_half(values):
    return float(np.mean(values)) if len(values) else 0.5


def slow_features(frame, elo, glicko, past):
    """Return the features of each match from a loop over all earlier rows."""
    rows = frame.to_dict("records")
    result = np.empty((len(rows), 2, 16))
    for k, row in enumerate(rows):
        for side, (me, other) in enumerate(
            ((row["first"], row["second"]), (row["second"], row["first"]))
        ):
            games = []
            current = k
            for j in range(len(rows)):
                earlier = rows[j]
                if me not in (earlier["first"], earlier["second"]):
                    continue
                known = j < k if past == "rows" else earlier["time"] < row["time"]
                if known:
                    mine = 0 if me == earlier["first"] else 1
                    opponent = earlier[("second", "first")[mine]]
                    points = (1 + earlier["outcome"] * (1, -1)[mine]) / 2
                    gap = elo[j][1 - mine] - elo[j][mine]
                    games.append((opponent, points, gap, earlier["time"], elo[j][mine]))
                elif past == "times" and earlier["time"] == row["time"]:
                    # ratings before the first match of this time
                    current = min(current, j)
            at = 0 if rows[current]["first"] == me else 1
            upset_wins = sum(p >= 0.5 and g > 0 for _, p, g, _, _ in games)
            upset_losses = sum(p <= 0.5 and g < 0 for _, p, g, _, _ in games)
            last = [row["time"] - games[-1][3]] if games else []
            result[k, side] = (
                elo[current][at],
                glicko[current][at],
                upset_wins,
                upset_wins / len(games) if games else 0.5,
                upset_losses,
                upset_losses / len(games) if games else 0.5,
                len(games),
                sum(p == 1 for _, p, *_ in games),
                sum(p == 0.5 for _, p, *_ in games),
                mean_or_half(last),
                max([e for *_, e in games] + [elo[current][at]]) >= 1600,
                mean_or_half([p for o, p, *_ in games if o == other]),
                mean_or_half([g for _, _, g, _, _ in games]),
                mean_or_half([g for _, p, g, _, _ in games if p >= 0.5]),
                mean_or_half([g for _, p, g, _, _ in games if p <= 0.5]),
                side == 0 and row["advantage"],
            )
    return result


@pytest.mark.parametrize("past", ["rows", "times"])
@given(seed=st.integers(0, 10**6))
def test_features_are_those_of_a_row_by_row_count(past, seed):
    frame, elo, glicko = random_matches(seed)
    X, names = match_features(frame, elo, glicko, past=past, elite=1600)
    assert X.shape == (60, 2, 16)
    assert len(set(names)) == 16
    np.testing.assert_allclose(
        X, slow_features(frame, elo, glicko, past), rtol=1e-12, atol=1e-12
    )


def test_dates_count_in_months():
    frame, elo, glicko = random_matches(0)
    days = pd.Timestamp("2000-01-01") + pd.to_timedelta(frame["time"] * MONTH, unit="D")
    found, expected = (
        match_features(data, elo, glicko) for data in (frame.assign(time=days), frame)
    )
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)


def test_season_splits_keep_known_players_and_no_debuts():
    frame, _, _ = random_matches(3, n=240, players=12, months=12)
    found = season_split(frame, 3, 6, 11)
    counts = defaultdict(int)
    rows = frame.to_dict("records")
    for row in rows:
        if 3 <= row["time"] < 6:
            counts[row["first"]] += 1
            counts[row["second"]] += 1
    assert 0 < sum(count < 10 for count in counts.values()) < 12
    seen = set()
    train = []
    test = []
    for k, row in enumerate(rows):
        both = {row["first"], row["second"]}
        if min(counts[name] for name in both) >= 10:
            if 3 <= row["time"] < 6 and both <= seen:
                train.append(k)
            elif 6 <= row["time"] < 11:
                test.append(k)
        seen |= both
    assert [part.tolist() for part in found] == [train, test]


def test_forward_splits_part_the_matches_in_order_of_time():
    splits = forward_splits(20, (0.5, 0.75, 0.8, 0.85))
    assert [len(train) for train, _ in splits] == [10, 15, 16, 17]
    assert all(
        train.tolist() + rest.tolist() == list(range(20)) for train, rest in splits
    )


def test_a_season_without_known_players_is_an_error():
    frame, _, _ = random_matches(0)
    with pytest.raises(ValueError, match=r"from 7 to 40.*matches before 20"):
        season_split(frame, 7, 20, 40)


@pytest.mark.nightly
# ignores warnings about figures that cannot be shown
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_chapter_7_runs_on_chess_files(tmp_path, monkeypatch, capsys):
    """The real chess files may not be distributed, so the test writes files in the same
    format."""
    matplotlib = optional_import("matplotlib")
    rng = np.random.default_rng(0)
    n = 16_000
    players = 20
    strength = rng.normal(size=players)
    white = rng.integers(0, players, n)
    black = (white + rng.integers(1, players, n)) % players
    gap = strength[white] - strength[black] + 0.2 + rng.logistic(size=n)
    score = (np.sign(gap) * (np.abs(gap) > 1.2) + 1) / 2
    month = np.sort(rng.integers(1, 133, n))
    write_chess(
        tmp_path / "chess",
        np.column_stack([np.arange(n), month, white + 1, black + 1, score]),
    )
    monkeypatch.setenv("PREFLEARN_DATA", str(tmp_path))
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    notebook = Path(__file__).parents[2] / "notebooks" / "07_matches.ipynb"
    names = {}
    with matplotlib.rc_context({"backend": "Agg"}):
        for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
                if "parameters" in cell["metadata"].get("tags", []):
                    names |= {"n_seasons": 1, "n_train": 100}
        names["plt"].close("all")
    assert names["game"] == "chess"
    assert len(names["matches"]) == 16_000
    assert "contradiction" not in capsys.readouterr().out
    # the test starts in May 1999
    assert names["seasons"][0][2][0] == (names["matches"]["month"] < 5).sum()
    auc = names["results"].groupby("model")["test_auc"].mean()
    assert auc["linear, all"] > auc["trivial"]

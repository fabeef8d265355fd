"""Features of matches against a slow twin, the past that must not see the future, and seasons."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from datasets.chess_files import write_chess
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_score

from preflearn.pairs import Pairs
from preflearn.svm import SVMRank
from studies.ch07_histories import FEATURES, forward_splits, match_features, season_split

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
    """Row by row, looking through all earlier rows."""
    rows = frame.to_dict("records")
    result = np.empty((len(rows), 2, len(FEATURES)))
    for k, row in enumerate(rows):
        for side, (me, other) in enumerate(((row["first"], row["second"]), (row["second"], row["first"]))):
            games, current = [], k
            for j in range(len(rows)):
                played = rows[j]
                if me not in (played["first"], played["second"]):
                    continue
                known = j < k if past == "rows" else played["time"] < row["time"]
                if known:
                    mine = 0 if me == played["first"] else 1
                    opponent = played[("second", "first")[mine]]
                    points = (1 + played["outcome"] * (1, -1)[mine]) / 2
                    gap = elo[j][1 - mine] - elo[j][mine]
                    games.append((opponent, points, gap, played["time"], elo[j][mine]))
                elif past == "times" and played["time"] == row["time"]:
                    current = min(current, j)  # ratings before the first match of this time
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
    """Which knows no names, treats both sides alike, and sees nothing of the same time, if `past` says so."""
    frame, elo, glicko = random_matches(seed)
    X, names = match_features(frame, elo, glicko, past=past, elite=1600)
    assert X.shape == (60, 2, 16)
    assert names == FEATURES
    np.testing.assert_allclose(X, slow_features(frame, elo, glicko, past), rtol=1e-12, atol=1e-12)


def test_dates_count_in_months():
    frame, elo, glicko = random_matches(0)
    days = pd.Timestamp("2000-01-01") + pd.to_timedelta(frame["time"] * MONTH, unit="D")
    found, expected = (match_features(data, elo, glicko) for data in (frame.assign(time=days), frame))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)


def test_seasons_keep_known_players_and_no_debuts():
    frame, _, _ = random_matches(3, n=400, players=12, months=12)
    split = season_split(frame, 3, 6, 11, min_matches=16)
    counts, seen, train, test = defaultdict(int), set(), [], []
    rows = frame.to_dict("records")
    for row in rows:
        if 3 <= row["time"] < 6:
            counts[row["first"]] += 1
            counts[row["second"]] += 1
    assert 0 < sum(count < 16 for count in counts.values()) < 12
    for k, row in enumerate(rows):
        both = {row["first"], row["second"]}
        if min(counts[name] for name in both) >= 16:
            if 3 <= row["time"] < 6 and both <= seen:
                train.append(k)
            elif 6 <= row["time"] < 11:
                test.append(k)
        seen |= both
    assert split.train.tolist() == train
    assert split.test.tolist() == test


def test_forward_splits_serve_as_cv():
    rng = np.random.default_rng(0)
    pairs = Pairs(rng.normal(size=(40, 2)), np.arange(40).reshape(20, 2))
    y = np.sign(pairs.differences()[:, 0]).astype(int)
    splits = forward_splits(20)
    assert [len(train) for train, _ in splits] == [10, 15, 16, 17]
    assert all(train.tolist() + rest.tolist() == list(range(20)) for train, rest in splits)
    assert len(cross_val_score(SVMRank(kernel="linear"), pairs, y, cv=splits)) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": [2, 1, 3]}, r"time\[1\] is 1\.0; expected at least 2, the one before"),
        ({"time": [1, np.nan, 3]}, r"column 'time'\[1\] is \S+; expected a value in each row"),
        ({"second": ["b", "a", "a"]}, "'a' meets himself in row 1; expected two different opponents"),
        ({"first": ["a", "b", None]}, r"column 'first'\[2\] is \S+; expected a value in each row"),
        ({"outcome": [1, 2, 0]}, r"y\[1\] is 2; expected one of"),
    ],
)
def test_bad_matches_are_refused(change, message):
    frame = pd.DataFrame(
        {"first": ["a", "a", "b"], "second": ["b", "c", "a"], "time": [1, 2, 3], "outcome": 1}
    )
    frame = frame.assign(advantage=True, **change)
    with pytest.raises(ValueError, match=message):
        match_features(frame, np.ones((3, 2)), np.ones((3, 2)))


# The chapter on chess: files of the form of the real ones, which the project may not distribute


@pytest.mark.filterwarnings("ignore::UserWarning")  # figures that are not shown
def test_chapter_runs_on_chess_files(tmp_path, monkeypatch, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    rng, n, players = np.random.default_rng(0), 16_000, 20
    strength, white = rng.normal(size=players), rng.integers(0, players, n)
    black = (white + rng.integers(1, players, n)) % players
    gap = strength[white] - strength[black] + 0.2 + rng.logistic(size=n)
    score = (np.sign(gap) * (np.abs(gap) > 1.2) + 1) / 2
    month = np.sort(rng.integers(1, 133, n))
    write_chess(tmp_path / "chess", np.column_stack([np.arange(n), month, white + 1, black + 1, score]))
    monkeypatch.setenv("PREFLEARN_DATA", str(tmp_path))
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    notebook = Path(__file__).parents[2] / "notebooks" / "07_matches.ipynb"
    names = {}
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
            if "parameters" in cell["metadata"].get("tags", []):
                names |= {"n_seasons": 1, "n_train": 60}
    pyplot.close("all")
    printed = capsys.readouterr().out
    assert names["game"] == "chess"
    assert "20 players; median share" in printed
    assert len(names["matches"]) == 16_000
    assert "Football" not in printed
    assert "contradiction" not in printed
    assert names["seasons"][0][2][0] == (names["matches"]["month"] < 5).sum()  # the test starts in May 1999
    auc = names["results"].groupby("model")["test_auc"].mean()
    assert auc["linear, all"] > auc["trivial"]


ONE = pd.DataFrame({"first": ["a"], "second": ["b"], "time": [3.0], "outcome": [1], "advantage": [True]})


@pytest.mark.parametrize("ends", [("x", 20, 40), (7, pd.NaT, 40), (7, 20, 10**120)])
def test_ends_that_are_no_times_are_named(ends):
    with pytest.raises(ValueError, match=r"the ends are .*; expected times|the number of matches to train"):
        season_split(ONE, *ends)


@pytest.mark.parametrize("least", ["", None, 0.5, -1, np.nan])
def test_a_least_number_of_matches_that_is_no_number_is_named(least):
    with pytest.raises(ValueError, match=r"min_matches is .*; expected a whole number of at least 0"):
        season_split(ONE, 0, 20, 40, min_matches=least)


@pytest.mark.parametrize("elite", ["no such word", np.datetime64("2024-01-01"), None, np.nan])
def test_a_rating_of_the_elite_that_is_no_number_is_named(elite):
    with pytest.raises(ValueError, match=r"elite is .*; expected a finite number"):
        match_features(ONE, [[1200, 1200]], [[1, 1]], elite=elite)

"""Loaders of matches, on small files (values, order, types) and on the real ones."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
import rdata
from datasets.chess_files import write_chess, zipped
from toy_register import as_objects, sha256

from preflearn import datasets
from preflearn.datasets import CorruptedFile


def rows(matches, *columns):
    return list(matches[list(columns)].itertuples(index=False, name=None))


def day(text):
    return np.datetime64(text, "s")


# Chess: the register has no hashes, and the files may not be distributed


def add_chess(toy):
    for part in (1, 2, 3):
        toy.add("chess", f"primary_training_part{part}.zip", b"", at=None, known=False)
    games = [
        (1, 49, 7, 3, 0.5),
        (2, 1, 3, 7, 1.0),
        (3, 49, 3, 8, 0.0),
        (4, 132, 8, 7, 1.0),
    ]
    write_chess(toy.mirror / "chess", games)


def test_chess_is_read_once_its_hashes_are_recorded(toy):
    add_chess(toy)
    matches, provenance = datasets.load_chess()
    expected = [
        ("3", "7", 1, 1),
        ("7", "3", 0, 49),
        ("3", "8", -1, 49),
        ("8", "7", 1, 132),
    ]
    assert rows(matches, "first", "second", "outcome", "month") == expected
    months = ("1999-01-01", "2003-01-01", "2003-01-01", "2009-12-01")
    assert matches["time"].tolist() == [pd.Timestamp(month) for month in months]
    assert matches["time"].dtype == "datetime64[s]"
    assert matches["advantage"].all()
    assert [row["source"] for row in provenance] == ["mirror"] * 3


PART = "primary_training_part1"
part = partial(zipped, f"{PART}.csv")
TABLE = "MonthID,WhitePlayer,BlackPlayer,WhiteScore\n" + "1,3,7,1.0\n" * 9
DAMAGED = {
    "impossible score": (part(TABLE + "1,3,7,0.7\n"), "WhiteScore[9] is 0.7"),
    "missing column": (part("MonthID,WhitePlayer,BlackPlayer\n1,3,7\n"), "WhiteScore"),
    "web page": (b"<html>sign in</html>", "zip"),
    "incomplete": (part(TABLE)[:-30], "zip"),
    "another member": (zipped("games.csv", TABLE), f"{PART}.csv"),
    "binary": (part(b"\xff\xfe\x00"), ""),
    "empty": (part(b""), ""),
    "huge month": (part(TABLE + f"{10**30},3,7,1.0\n"), ""),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_an_unusable_chess_archive_is_named(toy, damage):
    content, words = DAMAGED[damage]
    add_chess(toy)
    toy.put("chess", f"{PART}.zip", content, "mirror")
    sums = toy.mirror / "chess" / "SHA256SUMS"
    sums.write_text(sums.read_text() + f"\n{sha256(content)}  {PART}.zip\n")
    with pytest.raises(
        CorruptedFile, match=f"chess/{PART}.zip.*{re.escape(words)}.*SHA256SUMS"
    ):
        datasets.load_chess()


# Matches


def test_football_home_team_first_and_earliest_match_first(toy):
    toy.add(
        "football",
        "results.csv",
        b"date,home_team,away_team,home_score,away_score,tournament,city,country,neutral\n"
        b"1930-02-01,B,A,0,3,Cup,x,x,TRUE\n1872-11-30,C,A,1,1,Friendly,x,x,FALSE\n1930-02-01,A,C,2,1,Cup,x,x,FALSE\n",
    )
    matches, _ = datasets.load_football()
    found = rows(
        matches, "first", "outcome", "first_score", "second_score", "advantage"
    )
    assert found == [("C", 0, 1, 1, True), ("B", -1, 0, 3, False), ("A", 1, 2, 1, True)]
    assert matches["time"].tolist() == [
        day("1872-11-30"),
        day("1930-02-01"),
        day("1930-02-01"),
    ]
    assert str(matches["time"].dtype) == "datetime64[s]"


def test_nba_without_games_that_were_not_played(toy, tmp_path):
    columns = ["date", "season", "neutral", "team1", "team2", "score1", "score2"]
    games = [
        (-8462.0, 1947.0, True, "TRH", "NYK", 66.0, 68.0),
        (17896.0, 2019.0, False, "BOS", "ATL", 120.0, 90.0),
        (18487.0, 2020.0, False, "LAL", "BOS", np.nan, np.nan),
    ]
    path = tmp_path / "games.rda"
    rdata.write_rda(path, {"nba_elo": as_objects(pd.DataFrame(games, columns=columns))})
    toy.add("nba", "nba_elo.rda", path.read_bytes())
    matches, _ = datasets.load_nba()
    assert matches["time"].tolist() == [day("1946-11-01"), day("2018-12-31")]
    assert rows(matches, "outcome", "advantage", "season") == [
        (-1, False, 1947),
        (1, True, 2019),
    ]


def test_starcraft_players_of_the_same_name_are_different(toy):
    toy.add(
        "starcraft",
        "WoL.txt",
        b"numPlayers: 4\nPlayer0: \nPlayer1: Zed: x\nPlayer2: Twin\nPlayer3: Twin\n"
        b"numGames: 3\n1:0 1:0\n1:1 0:1\n2:3 0:1\n",
    )
    matches, _ = datasets.load_starcraft("WoL")
    assert rows(matches, "first", "outcome", "time") == [
        ("Zed: x", 1, 0.0),
        ("Twin#2", -1, 0.0),
    ]
    with pytest.raises(ValueError, match=r"name is 'LotV'.*'WoL'"):
        datasets.load_starcraft("LotV")


def add_tennis(toy, prefix):
    header = (
        "tourney_name,surface,tourney_level,tourney_date,winner_name,loser_name,score\n"
    )
    for year in range(1991, 2018):
        rows = (
            f"x,Clay,A,{year}0701,Bea,Abe,6-0 6-0\nx,Grass,G,{year}0101,Abe,Cid, W/O\n"
        )
        rows += f"x,Clay,A,{year}0701,Bea,Bea,6-0 6-0\n"
        toy.add("atp_tennis", f"{prefix}_{year}.csv", (header + rows).encode())


def test_tennis_players_are_in_the_order_of_their_names(toy):
    add_tennis(toy, "atp_matches")
    matches, provenance = datasets.load_atp("main")
    assert len(matches) == 2 * 27
    found = rows(matches, "first", "second", "outcome", "score")
    assert found[:2] == [("Abe", "Cid", 1, "W/O"), ("Abe", "Bea", -1, "6-0 6-0")]
    assert matches["time"].tolist()[:2] == [day("1991-01-01"), day("1991-07-01")]
    assert matches["time"].is_monotonic_increasing
    assert set(matches["level"]) == {"main"}
    assert len(provenance) == 27
    add_tennis(toy, "atp_matches_futures")
    add_tennis(toy, "atp_matches_qual_chall")
    levels = datasets.load_atp().matches["level"]
    assert levels.value_counts().to_dict() == {
        "main": 54,
        "futures": 54,
        "qual_chall": 54,
    }
    assert levels.tolist()[:3] == ["main", "qual_chall", "futures"]


@pytest.mark.parametrize("level", ["major", ["main"], -1])
def test_the_error_for_an_unknown_tennis_level_lists_the_known_ones(level):
    with pytest.raises(ValueError, match=r"level.*'qual_chall'"):
        datasets.load_atp(level)


# The real files: [Maystre2019], section 4


def check_matches(data):
    matches = data.matches
    assert matches["time"].is_monotonic_increasing
    assert (matches["first"] != matches["second"]).all()
    assert set(matches["outcome"]) <= {-1, 0, 1}
    assert not matches.isna().any().any()


def n_names(matches):
    return len(set(matches["first"]) | set(matches["second"]))


@pytest.mark.nightly
def test_tennis(load):
    data = load("atp_tennis", datasets.load_atp)
    check_matches(data)
    sizes = {"main": 89_498, "qual_chall": 140_149, "futures": 396_197}
    assert data.matches["level"].value_counts().to_dict() == sizes
    # The paper counts 618,934 matches of 20,046 players, as in the files of September
    # 2017.
    early = data.matches[data.matches["time"] <= "2017-09-22"]
    assert (len(early), n_names(early)) == (619_154, 20_047)
    assert abs(len(early) / 618_934 - 1) < 0.0005
    share = (data.matches["outcome"] == 1).mean()
    assert 0.49 < share < 0.51


def test_basketball(load):
    data = load("nba", datasets.load_nba)
    check_matches(data)
    paper = data.matches[data.matches["time"] <= "2018-12-31"]
    assert (len(paper), n_names(paper)) == (67_642, 102)
    assert (paper["outcome"] != 0).all()
    assert 0.6 < (paper["outcome"][paper["advantage"]] == 1).mean() < 0.65


@pytest.mark.parametrize(
    ("name", "n_matches", "n_players", "lonely_rows", "lonely_players"),
    [("WoL", 61_657, 4381, 5, 1), ("HotS", 28_582, 2287, 1, 0)],
)
def test_starcraft(load, name, n_matches, n_players, lonely_rows, lonely_players):
    """The published numbers include matches of a player with themselves."""
    data = load("starcraft", datasets.load_starcraft, name)
    check_matches(data)
    assert len(data.matches) == n_matches - lonely_rows
    assert n_names(data.matches) == n_players - lonely_players


def test_football(load):
    data = load("football", datasets.load_football)
    check_matches(data)
    # Teams have their present names at all times.
    matches = data.matches
    assert not matches["first"].isin(["Soviet Union", "West Germany"]).any()
    row = matches[
        (matches["time"] == "2014-07-08") & (matches["first"] == "Brazil")
    ].iloc[0]
    assert (row["second"], row["first_score"], row["second_score"], row["outcome"]) == (
        "Germany",
        1,
        7,
        -1,
    )
    assert row["advantage"]
    final = matches[
        (matches["time"] == "2006-07-09") & (matches["first"] == "Italy")
    ].iloc[0]
    assert (final["second"], final["outcome"], bool(final["advantage"])) == (
        "France",
        0,
        False,
    )

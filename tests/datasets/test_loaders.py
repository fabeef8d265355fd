"""Loaders on small files that the tests write: what is read, in which order, of which type."""

import io
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import rdata
from scipy import sparse
from toy_register import Toy, sha256

from preflearn import datasets
from preflearn.datasets import CorruptedFile, DatasetUnavailable, storage
from preflearn.datasets.registry import package_file
from preflearn.datasets.sushi import coordinates


@pytest.fixture
def toy(tmp_path, monkeypatch):
    return Toy(tmp_path, monkeypatch)


def day(text):
    return np.datetime64(text, "s")


# Chess: hashes that nobody registered, and files that nobody may pass on


def zipped(name, text):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, text)
    return stream.getvalue()


def add_chess(toy, games=("1,49,7,3,0.5\n2,1,3,7,1.0\n", "3,49,3,8,0.0\n", "4,132,8,7,1.0\n"), recorded=True):
    header = "PTID,MonthID,WhitePlayer,BlackPlayer,WhiteScore\n"
    for part, rows in enumerate(games, start=1):
        name = f"primary_training_part{part}"
        toy.add("chess", f"{name}.zip", zipped(f"{name}.csv", header + rows), known=not recorded)
    if recorded:
        folder = toy.mirror / "chess"
        sums = [f"{sha256(path.read_bytes())}  {path.name}" for path in folder.iterdir()]
        (folder / "SHA256SUMS").write_text("\n".join(sums))


def test_chess_is_read_once_its_hashes_are_recorded(toy):
    add_chess(toy)
    matches, names, provenance = datasets.load_chess()
    assert matches["first"].tolist() == ["3", "7", "3", "8"]
    assert matches["second"].tolist() == ["7", "3", "8", "7"]
    assert matches["outcome"].tolist() == [1, 0, -1, 1]
    assert matches["month"].tolist() == [1, 49, 49, 132]
    months = ("1999-01-01", "2003-01-01", "2003-01-01", "2009-12-01")
    assert matches["time"].tolist() == [pd.Timestamp(month) for month in months]
    assert matches["time"].dtype == "datetime64[s]"
    assert matches["advantage"].all()
    assert names == ("3", "7", "8")
    assert [row["source"] for row in provenance] == ["mirror"] * 3


def test_chess_is_refused_without_recorded_hashes(toy):
    add_chess(toy)
    (toy.mirror / "chess" / "SHA256SUMS").unlink()
    with pytest.raises(DatasetUnavailable, match=r"not recorded.*sha256sum .* >> SHA256SUMS"):
        datasets.load_chess()


def test_chess_with_an_impossible_score_or_without_a_column_is_refused(toy):
    add_chess(toy, games=("1,1,3,7,1.0\n2,1,3,7,0.7\n", "", ""), recorded=False)
    with pytest.raises(ValueError, match=r"part1.zip .* WhiteScore\[1\] is 0.7; expected 0, 0.5 or 1"):
        datasets.load_chess()
    toy.rows.clear()
    name = "primary_training_part1"
    toy.add("chess", f"{name}.zip", zipped(f"{name}.csv", "PTID,MonthID,WhitePlayer,BlackPlayer\n1,1,3,7\n"))
    with pytest.raises(ValueError, match=r"part1.zip .*not found: \['WhiteScore'\]"):
        datasets.load_chess()


PART = "primary_training_part1"
TABLE = "MonthID,WhitePlayer,BlackPlayer,WhiteScore\n" + "1,3,7,1.0\n" * 9
DAMAGED = {
    "no archive": (b"<html>sign in</html>", "not a zip file"),
    "broken off": (zipped(f"{PART}.csv", TABLE)[:-30], "not a zip file"),
    "another member": (zipped("games.csv", TABLE), f"no item named '{PART}.csv'"),
    "no text": (zipped(f"{PART}.csv", b"\xff\xfe\x00"), "codec can't decode"),
    "no table": (zipped(f"{PART}.csv", b""), "No columns to parse"),
    "a large month": (zipped(f"{PART}.csv", TABLE + f"{10**30},3,7,1.0\n"), ""),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_chess_archive_that_can_not_be_used_is_named(toy, damage):
    content, words = DAMAGED[damage]
    add_chess(toy)
    toy.put("chess", f"{PART}.zip", content, "mirror")
    sums = toy.mirror / "chess" / "SHA256SUMS"
    sums.write_text(sums.read_text() + f"\n{sha256(content)}  {PART}.zip\n")
    with pytest.raises(CorruptedFile) as caught:
        datasets.load_chess()
    assert f"chess/{PART}.zip is not the file of the challenge: " in str(caught.value)
    assert words in str(caught.value)
    assert "Put that in its place, and its hash into SHA256SUMS" in str(caught.value)


# Matches


def test_football_home_team_first_and_earliest_match_first(toy):
    toy.add(
        "football",
        "results.csv",
        b"date,home_team,away_team,home_score,away_score,tournament,city,country,neutral\n"
        b"1930-02-01,B,A,0,3,Cup,x,x,TRUE\n1872-11-30,C,A,1,1,Friendly,x,x,FALSE\n1930-02-01,A,C,2,1,Cup,x,x,FALSE\n",
    )
    matches, names, _ = datasets.load_football()
    assert matches["first"].tolist() == ["C", "B", "A"]
    assert matches["outcome"].tolist() == [0, -1, 1]
    assert matches[["first_score", "second_score"]].to_numpy().tolist() == [[1, 1], [0, 3], [2, 1]]
    assert matches["advantage"].tolist() == [True, False, True]
    assert matches["time"].tolist() == [day("1872-11-30"), day("1930-02-01"), day("1930-02-01")]
    assert str(matches["time"].dtype) == "datetime64[s]"
    assert names == ("A", "B", "C")


def test_nba_without_games_that_were_not_played(toy, tmp_path):
    games = pd.DataFrame(
        {
            "date": [-8462.0, 17896.0, 18487.0],
            "season": [1947.0, 2019.0, 2020.0],
            "neutral": [True, False, False],
            "team1": ["TRH", "BOS", "LAL"],
            "team2": ["NYK", "ATL", "BOS"],
            "score1": [66.0, 120.0, np.nan],
            "score2": [68.0, 90.0, np.nan],
        }
    )
    path = tmp_path / "games.rda"
    rdata.write_rda(path, {"nba_elo": games})
    toy.add("nba", "nba_elo.rda", path.read_bytes())
    matches, names, _ = datasets.load_nba()
    assert matches["time"].tolist() == [day("1946-11-01"), day("2018-12-31")]
    assert matches["outcome"].tolist() == [-1, 1]
    assert matches["advantage"].tolist() == [False, True]
    assert matches["season"].tolist() == [1947, 2019]
    assert names == ("ATL", "BOS", "NYK", "TRH")


def test_starcraft_names_are_told_apart(toy):
    toy.add(
        "starcraft",
        "WoL.txt",
        b"numPlayers: 4\nPlayer0: \nPlayer1: Zed: x\nPlayer2: Twin\nPlayer3: Twin\n"
        b"numGames: 3\n1:0 1:0\n1:1 0:1\n2:3 0:1\n",
    )
    matches, names, _ = datasets.load_starcraft("WoL")
    assert names == ("#0", "Twin#2", "Twin#3", "Zed: x")
    assert matches["first"].tolist() == ["Zed: x", "Twin#2"]
    assert matches["outcome"].tolist() == [1, -1]
    assert matches["time"].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="name is 'LotV'; expected 'WoL' or 'HotS'"):
        datasets.load_starcraft("LotV")


def add_tennis(toy, prefix):
    header = "tourney_name,surface,tourney_level,tourney_date,winner_name,loser_name,score\n"
    for year in range(1991, 2018):
        rows = f"x,Clay,A,{year}0701,Bea,Abe,6-0 6-0\nx,Grass,G,{year}0101,Abe,Cid, W/O\n"
        rows += f"x,Clay,A,{year}0701,Bea,Bea,6-0 6-0\n"
        toy.add("atp_tennis", f"{prefix}_{year}.csv", (header + rows).encode())


def test_tennis_players_stand_in_the_order_of_their_names(toy):
    add_tennis(toy, "atp_matches")
    matches, names, provenance = datasets.load_atp("main")
    assert len(matches) == 2 * 27
    assert matches["first"].tolist()[:2] == ["Abe", "Abe"]
    assert matches["second"].tolist()[:2] == ["Cid", "Bea"]
    assert matches["outcome"].tolist()[:2] == [1, -1]
    assert matches["score"].tolist()[:2] == ["W/O", "6-0 6-0"]
    assert matches["time"].tolist()[:2] == [day("1991-01-01"), day("1991-07-01")]
    assert matches["time"].is_monotonic_increasing
    assert set(matches["level"]) == {"main"}
    assert names == ("Abe", "Bea", "Cid")
    assert len(provenance) == 27
    add_tennis(toy, "atp_matches_futures")
    both = datasets.load_atp(["futures", "main"]).matches
    assert both["level"].value_counts().to_dict() == {"main": 54, "futures": 54}
    assert both["level"].tolist()[:4] == ["futures", "main"] * 2


@pytest.mark.parametrize("levels", ["major", ["main", "minor"], []])
def test_unknown_tennis_levels(levels):
    with pytest.raises(ValueError, match=r"expected some of \['main', 'qual_chall', 'futures'\]"):
        datasets.load_atp(levels)


# Items


def test_object_rankings_in_both_encodings_of_the_files(toy):
    text = '"RANK","Bundesliga","GP","Pts","W","Home"\n1,"München",34,88,28,"15-1"\n3,"Köln",34,50,11,"1-1"\n'
    toy.add("object_ranking", "ds_B1.csv", text.encode("cp1252"))
    toy.add("object_ranking", "ds_B2.csv", text.encode("utf-8"))
    one, two = datasets.load_object_ranking("B1"), datasets.load_object_ranking("B2")
    assert one.item_names == two.item_names == ("München", "Köln")
    assert one.feature_names == ("Pts", "W")
    np.testing.assert_array_equal(one.X, [[88, 28], [50, 11]])
    assert one.rank.tolist() == [1, 3]
    assert one.provenance[0]["file"] == "ds_B1.csv"
    with pytest.raises(ValueError, match="name is 'B3'; expected 'D1' or "):
        datasets.load_object_ranking("B3")


def add_sushi(toy):
    rows = "".join(f"{k}\tx\t1\t0\t{k}\t1\t1\t1\t{k / 10}\n" for k in range(1, 5))
    items = "#name style\n\n0\t海老\t1\t0\t6\t2.5\t2\t1.5\t0.5\n" + rows
    toy.add("sushi", "sushi3.idata", items.encode())
    toy.add(
        "sushi", "sushi3.udata", b"9\t1\t2\t300\t13\t3\t0\t46\t10\t1\t1\n8\t0\t5\t200\t0\t0\t0\t0\t0\t0\t0\n"
    )
    toy.add("sushi", "sushi3b.5000.10.score", b"4 0 -1 4 2 \n-1 3 1 1 1 \n")
    names = "*** ID for the item set A\n0:no\n*** ID for the item set B\n\n 0:ebi (shrimp)\n" + "".join(
        f" {k}:sushi {k}\n" for k in range(1, 5)
    )
    toy.add("sushi", "README-en.txt", (names + "###  rest\n 0:no\n").encode())


def test_sushi_pairs_are_neighbours_in_the_order_of_ratings(toy):
    add_sushi(toy)
    pairs, y, features, names, scores, user, sushi, provenance = datasets.load_sushi()
    # In the file, where 0 is the best, user 0 gave 0 to sushi 1, 2 to 4, and 4 to 0 and 3;
    # user 1 gave 1 to sushi 2, 3, 4 and 3 to 1.
    assert user.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert sushi.tolist() == [0, 1, 3, 4, 1, 2, 3, 4]
    assert scores.tolist() == [0, 4, 0, 2, 1, 3, 3, 3]
    assert sushi[pairs.index].tolist() == [[0, 3], [1, 4], [1, 2], [3, 4]]
    assert user[pairs.index].tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]
    assert y.tolist() == [0, 1, -1, 0]
    assert len(features) == pairs.items.shape[1] == 14
    np.testing.assert_allclose(pairs.items[0, :7], [1, 0, 6, 2.5, 2, 1.5, 0.5])
    np.testing.assert_allclose(pairs.items[0, 7:], [1, 2, 300, 35.69, 139.69, 26.21, 127.68])
    assert names == ("ebi (shrimp)", "sushi 1", "sushi 2", "sushi 3", "sushi 4")
    assert len(provenance) == 4


def test_prefectures_lie_in_japan():
    table = pd.read_csv(package_file("prefectures.csv"))
    assert table["code"].tolist() == list(range(47))
    assert table["prefecture"].nunique() == 47
    latitude, longitude = coordinates(range(47)).T
    assert ((latitude > 26) & (latitude < 43.1)).all()
    assert ((longitude > 127) & (longitude < 141.4)).all()
    # Regions of the data's description: Tohoku lies north of Kanto, Kanto east of Kinki, and Kinki of Kyushu.
    tohoku, kanto, kinki, kyushu = range(1, 7), range(8, 15), [23, 25, 26, 27, 28, 29], range(39, 46)
    assert latitude[tohoku].min() > latitude[kanto].max()
    assert longitude[kanto].min() > longitude[kinki].max()
    assert longitude[kinki].min() > longitude[kyushu].max()


def add_r_files(toy, folder, score=90.0):
    """A small file for each loader of R files."""
    games = {"date": [0.0, -1.0], "season": [1970.0, 1970.0], "neutral": [False, True]}
    games |= {"team1": ["TRH", "é"], "team2": ["é", "LAL"], "score1": [score, 2.0], "score2": [80.0, 2.0]}
    cars = {"mpg": [18.0, 15.5], "cylinders": [8.0, 4.0], "name": ["a", "b"]}
    women = {"age": [50.0, 31.0], "diabetes": pd.Categorical(["pos", "neg"])}
    files = {
        ("nba", "nba_elo.rda"): {"nba_elo": pd.DataFrame(games)},
        ("auto", "Auto.rda"): {"Auto": pd.DataFrame(cars)},
        ("diabetes", "PimaIndiansDiabetes.rda"): {"PimaIndiansDiabetes": pd.DataFrame(women)},
        ("mixture", "mixture.example.RData"): {
            "mixture.example": {"x": np.eye(2), "y": np.array([0.0, 1.0])}
        },
    }
    toy.rows.clear()
    for (dataset, file), objects in files.items():
        rdata.write_rda(folder / file, objects)
        toy.add(dataset, file, (folder / file).read_bytes())


R_LOADERS = ("nba", "auto", "diabetes", "mixture")


@pytest.fixture
def parsed(monkeypatch):
    """The files that are parsed from now on, by their contents."""
    seen, parse = [], storage._r_objects
    monkeypatch.setattr(storage, "_r_objects", lambda content: seen.append(content) or parse(content))
    return seen


def load(name):
    return getattr(datasets, f"load_{name}")()


def check_same(one, two):
    for left, right in zip(one, two, strict=True):
        if isinstance(left, pd.DataFrame):
            pd.testing.assert_frame_equal(left, right, check_exact=True)
        elif isinstance(left, np.ndarray):
            np.testing.assert_array_equal(left, right, strict=True)
        else:
            assert left == right


def test_r_tables_of_scored_items(toy, tmp_path):
    add_r_files(toy, tmp_path)
    auto = load("auto")
    assert auto.feature_names == ("cylinders",)
    assert auto.X.tolist() == [[8.0], [4.0]]
    assert auto.scores.tolist() == [18.0, 15.5]
    assert load("diabetes").scores.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", R_LOADERS)
def test_an_r_file_is_parsed_once(toy, tmp_path, parsed, name):
    add_r_files(toy, tmp_path)
    before = sorted(toy.mirror.rglob("*"))
    first, second = load(name), load(name)
    assert len(parsed) == 1
    check_same(first, second)
    assert len([path for path in (toy.cache / name).iterdir() if path.suffix == ".npz"]) == 1
    assert sorted(toy.mirror.rglob("*")) == before


def flipped_byte(content):
    return content[:200] + bytes([content[200] ^ 1]) + content[201:]


SPOILT = {
    "empty": lambda content: b"",
    "text": lambda content: b"no archive",
    "broken off": lambda content: content[:-40],
    "flipped byte": flipped_byte,
}


@pytest.mark.parametrize("damage", SPOILT)
def test_a_kept_table_that_can_not_be_read_is_made_again(toy, tmp_path, parsed, damage):
    add_r_files(toy, tmp_path)
    expected = load("nba")
    (kept,) = (toy.cache / "nba").iterdir()
    kept.write_bytes(SPOILT[damage](kept.read_bytes()))
    check_same(load("nba"), expected)
    assert len(parsed) == 2
    check_same(load("nba"), expected)
    assert len(parsed) == 2, "it was made again"


def test_where_nothing_can_be_kept_a_file_is_parsed_each_time(toy, tmp_path, parsed):
    """A file where the folder is wanted: that stops root too."""
    add_r_files(toy, tmp_path)
    toy.cache.write_text("")
    check_same(load("nba"), load("nba"))
    assert len(parsed) == 2


def test_a_changed_file_is_parsed_anew(toy, tmp_path, parsed):
    add_r_files(toy, tmp_path)
    load("nba")
    add_r_files(toy, tmp_path, score=91.0)
    assert load("nba").matches["first_score"].tolist() == [2, 91]
    assert len(parsed) == 2


def test_a_kept_table_does_not_replace_the_file(toy, tmp_path):
    """What was kept is used only for bytes that are verified."""
    add_r_files(toy, tmp_path)
    load("nba")
    path = toy.mirror / "nba" / "nba_elo.rda"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(CorruptedFile, match=r"\d+ bytes of \d+"):
        load("nba")
    path.unlink()
    with pytest.raises(DatasetUnavailable):
        load("nba")


@pytest.mark.parametrize("name", ["jester", "movielens"])
def test_ratings_are_those_of_the_file_and_a_stored_zero_is_one(toy, monkeypatch, name):
    """rdata writes no S4 objects, so that the parsed ones are made up here."""
    row = {"x": np.array([0.0, 2.5, -1.0]), "i": np.array([1, 0, 1]), "p": np.array([0, 1, 1, 3])}
    row |= {"Dim": np.array([2, 3]), "Dimnames": [np.array(["u", "v"]), np.array(["a", "é", "c"])]}
    matrix, seen = SimpleNamespace(data=SimpleNamespace(**row)), []
    objects = {"Jester5k": matrix, "MovieLense": matrix}
    monkeypatch.setattr(storage, "_r_objects", lambda content: seen.append(content) or objects)
    toy.add(name, {"jester": "Jester5k.rda", "movielens": "MovieLense.rda"}[name], b"bytes")
    one, two = load(name), load(name)
    assert seen == [b"bytes"]
    assert one[1:] == two[1:] == (("u", "v"), ("a", "é", "c"), one.provenance)
    assert {type(text) for names in two[1:3] for text in names} == {str}
    check_same(*([x.ratings.data, x.ratings.indices, x.ratings.indptr] for x in (one, two)))
    assert isinstance(two.ratings, sparse.csr_array)
    assert two.ratings.nnz == 3
    assert two.ratings.toarray().tolist() == [[0, 0, 2.5], [0, 0, -1]]
    assert two.ratings.indptr.tolist() == [0, 1, 3]


def test_cancer_needs_no_file(toy):
    X, scores, features, provenance = datasets.load_cancer()
    assert X.shape == (569, len(features)) == (569, 30)
    assert scores.sum() == 357
    assert provenance[0]["source"].startswith("scikit-learn")

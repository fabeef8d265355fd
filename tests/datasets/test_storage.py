import numpy as np
import pandas as pd
import pytest
from toy_register import add_r_files, server, sha256

from preflearn import datasets
from preflearn.datasets import CorruptedFile, DatasetUnavailable, registry, storage
from preflearn.datasets.storage import read


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


# Where files are found


def test_the_mirror_comes_before_the_cache_and_use_is_noted_in_order(toy):
    toy.add("a", "second.txt", b"in both")
    toy.put("a", "second.txt", b"in both", "cache")
    toy.add("a", "first.txt", b"cached", at="cache")
    found = [read("a", name) for name in ("first.txt", "second.txt", "first.txt")]
    assert found == [b"cached", b"in both", b"cached"]
    assert datasets.used() == [
        {"dataset": "a", "file": "first.txt", "sha256": sha256(b"cached"), "source": "cache"},
        {"dataset": "a", "file": "second.txt", "sha256": sha256(b"in both"), "source": "mirror"},
    ]
    datasets.used()[0]["source"] = "changed"
    assert datasets.used()[0]["source"] == "cache"


def test_environment_is_read_at_call_time(toy, tmp_path, monkeypatch):
    toy.add("a", "f", b"1")
    assert datasets.available("a")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFLEARN_DATA", "mirror")  # that of the folder where one asks
    assert datasets.fetch("a") == [toy.mirror / "a" / "f"]
    monkeypatch.setenv("PREFLEARN_DATA", str(tmp_path / "elsewhere"))
    assert not datasets.available("a")
    with pytest.raises(DatasetUnavailable, match=r"the folder of PREFLEARN_DATA \(.*elsewhere\)"):
        read("a", "f")
    monkeypatch.delenv("PREFLEARN_DATA")
    with pytest.raises(DatasetUnavailable, match=r"the folder of PREFLEARN_DATA \(None\)"):
        read("a", "f")


def test_provenance_tells_what_was_read(toy):
    toy.add("a", "f", b"1")
    toy.add("a", "g", b"2")
    read("a", "g")
    rows = datasets.provenance("a")
    assert [(row["file"], row["source"]) for row in rows] == [("f", "not read"), ("g", "mirror")]
    assert rows[1]["sha256"] == sha256(b"2")
    assert {row["licence"] for row in rows} == {"toy licence"}
    assert datasets.provenance("a", ["g"]) == rows[1:]


def test_the_cache_is_the_users(monkeypatch):
    assert registry.cache_folder().name == "preflearn"


# Damage


@pytest.mark.parametrize(
    ("content", "error", "status", "words"),
    [
        (b"tampered!", CorruptedFile, "mismatch", r"9 bytes of 9\).*preflearn data fetch a"),
        (b"go", CorruptedFile, "mismatch", r"2 bytes of 9\).*preflearn data fetch a"),
        (None, DatasetUnavailable, "unverifiable", r"can't be read \(.*\): make it readable"),  # a folder
    ],
)
def test_damage_in_the_mirror_is_named_and_the_cache_is_no_way_out(toy, content, error, status, words):
    path = toy.add("a", "f", b"good data")
    toy.put("a", "f", b"good data", "cache")
    path.unlink()
    path.mkdir() if content is None else path.write_bytes(content)
    hashes = [] if content is None else [sha256(content), sha256(b"good data")]
    for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
        with pytest.raises(error, match=words) as caught:
            call()
        assert all(part in str(caught.value) for part in (str(path), *hashes))
    assert issubclass(CorruptedFile, ValueError)
    assert not datasets.available("a")
    assert datasets.verify("a").iloc[0]["status"] == status
    assert datasets.used() == []


# Absence


@pytest.mark.parametrize(("known", "offline"), [(True, "1"), (False, "1"), (False, "0")])
def test_offline_or_without_a_hash_nobody_is_asked(toy, monkeypatch, known, offline):
    monkeypatch.setenv("PREFLEARN_OFFLINE", offline)
    with server(b"1") as (url, asked):
        toy.add("a", "f", b"1", at=None, known=known, url=url)
        where = (f"put {url} into {toy.cache / 'a'}", "Licence: toy licence", "a/f is not available")
        how = ("downloads nothing that it can't verify", "sha256sum f >> SHA256SUMS")
        how = ("PREFLEARN_OFFLINE is set", "preflearn data fetch a") if known else how
        for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
            with pytest.raises(DatasetUnavailable) as caught:
                call()
            assert all(part in str(caught.value) for part in (*where, *how))
        assert asked == []
    assert isinstance(caught.value, OSError)
    assert not datasets.available("a")
    assert datasets.verify().to_numpy().tolist() == [["a", "f", "missing", url]]


def test_a_network_that_does_not_answer_is_an_absence(toy, monkeypatch):
    monkeypatch.setenv("PREFLEARN_OFFLINE", "0")
    toy.add("a", "f", b"1", at=None)  # port 9 of this machine: nobody listens
    with pytest.raises(DatasetUnavailable, match=r"downloading http://127.0.0.1:9/none failed"):
        read("a", "f")
    assert files_in(toy.cache) == []


# Downloads


def test_a_download_is_verified_kept_and_not_repeated(toy, monkeypatch, capfd):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    with server(b"good data") as (url, asked):
        toy.add("a", "f", b"good data", at=None, url=url)
        toy.add("a", "here", b"1")
        assert read("a", "f") == b"good data"
        assert datasets.fetch("a", progress=False) == [toy.cache / "a" / "f", toy.mirror / "a" / "here"]
        assert read("a", "f") == b"good data"
        assert len(asked) == 1
    assert [note["source"] for note in datasets.used()] == ["download"]
    assert capfd.readouterr() == ("", "")  # pages show what is printed
    assert files_in(toy.cache) == [toy.cache / "a" / "f"]


@pytest.mark.parametrize(
    ("content", "answer"),
    [(b"sign in!!", {}), (b"good", {"promised": 9}), (b"gone", {"status": 404})],
    ids=["other", "broken off", "gone"],
)
def test_a_bad_download_leaves_nothing(toy, monkeypatch, content, answer):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    with server(content, **answer) as (url, asked):
        toy.add("a", "f", b"good data", at=None, url=url)
        with pytest.raises(DatasetUnavailable, match="failed") as caught:
            datasets.fetch("a", progress=False)
        assert len(asked) == 2  # one retry
    if not answer:
        assert sha256(content) in str(caught.value)
        assert sha256(b"good data") in str(caught.value)
    assert files_in(toy.cache) == []


# The list


def test_listing_says_what_is_here(toy):
    toy.add("whole", "f", b"x" * 2_500_000)
    toy.add("split", "f", b"1")
    toy.add("split", "g", b"2", at="cache")
    toy.add("part", "f", b"1", at="cache")
    toy.add("part", "g", b"1", at=None)
    toy.add("none", "f", b"1", at=None, known=False)
    rows = datasets.listing().set_index("dataset")
    assert rows["here"].to_dict() == {"whole": 1, "split": 2, "part": 1, "none": 0}
    assert rows["megabytes"].tolist() == [2.5, 0, 0, 0]
    assert rows["files"].tolist() == [1, 2, 2, 1]
    assert set(rows["licence"]) == {"toy licence"}


# Tables of R files, parsed once


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


@pytest.mark.parametrize("name", R_LOADERS)
def test_an_r_file_is_parsed_once(toy, tmp_path, parsed, name):
    add_r_files(toy, tmp_path)
    before = sorted(toy.mirror.rglob("*"))
    first, second = load(name), load(name)
    assert len(parsed) == 1
    check_same(first, second)
    assert len([path for path in (toy.cache / name).iterdir() if path.suffix == ".npz"]) == 1
    assert sorted(toy.mirror.rglob("*")) == before


SPOILT = {
    "empty": lambda content: b"",
    "text": lambda content: b"no archive",
    "broken off": lambda content: content[:-40],
    "flipped byte": lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
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


@pytest.mark.parametrize("name", [[], {1}, np.zeros(3), "none such"])
def test_a_name_that_is_none_is_refused_and_not_noted(name):
    before = storage.unread()
    with pytest.raises(ValueError, match=r"the data set is .*; expected 'atp_tennis' or"):
        storage.available(name)
    with pytest.raises(ValueError, match=r"the file of sushi is .*; expected"):
        storage.provenance("sushi", 3.5)
    assert storage.unread() == before

"""Locations, verification, and downloads of data files, and the cache of parsed R
files."""

import time
from email.utils import formatdate
from functools import partial

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


def test_the_mirror_comes_before_the_cache_and_files_are_listed_in_the_order_of_use(
    toy,
):
    toy.add("a", "second.txt", b"in both")
    toy.put("a", "second.txt", b"in both", "cache")
    toy.add("a", "first.txt", b"cached", at="cache")
    found = [read("a", name) for name in ("first.txt", "second.txt", "first.txt")]
    assert found == [b"cached", b"in both", b"cached"]
    assert datasets.used() == [
        {
            "dataset": "a",
            "file": "first.txt",
            "sha256": sha256(b"cached"),
            "source": "cache",
        },
        {
            "dataset": "a",
            "file": "second.txt",
            "sha256": sha256(b"in both"),
            "source": "mirror",
        },
    ]
    datasets.used()[0]["source"] = "changed"
    assert datasets.used()[0]["source"] == "cache"


def test_environment_is_read_at_call_time(toy, tmp_path, monkeypatch):
    toy.add("a", "f", b"1")
    assert datasets.available("a")
    monkeypatch.chdir(tmp_path)
    # this path is relative to the current folder
    monkeypatch.setenv("PREFLEARN_DATA", "mirror")
    assert datasets.fetch("a") == [toy.mirror / "a" / "f"]
    monkeypatch.setenv("PREFLEARN_DATA", str(tmp_path / "elsewhere"))
    assert not datasets.available("a")
    with pytest.raises(DatasetUnavailable, match=r"PREFLEARN_DATA.*elsewhere"):
        read("a", "f")
    monkeypatch.delenv("PREFLEARN_DATA")
    with pytest.raises(DatasetUnavailable, match="PREFLEARN_DATA"):
        read("a", "f")


def test_provenance_lists_the_files_and_their_sources(toy):
    toy.add("a", "f", b"1")
    toy.add("a", "g", b"2")
    read("a", "g")
    rows = datasets.provenance("a")
    assert [(row["file"], row["source"]) for row in rows] == [
        ("f", "not read"),
        ("g", "mirror"),
    ]
    assert rows[1]["sha256"] == sha256(b"2")
    assert {row["licence"] for row in rows} == {"toy licence"}
    assert datasets.provenance("a", ["g"]) == rows[1:]


# Damaged files


@pytest.mark.parametrize(
    ("content", "error", "status", "words"),
    [
        (b"tampered!", CorruptedFile, "mismatch", "preflearn data fetch a"),
        (b"go", CorruptedFile, "mismatch", "2 bytes of 9.*preflearn data fetch a"),
        (None, DatasetUnavailable, "unverifiable", "readable"),  # the path is a folder
    ],
)
def test_a_damaged_file_is_named_and_not_replaced_by_the_cache(
    toy, content, error, status, words
):
    path = toy.add("a", "f", b"good data")
    toy.put("a", "f", b"good data", "cache")
    path.unlink()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    hashes = [] if content is None else [sha256(content), sha256(b"good data")]
    for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
        with pytest.raises(error, match=words) as caught:
            call()
        assert all(part in str(caught.value) for part in (str(path), *hashes))
    assert not datasets.available("a")
    assert datasets.verify("a").iloc[0]["status"] == status
    assert datasets.used() == []


# Missing files


@pytest.mark.parametrize(
    ("known", "offline"), [(True, "1"), (False, "1"), (False, "0")]
)
def test_there_is_no_download_offline_or_without_a_hash(
    toy, monkeypatch, known, offline
):
    monkeypatch.setenv("PREFLEARN_OFFLINE", offline)
    with server(b"1") as (url, asked):
        toy.add("a", "f", b"1", at=None, known=known, url=url)
        words = ["a/f", url, str(toy.cache / "a"), "toy licence"]
        words += (
            ["PREFLEARN_OFFLINE", "preflearn data fetch a"]
            if known
            else ["sha256sum f >> SHA256SUMS"]
        )
        for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
            with pytest.raises(DatasetUnavailable) as caught:
                call()
            assert [word for word in words if word not in str(caught.value)] == []
        assert asked == []
    assert not datasets.available("a")
    assert datasets.verify().to_numpy().tolist() == [["a", "f", "missing", url]]


def test_without_a_network_the_file_is_unavailable(toy, monkeypatch):
    monkeypatch.setenv("PREFLEARN_OFFLINE", "0")
    toy.add("a", "f", b"1", at=None)  # no server listens on port 9 of this computer
    with pytest.raises(DatasetUnavailable, match=r"http://127.0.0.1:9/none"):
        read("a", "f")
    assert files_in(toy.cache) == []


# Downloads


def test_a_download_is_verified_kept_and_not_repeated(toy, monkeypatch, capfd):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    with server(b"good data") as (url, asked):
        toy.add("a", "f", b"good data", at=None, url=url)
        toy.add("a", "here", b"1")
        assert read("a", "f") == b"good data"
        assert datasets.fetch("a", progress=False) == [
            toy.cache / "a" / "f",
            toy.mirror / "a" / "here",
        ]
        assert read("a", "f") == b"good data"
        assert len(asked) == 1
    assert [note["source"] for note in datasets.used()] == ["download"]
    assert capfd.readouterr() == ("", "")  # the book would show any output
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
        with pytest.raises(DatasetUnavailable, match=url) as caught:
            datasets.fetch("a", progress=False)
        assert len(asked) == 1
    if not answer:
        assert sha256(content) in str(caught.value)
        assert sha256(b"good data") in str(caught.value)
    assert files_in(toy.cache) == []


# Several addresses


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [(b"sign in!!", 200, "hash"), (b"", 404, "404"), (b"", 500, "500")],
)
def test_the_next_address_is_asked_when_one_has_other_bytes_or_none(
    toy, monkeypatch, content, status, words
):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    with (
        server(content, status) as (bad, asked_bad),
        server(b"good data") as (good, asked),
    ):
        toy.add("a", "f", b"good data", at=None, url=f"{bad} {good}")
        assert datasets.fetch("a", progress=False) == [toy.cache / "a" / "f"]
        assert (len(asked_bad), len(asked)) == (1, 1)
        toy.add(
            "b",
            "f",
            b"other data",
            at=None,
            url=f"{bad} http://127.0.0.1:9/none {good}",
        )
        with pytest.raises(DatasetUnavailable) as caught:
            read("b", "f")
    message = str(caught.value)
    assert (
        message.index(bad)
        < message.index("http://127.0.0.1:9/none")
        < message.index(good)
    )
    assert words in message
    assert sha256(b"good data") in message, "what the last address sent"
    assert files_in(toy.cache / "b") == []


def test_software_heritage_is_asked_by_hash_for_a_file_of_a_public_repository(
    toy, monkeypatch
):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    with server(status=404) as (gone, _), server(b"good data") as (archive, asked):
        monkeypatch.setattr(registry, "_REPOSITORIES", (gone,))
        monkeypatch.setattr(
            registry, "SOFTWARE_HERITAGE", f"{archive}/sha256:{{}}/raw/"
        )
        toy.add("a", "f", b"good data", at=None, url=gone)
        assert read("a", "f") == b"good data"
        assert asked == [f"/file/sha256:{sha256(b'good data')}/raw/"]
        toy.add("a", "elsewhere", b"good data", at=None, url=f"{archive}-2")
        read("a", "elsewhere")
        assert asked[1:] == ["/file-2"], "not from a repository: no second address"


def in_seconds(seconds, name):
    """Return a header that asks for another attempt after a number of seconds."""
    when = time.time() + seconds
    kinds = {"Retry-After": str(seconds), "date": formatdate(when, usegmt=True)}
    kinds["X-RateLimit-Reset"] = str(int(when))
    return {name.replace("date", "Retry-After"): kinds[name], "Content-Length": "0"}


@pytest.mark.parametrize("name", ["Retry-After", "date", "X-RateLimit-Reset"])
def test_a_server_that_was_asked_too_often_is_asked_again_after_a_short_wait(
    toy, monkeypatch, name
):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    waits = []
    monkeypatch.setattr(storage.time, "sleep", waits.append)
    with server(b"good data", answers=[(429, in_seconds(19, name))]) as (url, asked):
        toy.add("a", "f", b"good data", at=None, url=url)
        assert read("a", "f") == b"good data"
        assert len(asked) == 2
    (wait,) = waits
    assert 5 < wait <= 19 < storage.MAX_WAIT


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        (
            partial(in_seconds, 3000, "X-RateLimit-Reset"),
            r"429.*try again after \d{4}-\d\d-\d\d \d\d:\d\d UTC",
        ),
        (partial(in_seconds, 3000, "date"), r"429.*try again after .* UTC"),
        (
            partial(dict, {"Retry-After": "soon", "Content-Length": "0"}),
            "429.*try again later",
        ),
        (partial(dict, {"Content-Length": "0"}), "429.*try again later"),
    ],
)
def test_a_long_wait_is_named_and_not_waited_for(toy, monkeypatch, headers, words):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    monkeypatch.setattr(storage.time, "sleep", lambda _: pytest.fail("it waited"))
    # Hours can pass between the collection of tests and this call.
    with server(b"good data", answers=[(429, headers())]) as (url, asked):
        toy.add("a", "f", b"good data", at=None, url=url)
        with pytest.raises(DatasetUnavailable, match=words):
            read("a", "f")
        assert len(asked) == 1
        assert read("a", "f") == b"good data"


# The list of data sets


def test_the_listing_counts_files_sizes_and_what_is_here(toy):
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
    assert set(rows["seen"]) == {"2000-01-01"}


# Tables of R files, parsed once


R_LOADERS = ("nba", "auto", "diabetes", "mixture")


@pytest.fixture
def parsed(monkeypatch):
    """Collect the contents of each file that is parsed from now on."""
    seen = []
    parse = storage._r_objects
    monkeypatch.setattr(
        storage, "_r_objects", lambda content: seen.append(content) or parse(content)
    )
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
    first = load(name)
    second = load(name)
    assert len(parsed) == 1
    check_same(first, second)
    assert (
        len([path for path in (toy.cache / name).iterdir() if path.suffix == ".npz"])
        == 1
    )
    assert sorted(toy.mirror.rglob("*")) == before


DAMAGE = {
    "empty": lambda content: b"",
    "incomplete": lambda content: content[:-40],
    "flipped byte": lambda content: (
        content[:200] + bytes([content[200] ^ 1]) + content[201:]
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cached_table_is_parsed_again(toy, tmp_path, parsed, damage):
    add_r_files(toy, tmp_path)
    expected = load("nba")
    (kept,) = (toy.cache / "nba").iterdir()
    kept.write_bytes(DAMAGE[damage](kept.read_bytes()))
    check_same(load("nba"), expected)
    check_same(load("nba"), expected)
    assert len(parsed) == 2, "the cached table was replaced"


def test_without_a_cache_a_file_is_parsed_each_time(toy, tmp_path, parsed):
    """The path of the cache folder is a file, which stops even root."""
    add_r_files(toy, tmp_path)
    toy.cache.write_text("")
    check_same(load("nba"), load("nba"))
    assert len(parsed) == 2


def test_a_changed_file_is_parsed_again(toy, tmp_path, parsed):
    add_r_files(toy, tmp_path)
    load("nba")
    add_r_files(toy, tmp_path, score=91.0)
    assert load("nba").matches["first_score"].tolist() == [2, 91]
    assert len(parsed) == 2


def test_a_cached_table_does_not_replace_the_verified_file(toy, tmp_path):
    add_r_files(toy, tmp_path)
    load("nba")
    path = toy.mirror / "nba" / "nba_elo.rda"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(CorruptedFile, match=r"nba_elo.rda"):
        load("nba")
    path.unlink()
    with pytest.raises(DatasetUnavailable):
        load("nba")


@pytest.mark.parametrize("name", [[], {1}, np.zeros(3), "none such"])
def test_a_bad_name_is_rejected_and_not_listed_as_unread(name):
    before = storage.unread()
    with pytest.raises(ValueError, match=r"data set.*'atp_tennis'"):
        storage.available(name)
    with pytest.raises(ValueError, match="file of sushi"):
        storage.provenance("sushi", 3.5)
    assert storage.unread() == before

import re
import tomllib

import pytest
from toy_register import Toy, server, sha256

from preflearn import datasets
from preflearn.datasets import CorruptedFile, DatasetUnavailable, registry
from preflearn.datasets.storage import read


@pytest.fixture
def toy(tmp_path, monkeypatch):
    return Toy(tmp_path, monkeypatch)


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


# The register


def test_the_register_is_complete_and_its_hashes_are_hashes():
    entries = registry.registered_files()
    assert len({(entry.dataset, entry.file) for entry in entries}) == len(entries)
    for entry in entries:
        assert re.match(r"https?://", entry.url)
        assert entry.licence
        assert entry.citation
        assert entry.url.endswith(f"/{entry.file}")
        if entry.dataset == "chess":  # nobody has recorded these
            assert (entry.sha256, entry.bytes) == ("", None)
        else:
            assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
            assert entry.bytes > 0
    counts = {name: len(registry.files_of(name)) for name in registry.dataset_names()}
    assert counts["atp_tennis"] == 81
    assert counts["object_ranking"] == len(datasets.OBJECT_RANKINGS) == 17


@pytest.mark.parametrize(
    "call", [datasets.available, datasets.fetch, datasets.verify, datasets.provenance, registry.files_of]
)
def test_an_unknown_data_set_is_answered_with_the_known_ones(call):
    with pytest.raises(ValueError, match=r"unknown data set 'shushi'; expected one of .*'sushi'"):
        call("shushi")


def test_an_unknown_file_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'starcraft' has no file 'LotV.txt'.*'WoL.txt', 'HotS.txt'"):
        read("starcraft", "LotV.txt")


def test_an_installation_carries_what_the_package_reads(monkeypatch, tmp_path):
    root = registry._PACKAGE.parents[1]
    carried = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    for name in ("registry.csv", "prefectures.csv"):
        path = registry.package_file(name)
        target = carried["targets"]["wheel"]["force-include"][path.relative_to(root).as_posix()]
        installed = tmp_path / target
        installed.parent.mkdir(parents=True, exist_ok=True)
        installed.write_bytes(path.read_bytes())
    monkeypatch.setattr(registry, "_PACKAGE", tmp_path / "preflearn")
    assert registry.package_file("prefectures.csv") == tmp_path / "preflearn/_files/data/prefectures.csv"
    assert registry.registered_files.__wrapped__() == registry.registered_files()
    installed.unlink()
    with pytest.raises(FileNotFoundError, match=r"data/prefectures.csv is missing .* install it again"):
        registry.package_file("prefectures.csv")


# Where files are found


def test_the_mirror_comes_before_the_cache_and_use_is_noted_in_order(toy):
    toy.add("a", "second.txt", b"in both")
    toy.put("a", "second.txt", b"in both", "cache")
    toy.add("a", "first.txt", b"cached", at="cache")
    assert [read("a", "first.txt"), read("a", "second.txt"), read("a", "first.txt")] == [
        b"cached",
        b"in both",
        b"cached",
    ]
    assert datasets.used() == [
        {"dataset": "a", "file": "first.txt", "sha256": sha256(b"cached"), "source": "cache"},
        {"dataset": "a", "file": "second.txt", "sha256": sha256(b"in both"), "source": "mirror"},
    ]
    datasets.used()[0]["source"] = "changed"
    assert datasets.used()[0]["source"] == "cache"


def test_environment_is_read_at_call_time(toy, tmp_path, monkeypatch):
    toy.add("a", "f", b"1")
    assert datasets.available("a")
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
    ("content", "words"), [(b"tampered!", r"9 bytes of 9\)"), (b"go", r"2 bytes of 9\)")]
)
def test_damage_in_the_mirror_is_named_and_the_cache_is_no_way_out(toy, content, words):
    path = toy.add("a", "f", b"good data")
    toy.put("a", "f", b"good data", "cache")
    path.write_bytes(content)
    with pytest.raises(CorruptedFile, match=words) as caught:
        read("a", "f")
    for part in (str(path), sha256(content), sha256(b"good data"), "preflearn data fetch a"):
        assert part in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert not datasets.available("a")
    with pytest.raises(CorruptedFile, match=words):
        datasets.fetch("a")
    row = datasets.verify("a").iloc[0]
    assert row["status"] == "mismatch"
    assert sha256(content) in row["detail"]
    assert datasets.used() == []


def test_damage_after_a_check_is_seen(toy):
    path = toy.add("a", "f", b"good data")
    assert datasets.available("a")
    path.write_bytes(b"bad data")
    assert not datasets.available("a")
    path.write_bytes(b"good data")
    assert datasets.available("a")


def test_what_is_no_readable_file_is_named(toy):
    path = toy.add("a", "f", b"good data")
    toy.put("a", "f", b"good data", "cache")  # which is no way out
    path.unlink()
    path.mkdir()
    for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
        with pytest.raises(DatasetUnavailable, match=r"can't be read \(.*\): make it readable") as caught:
            call()
        assert str(path) in str(caught.value)
    assert not datasets.available("a")
    assert datasets.verify("a")["status"].tolist() == ["unverifiable"]


def test_a_relative_mirror_is_that_of_the_folder_where_one_asks(toy, tmp_path, monkeypatch):
    toy.add("a", "f", b"1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFLEARN_DATA", "mirror")
    assert read("a", "f") == b"1"
    assert datasets.fetch("a") == [toy.mirror / "a" / "f"]


# Absence


def test_offline_asks_nobody_and_says_what_to_do(toy):
    with server(b"1") as (url, asked):
        toy.add("a", "f", b"1", at=None, url=url)
        for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
            with pytest.raises(DatasetUnavailable) as caught:
                call()
            for part in ("a/f", "PREFLEARN_OFFLINE", "preflearn data fetch a", url, "Licence: toy licence"):
                assert part in str(caught.value)
        assert asked == []
    assert isinstance(caught.value, OSError)
    assert not datasets.available("a")
    assert datasets.verify().to_dict("records") == [
        {"dataset": "a", "file": "f", "status": "missing", "detail": url}
    ]


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


# Files whose hash nobody registered


def test_an_unregistered_hash_is_never_downloaded(toy, monkeypatch):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    with server(b"1") as (url, asked):
        toy.add("a", "f", b"1", at=None, known=False, url=url)
        for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
            with pytest.raises(DatasetUnavailable, match="downloads nothing that it can't verify") as caught:
                call()
            assert f"put {url} into {toy.cache / 'a'}" in str(caught.value)
            assert "sha256sum f >> SHA256SUMS" in str(caught.value)
        assert asked == []


@pytest.mark.parametrize("at", ["mirror", "cache"])
@pytest.mark.parametrize("line", ["{}  f\n", "{} *f\n", "0  f\n{}  f", "0  other f\n\n{}  f\n"])
def test_an_unregistered_hash_counts_once_its_user_records_it(toy, at, line):
    path = toy.add("a", "f", b"trusted", at=at, known=False)
    assert datasets.verify("a")["status"].tolist() == ["unverifiable"]
    assert not datasets.available("a")
    for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
        with pytest.raises(DatasetUnavailable, match="its SHA-256 is not recorded"):
            call()
    sums = path.with_name("SHA256SUMS")
    sums.write_text(line.format(sha256(b"trusted").upper()))
    assert read("a", "f") == b"trusted"
    assert datasets.fetch("a") == [path]
    assert datasets.available("a")
    path.write_bytes(b"changed")
    with pytest.raises(CorruptedFile, match=re.escape(f"or correct {sums}")):
        read("a", "f")


@pytest.mark.parametrize("content", [b"\x00\xff", b"", "{}  f\n".encode("utf-16"), None])
def test_a_list_of_hashes_that_can_not_be_read_records_none(toy, content):
    path = toy.add("a", "f", b"trusted", known=False)
    sums = path.with_name("SHA256SUMS")
    sums.mkdir() if content is None else sums.write_bytes(content)
    with pytest.raises(DatasetUnavailable, match="its SHA-256 is not recorded"):
        read("a", "f")


@pytest.mark.parametrize("form", ["\ufeff{}  f\n", "{}  f\r\n", "# trusted\n\n{}  f"])
def test_a_list_of_hashes_from_another_system_is_read(toy, form):
    path = toy.add("a", "f", b"trusted", known=False)
    path.with_name("SHA256SUMS").write_bytes(form.format(sha256(b"trusted")).encode())
    assert read("a", "f") == b"trusted"


def test_a_users_record_does_not_replace_a_registered_hash(toy):
    path = toy.add("a", "f", b"good data")
    path.write_bytes(b"other")
    path.with_name("SHA256SUMS").write_text(f"{sha256(b'other')}  f\n")
    with pytest.raises(CorruptedFile, match=sha256(b"good data")):
        read("a", "f")


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

import gzip
import multiprocessing
import os
import re
import signal
import threading
import tomllib
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pooch
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
    with pytest.raises(DatasetUnavailable, match=r"PREFLEARN_DATA names .*elsewhere, which is no folder"):
        read("a", "f")
    monkeypatch.delenv("PREFLEARN_DATA")
    with pytest.raises(DatasetUnavailable, match=r"PREFLEARN_DATA names no mirror"):
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
    ("content", "words"),
    [(b"tampered!", "is not the file that is expected"), (b"go", "truncated .2 of 9 bytes")],
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


@pytest.mark.parametrize("at", ["mirror", "cache"])
def test_a_file_larger_than_registered_is_not_read(toy, at):
    path = toy.add("a", "f", b"good data", at=at)
    with path.open("r+b") as stream:
        stream.truncate(15 * 10**9)  # a hole, which takes no space
    for call in (read, lambda dataset, _: datasets.fetch(dataset)):
        with pytest.raises(
            CorruptedFile, match="is too large: it has 15000000000 bytes, expected at most 9; delete"
        ):
            call("a", "f")
    assert not datasets.available("a")
    assert datasets.verify("a")["status"].tolist() == ["mismatch"]


def test_a_size_that_nobody_registered_has_a_limit(toy, monkeypatch):
    path = toy.add("a", "f", b"x" * 101, known=False)
    record(path, sha256(b"x" * 101))
    assert len(read("a", "f")) == 101
    monkeypatch.setattr(registry, "LARGEST", 100)
    with pytest.raises(CorruptedFile, match="101 bytes, expected at most 100; put the file back"):
        read("a", "f")


def test_a_special_file_whose_size_lies_is_read_to_the_limit_only(toy):
    endless = Path("/proc/self/environ")
    if not (endless.is_file() and endless.stat().st_size == 0):
        pytest.skip("no file here says that it is empty, and is not")
    path = toy.add("a", "f", b"9")
    path.unlink()
    path.symlink_to(endless)
    with pytest.raises(CorruptedFile, match="is too large"):
        read("a", "f")


def make_folder(path):
    path.unlink()
    path.mkdir()


def make_device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def make_loop(path):
    path.unlink()
    path.symlink_to(path)


def make_unreadable(path):
    path.chmod(0)


def make_folder_unreadable(path):
    path.parent.chmod(0)


@contextmanager
def bound_by_permissions(folder):
    """As somebody who is not root, whom no permission binds; the folder becomes that user's."""
    if os.geteuid():
        yield
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("damage", "kind", "words"),
    [
        (make_folder, CorruptedFile, "is a folder or a device, expected a file; delete it"),
        (make_device, CorruptedFile, "is a folder or a device, expected a file; delete it"),
        (make_loop, DatasetUnavailable, r"can't be read \(.*symbolic links\): make it readable"),
        (make_unreadable, DatasetUnavailable, r"can't be read \(Permission denied\): make it readable"),
        (
            make_folder_unreadable,
            DatasetUnavailable,
            r"can't be read \(Permission denied\): make it readable",
        ),
    ],
)
def test_what_is_no_readable_file_is_named(monkeypatch, damage, kind, words):
    with TemporaryDirectory() as folder:  # not in tmp_path, whose parents are its owner's alone
        Path(folder).chmod(0o755)
        toy = Toy(Path(folder), monkeypatch)
        path = toy.add("a", "f", b"good data")
        toy.put("a", "f", b"good data", "cache")  # which is no way out
        with bound_by_permissions(Path(folder)):
            damage(path)
            for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
                with pytest.raises(kind, match=words) as caught:
                    call()
                assert str(path) in str(caught.value)
            assert not datasets.available("a")
            status = {CorruptedFile: "mismatch", DatasetUnavailable: "unverifiable"}[kind]
            assert datasets.verify("a")["status"].tolist() == [status]
            assert datasets.listing()["here"].tolist() == ["mirror"]
            path.parent.chmod(0o755)


def test_a_mirror_whose_name_is_too_long_is_named(toy, monkeypatch):
    toy.add("a", "f", b"1")
    monkeypatch.setenv("PREFLEARN_DATA", "x" * 5000)
    with pytest.raises(DatasetUnavailable, match=r"x/a/f can't be read \(File name too long\)"):
        read("a", "f")


def test_a_relative_mirror_is_that_of_the_first_use(toy, tmp_path, monkeypatch):
    toy.add("a", "f", b"1")
    toy.add("a", "g", b"2")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFLEARN_DATA", "mirror")
    registry._absolute.cache_clear()
    assert read("a", "f") == b"1"
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert read("a", "g") == b"2"
    assert datasets.fetch("a") == [toy.mirror / "a" / "f", toy.mirror / "a" / "g"]
    assert not any("mirror/" in str(note) for note in datasets.used() + list(datasets.provenance("a")))
    registry._absolute.cache_clear()


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


def test_a_download_is_verified_kept_and_not_repeated(toy, monkeypatch):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    before = pooch.get_logger().level
    with server(b"good data") as (url, asked):
        toy.add("a", "f", b"good data", at=None, url=url)
        toy.add("a", "here", b"1")
        assert read("a", "f") == b"good data"
        assert datasets.fetch("a", progress=False) == [toy.cache / "a" / "f", toy.mirror / "a" / "here"]
        assert read("a", "f") == b"good data"
        assert len(asked) == 1
    assert [note["source"] for note in datasets.used()] == ["download"]
    assert files_in(toy.cache) == [toy.cache / "a" / "f"]
    assert pooch.get_logger().level == before


@pytest.mark.parametrize(
    ("content", "answer"),
    [(b"sign in!!", {}), (b"good", {"promised": 9}), (b"good", {}), (b"gone", {"status": 404})],
    ids=["other", "broken off", "short", "gone"],
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


def write_without_end(stream):
    for _ in range(10**6):
        stream.write(b"x" * 10_000)


def write_chunks_without_end(stream):
    for _ in range(10**6):
        stream.write(b"2710\r\n" + b"x" * 10_000 + b"\r\n")


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, write_without_end),
        ({"Content-Length": str(10**12)}, write_without_end),
        ({"Content-Length": "-9"}, write_without_end),
        ({"Transfer-Encoding": "chunked"}, write_chunks_without_end),
        (
            {"Content-Encoding": "gzip"},
            lambda stream: stream.write(gzip.compress(bytes(5_000_000))),
        ),
    ],
    ids=["no length", "a long one", "a false one", "chunks", "a small archive of much"],
)
def test_a_download_stops_at_the_registered_size(toy, monkeypatch, headers, body):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    with server(headers=headers, body=body) as (url, _):
        toy.add("a", "f", b"good data", at=None, url=url)
        with pytest.raises(DatasetUnavailable, match="stopped, since more than the registered 9 bytes came"):
            read("a", "f")
    assert files_in(toy.cache) == []


def test_a_length_that_is_no_number_is_an_absence(toy, monkeypatch):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    with server(b"good data", headers={"Content-Length": "nine"}) as (url, _):
        toy.add("a", "f", b"good data", at=None, url=url)
        with pytest.raises(DatasetUnavailable, match=r"downloading .* failed"):
            read("a", "f")


def in_another_process(work):
    """A process like this one, with what the test has patched."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system can't fork")
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def test_a_download_killed_half_way_leaves_nothing(toy, monkeypatch):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    half, rest = threading.Event(), threading.Event()

    def slowly(stream):
        stream.write(b"good")
        stream.flush()
        half.set()
        rest.wait(20)
        stream.write(b" data")

    with server(headers={"Content-Length": "9"}, body=slowly) as (url, asked):
        toy.add("a", "f", b"good data", at=None, url=url)
        process = in_another_process(lambda: read("a", "f"))
        assert half.wait(20)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert files_in(toy.cache) == []
        rest.set()
        assert read("a", "f") == b"good data"
        assert len(asked) == 2
    assert files_in(toy.cache) == [toy.cache / "a" / "f"]


def test_what_was_killed_as_it_wrote_is_cleaned_by_a_later_download(toy, monkeypatch):
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    with server(b"good data") as (url, _):
        for file in ("f", "g", "h"):
            toy.add("a", file, b"good data", at=None, url=url)
        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            process = in_another_process(lambda: read("a", "f"))
            process.join()
        assert process.exitcode == -signal.SIGKILL
        (left,) = toy.cache.glob("a/.incoming-*")
        assert files_in(left) == [left / "f"]
        read("a", "g")
        assert left.exists()  # for all that one knows, that process is still at it
        os.utime(left, (0, 0))
        read("a", "h")
    assert sorted(files_in(toy.cache)) == [toy.cache / "a" / "g", toy.cache / "a" / "h"]


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


def record(path, line):
    path.with_name("SHA256SUMS").write_bytes(f"{line}  {path.name}\n".encode())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{}  f\n".encode("utf-16"), r"SHA256SUMS is no UTF-8 text \(byte 0\); write it anew; put"),
        (b"\x00\xff", "SHA256SUMS is no UTF-8 text"),
        (b"deadbeef  f\n", "SHA256SUMS records 'deadbeef' for f, expected 64 hexadecimal digits; put"),
        (b"x" * 64 + b" *f\n", "SHA256SUMS records 'xxx"),
        (b"0" * (2**20 + 1), "SHA256SUMS is too large: it has 1048577 bytes, expected at most 1048576"),
        (None, "SHA256SUMS is a folder"),
    ],
    ids=["UTF-16", "binary", "short", "letters", "large", "folder"],
)
def test_a_damaged_list_of_hashes_is_named(toy, content, words):
    path = toy.add("a", "f", b"trusted", known=False)
    sums = path.with_name("SHA256SUMS")
    sums.mkdir() if content is None else sums.write_bytes(content)
    for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
        with pytest.raises(CorruptedFile, match=words):
            call()
    assert not datasets.available("a")
    assert datasets.verify("a")["status"].tolist() == ["mismatch"]


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


def test_listing_says_what_is_where(toy):
    toy.add("whole", "f", b"x" * 2_500_000)
    toy.add("split", "f", b"1")
    toy.add("split", "g", b"2", at="cache")
    toy.add("part", "f", b"1", at="cache")
    toy.add("part", "g", b"1", at=None)
    toy.add("none", "f", b"1", at=None, known=False)
    rows = datasets.listing().set_index("dataset")
    assert rows["here"].to_dict() == {
        "whole": "mirror",
        "split": "mirror, cache",
        "part": "in part",
        "none": "no",
    }
    assert rows["megabytes"].to_dict() == {
        "whole": "2.50",
        "split": "0.00",
        "part": "0.00",
        "none": "unknown",
    }
    assert rows["files"].tolist() == [1, 2, 2, 1]
    assert set(rows["licence"]) == {"toy licence"}

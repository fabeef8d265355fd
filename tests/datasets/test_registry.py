import re
import tomllib

import pytest
from toy_register import sha256

from preflearn import datasets
from preflearn.datasets import CorruptedFile, DatasetUnavailable, registry
from preflearn.datasets.storage import read


def test_the_register_is_complete_and_its_hashes_are_hashes():
    entries = registry.registered_files()
    assert len({(entry.dataset, entry.file) for entry in entries}) == len(entries)
    for entry in entries:
        assert re.match(r"https?://", entry.url)
        assert entry.licence
        assert entry.citation
        assert entry.url.endswith(f"/{entry.file}")
        if entry.dataset == "chess":  # nobody has recorded these
            assert (entry.sha256, entry.bytes) == ("", "")
        else:
            assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
            assert int(entry.bytes) > 0
    counts = {name: len(registry.files_of(name)) for name in registry.dataset_names()}
    assert counts["atp_tennis"] == 81
    assert counts["object_ranking"] == len(datasets.OBJECT_RANKINGS) == 17


@pytest.mark.parametrize(
    "call", [datasets.available, datasets.fetch, datasets.verify, datasets.provenance, registry.files_of]
)
def test_an_unknown_data_set_is_answered_with_the_known_ones(call):
    with pytest.raises(ValueError, match=r"the data set is 'shushi'; expected .*'sushi'"):
        call("shushi")


def test_an_unknown_file_is_answered_with_the_known_ones():
    message = r"file of starcraft is .LotV.txt.; expected .WoL.txt. or .HotS.txt."
    with pytest.raises(ValueError, match=message):
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


# Files whose hash nobody registered


@pytest.mark.parametrize("at", ["mirror", "cache"])
@pytest.mark.parametrize(
    "line",
    ["{} *f\n", "0  f\n{}  f", "0  other f\n\n{}  f\n", "\ufeff{}  f\n", "{}  f\r\n", "# trusted\n\n{}  f"],
)
def test_an_unregistered_hash_counts_once_its_user_records_it(toy, at, line):
    path = toy.add("a", "f", b"trusted", at=at, known=False)
    assert datasets.verify("a")["status"].tolist() == ["unverifiable"]
    assert not datasets.available("a")
    for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
        with pytest.raises(DatasetUnavailable, match="its SHA-256 is not recorded"):
            call()
    sums = path.with_name("SHA256SUMS")
    sums.write_bytes(line.format(sha256(b"trusted").upper()).encode())
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


def test_a_users_record_does_not_replace_a_registered_hash(toy):
    path = toy.add("a", "f", b"good data")
    path.write_bytes(b"other")
    path.with_name("SHA256SUMS").write_text(f"{sha256(b'other')}  f\n")
    with pytest.raises(CorruptedFile, match=sha256(b"good data")):
        read("a", "f")

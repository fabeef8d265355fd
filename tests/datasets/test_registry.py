"""The register of data files, and hashes that users record."""

import re
import tomllib

import pytest
from toy_register import sha256

from preflearn import datasets
from preflearn.datasets import CorruptedFile, DatasetUnavailable, registry
from preflearn.datasets.storage import read


def test_each_registered_file_has_an_address_a_licence_a_citation_and_a_hash():
    entries = registry.registered_files()
    assert len({(entry.dataset, entry.file) for entry in entries}) == len(entries)
    for entry in entries:
        assert all(re.match(r"https?://", url) for url in entry.urls.split())
        assert entry.licence
        assert entry.citation
        assert entry.url.endswith(f"/{entry.file}")
        if entry.dataset == "chess":  # the hashes of these files are unknown
            assert (entry.sha256, entry.bytes, entry.seen, entry.addresses) == (
                "",
                "",
                "",
                [],
            )
        else:
            assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
            assert int(entry.bytes) > 0
            # the date of these files is unknown
            if entry.dataset == "lightgbm_ranking":
                assert entry.seen == ""
            else:
                assert re.fullmatch(
                    r"\d{4}-\d\d-\d\d(; reported as gone on \d{4}-\d\d-\d\d)?",
                    entry.seen,
                )
            assert entry.addresses == [
                entry.url,
                registry.SOFTWARE_HERITAGE.format(entry.sha256),
            ]
    assert len(registry.files_of("object_ranking")) == len(datasets.OBJECT_RANKINGS)


@pytest.mark.parametrize(
    "call",
    [
        datasets.available,
        datasets.fetch,
        datasets.verify,
        datasets.provenance,
        registry.files_of,
    ],
)
def test_the_error_for_an_unknown_data_set_lists_the_known_ones(call):
    with pytest.raises(ValueError, match=r"'shushi'.*'sushi'"):
        call("shushi")


def test_the_error_for_an_unknown_file_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'LotV.txt'.*'WoL.txt'"):
        read("starcraft", "LotV.txt")


def test_the_wheel_contains_the_files_that_the_package_reads(monkeypatch, tmp_path):
    root = registry._PACKAGE.parents[1]
    carried = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))[
        "tool"
    ]["hatch"]["build"]
    for name in ("registry.csv", "prefectures.csv"):
        path = registry.package_file(name)
        target = carried["targets"]["wheel"]["force-include"][
            path.relative_to(root).as_posix()
        ]
        installed = tmp_path / target
        installed.parent.mkdir(parents=True, exist_ok=True)
        installed.write_bytes(path.read_bytes())
    monkeypatch.setattr(registry, "_PACKAGE", tmp_path / "preflearn")
    assert (
        registry.package_file("prefectures.csv")
        == tmp_path / "preflearn/_files/data/prefectures.csv"
    )
    assert registry.registered_files.__wrapped__() == registry.registered_files()
    installed.unlink()
    with pytest.raises(FileNotFoundError, match=r"prefectures.csv.*install"):
        registry.package_file("prefectures.csv")


@pytest.mark.parametrize("dataset", registry.dataset_names())
def test_a_command_is_advised_only_if_it_can_download_the_files(dataset):
    text = registry.how_to_get(dataset, "FOLDER")
    if all(entry.addresses for entry in registry.files_of(dataset)):
        assert text == f"preflearn data fetch {dataset}"
    else:
        assert "preflearn data fetch" not in text
        names = [f"FOLDER/{dataset}", "SHA256SUMS"]
        for entry in registry.files_of(dataset):
            names += [entry.file, entry.url.removesuffix(f"/{entry.file}")]
        assert [name for name in names if name not in text] == []


# Files without a registered hash


@pytest.mark.parametrize(
    "line",
    [
        "{} *f\n",
        "0  f\n{}  f",
        "0  other f\n\n{}  f\n",
        "\ufeff{}  f\n",
        "{}  f\r\n",
        "# trusted\n\n{}  f",
    ],
)
def test_a_hash_counts_once_its_user_has_recorded_it(toy, line):
    path = toy.add(
        "a", "f", b"trusted", at="cache" if line == "{} *f\n" else "mirror", known=False
    )
    assert datasets.verify("a")["status"].tolist() == ["unverifiable"]
    assert not datasets.available("a")
    for call in (lambda: read("a", "f"), lambda: datasets.fetch("a")):
        with pytest.raises(DatasetUnavailable, match="SHA256SUMS"):
            call()
    sums = path.with_name("SHA256SUMS")
    sums.write_bytes(line.format(sha256(b"trusted").upper()).encode())
    assert read("a", "f") == b"trusted"
    assert datasets.fetch("a") == [path]
    assert datasets.available("a")
    path.write_bytes(b"changed")
    with pytest.raises(CorruptedFile, match=re.escape(str(sums))):
        read("a", "f")


@pytest.mark.parametrize(
    "content", [b"\x00\xff", b"", "{}  f\n".encode("utf-16"), None]
)
def test_an_unreadable_list_of_hashes_counts_as_empty(toy, content):
    path = toy.add("a", "f", b"trusted", known=False)
    sums = path.with_name("SHA256SUMS")
    if content is None:
        sums.mkdir()
    else:
        sums.write_bytes(content)
    with pytest.raises(DatasetUnavailable, match="SHA256SUMS"):
        read("a", "f")


def test_a_hash_that_a_user_records_does_not_replace_the_registered_one(toy):
    path = toy.add("a", "f", b"good data")
    path.write_bytes(b"other")
    path.with_name("SHA256SUMS").write_text(f"{sha256(b'other')}  f\n")
    with pytest.raises(CorruptedFile, match=sha256(b"good data")):
        read("a", "f")

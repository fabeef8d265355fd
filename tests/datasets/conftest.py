"""A register of toy files in place of the real one, and the real data if they are here."""

import pytest
from toy_register import Toy

from preflearn import datasets


@pytest.fixture
def toy(tmp_path, monkeypatch):
    return Toy(tmp_path, monkeypatch)


@pytest.fixture
def load(monkeypatch):
    """Return what a loader returns; if the data are not here, check the error and skip
    the test."""
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")

    def load(dataset, loader, *arguments):
        if datasets.available(dataset):
            result = loader(*arguments)
            assert {row["source"] for row in result.provenance} <= {"mirror", "cache"}
            return result
        with pytest.raises(
            datasets.DatasetUnavailable, match=rf"{dataset}/.*PREFLEARN_OFFLINE"
        ):
            loader(*arguments)
        return pytest.skip(f"{dataset} is not here")

    return load

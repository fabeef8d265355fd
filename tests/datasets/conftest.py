"""A register of toy files in place of the real one, and the real data."""

import pytest
from toy_register import Toy

from preflearn import datasets


@pytest.fixture
def toy(tmp_path, monkeypatch):
    return Toy(tmp_path, monkeypatch)


@pytest.fixture
def load(monkeypatch):
    """What a loader gives; where the data are not here it says so, and the test ends."""
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")

    def load(dataset, loader, *arguments):
        if datasets.available(dataset):
            result = loader(*arguments)
            assert {row["source"] for row in result.provenance} <= {"mirror", "cache"}
            return result
        with pytest.raises(datasets.DatasetUnavailable, match=rf"{dataset}/.*PREFLEARN_OFFLINE.*Licence: "):
            loader(*arguments)
        return pytest.skip(f"{dataset} is not here")

    return load

"""A register of toy files that replaces the real one, and the real data if they are
available."""

import pytest
from toy_register import Toy

from preflearn import datasets


@pytest.fixture
def toy(tmp_path, monkeypatch):
    return Toy(tmp_path, monkeypatch)


@pytest.fixture
def load(monkeypatch):
    """Return the result of a loader. If the data are not available, check the error and
    skip the test."""
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

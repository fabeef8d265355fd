"""A register of toy files in place of the real one."""

import pytest
from toy_register import Toy


@pytest.fixture
def toy(tmp_path, monkeypatch):
    return Toy(tmp_path, monkeypatch)

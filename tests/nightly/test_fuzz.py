"""Many calls of all public names with hostile arguments, made as in ``python -m
tests.fuzz``."""

from importlib import import_module

import pytest

pytestmark = pytest.mark.nightly


def test_two_thousand_calls_end_in_answers_or_promised_errors():
    made = import_module("fuzz.__main__").fuzz(2000, seed=0)
    assert [call for call in made if call["outcome"].startswith("BAD")] == []
    assert len(made) >= 2000

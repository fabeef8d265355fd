"""How many examples a property test tries."""

from hypothesis import settings

_USUAL = 25


def examples(count: int) -> settings:
    """Try `count` examples on a commit, and in proportion under another hypothesis profile."""
    factor = settings.default.max_examples / _USUAL
    return settings(max_examples=round(count * factor))

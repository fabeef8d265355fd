"""Set the number of examples of a property test."""

from hypothesis import settings

_COMMIT_EXAMPLES = settings.get_profile("commit").max_examples


def examples(count: int) -> settings:
    """Return settings with `count` examples on a commit, scaled with those of the
    active profile."""
    factor = settings.default.max_examples / _COMMIT_EXAMPLES
    return settings(max_examples=round(count * factor))

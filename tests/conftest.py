"""Property tests run without a deadline: a slow machine is no failure."""

from hypothesis import settings

settings.register_profile("preflearn", deadline=None)
settings.load_profile("preflearn")

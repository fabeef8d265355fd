"""One thread in each numerical library unless the user says otherwise; property tests without a deadline."""

import os

from hypothesis import settings

from bookrunner.project import THREAD_VARIABLES

for name in THREAD_VARIABLES:  # which NumPy and Numba read when they are imported
    os.environ.setdefault(name, "1")

# A slow machine is no failure.
settings.register_profile("preflearn", deadline=None)
settings.load_profile("preflearn")

"""One thread in each numerical library unless the user says otherwise; property tests without a deadline."""

import os

from hypothesis import settings

from bookrunner.project import THREAD_VARIABLES

for name in THREAD_VARIABLES:  # which NumPy and Numba read when they are imported
    os.environ.setdefault(name, "1")

os.environ.setdefault("PREFLEARN_QUIET", "1")  # compilation is no output of what is tested

# A slow machine is no failure. HYPOTHESIS_PROFILE=thorough draws ten times as many examples.
settings.register_profile("usual", deadline=None, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=250)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

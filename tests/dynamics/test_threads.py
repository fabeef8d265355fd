"""The number of threads changes no result."""

import numpy as np
import pytest
from dynamics.problems import both_methods, fitted, matches_of, random_design

from preflearn.dynamics import Constant, Logit, Matern32, OrdinalProbit
from preflearn.dynamics.engine import threads


@both_methods
@pytest.mark.parametrize("likelihood", [OrdinalProbit(0.4), Logit()], ids=repr)
def test_threads_change_no_bit(method, likelihood, monkeypatch):
    """Cut into parts of a few matches, so that there is something to share."""
    rng = np.random.default_rng(0)
    matches = matches_of(random_design(rng, 120, 12, 3, [1.0, -1, 1]), np.sort(rng.uniform(0, 5, 120)))
    covariance, y = Constant(0.3) + Matern32(0.6, 1.5), rng.choice([1, -1], 120)

    def cut(n_threads, chunk):
        monkeypatch.setattr(threads, "_CHUNK", chunk)
        return fitted(covariance, likelihood, matches, y, method, n_threads=n_threads, tol=1e-8)

    one = cut(1, 7)
    for other in (cut(2, 7), cut(3, 7)):
        np.testing.assert_array_equal(other.pseudo_observations_, one.pseudo_observations_)
        assert other.trace_.equals(one.trace_)
        np.testing.assert_array_equal(other.predict_proba(matches), one.predict_proba(matches))
    # The size of parts is part of the program, not of the machine.
    whole = cut(1, 15_000)
    np.testing.assert_allclose(whole.pseudo_observations_, one.pseudo_observations_, atol=1e-6)

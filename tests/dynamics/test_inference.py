"""The engine on trusted arrays: a fit and an update end at a fixed point of the map of all."""

import numpy as np
import pytest
from dynamics.problems import both_methods, matches_of, random_design

from preflearn.dynamics import Constant, DynamicComparisons, Matern12, OrdinalProbit, inference

MOVING = Constant(0.3) + Matern12(0.5, 10.0)


def judged(model):
    """Residual and evidence of a sweep, from the pseudo-observations that the model has."""
    data = model.matches_, model.outcomes_, np.array(model.pseudo_observations_)
    with inference.laid_out(model, *data) as sweep:
        return sweep.matches(sweep.features())


@both_methods
def test_a_fit_and_an_update_end_at_the_same_fixed_point(method):
    rng = np.random.default_rng(0)
    matches = matches_of(random_design(rng, 60, 6), np.sort(rng.integers(0, 40, 60)).astype(float))
    y = rng.choice([-1, 0, 1], 60)
    whole = DynamicComparisons(MOVING, OrdinalProbit(0.3), method).fit(matches, y)
    part = DynamicComparisons(MOVING, OrdinalProbit(0.3), method).fit(matches[:50], y[:50])
    part.update(matches[50:], y[50:])
    for model in (whole, part):
        found = judged(model)
        assert found.residual <= 1.001e-6
        assert model.log_marginal_likelihood_ == pytest.approx(found.evidence, abs=1e-9)
    np.testing.assert_allclose(part.predict_proba(matches), whole.predict_proba(matches), atol=1e-5)


def test_differences_are_those_of_the_rows():
    rng = np.random.default_rng(1)
    design = random_design(rng, 30, 5)
    matches = matches_of(design, np.arange(30.0))
    mean, variance = rng.standard_normal(5), rng.random(5)
    x, columns, starts = matches.design.data, matches.design.indices, matches.design.indptr
    for low, high in ((0, 30), (7, 19)):
        here = slice(starts[low], starts[high])
        own = mean[columns[here]], variance[columns[here]]
        found = inference.differences(x[here], starts[low : high + 1], *own)
        np.testing.assert_allclose(
            found, [design[low:high] @ mean, design[low:high] ** 2 @ variance], rtol=1e-12
        )

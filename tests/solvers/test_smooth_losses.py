"""The duality gap bounds the distance to the minimum, for each algorithm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from ranking.comparisons import compared, every_model, objective, tie_parameter
from sklearn.base import clone

from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison
from preflearn.solvers import smooth_losses
from preflearn.solvers.newton import newton


@every_model
@examples(10)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([1e-8, 1e-3, 10.0]),
    ties=st.booleans(),
)
def test_the_gap_at_any_point_bounds_the_distance_to_the_minimum(
    model, seed, alpha, ties
):
    pairs, y = compared(seed)
    if not ties:
        pairs = pairs[y != 0]
        y = y[y != 0]
    fitted = clone(model).set_params(alpha=alpha).fit(pairs, y)
    assert fitted.dual_gap_ <= 1e-9
    bound = fitted.objective_ * (1 - fitted.dual_gap_)
    rng = np.random.default_rng(seed)
    for size in (1e-4, 1e-1, 1.0):
        w = fitted.coef_ + size * rng.standard_normal(3)
        tie_parameters = [-30.0 * isinstance(model, Davidson)]
        if ties:
            factors = 1 + size * np.linspace(-0.9, 0.9, 9)
            tie_parameters = tie_parameter(fitted) * factors
        for t in tie_parameters:
            value = objective(fitted, pairs, y, w, t, np.ones(len(y)))
            assert value >= bound * (1 - 1e-9)
            problem, point, _ = smooth_losses.problem_at(
                fitted._tie_loss(), *fitted._data, np.append(w, t)
            )
            gap = problem.gap(point)
            assert point.value * (1 - gap) <= fitted.objective_ * (1 + 1e-9)


@every_model
def test_sparse_features_with_hessians_are_fitted_as_a_dense_rotation_of_them(
    model, monkeypatch
):
    """The comparisons form a chain, which is badly conditioned."""
    monkeypatch.setattr(smooth_losses, "_CG_STEPS", 3)
    n = 40
    rng = np.random.default_rng(40)
    index = np.repeat(np.column_stack([np.arange(n - 1), np.arange(1, n)]), 3, axis=0)
    y = rng.choice([-1, 0, 1], len(index), p=[0.2, 0.3, 0.5])
    sparse = clone(model).fit(Pairs(np.eye(n), index), y)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    dense = clone(model).fit(Pairs(Q, index), y)
    np.testing.assert_allclose(sparse.coef_, Q @ dense.coef_, atol=1e-6)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-10)


def test_a_start_from_a_part_of_the_pairs_leads_to_the_same_fit(monkeypatch):
    pairs, y = compared(5, m=400)
    expected = Davidson(0.1).fit(pairs, y)
    monkeypatch.setattr(smooth_losses, "_MIN_COARSE_PAIRS", 5)
    found = Davidson(0.1).fit(pairs, y)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8)
    assert found.nu_ == pytest.approx(expected.nu_, rel=1e-8)


@pytest.mark.parametrize(("n", "fits"), [(3, 2), (40, 1)])
def test_only_many_pairs_per_player_are_a_start(monkeypatch, n, fits):
    """A few pairs are easily separated, and their minimum is then far from that of all
    pairs."""
    rng = np.random.default_rng(n)
    started = []
    monkeypatch.setattr(smooth_losses, "_MIN_COARSE_PAIRS", 5)
    monkeypatch.setattr(
        smooth_losses, "newton", lambda *given: (started.append(1), newton(*given))[1]
    )
    copy = n * rng.integers(0, 40, 400)  # with copies, few rows of pairs occur twice
    first = rng.integers(0, n, 400)
    second = copy + (first + rng.integers(1, n, 400)) % n
    pairs = Pairs(np.tile(np.eye(n), (40, 1)), np.column_stack([first, second]))
    Davidson(0.1).fit(pairs, rng.choice([-1, 0, 1], 400))
    assert len(started) == fits


@pytest.mark.parametrize("weight", [1e30, 1e60, 1e90, 1e99])
@pytest.mark.parametrize(
    "model", [Davidson(), OrdinalComparison()], ids=lambda model: type(model).__name__
)
def test_huge_weights_have_a_proved_optimum_or_an_error(model, weight):
    pairs = Pairs(np.arange(6.0)[:, None], [[1, 0], [2, 3], [4, 5], [3, 1]])
    try:
        gap = clone(model).fit(pairs, [1, -1, 0, 1], np.full(4, weight)).dual_gap_
    except ValueError as error:
        gap = 0.0
        assert "weights" in str(error)  # noqa: PT017
    assert gap <= 1e-6

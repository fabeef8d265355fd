"""The minimum that is found is proved, whatever the route to it."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking.comparisons import compared, every_model, objective, tie_parameter
from sklearn.base import clone

from preflearn.ground import tie_laws
from preflearn.ground.newton import newton
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison


@every_model
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([1e-8, 1e-3, 10.0]), ties=st.booleans())
def test_the_gap_is_small_and_true(model, seed, alpha, ties):
    """Any other point has an objective above the bound that the gap leaves."""
    pairs, y = compared(seed)
    if not ties:
        pairs, y = pairs[y != 0], y[y != 0]
    fitted = clone(model).set_params(alpha=alpha).fit(pairs, y)
    assert fitted.dual_gap_ <= 1e-9
    bound = fitted.objective_ * (1 - fitted.dual_gap_)
    rng = np.random.default_rng(seed)
    for size in (1e-4, 1e-1, 1.0):
        w = fitted.coef_ + size * rng.standard_normal(3)
        t = tie_parameter(fitted) * (1 + size * rng.random()) if ties else -30.0 * isinstance(model, Davidson)
        assert objective(fitted, pairs, y, w, t, np.ones(len(y))) >= bound * (1 - 1e-9)


@every_model
def test_one_hot_items_and_hessians_in_time(model, monkeypatch):
    """Sparse features, on a chain of comparisons (badly conditioned), against a dense rotation of them."""
    monkeypatch.setattr(tie_laws, "_FEW", 3)
    n, rng = 40, np.random.default_rng(40)
    index = np.repeat(np.column_stack([np.arange(n - 1), np.arange(1, n)]), 3, axis=0)
    y = rng.choice([-1, 0, 1], len(index), p=[0.2, 0.3, 0.5])
    sparse = clone(model).fit(Pairs(np.eye(n), index), y)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    dense = clone(model).fit(Pairs(Q, index), y)
    np.testing.assert_allclose(sparse.coef_, Q @ dense.coef_, atol=1e-6)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-10)


def test_many_pairs_start_from_a_part_of_them(monkeypatch):
    pairs, y = compared(5, m=400)
    expected = Davidson(0.1).fit(pairs, y)
    monkeypatch.setattr(tie_laws, "_COARSE", 5)
    found = Davidson(0.1).fit(pairs, y)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8)
    assert found.nu_ == pytest.approx(expected.nu_, rel=1e-8)


@pytest.mark.parametrize(("n", "fits"), [(3, 2), (40, 1)])
def test_too_few_pairs_a_player_are_no_start(monkeypatch, n, fits):
    """They are easily separated, and strengths that separate a part are far from the minimum of all."""
    rng, started = np.random.default_rng(n), []
    monkeypatch.setattr(tie_laws, "_COARSE", 5)
    monkeypatch.setattr(tie_laws, "newton", lambda *given: (started.append(1), newton(*given))[1])
    first = rng.integers(0, n, 400)
    pairs = Pairs(np.eye(n), np.column_stack([first, (first + rng.integers(1, n, 400)) % n]))
    Davidson(0.1).fit(pairs, rng.choice([-1, 0, 1], 400))
    assert len(started) == fits


@pytest.mark.parametrize("weight", [1e30, 1e60, 1e90, 1e99])
@pytest.mark.parametrize(
    "machine", [Davidson(), OrdinalComparison()], ids=lambda machine: type(machine).__name__
)
def test_weights_beyond_all_accuracy_are_refused_or_the_optimum_is_proved(machine, weight):
    pairs = Pairs(np.arange(6.0)[:, None], [[1, 0], [2, 3], [4, 5], [3, 1]])
    fit = partial(machine.fit, pairs, [1, -1, 0, 1], np.full(4, weight))
    try:
        assert fit().dual_gap_ <= 1e-6
    except ValueError:
        with pytest.raises(ValueError, match=r"found no optimum.*weights go up to 1e\+\d\d"):
            fit()

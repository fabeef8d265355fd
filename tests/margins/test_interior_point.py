"""The interior-point method where rounding errors matter: narrow margins, offsets, and
degenerate programs."""

import warnings

import numpy as np
import pytest
from margins.problems import separable, split
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from preflearn.margins import MarginLP, MarginQP, interior_point
from preflearn.pairs import Pairs
from preflearn.solvers.interior_point import Interior


@pytest.mark.parametrize("estimator", [MarginLP(), MarginQP()])
@pytest.mark.parametrize("offset", [1e5, 1e8, -(2.0**40)])
def test_an_offset_of_all_items_changes_nothing(estimator, offset):
    pairs, y = separable(5, m=100, p=4, tie_share=0.5, labels="both")
    # the sums of these items and the offset are exact
    items = np.round(pairs.items * 2**10) / 2**10
    plain = clone(estimator).fit(Pairs(items, pairs.index), y)
    moved = clone(estimator).fit(Pairs(items + offset, pairs.index), y)
    np.testing.assert_array_equal(moved.coef_, plain.coef_)
    assert moved.margin_ == plain.margin_


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("p", [1, 2, 10])
def test_a_narrow_margin_is_accurate_or_reported(gap, p):
    rng = np.random.default_rng(p)
    w = np.ones(p) / np.sqrt(p)
    d = rng.standard_normal((60, p))
    y = np.repeat([0, 1], 30)
    wanted = np.where(
        y == 0, rng.uniform(-1, 1, 60), 1 + gap + rng.exponential(size=60)
    )
    # enough active pairs to determine w
    wanted[30 : 31 + p] = 1 + gap
    wanted[: p + 1] = 1
    d += np.outer(wanted - d @ w, w)
    pairs = Pairs.from_arrays(d, 0 * d)
    preferences, ties = split(pairs, y)
    for estimator in (MarginLP(), MarginQP()):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = estimator.fit(pairs, y)
        assert (fitted.kkt_residual_ > 1e-7) == any(
            w.category is ConvergenceWarning for w in caught
        )
        assert (preferences @ fitted.coef_).min() > np.abs(ties @ fitted.coef_).max()
        # the data themselves have rounding errors
        error = 10 * (fitted.kkt_residual_ + 1e-15 / gap)
        assert (
            fitted.margin_ == pytest.approx(gap / (2 + gap), rel=error)
            or fitted.margin_ > gap / 2
        )
        # compute the certificate again from the returned arrays
        if isinstance(fitted, MarginLP):
            bound = 1 - 2 * np.abs(fitted.dual_coef_[y != 0]).sum()
            missed = np.abs(fitted.dual_coef_ @ pairs.differences()) @ np.abs(
                fitted.coef_
            )
            assert bound + missed <= fitted.margin_ * (1 + fitted.kkt_residual_) + 1e-15


def test_nothing_binds_the_least_optimum(monkeypatch):
    # SciPy's nnls writes outside its memory if the matrix has no columns, so it must
    # not be called with such a matrix.
    def checked(A, b):
        assert A.shape[1] > 0
        return nnls(A, b)

    monkeypatch.setattr(interior_point, "nnls", checked)
    pairs = Pairs([[-2.0, -1.0], [-2.0, -2.0], [-2.0, 1.0]], [[2, 0], [2, 1]])
    fitted = MarginLP().fit(pairs, [0, 1])
    np.testing.assert_allclose(fitted.coef_, [0.0, 2 / 5], atol=1e-12)
    assert fitted.margin_ == pytest.approx(1 / 5)


@pytest.mark.parametrize("seed", range(3))
def test_features_that_nearly_depend_on_each_other(seed):
    """The weights are long. A curvature that ignored this moved the optimum, or no
    optimum was found."""
    pairs, y = separable(seed, m=200, p=28, tie_share=0.5, labels="both")
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((28, 28)))[0]
    mix = rng.standard_normal((28, 28)) * np.geomspace(1, 300, 28) @ turn
    plain = MarginLP().fit(pairs, y)
    mapped = MarginLP().fit(Pairs(pairs.items @ mix, pairs.index), y)
    assert mapped.kkt_residual_ < 1e-7
    assert mapped.margin_ == pytest.approx(plain.margin_, abs=1e-8)


@pytest.mark.parametrize(("curvature", "slack"), [(0.0, 0.0), (0.0, np.inf)])
def test_a_path_ends_where_no_ridge_makes_a_factor(curvature, slack):
    """No multiple of infinity or of 0 makes the matrix positive definite, so the path
    ends at its start."""
    start = Interior(np.zeros(1), np.array([slack]), np.ones(1))
    with np.errstate(all="ignore"):
        found = interior_point.interior_point(
            np.ones((1, 1)), np.ones(1), np.ones(1), np.full(1, curvature), start, 1e-9
        )
    assert found is start

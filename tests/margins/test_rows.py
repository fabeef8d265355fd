"""What both programs keep: invariances, scales, and what they say of bad input."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from margins.problems import separable
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from small_problems import same_comparisons

from preflearn.margins import MarginLP, MarginQP, NotSeparableError
from preflearn.pairs import Pairs

both = pytest.mark.parametrize("estimator", [MarginLP(), MarginQP()])


def variants(pairs, y, rng):
    yield from same_comparisons(pairs, y, rng)
    twice = np.append(np.arange(len(pairs)), rng.integers(0, len(pairs), 5))
    yield pairs[twice], y[twice]
    yield Pairs(pairs.items + rng.standard_normal(pairs.items.shape[1]), pairs.index), y


@settings(max_examples=12)
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_invariances(seed, p):
    pairs, y = separable(seed, p=p)
    lp, qp = MarginLP().fit(pairs, y), MarginQP().fit(pairs, y)
    for other, labels in variants(pairs, y, np.random.default_rng(seed)):
        lp2, qp2 = MarginLP().fit(other, labels), MarginQP().fit(other, labels)
        assert lp2.margin_ == pytest.approx(lp.margin_, abs=1e-9)
        np.testing.assert_allclose(lp2.coef_, lp.coef_, atol=1e-7 * np.abs(lp.coef_).max())
        np.testing.assert_allclose(qp2.u_, qp.u_, atol=1e-8 * np.abs(qp.u_).max())
        assert qp2.bias_ == pytest.approx(qp.bias_, rel=1e-8)


@given(st.integers(0, 2**31), st.integers(1, 6), st.floats(-6, 6))
def test_linear_maps(seed, p, exponent):
    pairs, y = separable(seed, p=p)
    rng = np.random.default_rng(seed)
    lp, qp = MarginLP().fit(pairs, y), MarginQP().fit(pairs, y)

    def mapped(A):
        return Pairs(pairs.items @ A.T, pairs.index)

    A = rng.standard_normal((p, p)) + 3 * np.eye(p)
    assert MarginLP().fit(mapped(A), y).margin_ == pytest.approx(lp.margin_, abs=1e-8)
    c = 10.0**exponent
    scaled = MarginQP().fit(mapped(c * np.eye(p)), y)
    np.testing.assert_allclose(scaled.u_ * c, qp.u_, atol=1e-8 * np.abs(qp.u_).max())
    assert scaled.bias_ == pytest.approx(qp.bias_, rel=1e-8)
    assert MarginLP().fit(mapped(c * np.eye(p)), y).margin_ == pytest.approx(lp.margin_, abs=1e-9)
    Q = np.linalg.qr(A)[0]
    np.testing.assert_allclose(MarginQP().fit(mapped(Q), y).u_, Q @ qp.u_, atol=1e-7 * np.abs(qp.u_).max())


@pytest.mark.parametrize(
    ("scales", "residual"),
    [
        ((1e3, 1, 1, 1), 1e-9),
        ((1, 1e3, 1e-2, 1), 1e-9),
        ((1e6, 1e6, 1e6, 1e6), 1e-9),
        ((1, 1e-8, 1, 1), 1e-6),
        ((1, 1e8, 1, 1), 1e-6),
        ((1e6, 1e-6, 1, 1e3), np.inf),  # beyond floats
    ],
)
def test_mixed_scales_are_no_trouble_or_reported(scales, residual):
    pairs, y = separable(5, m=100, p=4, tie_share=0.5, labels="both")
    scaled = Pairs(pairs.items * np.array(scales), pairs.index)
    assert MarginLP().fit(scaled, y).margin_ == pytest.approx(MarginLP().fit(pairs, y).margin_, abs=1e-10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        qp = MarginQP().fit(scaled, y)
    assert (qp.kkt_residual_ > 1e-7) == any(warning.category is ConvergenceWarning for warning in caught)
    assert qp.kkt_residual_ < residual
    np.testing.assert_array_equal(qp.predict(scaled), y)


@pytest.mark.filterwarnings("ignore::preflearn.ground.LeakageWarning")
@both
def test_scikit_learn(estimator):
    assert clone(estimator).get_params() == {}
    assert estimator.set_params() is estimator
    pairs, y = separable(8, m=120, p=3, tie_share=0.4, labels="both")
    for model in (clone(estimator), make_pipeline(clone(estimator))):
        assert cross_val_score(model, pairs, y, cv=3).mean() > 0.9


@both
def test_fit_returns_self_and_leaves_its_input_alone(estimator):
    pairs, y = separable(9, m=40, p=3, labels="both")
    items, labels, unfitted = pairs.items.copy(), y.copy(), clone(estimator)
    with pytest.raises(NotSeparableError):
        unfitted.fit(Pairs([[0.0], [1.0]], [[1, 0], [1, 0]]), [1, 0])
    with pytest.raises(NotFittedError):  # a failed fit leaves no half model
        unfitted.predict(pairs)
    fitted = unfitted
    assert fitted.fit(pairs, y) is fitted
    np.testing.assert_array_equal(pairs.items, items)
    np.testing.assert_array_equal(y, labels)
    assert fitted.n_features_in_ == 3
    np.testing.assert_allclose(fitted.rank_function(items), items @ fitted.coef_)
    with pytest.raises(ValueError, match="4 features; expected 3"):
        fitted.rank_function([[1.0, 2.0, 3.0, 4.0]])


@both
@pytest.mark.parametrize(
    ("array", "y", "message"),
    [
        ([[[0.0], [np.nan]], [[1.0], [2.0]]], [1, 0], "nan"),
        ([[[0.0], [np.inf]], [[1.0], [2.0]]], [1, 0], "inf"),
        (np.zeros((0, 2, 3)), [], "empty"),
        (np.zeros((2, 3)), [1, 0], "shape"),
        ([[[1e308], [-1e308]], [[1.0], [2.0]]], [1, 0], "overflows"),
        ([[[1e-200], [0.0]], [[0.0], [2e-200]]], [1, 0], "scale"),
        ([[[7, 53], [0, 0]], [[41, 19], [0, 0]], [[24, np.nextafter(36, 0)], [0, 0]]], [1, 1, 0], "rounding"),
    ],
)
def test_bad_input(estimator, array, y, message):
    with pytest.raises(ValueError, match=message) as caught:
        clone(estimator).fit(array, y)
    assert not isinstance(caught.value, NotSeparableError)

"""What both programs share: invariances, scales, and the errors for bad input."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from margins.problems import separable
from property_examples import examples
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from small_problems import same_comparisons

from preflearn.margins import MarginLP, MarginQP, NotSeparableError
from preflearn.pairs import Pairs

both = pytest.mark.parametrize("estimator", [MarginLP(), MarginQP()])


def variants(pairs, y, rng):
    yield from same_comparisons(pairs, y, rng)
    twice = np.append(np.arange(len(pairs)), rng.integers(0, len(pairs), 5))
    yield pairs[twice], y[twice]
    yield Pairs(pairs.items + rng.standard_normal(pairs.items.shape[1]), pairs.index), y


@examples(20)
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_the_same_judgements_in_other_words_change_nothing(seed, p):
    pairs, y = separable(seed, p=p)
    lp = MarginLP().fit(pairs, y)
    qp = MarginQP().fit(pairs, y)
    for other, labels in variants(pairs, y, np.random.default_rng(seed)):
        lp2 = MarginLP().fit(other, labels)
        qp2 = MarginQP().fit(other, labels)
        assert lp2.margin_ == pytest.approx(lp.margin_, abs=1e-9)
        np.testing.assert_allclose(
            lp2.coef_, lp.coef_, atol=1e-7 * np.abs(lp.coef_).max()
        )
        np.testing.assert_allclose(qp2.u_, qp.u_, atol=1e-8 * np.abs(qp.u_).max())
        assert qp2.bias_ == pytest.approx(qp.bias_, rel=1e-8)


@given(st.integers(0, 2**31), st.integers(1, 6), st.floats(-6, 6))
def test_linear_maps(seed, p, exponent):
    """A linear map does not change the LP's margin. A scale divides the QP's u, and a
    rotation of the items rotates it."""
    pairs, y = separable(seed, p=p)

    def mapped(M):
        return Pairs(pairs.items @ M.T, pairs.index)

    qp = MarginQP().fit(pairs, y)
    margin = MarginLP().fit(pairs, y).margin_
    A = np.random.default_rng(seed).standard_normal((p, p)) + 3 * np.eye(p)
    c = 10.0**exponent
    Q = np.linalg.qr(A)[0]
    scale = c * np.eye(p)
    assert MarginLP().fit(mapped(A), y).margin_ == pytest.approx(margin, abs=1e-8)
    assert MarginLP().fit(mapped(scale), y).margin_ == pytest.approx(margin, abs=1e-9)
    scaled = MarginQP().fit(mapped(scale), y)
    turned = MarginQP().fit(mapped(Q), y)
    np.testing.assert_allclose(scaled.u_ * c, qp.u_, atol=1e-8 * np.abs(qp.u_).max())
    assert scaled.bias_ == pytest.approx(qp.bias_, rel=1e-8)
    np.testing.assert_allclose(turned.u_, Q @ qp.u_, atol=1e-7 * np.abs(qp.u_).max())


@pytest.mark.parametrize(
    ("scales", "residual"),
    [
        ((1e3, 1, 1, 1), 1e-9),
        ((1, 1e3, 1e-2, 1), 1e-9),
        ((1e6, 1e6, 1e6, 1e6), 1e-9),
        ((1, 1e-8, 1, 1), 1e-6),
        ((1, 1e8, 1, 1), 1e-6),
        ((1e6, 1e-6, 1, 1e3), np.inf),  # beyond the precision of floats
    ],
)
def test_mixed_scales_are_no_trouble_or_reported(scales, residual):
    pairs, y = separable(5, m=100, p=4, tie_share=0.5, labels="both")
    scaled = Pairs(pairs.items * np.array(scales), pairs.index)
    assert MarginLP().fit(scaled, y).margin_ == pytest.approx(
        MarginLP().fit(pairs, y).margin_, abs=1e-10
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        qp = MarginQP().fit(scaled, y)
    assert (qp.kkt_residual_ > 1e-7) == any(
        warning.category is ConvergenceWarning for warning in caught
    )
    assert qp.kkt_residual_ < residual
    np.testing.assert_array_equal(qp.predict(scaled), y)


@both
def test_fit_returns_self_and_leaves_its_input_alone(estimator):
    pairs, y = separable(9, m=40, p=3, labels="both")
    items = pairs.items.copy()
    labels = y.copy()
    estimator = clone(estimator)
    with pytest.raises(NotSeparableError):
        estimator.fit(Pairs([[0.0], [1.0]], [[1, 0], [1, 0]]), [1, 0])
    # a failed fit leaves no attributes of a fitted model
    with pytest.raises(NotFittedError):
        estimator.predict(pairs)
    assert estimator.fit(pairs, y) is estimator
    np.testing.assert_array_equal(pairs.items, items)
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_allclose(estimator.rank_function(items), items @ estimator.coef_)
    with pytest.raises(ValueError, match=r"\b4\b.*\b3\b"):
        estimator.rank_function([[1.0, 2.0, 3.0, 4.0]])


@both
@pytest.mark.parametrize(
    ("array", "y", "message"),
    [
        ([[[0.0], [np.nan]], [[1.0], [2.0]]], [1, 0], "nan"),
        (np.zeros((0, 2, 3)), [], "empty"),
        ([[[1e308], [-1e308]], [[1.0], [2.0]]], [1, 0], "overflow"),
        ([[[1e-200], [0.0]], [[0.0], [2e-200]]], [1, 0], "scale"),
        (
            [
                [[7, 53], [0, 0]],
                [[41, 19], [0, 0]],
                [[24, np.nextafter(36, 0)], [0, 0]],
            ],
            [1, 1, 0],
            "rounding",
        ),
    ],
)
def test_bad_input_is_named(estimator, array, y, message):
    with pytest.raises(ValueError, match=message) as caught:
        clone(estimator).fit(array, y)
    assert not isinstance(caught.value, NotSeparableError)

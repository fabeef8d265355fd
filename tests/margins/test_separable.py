"""Each answer on separability is verified in fractions from its certificate."""

import pickle
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples

from preflearn.margins import MarginLP, MarginQP, NotSeparableError, separability
from preflearn.margins import separable as module
from preflearn.pairs import Pairs


def fractions(pairs, y):
    """Return y_i d_i and d_j exactly, from the given floats."""
    exact = np.vectorize(Fraction, otypes=[object])
    return (exact(pairs.first) - exact(pairs.second)) * np.where(
        np.equal(y, -1), -1, 1
    )[:, None]


def assert_proof(answer, pairs, y):
    """Check the certificate in fractions, without the solver."""
    rows = fractions(pairs, y)
    ties = np.equal(y, 0)
    assert answer.exact
    if answer.separable:
        values = rows @ [Fraction(x) for x in answer.coef.tolist()]
        assert ties.all() or min(values[~ties]) > max(abs(values[ties]), default=0)
        return
    weights = np.array(
        [answer.exact_weights.get(i, Fraction(0)) for i in range(len(ties))]
    )
    assert sum(weights[~ties]) == 1
    assert min(weights[~ties]) >= 0
    assert sum(abs(weights[ties])) <= 1
    assert not (np.where(ties, -weights, weights) @ rows).any()
    assert (
        np.flatnonzero(weights).tolist()
        == sorted(answer.exact_weights)
        == answer.support.tolist()
    )
    assert len(answer.support) <= rows.shape[1] + 2
    np.testing.assert_allclose(answer.weights, weights.astype(float))


def small(seed, p, m):
    rng = np.random.default_rng(seed)
    items = rng.integers(-3, 4, (6, p)).astype(float)
    index = np.array([rng.choice(6, 2, replace=False) for _ in range(m)])
    return Pairs(items, index), rng.choice([-1, 0, 1], m)


@examples(60)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 12))
def test_every_answer_is_proven_and_is_that_of_the_programs(seed, p, m):
    pairs, y = small(seed, p, m)
    noisy = Pairs(
        pairs.items + np.random.default_rng(seed).standard_normal(pairs.items.shape),
        pairs.index,
    )
    assert_proof(separability(noisy, y), noisy, y)
    answer = separability(pairs, y)
    assert_proof(answer, pairs, y)
    if 0 < np.count_nonzero(y) < m:
        for estimator in (MarginLP(), MarginQP()):
            with (
                nullcontext() if answer.separable else pytest.raises(NotSeparableError)
            ):
                estimator.fit(pairs, y)


def touching(p, m, seed=0):
    """Return preferences on or beyond the plane sum(x) = 60, and ties below it except
    for one tie in the plane."""
    rng = np.random.default_rng(seed)
    preferences = rng.integers(-20, 21, (m, p)).astype(float)
    preferences[:, 0] += 60 - preferences.sum(axis=1)
    preferences[m // 2 :, 0] += rng.integers(1, 20, m - m // 2)
    ties = rng.integers(-9, 10, (m, p)).astype(float)
    ties[:, 0] += rng.integers(-40, 41, m) - ties.sum(axis=1)
    ties[0] = (preferences[0] + preferences[1]) / 2
    d = np.vstack([preferences, ties])
    return d, np.repeat([1, 0], m)


@pytest.mark.parametrize(("p", "m"), [(1, 6), (2, 20), (3, 500), (6, 30), (10, 20)])
def test_hulls_that_touch_in_a_point(p, m):
    d, y = touching(p, m)
    for separable in (False, True):
        pairs = Pairs.from_arrays(d, np.zeros_like(d))
        answer = separability(pairs, y)
        assert answer.separable == separable
        assert_proof(answer, pairs, y)
        if not separable:
            for estimator in (MarginLP(), MarginQP()):
                with pytest.raises(NotSeparableError):
                    estimator.fit(pairs, y)
        # the hulls are now one unit in the last place apart
        d[m, 0] = np.nextafter(d[m, 0], -np.inf)


def test_the_differences_are_those_of_the_given_floats():
    pairs = Pairs([[1e16], [0.0], [1.0]], [[0, 2], [0, 1]])
    # The rounded differences are equal, but the exact first one is smaller by 1.
    assert pairs.differences()[0] == pairs.differences()[1]
    assert separability(pairs, [0, 1]).separable
    assert not separability(pairs, [1, 0]).separable


def test_one_kind_of_label():
    pairs = Pairs(
        [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [[1, 0], [2, 0], [3, 0]]
    )
    assert separability(pairs, [0, 0, 0]).separable
    assert separability(pairs[:2], [1, 1]).separable
    answer = separability(pairs, [1, 1, 1])  # the origin is inside the triangle
    assert answer.exact_weights == {i: Fraction(1, 3) for i in range(3)}


@pytest.mark.parametrize(("m", "p"), [(2000, 5), (400, 12)])
def test_larger_problems(m, p):
    rng = np.random.default_rng(m)
    d = rng.standard_normal((m, p))
    y = np.where(np.abs(d[:, 0]) < 0.6, 0, np.sign(d[:, 0])).astype(int)
    pairs = Pairs.from_arrays(d, np.zeros_like(d))
    answer = separability(pairs, y)
    assert answer.separable
    assert_proof(answer, pairs, y)
    y[np.flatnonzero(y)[:5]] *= -1
    answer = separability(pairs, y)
    assert not answer.separable
    assert_proof(answer, pairs, y)


def test_without_a_budget_the_float_answer_is_marked(monkeypatch):
    rng = np.random.default_rng(0)
    pairs = Pairs.from_arrays(
        rng.standard_normal((30, 4)), rng.standard_normal((30, 4))
    )
    y = rng.choice([-1, 0, 1], 30)
    exact = separability(pairs, y)
    monkeypatch.setattr(module, "_EXACT_WORK", 0.0)
    answer = separability(pairs, y)
    assert (answer.separable, answer.exact, answer.exact_weights) == (
        exact.separable,
        False,
        {},
    )
    rows = (pairs.first - pairs.second) * np.where(y == -1, -1, 1)[:, None]
    signed = np.where(y == 0, -answer.weights, answer.weights)
    np.testing.assert_allclose(signed @ rows, 0, atol=1e-9)
    assert answer.weights[y != 0].sum() == pytest.approx(1)


def test_extreme_magnitudes_are_exact():
    items = [[0.0, 0.0], [1e120, 0.0], [1e120, 1e-120], [2e120, 0.0]]
    pairs = Pairs(items, [[1, 0], [2, 0], [3, 0]])
    assert_proof(separability(pairs, [0, 1, 1]), pairs, [0, 1, 1])
    assert_proof(separability(pairs, [1, 1, 0]), pairs, [1, 1, 0])


@pytest.mark.parametrize("estimator", [MarginLP(), MarginQP()])
def test_pairs_without_a_separation_are_named_and_survive_pickling(estimator):
    pairs = Pairs([[0.0], [1.0], [2.0], [5.0]], [[1, 0], [2, 0], [3, 0]])
    with pytest.raises(NotSeparableError, match=r"(?s)\b0\b.*\b1\b.*slack") as caught:
        estimator.fit(pairs, [1, 0, 1])
    assert caught.value.certificate.support.tolist() == [0, 1]
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.certificate.exact_weights == caught.value.certificate.exact_weights
    same = Pairs(
        [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [2.0, 1.0]], [[1, 0], [2, 1], [3, 2]]
    )
    # the same difference twice, and a preference between equal items
    for y in ([1, 0, 0], [1, -1, 0], [0, 0, 1]):
        with pytest.raises(NotSeparableError):
            estimator.fit(same, y)


@pytest.mark.parametrize(
    ("y", "message"), [([1, 5], r"y\[1\]"), ([1], r"\(1,\).*\(2,\)")]
)
def test_bad_labels_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        separability(Pairs([[0.0], [1.0], [2.0]], [[1, 0], [2, 0]]), y)

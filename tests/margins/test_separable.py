import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflearn.margins import MarginLP, MarginQP, NotSeparableError, separability
from preflearn.margins import separable as module
from preflearn.pairs import Pairs


def fractions(pairs, y):
    """Exact y_i d_i and d_j from the given floats."""
    rows = []
    for (first, second), label in zip(pairs.index, y, strict=True):
        d = [
            Fraction(a) - Fraction(b)
            for a, b in zip(pairs.items[first].tolist(), pairs.items[second].tolist(), strict=True)
        ]
        rows.append([-x for x in d] if label == -1 else d)
    return rows


def dot(a, b):
    return sum((x * z for x, z in zip(a, b, strict=True)), Fraction(0))


def assert_proof(answer, pairs, y):
    """Check the certificate alone, in fractions."""
    rows = fractions(pairs, y)
    assert answer.exact
    if answer.separable:
        w = [Fraction(x) for x in answer.coef.tolist()]
        s = [dot(w, row) for row, label in zip(rows, y, strict=True) if label != 0]
        t = [abs(dot(w, row)) for row, label in zip(rows, y, strict=True) if label == 0]
        if s:
            assert min(s) > max(t, default=Fraction(0))
        return
    weights = answer.exact_weights
    p = len(rows[0])
    assert sum(a for i, a in weights.items() if y[i] != 0) == 1
    assert all(a > 0 for i, a in weights.items() if y[i] != 0)
    assert sum(abs(b) for i, b in weights.items() if y[i] == 0) <= 1
    for k in range(p):
        left = sum((a * rows[i][k] for i, a in weights.items() if y[i] != 0), Fraction(0))
        assert left == sum((b * rows[i][k] for i, b in weights.items() if y[i] == 0), Fraction(0))
    assert sorted(weights) == answer.support.tolist()
    assert len(weights) <= p + 2
    np.testing.assert_allclose(answer.weights[answer.support], [float(weights[i]) for i in answer.support])


def solve_exactly(A, b):
    """Gauss-Jordan elimination in fractions; None if A is singular."""
    rows = [[*row, value] for row, value in zip(A, b, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                rows[i] = [x - rows[i][k] * z for x, z in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def lp_by_vertices(pairs, y):
    """The optimal mu of eq. 7, for mu of any sign and a box |w_k| <= 1000 that makes vertices."""
    p = pairs.items.shape[1]
    constraints = []
    for row, label in zip(fractions(pairs, y), y, strict=True):
        signs = [1] if label != 0 else [1, -1]
        for sign in signs:  # coefficients of (w, mu) <= bound
            side = -1 if label != 0 else sign
            constraints.append(([side * x for x in row] + [Fraction(1)], Fraction(-1 if label != 0 else 1)))
    for k, sign in itertools.product(range(p), (1, -1)):
        constraints.append(([Fraction(sign * (j == k)) for j in range(p + 1)], Fraction(1000)))
    best = None
    for chosen in itertools.combinations(constraints, p + 1):
        point = solve_exactly([c[0] for c in chosen], [c[1] for c in chosen])
        if point is None or (best is not None and point[-1] <= best):
            continue
        if all(dot(a, point) <= bound for a, bound in constraints):
            best = point[-1]
    return best


def small(seed, p, m):
    rng = np.random.default_rng(seed)
    items = rng.integers(-3, 4, (6, p)).astype(float)
    index = np.array([rng.choice(6, 2, replace=False) for _ in range(m)])
    return Pairs(items, index), rng.choice([-1, 0, 1], m)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**31), st.integers(1, 2), st.integers(2, 4))
def test_small_integer_problems_against_all_vertices(seed, p, m):
    pairs, y = small(seed, p, m)
    if not (y == 0).any() or not y.any():
        return
    mu = lp_by_vertices(pairs, y)
    answer = separability(pairs, y)
    assert answer.separable == (mu > 0)
    assert_proof(answer, pairs, y)
    if answer.separable:
        assert MarginLP().fit(pairs, y).margin_ == pytest.approx(float(mu), abs=1e-12)
    else:
        for estimator in (MarginLP(), MarginQP()):
            with pytest.raises(NotSeparableError):
                estimator.fit(pairs, y)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 12))
def test_every_answer_is_proven(seed, p, m):
    pairs, y = small(seed, p, m)
    assert_proof(separability(pairs, y), pairs, y)
    noisy = Pairs(pairs.items + np.random.default_rng(seed).standard_normal(pairs.items.shape), pairs.index)
    assert_proof(separability(noisy, y), noisy, y)


def touching(p, m, seed=0):
    """Preferences beyond the plane sum(x) = 60, ties within, one tie on the facet."""
    rng = np.random.default_rng(seed)
    preferences = rng.integers(-20, 21, (m, p)).astype(float)
    preferences[:, 0] += 60 - preferences.sum(axis=1)
    preferences[m // 2 :, 0] += rng.integers(1, 20, m - m // 2)
    ties = rng.integers(-9, 10, (m, p)).astype(float)
    ties[:, 0] += rng.integers(-40, 41, m) - ties.sum(axis=1)
    ties[0] = (preferences[0] + preferences[1]) / 2
    d = np.vstack([preferences, ties])
    return d, np.repeat([1, 0], m)


@pytest.mark.parametrize(("p", "m"), [(1, 6), (2, 20), (3, 2000), (6, 30), (10, 20)])
def test_hulls_that_touch_in_a_point(p, m):
    d, y = touching(p, m)
    pairs = Pairs.from_arrays(d, np.zeros_like(d))
    answer = separability(pairs, y)
    assert not answer.separable
    assert_proof(answer, pairs, y)
    for estimator in (MarginLP(), MarginQP()):
        with pytest.raises(NotSeparableError):
            estimator.fit(pairs, y)
    d[m, 0] = np.nextafter(d[m, 0], -np.inf)  # one unit in the last place apart
    pairs = Pairs.from_arrays(d, np.zeros_like(d))
    answer = separability(pairs, y)
    assert answer.separable
    assert_proof(answer, pairs, y)


def test_a_preference_equal_to_a_tie():
    pairs = Pairs.from_arrays([[0.1, 0.7], [0.1, 0.7], [3.0, 1.0]], [[0.3, 0.2], [0.3, 0.2], [0.0, 0.0]])
    answer = separability(pairs, [1, 0, 1])
    assert answer.exact_weights == {0: Fraction(1), 1: Fraction(1)}


def test_the_differences_are_those_of_the_given_floats():
    pairs = Pairs([[1e16], [0.0], [1.0]], [[0, 2], [0, 1]])
    assert pairs.differences()[0] == pairs.differences()[1]  # rounded; in truth the first is less by 1
    assert separability(pairs, [0, 1]).separable
    assert not separability(pairs, [1, 0]).separable


def test_one_kind_of_label():
    pairs = Pairs([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [[1, 0], [2, 0], [3, 0]])
    assert separability(pairs, [0, 0, 0]).separable
    assert separability(pairs[:2], [1, 1]).separable
    answer = separability(pairs, [1, 1, 1])  # the origin is inside the triangle
    assert answer.exact_weights == {i: Fraction(1, 3) for i in range(3)}
    cycle = Pairs(np.random.default_rng(0).standard_normal((4, 9)), [[0, 1], [1, 2], [2, 3], [3, 0]])
    assert not separability(cycle, [1, 1, 1, 1]).separable


@pytest.mark.parametrize(("m", "p"), [(5000, 5), (400, 12)])
def test_larger_problems(m, p):
    rng = np.random.default_rng(m)
    d = rng.standard_normal((m, p))
    y = np.where(np.abs(d[:, 0]) < 0.6, 0, np.sign(d[:, 0])).astype(int)
    pairs = Pairs.from_arrays(d, np.zeros_like(d))
    assert_proof(separability(pairs, y), pairs, y)
    y[:4] = [1, -1, 1, -1]
    y[np.flatnonzero(y)[:5]] *= -1
    answer = separability(pairs, y)
    assert not answer.separable
    assert_proof(answer, pairs, y)


def test_without_a_budget_the_float_answer_is_marked(monkeypatch):
    rng = np.random.default_rng(0)
    pairs = Pairs.from_arrays(rng.standard_normal((30, 4)), rng.standard_normal((30, 4)))
    y = rng.choice([-1, 0, 1], 30)
    exact = separability(pairs, y)
    monkeypatch.setattr(module, "_EXACT_WORK", 0.0)
    answer = separability(pairs, y)
    assert (answer.separable, answer.exact, answer.exact_weights) == (exact.separable, False, {})
    rows = (pairs.first - pairs.second) * np.where(y == -1, -1, 1)[:, None]
    signed = np.where(y == 0, -answer.weights, answer.weights)
    np.testing.assert_allclose(signed @ rows, 0, atol=1e-9)
    assert answer.weights[y != 0].sum() == pytest.approx(1)


def test_extreme_magnitudes_are_exact():
    items = [[0.0, 0.0], [1e120, 0.0], [1e120, 1e-120], [2e120, 0.0]]
    pairs = Pairs(items, [[1, 0], [2, 0], [3, 0]])
    assert_proof(separability(pairs, [0, 1, 1]), pairs, [0, 1, 1])
    assert_proof(separability(pairs, [1, 1, 0]), pairs, [1, 1, 0])


def test_errors_survive_pickling():
    pairs = Pairs([[0.0], [1.0], [2.0]], [[1, 0], [2, 0]])
    with pytest.raises(NotSeparableError) as caught:
        MarginLP().fit(pairs, [1, 0])
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.certificate.exact_weights == caught.value.certificate.exact_weights


@pytest.mark.parametrize(("y", "message"), [([1, 5], r"y\[1\]"), ([1], "1 labels for 2 pairs")])
def test_bad_labels(y, message):
    with pytest.raises(ValueError, match=message):
        separability(Pairs([[0.0], [1.0], [2.0]], [[1, 0], [2, 0]]), y)

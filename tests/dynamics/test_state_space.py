"""State-space models against the Gram matrix, in high precision at extreme gaps, and by their keys."""

import itertools

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflearn.dynamics import (
    Affine,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    PiecewiseConstant,
    SquaredExponential,
    Wiener,
)

ATOMS = (
    Constant(0.7),
    PiecewiseConstant(2.0, (0.5, 2.0, 3.3)),
    Wiener(0.3, origin=-1.0),
    Wiener(0.4, origin="first"),
    Matern12(0.6, 1.3),
    Matern32(0.6, 1.3),
    Matern52(0.8, 2.0),
    Linear(0.2, origin=1.0),
    Linear(0.3, origin="first"),
    Affine(1.2, 0.3, origin=-0.5),
)
PAIRS = tuple(itertools.combinations_with_replacement(ATOMS, 2))
EXACT = (*ATOMS, *(a + b for a, b in PAIRS), *(a * b for a, b in PAIRS))
DEEP = (
    Matern12() * Matern32() * Matern52(),
    (Constant() + Matern12(0.6, 1.3)) * (Affine() + Wiener(origin="first")),
    (Constant() + Wiener(origin=-3.0)) * PiecewiseConstant(1.0, (1.0, 2.0)) + Matern32(),
    PiecewiseConstant(1.0, (1.0, 2.0)) * PiecewiseConstant(1.0, (0.5, 2.0)) * Linear(),
    Wiener(origin=-2.0) * Wiener(origin="first") * Wiener(origin=-1.5),
)
# Exact up to the truncation, which the Gram does not have.
APPROXIMATE = (
    Periodic(0.9, 0.8, 2.5, order=20),
    Periodic(0.9, 1.5, 2.5, order=10) * Matern32(0.6, 1.3),
    Periodic(0.9, 1.5, 2.5, order=6) * Periodic(1.1, 2.0, 1.7, order=6) + Wiener(0.3, origin="first"),
    Periodic(0.9, 1.5, 2.5, order=8) * Linear() + PiecewiseConstant(1.0, (1.0,)) * Constant(3.0),
)
TIMES = st.lists(st.floats(-1, 6), min_size=1, max_size=12).map(lambda values: np.sort(np.array(values)))


def chain(model, times):
    """First covariance, and A and Q of each step of one feature."""
    first = np.full(len(times) - 1, times[0])
    A, Q = model.transitions(times[:-1], times[1:], first)
    return model.initial(times[:1])[0], A, Q


def implied(model, times):
    """The joint covariance of scores that the transitions imply."""
    P, A, Q = chain(model, times)
    n, h = len(times), model.measurement
    joint = np.zeros((n, n))
    for i in range(n):
        P = A[i - 1] @ P @ A[i - 1].T + Q[i - 1] if i else P
        ahead = P @ h
        for j in range(i, n):
            ahead = A[j - 1] @ ahead if j > i else ahead
            joint[i, j] = joint[j, i] = h @ ahead
    return joint


def correlations(joint, gram):
    """Both divided by standard deviations, but where these are almost 0: one tolerance fits all times."""
    sizes = np.sqrt(np.diag(gram))
    sizes = np.maximum(sizes, 0.1 * sizes.max())
    return joint / np.outer(sizes, sizes), gram / np.outer(sizes, sizes)


# ---- Equal to the Gram


@pytest.mark.parametrize("covariance", EXACT + DEEP + APPROXIMATE, ids=repr)
def test_the_chain_has_the_covariance(covariance):
    times = np.array([-0.9, -0.9, -0.3, 0.1, 0.5, 0.9, 0.9, 1.0, 1.9, 2.0, 2.2, 3.3, 5.9])
    joint, gram = correlations(implied(covariance.state_space(), times), covariance.gram(times))
    np.testing.assert_allclose(joint, gram, rtol=0, atol=1e-13 if covariance not in APPROXIMATE else 1e-8)


@given(st.sampled_from(EXACT + DEEP), TIMES)
def test_the_chain_has_the_covariance_at_any_times(covariance, times):
    joint, gram = implied(covariance.state_space(), times), covariance.gram(times)
    np.testing.assert_allclose(joint, gram, rtol=0, atol=1e-13 * max(1.0, np.abs(gram).max()))


@given(st.sampled_from(EXACT + DEEP + APPROXIMATE), TIMES.filter(lambda t: len(t) > 2))
def test_two_steps_are_one(covariance, times):
    start, middle, end = times[:1], times[1:2], times[-1:]
    model = covariance.state_space()
    (A1, Q1), (A2, Q2), (A, Q) = (
        model.transitions(*step, start) for step in ((start, middle), (middle, end), (start, end))
    )
    np.testing.assert_allclose(A2 @ A1, A, rtol=0, atol=1e-12 * np.abs(A).max(initial=1))
    np.testing.assert_allclose(
        A2 @ Q1 @ A2.transpose(0, 2, 1) + Q2, Q, rtol=0, atol=1e-12 * np.abs(Q).max(initial=1)
    )
    np.testing.assert_allclose(Q, Q.transpose(0, 2, 1), rtol=1e-14, atol=1e-14 * np.abs(Q).max(initial=0))


@pytest.mark.parametrize("covariance", EXACT + DEEP + APPROXIMATE, ids=repr)
def test_noise_and_first_covariance_are_positive_semidefinite(covariance):
    times = np.array([0.0, 0.0, 1e-12, 1e-6, 0.3, 0.5, 7.0, 1e5, 1e9])
    model = covariance.state_space()
    _, Q = model.transitions(times[:-1], times[1:], np.zeros(8))
    for matrix in (*Q, *model.initial(times)):
        sizes = np.sqrt(np.diag(matrix)) + (np.diag(matrix) == 0)
        assert np.linalg.eigvalsh(matrix / sizes / sizes[:, None])[0] > -1e-14 * model.size


# ---- How large the state is, and what a step depends on


@pytest.mark.parametrize(
    ("covariance", "size"),
    [
        (Constant() + Wiener(), 1),
        (Affine() + Wiener() + Linear(origin=3.0) + Constant(), 2),
        (Constant() + Matern12(), 2),
        (Matern12(lengthscale=3.0) + Matern12(2.0, lengthscale=3.0), 1),
        (Matern12(lengthscale=3.0) + Matern12(lengthscale=4.0), 2),
        (PiecewiseConstant(boundaries=(1.0,)) + PiecewiseConstant(boundaries=(1.0,)), 1),
        (PiecewiseConstant(boundaries=(1.0,)) + PiecewiseConstant(boundaries=(2.0,)) + Constant(), 3),
        (Constant() * Matern52(), 3),
        (Matern32() * Matern32(lengthscale=2.0), 3),
        (Matern52() * Matern52(), 5),
        (Affine() * Affine(), 3),
        (Wiener() * Wiener(), 1),
        (Matern32() * Affine() + Matern32(), 3),
        (Periodic(order=4), 9),
        (Periodic(order=4) * Matern32(), 18),
        (SquaredExponential(order=8), 8),
    ],
    ids=repr,
)
def test_size_of_the_state(covariance, size):
    model = covariance.state_space()
    assert model.size == len(model.measurement) == size
    assert model.initial(np.zeros(3)).shape == (3, size, size)


GAP, CROSSES, START, AGE = range(4)


@pytest.mark.parametrize(
    ("covariance", "needs"),
    [
        (Constant(), set()),
        (Matern12(), {GAP}),
        (Affine() + Wiener(origin="first"), {GAP}),
        (Linear() * Linear(), {GAP}),
        (Periodic(), {GAP}),
        (SquaredExponential() * Periodic(), {GAP}),
        (PiecewiseConstant(boundaries=(1.0, 4.0)), {CROSSES}),
        (PiecewiseConstant(boundaries=(1.0, 4.0)) * Matern12(), {CROSSES, GAP}),
        (PiecewiseConstant(boundaries=(0.5,)) * Wiener(), {CROSSES, GAP, START}),
        (Wiener() * Wiener(), {GAP, START}),
        (Affine() * Matern32(), {GAP, START}),
        (Affine(origin="first") * Matern32(), {GAP, AGE}),
        (Wiener(origin="first") * Wiener(), {GAP, AGE, START}),
    ],
    ids=repr,
)
def test_steps_with_equal_keys_are_equal_and_others_are_not(covariance, needs):
    """Whatever is not among the needs is changed; whatever is, is changed alone."""
    model = covariance.state_space()
    base = {GAP: 0.5, CROSSES: 0, START: 0.25, AGE: 0.125}

    def step(gap, shift, age):
        return tuple(np.array([value]) for value in (0.25 + shift, 0.25 + shift + gap, 0.25 + shift - age))

    changes = {
        GAP: step(0.625, 0.0, 0.125),
        CROSSES: None if START in needs else step(0.5, 0.5, 0.125),
        START: step(0.5, 0.125, 0.125),
        AGE: step(0.5, 0.0, 0.25),
    }
    reference = step(base[GAP], 0.0, base[AGE])
    for need, changed in changes.items():
        if changed is None:
            continue
        same_keys = all(map(np.array_equal, model.keys(*reference), model.keys(*changed)))
        same = all(map(np.array_equal, model.transitions(*reference), model.transitions(*changed)))
        assert same_keys == same == (need not in needs)


def test_keys_are_one_value_a_step():
    times = np.array([0.0, 1.0, 3.0, 5.0])
    assert [key.tolist() for key in Constant().state_space().keys(times[:-1], times[1:])] == [[0.0, 0.0, 0.0]]
    seasons = PiecewiseConstant(boundaries=(1.0, 4.0)).state_space()
    assert [key.tolist() for key in seasons.keys(times[:-1], times[1:])] == [[1.0, 0.0, 1.0]]
    assert [key.tolist() for key in Matern12().state_space().keys(times[:-1], times[1:])] == [[1.0, 2.0, 2.0]]


def test_an_origin_at_the_first_time_is_that_of_each_feature():
    model = (Constant(2.0) + Wiener(0.5, origin="first")).state_space()
    np.testing.assert_array_equal(model.initial(np.array([-7.0, 3.0, 1e6])), np.full((3, 1, 1), 2.0))
    product = (Wiener(0.5, origin="first") * Wiener(2.0, origin="first")).state_space()
    start, first = np.array([3.0, 13.0, 13.0]), np.array([0.0, 10.0, 0.0])
    _, Q = product.transitions(start, start + 1, first)
    np.testing.assert_allclose(Q.ravel(), [16 - 9, 16 - 9, 14**2 - 13**2], rtol=1e-15)


# ---- Extreme gaps and variances


def in_high_precision(F, density, gap):
    """A and Q of dx = F x dt + noise in the last entry, from one matrix exponential (Van Loan 1978)."""
    K = len(F)
    with mp.workdps(300):
        both = mp.zeros(2 * K)
        both[:K, :K], both[K:, K:] = mp.matrix(F), -mp.matrix(F).T
        both[K - 1, 2 * K - 1] = density
        both = mp.expm(both * gap)
        A = both[:K, :K]
        return np.array(A.tolist()), np.array((both[:K, K:] * A.T).tolist())


def relative(found, exact):
    """Largest error of an entry; those that underflow count as exact."""
    return max(
        (
            abs(float(abs(a - b) / abs(b)))
            for a, b in zip(found.ravel(), exact.ravel(), strict=True)
            if abs(b) > 1e-250
        ),
        default=0.0,
    )


@pytest.mark.parametrize("kind", [Matern12, Matern32, Matern52])
@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-5, 0.1, 3.0, 40.0, 1e5, 1e9])
@pytest.mark.parametrize(("variance", "lengthscale"), [(1e-12, 1.0), (1e6, 1e5)])
def test_matern_transitions_keep_their_digits(kind, gap, variance, lengthscale):
    """The states are s, (d/du + 1) s, ... with u = rate * time: each is driven by the next one."""
    model = kind(variance, lengthscale).state_space()
    K, rate = model.size, np.sqrt(2 * model.size - 1) / lengthscale
    A, Q = model.transitions(np.zeros(1), np.array([gap]))
    passed = min(mp.mpf(float(rate)) * gap, 500)
    F = -np.eye(K) + np.eye(K, k=1)
    density = variance * mp.mpf(2) ** (2 * K - 1) / mp.binomial(2 * K - 2, K - 1)  # so that Var(s) = variance
    expected = in_high_precision(F.tolist(), density, passed)
    if passed < 500:
        assert relative(A[0], expected[0]) < 1e-13
    else:
        np.testing.assert_allclose(A, 0, atol=1e-200)
    assert relative(Q[0], expected[1]) < 1e-13


@pytest.mark.parametrize("gap", [1e-12, 1e-5, 0.1, 3.0, 40.0])
def test_products_keep_their_digits(gap):
    """Matérn 3/2 times 1/2 is (1 + a|t|) e^{-(a + b)|t|}; Q = P - A P A', here in high precision."""
    a, b, variance = 1.5, 0.4, 1e-6
    model = (Matern32(variance, np.sqrt(3) / a) * Matern12(1.0, 1 / b)).state_space()
    assert model.size == 2
    A, Q = model.transitions(np.zeros(1), np.array([gap]))
    P = model.initial(np.zeros(1))[0]
    with mp.workdps(120):
        rate, ratio = mp.mpf(a) + mp.mpf(b), mp.mpf(a) / (mp.mpf(a) + mp.mpf(b))
        stationary = variance * mp.matrix([[1, ratio], [ratio, 2 * ratio**2]])
        step = mp.exp(-rate * gap) * mp.matrix([[1, rate * gap], [0, 1]])
        noise = stationary - step * stationary * step.T
        assert relative(P, np.array(stationary.tolist())) < 1e-14
        assert relative(A[0], np.array(step.tolist())) < 1e-14
        assert relative(Q[0], np.array(noise.tolist())) < 1e-13


@pytest.mark.parametrize("order", [2, 6, 10])
@pytest.mark.parametrize("gap", [1e-12, 1e-5, 0.1])
def test_squared_exponential_keeps_the_digits_of_short_gaps(order, gap):
    from preflearn.dynamics.covariances.approximations import _drift

    F, density = _drift(order)
    A, Q = SquaredExponential(1e-6, 10.0, order).state_space().transitions(np.zeros(1), np.array([10 * gap]))
    expected = in_high_precision(
        F.tolist(), mp.mpf(density) * mp.mpf(1e-6), mp.mpf(float(np.float64(10 * gap) / 10))
    )
    assert relative(A[0], expected[0]) < 1e-12
    assert relative(Q[0], expected[1]) < 1e-12


@given(
    st.sampled_from([Matern12, Matern32, Matern52, SquaredExponential]),
    st.floats(0, 1e9),
    st.floats(1e-12, 1e6),
    st.floats(1e-3, 1e6),
)
def test_stationary_processes_stay_stationary(kind, gap, variance, lengthscale):
    model = kind(variance, lengthscale).state_space()
    A, Q = model.transitions(np.zeros(1), np.array([gap]))
    P = model.initial(np.zeros(1))
    np.testing.assert_allclose(A @ P @ A.transpose(0, 2, 1) + Q, P, rtol=0, atol=1e-12 * np.abs(P).max())


def test_long_gaps_of_a_trend_are_exact():
    model = (Affine(4.0, 1e-12) + Wiener(1e-12)).state_space()
    gap = np.array([0.0, 1e-12, 1e9])
    A, Q = model.transitions(np.zeros(3), gap)
    np.testing.assert_array_equal(A[:, 0, 1], gap)
    np.testing.assert_array_equal(Q[:, 0, 0], 1e-12 * gap)
    assert np.count_nonzero(Q) == 2


# ---- What is refused


def test_times_before_the_origin():
    with pytest.raises(ValueError, match=r"a time is -2, before the origin -1\.0 of a Wiener process"):
        Wiener(origin=-1.0).state_space().initial(np.array([0.0, -2.0]))


def test_a_product_with_an_origin_at_the_first_time_needs_that_time():
    model = (Wiener(origin="first") * Matern12()).state_space()
    for method in (model.transitions, model.keys):
        with pytest.raises(ValueError, match="first is None; expected the first time of each feature"):
            method(np.zeros(1), np.ones(1))


def test_overflow():
    model = (Linear(1e100) * Linear(1e100)).state_space()
    with pytest.raises(ValueError, match="the covariance overflows"):
        model.initial(np.array([1e80]))
    with pytest.raises(ValueError, match="the covariance overflows"):
        (Linear() * Linear() * Linear() * Linear()).state_space().transitions(np.zeros(1), np.full(1, 1e100))


@pytest.mark.parametrize(
    "covariance",
    [
        Constant(2.0) * Wiener(origin="first"),
        Constant(2.0) * Affine(origin="first"),
        Linear(origin="first") * Constant(3.0),
    ],
)
def test_a_factor_without_noise_needs_no_first_time(covariance):
    """What stands still multiplies no noise of the other factor's past."""
    time = np.array([1.0, 2.5, 2.5, 7.0])
    space = covariance.state_space()
    assert not any("age" in key for key in space.depends if isinstance(key, str))
    A, Q = space.transitions(time[:-1], time[1:])
    P, h = space.initial(time[:1])[0], space.measurement
    for k in range(3):
        P = A[k] @ P @ A[k].T + Q[k]
        assert h @ P @ h == pytest.approx(covariance.gram(time)[k + 1, k + 1], rel=1e-12)

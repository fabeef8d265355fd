"""Covariance functions: their formulas, what can be done with them, and what they refuse."""

import json
import math

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
    covariance_from,
)
from studies.ch12_states import least_state_size


def season(time):
    return 0 if time < 0.5 else 1 if time < 2.0 else 2


FORMULAS = {
    Constant(0.7): lambda t, u: 0.7,
    PiecewiseConstant(2.0, (0.5, 2.0)): lambda t, u: 2.0 * (season(t) == season(u)),
    Wiener(0.3, origin=-1.0): lambda t, u: 0.3 * (min(t, u) + 1),
    Matern12(0.6, 1.3): lambda t, u: 0.6 * math.exp(-abs(t - u) / 1.3),
    Matern32(0.6, 1.3): lambda t, u: matern(1.5, 0.6, abs(t - u) / 1.3),
    Matern52(0.8, 2.0): lambda t, u: matern(2.5, 0.8, abs(t - u) / 2.0),
    Linear(0.2, origin=1.0): lambda t, u: 0.2 * (t - 1) * (u - 1),
    Affine(1.2, 0.3, origin=-0.5): lambda t, u: 1.2 + 0.3 * (t + 0.5) * (u + 0.5),
    Periodic(0.9, 0.8, 2.5): lambda t, u: 0.9 * math.exp(-2 * math.sin(math.pi * (t - u) / 2.5) ** 2 / 0.64),
    SquaredExponential(0.9, 0.8): lambda t, u: 0.9 * math.exp(-((t - u) ** 2) / 2 / 0.64),
}
ATOMS = (*FORMULAS, Wiener(0.3, origin="first"), Linear(origin="first"), Affine(origin="first"))
MANY = (*ATOMS, *(a + b for a in ATOMS for b in ATOMS), *(a * b for a in ATOMS for b in ATOMS))


def matern(nu, variance, distance):
    """The general formula, with the Bessel function K: Rasmussen and Williams (2006), eq. 4.14."""
    from scipy.special import gamma, kv

    u = math.sqrt(2 * nu) * distance
    return variance * (2 ** (1 - nu) / gamma(nu) * u**nu * kv(nu, u) if u else 1.0)


# ---- The Gram matrix


@pytest.mark.parametrize("covariance", FORMULAS, ids=repr)
def test_gram_is_the_formula(covariance):
    t, t2 = np.array([3.0, -0.9, 0.5, 0.0]), np.array([0.5, 1.0, 2.0, -0.9, 7.7])
    expected = [[FORMULAS[covariance](a, b) for b in t2] for a in t]
    np.testing.assert_allclose(covariance.gram(t, t2), expected, rtol=1e-13)
    np.testing.assert_array_equal(covariance.gram(t), covariance.gram(t, t))


def test_sums_and_products_add_and_multiply():
    a, b, c = Constant(2.0), Matern12(), Wiener(0.5, origin="first")
    t = np.array([1.0, 4.0, 2.5])
    np.testing.assert_allclose((a + b * c).gram(t), a.gram(t) + b.gram(t) * c.gram(t))
    np.testing.assert_allclose(((a + b) * c).gram(t), (a * c + b * c).gram(t))


@given(st.sampled_from(MANY), st.lists(st.floats(-1, 50), min_size=1, max_size=10))
def test_gram_is_positive_semidefinite(covariance, times):
    K = covariance.gram(times)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -1e-13 * np.trace(K)


def test_an_origin_at_the_first_time_is_the_least_time_of_the_call():
    np.testing.assert_array_equal(
        Wiener(origin="first").gram([5.0, 3.0, 9.0]), Wiener(origin=3.0).gram([5.0, 3.0, 9.0])
    )
    np.testing.assert_array_equal(Linear(origin="first").gram([5.0], [3.0, 4.0]), [[0.0, 2.0]])
    composite = Wiener(origin="first") + Affine(origin="first") * Matern12()
    np.testing.assert_allclose(composite.gram([1e6, 1e6 + 2]), composite.gram([0.0, 2.0]))


def test_a_boundary_belongs_to_the_interval_that_it_begins():
    seasons = PiecewiseConstant(boundaries=(1.0, 2.0))
    np.testing.assert_array_equal(seasons.gram([np.nextafter(1, 0)], [0.0, 1.0]), [[1.0, 0.0]])
    np.testing.assert_array_equal(seasons.gram([1.0], [np.nextafter(2, 0), 2.0]), [[1.0, 0.0]])


# ---- Covariances as values


@pytest.mark.parametrize(
    "covariance", [*ATOMS, *MANY[13::7], (ATOMS[0] + ATOMS[1]) * ATOMS[2] * ATOMS[3]], ids=repr
)
def test_descriptions_reprs_and_hashes(covariance):
    described = json.loads(json.dumps(covariance.describe()))
    for again in (covariance_from(described), eval(repr(covariance))):
        assert again == covariance
        assert hash(again) == hash(covariance)
        assert repr(again) == repr(covariance)


def test_equal_parameters_are_equal_covariances():
    assert Constant(2) == Constant(np.float32(2)) == Constant(variance=2.0) != Constant(3.0)
    assert Matern12() != Matern32()
    assert (Constant() + Linear()) + Wiener() == Constant() + (Linear() + Wiener())
    assert Constant() + Linear() != Constant() * Linear()
    assert PiecewiseConstant(boundaries=[1, 2]) == PiecewiseConstant(boundaries=np.array([1.0, 2.0]))
    assert repr((Constant(2) + Wiener(origin="first")) * Constant()) == (
        "(Constant(variance=2.0) + Wiener(variance=1.0, origin='first')) * Constant(variance=1.0)"
    )


def test_a_covariance_does_not_change():
    with pytest.raises(AttributeError):
        Constant().variance = 2.0


# ---- Approximations


@pytest.mark.parametrize(
    ("order", "stated"), [(2, 0.141), (4, 0.0171), (6, 3.0e-3), (8, 6.1e-4), (10, 1.3e-4)]
)
def test_squared_exponential_error_is_the_stated_one(order, stated):
    covariance = SquaredExponential(4.0, 10.0, order)
    gaps = np.linspace(0, 100, 501)
    error = np.abs(from_zero(covariance.state_space(), gaps) - covariance.gram([0.0], gaps)[0]) / 4.0
    assert error.argmax() == 0
    assert error.max() == pytest.approx(stated, rel=0.02)


@pytest.mark.parametrize(("order", "lengthscale", "stated"), [(6, 1.0, 1.2e-6), (6, 0.5, 1.9e-3)])
def test_periodic_error_is_the_stated_one(order, lengthscale, stated):
    covariance = Periodic(4.0, lengthscale, 10.0, order)
    gaps = np.linspace(0, 100, 501)
    error = np.abs(from_zero(covariance.state_space(), gaps) - covariance.gram([0.0], gaps)[0]) / 4.0
    assert error.max() == pytest.approx(error[0])
    assert error.max() == pytest.approx(stated, rel=0.05)


def test_a_period_stays_in_step_over_centuries():
    covariance = Periodic(1.0, 1.0, 365.25, order=12)
    gap = np.array([100.0, 365.25e6 + 100.0])
    np.testing.assert_allclose(*from_zero(covariance.state_space(), gap), rtol=1e-12)
    np.testing.assert_allclose(*covariance.gram([0.0], gap)[0], rtol=1e-12)


def from_zero(model, gaps):
    """Covariances of the score at time 0 with later ones."""
    A, _ = model.transitions(np.zeros(len(gaps)), gaps)
    return A.transpose(0, 2, 1) @ model.measurement @ model.initial(np.zeros(1))[0] @ model.measurement


# ---- The least size of a state


SCALED = (
    Constant(),
    PiecewiseConstant(boundaries=(12.5, 18.5)),
    Wiener(origin=-1.0),
    Matern12(lengthscale=3.0),
    Matern32(lengthscale=4.0),
    Matern52(lengthscale=9.0),
    Linear(origin=-2.0),
    Affine(slope_variance=0.1),
)


@pytest.mark.parametrize(
    "covariance",
    [*SCALED, *(a + b for a in SCALED for b in SCALED), *(a * b for a in SCALED for b in SCALED)],
    ids=repr,
)
def test_the_model_is_as_small_and_as_simple_as_the_gram_allows(covariance):
    found, model = least_state_size(covariance), covariance.state_space()
    assert model.size >= found.by_times
    assert found.by_gap in (model.size, None)
    assert (found.by_gap is None) == any(isinstance(need, tuple) for need in model.depends)
    assert found.noise_by_gap in (model.depends <= {"gap"}, None)


# ---- What is refused


@pytest.mark.parametrize("kind", [type(covariance) for covariance in FORMULAS])
@pytest.mark.parametrize("variance", [0.0, -1.0, math.nan, math.inf, True, "1", None, 1e-101, 1e101])
def test_variances_that_are_refused(kind, variance):
    with pytest.raises(ValueError, match=r"variance is .*; expected a positive number"):
        kind(variance=variance)


@pytest.mark.parametrize("kind", [Matern12, Matern32, Matern52, Periodic, SquaredExponential])
@pytest.mark.parametrize("lengthscale", [0.0, -1.0, math.nan])
def test_lengthscales_that_are_refused(kind, lengthscale):
    with pytest.raises(ValueError, match=r"lengthscale is .*; expected a positive number"):
        kind(lengthscale=lengthscale)


@pytest.mark.parametrize("kind", [Wiener, Linear, Affine])
@pytest.mark.parametrize("origin", ["last", math.nan, None, 1e101, [0.0]])
def test_origins_that_are_refused(kind, origin):
    with pytest.raises(ValueError, match=r"origin is .*; expected a time or 'first'"):
        kind(origin=origin)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: PiecewiseConstant(boundaries=(1.0, 3.0, 2.0)),
            r"boundaries\[2\] is 2.0; expected ascending times",
        ),
        (
            lambda: PiecewiseConstant(boundaries=(1.0, 1.0)),
            r"boundaries\[1\] is 1.0; expected ascending times",
        ),
        (lambda: PiecewiseConstant(boundaries=(1.0, math.nan)), r"boundaries\[1\] is nan; expected finite"),
        (lambda: PiecewiseConstant(boundaries=()), "boundaries is empty"),
        (lambda: PiecewiseConstant(boundaries=3.0), r"boundaries has shape \(\); expected"),
        (lambda: Affine(slope_variance=0.0), "slope_variance is 0.0; expected a positive number"),
        (lambda: Periodic(period=0.0), "period is 0.0; expected a positive number"),
        (lambda: Periodic(order=0), "order is 0; expected a whole number of at least 1"),
        (lambda: Periodic(order=51), "order is 51; expected a whole number from 1 to 50"),
        (lambda: SquaredExponential(order=1), "order is 1; expected a whole number of at least 2"),
        (lambda: SquaredExponential(order=2.5), "order is 2.5; expected a whole number of at least 2"),
        (lambda: Constant().gram([0.0, math.nan]), r"t\[1\] is nan; expected finite numbers"),
        (lambda: Constant().gram([0.0], [1e101]), r"t2\[0\] is 1e\+101; expected times up to 1e100 in size"),
        (lambda: Constant().gram([]), "t is empty"),
        (lambda: Constant().gram(0.0), r"t has shape \(\); expected \(n,\): times"),
        (
            lambda: Wiener().gram([0.0, 1.0], [-2.0]),
            r"the least time is -2.0; expected times from the origin 0 on",
        ),
        (lambda: (Linear(1e100) * Linear()).gram([1e80]), "the covariance overflows"),
        (
            lambda: covariance_from("Constant"),
            "the description of a covariance is 'Constant'; expected a dict",
        ),
        (
            lambda: covariance_from({"kind": "Cosine"}),
            r"the kind of a covariance is 'Cosine'; expected one of \['Aff",
        ),
        (
            lambda: covariance_from({"kind": "_Matern", "variance": 1.0}),
            "the kind of a covariance is '_Matern'",
        ),
        (lambda: covariance_from({"variance": 1.0}), "the kind of a covariance is None"),
        (
            lambda: covariance_from({"kind": "Constant"}),
            r"the description of Constant has \[\]; expected \['variance'",
        ),
        (
            lambda: covariance_from({"kind": "Constant", "variance": 1.0, "origin": 0.0}),
            r"has \['variance', 'origin'\]; expected \['variance'\]",
        ),
        (lambda: covariance_from({"kind": "Constant", "variance": -1.0}), "variance is -1.0"),
        (
            lambda: covariance_from({"kind": "Sum", "parts": []}),
            r"parts is \(\); expected at least one covariance",
        ),
        (lambda: covariance_from({"kind": "Sum", "parts": 3}), "parts is 3; expected a list of descriptions"),
        (lambda: covariance_from({"kind": "Sum", "parts": [1]}), "the description of a covariance is 1"),
    ],
)
def test_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_only_covariances_are_added_and_multiplied():
    for operation in (lambda: Constant() + 1.0, lambda: 2.0 * Constant(), lambda: Constant() * "a"):
        with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
            operation()

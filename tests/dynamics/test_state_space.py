"""State-space models compared with Gram matrices, their sizes, and what their steps
depend on."""

import numpy as np
import pytest
from dynamics import dense
from dynamics.problems import EXACT
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
    covariances,
)
from preflearn_book.studies.ch12_states import least_state_size

EXACT_AND_DEEP = (
    *EXACT,
    Matern12() * Matern32() * Matern52(),
    (Constant() + Matern12(0.6, 1.3)) * (Affine(origin=0.0) + Wiener(origin="first")),
    (Constant() + Wiener(origin=-3.0)) * PiecewiseConstant(1.0, (1.0, 2.0))
    + Matern32(),
    PiecewiseConstant(1.0, (1.0, 2.0))
    * PiecewiseConstant(1.0, (0.5, 2.0))
    * Linear(origin=0.0),
    Wiener(origin=-2.0) * Wiener(origin="first") * Wiener(origin=-1.5),
)
# Exact up to the truncation, which the Gram matrix does not have.
APPROXIMATE = (
    Periodic(0.9, 0.8, 2.5, order=20),
    Periodic(0.9, 1.5, 2.5, order=10) * Matern32(0.6, 1.3),
    Periodic(0.9, 1.5, 2.5, order=6) * Periodic(1.1, 2.0, 1.7, order=6)
    + Wiener(0.3, origin="first"),
    Periodic(0.9, 1.5, 2.5, order=8) * Linear(origin=0.0)
    + PiecewiseConstant(1.0, (1.0,)) * Constant(3.0),
)
ALL = EXACT_AND_DEEP + APPROXIMATE
TIMES = st.lists(st.floats(-1, 6), min_size=1, max_size=12).map(
    lambda values: np.sort(np.array(values))
)


# ---- Equality with the Gram matrix


@pytest.mark.parametrize("covariance", ALL, ids=repr)
def test_the_chain_has_the_covariance(covariance):
    """Errors are in units of standard deviations, except where these are almost 0, so
    that one tolerance suits all times."""
    times = np.array(
        [-0.9, -0.9, -0.3, 0.1, 0.5, 0.9, 0.9, 1.0, 1.9, 2.0, 2.2, 3.3, 5.9]
    )
    gram = covariance.gram(times)
    sizes = np.sqrt(np.diag(gram))
    sizes = np.maximum(sizes, 0.1 * sizes.max())
    error = (
        dense.ImpliedCovariance(covariance.state_space()).gram(times) - gram
    ) / np.outer(sizes, sizes)
    np.testing.assert_allclose(
        error, 0, atol=1e-13 if covariance not in APPROXIMATE else 1e-8
    )


@pytest.mark.parametrize(("covariance", "error"), covariances.EXAMPLES.items())
def test_the_chain_of_each_example_has_the_stated_error(covariance, error):
    times = np.linspace(-0.9, 6.0, 30)
    gram = covariance.gram(times)
    implied = dense.ImpliedCovariance(covariance.state_space()).gram(times)
    scale = np.diag(gram).max()
    np.testing.assert_allclose(implied, gram, rtol=0, atol=(error + 1e-13) * scale)


@given(st.sampled_from(ALL), TIMES.filter(lambda t: len(t) > 2))
def test_two_steps_are_one(covariance, times):
    start = times[:1]
    middle = times[1:2]
    end = times[-1:]
    model = covariance.state_space()
    (A1, Q1), (A2, Q2), (A, Q) = (
        model.transitions(*step, start)
        for step in ((start, middle), (middle, end), (start, end))
    )
    np.testing.assert_allclose(
        A2 @ A1, A, rtol=0, atol=1e-12 * np.abs(A).max(initial=1)
    )
    np.testing.assert_allclose(
        A2 @ Q1 @ A2.transpose(0, 2, 1) + Q2,
        Q,
        rtol=0,
        atol=1e-12 * np.abs(Q).max(initial=1),
    )
    np.testing.assert_allclose(
        Q, Q.transpose(0, 2, 1), rtol=1e-14, atol=1e-14 * np.abs(Q).max(initial=0)
    )


@pytest.mark.parametrize("covariance", ALL, ids=repr)
def test_noise_and_first_covariance_are_positive_semidefinite(covariance):
    times = np.array([0.0, 0.0, 1e-12, 1e-6, 0.3, 0.5, 7.0, 1e5, 1e9])
    model = covariance.state_space()
    _, Q = model.transitions(times[:-1], times[1:], np.zeros(8))
    for matrix in (*Q, *model.initial(times)):
        sizes = np.sqrt(np.diag(matrix)) + (np.diag(matrix) == 0)
        assert (
            np.linalg.eigvalsh(matrix / sizes / sizes[:, None])[0] > -1e-14 * model.size
        )


# ---- The size of the state, and what a step depends on


@pytest.mark.parametrize(
    ("covariance", "size"),
    [
        (Affine(origin=0.0) + Wiener(origin=0.0) + Linear(origin=3.0) + Constant(), 2),
        (Matern12(lengthscale=3.0) + Matern12(2.0, lengthscale=3.0), 1),
        (
            PiecewiseConstant(boundaries=(1.0,))
            + PiecewiseConstant(boundaries=(2.0,))
            + Constant(),
            3,
        ),
        (Matern32() * Affine(origin=0.0) + Matern32(), 3),
        (Periodic(order=4) * Matern32(), 18),
        (SquaredExponential(order=8), 8),
    ],
    ids=repr,
)
def test_sizes_of_states_of_longer_sums(covariance, size):
    assert covariance.state_space().size == size


SCALED = (  # scaled to the times at which the smallest size is computed
    Constant(),
    PiecewiseConstant(boundaries=(12.5, 18.5)),
    Wiener(origin=-1.0),
    Matern12(lengthscale=3.0),
    Matern32(lengthscale=4.0),
    Matern52(lengthscale=9.0),
    Linear(origin=-2.0),
    Affine(slope_variance=0.1, origin=0.0),
)


@pytest.mark.parametrize(
    "covariance",
    [
        *SCALED,
        *(a + b for a in SCALED for b in SCALED),
        *(a * b for a in SCALED for b in SCALED),
    ],
    ids=repr,
)
def test_the_model_is_as_small_and_as_simple_as_the_gram_allows(covariance):
    found = least_state_size(covariance)
    model = covariance.state_space()
    assert model.size >= found.by_times
    assert found.by_gap in (model.size, None)
    assert (found.by_gap is None) == any(
        isinstance(need, tuple) for need in model.depends
    )
    assert found.noise_by_gap in (model.depends <= {"gap"}, None)


def step(gap=0.5, shift=0.0, age=0.125):
    """Return the start, the end, and the first time of a step."""
    return tuple(np.array([0.25 + shift + value]) for value in (0.0, gap, -age))


@pytest.mark.parametrize(
    ("covariance", "needs"),
    [
        (Constant(), ""),
        (Matern12(), "gap"),
        (Affine(origin=0.0) + Wiener(origin="first"), "gap"),
        # the product with a constant adds no dependence
        (Constant(2.0) * Wiener(1.0, "first"), "gap"),
        (Linear(1.0, "first") * Constant(3.0), "gap"),
        (SquaredExponential() * Periodic(), "gap"),
        (PiecewiseConstant(boundaries=(1.0, 4.0)), "crosses"),
        (PiecewiseConstant(boundaries=(1.0, 4.0)) * Matern12(), "crosses gap"),
        (
            PiecewiseConstant(boundaries=(0.5,)) * Wiener(origin=0.0),
            "crosses gap start",
        ),
        (Affine(origin=0.0) * Matern32(), "gap start"),
        (Affine(origin="first") * Matern32(), "gap age"),
        (Wiener(origin="first") * Wiener(origin=0.0), "gap age start"),
    ],
    ids=repr,
)
def test_steps_with_equal_keys_are_equal_and_others_are_not(covariance, needs):
    """Everything that is not needed is changed at once, and each need is changed
    separately."""
    model = covariance.state_space()
    changes = {
        "gap": step(gap=0.625),
        "start": step(shift=0.125),
        "age": step(age=0.25),
    }
    if "start" not in needs:
        changes["crosses"] = step(shift=0.5)  # also has a later start
    for need, changed in changes.items():
        same_keys = all(map(np.array_equal, model.keys(*step()), model.keys(*changed)))
        same = all(
            map(np.array_equal, model.transitions(*step()), model.transitions(*changed))
        )
        assert same_keys == same == (need not in needs)


# ---- Steps that are rejected


def test_bad_steps_are_rejected():
    """The bad steps are a product with an origin at the first time without this time,
    times before an origin, and overflow."""
    start = np.zeros(1)
    end = np.full(1, 1e100)
    line = Linear(1e100, origin=0.0)
    for call, message in (
        (
            lambda: (
                (Wiener(origin="first") * Matern12())
                .state_space()
                .transitions(start, end)
            ),
            "first",
        ),
        (
            lambda: Wiener(origin=-1.0).state_space().initial(np.array([0.0, -2.0])),
            "-2.0.*-1.0",
        ),
        (lambda: (line * line).state_space().initial(np.array([1e80])), "overflow"),
        (
            lambda: (line * line * line * line).state_space().transitions(start, end),
            "overflow",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()

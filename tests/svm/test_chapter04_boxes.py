"""The theorem boxes of chapters 04 to 06, on random and on degenerate small problems."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from reference import flipped_rows, hinge_machine
from scipy.optimize import linprog

from preflearn.pairs import Pairs
from preflearn.svm import DegenerateBiasError, SVMCompare

# Small integers give ties, equal differences, null directions, and contradictions.
COORDINATE = st.integers(-2, 2)
PROBLEMS = st.integers(1, 2).flatmap(
    lambda p: st.tuples(
        st.lists(st.tuples(*[COORDINATE] * p), min_size=1, max_size=4),
        st.lists(st.tuples(*[COORDINATE] * p), min_size=1, max_size=4),
        st.sampled_from([0.003, 0.05, 0.25, 1.0, 8.0, 100.0]),
    )
)
# b = 1, and the weights of the ties' rows sum to 1.2 m C
UNBOUNDED_IN_PRINT = ([(1, 0)] * 3, [(0, 1), (0, 2)], 0.01)


def against_origin(differences):
    return Pairs.from_arrays(differences, np.zeros_like(differences))


def compared(preferences, ties):
    """Return differences, labels, and pairs. The first item wins each preference; the
    other comparisons are ties."""
    differences = np.array([*preferences, *ties], dtype=float)
    return (
        differences,
        np.repeat([1, 0], [len(preferences), len(ties)]),
        against_origin(differences),
    )


def fitted(preferences, ties, C):
    """Fit SVMCompare to differences, where the first item wins each preference. Return
    None if b < 1."""
    differences, y, pairs = compared(preferences, ties)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model = SVMCompare(C, kernel="linear", tol=1e-12).fit(pairs, y)
        except DegenerateBiasError:
            return None
    return (differences, y, model) if model.bias_ <= -1 + 1e-9 else None


def lp_value(differences, y, r, mu, nu):
    """Return the objective of the linear program at a ranking function and a margin,
    with the smallest slacks."""
    z = differences @ r
    slack = np.maximum(0, np.where(y == 0, np.abs(z) - 1 + mu, 1 + mu - z))
    return mu - slack.sum() / (nu * len(y))


def lp_bound(differences, y, weights, kappa, radius):
    """Return a bound on this objective over the ball by weak duality, from signed
    multipliers of the pairs."""
    size = np.abs(weights)
    assert size.sum() + kappa == pytest.approx(1, abs=1e-9)
    return (
        size[y == 0].sum()
        - size[y != 0].sum()
        + kappa
        + radius * np.linalg.norm(weights @ differences)
    )


@pytest.mark.theorem("thm-lp")
@example(UNBOUNDED_IN_PRINT)
@example(([(1, 0)], [(0, 0)], 0.25))
@example(([(0, 0)], [(1, 1)], 1.0))  # u = 0, radius 0
@given(PROBLEMS)
def test_the_quadratic_program_solves_the_linear_one(problem):
    found = fitted(*problem)
    assume(found is not None)
    differences, y, model = found
    b = -model.bias_
    c = model.dual_coef_
    nu = np.abs(c).sum() / (problem[2] * len(y))
    assert 0 < nu <= 1 + 1e-9
    weights = c / np.abs(c).sum()
    assert np.abs(weights).max() <= 1 / (nu * len(y)) + 1e-12
    value = lp_value(differences, y, model.coef_, 1 / b, nu)
    bound = lp_bound(differences, y, weights, 0.0, np.linalg.norm(model.coef_))
    assert value == pytest.approx(bound, abs=1e-5 * max(1, 1 / nu))


@pytest.mark.theorem("thm-lp")
def test_rows_of_ties_weigh_more_than_pairs_where_b_is_one():
    differences, y, model = fitted(*UNBOUNDED_IN_PRINT)
    assert model.bias_ == pytest.approx(-1)
    assert np.abs(model.dual_coef_[y == 0]).max() < 1e-9
    assert np.abs(model.dual_coef_).sum() / (0.01 * len(y)) == pytest.approx(0.6)
    # With the weights of the rows, twice those of the preferences, nu would be 1.2. The
    # objective would then increase with mu beyond 1.
    value = [lp_value(differences, y, model.coef_, mu, 1.2) for mu in (1, 10, 100)]
    assert value[0] < value[1] < value[2]


def solve_lp(differences, y, nu, radius):
    """Solve the program by cvxpy. Return the value, r, mu, and the constraints, with
    their multipliers."""
    w = cp.Variable(differences.shape[1])
    mu = cp.Variable()
    slack = cp.Variable(len(y), nonneg=True)
    z = differences @ w
    tied = y == 0
    rows = [z[~tied] >= 1 + mu - slack[~tied], z[tied] <= 1 - mu + slack[tied]]
    rows += [-z[tied] <= 1 - mu + slack[tied], mu <= 1, cp.norm(w) <= radius]
    problem = cp.Problem(cp.Maximize(mu - cp.sum(slack) / (nu * len(y))), rows)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value, w.value, float(mu.value), rows


@pytest.mark.theorem("thm-lp")
@pytest.mark.parametrize("seed", [1, 2, 3, 5, 6, 9, 11, 12])  # seeds with b > 1
def test_the_radius_of_the_quadratic_program_has_the_best_value_per_unit_and_no_other_comes_from_it(
    seed,
):
    rng = np.random.default_rng(seed)
    preferences = rng.normal(1, 1, (6, 2))
    ties = rng.normal(0, 1, (5, 2))
    differences, y, model = fitted(preferences, ties, 10 ** rng.uniform(-1, 2))
    assert model.bias_ < -1.001
    nu = np.abs(model.dual_coef_).sum() / (model.C * len(y))
    radius = np.linalg.norm(model.coef_)
    value, r, mu, _ = solve_lp(differences, y, nu, radius)
    assert value > 0
    assert mu == pytest.approx(-1 / model.bias_, abs=1e-4)
    assert r == pytest.approx(model.coef_, abs=1e-4)
    # Converse: the supergradient V(R) / R is the multiplier of the norm times R, and
    # gives the cost.
    cost = radius**2 / (mu * value * nu * len(y))
    assert fitted(preferences, ties, cost)[2].coef_ == pytest.approx(r, abs=1e-4)
    for other in radius * np.array([0.25, 0.5, 0.8, 1.25, 2.0, 4.0]):
        at_other, r, mu, rows = solve_lp(differences, y, nu, other)
        assert at_other / other < value / radius
        if mu < 1 - 1e-3 and np.linalg.norm(r) > other * (1 - 1e-6):
            on_preferences = rows[0].dual_value.sum()
            eta = rows[4].dual_value / other
            assert at_other == pytest.approx(
                1 - 2 * on_preferences + eta * other**2, abs=1e-5
            )
            assert abs(on_preferences - 0.5) > 1e-4


@pytest.mark.theorem("thm-lp")
def test_without_the_bound_on_mu_a_solution_exists_that_no_quadratic_program_has():
    """Take one preference of 3, one tie of 1, nu = 1, and R = 0.1. Then mu = 5 is
    optimal, but b = 1/5 < 1."""
    differences, y, pairs = compared([(3,)], [(1,)])
    free = [
        lp_value(differences, y, np.array([0.1]), mu, 1.0)
        for mu in (5, *np.linspace(0, 20, 201))
    ]
    assert free[0] == pytest.approx(max(free))
    for C in np.geomspace(1e-3, 1e3, 25):
        assert SVMCompare(C, kernel="linear").fit(pairs, y).bias_ <= -1 + 1e-9


# ---- The representer


@pytest.mark.theorem("lem-representer")
@given(
    st.lists(st.tuples(*[COORDINATE] * 4), min_size=1, max_size=2),
    st.lists(st.tuples(*[COORDINATE] * 4), min_size=1, max_size=2),
    st.sampled_from([0.05, 1.0, 20.0]),
)
def test_the_weights_are_a_combination_of_the_differences(preferences, ties, C):
    """In four dimensions, a few differences span a subspace. Some of them are equal,
    zero, or opposite."""
    D, label = flipped_rows(*compared(preferences, ties)[:2])
    u = hinge_machine(D, C, label)[1]
    c, *_ = np.linalg.lstsq(D.T, u, rcond=1e-10)
    np.testing.assert_allclose(c @ D, u, atol=2e-4)
    # the second items of the rows, and then the first items
    items = np.vstack([0 * D, D])
    a = np.append(-c, c)
    assert a @ (items @ items.T) @ a == pytest.approx(u @ u, abs=1e-3)


# ---- The bias


@pytest.mark.theorem("prop-bias")
@given(PROBLEMS)
def test_the_dual_weights_of_both_kinds_have_one_sum(problem):
    """(a), for the multipliers of the primal program."""
    rows, label = flipped_rows(*compared(*problem[:2])[:2])
    weights = hinge_machine(rows, 1.0, label, ridge=1 / problem[2])[3]
    assert weights[label > 0].sum() == pytest.approx(weights[label < 0].sum(), abs=1e-5)


@pytest.mark.theorem("prop-bias")
def test_beta_can_be_any_number_of_an_interval():
    """(d): with one preference of 3 and one tie of 1 at C = 1/20, u = 1/10 and all
    weights are at their bounds."""
    u, beta = np.meshgrid(np.linspace(-1, 1, 201), np.linspace(-3, 3, 601))
    hinges = [np.maximum(0, x) for x in (1 - beta - 3 * u, 1 + beta + u, 1 + beta - u)]
    objective = u**2 / 2 + sum(hinges) / 20
    flat = beta[objective <= objective.min() + 1e-12]
    assert (flat.min(), flat.max()) == (pytest.approx(-1.1), pytest.approx(-0.9))


@pytest.mark.theorem("prop-bias")
@given(PROBLEMS, st.integers(1, 3))
def test_many_ties_keep_the_bias_at_or_below_minus_one(problem, surplus):
    preferences, ties, C = problem
    ties = (ties * (len(preferences) + surplus))[: len(preferences) + surplus]
    _, y, pairs = compared(preferences, ties)
    model = SVMCompare(C, kernel="linear").fit(pairs, y)
    assert model.bias_ <= -1 + 1e-7


@pytest.mark.theorem("prop-bias")
@pytest.mark.parametrize(
    ("n_preferences", "n_ties", "limit"), [(3, 2, -1), (1, 1, -1), (5, 2, 1), (3, 1, 1)]
)
def test_the_bias_as_the_cost_vanishes(n_preferences, n_ties, limit):
    rng = np.random.default_rng(n_preferences)
    differences = rng.normal(size=(n_preferences + n_ties, 3))
    rows, label = flipped_rows(differences, np.repeat([1, 0], [n_preferences, n_ties]))
    assert hinge_machine(rows, 1.0, label, ridge=1e5)[2] == pytest.approx(
        limit, abs=1e-3
    )


# ---- Errors of comparisons, counted in flipped rows


@pytest.mark.theorem("prop-flipped-errors")
@given(
    st.lists(
        st.tuples(st.integers(-4, 4), st.sampled_from([-1, 0, 1])),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([-0.5, -1, -2, -3]),
)
def test_wrong_comparisons_are_wrong_flipped_rows(rows, beta):
    """The test includes differences of u on the thresholds."""
    differences, y = map(np.array, zip(*rows, strict=True))
    predicted = [1 if d > -beta else -1 if d < beta else 0 for d in differences]
    pairs = Pairs.from_arrays(differences[:, None], np.zeros((len(y), 1)))
    flipped, labels = pairs.flipped(y)
    said = np.where(beta + flipped.differences()[:, 0] > 0, 1, -1)
    assert np.sum(predicted != y) == np.sum(said != labels)


# ---- SVMCompare at small cost


def rescaled(D, y, sign, omega=1.0):
    """Return u_1 and beta_1 of the proposition, here called v and b. Sign -1 is case
    (a), and +1 is case (b)."""
    P = y[y != 0, None] * D[y != 0]
    T = D[y == 0]
    v = cp.Variable(D.shape[1])
    b = cp.Variable()
    if sign < 0:
        loss = (
            -len(P) * b
            - P.sum(axis=0) @ v
            + omega * cp.sum(cp.pos(b + T @ v) + cp.pos(b - T @ v))
        )
    else:
        loss = 2 * omega * len(T) * b + cp.sum(cp.pos(-b - P @ v))
    cp.Problem(cp.Minimize(cp.sum_squares(v) / 2 + loss)).solve(solver=cp.CLARABEL)
    return v.value, float(b.value)


def largest_cost(D, y, sign, v, b):
    """Return half of the cost up to which the hinges of the proof do not change
    sides."""
    z = D @ v
    reach = (b + y * z)[y != 0] if sign < 0 else (np.abs(b) + np.abs(z))[y == 0]
    return min(1 / max(reach.max(), 1e-9), 0.1)


def original(D, y, C, omega):
    """Return u / C and beta of SVMCompare, with all hinges as printed."""
    rows, label = flipped_rows(D, y)
    return hinge_machine(C * rows, np.where(label < 0, omega, 1.0), label, ridge=C)[1:3]


def machine_of(rng, n_plus, n0, p, kind):
    """Return noisy preferences and draws. In kinds 1 to 3, some of them are replaced by
    special ones."""
    D = rng.normal(size=(n_plus + n0, p))
    y = np.append(
        np.where(D[:n_plus, 0] + 1.5 * rng.normal(size=n_plus) > 0, 1, -1),
        np.zeros(n0, int),
    )
    if kind == 1:
        D[n_plus:] = 0  # draws with a difference of zero
    if kind == 2:
        # one decided match is repeated, possibly with contradictory results
        D[:n_plus] = D[0]
    return pytest.param(
        np.round(D) if kind == 3 else D,
        y,
        id=f"{n_plus} decided, {n0} drawn, {p} features",
    )


def models():
    rng = np.random.default_rng(0)
    for case in range(24):
        n0 = 1 + case % 4
        n_plus = max(1, 2 * n0 + (-1, 1, -2, 3)[case // 6])
        yield machine_of(rng, n_plus, n0, 1 + case % 3, case % 5)
    for n0, n_plus in ((2, 3), (1, 3)):
        yield pytest.param(
            np.zeros((n0 + n_plus, 2)),
            np.append(np.ones(n_plus, int), np.zeros(n0, int)),
        )


@pytest.mark.theorem("prop-small-cost")
@pytest.mark.parametrize("omega", [1.0, 0.7])
@pytest.mark.parametrize(("D", "y"), [*models()])
def test_at_small_cost_the_machine_is_one_vector_times_the_cost(D, y, omega):
    n0 = int(np.sum(y == 0))
    n_plus = int(np.sum(y != 0))
    sign = -1 if n_plus < 2 * omega * n0 else 1
    v, b = rescaled(D, y, sign, omega)
    largest = largest_cost(D, y, sign, v, b)
    for C in (largest, largest / 10):
        w, beta = original(D, y, C, omega)
        np.testing.assert_allclose(w, v, atol=2e-3 * max(1, np.abs(v).max()))
        assert (
            abs(beta - sign)
            < 1.1 * C * (1 + np.abs(b) + np.abs(D @ v).max() * 2) + 1e-4
        )
    if sign > 0:
        z = (y * (D @ v))[y != 0]
        # the unweighted mean, by Chebyshev's inequality
        assert z.mean() >= v @ v / (2 * omega * n0) - 1e-5 * max(1, v @ v)
    pairs = against_origin(D)
    weight = np.where(y == 0, omega, 1.0)
    if sign > 0:
        with pytest.raises(DegenerateBiasError):
            SVMCompare(largest / 10, "linear").fit(pairs, y, weight)
    else:
        C = largest / 10
        model = SVMCompare(C, "linear").fit(pairs, y, weight)
        scale = -C / model.bias_
        np.testing.assert_allclose(
            model.decision_function(pairs), scale * (D @ v), atol=1e-3 * scale
        )


@pytest.mark.theorem("prop-small-cost")
def test_backwards_on_average_is_not_backwards_everywhere():
    """This is case (b) with one match that the reversed function still orders
    correctly."""
    D = np.array([[3.0], [-1.0], [1.0], [0.5]])
    y = np.array([1, 1, 1, 0])
    v, _ = rescaled(D, y, 1)
    z = (y * (D @ v))[y != 0]
    assert z.mean() > 0
    assert z.min() < 0


# ---- SVMCompare with u = 0 at every cost


def steepest(D, y, omega):
    """Return the largest rate of decrease of the hinges from u = 0, beta = -1, over all
    u with entries in [-1, 1], by a linear program."""
    P = (y[:, None] * D)[y != 0]
    T = D[y == 0]
    n0, p = T.shape
    each = -np.eye(n0)
    ones = np.ones((n0, 1))
    change = np.concatenate([-P.sum(axis=0), [-len(P)], np.full(n0, omega)])
    above = np.block(
        [[T, ones, each], [-T, ones, each], [np.zeros((n0, p)), 2 * ones, each]]
    )
    bounds = [(-1, 1)] * p + [(None, None)] + [(0, None)] * n0
    return -linprog(change, above, np.zeros(3 * n0), bounds=bounds).fun


def mean_against_mean(D, y):
    """Return the same for the tie weight n+/n0, from the means of both kinds alone."""
    P = (y[:, None] * D)[y != 0]
    T = D[y == 0]
    n0, p = T.shape
    change = np.concatenate([-P.mean(axis=0), np.full(n0, 1 / n0)])
    above = np.block([[T, -np.eye(n0)], [-T, -np.eye(n0)]])
    return -linprog(
        change, above, np.zeros(2 * n0), bounds=[(-1, 1)] * p + [(0, None)] * n0
    ).fun


def is_zero(D, y, omega, C):
    pairs = against_origin(D)
    try:
        model = SVMCompare(C, "linear").fit(pairs, y, np.where(y == 0, omega, 1.0))
    except (
        DegenerateBiasError
    ):  # only a function that is not constant can move beta to 0
        return False
    return bool(np.abs(model.bias_ * model.decision_function(pairs)).max() < 1e-7)


def noisy_machines():
    rng = np.random.default_rng(1)
    for case in range(20):
        yield machine_of(rng, 3 + case % 7, 2 + case % 5, 1 + case % 3, case % 4)
    yield pytest.param(np.zeros((4, 2)), np.array([1, -1, 1, 0]), id="no differences")
    yield pytest.param(
        np.array([[2.0], [2.0], [0.0]]), np.array([1, -1, 0]), id="contradictions"
    )
    yield pytest.param(np.array([[1.0], [1.0]]), np.array([1, 0]), id="equal means")
    yield pytest.param(
        np.array([[1.0], [1.0], [-1.0]]), np.array([1, 0, 0]), id="a draw both ways"
    )


@pytest.mark.theorem("prop-small-cost")
@pytest.mark.parametrize(("D", "y"), [*noisy_machines()])
def test_a_machine_is_zero_at_every_cost_or_at_none(D, y):
    """(c), and a larger tie weight can only add cases in which u = 0."""
    ratio = np.sum(y != 0) / np.sum(y == 0)
    zero = [steepest(D, y, c * ratio) < 1e-9 for c in (0.6, 1.0, 1.5)]
    assert zero == sorted(zero)
    assert zero[1] == (mean_against_mean(D, y) < 1e-9)
    for c, expected in zip((0.6, 1.0, 1.5), zero, strict=True):
        assert [is_zero(D, y, c * ratio, C) for C in (1e-3, 1.0, 100.0)] == [
            expected
        ] * 3

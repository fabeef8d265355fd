"""Small cases against kickscore 0.2.0, the authors' own program, for each kernel and likelihood of both.

The peer is brought to the fixed point, far beyond its own rule. Left out is what it does not have, Gaussian
outcomes under reverse-KL, and what it does wrong: see the last tests. Its Gauss-Hermite rule of 30 points is
good enough for counts only where the prior is narrow.
"""

import numba
import numpy as np
import pytest
from dynamics import dense

from preflearn.dynamics import (
    Affine,
    Constant,
    DynamicComparisons,
    Gaussian,
    Logit,
    Matern12,
    Matern32,
    Matern52,
    OrdinalLogit,
    OrdinalProbit,
    PiecewiseConstant,
    Poisson,
    Probit,
    Skellam,
    Wiener,
)
from preflearn.matches import Matches

NAMES = ("a", "b", "c", "home")
DESIGN = np.array(
    [
        [1, -1, 0, 1],
        [-1, 1, 0, 1],
        [0, 1, -1, 0],
        [1, 0, -1, 1],
        [1, -1, 0, 0],
        [-1, 0, 1, 1],
        [0, -1, 1, 0],
        [1, -1, 0, 1],
    ],
    dtype=float,
)
TIME = np.array([0.1, 0.4, 0.4, 0.9, 1.6, 1.6, 2.2, 3.5])
ASK = np.array([-0.5, 0.3, 1.0, 3.5, 6.0])  # before, between, at, and after the matches


@pytest.fixture(scope="module")
def ks():
    """Without its compilation, which takes longer than these few matches."""
    numba.config.DISABLE_JIT = True  # pyright: ignore[reportAttributeAccessIssue]
    try:
        return pytest.importorskip("kickscore")
    finally:
        numba.config.DISABLE_JIT = False  # pyright: ignore[reportAttributeAccessIssue]


KERNELS = {
    "constant": (Constant(0.4), lambda k: k.Constant(0.4)),
    "piecewise constant": (
        PiecewiseConstant(0.4, (0.6, 2.0)),
        lambda k: k.PiecewiseConstant(0.4, np.array([0.6, 2.0])),
    ),
    "Wiener": (
        Constant(0.2) + Wiener(0.1, origin=-0.5),
        lambda k: k.Wiener(0.1, t0=-0.5, var_t0=0.2),
    ),
    "Matern 1/2": (Matern12(0.4, 1.5), lambda k: k.Exponential(0.4, 1.5)),
    "Matern 3/2": (Matern32(0.4, 1.5), lambda k: k.Matern32(0.4, 1.5)),
    "Matern 5/2": (Matern52(0.4, 1.5), lambda k: k.Matern52(0.4, 1.5)),
    "affine": (Affine(0.3, 0.05, origin=-1.0), lambda k: k.Affine(0.3, 0.05, t0=-1.0)),
    "constant + Matern 1/2": (
        Constant(0.2) + Matern12(0.3, 0.7),
        lambda k: k.Constant(0.2) + k.Exponential(0.3, 0.7),
    ),
    "narrow": (Matern12(0.1, 1.5), lambda k: k.Exponential(0.1, 1.5)),
    "affine + Wiener": (
        Affine(0.2, 0.05, origin=-1.0) + Wiener(0.1, origin=-1.0),
        lambda k: k.Affine(0.2, 0.05, t0=-1.0) + k.Wiener(0.1, t0=-1.0),
    ),
}


def sides(row, scale=1.0):
    """The two sides of a row of the design, as the peer wants them."""
    return [
        {name: scale * abs(x) for name, x in zip(NAMES, row, strict=True) if sign * x > 0} for sign in (1, -1)
    ]


def results(model, row, t, y):
    first, second = sides(row)
    model.observe(first, second, t=t) if y > 0 else model.observe(second, first, t=t)


def results_with_ties(model, row, t, y):
    first, second = sides(row)
    model.observe(*((first, second) if y >= 0 else (second, first)), t=t, tie=bool(y == 0))


RESULTS = [1, -1, 1, 1, -1, 1, 1, -1]
LIKELIHOODS = {  # ours, the peer's model, how to tell it a match, outcomes, methods that it has without fault
    "probit": (
        Probit(),
        lambda ks: ks.BinaryModel("probit"),
        results,
        [1, -1, 1, 1, -1, 1, 1, -1],
        ["ep", "kl"],
    ),
    "logit": (Logit(), lambda ks: ks.BinaryModel("logit"), results, RESULTS, ["kl"]),
    "ordinal probit": (
        OrdinalProbit(margin=0.3),
        lambda ks: ks.TernaryModel(0.3, "probit"),
        results_with_ties,
        [1, 0, -1, 1, 0, 0, 1, -1],
        ["ep", "kl"],
    ),
    "ordinal logit": (
        OrdinalLogit(margin=0.3),
        lambda ks: ks.TernaryModel(0.3, "logit"),
        results_with_ties,
        [1, 0, -1, 1, 0, 0, 1, -1],
        ["kl"],
    ),
    "Gaussian": (
        Gaussian(variance=0.8),
        lambda ks: ks.DifferenceModel(var=0.8),
        lambda model, row, t, y: model.observe(*sides(row), diff=y, t=t),
        [1.2, -0.3, 0.0, 2.0, 0.4, -1.5, 0.2, 0.9],
        ["ep"],
    ),
    "Poisson": (
        Poisson(),
        lambda ks: ks.CountModel(),
        lambda model, row, t, y: model.observe(*sides(row), count=y, t=t),
        [1, 0, 2, 1, 3, 0, 1, 2],
        ["ep", "kl"],
    ),
    "Skellam": (  # the peer has e^(base + d) and e^(base - d): half of our d, the logarithm of our rate
        Skellam(base_rate=1.3),
        lambda ks: ks.CountDiffModel(base_rate=np.log(1.3)),
        lambda model, row, t, y: model.observe(*sides(row, 0.5), diff=y, t=t),
        [1, 0, -2, 1, 3, 0, 1, -1],
        ["ep", "kl"],
    ),
}
BY_KERNEL = [(kernel, "probit", method) for kernel in KERNELS for method in ("ep", "kl")]
BY_LIKELIHOOD = [
    ("narrow" if name in ("Poisson", "Skellam") else "constant + Matern 1/2", name, method)
    for name, (*_, methods) in LIKELIHOODS.items()
    if name != "probit"
    for method in methods
]


def both(ks, kernel, name, method, tol=1e-13):
    """Our model and the peer's, both at the fixed point."""
    covariance, peer_kernel = KERNELS[kernel]
    likelihood, peer_model, observe, y, _ = LIKELIHOODS[name]
    ours = DynamicComparisons(covariance, likelihood, method, tol=1e-11).fit(Matches(DESIGN, TIME, NAMES), y)
    peer = peer_model(ks)
    for item in NAMES:
        peer.add_item(item, kernel=peer_kernel(ks.kernel))
    for row, t, outcome in zip(DESIGN, TIME, y, strict=True):
        observe(peer, row, t, outcome)
    assert peer.fit(method=method, lr=0.7, tol=tol, max_iter=400)
    return ours, peer


@pytest.mark.parametrize(("kernel", "name", "method"), BY_KERNEL + BY_LIKELIHOOD)
def test_scores_and_log_likelihoods_are_those_of_the_peer(ks, kernel, name, method):
    ours, peer = both(ks, kernel, name, method)
    assert ours.log_marginal_likelihood_ == pytest.approx(peer.log_likelihood, abs=1e-6)
    for item in NAMES:
        times, mean, variance = peer.item[item].scores
        np.testing.assert_allclose(ours.scores(item, times), [mean, np.sqrt(variance)], atol=1e-6)
        mean, variance = peer.item[item].predict(ASK)
        np.testing.assert_allclose(ours.scores(item, ASK), [mean, np.sqrt(variance)], atol=1e-6)


def forecast(model, ask, outcomes):
    """The probability of each outcome of one match."""
    mean, variance = (np.repeat(moment, len(outcomes)) for moment in model.moments(ask))
    return np.exp(model.likelihood.log_partition(outcomes, mean, variance)[0])


@pytest.mark.parametrize("method", ["ep", "kl"])
@pytest.mark.parametrize("t", [-0.5, 1.0, 6.0])
def test_forecasts_are_those_of_the_peer(ks, method, t):
    """Of results with and without ties, and of counts and differences, which the peer gives one by one."""
    row = np.array([1.0, 0, -1, 1])
    ask = Matches([row], [t], NAMES)
    ours, peer = both(ks, "constant + Matern 1/2", "probit", method)
    np.testing.assert_allclose(
        ours.predict_proba(ask)[0, ::-1], peer.probabilities(*sides(row), t=t), atol=1e-6
    )
    ours, peer = both(ks, "constant + Matern 1/2", "ordinal probit", method)
    win, tie, loss = peer.probabilities(*sides(row), t=t)
    np.testing.assert_allclose(ours.predict_proba(ask)[0], [loss, tie, win], atol=1e-6)
    ours, peer = both(ks, "narrow", "Poisson", method)
    found = np.array(peer.probabilities(*sides(row), t=t))
    np.testing.assert_allclose(forecast(ours, ask, np.arange(len(found))), found, atol=1e-6)
    ours, peer = both(ks, "narrow", "Skellam", method)
    found = np.array(peer.probabilities(*sides(row, 0.5), t=t))  # from -middle to middle
    middle = len(found) // 2
    np.testing.assert_allclose(forecast(ours, ask, np.arange(-middle, middle + 1)), found, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(ask)[0, 1], found[middle], atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(ask)[0, 2], found[middle + 1 :].sum(), atol=1e-3)


@pytest.mark.parametrize("t", [-0.5, 1.0, 6.0])
def test_forecasts_of_differences_are_those_of_the_peer(ks, t):
    ours, peer = both(ks, "affine", "Gaussian", "ep")
    row = np.array([1.0, 0, -1, 1])
    found = ours.predict_proba(Matches([row], [t], NAMES))[0, ::-1]
    np.testing.assert_allclose(found, peer.probabilities(*sides(row), t=t), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "density", "least"), [("logit", dense.logit(), 1e-5), ("Poisson", dense.poisson(), 1e-5)]
)
def test_where_the_peer_is_off_we_have_what_quadrature_has(ks, name, density, least):
    """EP: its mixture of normal distributions for the logit, its 30 points for counts."""
    ours, peer = both(ks, "constant + Matern 1/2", name, "ep", tol=1e-7)
    fixed = dense.fixed_point(dense.Problem(ours.matches_, ours.covariance), density, ours.outcomes_, "ep")
    assert ours.log_marginal_likelihood_ == pytest.approx(fixed.log_evidence, abs=1e-8)
    assert abs(peer.log_likelihood - fixed.log_evidence) > least


def test_a_tie_between_unequals_where_the_peer_divides_by_zero(ks):
    """With a sure favourite: ours is finite, and what quadrature gives."""
    peer = ks.TernaryModel(margin=0.1)
    for item in ("a", "b"):
        peer.add_item(item, kernel=ks.kernel.Constant(400.0))
    for _ in range(8):
        peer.observe(["a"], ["b"], t=0.0)
    peer.observe(["a"], ["b"], t=1.0, tie=True)
    with pytest.raises((ZeroDivisionError, ValueError)):
        peer.fit(max_iter=30)
    matches = Matches(np.tile([1.0, -1.0], (9, 1)), np.r_[np.zeros(8), 1], ["a", "b"])
    y = np.r_[np.ones(8), 0]
    ours = DynamicComparisons(Constant(400.0), OrdinalProbit(0.1), tol=1e-10).fit(matches, y)
    problem = dense.Problem(matches, Constant(400.0))
    fixed = dense.fixed_point(problem, dense.ordinal_probit(0.1), y, "ep", rate=0.3)
    assert ours.log_marginal_likelihood_ == pytest.approx(fixed.log_evidence, abs=1e-8)

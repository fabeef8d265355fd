"""The page for users of kickscore: its code runs, and the numbers below its lines are those that come out."""

import matplotlib as mpl
import numba
import numpy as np
import pytest
from dynamics.problems import LIKELIHOODS, fitted, random_design
from scipy import sparse
from side_by_side import Page

from preflearn.dynamics import (
    Affine,
    Constant,
    DynamicComparisons,
    Logit,
    Matern12,
    Matern32,
    Matern52,
    PiecewiseConstant,
    Poisson,
    Probit,
    Wiener,
)
from preflearn.matches import Matches, UnseenWarning

PAGE = Page("coming_from_kickscore", "kickscore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder to save to, and figures that open no window."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        before = mpl.get_backend()
        mpl.use("agg")
        yield
        mpl.use(before)


@pytest.fixture(scope="module")
def ours(folder):
    return PAGE.run("here")


@pytest.fixture(scope="module")
def peer():
    """The peer without its compilation, which takes longer than these few games."""
    numba.config.DISABLE_JIT = True  # pyright: ignore[reportAttributeAccessIssue]
    try:
        return pytest.importorskip("kickscore")
    finally:
        numba.config.DISABLE_JIT = False  # pyright: ignore[reportAttributeAccessIssue]


@pytest.fixture(scope="module")
def theirs(folder, peer):
    with np.errstate(invalid="ignore", divide="ignore"):
        return PAGE.run("kickscore")


def test_our_code_gives_what_the_page_shows(ours):
    assert sum(map(len, ours.values())) > 25


def test_code_of_kickscore_gives_what_the_page_shows(theirs):
    assert sum(map(len, theirs.values())) > 15


def test_both_programs_give_the_same(ours, theirs):
    PAGE.check_same(ours, theirs, least=10, tolerance=1e-6)


def test_form_of_the_page():
    PAGE.check_form()


# ---- The table of traps


def league(peer, covariance, games, names="ab"):
    """A model of the peer with games (winner, loser, time)."""
    model = peer.BinaryModel()
    for name in names:
        model.add_item(name, kernel=covariance)
    for winner, loser, t in games:
        model.observe([winner], [loser], t=t)
    return model


def test_the_peer_stops_before_the_end(peer):
    rng = np.random.default_rng(0)
    games = [(*(f"p{k}" for k in rng.choice(20, 2, replace=False)), 0.0) for _ in range(100)]
    names = [f"p{k}" for k in range(20)]
    model = league(peer, peer.kernel.Constant(10.0), games, names)
    assert model.fit()
    early = model.log_likelihood
    assert model.fit(tol=1e-12, max_iter=2000)
    rows = [[(name == first) - (name == second) for name in names] for first, second, _ in games]
    ours = DynamicComparisons(Constant(10.0), Probit()).fit(Matches(rows, np.zeros(100), names), np.ones(100))
    assert ours.log_marginal_likelihood_ == pytest.approx(model.log_likelihood, abs=1e-6)
    assert early < ours.log_marginal_likelihood_ - 1e-3


def test_a_tie_of_unequal_players(peer):
    with pytest.raises((ValueError, ZeroDivisionError)):
        peer.observation.ordinal._mm_probit_tie(20.0, 1.0, 0.1)


def test_integrals_of_the_peer(peer):
    found = peer.observation.ordinal._mm_logit_win(-5.0, 1.0)[0]
    exact = Logit().log_partition([1], [-5.0], [1.0])[0][0]
    assert f"{found - exact:.3f} off at mean $-5$ and variance 1" in PAGE.text
    elements = peer.observation.poisson._ll_poisson.match_moments(0.0, 10.0, 100)
    assert abs(elements[0] - Poisson().log_partition([100], [0.0], [10.0])[0][0]) > 0.1


def test_one_player_on_both_sides(peer):
    model = league(peer, peer.kernel.Constant(1.0), [("a", "a", 0.0)])
    assert model.fit()
    twice = sparse.coo_array(([2.0, -1.0, -1.0], ([0, 0, 0], [0, 0, 1])), shape=(1, 2))
    assert Matches(twice, [0.0], ["a", "b"]).design.toarray().tolist() == [[1, -1]]
    against_himself = sparse.coo_array(([1.0, -1.0], ([0, 0], [0, 0])), shape=(1, 2))
    with pytest.raises(ValueError, match="expected two that differ"):
        Matches(against_himself, [0.0], ["a", "b"])


def test_who_was_never_seen_and_times_before_the_origin(peer):
    model = league(peer, peer.kernel.Wiener(1.0, t0=0.0), [("a", "b", 1.0)])
    assert model.fit()
    with pytest.raises(KeyError):
        model.probabilities(["a"], ["stranger"], t=1.0)
    with pytest.raises(ValueError, match="math domain error"):
        model.probabilities(["a"], ["b"], t=-1.0)
    ours = DynamicComparisons(Wiener(1.0, origin=0.0), Probit())
    ours.fit(Matches([[1, -1]], [1.0], ["a", "b"]), [1])
    with pytest.warns(UnseenWarning, match="nearest known name is 'a'"):
        assert 0.5 < ours.predict_proba(Matches([[1, -1]], [1.0], ["a", "stranger"]))[0, 1] < 1
    with pytest.raises(ValueError, match="before the origin"):
        ours.scores("a", -1.0)


def test_pieces_meet_on_the_boundary(peer):
    """The peer counts a boundary to the earlier piece."""
    with_earlier = peer.kernel.PiecewiseConstant(1.0, np.array([5.0])).k_mat(np.array([4.0, 5.0, 6.0]))
    assert with_earlier[1].tolist() == [1, 1, 0]
    assert PiecewiseConstant(1.0, [5.0]).gram([4.0, 5.0, 6.0])[1].tolist() == [0, 1, 1]


# ---- Each kernel and each likelihood of both programs, far beyond the peer's own rule of stopping

KERNELS = {
    Constant(0.4): lambda k: k.Constant(0.4),
    PiecewiseConstant(0.4, (0.6, 2.0)): lambda k: k.PiecewiseConstant(0.4, np.array([0.6, 2.0])),
    Constant(0.2) + Wiener(0.1, -0.5): lambda k: k.Wiener(0.1, t0=-0.5, var_t0=0.2),
    Matern12(0.4, 1.5): lambda k: k.Exponential(0.4, 1.5),
    Matern32(0.4, 1.5): lambda k: k.Matern32(0.4, 1.5),
    Matern52(0.4, 1.5): lambda k: k.Matern52(0.4, 1.5),
    Affine(0.3, 0.05, -1.0): lambda k: k.Affine(0.3, 0.05, t0=-1.0),
    Affine(0.2, 0.05, -1.0) + Wiener(0.1, -1.0): lambda k: (
        k.Affine(0.2, 0.05, t0=-1.0) + k.Wiener(0.1, t0=-1.0)
    ),
    Constant(0.2) + Matern12(0.3, 0.7): lambda k: k.Constant(0.2) + k.Exponential(0.3, 0.7),
    # The peer's rule of 30 points is good enough for counts only where the prior is narrow.
    Matern12(0.1, 1.5): lambda k: k.Exponential(0.1, 1.5),
}
*_, SUM, NARROW = KERNELS
PEERS = {  # the peer's model, our prior, and the methods that it has without fault
    "probit": (lambda ks: ks.BinaryModel("probit"), SUM, ["ep", "kl"]),
    "logit": (lambda ks: ks.BinaryModel("logit"), SUM, ["kl"]),
    "ordinal probit": (lambda ks: ks.TernaryModel(0.4, "probit"), SUM, ["ep", "kl"]),
    "ordinal logit": (lambda ks: ks.TernaryModel(0.4, "logit"), SUM, ["kl"]),
    "Gaussian": (lambda ks: ks.DifferenceModel(var=0.5), SUM, ["ep"]),
    "Poisson": (lambda ks: ks.CountModel(), NARROW, ["ep", "kl"]),
    # It has e^(base + d) and e^(base - d): half of our d, the logarithm of our rate.
    "Skellam": (lambda ks: ks.CountDiffModel(base_rate=np.log(1.3)), NARROW, ["ep", "kl"]),
}
ITEMS = ("a", "b", "c", "home")
TIME = np.array([0.1, 0.4, 0.4, 0.9, 1.6, 1.6, 2.2, 3.5])
ASK = np.array([-0.5, 0.3, 1.0, 3.5, 6.0])  # before, between, at, and after the matches


def sides(row, name):
    """The two sides of a row of the design, as the peer wants them."""
    scale = 0.5 if name == "Skellam" else 1.0
    return [{item: scale * abs(x) for item, x in zip(ITEMS, row, strict=True) if s * x > 0} for s in (1, -1)]


def both(ks, covariance, name, method):
    """Our model and the peer's of the same matches, both at the fixed point."""
    rng = np.random.default_rng(0)
    design = np.column_stack([random_design(rng, 8, 3), rng.integers(0, 2, 8)])
    likelihood, _, outcomes = LIKELIHOODS[name]
    y = rng.choice(outcomes, 8)
    peer = PEERS[name][0](ks)
    for item in ITEMS:
        peer.add_item(item, kernel=KERNELS[covariance](ks.kernel))
    for row, t, outcome in zip(design, TIME, y.tolist(), strict=True):
        first, second = sides(row, name)
        if name in ("Gaussian", "Skellam", "Poisson"):
            peer.observe(first, second, t=t, **{"count" if name == "Poisson" else "diff": outcome})
        else:
            won = outcome >= 0
            tie = {"tie": bool(outcome == 0)} if likelihood.has_ties else {}
            peer.observe(first if won else second, second if won else first, t=t, **tie)
    assert peer.fit(method=method, lr=0.7, tol=1e-13, max_iter=400)
    return fitted(covariance, likelihood, Matches(design, TIME, ITEMS), y, method), peer


@pytest.mark.parametrize(
    ("covariance", "name", "method"),
    [
        *((covariance, "probit", method) for covariance in KERNELS for method in ("ep", "kl")),
        *((prior, name, method) for name, (_, prior, methods) in PEERS.items() for method in methods),
    ],
)
def test_scores_and_log_likelihoods_are_those_of_the_peer(peer, covariance, name, method):
    ours, theirs = both(peer, covariance, name, method)
    assert ours.log_marginal_likelihood_ == pytest.approx(theirs.log_likelihood, abs=1e-6)
    for item in ITEMS:
        times, mean, variance = theirs.item[item].scores
        np.testing.assert_allclose(ours.scores(item, times), [mean, np.sqrt(variance)], atol=1e-6)
        mean, variance = theirs.item[item].predict(ASK)
        np.testing.assert_allclose(ours.scores(item, ASK), [mean, np.sqrt(variance)], atol=1e-6)

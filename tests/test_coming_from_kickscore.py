"""The page for users of kickscore: its code gives the results on the page, and both
programs agree on other data."""

import matplotlib as mpl
import numba
import numpy as np
import pytest
from dynamics.problems import LIKELIHOODS, fitted, random_design
from optional import optional_import
from side_by_side import Page

from preflearn.dynamics import (
    Affine,
    Constant,
    Matern12,
    Matern32,
    Matern52,
    PiecewiseConstant,
    Wiener,
)
from preflearn.matches import Matches


@pytest.fixture(scope="module")
def kickscore():
    """Return kickscore without its compilation, which would take longer than these few
    games."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba.config, "DISABLE_JIT", True)
        return optional_import("kickscore")


def test_code_of_both_programs_gives_what_the_page_shows(
    kickscore, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")
    page = Page("coming_from_kickscore", "kickscore")
    page.check_form()
    with np.errstate(invalid="ignore", divide="ignore"):
        theirs = page.run("kickscore")
    page.check_same(page.run("here"), theirs, least=10, tolerance=1e-6)


def test_a_boundary_between_pieces_belongs_to_the_later_piece_and_to_the_earlier_one_of_kickscore(
    kickscore,
):
    times = [4.0, 5.0, 6.0]
    theirs = kickscore.kernel.PiecewiseConstant(1.0, np.array([5.0])).k_mat(
        np.array(times)
    )
    assert theirs[1].tolist() == [1, 1, 0]
    assert PiecewiseConstant(1.0, [5.0]).gram(times)[1].tolist() == [0, 1, 1]


# ---- Each covariance and each likelihood of both programs, fitted to convergence

KERNELS = {
    Constant(0.4): lambda k: k.Constant(0.4),
    PiecewiseConstant(0.4, (0.6, 2.0)): lambda k: k.PiecewiseConstant(
        0.4, np.array([0.6, 2.0])
    ),
    Constant(0.2) + Wiener(0.1, -0.5): lambda k: k.Wiener(0.1, t0=-0.5, var_t0=0.2),
    Matern12(0.4, 1.5): lambda k: k.Exponential(0.4, 1.5),
    Matern32(0.4, 1.5): lambda k: k.Matern32(0.4, 1.5),
    Matern52(0.4, 1.5): lambda k: k.Matern52(0.4, 1.5),
    Affine(0.3, 0.05, -1.0): lambda k: k.Affine(0.3, 0.05, t0=-1.0),
    Affine(0.2, 0.05, -1.0) + Wiener(0.1, -1.0): lambda k: (
        k.Affine(0.2, 0.05, t0=-1.0) + k.Wiener(0.1, t0=-1.0)
    ),
    Constant(0.2) + Matern12(0.3, 0.7): lambda k: (
        k.Constant(0.2) + k.Exponential(0.3, 0.7)
    ),
    # kickscore's quadrature with 30 points is accurate enough for counts only if the
    # prior is narrow
    Matern12(0.1, 1.5): lambda k: k.Exponential(0.1, 1.5),
}
*_, SUM, NARROW = KERNELS
# kickscore's model, our prior, and the methods that work in kickscore without errors
KICKSCORE_MODELS = {
    "Probit": (lambda ks: ks.BinaryModel("probit"), SUM, ["ep", "kl"]),
    "Logit": (lambda ks: ks.BinaryModel("logit"), SUM, ["kl"]),
    "OrdinalProbit": (lambda ks: ks.TernaryModel(0.4, "probit"), SUM, ["ep", "kl"]),
    "OrdinalLogit": (lambda ks: ks.TernaryModel(0.4, "logit"), SUM, ["kl"]),
    "Gaussian": (lambda ks: ks.DifferenceModel(var=0.5), SUM, ["ep"]),
    "Poisson": (lambda ks: ks.CountModel(), NARROW, ["ep", "kl"]),
    # The rates in kickscore are e^(base + d) and e^(base - d): d is half of ours, and
    # base is the logarithm of our rate.
    "Skellam": (
        lambda ks: ks.CountDiffModel(base_rate=np.log(1.3)),
        NARROW,
        ["ep", "kl"],
    ),
}
ITEMS = ("a", "b", "c", "home")
TIME = np.array([0.1, 0.4, 0.4, 0.9, 1.6, 1.6, 2.2, 3.5])
ASK = np.array([-0.5, 0.3, 1.0, 3.5, 6.0])  # before, between, at, and after the matches


def sides(row, name):
    """Return the two sides of a row of the design in the form of kickscore."""
    scale = 0.5 if name == "Skellam" else 1.0
    return [
        {item: scale * abs(x) for item, x in zip(ITEMS, row, strict=True) if s * x > 0}
        for s in (1, -1)
    ]


def both(ks, covariance, name, method):
    """Return our model and that of kickscore for the same matches, both at the fixed
    point."""
    rng = np.random.default_rng(0)
    design = np.column_stack([random_design(rng, 8, 3), rng.integers(0, 2, 8)])
    likelihood, _, outcomes = LIKELIHOODS[name]
    y = rng.choice(outcomes, 8)
    kickscore = KICKSCORE_MODELS[name][0](ks)
    for item in ITEMS:
        kickscore.add_item(item, kernel=KERNELS[covariance](ks.kernel))
    for row, t, outcome in zip(design, TIME, y.tolist(), strict=True):
        first, second = sides(row, name)
        if name in ("Gaussian", "Skellam", "Poisson"):
            kickscore.observe(
                first,
                second,
                t=t,
                **{"count" if name == "Poisson" else "diff": outcome},
            )
        else:
            won = outcome >= 0
            tie = {"tie": bool(outcome == 0)} if likelihood.has_ties else {}
            kickscore.observe(
                first if won else second, second if won else first, t=t, **tie
            )
    assert kickscore.fit(method=method, lr=0.7, tol=1e-13, max_iter=400)
    return fitted(
        covariance, likelihood, Matches(design, TIME, ITEMS), y, method
    ), kickscore


@pytest.mark.parametrize(
    ("covariance", "name", "method"),
    [
        *(
            (covariance, "Probit", "ep")
            for covariance in KERNELS
            if covariance is not SUM
        ),
        *(
            (prior, name, method)
            for name, (_, prior, methods) in KICKSCORE_MODELS.items()
            for method in methods
        ),
    ],
)
def test_scores_and_log_likelihoods_are_those_of_kickscore(
    kickscore, covariance, name, method
):
    ours, theirs = both(kickscore, covariance, name, method)
    assert ours.log_marginal_likelihood_ == pytest.approx(
        theirs.log_likelihood, abs=1e-6
    )
    for item in ITEMS:
        times, mean, variance = theirs.item[item].scores
        np.testing.assert_allclose(
            ours.scores(item, times), [mean, np.sqrt(variance)], atol=1e-6
        )
        mean, variance = theirs.item[item].predict(ASK)
        np.testing.assert_allclose(
            ours.scores(item, ASK), [mean, np.sqrt(variance)], atol=1e-6
        )

"""The page for users of kickscore: its code runs, and the numbers below its lines are those that come out.

Blocks stand under *kickscore*, *here* or *both*. A comment below a statement is what it gives: numbers to the
digits that are shown, words, or the beginning of an error or a warning. Each kind of block has its names to
itself. What two blocks beside each other give must be equal, except among the traps.
"""

import ast
import re
import warnings
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numba
import numpy as np
import pytest
from dynamics.problems import LIKELIHOODS, fitted, random_design
from scipy import sparse

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
from preflearn.matches import Matches

TEXT = (Path(__file__).parents[1] / "book" / "coming_from_kickscore.md").read_text("utf-8")
TRAPS = TEXT.index("## Traps")
BLOCK = re.compile(r"^\*(kickscore|here|both)\*\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(found[1], found[2], found.start()) for found in BLOCK.finditer(TEXT)]
NUMBER = r"-?\d+(?:\.\d+)?"
WIDEST = 39  # characters that a telephone shows


def statements(block):
    """The statements of a block, each with the comment below it."""
    lines, body = block.splitlines(), ast.parse(block).body
    ends = [node.lineno - 1 for node in body[1:]] + [len(lines)]
    for node, end in zip(body, ends, strict=True):
        below = [line[2:] for line in lines[node.end_lineno : end] if line.startswith("# ")]
        yield node, " ".join(below)


def run(block, names):
    """Run a block; return the values of the lines whose values are shown."""
    values = []
    for node, shown in statements(block):
        if re.match(r"\w+(Error|Warning): ", shown):
            raises(node, shown, names)
        elif shown:
            assert isinstance(node, ast.Expr)
            value = eval(compile(ast.Expression(node.value), "page", "eval"), names)
            agrees(value, shown)
            values.append(value)
        else:
            exec(compile(ast.Module([node], []), "page", "exec"), names)
    return values


def raises(node, shown, names):
    kind, _, text = shown.partition(": ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BaseException) as caught:  # noqa: PT011  the page says which
            exec(compile(ast.Module([node], []), "page", "exec"), names)
    assert caught.type.__name__ == kind
    assert str(caught.value).startswith(text.removesuffix(" ..."))


def agrees(value, shown):
    """Whether a value is what the page shows, to the digits that it shows."""
    if not re.fullmatch(rf"{NUMBER}(, {NUMBER})*", shown):
        found = ", ".join(map(str, value if isinstance(value, list) else [value]))
        beginning = shown.removesuffix("...")
        assert found == shown or (beginning != shown and found.startswith(beginning))
        return
    texts = shown.split(", ")
    found = np.ravel(value)
    assert len(found) == len(texts)
    assert [f"{v:.{len(text.partition('.')[2])}f}" for v, text in zip(found, texts, strict=True)] == texts


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
    """What our blocks show, by the place of the block."""
    names = {}
    return {start: run(block, names) for kind, block, start in BLOCKS if kind != "kickscore"}


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
    names = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        return {start: run(block, names) for kind, block, start in BLOCKS if kind != "here"}


def test_our_code_gives_what_the_page_shows(ours):
    assert sum(map(len, ours.values())) > 25


def test_code_of_kickscore_gives_what_the_page_shows(theirs):
    assert sum(map(len, theirs.values())) > 15


def test_both_programs_give_the_same(ours, theirs):
    pairs = [
        (first[2], second[2])
        for first, second in pairwise(BLOCKS)
        if (first[0], second[0]) == ("kickscore", "here") and first[2] < TRAPS
    ]
    assert len(pairs) >= 10
    for left, right in pairs:
        assert len(theirs[left]) <= len(ours[right])
        for value, other in zip(theirs[left], ours[right], strict=False):
            np.testing.assert_allclose(np.ravel(value), np.ravel(other), atol=1e-6, rtol=0)


def test_every_block_of_code_is_of_a_kind_and_fits_a_telephone():
    assert TEXT.count("```python\n") == len(BLOCKS)
    assert not re.search(r"from (studies|bookrunner)", TEXT)  # a user has the package alone
    assert max(len(line) for _, block, _ in BLOCKS for line in block.splitlines()) <= WIDEST


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
    assert f"{found - exact:.3f} off at mean $-5$ and variance 1" in TEXT
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
    ours = DynamicComparisons(Wiener(1.0), Probit()).fit(Matches([[1, -1]], [1.0], ["a", "b"]), [1])
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

"""The weights along the ranking path, as solutions of the dual (eq. 8): 0 <= alpha <= 1 only."""

import itertools

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path, walk

KINDS = ("rbf", "linear", "integers", "duplicates")


def full_graph(kind, n, seed):
    """All pairs of n items, the better one first, on their Gram matrix: B K B' has rank n - 1 at most."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    if kind == "integers":
        X = rng.integers(-2, 3, (n, 2)).astype(float)
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 2), n)]
    order = np.argsort(-(X[:, 0] + rng.standard_normal(n)))
    index = np.array(list(itertools.combinations(order, 2)))
    K = rbf_kernel(X, gamma=0.5) if kind in ("rbf", "duplicates") else X @ X.T
    return Pairs(K, index)


def dense(pairs):
    everyone = np.arange(len(pairs))
    return pairs.B.gram(pairs.items).block(everyone, everyone)


def weights(pairs, least=1e-3):
    """Knots and weights along the path, from the first breakpoint on."""
    one = np.ones(len(pairs), dtype=int)
    first = ranksvm_path(pairs, one, "precomputed", max_events=1).breakpoints
    if len(first) == 0:
        return np.ones(1), np.ones((1, len(pairs)))
    path = ranksvm_path(pairs, one, "precomputed", lambda_min=first[0] * least)
    assert path.status == "complete"
    knots = np.append(path.breakpoints, path.lambda_end)
    return knots, np.array([path.alpha(lam) for lam in knots])


def violation(Q, alpha, margin):
    """Of y F >= margin at 0, <= at 1, = between, over the largest F."""
    excess = Q @ alpha - margin
    wrong = np.where(alpha <= 1e-12, -excess, np.where(alpha >= 1 - 1e-12, excess, np.abs(excess)))
    return wrong.max() / max(margin, np.abs(Q @ alpha).max())


def brute_force(Q, lam):
    """The least dual over all choices of weights at 0, at 1 and inside."""
    best = np.inf
    for choice in itertools.product((0.0, 1.0, np.nan), repeat=len(Q)):
        alpha = np.array(choice)
        inner = np.isnan(alpha)
        alpha[inner] = 0.0
        if inner.any():
            right = lam - Q[inner] @ alpha
            alpha[inner] = np.linalg.lstsq(Q[np.ix_(inner, inner)], right, rcond=None)[0]
        if ((alpha >= -1e-12) & (alpha <= 1 + 1e-12)).all():
            best = min(best, alpha @ Q @ alpha / 2 - lam * alpha.sum())
    return best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_duals_by_brute_force(kind, seed):
    pairs = full_graph(kind, 4, seed)
    Q = dense(pairs)
    margins, alphas = weights(pairs)
    for lam, alpha in zip(margins, alphas, strict=True):
        assert alpha @ Q @ alpha / 2 - lam * alpha.sum() == pytest.approx(brute_force(Q, lam), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_who_is_watched_does_not_matter(kind, monkeypatch):
    pairs = full_graph(kind, 12, seed=3)
    margins, alphas = weights(pairs)
    for name, value in (("_FEW", 3), ("_EVENTS", 7), ("_ROOM", 1), ("_REACH", 1e-4)):
        monkeypatch.setattr(walk, name, value)
    few, theirs = weights(pairs)
    Q = dense(pairs)
    for lam in np.geomspace(1.1 * margins[-1], 0.9 * margins[0], 30):
        duals = []
        for knots, found in ((margins, alphas), (few, theirs)):
            place = np.flatnonzero(knots >= lam)[-1]
            share = (knots[place] - lam) / (knots[place] - knots[place + 1])
            duals.append(Q @ ((1 - share) * found[place] + share * found[place + 1]))  # Bg is unique
        np.testing.assert_allclose(duals[1], duals[0], atol=1e-8 * margins[0])


@pytest.mark.parametrize("kind", KINDS)
def test_full_graph_of_many_dependent_pairs(kind):
    pairs = full_graph(kind, 30, seed=1)
    Q = dense(pairs)
    margins, alphas = weights(pairs)
    assert len(margins) > 100
    assert max(violation(Q, alpha, margin) for margin, alpha in zip(margins, alphas, strict=True)) < 1e-9

"""The boxes of chapter 12: Brownian motion's origin, states of covariances, least states, two passes."""

from itertools import pairwise

import numpy as np
import pytest
from dynamics import dense
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import block_diag

from preflearn.dynamics import (
    Affine,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    PiecewiseConstant,
    Wiener,
)
from studies.ch12_states import least_state_size

seeds = st.integers(0, 2**31)
ONE, E = np.ones((1, 1)), np.array([1.0, 0.0])


def times(rng, n=9, origin=0.0):
    """Ascending times from the origin on: some equal, the first at times at the origin itself."""
    t = np.sort(rng.choice([0.0, 1e-9, 0.5, 1.0, 2.0, 4.0, 1e3], n) + rng.choice([0.0, 0.3], n))
    return origin + t * rng.choice([1e-3, 1.0, 5.0])


def psd(M):
    """Positive semi-definite, but for rounding."""
    scale = np.abs(M).max(initial=1e-300)
    return np.linalg.eigvalsh((M + M.T) / 2).min(initial=0.0) >= -1e-10 * scale


# ---- Brownian motion and its origin


@pytest.mark.theorem("prop-c12-origin")
@given(seeds)
def test_brownian_motion_has_an_origin(seed):
    rng = np.random.default_rng(seed)
    o = rng.normal() * 10
    t = times(rng, origin=o)
    assert psd(np.minimum.outer(t, t) - o)  # (a)
    earlier = np.append(o - rng.choice([1e-3, 1.0, 24.0]), t)
    assert not psd(np.minimum.outer(earlier, earlier) - o)
    v, variance = rng.choice([0.0, 1e-6, 1.0, 9.0]), rng.uniform(0.1, 4)
    steps = np.tril(np.ones((len(t), len(t)))) * np.sqrt(variance * np.diff(t, prepend=t[0]))
    steps[:, 0] = np.sqrt(v)
    walked = steps @ steps.T  # the sums of independent steps of equation 9
    scale = 1e-12 * (1 + np.abs(walked).max())
    assert np.allclose(v + variance * (np.minimum.outer(t, t) - t[0]), walked, rtol=0, atol=scale)  # (b)
    start = t[0] - v / variance
    alone = variance * (np.minimum.outer(t, t) - start)
    assert np.allclose(alone, walked, rtol=0, atol=1e-9 * (1 + np.abs(walked).max()))
    moved = variance * (np.minimum.outer(t, t) - (start - 1.0))
    assert not np.allclose(moved, walked, rtol=0, atol=0.01 * variance)
    if v:
        package = (Constant(v) + Wiener(variance, origin="first")).gram(t)
        assert np.allclose(package, walked, rtol=0, atol=scale)


# ---- States of covariances: h, P(t), A(t, u), each with the Gram matrix that the box states


def constant(rng):
    v = rng.uniform(0.1, 4)
    return E[:1], lambda t: v * ONE, lambda t, u: ONE, Constant(v)


def piecewise(rng):
    v, edges = rng.uniform(0.1, 4), np.sort(rng.uniform(0, 6, 3))

    def step(t, u):
        return ONE * (np.searchsorted(edges, t, "right") == np.searchsorted(edges, u, "right"))

    return E[:1], lambda t: v * ONE, step, PiecewiseConstant(v, tuple(edges))


def wiener(rng):
    v, o = rng.uniform(0.1, 4), -rng.choice([0.0, 2.0])
    return E[:1], lambda t: v * (t - o) * ONE, lambda t, u: ONE, Wiener(v, o)


def line(rng):
    v, o = rng.uniform(0.1, 4), rng.choice([0.0, 2.0])

    def step(t, u):
        return np.array([[1.0, u - t], [0.0, 1.0]])

    return E, lambda t: v * np.outer([t - o, 1], [t - o, 1]), step, Linear(v, o)


def matern12(rng):
    v, scale = rng.uniform(0.1, 4), rng.choice([0.1, 2.0, 1e3])
    return E[:1], lambda t: v * ONE, lambda t, u: np.exp(-(u - t) / scale) * ONE, Matern12(v, scale)


def matern32(rng):
    v, scale = rng.uniform(0.1, 4), rng.choice([0.1, 2.0, 1e3])
    a = np.sqrt(3) / scale

    def step(t, u):
        return np.exp(-a * (u - t)) * np.array([[1.0, a * (u - t)], [0.0, 1.0]])

    return E, lambda t: v * np.array([[1.0, 1.0], [1.0, 2.0]]), step, Matern32(v, scale)


SINGLE = [constant, piecewise, wiener, line, matern12, matern32]


def combined(one, two, vectors, matrices, covariance):
    return (
        vectors(one[0], two[0]),
        lambda t: matrices(one[1](t), two[1](t)),
        lambda t, u: matrices(one[2](t, u), two[2](t, u)),
        covariance,
    )


def some_model(rng):
    one, two = (SINGLE[i](rng) for i in rng.integers(0, len(SINGLE), 2))
    added = combined(one, two, np.append, block_diag, one[3] + two[3])
    multiplied = combined(one, two, np.kron, np.kron, one[3] * two[3])
    return [one, added, multiplied][rng.integers(0, 3)]


@pytest.mark.theorem("thm-c12-state")
@given(seeds)
def test_state_has_the_covariance(seed):
    rng = np.random.default_rng(seed)
    h, P, A, k = some_model(rng)
    t = times(rng)
    K = k.gram(t)
    scale = np.abs(K).max() + 1e-300
    i, j, m = np.sort(rng.integers(0, len(t), 3))
    assert np.allclose(A(t[i], t[i]), np.eye(len(h)))
    assert np.allclose(A(t[j], t[m]) @ A(t[i], t[j]), A(t[i], t[m]), atol=1e-9)
    walked = P(t[0])
    for before, now in pairwise(t):
        step = A(before, now)
        Q = P(now) - step @ P(before) @ step.T
        assert psd(Q + 1e-13 * np.abs(P(now)).max() * np.eye(len(h)))
        walked = step @ walked @ step.T + Q
        assert np.allclose(walked, P(now), rtol=1e-9, atol=1e-9 * np.abs(walked).max())
    implied = dense.joint([(h, P(now), A(before, now)) for before, now in pairwise([t[0], *t])])
    assert np.allclose(implied, K, rtol=0, atol=1e-10 * scale)


@pytest.mark.theorem("thm-c12-state")
@given(seeds)
def test_noise_of_a_product_and_of_matern_32(seed):
    rng = np.random.default_rng(seed)
    (_, P, A, _), (_, P2, A2, _) = (SINGLE[i](rng) for i in rng.integers(0, len(SINGLE), 2))
    t, u = np.sort(rng.uniform(0, 6, 2))
    R, R2 = A(t, u) @ P(t) @ A(t, u).T, A2(t, u) @ P2(t) @ A2(t, u).T
    Q, Q2 = P(u) - R, P2(u) - R2
    both = np.kron(A(t, u), A2(t, u))
    whole = np.kron(P(u), P2(u)) - both @ np.kron(P(t), P2(t)) @ both.T
    split = np.kron(Q, R2) + np.kron(R, Q2) + np.kron(Q, Q2)
    assert np.allclose(whole, split, atol=1e-9 * (1 + np.abs(whole).max()))
    _, P, A, k = matern32(rng)
    x = np.sqrt(3) / k.lengthscale * (u - t)
    r, weight = np.polynomial.legendre.leggauss(80)
    r, weight = (r + 1) * min(x, 40.0) / 2, weight * min(x, 40.0) / 2
    integral = np.einsum("n,ni,nj->ij", weight * np.exp(-2 * r), *[np.column_stack([r, r**0])] * 2)
    Q = P(u) - A(t, u) @ P(t) @ A(t, u).T
    assert np.allclose(Q, 4 * k.variance * integral, atol=1e-9 * k.variance)


# ---- The least state


def ranks(K, tol=1e-9):
    return [np.linalg.matrix_rank(K[n:, : n + 1], tol=tol * np.abs(K).max()) for n in range(len(K))]


def chain_of_forecasts(K, tol=1e-9):
    """The proof of (b): h, P and A of a state that is a basis of the forecasts E[f | p]."""
    found, reads_before, P_before = [], None, None
    for n, rank in enumerate(ranks(K, tol)):
        block = K[n:, : n + 1]
        U = np.linalg.svd(block)[0][:, :rank]
        reads = U.T @ block @ np.linalg.pinv(K[: n + 1, : n + 1], rcond=1e-11, hermitian=True)
        P = reads @ K[: n + 1, : n + 1] @ reads.T
        A = None if n == 0 else reads @ K[: n + 1, :n] @ reads_before.T @ np.linalg.pinv(P_before)
        found.append((U[0], P, A))
        reads_before, P_before = reads, P
    return found


def random_covariance(rng, n=8):
    """Of a chain whose matrices change and may be singular, or any matrix; and a size that is enough."""
    if rng.random() < 0.25:
        factor = rng.normal(size=(n, int(rng.integers(1, n + 1))))
        return factor @ factor.T, n
    size = int(rng.integers(1, 4))
    steps = [rng.normal(size=(size, size)) / 2 * (rng.random() < 0.9) for _ in range(n)]
    reads = rng.normal(size=(n, size)) * rng.integers(0, 4, (n, 1)).clip(0, 1)
    root = rng.normal(size=(size, size))
    P, chain = root @ root.T, []
    for step, read in zip(steps, reads, strict=True):
        noise = rng.normal(size=size) * rng.integers(0, 2)
        P = step @ P @ step.T + np.outer(noise, noise)
        chain.append((read, P, step))
    return dense.joint(chain), size


def test_state_of_the_piecewise_function_cannot_depend_on_the_gap_alone():
    """Rows k(t, t + g) for many t span as many dimensions as there are t: the chapter's argument."""
    starts, gaps = np.arange(12) / 12, (np.arange(12) + 0.5) / 12
    k = PiecewiseConstant(boundaries=(1.0,))
    rows = np.array([k.gram([t], t + gaps)[0] for t in starts])
    assert np.linalg.matrix_rank(rows) == len(starts)


@pytest.mark.theorem("thm-c12-least")
@given(seeds)
def test_least_state_is_a_rank(seed):
    K, size = random_covariance(np.random.default_rng(seed))
    assert max(ranks(K)) <= size  # (a)
    chain = chain_of_forecasts(K)
    assert [len(h) for h, _, _ in chain] == ranks(K)
    assert np.allclose(dense.joint(chain), K, atol=1e-6 * np.abs(K).max())  # (b)
    for (_, P, _), (_, later, step) in pairwise(chain):
        Q = later - step @ P @ step.T
        assert psd(Q + 1e-8 * np.abs(K).max() * np.eye(len(Q)))


@pytest.mark.theorem("thm-c12-least")
def test_least_states_that_the_chapter_names():
    grid = np.linspace(0.1, 6.1, 13)
    expected = {
        Constant(): 1,
        PiecewiseConstant(boundaries=(1.0, 3.0)): 1,
        Wiener(origin=0.0): 1,
        Linear(origin=0.0): 1,
        Matern12(): 1,
        Matern32(): 2,
        Matern52(): 3,
        Affine(origin=0.0) + Wiener(origin=0.0): 2,
        Constant() + Wiener(origin=0.0): 1,
        Constant() + Matern12(): 2,
        Matern52() * Matern32(): 4,
    }
    for k, size in expected.items():
        assert max(ranks(k.gram(grid), 1e-11)) == size
        assert least_state_size(k, start=0.1, step=0.5).by_times == size
        assert np.allclose(dense.joint(chain_of_forecasts(k.gram(grid), 1e-11)), k.gram(grid), atol=1e-5)


# ---- Two passes


def forward_back(h, P, A, t, y, tau):
    """The equations of the chapter, one time after the other."""
    filtered, now = [], (0 * h, P(t[0]))
    for n in range(len(t)):
        if n:
            now = _ahead(now, P, A, t[n - 1], t[n])
        m, S = now
        u = tau[n] / (1 + tau[n] * (h @ S @ h))
        now = m + u * (S @ h) * (y[n] - h @ m), S - u * np.outer(S @ h, S @ h)
        filtered.append(now)
    smoothed = [now]
    for n in reversed(range(len(t) - 1)):
        smoothed.append(_back(filtered[n], P, A, t[n], t[n + 1], smoothed[-1]))
    return filtered, smoothed[::-1]


def _ahead(now, P, A, t, u):
    step = A(t, u)
    R = step @ P(t) @ step.T
    return step @ now[0], step @ now[1] @ step.T + (P(u) - R)


def _back(now, P, A, t, u, later):
    m, S = _ahead(now, P, A, t, u)
    J = now[1] @ A(t, u).T @ np.linalg.pinv(S, rcond=1e-13, hermitian=True)
    return now[0] + J @ (later[0] - m), now[1] + J @ (later[1] - S) @ J.T


@pytest.mark.theorem("thm-c12-smoother")
@given(seeds)
def test_two_passes_give_the_posterior(seed):
    rng = np.random.default_rng(seed)
    h, P, A, k = some_model(rng)
    size = int(rng.choice([1, 2, 9]))
    t = np.sort(rng.choice([0.0, 0.5, 1.0, 2.0, 2.7, 4.0, 9.0, 20.0], size))  # equal times among them
    y, tau = rng.normal(size=size), rng.uniform(0.1, 4, size) * rng.integers(0, 2, size)
    filtered, smoothed = forward_back(h, P, A, t, y, tau)
    new = rng.uniform(0.0, 12.0, 4)
    K, cross = k.gram(t), k.gram(new, t)
    weights = np.linalg.solve(np.eye(size) + tau[:, None] * K, np.diag(tau))
    scale = 1e-8 * (1 + np.abs(K).max())
    Sigma = K - K @ weights @ K
    for n in range(size):  # (a)
        assert h @ smoothed[n][0] == pytest.approx((K @ weights @ y)[n], abs=scale)
        assert h @ smoothed[n][1] @ h == pytest.approx(Sigma[n, n], abs=scale)
        seen = slice(n + 1)
        past = np.linalg.solve(np.eye(n + 1) + tau[seen, None] * K[seen, seen], np.diag(tau[seen]))
        assert h @ filtered[n][0] == pytest.approx(K[n, seen] @ past @ y[seen], abs=scale)
    for i, at in enumerate(new):  # (b)
        n = np.searchsorted(t, at, "right") - 1
        now = (0 * h, P(at)) if n < 0 else _ahead(filtered[n], P, A, t[n], at)
        if n + 1 < len(t):
            now = _back(now, P, A, at, t[n + 1], smoothed[n + 1])
        variance = k.gram([at])[0, 0] - cross[i] @ weights @ cross[i]
        assert h @ now[0] == pytest.approx(cross[i] @ weights @ y, abs=scale)
        assert h @ now[1] @ h == pytest.approx(variance, abs=scale)

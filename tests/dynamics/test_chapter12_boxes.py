"""The theorem boxes of chapter 12: the origin of Brownian motion, states of
covariances, minimal states, and two passes."""

from itertools import pairwise

import numpy as np
import pytest
from dynamics import dense
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import block_diag

from preflearn.dynamics import (
    Constant,
    Linear,
    Matern12,
    Matern32,
    PiecewiseConstant,
    Wiener,
)

seeds = st.integers(0, 2**31)


def times(rng, n=9, origin=0.0):
    """Return ascending times from the origin on. Some are equal, and the first may be
    the origin."""
    t = np.sort(
        rng.choice([0.0, 1e-9, 0.5, 1.0, 2.0, 4.0, 1e3], n) + rng.choice([0.0, 0.3], n)
    )
    return origin + t * rng.choice([1e-3, 1.0, 5.0])


def psd(M):
    """Return whether a matrix is positive semi-definite up to rounding."""
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
    v = rng.choice([0.0, 1e-6, 1.0, 9.0])
    variance = rng.uniform(0.1, 4)
    steps = np.tril(np.ones((len(t), len(t)))) * np.sqrt(
        variance * np.diff(t, prepend=t[0])
    )
    steps[:, 0] = np.sqrt(v)
    # covariance of the sums of independent steps of equation 9
    walked = steps @ steps.T
    scale = 1e-12 * (1 + np.abs(walked).max())
    # (b)
    assert np.allclose(
        v + variance * (np.minimum.outer(t, t) - t[0]), walked, rtol=0, atol=scale
    )
    start = t[0] - v / variance
    alone = variance * (np.minimum.outer(t, t) - start)
    assert np.allclose(alone, walked, rtol=0, atol=1e-9 * (1 + np.abs(walked).max()))
    moved = variance * (np.minimum.outer(t, t) - (start - 1.0))
    assert not np.allclose(moved, walked, rtol=0, atol=0.01 * variance)
    if v:
        package = (Constant(v) + Wiener(variance, origin="first")).gram(t)
        assert np.allclose(package, walked, rtol=0, atol=scale)


# ---- States of covariances: h, P(t), A(t, u) of the box, each with the stated
# covariance


def single_models(rng):
    v = rng.uniform(0.1, 4)
    scale = rng.choice([0.1, 2.0, 1e3])
    o = rng.choice([0.0, 2.0])
    rate = np.sqrt(3) / scale
    edges = np.sort(rng.uniform(0, 6, 3))

    def same_piece(t, u):
        return float(
            np.searchsorted(edges, t, "right") == np.searchsorted(edges, u, "right")
        )

    def line(x):
        return np.array([[1.0, x], [0.0, 1.0]])

    return [
        model([1], lambda t: v, lambda t, u: 1.0, Constant(v)),
        model([1], lambda t: v, same_piece, PiecewiseConstant(v, tuple(edges))),
        model([1], lambda t: v * (t + o), lambda t, u: 1.0, Wiener(v, -o)),
        model(
            [1, 0],
            lambda t: v * np.outer([t - o, 1], [t - o, 1]),
            lambda t, u: line(u - t),
            Linear(v, o),
        ),
        model(
            [1], lambda t: v, lambda t, u: np.exp((t - u) / scale), Matern12(v, scale)
        ),
        model(
            [1, 0],
            lambda t: v * np.array([[1.0, 1.0], [1.0, 2.0]]),
            lambda t, u: np.exp(rate * (t - u)) * line(rate * (u - t)),
            Matern32(v, scale),
        ),
    ]


def model(h, P, A, covariance):
    return (
        np.array(h),
        lambda t: np.atleast_2d(P(t)),
        lambda t, u: np.atleast_2d(A(t, u)),
        covariance,
    )


def combined(one, two, vectors, matrices, covariance):
    return model(
        vectors(one[0], two[0]),
        lambda t: matrices(one[1](t), two[1](t)),
        lambda t, u: matrices(one[2](t, u), two[2](t, u)),
        covariance,
    )


def some_model(rng):
    one, two = (single_models(rng)[rng.integers(6)] for _ in range(2))
    added = combined(one, two, np.append, block_diag, one[3] + two[3])
    multiplied = combined(one, two, np.kron, np.kron, one[3] * two[3])
    return [one, added, multiplied][rng.integers(3)]


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
    implied = dense.joint(
        [(h, P(now), A(before, now)) for before, now in pairwise([t[0], *t])]
    )
    assert np.allclose(implied, K, rtol=0, atol=1e-10 * scale)


@pytest.mark.theorem("thm-c12-state")
@given(seeds)
def test_noise_of_a_product(seed):
    rng = np.random.default_rng(seed)
    t, u = np.sort(rng.uniform(0, 6, 2))
    kept = []
    noise = []
    for _, P, A, _ in (single_models(rng)[rng.integers(6)] for _ in range(2)):
        kept.append(A(t, u) @ P(t) @ A(t, u).T)
        noise.append(P(u) - kept[-1])
    whole = np.kron(kept[0] + noise[0], kept[1] + noise[1]) - np.kron(*kept)
    split = np.kron(noise[0], kept[1]) + np.kron(kept[0], noise[1]) + np.kron(*noise)
    assert np.allclose(whole, split, atol=1e-9 * (1 + np.abs(whole).max()))


@pytest.mark.theorem("thm-c12-state")
def test_noise_of_matern_32():
    *_, (_, P, A, k) = single_models(np.random.default_rng(0))
    nodes, weights = np.polynomial.legendre.leggauss(80)
    for x in (0.01, 1.0, 20.0):
        u = x * k.lengthscale / np.sqrt(3)
        r = (nodes + 1) * x / 2
        both = np.column_stack([r, np.ones(80)])
        integral = (both.T * (weights * x / 2 * np.exp(-2 * r))) @ both
        Q = P(u) - A(0, u) @ P(0) @ A(0, u).T
        assert np.allclose(Q, 4 * k.variance * integral, atol=1e-9 * k.variance)


# ---- The smallest state


def ranks(K):
    return [
        np.linalg.matrix_rank(K[n:, : n + 1], tol=1e-9 * np.abs(K).max())
        for n in range(len(K))
    ]


def chain_of_forecasts(K):
    """Follow the proof of (b): return h, P and A of a state that is a basis of the
    forecasts E[f | p]."""
    found = []
    reads_before = None
    P_before = None
    for n, rank in enumerate(ranks(K)):
        block = K[n:, : n + 1]
        U = np.linalg.svd(block)[0][:, :rank]
        reads = (
            U.T
            @ block
            @ np.linalg.pinv(K[: n + 1, : n + 1], rcond=1e-11, hermitian=True)
        )
        P = reads @ K[: n + 1, : n + 1] @ reads.T
        A = (
            None
            if n == 0
            else reads @ K[: n + 1, :n] @ reads_before.T @ np.linalg.pinv(P_before)
        )
        found.append((U[0], P, A))
        reads_before = reads
        P_before = P
    return found


def random_covariance(rng, n=8):
    """Return a covariance and a sufficient size: that of a chain with changing,
    possibly singular matrices, or any one."""
    if rng.random() < 0.25:
        factor = rng.normal(size=(n, int(rng.integers(1, n + 1))))
        return factor @ factor.T, n
    size = int(rng.integers(1, 4))
    steps = [rng.normal(size=(size, size)) / 2 * (rng.random() < 0.9) for _ in range(n)]
    reads = rng.normal(size=(n, size)) * rng.integers(0, 4, (n, 1)).clip(0, 1)
    root = rng.normal(size=(size, size))
    P = root @ root.T
    chain = []
    for step, read in zip(steps, reads, strict=True):
        noise = rng.normal(size=size) * rng.integers(0, 2)
        P = step @ P @ step.T + np.outer(noise, noise)
        chain.append((read, P, step))
    return dense.joint(chain), size


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


# ---- Two passes


def forward_back(h, P, A, t, y, tau):
    """Apply the equations of the chapter, one time after the other."""
    filtered = []
    now = (0 * h, P(t[0]))
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
    # Where S is singular, rounding leaves eigenvalues of up to 5e-13 times the largest.
    J = now[1] @ A(t, u).T @ np.linalg.pinv(S, rcond=1e-11, hermitian=True)
    return now[0] + J @ (later[0] - m), now[1] + J @ (later[1] - S) @ J.T


@pytest.mark.theorem("thm-c12-smoother")
@given(seeds)
def test_two_passes_give_the_posterior(seed):
    rng = np.random.default_rng(seed)
    h, P, A, k = some_model(rng)
    size = int(rng.choice([1, 2, 9]))
    # some of the times are equal
    t = np.sort(rng.choice([0.0, 0.5, 1.0, 2.0, 2.7, 4.0, 9.0, 20.0], size))
    y = rng.normal(size=size)
    tau = rng.uniform(0.1, 4, size) * rng.integers(0, 2, size)
    filtered, smoothed = forward_back(h, P, A, t, y, tau)
    new = rng.uniform(0.0, 12.0, 4)
    K = k.gram(t)
    cross = k.gram(new, t)
    weights = np.linalg.solve(np.eye(size) + tau[:, None] * K, np.diag(tau))
    scale = 1e-8 * (1 + np.abs(K).max())
    Sigma = K - K @ weights @ K
    for n in range(size):  # (a)
        assert h @ smoothed[n][0] == pytest.approx((K @ weights @ y)[n], abs=scale)
        assert h @ smoothed[n][1] @ h == pytest.approx(Sigma[n, n], abs=scale)
        seen = slice(n + 1)
        past = np.linalg.solve(
            np.eye(n + 1) + tau[seen, None] * K[seen, seen], np.diag(tau[seen])
        )
        assert h @ filtered[n][0] == pytest.approx(
            K[n, seen] @ past @ y[seen], abs=scale
        )
    for i, at in enumerate(new):  # (b)
        n = np.searchsorted(t, at, "right") - 1
        now = (0 * h, P(at)) if n < 0 else _ahead(filtered[n], P, A, t[n], at)
        if n + 1 < len(t):
            now = _back(now, P, A, at, t[n + 1], smoothed[n + 1])
        variance = k.gram([at])[0, 0] - cross[i] @ weights @ cross[i]
        assert h @ now[0] == pytest.approx(cross[i] @ weights @ y, abs=scale)
        assert h @ now[1] @ h == pytest.approx(variance, abs=scale)

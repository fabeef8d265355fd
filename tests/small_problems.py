"""300 small problems for paths: generic problems, and every kind of degeneracy.

`small_problem(seed)` has a seed from 0 to 299. `KINDS[seed % 12]` states the kind of
the data, and the kernels alternate.
"""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.metrics import threshold
from preflearn.pairs import Pairs

COUNT = 300
KINDS = (
    "generic",  # normal features, for which no two events coincide
    # small integer features, for which events coincide and differences are dependent
    "integers",
    "duplicated pairs",
    # differences of zero, and pairs with equal differences but other items
    "equal items",
    "cycles",  # pairs in both orders and closed cycles, which no function fits
    "queries",  # pairs within queries, from scores of few levels
    "one pair",
    "symmetric start",  # several pairs maximize lambda_0
    "polygon",  # items on a circle, for which many pairs reach the margin at once
    "transitive",  # all pairs of an order on a line
    # pairs whose sum is nearly or exactly zero, so that lambda_0 is small or zero
    "balanced",
    "mixture",  # all pairs between two classes
)


def small_problem(seed):
    """Return a problem: pairs (1 to 40 pairs of 2 to 12 items), labels -1 and +1, and
    the arguments of its kernel."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    turn = seed // len(KINDS)
    kernel = (
        {"kernel": "linear"}
        if turn % 2 == 0
        else {"kernel": "rbf", "gamma": (0.5, 2.0)[turn // 2 % 2]}
    )
    n = int(rng.integers(3, 13))
    X = rng.normal(size=(n, int(rng.integers(1, 4))))
    index = _random_pairs(rng, n, int(rng.integers(2, 31)))
    if kind in ("integers", "queries", "balanced"):
        X = rng.integers(-2, 3, size=X.shape).astype(float)
    if kind == "duplicated pairs":
        index = np.repeat(index[:13], rng.integers(1, 4, min(13, len(index))), axis=0)
    elif kind == "equal items":
        X[rng.integers(n, size=n // 2)] = X[0]
        X[-1] = X[-2]
    elif kind == "cycles":
        ring = rng.permutation(n)[: int(rng.integers(2, n + 1))]
        index = np.vstack(
            [index[:12], index[: int(rng.integers(1, 12)), ::-1], _ring(ring)]
        )
    elif kind == "queries":
        scores = rng.integers(0, 3, n)
        queries = rng.integers(0, 3, n)
        every = [(a, b) for a in range(n) for b in range(n) if queries[a] == queries[b]]
        better = [(a, b) for a, b in every if scores[a] > scores[b]]
        index = np.array(better or [(0, 1)])
    elif kind == "one pair":
        X = X[:2]
        index = np.array([[0, 1]])
        if turn % 5 == 4:
            X[1] = X[0]
    elif kind == "symmetric start":
        half = rng.integers(-2, 3, size=(int(rng.integers(1, 6)), 2)).astype(float)
        X = np.vstack(
            [
                np.column_stack([half[:, 0], half[:, 1]]),
                np.column_stack([half[:, 0], -half[:, 1]]),
            ]
        )
        X = np.vstack([X, np.zeros((1, 2))])
        index = np.array([(k, len(X) - 1) for k in range(len(X) - 1)])
        index = index[: len(index) if turn % 3 else 2 * (len(index) // 2)]
    elif kind == "polygon":
        angle = 2 * np.pi * np.arange(n - 1) / (n - 1)
        X = np.vstack([np.column_stack([np.cos(angle), np.sin(angle)]), [[0.0, 0.0]]])
        if turn % 2:
            X = np.round(X, 12)
        ends = [(k, n - 1) for k in range(n - 1)]
        index = np.array(ends + [((k + 1) % (n - 1), k) for k in range((n - 1) // 2)])
    elif kind == "transitive":
        order = np.sort(
            rng.integers(0, 10, size=min(n, 9))
            if turn % 2
            else rng.normal(size=min(n, 9))
        )
        X = order[:, None].astype(float)
        index = np.array([(a, b) for a in range(len(X)) for b in range(a)])
    elif kind == "balanced":
        ring = _ring(rng.permutation(n))
        index = ring if turn % 4 == 0 else np.vstack([ring, index[: turn % 4]])
    elif kind == "mixture":
        classes = np.arange(n) < max(1, n // 2)
        X[classes] += 0.7
        index = np.array(
            [(a, b) for a in np.flatnonzero(classes) for b in np.flatnonzero(~classes)]
        )
    index = index[:40]
    # the order of a pair is random and contains no information
    y = rng.choice([-1, 1], size=len(index))
    index = np.where((y > 0)[:, None], index, index[:, ::-1])
    return Pairs(X, index), y, kernel


def _random_pairs(rng, n, m):
    first = rng.integers(n, size=m)
    return np.column_stack([first, (first + rng.integers(1, n, size=m)) % n])


def _ring(items):
    return np.column_stack([items, np.roll(items, -1)])


KERNELS = {  # kernels of items, with parameters that suit noisy comparisons
    "rbf": {"gamma": 0.4},
    "linear": {},
    "laplacian": {"gamma": 0.7},
    "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0},
    "sigmoid": {"gamma": 0.5, "coef0": -0.5},  # not positive semi-definite
}
DEFINITE = sorted(KERNELS.keys() - {"sigmoid"})


def noisy_comparisons(seed, m=40, n=15, p=3, tie_share=0.5, noise=0.5):
    """Return noisy comparisons of n items by a quadratic score. The smallest
    differences are ties."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    scores = X @ rng.standard_normal(p) + 0.5 * (X**2).sum(axis=1)
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    differences = (
        scores[index[:, 0]] - scores[index[:, 1]] + noise * rng.standard_normal(m)
    )
    y = np.sign(differences).astype(int)
    y[
        np.argsort(np.abs(differences))[: int(np.clip(round(tie_share * m), 1, m - 1))]
    ] = 0
    return Pairs(X, index), y


def same_comparisons(pairs, y, rng):
    """Return the same comparisons in other forms: swapped, in another order, with other
    item numbers, and as an array."""
    flip = rng.random(len(y)) < 0.5
    order = rng.permutation(len(y))
    renamed = rng.permutation(len(pairs.items))
    return [
        (
            Pairs(
                pairs.items, np.where(flip[:, None], pairs.index[:, ::-1], pairs.index)
            ),
            np.where(flip, -y, y),
        ),
        (pairs[order], y[order]),
        (Pairs(pairs.items[renamed], np.argsort(renamed)[pairs.index]), y),
        (np.stack([pairs.first, pairs.second], axis=1), y),
    ]


def two_classes(n, seed, p=2):
    """Return all pairs between two overlapping classes of items."""
    rng = np.random.default_rng(seed)
    scores = (rng.random(n) < 0.5).astype(float)
    scores[:2] = 0, 1
    return Pairs.from_scores(rng.standard_normal((n, p)) + scores[:, None], scores)


POINTS = ("rbf", "linear", "separable", "duplicates", "integers", "narrow")


def points(kind, m, seed, share=0.5, p=3, gamma=0.5):
    """Return a Gram matrix of points and their labels. A fraction `share` of the
    labels, and at least one, is +1, and at least one is -1."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.permutation(m) < np.clip(round(share * m), 1, m - 1), 1.0, -1.0)
    X = rng.standard_normal((m, p))
    X[:, 0] += 0.7 * y
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, m // 2), m)]
    elif kind == "integers":
        X = rng.integers(-1, 2, (m, p)) + np.where(y > 0, 1.0, 0.0)[:, None]
    elif kind == "separable":
        X[:, 0] += 5 * y
    if kind in ("linear", "separable", "integers"):
        return X @ X.T, y
    return rbf_kernel(X, gamma=20.0 if kind == "narrow" else gamma), y


def along(path, count, rng):
    """Return values of lambda with equally spaced logarithms, from above the first
    breakpoint down."""
    first, last = path.breakpoints[[0, -1]]
    return np.exp(
        rng.uniform(np.log(max(last, 1e-3 * first)), np.log(1.5 * first), count)
    )


def league(n=20, m=1900, noise=1.0, seed=0):
    """Noisy games with ties between one-hot teams, their labels, and the strengths of
    the teams."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=n) * 0.5
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    lead = strength[index[:, 0]] - strength[index[:, 1]] + noise * rng.logistic(size=m)
    return Pairs(np.eye(n), index), threshold(lead, 0.6), strength

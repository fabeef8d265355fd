"""Paths depend neither on the length of the segments in which they are followed, nor on
the number of threads."""

import itertools
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from small_problems import along, points, two_classes

from preflearn.datasets import simulate_norm_pairs
from preflearn.pairs import Pairs
from preflearn.path import follower, ranksvm_path, svm_path
from preflearn_book.runner.project import THREAD_VARIABLES


def full_graph(kind, n, seed):
    """Return all pairs of n items with the better one first, and their Gram matrix. The
    rank of B K B' is at most n - 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    if kind == "integers":
        X = rng.integers(-2, 3, (n, 2)).astype(float)
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 2), n)]
    order = np.argsort(-(X[:, 0] + rng.standard_normal(n)))
    index = np.array(list(itertools.combinations(order, 2)))
    return Pairs(
        rbf_kernel(X, gamma=0.5) if kind in ("rbf", "duplicates") else X @ X.T, index
    )


KINDS = ("rbf", "linear", "integers", "duplicates")


def follow(kind):
    """Return a path with bias, or of all pairs, and its decision function of lambda."""
    name, _, kind = kind.partition(", ")
    if name == "bias":
        K, y = points(kind, 90, seed=6, share=0.35)
        path = svm_path(K, y, lambda_min=0.05)
        return path, lambda lam: path.decision_function(lam, K)
    pairs = full_graph(kind, 12, seed=3)
    path = ranksvm_path(pairs, np.ones(len(pairs)), "precomputed", lambda_min=0.01)
    return path, path.margins


@pytest.mark.parametrize(
    "kind",
    [
        *(f"bias, {kind}" for kind in ("rbf", "duplicates", "integers")),
        *(f"all, {kind}" for kind in KINDS),
    ],
)
@pytest.mark.parametrize(("events", "reach"), [(1, 1e-4), (7, 0.05), (1000, 1.0)])
def test_the_length_of_the_segments_changes_nothing(kind, events, reach, monkeypatch):
    expected, theirs = follow(kind)
    sizes = {
        "_ALL_WATCHED": 3,
        "_EVENTS": events,
        "_EVENTS_WITH_BIAS": events,
        "_INITIAL_CAPACITY": 1,
        "_INITIAL_REACH": reach,
    }
    for name, value in sizes.items():
        monkeypatch.setattr(follower, name, value)
    path, ours = follow(kind)
    if kind == "bias, rbf":
        np.testing.assert_allclose(path.breakpoints, expected.breakpoints, rtol=1e-9)
        assert [event[1:] for event in path.events] == [
            event[1:] for event in expected.events
        ]
    for lam in np.maximum(
        along(expected, 30, np.random.default_rng(0)), expected.lambda_end
    ):
        assert path.kkt_residual(lam) < 1e-9
        f = theirs(lam)
        np.testing.assert_allclose(ours(lam), f, atol=1e-8 * np.abs(f).max())


@pytest.mark.parametrize("kind", KINDS)
def test_full_graph_of_many_dependent_pairs(kind):
    pairs = full_graph(kind, 30, seed=1)
    every = np.arange(435)
    first = ranksvm_path(pairs, np.ones(435), "precomputed", max_events=1).breakpoints[
        0
    ]
    path = ranksvm_path(pairs, np.ones(435), "precomputed", lambda_min=first / 1e3)
    assert path.status == "complete"
    assert len(path.breakpoints) > 100
    Q = pairs.B.gram(pairs.items).block(every, every)
    for lam in [*path.breakpoints, path.lambda_end]:
        alpha = path.alpha(lam)
        g = Q @ alpha
        wrong = np.where(
            alpha <= 1e-12,
            lam - g,
            np.where(alpha >= 1 - 1e-12, g - lam, np.abs(g - lam)),
        )
        assert wrong.max() < 1e-9 * max(lam, np.abs(g).max())


# ---- The same path on one and on two threads, each in a new process


def flipped(n, seed):
    """Return both orders of each tie. The weights are not unique, and rounding must not
    decide which are returned."""
    pairs, y, _ = simulate_norm_pairs("l2", n, 0.5, np.random.default_rng(seed))
    rows, labels = pairs.flipped(y)
    return rows.B.gram(rbf_kernel(rows.items)).block(
        *[np.arange(len(labels))] * 2
    ), labels


def levels(n, seed):
    """Return items on an integer grid and scores of few levels. Several events then
    share a lambda, and differences are linearly dependent."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, 3)).astype(float)
    return Pairs.from_scores(X, rng.integers(0, 4, n))


BINARY = {
    "flipped": lambda: flipped(200, 0),
    "duplicates 700, stopped": lambda: points("duplicates", 700, 1, 0.3),
    "duplicates 400": lambda: points("duplicates", 400, 2, 0.4, p=5),
    "duplicates, wide": lambda: points("duplicates", 300, 3, 0.5, gamma=0.05),
    "rbf": lambda: points("rbf", 300, 3, 0.4),
    "narrow": lambda: points("narrow", 200, 2, 0.4),
    "wide": lambda: points("rbf", 200, 2, 0.4, gamma=0.02),
    "plane": lambda: points("rbf", 400, 2, 0.5, p=2),
    "low rank": lambda: points("linear", 300, 1, 0.4),
    "separable": lambda: points("separable", 200, 2, 0.4),
    "integers": lambda: points("integers", 300, 4, 0.3),
    "equal integers": lambda: points("integers", 120, 5, 0.5, p=2),
}
RANKINGS = {
    "two classes": lambda: (
        two_classes(200, 0, p=8),
        {"kernel": "rbf", "gamma": 0.125},
    ),
    "two classes, narrow": lambda: (
        two_classes(60, 1, p=5),
        {"kernel": "rbf", "gamma": 5.0},
    ),
    "two classes, linear": lambda: (two_classes(200, 2, p=20), {"kernel": "linear"}),
    "levels": lambda: (levels(80, 3), {"kernel": "rbf", "gamma": 0.5}),
    "levels, linear": lambda: (levels(80, 4), {"kernel": "linear"}),
}
QUICK = ["flipped", "equal integers", "two classes, narrow", "levels, linear"]
THOROUGH = [name for name in [*BINARY, *RANKINGS] if name not in QUICK]


def summary(name):
    """Return the breakpoints, the end, and the largest residual of a path."""
    if name in BINARY:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            path = svm_path(
                *BINARY[name](), lambda_min=1e-3 if "stopped" in name else 0.0
            )
    else:
        problem, kernel = RANKINGS[name]()
        first = ranksvm_path(*problem, max_events=1, **kernel).breakpoints[0]
        path = ranksvm_path(*problem, lambda_min=first / 1e4, **kernel)
    residual = max(
        map(path.kkt_residual, path.breakpoints[:: 1 + len(path.breakpoints) // 100])
    )
    return {
        "breakpoints": path.breakpoints.tolist(),
        "end": path.lambda_end,
        "residual": residual,
    }


def summaries(names, threads):
    """Return the summaries of some paths, computed by a new process with this number of
    threads."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment |= dict.fromkeys(THREAD_VARIABLES, str(threads))
    command = [sys.executable, __file__, *names]
    return json.loads(
        subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, check=True
        ).stdout
    )


@pytest.mark.parametrize(
    "names",
    [QUICK, pytest.param(THOROUGH, marks=pytest.mark.nightly)],
    ids=["quick", "thorough"],
)
def test_the_number_of_threads_changes_nothing(names):
    for name, one, two in zip(
        names, summaries(names, 1), summaries(names, 2), strict=True
    ):
        # At small lambda, the weights and breakpoints depend on the last digits of the
        # kernel.
        np.testing.assert_allclose(
            two["breakpoints"], one["breakpoints"], rtol=1e-5, err_msg=name
        )
        assert len(one["breakpoints"]) > 0, name
        assert two["end"] == pytest.approx(one["end"], rel=1e-5), name
        assert max(one["residual"], two["residual"]) < 1e-8, name


if __name__ == "__main__":
    print(json.dumps([summary(name) for name in sys.argv[1:]]))

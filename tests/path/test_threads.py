"""The same path on one and on two threads, each in a process of its own that makes its Gram matrices anew."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.datasets import simulate_norm_pairs
from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path, svm_path

LIBRARIES = ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMBA")
LAMBDA_MIN = 1e-3


def points(m, p, seed, share):
    rng = np.random.default_rng(seed)
    y = np.where(rng.permutation(m) < round(share * m), 1.0, -1.0)
    X = rng.standard_normal((m, p))
    X[:, 0] += 0.7 * y
    return rng, X, y


def duplicates(m, seed, share, p=3, gamma=0.5):
    rng, X, y = points(m, p, seed, share)
    return rbf_kernel(X[rng.integers(0, m // 2, m)], gamma=gamma), y


def kernel(m, seed, share, p, gamma):
    _, X, y = points(m, p, seed, share)
    return rbf_kernel(X, gamma=gamma), y


def linear(m, seed, share, p, gap=0.0):
    _, X, y = points(m, p, seed, share)
    X[:, 0] += gap * y
    return X @ X.T, y


def integers(m, seed, share, p):
    rng, _, y = points(m, p, seed, share)
    X = rng.integers(-1, 2, (m, p)) + np.where(y > 0, 1.0, 0.0)[:, None]
    return X @ X.T, y


def flipped(n, seed):
    """Both orders of each tie: weights that are not unique, where rounding must not choose."""
    pairs, y, _ = simulate_norm_pairs("l2", n, 0.5, np.random.default_rng(seed))[:3]
    rows, labels = pairs.flipped(y)
    return rows.B.gram(rbf_kernel(rows.items)).block(*[np.arange(len(labels))] * 2), labels


CASES = {
    "flipped": lambda: flipped(200, 0),
    "duplicates 700, stopped": lambda: duplicates(700, 1, 0.3),
    "duplicates 400": lambda: duplicates(400, 2, 0.4, p=5),
    "duplicates, wide": lambda: duplicates(300, 3, 0.5, gamma=0.05),
    "rbf": lambda: kernel(300, 3, 0.4, 3, 0.5),
    "narrow": lambda: kernel(200, 2, 0.4, 3, 20.0),
    "wide": lambda: kernel(200, 2, 0.4, 3, 0.02),
    "plane": lambda: kernel(400, 2, 0.5, 2, 0.5),
    "low rank": lambda: linear(300, 1, 0.4, 3),
    "separable": lambda: linear(200, 2, 0.4, 3, gap=5.0),
    "integers": lambda: integers(300, 4, 0.3, 3),
    "equal integers": lambda: integers(120, 5, 0.5, 2),
}


def ends(name):
    K, y = CASES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = svm_path(K, y, lambda_min=LAMBDA_MIN if "stopped" in name else 0.0)
    residual = max(path.kkt_residual(lam) for lam in path.breakpoints[:: 1 + len(path.breakpoints) // 100])
    return {"breakpoints": path.breakpoints.tolist(), "end": path.lambda_end, "residual": residual}


def two_classes(n, p, seed, **kernel):
    rng = np.random.default_rng(seed)
    scores = rng.random(n) < 0.5
    pairs, y = Pairs.from_scores(rng.standard_normal((n, p)) + scores[:, None], scores)
    return pairs, y, kernel


def levels(n, p, seed, **kernel):
    """Items on a grid of integers, and scores of few levels: events at one lambda, dependent differences."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, p)).astype(float)
    pairs, y = Pairs.from_scores(X, rng.integers(0, 4, n))
    return pairs, y, kernel


RANKINGS = {
    "two classes": lambda: two_classes(200, 8, 0, kernel="rbf", gamma=0.125),
    "two classes, narrow": lambda: two_classes(60, 5, 1, kernel="rbf", gamma=5.0),
    "two classes, linear": lambda: two_classes(200, 20, 2, kernel="linear"),
    "levels": lambda: levels(80, 3, 3, kernel="rbf", gamma=0.5),
    "levels, linear": lambda: levels(80, 3, 4, kernel="linear"),
}


def ranking_ends(name):
    pairs, y, kernel = RANKINGS[name]()
    first = ranksvm_path(pairs, y, max_events=1, **kernel).breakpoints[0]
    path = ranksvm_path(pairs, y, lambda_min=first / 1e4, **kernel)
    residual = max(path.kkt_residual(lam) for lam in path.breakpoints[:: 1 + len(path.breakpoints) // 100])
    return {"breakpoints": path.breakpoints.tolist(), "end": path.lambda_end, "residual": residual}


@pytest.fixture(scope="module")
def runs():
    """The paths of all cases with one and with two threads."""
    running = [
        subprocess.Popen(
            [sys.executable, __file__],
            env=os.environ | {f"{library}_NUM_THREADS": threads for library in LIBRARIES},
            cwd=Path(__file__).parent,
            stdout=subprocess.PIPE,
            text=True,
        )
        for threads in ("1", "2")
    ]
    answers = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    return [json.loads(answer) for answer in answers]


@pytest.mark.parametrize("name", [*CASES, *RANKINGS])
def test_the_number_of_threads_changes_nothing(runs, name):
    one, two = (run[name] for run in runs)
    assert len(one["breakpoints"]) == len(two["breakpoints"]) > 0
    # Far down, weights hang on the last digits of the kernel, and so do breakpoints there.
    np.testing.assert_allclose(two["breakpoints"], one["breakpoints"], rtol=1e-5)
    assert two["end"] == pytest.approx(one["end"], rel=1e-5)
    assert max(one["residual"], two["residual"]) < 1e-8


if __name__ == "__main__":
    print(json.dumps({name: ends(name) for name in CASES} | {name: ranking_ends(name) for name in RANKINGS}))

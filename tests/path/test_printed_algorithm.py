"""Algorithm 1 of Zapien et al. exactly as printed, on 300 small problems: where it is right, and why not."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels
from small_problems import COUNT, small_problem

from preflearn.path import ranksvm_path

TIE = 1e-9  # two values of lambda closer than this, relatively, are one
END = 1e-3  # of the first breakpoint


def gram(seed):
    """P K P' of a small problem, with P = diag(y) B."""
    pairs, y, kernel = small_problem(seed)
    options = {key: value for key, value in kernel.items() if key != "kernel"}
    K = pairwise_kernels(pairs.items, metric=kernel["kernel"], **options)
    P = y[:, None] * pairs.incidence().toarray()
    return P @ K @ P.T


def algorithm_1(Q):
    """The start of 5.1, eq. 12 to 17 with the largest lambda_i < lambda^t, the restart of 5.3.

    Yields lambda, alpha, what is done there, and how many pairs it concerns; raises LinAlgError where the
    matrix of eq. 11 is singular.
    """
    first = Q.sum(axis=1)
    lam = first.max()
    alpha, on = np.ones(len(Q)), first >= lam * (1 - TIE)
    inside, last = ~on, END * lam
    yield lam, alpha, "start", on.sum()
    while lam > last:
        if on.any():
            matrix = Q[np.ix_(on, on)]
            if np.linalg.cond(matrix) > 1e10:
                raise np.linalg.LinAlgError
            eta = np.zeros(len(Q))
            eta[on] = np.linalg.solve(matrix, np.ones(on.sum()))
            z, h = Q @ alpha / lam, Q @ eta
            with np.errstate(divide="ignore", invalid="ignore"):
                times = np.array([lam + (1 - alpha) / eta, lam - alpha / eta, lam * (z - h) / (1 - h)])
            times = np.where([on, on, ~on], times, 0)
            times = np.where(times < lam * (1 - TIE), times, 0)
            step = lam - max(last, times.max())
            lam, alpha = lam - step, alpha - step * eta
            to_1, to_0, enter = times >= lam * (1 - TIE)
            alpha[to_1], alpha[to_0] = 1, 0
            on, inside = (on | enter) & ~(to_1 | to_0), (inside | to_1) & ~enter
            yield lam, alpha, "event", np.sum(to_1 | to_0 | enter)
        else:
            values = np.where(inside, Q @ inside, 0)
            lam = max(last, values.max())
            on = inside & (values >= lam * (1 - TIE))
            inside = inside & ~on
            yield lam, alpha, "restart", on.sum()


def kkt(Q, alpha, lam):
    return np.abs(alpha - np.clip(alpha + 1 - Q @ alpha / lam, 0, 1)).max()


def run(Q):
    """The knots, where and how it goes wrong ("right" if it does not), and the most pairs moved at once."""
    if Q.sum(axis=1).max() < 1e-12:
        return [], "right", "", 0
    knots, how = [], "right"
    try:
        for knot in algorithm_1(Q):
            knots.append(knot)
            assert len(knots) < 5000
    except np.linalg.LinAlgError:
        how = "singular"
    most = max(count for *_, count in knots)
    for here, below in pairwise(knots):
        lam, alpha = ((a + b) / 2 for a, b in zip(here[:2], below[:2], strict=True))
        if max(kkt(Q, alpha, lam), kkt(Q, below[1], below[0])) > 1e-6:
            return knots, "wrong", here[2], most
    return knots, how, knots[-1][2] if how == "singular" else "", most


@pytest.fixture(scope="module")
def runs():
    return [run(gram(seed)) for seed in range(COUNT)]


def test_it_is_right_where_pairs_come_and_go_alone(runs):
    alone = [how for _, how, _, most in runs if most <= 1]
    assert len(alone) > 90
    assert set(alone) == {"right"}


def test_it_is_wrong_on_many_degenerate_problems(runs):
    counts = Counter(how for _, how, _, _ in runs)
    assert 130 < counts["right"] < 190
    assert counts["singular"] > 100
    assert {where for _, how, where, _ in runs if how != "right"} == {"start", "event", "restart"}


def test_where_it_is_right_its_breakpoints_pass_the_conditions(runs):
    worst = [
        kkt(gram(seed), alpha, lam)
        for seed, (knots, how, _, _) in enumerate(runs)
        if how == "right"
        for lam, alpha, *_ in knots
    ]
    assert max(worst) < 1e-6  # events within rounding of each other count as one


def test_private_features_take_the_faults_away(runs):
    """The cause is the coincidences and dependences: without them it is right on each problem."""
    rng = np.random.default_rng(0)
    for seed in range(COUNT):
        Q = gram(seed)
        own = rng.uniform(0.5, 1.5, len(Q)) * (0.01 * np.abs(Q).max() or 1.0)
        assert run(Q + np.diag(own))[1] == "right", seed


def test_the_package_is_right_where_it_is_not(runs):
    for seed, (_, how, _, _) in enumerate(runs):
        if how == "right":
            continue
        pairs, y, kernel = small_problem(seed)
        path = ranksvm_path(pairs, y, **kernel)
        last = max(path.lambda_end, END * path.breakpoints[0])
        for lam in path.breakpoints[path.breakpoints >= last]:
            assert path.kkt_residual(lam) < 1e-7, seed


def test_all_that_maximise_the_start_need_not_enter():
    """Three pairs: two maximise lambda_0 = 2; with both on the margin a weight grows above 1."""
    D = np.array([[1.0, 2.0], [1.0, 1.0], [0.0, -3.0]])
    Q = D @ D.T
    assert Q.sum(axis=1).tolist() == [2.0, 2.0, 0.0]
    knots, how, where, _ = run(Q)
    assert (how, where) == ("wrong", "start")
    assert knots[1][1].max() > 1.2

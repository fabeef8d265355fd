"""Players on several workers: the fixed point is that of one process, and only crossing
matches are sent."""

from importlib import import_module

import numpy as np
import pytest
from clusters import local_cluster
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Logit,
    Matern12,
    OrdinalProbit,
    Probit,
)
from preflearn.matches import Matches
from preflearn.pairs import Incidence
from preflearn_book.studies.ch14_shards import Shard, fit_shards

OWNER = np.repeat([0, 1], 5)


def season(n=120, crossing=0.2, seed=0):
    """Return matches of ten players in two divisions; in some matches the divisions
    meet."""
    rng = np.random.default_rng(seed)
    first = rng.integers(10, size=n)
    second = first // 5 * 5 + (first + rng.integers(1, 5, n)) % 5
    cross = rng.random(n) < crossing
    second[cross] = (1 - first // 5)[cross] * 5 + rng.integers(5, size=cross.sum())
    names = [f"p{k}" for k in range(10)]
    matches = Matches(
        Incidence(np.column_stack([first, second]), 10).matrix(),
        np.sort(rng.random(n)),
        names,
    )
    return matches, rng.choice([-1, 1], n), int(cross.sum())


def scores_of_one_process(model, matches, y):
    one = clone(model).set_params(tol=1e-12, max_iter=2000).fit(matches, y)
    now = [one.scores(name, matches.time[-1]) for name in matches.features]
    return np.array(now).reshape(-1, 2)


def season_of_line_ups(n=120, seed=1):
    """Return matches of two against two among ten players; each side may have
    players of both divisions."""
    rng = np.random.default_rng(seed)
    design = np.zeros((n, 10))
    for row in design:
        row[rng.permutation(10)[:4]] = [1, 1, -1, -1]
    return Matches(
        design, np.sort(rng.random(n)), [f"p{k}" for k in range(10)]
    ), rng.choice([-1, 1], n)


def exchange(model, matches, y, owner, every, turns, rate=1.0):
    """Exchange moments between shards in this process; return scores, residual and the
    last messages."""
    rows = [
        np.flatnonzero(abs(matches.design) @ (owner == me)) for me in np.unique(owner)
    ]
    shards = [Shard(model, matches[r], y[r], owner, me) for me, r in enumerate(rows)]
    for _ in range(turns):
        post = {
            (a, b): shards[a].outbox(b)
            for a in range(len(shards))
            for b in range(len(shards))
            if a != b
        }
        for me, shard in enumerate(shards):
            inbox = {a: sent for (a, b), sent in post.items() if b == me}
            residual = shard.turn(inbox, every, rate)
    found = {
        name: score
        for shard in shards
        for name, score in shard.scores(matches.time[-1]).items()
    }
    return np.array([found[name] for name in matches.features]), residual, post


MODELS = {
    "ep": DynamicComparisons(Constant(1.0) + Matern12(1.0, 0.3), Probit()),
    "kl": DynamicComparisons(Matern12(0.5, 0.3), Logit(), method="kl"),
    "two covariances": DynamicComparisons(
        {"p3": Constant(2.0), "*": Matern12(0.5, 1.0)}, OrdinalProbit(margin=0.2)
    ),
}


@pytest.mark.parametrize(
    ("model", "every"), [("ep", 1), ("ep", 3), ("kl", 3), ("two covariances", 1)]
)
def test_shards_find_the_fixed_point_of_one_process(model, every):
    matches, y, crossing = season()
    expected = scores_of_one_process(MODELS[model], matches, y)
    found, residual, messages = exchange(MODELS[model], matches, y, OWNER, every, 400)
    assert residual < 1e-9
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    assert {side.shape for side in messages.values()} == {(crossing, 2)}
    isolated, _, _ = exchange(MODELS[model], matches, y, OWNER, 100, 1)
    assert np.abs(isolated - expected).max() > 1e-3  # the messages matter


@pytest.mark.parametrize(("model", "every"), [("ep", 1), ("kl", 3)])
def test_shards_with_line_ups_of_both_divisions_and_smaller_steps_find_the_same_fixed_point(
    model, every
):
    matches, y = season_of_line_ups()
    expected = scores_of_one_process(MODELS[model], matches, y)
    found, residual, _ = exchange(
        MODELS[model], matches, y, OWNER, every, 400, rate=0.5
    )
    assert residual < 1e-8
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:2 groups never meet")
def test_a_shard_sends_nothing_to_one_that_it_never_meets():
    matches, y, _ = season(crossing=0.0)
    owner = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 2])
    found, _, messages = exchange(MODELS["ep"], matches, y, owner, 1, 400)
    np.testing.assert_allclose(
        found, scores_of_one_process(MODELS["ep"], matches, y), rtol=0, atol=1e-8
    )
    assert [len(messages[pair]) for pair in ((0, 2), (1, 2), (2, 0))] == [0, 0, 0]
    assert len(messages[0, 1]) == len(messages[1, 0]) > 0


@pytest.mark.nightly
def test_two_processes_of_a_cluster_agree_with_one():
    matches, y, crossing = season(60)
    with local_cluster(n_workers=2) as cluster, cluster.get_client() as client:
        precise = clone(MODELS["ep"]).set_params(tol=1e-10, rate=1.0)
        found = fit_shards(client, precise, matches, y, OWNER, every=2)
        with pytest.warns(ConvergenceWarning, match="rate"):
            fit_shards(client, precise.set_params(max_iter=1), matches, y, OWNER)
        module = "preflearn_book.studies.ch14_shards"
        left = client.run(lambda: len(import_module(module)._PLACED))
    expected = scores_of_one_process(MODELS["ep"], matches, y)
    scores = [found.scores[name] for name in matches.features]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6)
    assert found.residuals[-1] <= 1e-10 < found.residuals[-2]
    assert found.crossing == 2 * crossing
    assert set(left.values()) == {0}

"""Two machines find what one finds; what they send is what the plan says."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import Constant, DynamicComparisons, Logit, Matern12, OrdinalProbit, Probit
from preflearn.matches import Matches
from preflearn.pairs import Incidence
from studies.ch14_shards import Shard, fit_shards

OWNER = np.repeat([0, 1], 5)


def season(n=120, crossing=0.2, seed=0):
    """Matches of ten players in two divisions; in some they meet the other division."""
    rng = np.random.default_rng(seed)
    first = rng.integers(10, size=n)
    second = first // 5 * 5 + (first + rng.integers(1, 5, n)) % 5
    cross = rng.random(n) < crossing
    second[cross] = (1 - first // 5)[cross] * 5 + rng.integers(5, size=cross.sum())
    names = [f"p{k}" for k in range(10)]
    matches = Matches(Incidence(np.column_stack([first, second]), 10).matrix(), np.sort(rng.random(n)), names)
    return matches, rng.choice([-1, 1], n), int(cross.sum())


def fitted(model, matches, y):
    one = model.set_params(tol=1e-12, max_iter=2000).fit(matches, y)
    now = [one.scores(name, matches.time[-1]) for name in matches.features]
    return np.array(now).reshape(-1, 2)


def by_hand(model, matches, y, owner, every, turns):
    """The exchange, without Dask."""
    rows = [np.flatnonzero(abs(matches.design) @ (owner == me)) for me in np.unique(owner)]
    shards = [Shard(model, matches[r], y[r], owner, me) for me, r in enumerate(rows)]
    for _ in range(turns):
        post = {(a, b): shards[a].outbox(b) for a in range(len(shards)) for b in range(len(shards)) if a != b}
        for me, shard in enumerate(shards):
            residual = shard.turn({a: sent for (a, b), sent in post.items() if b == me}, every)
    found = {name: told for shard in shards for name, told in shard.scores(matches.time[-1]).items()}
    return np.array([found[name] for name in matches.features]), residual, post


MODELS = [
    DynamicComparisons(Constant(1.0) + Matern12(1.0, 0.3), Probit()),
    DynamicComparisons(Matern12(0.5, 0.3), Logit(), method="kl"),
    DynamicComparisons({"p3": Constant(2.0), "*": Matern12(0.5, 1.0)}, OrdinalProbit(margin=0.2)),
]


@pytest.mark.parametrize("model", MODELS, ids=["ep", "kl", "two covariances"])
@pytest.mark.parametrize("every", [1, 3])
def test_shards_find_the_fixed_point_of_one_machine(model, every):
    matches, y, crossing = season()
    found, residual, post = by_hand(model, matches, y, OWNER, every, 400)
    assert residual < 1e-9
    np.testing.assert_allclose(found, fitted(model, matches, y), rtol=0, atol=1e-8)
    assert {side.shape for side in post.values()} == {(crossing, 2)}


@pytest.mark.filterwarnings("ignore:2 groups never meet")
def test_three_shards_with_one_that_knows_nobody_of_another():
    matches, y, _ = season(crossing=0.0)
    owner = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 2])
    found, _, post = by_hand(MODELS[0], matches, y, owner, 1, 400)
    np.testing.assert_allclose(found, fitted(MODELS[0], matches, y), rtol=0, atol=1e-8)
    assert [len(post[pair]) for pair in ((0, 2), (1, 2), (2, 0))] == [0, 0, 0]
    assert len(post[0, 1]) == len(post[1, 0]) > 0


def test_a_line_up_of_two_machines_crosses_by_each_of_its_players():
    rng = np.random.default_rng(3)
    design = np.zeros((40, 10))
    for row in design:
        row[rng.permutation(10)[:4]] = [1, 1, -1, -1]
    matches, y = Matches(design, np.arange(40.0), [f"p{k}" for k in range(10)]), rng.choice([-1, 1], 40)
    model = DynamicComparisons(Matern12(0.1, 9.0), Probit())
    found, _, post = by_hand(model, matches, y, OWNER, 1, 400)
    np.testing.assert_allclose(found, fitted(model, matches, y), rtol=0, atol=1e-8)
    mixed = (design[:, :5] != 0).any(axis=1) & (design[:, 5:] != 0).any(axis=1)
    assert [len(post[0, 1]), len(post[1, 0])] == [
        (design[mixed][:, s] != 0).sum() for s in (slice(5), slice(5, 10))
    ]


def test_without_messages_it_is_another_answer():
    """What crosses matters: two machines that keep the first moments end elsewhere."""
    matches, y, _ = season()
    model = MODELS[0]
    once, _, _ = by_hand(model, matches, y, OWNER, 100, 1)
    assert np.abs(once - fitted(model, matches, y)).max() > 1e-3


def test_two_processes_of_a_cluster_agree_with_one():
    distributed = pytest.importorskip("distributed")
    matches, y, crossing = season(60)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        with pytest.raises(ValueError, match="the number of workers is 2; expected at least 3"):
            fit_shards(client, MODELS[0], matches, y, np.arange(10) % 3)
        found = fit_shards(client, MODELS[0], matches, y, OWNER, every=2)
        games, won = Matches([[1, -1]] * 10, [0.0] * 10, ["a", "b"]), np.ones(10)
        with pytest.warns(
            ConvergenceWarning, match=r"the residual is 0\.\d+ after 50 turns; expected at most"
        ):
            fit_shards(client, MODELS[0], games, won, [0, 1], max_turns=50)
        slower = fit_shards(client, MODELS[0], games, won, [0, 1], rate=0.5)  # as the warning says
        left = client.run(lambda: len(__import__("studies.ch14_shards").ch14_shards._PLACED))
    one = fitted(MODELS[0], matches, y)
    np.testing.assert_allclose([found.scores[name] for name in matches.features], one, rtol=0, atol=1e-6)
    assert found.residuals[-1] <= 1e-10 < found.residuals[-2]
    assert found.crossing == 2 * crossing
    assert set(left.values()) == {0}
    np.testing.assert_allclose(
        [slower.scores[name] for name in "ab"], fitted(MODELS[0], games, won), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("owner", [[0, 2], [-1, 0], [0.0, 1.0], [0], [[0, 1]]])
def test_each_machine_needs_a_player(owner):
    with pytest.raises(ValueError, match=r"owner is .*; expected of each feature its machine, 0, 1"):
        fit_shards(None, MODELS[0], Matches([[1, -1]], [0.0], ["a", "b"]), [1], owner)


def test_a_machine_of_idle_players_is_none():
    matches = Matches([[1, -1, 0]], [0.0], ["a", "b", "idle"])
    with pytest.raises(ValueError, match="a player with matches on each"):
        fit_shards(None, MODELS[0], matches, [1], [0, 1, 2])
    with pytest.raises(ValueError, match="rate is 0; expected a number above 0, up to 1"):
        fit_shards(None, MODELS[0], matches, [1], [0, 1, 1], rate=0)

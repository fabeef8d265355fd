"""Each search gives the same numbers, bit for bit, in one process, in two processes,
and on a Dask cluster."""

import os
import re
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from distributed import Client, LocalCluster
from joblib import parallel_config

from preflearn.analogy import AnKerRank
from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Logit,
    Matern12,
    Probit,
    discover_covariance,
    one_step_ahead,
    random_search,
)
from preflearn.matches import Matches
from preflearn.pairs import Pairs
from preflearn.path import ItemFolds, cross_validated_path
from preflearn.ranking import Davidson, bootstrap
from preflearn.ratings import Elo
from preflearn.solvers.search import Range, evaluate_candidates, sample_candidates
from preflearn_book.studies.ch14_ratings import select_rating

pytestmark = pytest.mark.nightly

rng = np.random.default_rng(0)
ITEMS = rng.normal(size=(24, 2))
SCORES = ITEMS @ [1.0, 2.0] + rng.normal(size=24)
PAIRS, Y = Pairs.from_scores(ITEMS, SCORES)
FEATURES = rng.uniform(size=(14, 2))
TARGET = FEATURES @ [1.0, 2.0] + 0.3 * rng.normal(size=14)
GAMES = Matches(
    np.tile([[1, -1, 0], [0, 1, -1], [1, 0, -1]], (10, 1)),
    range(30),
    ["Ann", "Bob", "Cid"],
)
WON = np.where(rng.random(30) < 0.7, 1, -1)
MODEL = DynamicComparisons(Constant(1.0), Probit())


def models_ahead(n_jobs=None):
    def ahead(at):
        """Return the log loss of a model for forecasts one step ahead."""
        chances = one_step_ahead(
            DynamicComparisons(Matern12(**at), Probit()), GAMES, WON, 15
        ).probabilities
        return {
            "loss": -np.log(chances[np.arange(15), (WON[15:] > 0).astype(int)]).mean()
        }

    ranges = {"variance": Range(0.1, 10.0), "lengthscale": Range(1.0, 100.0)}
    return evaluate_candidates(
        ahead, sample_candidates(ranges, 6, random_state=0), n_jobs
    )["loss"]


def configurations(n_jobs=None):
    found = random_search(
        MODEL,
        GAMES,
        WON,
        {"Constant.variance": (0.01, 10)},
        6,
        random_state=0,
        n_jobs=n_jobs,
    )
    return found.configurations[["Constant.variance", "evidence"]]


def structures(n_jobs=None):
    found = discover_covariance(
        GAMES, WON, Probit(), bases=[Constant(), Matern12()], max_parts=1, n_jobs=n_jobs
    )
    return found.table["evidence"]


def refits(n_jobs=None):
    return bootstrap(
        Davidson(),
        [[0, 1]] * 6 + [[1, 2]] * 4,
        [1, 1, -1, 1, 0, 1] + [1, -1] * 2,
        n_jobs=n_jobs,
    )


def refits_by_judge(n_jobs=None):
    """Some bootstrap samples contain only ties."""
    judge = [1, 1, 2, 2, 2, 3]
    return bootstrap(
        Davidson(), [[0, 1]] * 6, [0, 0, 0, 1, 1, -1], judge, n_draws=30, n_jobs=n_jobs
    )


def paths(n_jobs=None):
    with parallel_config(n_jobs=n_jobs):
        found = cross_validated_path(
            PAIRS, Y, gammas=(0.1, 1.0), folds=ItemFolds(2), span=10
        )
    return [*found[:3], *found.curves[0].losses, *found.curves[1].losses]


def support_vectors(loss, n_jobs=None):
    found = AnKerRank(loss=loss, random_state=0, n_jobs=n_jobs).fit(FEATURES, TARGET)
    return np.concatenate([found.curve_.losses, found.dual_coef_])


def ratings(n_jobs=None):
    found = select_rating(
        Elo(likelihood=Logit()),
        GAMES,
        WON,
        {"rate": (0.01, 1.0)},
        6,
        random_state=0,
        n_jobs=n_jobs,
    )
    return found.configurations["loss"]


SEARCHES = [
    models_ahead,
    configurations,
    structures,
    refits,
    refits_by_judge,
    paths,
    ratings,
]
SEARCHES += [partial(support_vectors, "hinge"), partial(support_vectors, "squared")]


def name_of(search):
    return getattr(search, "__name__", None) or f"support_vectors {search.args[0]}"


@pytest.fixture(scope="module")
def cluster():
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": ":0",
    }
    # Dask sets environment variables for its processes.
    with (
        mock.patch.dict(os.environ),
        LocalCluster(scheduler_port=0, **options) as found,
        Client(found) as client,
    ):
        yield client


@pytest.mark.parametrize("search", SEARCHES, ids=name_of)
def test_one_process_two_and_a_cluster_find_the_same(search, cluster):
    one = np.array(search())
    two = np.array(search(n_jobs=2))
    assert len(np.unique(one)) > 1
    np.testing.assert_array_equal(one, two)
    before = transitions(cluster)
    with parallel_config(backend="dask", n_jobs=-1):
        np.testing.assert_array_equal(one, np.array(search()))
    assert transitions(cluster) > before  # otherwise nothing ran on the cluster


def transitions(client):
    """Return how often a task has changed its state on the scheduler."""
    return client.run_on_scheduler(
        lambda dask_scheduler: len(dask_scheduler.transition_log)
    )


def test_the_page_on_clusters_computes_what_it_says():
    """The first block of the page runs without changes. The other blocks need another
    cluster, and are valid Python."""
    page = (Path(__file__).parents[2] / "book" / "beyond_cluster.md").read_text("utf-8")
    first, *others = re.findall(
        r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL
    )
    names = {"__name__": "__main__"}
    with mock.patch.dict(os.environ):  # Dask sets variables for its processes
        exec(first, names)
    alone = bootstrap(Davidson(), names["pairs"], names["y"], n_draws=50)
    np.testing.assert_array_equal(names["coef"], alone)
    assert len(others) > 0
    for source in others:
        compile(source, "beyond_cluster.md", "exec")

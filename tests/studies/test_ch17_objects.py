"""The arena of object ranking: its tasks, splits without leaks, its judge, and its rows."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from preflearn import datasets
from studies.ch17_objects import LEARNERS, TRANSFERS, judge, problem, split, tasks
from studies.ch17_protocol import CONSTANT, entries

needs_data = pytest.mark.skipif(not datasets.available("object_ranking"), reason="no data")


def test_tasks_are_the_rows_of_table_2_that_have_public_data():
    printed = pd.read_csv(Path(__file__).parents[2] / "data/published/P5_tables.csv", comment="#")
    printed = printed[(printed["kind"] == "row") & ~printed[["train", "test"]].eq("B3").any(axis=1)]
    assert set(TRANSFERS) == set(zip(printed["train"], printed["test"], strict=True))
    assert len(TRANSFERS) == 27
    full = tasks("full")
    assert len(set(full)) == len(full)
    assert set(tasks("quick")) < set(full)
    assert {name.split("/")[1] for name in full} == {f"{a}-{b}" for a, b in TRANSFERS}


def test_the_loss_is_the_share_of_wrong_pairs_and_a_tie_is_half_a_wrong_one():
    rng = np.random.default_rng(1)
    truth, scores = rng.integers(1, 9, 12), rng.integers(0, 5, 12).astype(float)
    wrong = [
        0.5 if scores[i] == scores[j] else float((truth[i] < truth[j]) == (scores[i] < scores[j]))
        for i, j in combinations(range(12), 2)
        if truth[i] != truth[j]
    ]
    assert np.isclose(judge(truth, scores)["loss"], np.mean(wrong))
    assert np.isclose(judge(truth, scores)["loss"] + judge(truth, -scores)["loss"], 1)
    assert judge(truth, 0 * scores)["loss"] == 0.5
    assert judge([1, 2], np.array([0.3, 0.1 + 0.2]))["loss"] == 0.5  # rounding orders nothing
    assert judge([1, 2, 3], np.array([1.0, 0.3, 0.1 + 0.2]))["loss"] == 0.5 / 3


def test_a_query_is_normalised_without_its_ranks_and_by_itself_where_it_is_another_domain():
    X, rank = np.arange(20.0)[:, None], np.arange(20.0)
    near, far = (split(X, rank, X[::-1] + move, truth, 0) for move, truth in ((1, rank), (1000, -rank)))
    assert (near.train.X.max(), near.test.max()) == (19 / 20, 1)  # together
    assert far.train.X.max() == far.test.max() == 1  # apart
    assert np.array_equal(near.test, split(X, rank, X[::-1] + 1, -rank, 0).test)


@needs_data
def test_folds_hold_items_to_learn_from_only_each_on_one_side():
    found = problem("volleyball/V1-V2")
    ranks = sorted(-found.whole.train.y)
    for fold in found.folds:
        assert sorted([*-fold.train.y, *fold.truth]) == ranks  # of a volleyball group all differ
        assert len(fold.test) == len(fold.truth) == 4
    assert len(found.folds) == 9


@needs_data
def test_a_second_run_has_the_same_rows_and_the_constant_loses_one_half():
    names = CONSTANT, "random", "boosted trees", "RankNet", "AnKer-rank"
    few = [one for one in LEARNERS if one.name in names]
    first, second = (entries(problem("volleyball/V1-V2"), few) for _ in range(2))
    measured = ["fit_s", "forecast_s", "fit_mb", "forecast_mb"]
    pd.testing.assert_frame_equal(first.drop(columns=measured), second.drop(columns=measured))
    assert first.set_index("learner").loc[CONSTANT, "loss"] == 0.5
    assert (first["fitted"] == 1).all()
    assert (first["passed"] == 0).all()

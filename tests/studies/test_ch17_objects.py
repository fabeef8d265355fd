"""Object ranking in chapter 17: its tasks, splits without leaks, and its judge."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from preflearn import datasets
from preflearn_book.studies.ch17_objects import TRANSFERS, judge, problem, split


def test_tasks_are_the_rows_of_table_2_that_have_public_data():
    table = pd.read_csv(
        Path(__file__).parents[2] / "data/published/P5_tables.csv", comment="#"
    )
    rows = table[
        (table["kind"] == "row") & ~table[["train", "test"]].eq("B3").any(axis=1)
    ]
    assert len(TRANSFERS) == 27
    assert set(TRANSFERS) == set(zip(rows["train"], rows["test"], strict=True))


def test_the_loss_is_the_share_of_wrong_pairs_and_a_tie_is_half_a_wrong_one():
    rng = np.random.default_rng(1)
    truth = rng.integers(1, 9, 12)
    scores = rng.integers(0, 5, 12).astype(float)
    wrong = [
        0.5
        if scores[i] == scores[j]
        else float((truth[i] < truth[j]) != (scores[i] < scores[j]))
        for i, j in combinations(range(12), 2)
        if truth[i] != truth[j]
    ]
    assert np.isclose(judge(truth, scores)["loss"], np.mean(wrong))
    # rounding orders nothing
    assert (
        judge(np.array([3, 2, 1]), np.array([1.0, 0.3, 0.1 + 0.2]))["loss"] == 0.5 / 3
    )


def test_test_items_are_scaled_without_their_ranks_and_alone_where_they_are_of_another_domain():
    X = np.arange(20.0)[:, None]
    y = np.arange(20.0)
    near, far = (split(X, y, X[::-1] + shift, y, 0) for shift in (1, 1000))
    assert (near.train.X.max(), near.test.max()) == (19 / 20, 1)  # together
    assert far.train.X.max() == far.test.max() == 1  # apart
    assert np.array_equal(near.test, split(X, y, X[::-1] + 1, -y, 0).test)


@pytest.mark.skipif(not datasets.available("object_ranking"), reason="no data")
def test_folds_hold_training_items_only_each_on_one_side():
    found = problem("volleyball/V1-V2")
    scores = sorted(found.whole.train.y)
    assert len(found.folds) == 9
    for fold in found.folds:
        # of a volleyball group all differ
        assert sorted([*fold.train.y, *fold.truth]) == scores
        assert len(fold.test) == len(fold.truth) == 4

"""Object ranking in chapter 17: its tasks, splits without leaks, and its judge."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from preflearn import datasets
from preflearn.datasets.object_ranking import OBJECT_RANKINGS
from preflearn_book.studies.ch17_objects import (
    GROUPS,
    SORT_KEYS,
    TRANSFERS,
    judge,
    problem,
    split,
    without_sort_keys,
)


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
    # scores that differ only by rounding count as tied
    assert (
        judge(np.array([3, 2, 1]), np.array([1.0, 0.3, 0.1 + 0.2]))["loss"] == 0.5 / 3
    )


def test_test_items_are_scaled_without_their_ranks_and_alone_where_they_are_of_another_domain():
    X = np.arange(20.0)[:, None]
    y = np.arange(20.0)
    near, far = (split(X, y, X[::-1] + shift, y, 0) for shift in (1, 1000))
    assert (near.train.X.max(), near.test.max()) == (19 / 20, 1)  # scaled together
    assert far.train.X.max() == far.test.max() == 1  # scaled separately
    assert np.array_equal(near.test, split(X, y, X[::-1] + 1, -y, 0).test)


needs_data = pytest.mark.skipif(
    not datasets.available("object_ranking"), reason="no data"
)


def n_wrong(y, x):
    """Return the number of pairs in the wrong order by a feature, or by its negative if
    this is smaller."""
    better = np.subtract.outer(y, y) > 0
    gaps = np.subtract.outer(x, x)[better]
    return min((gaps < 0).sum(), (gaps > 0).sum())


@needs_data
@pytest.mark.parametrize("group", SORT_KEYS)
def test_sort_keys_order_their_rankings_without_a_wrong_pair(group):
    for name in OBJECT_RANKINGS:
        if name[0] == group:
            data = datasets.load_object_ranking(name)
            better = np.subtract.outer(data.y, data.y) > 0
            for key in SORT_KEYS[group]:
                x = data.X[:, data.feature_names.index(key)]
                gaps = np.subtract.outer(x, x)
                assert (gaps[better] >= 0).all(), (name, key)
                better &= gaps == 0


@needs_data
@pytest.mark.parametrize("group", GROUPS)
def test_no_feature_that_is_left_sorts_all_rankings_of_its_group(group):
    wrong = {}
    for name in OBJECT_RANKINGS:
        if name[0] == group:
            data = without_sort_keys(name)
            for feature, x in zip(data.feature_names, data.X.T, strict=True):
                wrong[feature] = wrong.get(feature, 0) + n_wrong(data.y, x)
    assert min(wrong.values()) > 0


@needs_data
def test_folds_hold_training_items_only_each_on_one_side():
    found = problem("volleyball/V1-V2")
    scores = sorted(found.whole.train.y)
    assert len(found.folds) == 9
    for fold in found.folds:
        # in the volleyball group, all scores differ
        assert sorted([*fold.train.y, *fold.truth]) == scores
        assert len(fold.test) == len(fold.truth) == 4

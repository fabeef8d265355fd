"""The arena of ratings: blocks of users without leaks, its judge, its baselines, and users that are new."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflearn import datasets
from studies.ch17_protocol import CONSTANT, entries
from studies.ch17_ratings import LEARNERS, NEW, _users, halves, judge, new_user, problem, tasks, unseen

needs_data = pytest.mark.skipif(not datasets.available("jester"), reason="no data")
NAMED = {one.name: one for one in LEARNERS}


@given(st.lists(st.integers(1, 5), min_size=4, max_size=30), st.integers(0, 99))
def test_halves_part_the_items_and_both_have_an_order(ratings, seed):
    y = np.array([*ratings, 1, 5, 1, 5], dtype=float)
    (a, b), (c, d) = halves(y, seed)
    assert sorted([*a, *b]) == list(range(len(y)))
    assert abs(len(a) - len(b)) <= 1
    assert min(np.ptp(y[a]), np.ptp(y[b])) > 0
    assert (a.tolist(), b.tolist()) == (d.tolist(), c.tolist())


@pytest.mark.parametrize("ratings", [[3, 3, 3, 3, 5], [1, 2, 5], [4]])
def test_ratings_without_two_halves_that_have_an_order_are_refused(ratings):
    with pytest.raises(ValueError, match=r"^y is array\(\[.*\]\); expected scores that differ within both"):
        halves(np.array(ratings, dtype=float), 0)


def test_the_loss_is_the_mean_of_the_users_and_not_of_their_pairs():
    truth = [np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0, 3.0])]
    right, wrong, level = [truth[0], truth[1]], [-truth[0], truth[1]], [0 * truth[0], 0 * truth[1]]
    assert judge(truth, right) == {"loss": 0.0, "with_ties": 0.0}
    assert judge(truth, wrong)["loss"] == 0.5
    assert judge(truth, level)["loss"] == 0.5
    told_apart = [truth[0], np.array([1.0, 2.0, 3.0, 4.0])]
    assert judge(truth, told_apart)["with_ties"] == 1 / 12 / 2  # one tie of six


def test_popularity_and_worths_ask_the_references_alone():
    Q = np.array([[5.0, 4.0, 3.0], [1.0, 2.0, 3.0], [3.0, 3.0, 4.0]])
    for name in ("popularity", "Bradley-Terry"):
        learner = NAMED[name]
        (scores,) = learner.forecast(learner.fit([None]), [Q])
        assert np.argsort(-scores).tolist() == [0, 2, 1]


@needs_data
def test_a_block_holds_other_users_than_the_next_and_no_rating_to_test_is_learned_from():
    found, users = problem("jester 20-39/0"), _users("jester 20-39")
    assert len({one.user for one in users}) == len(users)
    assert not {one.user for one in users} & set(users[0].references)
    assert max(*(one.user for one in users), *users[0].references) < 2500
    ratings = datasets.load_jester().ratings
    for k, (train, y) in enumerate(zip(found.whole.train, found.whole.truth, strict=True)):
        assert np.array_equal(np.sort([*train.y, *y]), np.sort(ratings[[users[k].user]].data))
        for fold in found.folds:
            assert np.array_equal(np.sort([*fold.train[k].y, *fold.truth[k]]), np.sort(train.y))


@needs_data
def test_new_users_are_in_no_task():
    ratings = unseen()
    assert 99_900 <= ratings.nnz <= 100_000
    assert ratings.shape[1] == 100
    others = datasets.load_jester().ratings[2500 : 2500 + ratings.shape[0]]
    assert np.array_equal(ratings.toarray(), others.toarray())
    blocks = new_user()
    assert [one.domain for one in blocks] == [NEW] * 6
    assert not {one.domain for one in blocks} & {name.split("/")[0] for name in tasks("full")}
    first = [blocks[k].whole.train[0].y for k in range(6)]
    assert len({y.tobytes() for y in first}) == 6


@needs_data
def test_a_second_run_has_the_same_rows():
    assert set(tasks("quick")) < set(tasks("full"))
    few = [NAMED[name] for name in (CONSTANT, "random", "RankRLS", "popularity", "correlation weights")]
    first, second = (entries(problem("movielens 60-79/1"), few) for _ in range(2))
    measured = ["fit_s", "forecast_s", "fit_mb", "forecast_mb"]
    pd.testing.assert_frame_equal(first.drop(columns=measured), second.drop(columns=measured))
    assert first.set_index("learner").loc[CONSTANT, "loss"] == 0.5
    assert first["loss"].between(0.2, 0.7).all()

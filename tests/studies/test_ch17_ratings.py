"""Ratings in chapter 17: halves of a user's items, the judge, baselines, and groups of
users."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflearn import datasets
from preflearn_book.studies.ch17_learners import select_learners
from preflearn_book.studies.ch17_ratings import _users, halves, judge, problem


@given(st.lists(st.integers(1, 5), min_size=4, max_size=30), st.integers(0, 99))
def test_halves_part_the_items_and_each_has_different_ratings(ratings, seed):
    y = np.array([*ratings, 1, 5, 1, 5], dtype=float)
    (a, b), (c, d) = halves(y, seed)
    assert sorted([*a, *b]) == list(range(len(y)))
    assert abs(len(a) - len(b)) <= 1
    assert min(np.ptp(y[a]), np.ptp(y[b])) > 0
    assert (a.tolist(), b.tolist()) == (d.tolist(), c.tolist())


@pytest.mark.parametrize("ratings", [[3, 3, 3, 3, 5], [1, 2, 5], [4]])
def test_ratings_without_such_halves_are_an_error(ratings):
    with pytest.raises(ValueError, match="y"):
        halves(np.array(ratings, dtype=float), 0)


def test_the_loss_is_the_mean_over_users_and_not_over_their_pairs():
    truth = [np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0, 3.0])]
    assert judge(truth, truth) == {"loss": 0.0, "with_ties": 0.0}
    assert judge(truth, [-truth[0], truth[1]])["loss"] == 0.5
    assert judge(truth, [0 * truth[0], 0 * truth[1]])["loss"] == 0.5
    separated = [truth[0], np.array([1.0, 2.0, 3.0, 4.0])]
    # one tied pair of six, averaged over two users
    assert judge(truth, separated)["with_ties"] == 1 / 12 / 2


@pytest.mark.parametrize("name", ["popularity", "Bradley-Terry"])
def test_popularity_and_worths_use_the_reference_users_alone(name):
    (learner,) = select_learners("ratings", [name])
    Q = np.array([[5.0, 4.0, 3.0], [1.0, 2.0, 3.0], [3.0, 3.0, 4.0]])
    (scores,) = learner.fit([None])([Q])
    assert np.argsort(-scores).tolist() == [0, 2, 1]


@pytest.mark.skipif(not datasets.available("jester"), reason="no data")
def test_no_rating_of_the_test_is_in_the_training_data():
    found = problem("jester 20-39/0")
    users = _users("jester 20-39")
    assert not {user.user for user in users} & set(users[0].references)
    ratings = datasets.load_jester().ratings
    assert len(found.whole.train) > 0
    for k, (train, y) in enumerate(
        zip(found.whole.train, found.whole.truth, strict=True)
    ):
        assert np.array_equal(
            np.sort([*train.y, *y]), np.sort(ratings[[users[k].user]].data)
        )
        for fold in found.folds:
            assert np.array_equal(
                np.sort([*fold.train[k].y, *fold.truth[k]]), np.sort(train.y)
            )

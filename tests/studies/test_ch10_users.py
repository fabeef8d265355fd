"""Tasks of section 6.1 of P3: reference users, test users, features, and hidden
ratings."""

import numpy as np
import pytest
from scipy import sparse

from preflearn import datasets
from preflearn_book.studies.ch10_users import user_tasks


def table(rows, n_items):
    """Return ratings from one dict (item to rating) per user; a stored 0 is a rating."""
    users = [user for user, row in enumerate(rows) for _ in row]
    items = [item for row in rows for item in row]
    values = [value for row in rows for value in row.values()]
    return sparse.csr_array((values, (users, items)), shape=(len(rows), n_items))


@pytest.fixture
def small():
    """Users 0 to 2 have 3 ratings, user 3 has 4, and users 4 to 6 have 6. All
    ratings of user 6 are equal."""
    rows = [
        {0: 5, 1: -2, 2: 0},
        {1: 0, 2: 0, 3: 7},
        {3: 1, 4: 2, 5: 9},
        {0: 1, 1: 2, 2: 3, 3: 4},
        {0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6},
        {0: 9, 1: 0, 2: -9, 3: 8, 4: 1, 5: -1},
        dict.fromkeys(range(6), 3),
    ]
    return table(rows, 6)


def simulated_ratings(users=80, items=40):
    rng = np.random.default_rng(0)
    rated = rng.random((users, items)) < np.linspace(0.2, 1, users)[:, None]
    return sparse.csr_array(np.where(rated, rng.integers(1, 30, (users, items)), 0))


def test_features_are_ratings_of_references_and_medians(small):
    assert small.nnz == 31  # this includes three stored zeros
    tasks = user_tasks(small, (3, 4), 2, np.random.default_rng(0), least=5, most=6)
    assert sorted(task.user for task in tasks) == [4, 5]
    expected = np.array(
        [[5, 0, 2], [-2, 0, 2], [0, 0, 2], [0, 7, 1], [0, 0, 2], [0, 0, 9]]
    )
    for task in tasks:
        # user 3 with 4 ratings belongs to the next group
        assert task.references.tolist() == [0, 1, 2]
        assert task.counts[:3] == (3, 3, 3)
        own = small[[task.user]].toarray()[0]
        items = [
            np.flatnonzero(own == y)[0] for y in np.append(task.y_train, task.y_test)
        ]
        assert sorted(items) == list(range(6))
        assert len(task.y_train) == len(task.y_test) == 3
        np.testing.assert_array_equal(
            np.vstack([task.X_train, task.X_test]), expected[items]
        )
        assert task.X_hidden.shape == (0, 3)


def test_users_whose_ratings_are_all_equal_are_passed_over_and_counted(small):
    passed_over = set()
    for seed in range(20):
        tasks = user_tasks(
            small, (3, 4), 2, np.random.default_rng(seed), least=5, most=6
        )
        assert 6 not in {task.user for task in tasks}
        passed_over |= {task.counts.passed_over for task in tasks}
    # user 6 is drawn before the other two users, or not at all
    assert passed_over == {0, 1}


def test_references_are_drawn_once_and_are_not_tested():
    ratings = simulated_ratings()
    n_ratings = np.diff(ratings.indptr)
    tasks = user_tasks(
        ratings,
        (20, 30),
        25,
        np.random.default_rng(1),
        n_reference=7,
        least=15,
        most=38,
    )
    users = [task.user for task in tasks]
    references = tasks[0].references
    assert len(set(users)) == 25
    assert len(references) == 7
    assert all(task.references is references for task in tasks)
    assert not set(users) & set(references.tolist())
    assert ((n_ratings[references] >= 20) & (n_ratings[references] < 30)).all()
    assert ((n_ratings[users] >= 15) & (n_ratings[users] <= 38)).all()
    assert tasks[0].counts.group == np.sum((n_ratings >= 20) & (n_ratings < 30)) > 7
    assert (
        tasks[0].counts.candidates == np.sum((n_ratings >= 15) & (n_ratings <= 38)) - 7
    )
    for task in tasks:
        assert len(task.y_train) - len(task.y_test) in (0, 1)
        assert len(task.y_train) + len(task.y_test) == n_ratings[task.user]


def test_equal_seeds_give_equal_tasks_whatever_is_hidden():
    ratings = simulated_ratings()
    before = ratings.data.copy()
    whole, part = (
        user_tasks(
            ratings, (20, 30), 10, np.random.default_rng(5), least=15, hidden=hidden
        )
        for hidden in (0.0, 0.5)
    )
    for full, half in zip(whole, part, strict=True):
        assert full.user == half.user
        np.testing.assert_array_equal(full.X_test, half.X_test)
        np.testing.assert_array_equal(full.y_test, half.y_test)
        np.testing.assert_array_equal(
            full.X_train, np.vstack([half.X_train, half.X_hidden])
        )
        np.testing.assert_array_equal(
            full.y_train, np.append(half.y_train, half.y_hidden)
        )
        assert len(half.y_hidden) == len(full.y_train) // 2
    np.testing.assert_array_equal(ratings.data, before)


@pytest.mark.parametrize(
    ("name", "sizes"), [("jester", (350, 1191, 1681)), ("movielens", (289, 143, 86))]
)
def test_groups_of_users_have_the_sizes_counted_in_the_data(name, sizes):
    if not datasets.available(name):
        pytest.skip(f"{name} is not available")
    ratings = getattr(datasets, f"load_{name}")().ratings
    for low, size in zip((20, 40, 60), sizes, strict=True):
        task = user_tasks(ratings, (low, low + 20), 1, np.random.default_rng(0))[0]
        assert task.counts.group == size
        assert task.counts.references == min(size, 300) == task.X_test.shape[1]


def test_too_few_users_are_an_error(small):
    with pytest.raises(ValueError, match=r"n_tasks is 3.* 2"):
        user_tasks(small, (3, 4), 3, 0, least=5, most=6)

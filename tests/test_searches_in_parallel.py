"""A search gives the same numbers in one process and in two. tests/nightly tests all
searches, and a cluster."""

import numpy as np

from preflearn.ranking import Davidson, bootstrap


def test_a_search_in_two_processes_gives_the_numbers_of_one():
    pairs = [[0, 1]] * 6 + [[1, 2]] * 4
    y = [1, 1, -1, 1, 0, 1] + [1, -1] * 2
    one, two = (
        bootstrap(Davidson(), pairs, y, n_draws=20, n_jobs=n_jobs)
        for n_jobs in (None, 2)
    )
    assert len(np.unique(one)) > 1
    np.testing.assert_array_equal(one, two)

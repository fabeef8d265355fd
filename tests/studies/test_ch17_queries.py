"""Several queries in chapter 17: samples without common queries, folds by query, and
the judge compared with slow counts."""

from itertools import combinations

import numpy as np
import pytest

from preflearn import datasets
from preflearn_book.studies.ch17_queries import (
    SIZES,
    Queries,
    judge,
    make_problem,
    problem,
    tasks,
)


def numbered(n_queries):
    """Return queries of 3 to 6 documents. The only feature is the number of the
    document."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(n_queries), rng.integers(3, 7, n_queries))
    y = rng.integers(0, 5, len(qid)).astype(float)
    return Queries(np.arange(len(qid), dtype=float)[:, None], y, qid)


def test_units_of_a_domain_have_no_document_in_common_and_folds_split_queries():
    data = numbered(240)
    for domain, (n_train, n_test) in SIZES.items():
        seen = []
        for name in tasks("full"):
            if name.startswith(domain):
                found = make_problem(name, data)
                train, asked, (y, qid) = found.whole
                assert len(np.unique(train.qid)) == n_train
                assert len(np.unique(qid)) == n_test
                rows = np.append(train.X, asked).astype(int)
                seen += rows.tolist()
                np.testing.assert_array_equal(data.y[rows], np.append(train.y, y))
                tested = np.concatenate([fold.test.ravel() for fold in found.folds])
                np.testing.assert_array_equal(np.sort(tested), train.X.ravel())
                for fold in found.folds:
                    of_train = set(data.qid[fold.train.X.ravel().astype(int)])
                    of_test = set(data.qid[fold.test.ravel().astype(int)])
                    assert not of_train & of_test
        assert len(seen) == len(set(seen))


def test_the_loss_is_the_mean_over_queries_and_the_gain_counts_the_first_ten():
    rng = np.random.default_rng(2)
    qid = np.repeat([0, 1, 2], [12, 4, 3])
    y = rng.integers(0, 4, 19).astype(float)
    y[16:] = 2.0  # the query has no pairs with different grades, so it does not count
    scores = rng.normal(size=19)
    losses = []
    gains = []
    for query in (0, 1):
        truth = y[qid == query]
        forecast = scores[qid == query]
        wrong = [
            (truth[i] < truth[j]) != (forecast[i] < forecast[j])
            for i, j in combinations(range(len(truth)), 2)
            if truth[i] != truth[j]
        ]
        losses.append(np.mean(wrong))
        discounts = 1 / np.log2(np.arange(2, 12))

        def gain(order, truth=truth, discounts=discounts):
            top = 2 ** truth[order][:10] - 1
            return top @ discounts[: len(top)]

        gains.append(gain(np.argsort(-forecast)) / gain(np.argsort(-truth)))
    found = judge((y, qid), scores)
    assert found["loss"] == pytest.approx(np.mean(losses))
    assert found["ndcg"] == pytest.approx(np.mean(gains))


@pytest.mark.skipif(not datasets.available("lightgbm_ranking"), reason="no data")
def test_all_tasks_have_enough_queries():
    for name in tasks("full"):
        found = problem(name)
        assert found.domain in SIZES
        assert len(np.unique(found.whole.truth[1])) == SIZES[found.domain][1]

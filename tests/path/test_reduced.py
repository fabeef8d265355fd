"""The reduced graph of [Zapien2009]_ for each query. The tests of chapter 09 have its
consequences."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from preflearn.path import reduced_graph


@st.composite
def scored(draw):
    """Return scores of few levels and query ids. At least one query has two levels."""
    n = draw(st.integers(2, 9))
    scores = draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n))
    qid = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    if len({(q, s) for q, s in zip(qid, scores, strict=True)}) == len(set(qid)):
        scores[0] = 0
        scores[1] = 1
        qid[0] = 0
        qid[1] = 0
    return scores, qid


def spelled_out(scores, qid):
    """Return the reduced graph by the sentence of the paper, one query and level after
    the other."""
    pairs = []
    for query in sorted(set(qid)):
        levels = sorted({s for s, q in zip(scores, qid, strict=True) if q == query})
        members = [
            [i for i, s in enumerate(scores) if s == level and qid[i] == query]
            for level in levels
        ]
        for place, level in enumerate(members):
            if place < len(members) - 1:
                pairs += [(level[0], other) for other in level[1:]]
            if place > 0:
                pairs += [(item, members[place - 1][0]) for item in level]
    return pairs


@given(scored())
@example(([0, 1, 1, 2], [0, 0, 0, 0]))
def test_it_is_what_the_paper_says(problem):
    scores, qid = problem
    index = reduced_graph(scores, qid)
    assert Counter(map(tuple, index.tolist())) == Counter(spelled_out(scores, qid))
    assert index.dtype == np.int64


def test_ids_and_scores_of_any_kind():
    scores = [0.5, -np.pi, 0.5, 7, 0.0, -0.0]
    qid = ["b", "b", "b", "a", "a", "a"]
    expected = {(4, 5), (3, 4), (0, 1), (2, 1)}
    assert set(map(tuple, reduced_graph(scores, qid).tolist())) == expected
    assert (
        set(map(tuple, reduced_graph(np.exp(scores), np.array(qid)).tolist()))
        == expected
    )
    assert reduced_graph([True, False]).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("scores", "qid", "message"),
    [
        ([1, np.nan], None, r"scores\[1\]"),
        ([1, 2], [0], r"qid.*\(1,\)"),
        ([1, 2], ["a", "b"], "2 items.*different scores"),
        ([], None, "scores"),
    ],
)
def test_bad_input_is_named(scores, qid, message):
    with pytest.raises(ValueError, match=message):
        reduced_graph(scores, qid)

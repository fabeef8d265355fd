"""The effect of being listed first."""

import numpy as np
import pytest

from preflearn_book.order_effect import OrderEffect, order_effect


def judgements(effect, n_rounds=12):
    """Return all pairs of eight items in one order, in which better items are mostly
    first."""
    rng = np.random.default_rng(3)
    scores = np.linspace(1.75, -1.75, 8)
    index = np.array([(a, b) for a in range(8) for b in range(a + 1, 8)] * n_rounds)
    lead = scores[index[:, 0]] - scores[index[:, 1]] + effect
    return index, np.where(lead + rng.logistic(size=len(index)) > 0, 1, -1), rng


def test_better_items_that_are_listed_first_make_no_order_effect():
    index, y, rng = judgements(0.0)
    found = order_effect(index, y)
    assert found.one_order
    assert not found.matters("auto")
    turned = rng.random(len(y)) < 0.5
    index[turned] = index[turned, ::-1]
    shuffled = order_effect(index, np.where(turned, -y, y))
    assert not shuffled.one_order
    assert not shuffled.matters("auto")
    assert shuffled.half_width < found.half_width


@pytest.mark.parametrize("clustered", [False, True])
def test_an_order_effect_is_estimated_next_to_scores(clustered):
    rng = np.random.default_rng(4)
    index = np.array([rng.choice(6, 2, replace=False) for _ in range(3000)])
    amount = (rng.random(3000) < 0.7).astype(int)
    lead = 0.5 * (index[:, 0] - index[:, 1]) + 0.6 * amount + rng.logistic(size=3000)
    cluster = rng.integers(30, size=3000) if clustered else None
    found = order_effect(index, np.where(lead > 0, 1, -1), amount, cluster)
    assert abs(found.estimate - 0.6) < 1.6 * found.half_width
    assert found.matters("auto")
    assert not found.matters("no")
    with pytest.raises(ValueError, match="advantage"):
        found.matters("maybe")


def test_repeated_answers_of_a_judge_make_the_interval_wider():
    """Each judge gives one answer nine times."""
    index, y, rng = judgements(0.5, n_rounds=6)
    turned = rng.random(len(y)) < 0.5
    index[turned] = index[turned, ::-1]
    judge = np.repeat(np.arange(len(y)), 9)
    many = np.repeat(index, 9, axis=0), np.repeat(y, 9)
    alone = order_effect(*many).half_width
    assert order_effect(*many, cluster=judge).half_width > 2 * alone


@pytest.mark.parametrize(("n_cycles", "identified"), [(1, False), (21, True)])
def test_an_effect_that_only_one_cycle_shows_is_not_included(n_cycles, identified):
    """Three items that beat each other in a cycle fit any order effect."""
    n = {1: 3, 21: 8}[n_cycles]
    index = np.array([(a, b) for a in range(n) for b in range(a + 1, n)] * 12)
    y = np.ones(len(index), dtype=int)
    y[(index[:, 1] - index[:, 0]) == 1] = -1
    found = order_effect(index, y)
    assert found.one_order
    assert found.identified == identified
    if not identified:
        assert not found.matters("auto")
        assert found.matters("yes")


def test_an_interval_that_ends_near_50_percent_decides_barely():
    effect = OrderEffect(0.5, 0.49, one_order=False)
    assert "50.2" in effect.percentages()
    text = effect.verdict("auto", "the models", "include it", "leave it out")
    assert "barely excludes 50 %, so the models include it" in text
    assert "with `-p advantage no`, the models leave it out" in text
    effect = OrderEffect(0.5, 0.2, one_order=False)
    assert "barely" not in effect.verdict("auto", "the models", "include it", "do not")

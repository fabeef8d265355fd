"""Simulated worlds: what moves, what stays, and who knows items by number."""

import numpy as np
import pandas as pd
import pytest

from preflearn.pairs import Pairs
from preflearn.ranking import Davidson
from studies.ch17_protocol import entry
from studies.ch17_worlds import BASE, DRAWS, LEARNERS, WORLDS, Named, drawn_world, problem, settings, tasks

BY_NAME = {one.name: one for one in LEARNERS}


def test_names_say_what_differs_and_facts_say_all():
    full = tasks("full")
    assert set(tasks("quick")) < set(full)
    assert len(full) == len(set(full)) == len(WORLDS) * DRAWS * len(settings())
    facts = problem("non-linear comparisons=50 features=20/1").facts
    assert (facts["n_pairs"], facts["n_features"], facts["n_items"], facts["nonlinear"]) == (50, 20, 100, 1)
    assert (facts["noise"], facts["missing"], facts["explained"]) == (1.0, 0.0, 1.0)


def test_a_world_that_is_none_is_named():
    with pytest.raises(ValueError, match="the world is 'stepped'; expected 'linear' or 'non-linear'"):
        problem("stepped comparisons=50/0")


@pytest.mark.parametrize("name", ["linear comparisons=50/0", "non-linear items=300/1", "linear items=10/2"])
def test_all_items_that_are_asked_about_were_seen(name):
    found = problem(name)
    train, test = found.whole.train[0], found.whole.test
    assert set(np.unique(test.index)) <= set(np.unique(train.index))
    assert (test.index[:, 0] != test.index[:, 1]).all()
    assert sum(len(fold.test) for fold in found.folds) == len(train)
    ties = np.concatenate([found.whole.train[1], found.whole.truth]) == 0
    assert ties.mean() == pytest.approx(BASE["ties"], abs=1e-3)


def test_one_factor_moves():
    X, index, gap, y = drawn_world("linear", 1, **BASE)
    loud = drawn_world("linear", 1, **BASE | {"noise": 2.0})
    for one, other in zip((X, index, gap), loud[:3], strict=True):
        assert np.array_equal(one, other)
    assert not np.array_equal(y, loud[3])
    hidden = drawn_world("linear", 1, **BASE | {"missing": 0.6})
    assert hidden[0].shape[1] == 4
    assert {tuple(column) for column in hidden[0].T} < {tuple(column) for column in X.T}
    assert np.array_equal(hidden[3], y)


@pytest.mark.parametrize("world", ["linear", "non-linear"])
@pytest.mark.parametrize("explained", [0.0, 0.5, 1.0])
def test_scores_have_variance_one_and_features_explain_a_share(world, explained):
    at = BASE | {"items": 4000, "comparisons": 8000, "explained": explained, "features": 2}
    X, index, gap, _ = drawn_world(world, 0, **at)
    assert gap.var() == pytest.approx(2, rel=0.1)
    of = np.column_stack([X, X**2])
    gaps = of[index[:, 0]] - of[index[:, 1]]
    rest = gap - gaps @ np.linalg.lstsq(gaps, gap)[0]
    assert 1 - rest.var() / gap.var() == pytest.approx(explained, abs=0.03)


def test_the_least_loss_is_that_of_the_true_scores():
    quiet = problem("linear noise=0.25/0")
    assert (
        quiet.facts["least"] < problem("linear/0").facts["least"] < problem("linear noise=2/0").facts["least"]
    )
    d = drawn_world("linear", 0, **BASE | {"noise": 0.25})[2][300:]
    losses = [
        np.mean(np.where(np.abs(d) <= t, 0, np.sign(d)) != quiet.whole.truth) for t in np.linspace(0, 3, 300)
    ]
    assert quiet.facts["least"] == pytest.approx(min(losses), abs=0.005)


def test_items_by_number_need_no_features():
    rng = np.random.default_rng(0)
    index, y = np.array([[0, 1], [1, 2], [2, 0], [0, 1], [2, 1]]), np.array([1, 1, -1, 0, 0])
    train = Pairs(rng.normal(size=(5, 2)), index), y
    asked = Pairs(train[0].items, [[0, 2], [3, 4], [0, 3]])
    model = Named(train, alpha=0.5)
    expected = Davidson(0.5).fit(index, y)
    np.testing.assert_allclose(model.predict_proba(asked)[:1], expected.predict_proba(np.array([[0, 2]])))
    assert model.model.coef_[3:].tolist() == [0, 0]  # not met
    both = Named(train, alpha=0.5, own=1e-6)  # hardly anything of their own
    plain = Davidson(0.5).fit(*train)
    np.testing.assert_allclose(both.predict_proba(asked), plain.predict_proba(asked), atol=1e-6)
    alone = Named((Pairs(0 * train[0].items, index), y), alpha=0.5, own=1.0)
    np.testing.assert_allclose(alone.predict_proba(asked), model.predict_proba(asked), atol=1e-9)


def test_numbers_win_where_items_come_often_and_features_where_they_come_seldom():
    def losses(name):
        rows = [
            entry(problem(name), BY_NAME[one], BY_NAME["constant"])
            for one in ("Davidson", "logistic regression")
        ]
        return [row["loss"] for row in rows]

    often, seldom = losses("non-linear items=20 explained=0.1/0"), losses("linear items=200 explained=1/0")
    assert often[0] < often[1] - 0.03
    assert seldom[1] < seldom[0] - 0.03


def test_a_second_run_gives_the_same_row():
    learner = BY_NAME["Davidson, also features"]
    rows = [pd.Series(entry(problem("linear/0"), learner, BY_NAME["constant"])) for _ in range(2)]
    rows = [row[[name for name in row.index if not name.endswith(("_s", "_mb"))]] for row in rows]
    pd.testing.assert_series_equal(*rows)

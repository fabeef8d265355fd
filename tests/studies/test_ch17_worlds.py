"""Simulated worlds in which one factor changes at a time, and learners that identify
items by number."""

import numpy as np
import pytest

from preflearn.pairs import Pairs
from preflearn.ranking import Davidson
from preflearn_book.studies.ch17_pairs import fit_davidson
from preflearn_book.studies.ch17_worlds import BASE, problem, simulate_world


@pytest.mark.parametrize(
    "name", ["linear comparisons=50/0", "non-linear items=300/1", "linear items=10/2"]
)
def test_all_test_items_are_among_the_training_items(name):
    found = problem(name)
    train = found.whole.train[0]
    test = found.whole.test
    assert set(np.unique(test.index)) <= set(np.unique(train.index))
    assert (test.index[:, 0] != test.index[:, 1]).all()
    assert sum(len(fold.test) for fold in found.folds) == len(train)
    ties = np.concatenate([found.whole.train[1], found.whole.truth]) == 0
    assert ties.mean() == pytest.approx(BASE["ties"], abs=1e-3)


def test_one_factor_changes_at_a_time():
    X, index, gap, y = simulate_world("linear", 1, **BASE)
    noisy = simulate_world("linear", 1, **BASE | {"noise": 2.0})
    for one, other in zip((X, index, gap), noisy[:3], strict=True):
        assert np.array_equal(one, other)
    assert not np.array_equal(y, noisy[3])
    hidden = simulate_world("linear", 1, **BASE | {"missing": 0.6})
    assert hidden[0].shape[1] == 4
    assert {tuple(column) for column in hidden[0].T} < {tuple(column) for column in X.T}
    assert np.array_equal(hidden[3], y)


@pytest.mark.parametrize("world", ["linear", "non-linear"])
@pytest.mark.parametrize("explained", [0.0, 0.5, 1.0])
def test_scores_have_variance_one_and_features_explain_the_requested_fraction(
    world, explained
):
    settings = BASE | {
        "items": 4000,
        "comparisons": 8000,
        "explained": explained,
        "features": 2,
    }
    X, index, gap, _ = simulate_world(world, 0, **settings)
    assert gap.var() == pytest.approx(2, rel=0.1)
    basis = np.column_stack([X, X**2])
    gaps = basis[index[:, 0]] - basis[index[:, 1]]
    residual = gap - gaps @ np.linalg.lstsq(gaps, gap)[0]
    assert 1 - residual.var() / gap.var() == pytest.approx(explained, abs=0.03)


def test_the_least_loss_is_that_of_the_true_scores():
    quiet = problem("linear noise=0.25/0")
    least = [quiet.facts["least"], problem("linear/0").facts["least"]]
    assert least[0] < least[1] < problem("linear noise=2/0").facts["least"]
    d = simulate_world("linear", 0, **BASE | {"noise": 0.25})[2][300:]
    losses = [
        np.mean(np.where(np.abs(d) <= t, 0, np.sign(d)) != quiet.whole.truth)
        for t in np.linspace(0, 3, 300)
    ]
    assert least[0] == pytest.approx(min(losses), abs=0.005)


def test_items_known_by_number_need_no_features():
    rng = np.random.default_rng(0)
    index = np.array([[0, 1], [1, 2], [2, 0], [0, 1], [2, 1]])
    y = np.array([1, 1, -1, 0, 0])
    train = Pairs(rng.normal(size=(5, 2)), index), y
    asked = Pairs(train[0].items, [[0, 2], [3, 4], [0, 3]])
    forecast = fit_davidson(train, alpha=0.5)
    expected = Davidson(0.5).fit(index, y)
    np.testing.assert_allclose(
        forecast(asked)[:1], expected.predict_proba(np.array([[0, 2]]))
    )
    almost_features_only = fit_davidson(train, alpha=0.5, own=1e-6)
    np.testing.assert_allclose(
        almost_features_only(asked),
        Davidson(0.5).fit(*train).predict_proba(asked),
        atol=1e-6,
    )
    alone = fit_davidson((Pairs(0 * train[0].items, index), y), alpha=0.5, own=1.0)
    np.testing.assert_allclose(alone(asked), forecast(asked), atol=1e-9)

"""What the learners of rankings by analogy share: what they refuse, aggregates, what a later fit leaves."""

import numpy as np
import pytest
from sklearn.base import clone
from toy_rankings import rankings

from preflearn.analogy import Able2Rank, AnKerRank
from preflearn.ranking.aggregation import AGGREGATES

LEARNERS = [AnKerRank(2.0, random_state=0), Able2Rank(3)]
CHOOSING = [(AnKerRank(), "curve_", {"C": 1.0}), (Able2Rank("cv"), "losses_", {"k": 5})]
EACH = pytest.mark.parametrize("learner", LEARNERS, ids=["ankerrank", "able2rank"])


@EACH
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_worths_are_the_aggregated_preferences(learner, aggregate):
    X, rank = rankings(0)
    machine = clone(learner).set_params(aggregate=aggregate).fit(X, rank)
    np.testing.assert_array_equal(machine.worths(X), AGGREGATES[aggregate](machine.preferences(X)))
    assert machine.rank(X[:1]).tolist() == [1]


@EACH
def test_rounding_outside_the_unit_interval_is_clipped(learner):
    X, rank = rankings(1)
    X[0], X[1] = 1.0, 0.0
    machine, near = clone(learner).fit(X, rank), X.copy()
    near[0] += 5e-10
    near[1] -= 5e-10
    again = clone(learner).fit(near, rank)
    np.testing.assert_array_equal(again.preferences(near), machine.preferences(X))


@EACH
def test_blocks_do_not_matter(learner, monkeypatch):
    X, rank = rankings(5, n=12)
    machine = clone(learner).fit(X, rank)
    P = machine.preferences(X)
    monkeypatch.setattr("preflearn.analogy.kernel._VALUES", 100)
    np.testing.assert_allclose(machine.preferences(X), P, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("machine", "chosen", "fixed"), CHOOSING)
def test_the_same_seed_gives_the_same_machine(machine, chosen, fixed):
    X, rank = rankings(0, n=12)
    one, again, other = (clone(machine).set_params(random_state=seed).fit(X, rank) for seed in (4, 4, 5))
    assert str(getattr(again, chosen)) == str(getattr(one, chosen)) != str(getattr(other, chosen))
    np.testing.assert_array_equal(again.preferences(X), one.preferences(X))


@EACH
@pytest.mark.parametrize(
    "bad", [{"aggregate": "votes"}, {"k": -1, "zero": "positive", "orientation": "antisymmetric"}]
)
def test_what_is_set_after_a_fit_waits_for_the_next_and_one_that_fails_changes_nothing(learner, bad):
    machine = clone(learner).fit(*rankings(8))
    Q = rankings(9)[0]
    before = machine.preferences(Q)
    machine.set_params(**{name: value for name, value in bad.items() if name in machine.get_params()})
    with pytest.raises(ValueError, match=r"^(aggregate|k|zero) is .*; expected"):
        machine.fit(*rankings(10, n=3))
    np.testing.assert_array_equal(machine.preferences(Q), before)
    if "aggregate" in bad:
        with pytest.raises(ValueError, match="aggregate is 'votes'; expected"):
            machine.rank(Q)


@pytest.mark.parametrize(("machine", "chosen", "fixed"), CHOOSING)
def test_a_later_fit_leaves_nothing_of_an_earlier_one(machine, chosen, fixed):
    X, rank = rankings(6, n=12)
    assert getattr(machine.fit(X, rank), chosen)
    assert getattr(machine.set_params(**fixed).fit(X, rank), chosen) is None


@EACH
@pytest.mark.parametrize(
    ("X", "rank", "qid", "message"),
    [
        ([[0.0], [1.5]], [1, 2], None, r"X\[1, 0\] is 1.5; expected features from 0 to 1.*DomainScaler"),
        ([[0.0], [-0.1]], [1, 2], None, r"X\[1, 0\] is -0.1; expected features from 0 to 1"),
        ([[0.0], [np.nan]], [1, 2], None, r"X\[1, 0\] is nan"),
        ([[0.0], [1.0]], [1, 1], None, "no pair is left of 2 items"),
        ([[0.0], [1.0]], [1, 2], [0, 1], "no pair is left of 2 items"),
    ],
)
def test_bad_rankings_are_named(learner, X, rank, qid, message):
    with pytest.raises(ValueError, match=message):
        clone(learner).fit(X, rank, qid)


@EACH
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"aggregate": "mean"}, "aggregate is 'mean'; expected 'bradley-terry' or"),
        (
            {"random_state": -1},
            "random_state is -1; expected a seed, a whole number .* Generator, or None",
        ),
        ({"random_state": 1.5}, "random_state is 1.5; expected a seed, a whole number"),
    ],
)
def test_bad_parameters_are_named(learner, change, message):
    with pytest.raises(ValueError, match=message):
        clone(learner).set_params(**change).fit(*rankings(0))


@EACH
def test_bad_queries_are_named(learner):
    machine = clone(learner).fit(*rankings(0))
    with pytest.raises(ValueError, match="Q has 2 features; expected 3"):
        machine.rank(np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"Q\[0, 0\] is 2.0; expected features from 0 to 1"):
        machine.preferences(np.full((2, 3), 2.0))

"""The Plackett–Luce model compared with choix, with a sum over all subsets, and with
Davidson's model."""

import warnings
from itertools import combinations, permutations

import choix
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from preflearn.core import NotIdentifiedWarning
from preflearn.ranking import Davidson, PlackettLuce


def drawn(seed, n=6, m=40, length=4):
    """Return rankings of some of the items, drawn with Gumbel noise."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n)
    chosen = [rng.choice(n, length, replace=False) for _ in range(m)]
    return [
        s[np.argsort(-(theta[s] + rng.gumbel(size=length)))].tolist() for s in chosen
    ]


def tied(rankings):
    """Tie the first two items of every third ranking, and all items but the first of
    every fifth."""
    return [
        [tuple(r[:2]), *r[2:]]
        if k % 3 == 0
        else [*r[:1], set(r[1:])]
        if k % 5 == 0
        else r
        for k, r in enumerate(rankings)
    ]


def log_likelihood(rankings, theta, deltas):
    """Return the log-likelihood by its definition, a sum over all subsets of the
    remaining items."""
    total = 0.0
    for ranking in rankings:
        places = [list(p) if isinstance(p, (tuple, set)) else [p] for p in ranking]
        while places:
            left = [item for place in places for item in place]
            weights = {
                frozenset(s): d * np.exp(theta[list(s)].mean())
                for k, d in deltas.items()
                for s in combinations(left, k)
            }
            total += np.log(weights[frozenset(places.pop(0))] / sum(weights.values()))
    return total


def test_without_ties_the_worths_are_those_of_choix():
    rankings = drawn(0)
    expected = choix.opt_rankings(6, rankings, alpha=1e-6, tol=1e-10)
    found = PlackettLuce(1e-6).fit(rankings).coef_
    np.testing.assert_allclose(found, expected - expected.mean(), atol=1e-5)


def test_with_ties_no_other_point_is_more_likely():
    rankings = tied(drawn(1))
    model = PlackettLuce(0.1).fit(rankings)
    assert sorted(model.tie_weights_) == [1, 2, 3]
    value = 0.05 * model.coef_ @ model.coef_ - log_likelihood(
        rankings, model.coef_, model.tie_weights_
    )
    assert model.objective_ == pytest.approx(value, rel=1e-10)
    for size in (1e-3, -1e-3):
        for k in range(6):
            theta = model.coef_ + size * (np.arange(6) == k)
            assert (
                0.05 * theta @ theta
                - log_likelihood(rankings, theta, model.tie_weights_)
                > value
            )
        for k in (2, 3):
            deltas = model.tie_weights_ | {k: model.tie_weights_[k] * (1 + size)}
            assert (
                0.05 * model.coef_ @ model.coef_
                - log_likelihood(rankings, model.coef_, deltas)
                > value
            )


def test_rankings_of_two_items_give_davidsons_model():
    rng = np.random.default_rng(2)
    index = np.array([rng.choice(5, 2, replace=False) for _ in range(60)])
    y = rng.choice([-1, 0, 1], 60)
    pairs = [
        [(a, b)] if v == 0 else [a, b][:: int(v)]
        for (a, b), v in zip(index.tolist(), y, strict=True)
    ]
    davidson = Davidson(0.1).fit(index, y)
    found = PlackettLuce(0.1).fit(pairs)
    np.testing.assert_allclose(found.coef_, davidson.coef_, atol=1e-7)
    assert found.tie_weights_[2] == pytest.approx(davidson.nu_, rel=1e-6)
    np.testing.assert_allclose(
        found.standard_errors(), davidson.standard_errors(), rtol=1e-6
    )
    np.testing.assert_allclose(
        found.interval(0.9, index), davidson.interval(0.9, index), atol=1e-6
    )
    np.testing.assert_allclose(
        found.probabilities(np.array([0.3])), davidson.probabilities(np.array([0.3]))
    )


def assert_errors_are_those_of_second_differences(model, value, point):
    """Compare the standard errors of five items with the inverse of the Hessian."""
    h = 1e-3
    steps = h * np.eye(len(point))
    H = np.array(
        [
            [
                value(point + a + b)
                - value(point + a - b)
                - value(point - a + b)
                + value(point - a - b)
                for a in steps
            ]
            for b in steps
        ]
    ) / (4 * h * h)
    V = np.linalg.inv(H)[:5, :5]
    pairs = [(i, j) for i in range(5) for j in range(i)]
    variance = [V[i, i] + V[j, j] - 2 * V[i, j] for i, j in pairs]
    np.testing.assert_allclose(
        model.standard_errors(pairs), np.sqrt(variance), rtol=1e-4
    )


@pytest.mark.parametrize("ties", [False, True])
def test_errors_are_those_of_second_differences_of_the_likelihood(ties):
    rankings = drawn(4, n=5, m=30)
    if ties:
        rankings = tied(rankings)
    model = PlackettLuce(0.2).fit(rankings, np.arange(30) % 3)
    kinds = list(model.tie_weights_)
    point = np.append(model.coef_, [np.log(model.tie_weights_[k]) for k in kinds[1:]])

    def value(x):
        deltas = dict(zip(kinds, np.exp(np.append(0.0, x[5:])), strict=True))
        total = sum(
            weight * log_likelihood([ranking], x[:5], deltas)
            for ranking, weight in zip(rankings, np.arange(30) % 3, strict=True)
            if weight
        )
        return 0.1 * x[:5] @ x[:5] - total

    assert_errors_are_those_of_second_differences(model, value, point)


def test_unranked_items_have_the_likelihood_of_all_their_orders():
    rankings = drawn(6, n=5, m=8, length=5)
    first = [r[: 1 + k % 4] for k, r in enumerate(rankings)]
    last = [r[1 + k % 4 :] for k, r in enumerate(rankings)]
    model = PlackettLuce(0.2).fit(first, unranked=last)
    assert model.tie_weights_ == {1: 1.0}

    def value(theta):
        total = 0.1 * theta @ theta
        for ranked, rest in zip(first, last, strict=True):
            orders = [[*ranked, *order] for order in permutations(rest)]
            logs = [log_likelihood([order], theta, {1: 1.0}) for order in orders]
            total -= np.logaddexp.reduce(logs)
        return total

    best = minimize(value, np.zeros(5), tol=1e-9)
    np.testing.assert_allclose(model.coef_, best.x, atol=1e-4)
    assert model.objective_ == pytest.approx(value(model.coef_), rel=1e-10)
    assert_errors_are_those_of_second_differences(model, value, model.coef_)


def test_unranked_items_are_worse_than_the_ranked_ones_only():
    with pytest.warns(NotIdentifiedWarning, match=r"\['d'\] never won"):
        PlackettLuce().fit(
            [["a", "b"], ["b", "a"], ["c", "a"]], unranked=[["c"], ["d"], []]
        )
    for unranked, words in (
        ([["c"]], "of which there are 2"),
        (["c", "d"], "'c'"),
        ([["a"], []], "once"),
    ):
        with pytest.raises(ValueError, match=words):
            PlackettLuce().fit([["a", "b"], ["b", "a"]], unranked=unranked)
    with pytest.raises(ValueError, match="at least one item"):
        PlackettLuce().fit([["a", "b"], []], unranked=[[], ["c"]])


def test_a_long_ranking_among_short_ones_is_fitted_as_choices_one_by_one():
    """A ranking of n items consists of n - 1 choices from the remaining items."""
    rng = np.random.default_rng(5)
    long = rng.permutation(40).tolist()
    short = [rng.choice(40, 2, replace=False).tolist() for _ in range(300)]
    model = PlackettLuce(0.1).fit([long, *short])
    theta = model.coef_
    slope = 0.1 * theta
    for row in [long, *short]:
        for place in range(len(row) - 1):
            left = row[place:]
            slope[left] += np.exp(theta[left]) / np.exp(theta[left]).sum()
            slope[row[place]] -= 1
    assert np.abs(slope).max() < 1e-6


def test_a_weight_of_two_is_the_same_ranking_twice():
    rankings = tied(drawn(3, m=10))
    twice = PlackettLuce().fit(rankings, np.arange(10) % 2 + 1.0)
    same = PlackettLuce().fit(rankings + rankings[1::2])
    np.testing.assert_allclose(twice.coef_, same.coef_, atol=1e-6)
    np.testing.assert_allclose(
        twice.standard_errors(), same.standard_errors(), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("rankings", "words"),
    [
        ([["a", "b", "a"]], "once"),
        ([[("a", "b")]], "tied"),
        ([["a", 1]], "'a', 1"),
        (["ab"], "'ab'"),
        ([{"a": 2, "b": 1}], "sorted"),
        ([[1.0, 2.0, np.nan]], "nan"),
        (None, "rankings is None.*list"),
        ("ab", "rankings is 'ab'"),
    ],
)
def test_bad_rankings_are_named(rankings, words):
    with pytest.raises(ValueError, match=words):
        PlackettLuce().fit(rankings)


def test_unbounded_ties_cause_a_warning_and_unknown_items_are_named():
    tied = [[("a", "b"), "c"], [("b", "c"), "a"], [("a", "c"), "b"]]
    for alpha in (1e-3, 1e6):  # the penalty does not bound the weight of ties
        with pytest.warns(ConvergenceWarning, match="ties of 2 items"):
            PlackettLuce(alpha).fit(tied)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        free = ["a", "b", "c"], ["c", "b", "a"]
        assert PlackettLuce().fit([*tied, *free]).tie_weights_[2] < 10
        weightless = PlackettLuce().fit([tied[0], *free], sample_weight=[0, 1, 1])
    assert weightless.tie_weights_ == {1: 1.0}
    assert weightless.probabilities(np.zeros(1)).tolist() == [[0.5, 0.0, 0.5]]
    with pytest.raises(ValueError, match=r"'x'.*\['a', 'b'\]"):
        PlackettLuce().fit([["a", "b"], ["b", "a"]]).standard_errors([("a", "x")])


def test_unbeaten_items_and_groups_that_never_meet_cause_a_warning():
    with pytest.warns(
        NotIdentifiedWarning, match=r"alpha=0.001.*\['a'\].*\['c'\].*raise alpha"
    ) as caught:
        PlackettLuce().fit([["a", "b", "c"]] * 5)
    assert "Davidson" not in str(caught[0].message)  # Davidson does not accept rankings
    with pytest.warns(NotIdentifiedWarning, match=r"\['a', 'b'\], \['c', 'd'\]"):
        PlackettLuce().fit(
            [["a", "b"], ["b", "a"], ["c", "d"], ["d", "c"], ["a", "c"]],
            [1, 1, 1, 1, 0],
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PlackettLuce().fit([["a", "b", "c"], [("b", "c"), "a"], ["e"]])
        PlackettLuce(alpha=0.5).fit([["a", "b", "c"]] * 5)

"""SVMRank from pairs, scores and rankings, and the cost that it chooses on the paths of held-out items."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from preflearn.pairs import Pairs
from preflearn.path import cross_validated_path, ranksvm_path
from preflearn.svm import SVMRank


def scored(seed, n=24, queries=1, ties=False):
    """Items, noisy linear scores, and query ids."""
    rng = np.random.default_rng(seed)
    X, qid = rng.normal(size=(n, 3)), np.sort(rng.integers(queries, size=n))
    y = X @ [1.0, 2.0, 3.0] + 0.5 * rng.normal(size=n)
    return X, np.round(y) if ties else y, qid


@pytest.mark.parametrize("C", [1e-3, 0.03, 1.0, 30.0])
@pytest.mark.parametrize("queries", [1, 3])
def test_from_scored_items_it_equals_liblinear_on_their_pairs(C, queries):
    X, y, qid = scored(7, queries=queries, ties=True)
    pairs, labels = Pairs.from_scores(X, y, qid)
    reference = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6)
    reference.fit(pairs.differences(), labels)
    machine = SVMRank(C, "linear").fit(X, y, qid)
    np.testing.assert_allclose(machine.coef_, reference.coef_[0], atol=1e-5)
    assert (machine.C_, machine.curve_) == (C, None)


@pytest.mark.parametrize("ties", ["ignore", "duplicate"])
def test_scored_items_are_the_pairs_of_from_scores(ties):
    """Ties too, and only the order of scores counts; ids of queries are any that can be sorted."""
    X, y, qid = scored(3, queries=2, ties=True)
    machine = SVMRank(2.0, gamma=0.4, ties=ties)
    expected = clone(machine).fit(*Pairs.from_scores(X, y, qid, ties="keep"))
    found = clone(machine).fit(X, np.exp(y / 9), np.array(["b", "a"])[qid])
    np.testing.assert_allclose(found.rank_function(X), expected.rank_function(X), atol=1e-8)
    assert found.tau_ == pytest.approx(expected.tau_, abs=1e-6)
    assert len(found.dual_coef_) == len(expected.dual_coef_)


def test_above_the_first_breakpoint_all_pairs_have_the_full_weight():
    X, y, _ = scored(1)
    machine = SVMRank(1e-9).fit(X, y)
    np.testing.assert_allclose(np.abs(machine.dual_coef_), 1e-9, rtol=1e-12)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("ties", ["ignore", "duplicate"])
def test_the_c_of_the_path_has_the_least_mean_error_of_its_folds(seed, kernel, ties):
    """And the machine is the one of that C, on all pairs."""
    X, y, _ = scored(seed, n=20, ties=True)
    items = rbf_kernel(X, gamma=0.2) if kernel == "precomputed" else X
    pairs, labels = Pairs.from_scores(items, y, ties="keep")
    machine = SVMRank("path", kernel, gamma=0.2, ties=ties, random_state=seed).fit(pairs, labels)
    rows, signs = np.flatnonzero(labels), labels[labels != 0]
    if ties == "duplicate":
        tied = np.flatnonzero(labels == 0)
        rows = np.concatenate([rows, rows, tied, tied])
        signs = np.concatenate([signs, signs, np.ones(len(tied)), -np.ones(len(tied))]).astype(int)
    curves = [
        cross_validated_path(
            pairs[rows], signs, kernel=kernel, gammas=[0.2], n_folds=2, random_state=seed + r
        ).curves[0]
        for r in range(3)
    ]

    def error(lam):
        below = [np.flatnonzero(curve.lambdas >= lam) for curve in curves]
        return np.mean([c.losses[b[-1] if len(b) else 0] for c, b in zip(curves, below, strict=True)])

    lam, least = 1 / machine.C_, min(error(lam) for curve in curves for lam in curve.lambdas)
    assert error(lam) == pytest.approx(least) == pytest.approx(machine.curve_.loss)
    path = ranksvm_path(pairs[rows], signs, kernel, gamma=0.2, lambda_min=lam / 2)
    of_path = path.decision_function(lam, items)
    r = machine.rank_function(items)
    np.testing.assert_allclose(r - r.mean(), of_path - of_path.mean(), atol=1e-6 * np.abs(r).max())
    again = machine.set_params(C=machine.C_).fit(pairs, labels)
    np.testing.assert_array_equal(again.rank_function(items), r)
    assert again.curve_ is None


def test_repetitions_follow_one_another_from_the_seed():
    X, y, _ = scored(3)
    chosen = [SVMRank("path", "linear", random_state=s).fit(X, y).C_ for s in (0, 0, 1, 2, 3)]
    assert chosen[0] == chosen[1]
    assert len(set(chosen)) > 1


@pytest.mark.parametrize(("seed", "bounded"), [(12, True), (0, False)])
def test_a_choice_at_the_end_of_the_range_is_no_secret(seed, bounded):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 5))
    y = X @ rng.normal(size=5) + 0.5 * rng.normal(size=15)
    with warnings.catch_warnings(record=True) as caught:
        machine = SVMRank("path", "linear").fit(X, y)
    said = [one for one in caught if "the least pair error is at the end" in str(one.message)]
    assert [one.filename for one in said] == [__file__] * bounded  # that of who called `fit`
    assert (machine.curve_.lam < machine.curve_.lambdas[-1]) == bounded


def test_the_width_on_the_path_is_that_of_the_machine():
    """Of the distinct items that occur in a pair, however often they do."""
    X, y, _ = scored(4)
    X, y = np.vstack([X, X[:3], [[50.0, 50.0, 50.0]]]), np.append(y, [*y[:3], 0.0])
    qid, scale = np.append(np.zeros(len(X) - 1), 1), 1 / (3 * X[:24].var(axis=0).mean())
    one, other = (SVMRank("path", gamma=gamma).fit(X, y, qid) for gamma in ("scale", scale))
    assert pytest.approx(other.C_, rel=1e-9) == one.C_
    np.testing.assert_allclose(one.rank_function(X), other.rank_function(X), atol=1e-6)


ITEMS, PAIRS = [[0.0], [1.0], [4.0], [6.0]], Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1], [2, 0]])


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({"C": "Path"}, (ITEMS, [1, 2, 3, 4]), "C is 'Path'; expected a positive number or 'path'"),
        ({"C": None}, (ITEMS, [1, 2, 3, 4]), "C is None; expected a positive number or 'path'"),
        *(
            ({"C": "path", "random_state": state}, (ITEMS, [1, 2, 3, 4]), "random_state is .*whole number")
            for state in (-1, 1.5, None, "a", True)
        ),
        ({}, (PAIRS, [1, 1, 1], [0, 0, 0]), "qid is given with pairs"),
        ({"C": "path"}, (PAIRS, [1, 1, 1], None, [1, 2, 1]), "sample_weight is given with C='path'"),
        ({}, (ITEMS, [1, 2, 3, 4], None, [1] * 4), r"sample_weight has shape \(4,\); expected \(6,\): one w"),
        ({}, (ITEMS, [1, 2, 3]), r"scores has shape \(3,\); expected \(4,\)"),
        ({}, (ITEMS, [1, 2, np.nan, 3]), r"scores\[2\] is nan"),
        ({}, (ITEMS, [1, 1, 1, 1]), "y has only ties"),
        ({}, (ITEMS, [1, 2, 3, 4], [0, 1, 2, 3]), "no pair is left of 4 items"),
        ({}, (ITEMS, [1, 2, 3, 4], [0]), r"qid has shape \(1,\)"),
        (
            {"C": "path"},
            (ITEMS[:3], [1, 2, 3]),
            "none of the 2 folds has pairs to train and pairs to validate among 3 pairs; expected more",
        ),
        (
            {"C": "path"},
            (np.ones((8, 2)), np.arange(8)),
            "n_folds is 2; expected at most 1, for 1 different groups of items",
        ),
    ],
)
def test_bad_input_is_named(parameters, arguments, message):
    with pytest.raises(ValueError, match=message):
        SVMRank(**{"kernel": "linear"} | parameters).fit(*arguments)

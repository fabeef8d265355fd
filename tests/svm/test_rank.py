"""SVMRank for pairs, scores, and rankings, and the cost that it chooses on the paths of
held-out items."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.pairs import Pairs
from preflearn.path import ItemFolds, cross_validated_path, ranksvm_path
from preflearn.svm import SVMRank


def scored(seed, n=24, queries=1, ties=False):
    """Return items, noisy linear scores, and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    qid = np.sort(rng.integers(queries, size=n))
    y = X @ [1.0, 2.0, 3.0] + 0.5 * rng.normal(size=n)
    return X, np.round(y) if ties else y, qid


@pytest.mark.parametrize("ties", ["ignore", "duplicate"])
def test_scored_items_are_the_pairs_of_from_scores(ties):
    """This includes ties. Only the order of scores matters, and query ids can be of any
    sortable type."""
    X, y, qid = scored(3, queries=2, ties=True)
    model = SVMRank(2.0, gamma=0.4, ties=ties)
    expected = clone(model).fit(*Pairs.from_scores(X, y, qid, ties="keep"))
    found = clone(model).fit(X, np.exp(y / 9), np.array(["b", "a"])[qid])
    np.testing.assert_allclose(
        found.rank_function(X), expected.rank_function(X), atol=1e-8
    )
    assert found.tau_ == pytest.approx(expected.tau_, abs=1e-6)
    assert len(found.dual_coef_) == len(expected.dual_coef_)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("ties", ["ignore", "duplicate"])
def test_the_c_of_the_path_has_the_least_mean_error_of_its_folds(seed, kernel, ties):
    """The fitted model is that of this C on all pairs."""
    X, y, _ = scored(seed, n=20, ties=True)
    items = rbf_kernel(X, gamma=0.2) if kernel == "precomputed" else X
    pairs, labels = Pairs.from_scores(items, y, ties="keep")
    model = SVMRank("path", kernel, gamma=0.2, ties=ties, random_state=seed).fit(
        pairs, labels
    )
    rows = np.flatnonzero(labels)
    signs = labels[labels != 0]
    if ties == "duplicate":
        tied = np.flatnonzero(labels == 0)
        rows = np.concatenate([rows, rows, tied, tied])
        signs = np.concatenate(
            [signs, signs, np.ones(len(tied)), -np.ones(len(tied))]
        ).astype(int)
    curves = [
        cross_validated_path(
            pairs[rows],
            signs,
            kernel=kernel,
            gammas=[0.2],
            folds=ItemFolds(2, random_state=seed + r),
        ).curves[0]
        for r in range(3)
    ]

    def error(lam):
        below = [np.flatnonzero(curve.lambdas >= lam) for curve in curves]
        return np.mean(
            [
                c.losses[b[-1] if len(b) else 0]
                for c, b in zip(curves, below, strict=True)
            ]
        )

    least = min(error(lam) for curve in curves for lam in curve.lambdas)
    lam = 1 / model.C_
    assert error(lam) == pytest.approx(least) == pytest.approx(model.curve_.loss)
    path = ranksvm_path(pairs[rows], signs, kernel, gamma=0.2, lambda_min=lam / 2)
    of_path = path.decision_function(lam, items)
    r = model.rank_function(items)
    np.testing.assert_allclose(
        r - r.mean(), of_path - of_path.mean(), atol=1e-6 * np.abs(r).max()
    )
    again = model.set_params(C=model.C_).fit(pairs, labels)
    np.testing.assert_array_equal(again.rank_function(items), r)
    assert again.curve_ is None


def test_the_seed_draws_the_folds():
    X, y, _ = scored(3)
    chosen = [
        SVMRank("path", "linear", random_state=s).fit(X, y).C_ for s in (0, 0, 1, 2, 3)
    ]
    assert chosen[0] == chosen[1]
    assert len(set(chosen)) > 1


@pytest.mark.parametrize(("seed", "bounded"), [(12, True), (0, False)])
def test_a_choice_at_the_end_of_the_range_warns(seed, bounded):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 5))
    y = X @ rng.normal(size=5) + 0.5 * rng.normal(size=15)
    with warnings.catch_warnings(record=True) as caught:
        model = SVMRank("path", "linear").fit(X, y)
    at_the_end = [
        warning.filename for warning in caught if warning.category is ConvergenceWarning
    ]
    # the warning names the line of the call of `fit`
    assert at_the_end == [__file__] * bounded
    assert (model.curve_.lam < model.curve_.lambdas[-1]) == bounded


def test_the_path_has_the_width_of_the_machine():
    """The variance in gamma="scale" is taken over the distinct items that occur in a
    pair."""
    X, y, _ = scored(4)
    X = np.vstack([X, X[:3], [[50.0, 50.0, 50.0]]])
    y = np.append(y, [*y[:3], 0.0])
    qid = np.append(np.zeros(len(X) - 1), 1)
    scale = 1 / (3 * X[:24].var(axis=0).mean())
    one, other = (
        SVMRank("path", gamma=gamma).fit(X, y, qid) for gamma in ("scale", scale)
    )
    assert pytest.approx(other.C_, rel=1e-9) == one.C_
    np.testing.assert_allclose(one.rank_function(X), other.rank_function(X), atol=1e-6)


ITEMS = [[0.0], [1.0], [4.0], [6.0]]
PAIRS = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1], [2, 0]])
SCORES = [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("C", "arguments", "message"),
    [
        ("Path", (ITEMS, SCORES), "C is 'Path'.*'path'"),
        (1.0, (PAIRS, [1, 1, 1], [0, 0, 0]), "qid"),
        ("path", (PAIRS, [1, 1, 1], None, [1, 2, 1]), "sample_weight.*C"),
        (1.0, (ITEMS, SCORES, None, [1] * 4), r"sample_weight.*\(4,\).*\(6,\)"),
        (1.0, (ITEMS, [1, 1, 1, 1]), "only ties"),
        ("path", (ITEMS[:3], [1, 2, 3]), "folds.*3 pairs"),
        ("path", (np.ones((8, 2)), np.arange(8)), "n_folds is 2.*1 "),
    ],
)
def test_bad_input_is_named(C, arguments, message):
    with pytest.raises(ValueError, match=message):
        SVMRank(C, "linear").fit(*arguments)

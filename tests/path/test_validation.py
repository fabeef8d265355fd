"""Cross-validation along whole paths: folds of items, a common scale of lambda, and the
merged curve."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from preflearn.pairs import Pairs
from preflearn.path import ItemFolds, cross_validated_path, ranksvm_path


def queries(n_queries, size, seed):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), size)
    X = rng.standard_normal((len(qid), 2))
    pairs, y = Pairs.from_scores(
        X, X @ [1.0, -1.0] + rng.standard_normal(len(qid)), qid
    )
    return pairs, y, qid


@pytest.mark.parametrize("grouped", [True, False])
def test_merged_curve_is_the_mean_over_folds_at_equal_lambda_over_m(grouped):
    pairs, y, qid = queries(6, 7, seed=2)
    groups = qid if grouped else None
    found = cross_validated_path(
        pairs, y, gammas=(0.2, 1.0), folds=ItemFolds(3, groups, 4), span=300.0
    )
    folds = ItemFolds(3, groups, 4).split(pairs)
    held_out = np.concatenate([valid for _, valid in folds])
    assert len(held_out) == len(set(held_out))
    # no pair contains items of two queries
    assert len(held_out) == len(pairs) or not grouped
    for gamma, curve in zip(found.gammas, found.curves, strict=True):
        paths = []
        for train, valid in folds:
            assert not set(pairs.index[train].ravel()) & set(pairs.index[valid].ravel())
            start = ranksvm_path(
                pairs[train], y[train], gamma=gamma, max_events=1
            ).breakpoints[0]
            paths.append(
                ranksvm_path(
                    pairs[train], y[train], gamma=gamma, lambda_min=start / 300
                )
            )
        for lam in np.sqrt(curve.lambdas[1:] * curve.lambdas[:-1])[::5]:
            wrong = 0
            for path, (train, valid) in zip(paths, folds, strict=True):
                f = path.decision_function(lam * len(train) / len(y), pairs[valid])
                wrong += np.count_nonzero(np.sign(f) != y[valid])
            place = np.searchsorted(-curve.lambdas, -lam, side="right") - 1
            assert curve.losses[place] == pytest.approx(
                wrong / len(held_out), abs=1e-12
            )
    losses = [curve.loss for curve in found.curves]
    assert found.loss == min(losses)
    assert found.gamma == found.gammas[int(np.argmin(losses))]


def test_all_data_twice_moves_lambda_only():
    """If each pair is repeated, the curve is the same at twice the lambda."""
    pairs, y, qid = queries(5, 5, seed=3)
    once = cross_validated_path(pairs, y, folds=ItemFolds(5, qid), span=50.0)
    doubled = pairs[np.tile(np.arange(len(y)), 2)]
    twice = cross_validated_path(
        doubled, np.tile(y, 2), folds=ItemFolds(5, qid), span=50.0
    )
    assert (twice.loss, twice.lam) == (once.loss, pytest.approx(2 * once.lam, rel=1e-9))
    np.testing.assert_allclose(
        twice.curves[0].lambdas, 2 * once.curves[0].lambdas, rtol=1e-9
    )


@pytest.mark.parametrize("offset", [1e3, 1e9])
def test_a_constant_added_to_all_items_changes_nothing(offset):
    """Items are centered before they are multiplied."""
    rng = np.random.default_rng(1)
    X = np.round(rng.standard_normal((50, 3)), 3)
    pairs, y = Pairs.from_scores(X, X @ [1.0, 2.0, 0.0] + rng.standard_normal(50))
    moved = Pairs(X + offset, pairs.index)
    here, there = (
        cross_validated_path(data, y, kernel="linear") for data in (pairs, moved)
    )
    assert (there.loss, there.lam) == (here.loss, pytest.approx(here.lam, rel=1e-6))


PAIRS, Y, QID = queries(4, 3, seed=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"folds": ItemFolds(5, QID)}, "n_folds is 5.*4"),
        ({"folds": ItemFolds(12)}, "12 folds"),
        ({"pairs": np.asarray(PAIRS)}, "expected a Pairs"),
        ({"y": 0 * Y}, r"y\[0\] is 0"),
        ({"gammas": 1.0}, "gammas is 1.0"),
        ({"span": 0.5}, r"span is 0\.5"),
        ({"folds": 5}, "folds is 5.*ItemFolds"),
        ({"degree": "3"}, "degree"),
        ({"folds": ItemFolds(2, QID[:-1])}, r"groups.*\(11,\).*\(12,\)"),
        ({"folds": ItemFolds(2, QID, -1)}, "random_state is -1"),
    ],
)
def test_bad_input_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        cross_validated_path(
            **{"pairs": PAIRS, "y": Y, "folds": ItemFolds(2, QID)} | changes
        )


def test_a_choice_at_the_end_of_the_paths_warns_and_a_larger_span_helps():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(15, 5))
    pairs, y = Pairs.from_scores(X, X @ rng.normal(size=5) + 0.5 * rng.normal(size=15))
    with pytest.warns(ConvergenceWarning, match="span above 10000") as caught:
        short = cross_validated_path(pairs, y, kernel="linear")
    assert caught[-1].filename == __file__
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*span")
        assert (
            cross_validated_path(pairs, y, kernel="linear", span=1e9).loss < short.loss
        )

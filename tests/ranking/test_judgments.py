"""Merged judgments, judges, reliability, and misfit, compared with their
definitions."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from ranking.comparisons import every_model
from scipy import sparse
from sklearn.base import clone

from preflearn.pairs import Incidence, Pairs
from preflearn.ranking import Davidson, PlackettLuce, judgments, tie_models
from preflearn.ranking.judgments import Judgments, merge_equal, outer_sum

SEEDS = st.integers(0, 2**32 - 1)

# Row over column: how often each of six colas was preferred by 99 tasters, in the
# session Luckett2018_cola of G. Kinnear, I. Jones, B. Davies, "Comparative judgement as
# a research tool", Behavior Research Methods 57, 2025. The results are those of their
# program, sirt's btm.
COLAS = np.array(
    [
        [0, 42, 38, 38, 47, 46],
        [23, 0, 35, 34, 41, 45],
        [28, 31, 0, 35, 34, 40],
        [28, 29, 30, 0, 30, 42],
        [22, 24, 34, 36, 0, 40],
        [20, 22, 27, 23, 26, 0],
    ]
)
THETA = [0.46759, 0.15460, 0.01901, -0.03623, -0.10874, -0.49622]
ERRORS = [0.11461, 0.11254, 0.11113, 0.11234, 0.11100, 0.11525]
OUTFIT = [1.00942, 0.98101, 1.01401, 1.00576, 0.98479, 1.00644]
INFIT = [1.00776, 0.98115, 1.01363, 1.00560, 0.98536, 1.00485]
RELIABILITY = 0.87329


def judged(seed, n=5, m=200):
    rng = np.random.default_rng(seed)
    first = rng.integers(n, size=m)
    index = np.column_stack([first, (first + rng.integers(1, n, m)) % n])
    y = rng.choice([-1, 0, 1], m)
    y[:3] = -1, 0, 1
    return index, y, rng.uniform(0.5, 2, m), rng.integers(12, size=m)


@examples(25)
@given(SEEDS, st.integers(2, 7), st.integers(3, 300))
def test_merged_weights_are_sums_over_equal_judgments(seed, n, m):
    index, y, weights, judge = judged(seed, n, m)
    weights[3:] *= np.random.default_rng(seed).integers(0, 2, m - 3)
    given_ones = Judgments(Incidence(index, n), y.astype(np.int8), weights)
    merged, judges = merge_equal(given_ones, judge)
    total = Counter()
    by_judge = Counter()
    for (i, j), label, w, who in zip(index.tolist(), y, weights, judge, strict=True):
        kind = (i, j, label) if i < j else (j, i, -label)
        total[kind] += w
        by_judge[who, kind] += w
    found = Counter()
    for k, ((i, j), label) in enumerate(zip(merged.B.index, merged.y, strict=True)):
        kind = (i, j, label) if i < j else (j, i, -label)
        found[kind] += merged.weights[k]
        for row, who in enumerate(judges.ids):
            by_judge[who, kind] -= judges.weights[row, k]
    for kind, w in total.items():
        assert found[kind] == pytest.approx(w)
    np.testing.assert_allclose(list(by_judge.values()), 0, atol=1e-12)
    if m >= 3 * n * (n - 1) / 2:
        assert len(merged.y) == sum(w > 0 for w in total.values())


@every_model
def test_fits_and_errors_do_not_depend_on_merging(model, monkeypatch):
    index, y, weights, judge = judged(0)
    merged = clone(model).fit(index, y, weights, judge)
    features = Pairs(np.random.default_rng(1).normal(size=(5, 2)), index)
    of_features = clone(model).fit(features, y, weights, judge)
    monkeypatch.setattr(
        tie_models, "merge_equal", lambda *given: rows_as_they_are(*given)
    )
    for found, pairs in ((merged, index), (of_features, features)):
        plain = clone(model).fit(pairs, y, weights, judge)
        assert len(plain._data[2]) == 200 > len(found._data[2])
        np.testing.assert_allclose(found.coef_, plain.coef_, atol=1e-8)
        np.testing.assert_allclose(
            found.standard_errors(), plain.standard_errors(), rtol=1e-7
        )
        for of in ("items", "judges"):
            left, right = (part.misfit(of).sort_index() for part in (found, plain))
            np.testing.assert_allclose(left, right, rtol=1e-6)


def rows_as_they_are(given_ones, cluster):
    m = len(given_ones.y)
    return given_ones, judgments._judges(cluster, np.arange(m), given_ones.weights, m)


@pytest.mark.parametrize("density", [0.02, 0.9])
def test_sums_of_outer_products(density, monkeypatch):
    monkeypatch.setattr(judgments, "_BLOCK", 20)
    G = sparse.random_array((70, 9), density=density, rng=0, format="csr")
    expected = G.toarray().T @ G.toarray()
    np.testing.assert_allclose(outer_sum(G), expected)
    np.testing.assert_allclose(outer_sum(G.toarray()), expected)


def colas(**options):
    i, j = COLAS.nonzero()
    pairs = np.column_stack([i, j])
    return Davidson(1e-6).fit(pairs, np.ones(len(i)), COLAS[i, j], **options)


def test_reliability_and_misfit_of_a_published_table():
    model = colas()
    np.testing.assert_allclose(model.coef_, THETA, atol=2e-3)
    table = model.misfit()
    np.testing.assert_array_equal(table["judgments"], COLAS.sum(0) + COLAS.sum(1))
    np.testing.assert_allclose(table["outfit"], OUTFIT, atol=2e-3)
    np.testing.assert_allclose(table["infit"], INFIT, atol=2e-3)
    # their standard error of a score treats all other scores as known
    n = len(COLAS)
    P = 1 / (1 + np.exp(model.coef_ - model.coef_[:, None]))
    known = 1 / ((COLAS + COLAS.T) * P * (1 - P)).sum(axis=1)
    np.testing.assert_allclose(np.sqrt(known), ERRORS, atol=5e-4)
    theirs = 1 - known.mean() / np.var(model.coef_, ddof=1)
    assert theirs == pytest.approx(RELIABILITY, abs=2e-3)
    ours = model.reliability()
    assert 1 - ours.value == pytest.approx((1 - theirs) * (n - 1) / n, rel=0.01)


def test_the_judgments_still_needed_reach_the_target():
    once = colas().reliability(0.95)
    i, j = COLAS.nonzero()
    more = COLAS[i, j] * (1 + once.n_needed / COLAS.sum())
    model = Davidson(1e-6).fit(np.column_stack([i, j]), np.ones(len(i)), more)
    # the observed variance is the sum of the variances of the true scores and of the
    # former errors
    spread = model.coef_ @ model.coef_
    errors = (model.standard_errors() ** 2).sum()
    true = once.value * spread
    assert true / (true + errors) == pytest.approx(0.95, abs=1e-3)
    assert once.n_needed > 0 == colas().reliability(0.5).n_needed
    assert once.separation**2 == pytest.approx(once.value / (1 - once.value))
    equal = Davidson().fit([[0, 1], [1, 0], [1, 2], [2, 1]], [1, 1, 1, 1])
    assert equal.reliability() == (0.0, 0.0, np.inf)
    races = PlackettLuce().fit([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]] * 9)
    assert 0 < races.reliability().value < 1
    with pytest.raises(ValueError, match=r"alpha is 1\.0.*0\.1"):
        Davidson(1.0).fit([[0, 1]], [1]).reliability()


def test_a_judge_who_contradicts_the_others_has_the_largest_misfit():
    index, y, _, _ = judged(2, n=4, m=400)
    y = np.where(index[:, 0] < index[:, 1], 1, -1)
    judge = np.array([f"judge {k % 8}" for k in range(400)], dtype=object)
    y[::5] *= -1
    y[judge == "judge 3"] *= -1
    model = Davidson().fit(index, y, cluster=judge)
    table = model.misfit("judges")
    assert table["infit"].idxmax() == table["outfit"].idxmax() == "judge 3"
    assert table["judgments"].tolist() == [50.0] * 8
    with pytest.raises(ValueError, match="cluster"):
        Davidson().fit(index, y).misfit("judges")
    with pytest.raises(ValueError, match=r"of is 'pairs'.*'judges'"):
        model.misfit("pairs")


@pytest.mark.parametrize("kind", [">i2", ">i8", ">f8"])
def test_bytes_of_labels_and_weights_may_have_either_order(kind):
    index, y, weights, _ = judged(3)
    expected = Davidson().fit(index, y, weights).coef_
    found = Davidson().fit(index.astype(">i8"), y.astype(kind), weights.astype(">f8"))
    np.testing.assert_array_equal(found.coef_, expected)

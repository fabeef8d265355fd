"""Scaling of a query and of the training items, compared with the formula for each
case."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from preflearn.analogy.feature_scaling import DomainScaler

KINDS = ("min-max", "standard")


def scaled(kind, known, data):
    """Scale by the range, or by the mean and the standard deviation (n - 1), of the
    known items."""
    if kind == "min-max":
        return (data - known.min(axis=0)) / np.ptp(known, axis=0)
    return (data - known.mean(axis=0)) / known.std(axis=0, ddof=1)


def domains(seed, n=20, n_query=15, d=4):
    """Return training items and a query. Some features of the query are shifted far
    away."""
    rng = np.random.default_rng(seed)
    moved = np.array([0.0, 3.0, 0.0, 8.0])[:d]
    return rng.normal(size=(n, d)), 2 * rng.normal(size=(n_query, d)) + moved


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6))
def test_each_branch_has_its_own_formula(kind, seed):
    X, Q = domains(seed)
    own = scaled(kind, X, X)
    apart = scaled(kind, Q, Q)
    by_own = scaled(kind, X, Q)
    together = [scaled(kind, np.vstack([X, Q]), part) for part in (X, Q)]
    expected = {
        ("joint", "joint"): together,
        ("joint", "own"): (own, together[1]),
        ("apart", "joint"): (own, apart),
        ("apart", "own"): (own, apart),
        ("train", "joint"): (
            own,
            np.clip(by_own, 0, 1) if kind == "min-max" else by_own,
        ),
    }
    for (decision, training), wanted in expected.items():
        scaler = DomainScaler(kind, decision=decision, training=training).fit(X)
        for found, want in zip(scaler.both(Q), wanted, strict=True):
            np.testing.assert_allclose(found, want, atol=1e-12)
        np.testing.assert_allclose(scaler.transform(Q), wanted[1], atol=1e-12)
        np.testing.assert_allclose(scaler.fit_transform(X), own, atol=1e-12)


def p_values(X, Q):
    return np.array(
        [ks_2samp(x, q, method="asymp").pvalue for x, q in zip(X.T, Q.T, strict=True)]
    )


@given(seed=st.integers(0, 10**6), training=st.sampled_from(["joint", "own"]))
def test_the_test_decides_for_each_feature(seed, training):
    X, Q = domains(seed)
    joint = p_values(X, Q) >= 0.05
    assert not joint[3]  # shifted by eight standard deviations
    found = DomainScaler(training=training).fit(X).both(Q)
    both = {
        d: DomainScaler(decision=d, training=training).fit(X).both(Q)
        for d in ("joint", "apart")
    }
    for part in (0, 1):
        np.testing.assert_array_equal(
            found[part], np.where(joint, both["joint"][part], both["apart"][part])
        )


def test_one_decision_for_all_features_uses_the_bonferroni_correction():
    decided = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 4))
        Q = rng.normal([0.0, 0.0, 0.0, 0.9], size=(15, 4))
        joint = 4 * p_values(X, Q).min() >= 0.05
        wanted = DomainScaler(decision="joint" if joint else "apart").fit(X).both(Q)
        for found, want in zip(
            DomainScaler(per_feature=False).fit(X).both(Q), wanted, strict=True
        ):
            np.testing.assert_array_equal(found, want)
        decided.add(bool(joint))
    assert decided == {True, False}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("decision", ["ks", "joint", "apart", "train"])
def test_constant_features_become_0(kind, decision):
    # in floats, the mean of seven values 0.1 is not 0.1
    X = np.column_stack([np.full(7, 0.1), np.arange(7.0)])
    Q = np.column_stack([np.full(5, 0.1), np.arange(5.0)])
    found, query = DomainScaler(kind, decision=decision).fit(X).both(Q)
    np.testing.assert_allclose(found[:, 0], 0, atol=1e-15)
    np.testing.assert_allclose(query[:, 0], 0, atol=1e-15)
    assert query[-1, 1] > query[0, 1]
    other = (
        DomainScaler(kind, decision=decision).fit(X).transform(Q + np.array([5.0, 0.0]))
    )
    assert np.isfinite(other).all()
    if decision == "train":
        assert (other[:, 0] == 0).all()  # the range of the feature is unknown
    for tiny in (5e-324, 1e-200):
        scaler = DomainScaler(kind, decision=decision).fit([[0.0], [tiny]])
        both = scaler.both([[tiny], [0.0], [0.0]])
        far = scaler.both([[-1e100], [1e100]])
        assert not np.vstack(both).any()
        assert np.isfinite(np.vstack(far)).all()


@pytest.mark.parametrize(
    ("known", "query"),
    [
        ([0.0, 2e-200], [0.0, 2e-200]),
        ([0.0, 1e-160], [0.0, 1e-160]),
        ([0.0, 1.0], [1e16, 1e16 + 2]),
    ],
)
def test_two_close_numbers_have_mean_0_and_deviation_1(known, query):
    scaler = DomainScaler("standard", decision="apart").fit(np.reshape(known, (2, 1)))
    found = scaler.transform(np.reshape(query, (2, 1)))
    np.testing.assert_allclose(found.ravel(), [-np.sqrt(0.5), np.sqrt(0.5)])


def test_one_item_in_a_query():
    X, _ = domains(1)
    assert DomainScaler(decision="apart").fit(X).transform(X[:1]).tolist() == [
        [0.0] * 4
    ]
    inside = DomainScaler().fit(X).transform(X[:1])
    np.testing.assert_allclose(inside, scaled("min-max", X, X[:1]))


def test_changes_of_the_callers_items_do_not_matter():
    X, Q = domains(2)
    scaler = DomainScaler().fit(X)
    before = scaler.transform(Q)
    X[:] = 0
    np.testing.assert_array_equal(scaler.transform(Q), before)


@pytest.mark.parametrize(
    ("name", "value"),
    [("kind", "max"), ("decision", "test"), ("training", "query"), ("per_feature", 1)],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"^{name} is {value!r}"):
        DomainScaler().set_params(**{name: value}).fit([[0.0], [1.0]])


@pytest.mark.parametrize(
    ("X", "words"), [([[0.0, np.nan]], r"X\[0, 1\]"), ([[1e200, 0.0]], "X is 1e")]
)
def test_bad_items_are_named(X, words):
    with pytest.raises(ValueError, match=words):
        DomainScaler().fit(X)
    with pytest.raises(ValueError, match=words.replace("X", "Q", 1)):
        DomainScaler().fit([[0.0, 1.0], [1.0, 2.0]]).transform(X)


def test_a_query_with_other_features_is_rejected():
    with pytest.raises(ValueError, match=r"Q has 3 features.* 4"):
        DomainScaler().fit(domains(0)[0]).transform(np.zeros((2, 3)))

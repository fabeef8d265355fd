import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from sklearn.base import clone

from preflearn.analogy.scaling import DomainScaler

KINDS = ("min-max", "standard")


def by(kind, known, data):
    """With the numbers of what is known; a standard deviation has n - 1 below the root."""
    if kind == "min-max":
        return (data - known.min(axis=0)) / np.ptp(known, axis=0)
    return (data - known.mean(axis=0)) / known.std(axis=0, ddof=1)


def domains(seed, n=20, n_query=15, d=4):
    """Training items, and a query of which some features have moved far away."""
    rng = np.random.default_rng(seed)
    moved = np.array([0.0, 3.0, 0.0, 8.0])[:d]
    return rng.normal(size=(n, d)), 2 * rng.normal(size=(n_query, d)) + moved


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6))
def test_each_branch_by_its_own_formula(kind, seed):
    X, Q = domains(seed)
    own, apart, by_own = by(kind, X, X), by(kind, Q, Q), by(kind, X, Q)
    together = [by(kind, np.vstack([X, Q]), part) for part in (X, Q)]
    expected = {
        ("joint", "joint"): together,
        ("joint", "own"): (own, together[1]),
        ("apart", "joint"): (own, apart),
        ("apart", "own"): (own, apart),
        ("train", "joint"): (own, np.clip(by_own, 0, 1) if kind == "min-max" else by_own),
    }
    for (decision, training), wanted in expected.items():
        scaler = DomainScaler(kind, decision=decision, training=training).fit(X)
        for found, want in zip(scaler.both(Q), wanted, strict=True):
            np.testing.assert_allclose(found, want, atol=1e-12)
        np.testing.assert_allclose(scaler.transform(Q), wanted[1], atol=1e-12)
        np.testing.assert_allclose(scaler.fit_transform(X), own, atol=1e-12)


def p_values(X, Q):
    return np.array([ks_2samp(x, q, method="asymp").pvalue for x, q in zip(X.T, Q.T, strict=True)])


@given(seed=st.integers(0, 10**6), training=st.sampled_from(["joint", "own"]))
def test_the_test_decides_for_each_feature(seed, training):
    X, Q = domains(seed)
    joint = p_values(X, Q) >= 0.05
    assert not joint[3]  # eight standard deviations away
    found = DomainScaler(training=training).fit(X).both(Q)
    both = {d: DomainScaler(decision=d, training=training).fit(X).both(Q) for d in ("joint", "apart")}
    for part in (0, 1):
        np.testing.assert_array_equal(found[part], np.where(joint, both["joint"][part], both["apart"][part]))


def test_one_decision_for_all_is_that_of_bonferroni():
    decided = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, Q = rng.normal(size=(20, 4)), rng.normal([0.0, 0.0, 0.0, 0.9], size=(15, 4))
        joint = 4 * p_values(X, Q).min() >= 0.05
        wanted = DomainScaler(decision="joint" if joint else "apart").fit(X).both(Q)
        for found, want in zip(DomainScaler(per_feature=False).fit(X).both(Q), wanted, strict=True):
            np.testing.assert_array_equal(found, want)
        decided.add(bool(joint))
    assert decided == {True, False}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("decision", ["ks", "joint", "apart", "train"])
def test_constant_features_become_0(kind, decision):
    X = np.column_stack([np.full(7, 0.1), np.arange(7.0)])  # the mean of seven 0.1 is not 0.1
    Q = np.column_stack([np.full(5, 0.1), np.arange(5.0)])
    scaled, query = DomainScaler(kind, decision=decision).fit(X).both(Q)
    np.testing.assert_allclose(scaled[:, 0], 0, atol=1e-15)
    np.testing.assert_allclose(query[:, 0], 0, atol=1e-15)
    assert query[-1, 1] > query[0, 1]
    other = DomainScaler(kind, decision=decision).fit(X).transform(Q + np.array([5.0, 0.0]))
    assert np.isfinite(other).all()
    if decision == "train":
        assert (other[:, 0] == 0).all()  # nothing is known of its range


@pytest.mark.parametrize("spread", [2e-200, 1e-190, 1e-160])
def test_tiny_ranges_do_not_underflow(spread):
    scaler = DomainScaler("standard", decision="train").fit([[0.0], [spread]])
    root = np.sqrt(0.5)
    np.testing.assert_allclose(scaler.transform([[spread], [0.0], [spread]]), [[root], [-root], [root]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("decision", ["ks", "joint", "apart", "train"])
def test_smaller_ranges_are_constants(kind, decision):
    for tiny in (5e-324, 1e-200):
        both = DomainScaler(kind, decision=decision).fit([[0.0], [tiny]]).both([[tiny], [0.0], [0.0]])
        assert all((part == 0).all() for part in both)
        far = DomainScaler(kind, decision=decision).fit([[0.0], [tiny]]).both([[-1e100], [1e100]])
        assert all(np.isfinite(part).all() for part in far)


def test_neighbouring_numbers_have_mean_0_and_deviation_1():
    scaled = DomainScaler("standard", decision="apart").fit([[0.0], [1.0]]).transform([[1e16], [1e16 + 2]])
    np.testing.assert_allclose(scaled.ravel(), [-np.sqrt(0.5), np.sqrt(0.5)])


def test_one_item_in_a_query():
    X, _ = domains(1)
    assert DomainScaler(decision="apart").fit(X).transform(X[:1]).tolist() == [[0.0] * 4]
    inside = DomainScaler().fit(X).transform(X[:1])
    np.testing.assert_allclose(inside, by("min-max", X, X[:1]))


def test_the_training_items_are_kept_apart_from_the_callers():
    X, Q = domains(2)
    scaler = DomainScaler().fit(X)
    before = scaler.transform(Q)
    X[:] = 0
    np.testing.assert_array_equal(scaler.transform(Q), before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "max"}, "kind is 'max'; expected 'min-max' or 'standard'"),
        ({"decision": "test"}, "decision is 'test'; expected 'ks' or"),
        ({"training": "query"}, "training is 'query'; expected 'joint' or 'own'"),
        ({"per_feature": 1}, "per_feature is 1; expected True or False"),
    ],
)
def test_bad_parameters_are_named(change, message):
    scaler = clone(DomainScaler()).set_params(**change)
    with pytest.raises(ValueError, match=message):
        scaler.fit([[0.0], [1.0]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0.0, np.nan]], r"X\[0, 1\] is nan; expected finite numbers"),
        ([1.0, 2.0], r"X has shape \(2,\)"),
        (np.empty((0, 2)), "X is empty"),
        ([[1e200, 0.0]], "the largest value of X is 1e\\+200"),
    ],
)
def test_bad_items_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        DomainScaler().fit(X)
    with pytest.raises(ValueError, match=message.replace("X", "Q", 1)):
        DomainScaler().fit([[0.0, 1.0], [1.0, 2.0]]).transform(X)


def test_a_query_with_other_features_is_refused():
    with pytest.raises(ValueError, match="Q has 3 features; expected 4"):
        DomainScaler().fit(domains(0)[0]).transform(np.zeros((2, 3)))

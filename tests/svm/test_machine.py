"""What a fit remembers, and bad input to all machines."""

import pickle
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV, cross_val_score
from small_problems import DEFINITE, KERNELS, noisy_comparisons, same_comparisons

from preflearn.margins import MarginLP, MarginQP
from preflearn.pairs import Pairs
from preflearn.svm import LogisticCompare, LPCompare, SVMCompare, SVMRank

SQUARED = [SVMCompare(2.0), SVMRank(2.0), SVMRank(2.0, ties="duplicate")]


@pytest.mark.parametrize(
    ("machine", "kernel"),
    [*product(SQUARED, DEFINITE), *product([LPCompare(0.33)], KERNELS)],
)
def test_names_callables_and_gram_matrices_agree(machine, kernel):
    pairs, y = noisy_comparisons(3, m=60)
    new = np.random.default_rng(0).standard_normal((7, 3))

    def gram(X, Y):
        return pairwise_kernels(X, Y, metric=kernel, **KERNELS[kernel])

    by_name = clone(machine).set_params(kernel=kernel, **KERNELS[kernel]).fit(pairs, y)
    by_callable = clone(machine).set_params(kernel=gram).fit(pairs, y)
    given_gram = Pairs(gram(pairs.items, pairs.items), pairs.index)
    by_gram = clone(machine).set_params(kernel="precomputed").fit(given_gram, y)
    expected = by_name.rank_function(new)
    scale = max(1.0, np.abs(expected).max()) if isinstance(machine, LPCompare) else 1.0
    np.testing.assert_allclose(by_callable.rank_function(new), expected, atol=1e-6 * scale)
    found = by_gram.rank_function(gram(new, pairs.items))
    if isinstance(machine, LPCompare):
        np.testing.assert_allclose(np.ptp(found - expected), 0, atol=1e-5 * scale)
    else:
        np.testing.assert_allclose(found, expected, atol=1e-6)
        np.testing.assert_array_equal(by_gram.predict(given_gram), by_name.predict(pairs))


def optimum(machine):
    return machine.loss_ if isinstance(machine, LogisticCompare) else machine.objective_


SAME = [  # how near the optimum and the function stay, but for a program that several functions solve
    *(
        (machine, {"rel": 1e-7}, {"atol": 1e-5})
        for machine in (SVMCompare(0.7), SVMRank(0.7, ties="duplicate"))
    ),
    (LogisticCompare(1e-3, tol=1e-12), {"rel": 1e-10}, {"rtol": 0, "atol": 1e-7}),
    *((LPCompare(nu), {"abs": 1e-8}, {"atol": 1e9}) for nu in (0.13, 0.47, 0.9)),
]


@settings(max_examples=18)
@given(st.integers(0, 2**31), st.sampled_from(SAME))
def test_invariances(seed, case):
    """The same judgements in other words, also of copies of the items."""
    machine, of_optimum, of_function = case
    pairs, y = noisy_comparisons(seed, tie_share=0.7)
    fitted, rng = clone(machine).fit(pairs, y), np.random.default_rng(seed)
    twin = len(pairs.items) * (rng.random((len(y), 1)) < 0.5)
    copies = Pairs(np.vstack([pairs.items, pairs.items]), pairs.index + twin)
    for other, labels in [*same_comparisons(pairs, y, rng), (copies, y)]:
        again = clone(machine).fit(other, labels)
        z = again.decision_function(pairs)
        np.testing.assert_array_equal(z, -again.decision_function(pairs.swapped()))
        np.testing.assert_allclose(z, fitted.decision_function(pairs), **of_function)
        assert optimum(again) == pytest.approx(optimum(fitted), **of_optimum)
        assert again.dual_gap_ < 1e-8


@pytest.mark.parametrize(
    "machine",
    [
        *(SVMCompare(0.7), SVMRank(0.7), SVMRank(0.7, ties="duplicate")),
        *(LPCompare(0.37, 30.0), LogisticCompare(1e-3, tol=1e-12)),
    ],
    ids=repr,
)
def test_weights_count_pairs(machine):
    pairs, y = noisy_comparisons(4, tie_share=0.6)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    plain = clone(machine).fit(pairs[repeated], y[repeated])
    weighted = clone(machine).fit(pairs, y, sample_weight=weights)
    scaled = clone(machine).fit(pairs, y, sample_weight=1024 * weights)
    if "C" in machine.get_params():  # which is for each unit of weight
        scaled = clone(machine).set_params(C=0.35).fit(pairs, y, sample_weight=2.0 * weights)
    for fitted in (weighted, scaled):
        assert optimum(fitted) == pytest.approx(optimum(plain), rel=1e-9)
        z = fitted.decision_function(pairs)
        if isinstance(machine, LPCompare):  # whose optimum is reached by several functions
            slack = np.maximum(0, np.where(y == 0, np.abs(z) - 1, 1 - y * z) + fitted.margin_)
            worth = fitted.margin_ - weights @ slack / (0.37 * weights.sum())
            assert worth == pytest.approx(plain.objective_, abs=1e-8)
        else:
            np.testing.assert_allclose(z, plain.decision_function(pairs), atol=1e-6)
        if isinstance(machine, (SVMCompare, SVMRank)):
            assert fitted.tau_ == pytest.approx(plain.tau_, abs=1e-6)
    if hasattr(weighted, "dual_coef_"):
        assert (weighted.dual_coef_[weights == 0] == 0).all()


# ---- Estimators of scikit-learn

COMPARING = [SVMCompare(10.0), SVMRank(10.0), SVMRank(10.0, ties="duplicate"), LPCompare(0.3, 30.0)]
COMPARING += [LogisticCompare(1e-3, "rbf", n_components=40, random_state=0)]


@pytest.fixture
def noisy():
    return noisy_comparisons(8, m=90, n=40, noise=0.1)


@pytest.mark.filterwarnings("ignore::preflearn.ground.LeakageWarning")
@pytest.mark.parametrize("machine", COMPARING, ids=repr)
def test_scikit_learn_searches_clones_and_pickles(machine, noisy):
    pairs, y = noisy
    assert clone(machine).get_params() == machine.get_params()
    assert cross_val_score(clone(machine), pairs, y, cv=3).mean() > 0.5
    search = GridSearchCV(clone(machine), {"gamma": [0.1, 1.0]}, cv=3).fit(pairs, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    expected = best.rank_function(pairs.items)
    best.set_params(kernel="linear", gamma=7.0)  # for the next fit
    for fitted in (best, pickle.loads(pickle.dumps(best))):
        np.testing.assert_array_equal(fitted.rank_function(pairs.items), expected)
    if not isinstance(machine, LogisticCompare):  # which has no given Gram matrix
        K = pairwise_kernels(pairs.items, metric="rbf", gamma=0.2)
        by_gram, by_name = (
            clone(machine).set_params(kernel="precomputed"),
            clone(machine).set_params(gamma=0.2),
        )
        scores = [
            cross_val_score(by_gram, Pairs(K, pairs.index), y, cv=3),
            cross_val_score(by_name, pairs, y, cv=3),
        ]
        np.testing.assert_allclose(*scores)


@pytest.mark.parametrize("machine", COMPARING[:4], ids=repr)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_a_fit_leaves_its_input_alone(machine, kernel, noisy):
    pairs, y = noisy
    given_pairs = Pairs(pairs.items @ pairs.items.T, pairs.index) if kernel == "precomputed" else pairs
    items, labels = given_pairs.items.copy(), y.copy()
    fitted = clone(machine).set_params(kernel=kernel)
    assert fitted.fit(given_pairs, y) is fitted
    np.testing.assert_array_equal(given_pairs.items, items)
    np.testing.assert_array_equal(y, labels)


@pytest.mark.parametrize("machine", COMPARING, ids=repr)
def test_what_is_asked_is_what_was_fitted(machine, noisy):
    pairs, y = noisy
    with pytest.raises(NotFittedError):
        clone(machine).rank_function(pairs.items)
    fitted = clone(machine).fit(pairs, y)
    z = fitted.decision_function(pairs)
    np.testing.assert_array_equal(z, -fitted.decision_function(pairs.swapped()))
    with pytest.raises(ValueError, match="2 features; expected 3"):
        fitted.rank_function(pairs.items[:, :2])
    with pytest.raises(ValueError, match="overflow"):
        fitted.set_params(kernel="linear").fit(Pairs(pairs.items * 1e150, pairs.index), y)


# ---- Bad input

MACHINES = [SVMCompare(), SVMRank(), LPCompare(), LogisticCompare(), MarginLP(), MarginQP()]
PAIRS, Y = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1], [2, 0]]), [0, 1, 1]
NUMBERS = ["a", None, 1j, True, [], np.nan, np.inf, 10**400, -1, np.array([1.0, 2.0]), np.ma.masked]


def refused(machine, *arguments, **named):
    """The message of the ValueError of our own that a fit raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"expected|has only") as caught:
            clone(machine).fit(*arguments, **named)
    return str(caught.value)


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize(
    ("machine", "name"),
    [
        *((machine, name) for machine in (SVMCompare(), SVMRank()) for name in ("C", "tol")),
        *((LPCompare(), name) for name in ("nu", "radius")),
        *((LogisticCompare(), name) for name in ("alpha", "tol", "n_components")),
        *((machine, "gamma") for machine in MACHINES[:3]),
        (LogisticCompare(kernel="rbf"), "gamma"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_parameters_that_are_no_such_number(machine, name, value):
    assert refused(clone(machine).set_params(**{name: value}), PAIRS, Y).startswith(f"{name} is ")


@pytest.mark.parametrize("value", [None, 1, [], "cosin", ["rbf"], np.array(["rbf", "rbf"])], ids=repr)
@pytest.mark.parametrize("machine", MACHINES[:4], ids=lambda machine: type(machine).__name__)
def test_a_bad_kernel(machine, value):
    assert refused(clone(machine).set_params(kernel=value), PAIRS, Y).startswith("kernel is ")


@pytest.mark.parametrize(
    "matrix",
    [
        *(None, "a", 1.0, [[1.0, 2.0], [3.0]], [[1j] * 3] * 3, [[10**400] * 3] * 3),
        *(np.zeros((0, 0)), np.zeros((3, 2)), np.full((3, 3), np.nan)),
    ],
    ids=lambda value: repr(value)[:12],
)
@pytest.mark.parametrize("machine", MACHINES[:3], ids=lambda machine: type(machine).__name__)
def test_a_kernel_that_returns_no_matrix(machine, matrix):
    message = refused(clone(machine).set_params(kernel=lambda X, Y: matrix), PAIRS, Y)
    assert message.startswith("the kernel")


@pytest.mark.parametrize(
    ("pairs", "y"),
    [
        ([[[0.0], [1.0]], [[1.0]]], [0, 1]),
        ([[[None], [1.0]]], [1]),
        ([[["a"], ["b"]]], [1]),
        ([[[10**400], [1]]], [1]),
        ([[[1j], [1]]], [1]),
        (np.ma.array(np.ones((1, 2, 1)), mask=True), [1]),
        (PAIRS, [10**400, 0, 1]),
        (PAIRS, [None, 0, 1]),
        (PAIRS, ["1", "0", "1"]),
        (PAIRS, [[1], [0, 1]]),
        (PAIRS, [1j, 0, 1]),
        (PAIRS, np.ma.array([1, 0, 1], mask=[0, 1, 0])),
        (PAIRS, None),
    ],
)
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_pairs_and_labels_that_are_none(machine, pairs, y):
    refused(machine, pairs, y)


@pytest.mark.parametrize(
    "weights", [[-1, 1, 1], [np.nan, 1, 1], [1e308] * 3, [0] * 3, [1, 1], "abc", [None] * 3, [10**400] * 3]
)
@pytest.mark.parametrize("machine", MACHINES[:4], ids=lambda machine: type(machine).__name__)
def test_bad_weights(machine, weights):
    assert "sample_weight" in refused(machine, PAIRS, Y, sample_weight=weights)


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        ([0, 0, 0], None, "only ties"),
        ([0, 1, 1], [1, 0, 0], "only ties"),
        ([1, 0, 2], None, "y[2]"),
        ([1, 0], None, "y has shape (2,); expected (3,)"),
        ([1, 1, -1], None, "only preferences"),
    ],
)
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_bad_labels(machine, y, weights, message):
    if isinstance(machine, SVMRank) and "preferences" in message:
        return  # which it takes
    named = {"sample_weight": weights} if machine in MACHINES[:4] else {}
    if named or weights is None:
        assert message.removeprefix("y") in refused(machine, PAIRS, y, **named)

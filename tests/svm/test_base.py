"""What a fitted model stores, and bad input to all SVMs."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels
from small_problems import DEFINITE, KERNELS, noisy_comparisons, same_comparisons

from preflearn.margins import MarginLP, MarginQP
from preflearn.pairs import Pairs
from preflearn.svm import LogisticCompare, LPCompare, SVMCompare, SVMRank

SQUARED = [SVMCompare(2.0), SVMRank(2.0), SVMRank(2.0, ties="duplicate")]


@pytest.mark.parametrize(
    ("model", "kernel"),
    [*product(SQUARED, DEFINITE), *product([LPCompare(0.33)], KERNELS)],
)
def test_names_callables_and_gram_matrices_agree(model, kernel):
    pairs, y = noisy_comparisons(3, m=60)
    new = np.random.default_rng(0).standard_normal((7, 3))

    def gram(X, Y):
        return pairwise_kernels(X, Y, metric=kernel, **KERNELS[kernel])

    by_name = clone(model).set_params(kernel=kernel, **KERNELS[kernel]).fit(pairs, y)
    by_callable = clone(model).set_params(kernel=gram).fit(pairs, y)
    by_gram = clone(model).set_params(kernel="precomputed")
    by_gram.fit(Pairs(gram(pairs.items, pairs.items), pairs.index), y)
    expected = by_name.rank_function(new)
    atol = 1e-5 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(by_callable.rank_function(new), expected, atol=atol)
    gap = by_gram.rank_function(gram(new, pairs.items)) - expected
    np.testing.assert_allclose(gap, gap.mean(), atol=atol)


def optimum(model):
    return model.loss_ if isinstance(model, LogisticCompare) else model.objective_


# Accuracy of the optimum and of the function. Several functions may solve the linear
# program.
SAME = [
    *(
        (model, {"rel": 1e-7}, {"atol": 1e-5})
        for model in (SVMCompare(0.7), SVMRank(0.7, ties="duplicate"))
    ),
    (LogisticCompare(1e-3, tol=1e-12), {"rel": 1e-10}, {"rtol": 0, "atol": 1e-7}),
    *((LPCompare(nu), {"abs": 1e-8}, {"atol": 1e9}) for nu in (0.13, 0.47, 0.9)),
]


@examples(18)
@given(st.integers(0, 2**31), st.sampled_from(SAME))
def test_invariances(seed, case):
    """The same comparisons in other representations, also with copies of the items."""
    model, of_optimum, of_function = case
    pairs, y = noisy_comparisons(seed, tie_share=0.7)
    fitted = clone(model).fit(pairs, y)
    rng = np.random.default_rng(seed)
    shift = len(pairs.items) * (rng.random((len(y), 1)) < 0.5)
    copies = Pairs(np.vstack([pairs.items, pairs.items]), pairs.index + shift)
    for other, labels in [*same_comparisons(pairs, y, rng), (copies, y)]:
        again = clone(model).fit(other, labels)
        z = again.decision_function(pairs)
        np.testing.assert_array_equal(z, -again.decision_function(pairs.swapped()))
        np.testing.assert_allclose(z, fitted.decision_function(pairs), **of_function)
        assert optimum(again) == pytest.approx(optimum(fitted), **of_optimum)
        assert again.dual_gap_ < 1e-8


@pytest.mark.parametrize(
    "model",
    [
        *(SVMCompare(0.7), SVMRank(0.7), SVMRank(0.7, ties="duplicate")),
        *(LPCompare(0.37, 30.0), LogisticCompare(1e-3, tol=1e-12)),
    ],
    ids=repr,
)
def test_weights_count_pairs(model):
    pairs, y = noisy_comparisons(4, tie_share=0.6)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    plain = clone(model).fit(pairs[repeated], y[repeated])
    weighted = clone(model).fit(pairs, y, sample_weight=weights)
    scaled = clone(model).fit(pairs, y, sample_weight=1024 * weights)
    if "C" in model.get_params():  # C is the cost per unit of weight
        scaled = (
            clone(model).set_params(C=0.35).fit(pairs, y, sample_weight=2.0 * weights)
        )
    for fitted in (weighted, scaled):
        assert optimum(fitted) == pytest.approx(optimum(plain), rel=1e-9)
        z = fitted.decision_function(pairs)
        # several functions may have the optimal value
        if isinstance(model, LPCompare):
            slack = np.maximum(
                0, np.where(y == 0, np.abs(z) - 1, 1 - y * z) + fitted.margin_
            )
            worth = fitted.margin_ - weights @ slack / (0.37 * weights.sum())
            assert worth == pytest.approx(plain.objective_, abs=1e-8)
        else:
            np.testing.assert_allclose(z, plain.decision_function(pairs), atol=1e-6)
        if isinstance(model, (SVMCompare, SVMRank)):
            assert fitted.tau_ == pytest.approx(plain.tau_, abs=1e-6)
    if hasattr(weighted, "dual_coef_"):
        assert (weighted.dual_coef_[weights == 0] == 0).all()


COMPARING = [
    SVMCompare(10.0),
    SVMRank(10.0),
    SVMRank(10.0, ties="duplicate"),
    LPCompare(0.3, 30.0),
]
COMPARING += [LogisticCompare(1e-3, "rbf", n_components=40, random_state=0)]


PROBLEM = noisy_comparisons(8, m=90, n=40, noise=0.1)


@pytest.mark.parametrize("model", COMPARING, ids=repr)
def test_a_fitted_model_survives_new_parameters_and_pickling(model):
    pairs, y = PROBLEM
    fitted = clone(model).set_params(gamma=0.3).fit(pairs, y)
    expected = fitted.rank_function(pairs.items)
    fitted.set_params(kernel="linear", gamma=7.0)  # these apply to the next fit only
    for model in (fitted, pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(model.rank_function(pairs.items), expected)


@pytest.mark.parametrize(
    ("model", "kernel"),
    [*product(COMPARING, ["rbf", "linear"]), *product(COMPARING[:-1], ["precomputed"])],
)
def test_a_fit_returns_the_estimator_and_leaves_its_input_alone(model, kernel):
    pairs, y = PROBLEM
    model = clone(model).set_params(kernel=kernel)
    if kernel == "precomputed":
        pairs = Pairs(pairs.items @ pairs.items.T, pairs.index)
    items = pairs.items.copy()
    labels = y.copy()
    with pytest.raises(NotFittedError):
        model.rank_function(items)
    assert model.fit(pairs, y) is model
    np.testing.assert_array_equal(pairs.items, items)
    np.testing.assert_array_equal(y, labels)
    with pytest.raises(ValueError, match=rf"\b2\b.*\b{items.shape[1]}\b"):
        model.rank_function(items[:, :2])
    if kernel == "linear":
        with pytest.raises(ValueError, match="overflow"):
            model.fit(Pairs(items * 1e150, pairs.index), y)


# ---- Bad input

PAIRS = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1], [2, 0]])
Y = [0, 1, 1]
KERNELLED = [SVMCompare(), SVMRank(), LPCompare()]
LOGISTIC = [LogisticCompare(kernel="rbf")]
MARGINS = [MarginLP(), MarginQP()]
BAD_PARAMETERS = [
    *((KERNELLED[:2], name, -1) for name in ("C", "tol")),
    *(
        (KERNELLED[2:], name, value)
        for name, value in (("nu", 0), ("nu", 1.5), ("radius", -1))
    ),
    *(
        (LOGISTIC, name, -1)
        for name in ("alpha", "tol", "n_components", "random_state", "tie_weight")
    ),
    *((KERNELLED[:1], "tie_weight", value) for value in (0, "balanced", np.nan)),
    (KERNELLED[1:2], "ties", "drop"),
    (KERNELLED + LOGISTIC, "gamma", -1),
    (KERNELLED + LOGISTIC, "kernel", "cosin"),
    (KERNELLED, "kernel", lambda X, Y: np.zeros((3, 2))),
]
BAD_DATA = [
    (KERNELLED + LOGISTIC + MARGINS, {"pairs": [[["a"], ["b"]]], "y": [1]}, "'a'"),
    (KERNELLED + LOGISTIC + MARGINS, {"y": [1, 0]}, r"shape \(2,\).*\(3,\)"),
    (KERNELLED + LOGISTIC + MARGINS, {"y": [1, 0, 2]}, r"y\[2\] is 2"),
    (KERNELLED + LOGISTIC + MARGINS, {"y": [0, 0, 0]}, "only ties"),
    (KERNELLED[2:] + LOGISTIC + MARGINS, {"y": [1, 1, -1]}, "only preferences"),
    (KERNELLED[:1], {"y": [1, 1, -1]}, "only preferences.*SVMRank"),
    (KERNELLED + LOGISTIC, {"sample_weight": [1, 0, 0]}, "only ties"),
    (KERNELLED + LOGISTIC, {"sample_weight": [-1, 1, 1]}, "sample_weight"),
]


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        (model, name, value)
        for models, name, value in BAD_PARAMETERS
        for model in models
    ],
)
def test_bad_parameters_are_named(model, name, value):
    with pytest.raises(ValueError, match=name):
        clone(model).set_params(**{name: value}).fit(PAIRS, Y)


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [(model, data, message) for models, data, message in BAD_DATA for model in models],
)
def test_bad_data_are_named(model, data, message):
    with pytest.raises(ValueError, match=message):
        clone(model).fit(**{"pairs": PAIRS, "y": Y} | data)

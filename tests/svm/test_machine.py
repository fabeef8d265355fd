"""What a fit remembers, and bad input to all machines."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from preflearn.margins import MarginLP, MarginQP
from preflearn.pairs import Pairs
from preflearn.svm import LogisticCompare, LPCompare, SVMCompare, SVMRank


def compared(seed, m, n, p=3):
    rng = np.random.default_rng(seed)
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    y = rng.choice([-1, 0, 0, 0, 1], m)
    y[:2] = [1, 0]
    return Pairs(rng.standard_normal((n, p)), index), y


@pytest.mark.parametrize("machine", [SVMCompare(), SVMRank(), LPCompare(), LogisticCompare(kernel="rbf")])
def test_a_fit_remembers_its_kernel(machine):
    """New parameters are for the next fit; a copy through pickle is the same function."""
    pairs, y = compared(1, 40, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few passes are not enough
        fitted = clone(machine).set_params(gamma=0.3).fit(pairs, y)
    expected = fitted.rank_function(pairs.items)
    fitted.set_params(kernel="linear", gamma=7.0)
    np.testing.assert_array_equal(fitted.rank_function(pairs.items), expected)
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.rank_function(pairs.items), expected)


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


@pytest.mark.parametrize(
    "value",
    ["a", -1, 2**32, 1.5, np.random.default_rng(0)],
    ids=lambda value: type(value).__name__ + str(value)[:10],
)
def test_a_bad_random_state(value):
    message = refused(LogisticCompare(random_state=value), PAIRS, Y)
    assert message.startswith("random_state is ")


@pytest.mark.parametrize("value", [None, 1, [], "cosin", ["rbf"], np.array(["rbf", "rbf"])], ids=repr)
@pytest.mark.parametrize("machine", MACHINES[:4], ids=lambda machine: type(machine).__name__)
def test_a_bad_kernel(machine, value):
    assert refused(clone(machine).set_params(kernel=value), PAIRS, Y).startswith("kernel is ")


@pytest.mark.parametrize(
    "matrix",
    [None, "a", 1.0, [[1.0, 2.0], [3.0]], [[1j] * 3] * 3, [[10**400] * 3] * 3, np.zeros((0, 0))],
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

"""Bad input raises a ValueError that names the argument. All numeric types are
accepted."""

from __future__ import annotations

import math
import re
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from preflearn import plots
from preflearn.analogy import AnKerRank
from preflearn.core import ItemKFold
from preflearn.core.kernels import (
    check_kernel,
    kernel_matrix,
    kernel_parameters,
    scale_gamma,
)
from preflearn.core.validation import (
    as_array,
    as_floats,
    as_real,
    check_array,
    check_count,
    check_labels,
    check_query_ids,
    check_real,
    check_selection,
    check_weights,
    generator,
    legacy_rng,
    short_repr,
)
from preflearn.datasets import four_items, simulate_norm_pairs
from preflearn.datasets.simulations import squared_norm
from preflearn.dynamics import Matern32, Wiener
from preflearn.matches import Matches
from preflearn.metrics import threshold
from preflearn.pairs import Pairs
from preflearn.path.validation import ItemFolds, cross_validated_path
from preflearn.pursuit import RankingPursuit, SparseRankRLS
from preflearn.ranking import Davidson, OrdinalComparison, RankNet
from preflearn.ratings import Elo, Glicko, TrueSkill
from preflearn.svm import SVMRank
from preflearn.svm.logistic import LogisticCompare

HUGE = 10**400  # a finite integer for which float() raises an OverflowError
UNPRINTABLE = 10**5000  # repr() of this integer raises a ValueError
LONG = np.longdouble(10) ** 400  # finite where floats may be longer than 64 bits
PAIRS = Pairs([[1.0], [2.0], [4.0]], [[0, 1], [1, 2], [2, 0]])
Y = [1, 0, -1]
FRAME = pd.DataFrame(
    {"first": list("abc"), "second": list("bca"), "time": [0, 1, 2], "outcome": Y}
)
MATCHES, _ = Matches.from_frame(FRAME)
ONES = np.ones((3, 2))
UNIT = np.linspace(0, 1, 24).reshape(12, 2) ** [1, 2]
SCORES = -np.array([3, 1, 2, 4, 6, 5, 7, 8, 12, 10, 11, 9])
MANY = Pairs.from_scores(UNIT, SCORES)
MATERN = Matern32().state_space()


def rejects(call, name):
    """Check that a call raises a ValueError whose message names the argument."""
    with warnings.catch_warnings():
        # casting silently, or with a warning, does not count as rejecting
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=rf"(?<!\w){re.escape(name)}(?!\w)"):
            call()


# ---- Arrays

MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
NOT_ARRAYS = [[0, [1, 2]], MASKED, sparse.csr_array([[1.0]])]
NOT_FLOATS = [
    [[1.0, HUGE]],
    [UNPRINTABLE],
    [np.complex128(1), {}],
    [1, 2j],
    np.array([1, "2024"], "M8[D]"),
    ["a", 1],
    "a",
]
TOO_LARGE = [["1.0", "1e400"], [1.0, Decimal("-1e400")], [1.0, LONG]]
NOT_FINITE = [[1.0, math.nan], [-math.inf, 1.0], [], 1.0, [[1.0]], *TOO_LARGE]
NOT_LABELS = [
    *(
        [1, HUGE, 0],
        [1, LONG, 0],
        [1, 1j, 0],
        [True, False, True],
        [1, True, None],
        [1, [0], 1],
    ),
    *(
        np.ma.array(Y, mask=[0, 0, 1]),
        [1, 0],
        [[1, 0, -1]],
        list("abc"),
        [1, 0, 0.5],
        [1, 0, math.nan],
    ),
    *(
        np.array([0, wrong, 1], kind)
        for wrong in (-128, -2, 2, 127)
        for kind in ("i1", "i8", "f8")
    ),
]
NOT_QUERY_IDS = [
    [1, [2]],
    np.array([1, "a"], object),
    (1, "1"),
    [pd.NaT, 1],
    ["a", math.nan],
    [1],
]
NOT_WEIGHTS = [[1, -2], [1, 1e200], [0, 0], [1, 1, 1], [1, math.nan]]
CHECKS = {
    as_array: (NOT_ARRAYS, ["x"]),
    as_floats: (NOT_FLOATS, ["x"]),
    check_array: (NOT_FINITE, ["x", ("n",)]),
    check_labels: (NOT_LABELS, [3]),
    check_query_ids: (NOT_QUERY_IDS, [2]),
    check_weights: (NOT_WEIGHTS, [2]),
}
NAMES = {check_labels: "y", check_query_ids: "qid", check_weights: "sample_weight"}


@pytest.mark.parametrize(
    ("check", "values"),
    [(check, values) for check, (wrong, _) in CHECKS.items() for values in wrong],
)
def test_bad_arrays_are_rejected_and_named(check, values):
    rejects(lambda: check(values, *CHECKS[check][1]), NAMES.get(check, "x"))


def test_numbers_of_any_kind_are_accepted():
    numbers = [
        as_real(x) for x in (2, np.int8(2), np.float32(2), Fraction(2), HUGE, -HUGE)
    ]
    assert numbers == [2.0, 2.0, 2.0, 2.0, math.inf, -math.inf]
    not_numbers = [as_real(x) for x in (True, np.bool_(True), "2", None, 2j, [2])]
    np.testing.assert_array_equal(not_numbers, math.nan)
    assert check_count(np.float64(4), "n", 2) == 4
    assert check_weights(np.array([True, False, True]), 3).tolist() == [1, 0, 1]
    # no value of this array is masked
    assert check_weights(np.ma.array([1, 2]), 2).tolist() == [1, 2]
    assert check_labels(np.array(Y, dtype=object), 3).tolist() == Y
    assert check_labels(pd.Series([1, 0], dtype="Int64"), 2).tolist() == [1, 0]
    assert check_query_ids(pd.Series(["a", "b"]), 2).tolist() == ["a", "b"]
    assert check_query_ids(["b", "a"], 2).tolist() == ["b", "a"]
    assert threshold([5.0, -5.0], HUGE).tolist() == [0, 0]


def test_fractions_are_accepted_as_parameters():
    glicko = Glicko(
        deviation=Fraction(350), c=Fraction(5, 2), period=Fraction(3, 2)
    ).fit(MATCHES, Y)
    expected = (
        Glicko(deviation=350, c=2.5, period=1.5).fit(MATCHES, Y).predict_proba(MATCHES)
    )
    np.testing.assert_array_equal(glicko.predict_proba(MATCHES), expected)


def test_values_in_messages_are_one_short_line():
    class Unprintable:
        def __repr__(self):
            raise RuntimeError

    assert short_repr(np.arange(4).reshape(2, 2)) == "array([[0, 1], [2, 3]])"
    assert "Unprintable" in short_repr(Unprintable())
    assert len(short_repr("x" * 100)) == 60


@pytest.mark.parametrize(
    "key",
    [
        "a",
        None,
        HUGE,
        1.0,
        [0.0, 1.0],
        [[0, 1]],
        ([0], [1, 2]),
        [[0], [1, 2]],
        np.s_[::0],
        np.s_["a":],
    ],
)
def test_keys_that_select_no_rows_are_rejected(key):
    rejects(lambda: check_selection(key, 3), "key")


@pytest.mark.parametrize("rows", [PAIRS, MATCHES], ids=["pairs", "matches"])
def test_rows_are_selected_and_iterated_like_those_of_a_list(rows):
    rejects(lambda: rows["a"], "key")
    with pytest.raises(IndexError):
        rows[3]
    assert [len(row) for row in rows] == [1, 1, 1]


# ---- Parameters


@pytest.mark.parametrize(
    "wrong",
    [
        True,
        "a",
        None,
        [1],
        np.ones(2),
        np.timedelta64(1, "D"),
        math.nan,
        math.inf,
        HUGE,
        LONG,
        0.5,
    ],
)
def test_parameters_that_are_no_such_number_are_rejected(wrong):
    rejects(lambda: check_real(wrong, "tol", least=1, most=2), "tol")
    rejects(lambda: check_count(wrong, "n", 0), "n")


def refit(system, **later):
    """A fitted rating system whose parameters are changed afterwards."""
    return system.fit(MATCHES, Y).set_params(**later)


CALLS = [
    (lambda: PAIRS.B.differences([1.0, 2.0]), "f"),
    (lambda: PAIRS.B.laplacian(np.ones((3, 3))), "weights"),
    (lambda: PAIRS.B.gram(ONES), "K"),
    (lambda: threshold([1.0], -1), "tau"),
    (lambda: threshold([1.0], math.nan), "tau"),
    (lambda: threshold([1.0, math.nan], 1.0), "differences[1]"),
    (lambda: plots.style(["QP"]), "name is"),
    (lambda: Wiener(origin="first").state_space().initial(3.0), "time"),
    (lambda: MATERN.transitions(1.0, [3.0]), "start"),
    (lambda: MATERN.transitions([1.0, 2.0], [3.0]), "end"),
    (lambda: Davidson(1e300).fit(PAIRS, Y), "alpha"),
    (lambda: Davidson(1e-300).fit(PAIRS, Y), "alpha"),
    (lambda: OrdinalComparison(["logit"]).fit(PAIRS, Y), "link"),
    (lambda: RankingPursuit(2, mix=2).fit(PAIRS.items, [0, 1, 2]), "mix"),
    (lambda: AnKerRank(C=1e101).fit(PAIRS.items, [0, 1, 2]), "C"),
    (lambda: Elo(np.array(["fide"])).fit(MATCHES, Y), "k"),
    (lambda: refit(Elo(), scale="a").predict(MATCHES), "scale"),
    (lambda: refit(Elo(), k=None).partial_fit(MATCHES[2:], [1]), "k"),
    (lambda: refit(Glicko(), advantage=[1]).predict(MATCHES), "advantage"),
    (lambda: check_kernel(["rbf"]), "kernel"),
    (lambda: scale_gamma(None, ONES), "gamma"),
    (lambda: kernel_parameters("poly", ONES, 1.0, 0, 1.0), "degree"),
    (lambda: kernel_parameters("poly", ONES, 1.0, 3, "a"), "coef0"),
    (lambda: kernel_matrix("chi2", -ONES, ONES), "X[0, 0]"),
    (lambda: kernel_matrix(lambda X, Y: X @ Y.T * 1j, ONES, ONES), "kernel"),
    (lambda: kernel_matrix("poly", 1e200 * ONES, ONES, degree=3), "kernel"),
    (lambda: four_items(True), "n_features"),
    (lambda: squared_norm(ONES, np.array([1, 2])), "norm"),
]


@pytest.mark.parametrize(("call", "name"), CALLS)
def test_bad_arguments_are_rejected_and_named(call, name):
    rejects(call, name)


SYSTEMS = [Elo(), Glicko(), TrueSkill(margin=0.5)]


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_score_of_a_rating_system_is_its_fraction_of_right_predictions(system):
    fitted = clone(system).fit(MATCHES, Y)
    right = fitted.predict(MATCHES) == Y
    assert fitted.score(MATCHES, np.array(Y, object)) == pytest.approx(right.mean())
    rejects(lambda: fitted.score(MATCHES, ["a", "b", 1]), "y")


# ---- Random numbers

SOURCES = {
    "search": lambda source: simulate_norm_pairs("l2", 5, 0.5, source),
    "AnKerRank": lambda source: AnKerRank(random_state=source).fit(UNIT, SCORES),
    "RankNet": lambda source: RankNet(n_epochs=1, random_state=source).fit(
        UNIT, SCORES
    ),
    "ItemKFold": lambda source: list(
        ItemKFold(2, shuffle=True, random_state=source).split(MANY[0])
    ),
    "LogisticCompare": lambda source: LogisticCompare(
        kernel="rbf", n_components=2, random_state=source
    ).fit(PAIRS, Y),
    "SparseRankRLS": lambda source: SparseRankRLS(2, random_state=source).fit(
        UNIT, SCORES
    ),
    "SVMRank": lambda source: SVMRank("path", "linear", random_state=source).fit(
        UNIT, SCORES
    ),
    "cross_validated_path": lambda source: cross_validated_path(
        *MANY, folds=ItemFolds(2, None, source)
    ),
}
OPTIONAL = {
    "AnKerRank",
    "RankNet",
    "ItemKFold",
    "LogisticCompare",
    "SparseRankRLS",
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.filterwarnings("ignore")  # ignores warnings about few data
def test_a_seed_or_a_generator_is_the_source_of_randomness(name):
    def result(source):
        found = SOURCES[name](source)
        return repr(found.get_params(False) if hasattr(found, "get_params") else found)

    assert result(3) == result(np.int8(3)).replace("np.int8(3)", "3")
    rng = np.random.default_rng(3)
    before = str(rng.bit_generator.state)
    SOURCES[name](rng)
    assert str(rng.bit_generator.state) != before
    with pytest.raises(ValueError, match=r"\b(random_state|rng|seed)\b"):
        SOURCES[name](True)
    if name in OPTIONAL:
        SOURCES[name](None)
    else:
        with pytest.raises(ValueError, match=r"\b(random_state|rng|seed)\b"):
            SOURCES[name](None)


@pytest.mark.parametrize(
    "wrong",
    [
        True,
        0.1,
        3.0,
        [1],
        -1,
        2**53 + 1,
        "a",
        None,
        np.timedelta64(1, "D"),
        UNPRINTABLE,
    ],
    ids=short_repr,
)
def test_bad_seeds_are_rejected(wrong):
    rejects(lambda: generator(wrong, "seed"), "seed")
    rejects(lambda: legacy_rng(wrong, "seed"), "seed")


def test_scikit_learn_draws_the_same_numbers_from_the_same_seed():
    expected = check_random_state(7).permutation(20)
    np.testing.assert_array_equal(legacy_rng(7).permutation(20), expected)
    given = np.random.RandomState(7)
    assert legacy_rng(given) is given
    assert legacy_rng(2**32).random() != legacy_rng(2**32 + 1).random()
    rng = np.random.default_rng(5)
    # both calls advance the generator
    assert legacy_rng(rng).random() != legacy_rng(rng).random()
    assert generator(2**53).random() != generator(2**53 - 1).random()


# ---- Grids

TRAIN = (
    Pairs([[0.0], [0.4], [1.0], [1.1]], [[0, 1], [2, 0], [2, 3], [3, 1]]),
    [0, 1, 0, 1],
)

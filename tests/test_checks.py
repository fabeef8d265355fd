"""What NumPy, pandas and scikit-learn would say of bad input, or pass over, is said by us, with its place."""

from __future__ import annotations

import math
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
from preflearn.analogy import Able2Rank, AnKerRank
from preflearn.checks import (
    as_real,
    check_count,
    check_labels,
    check_query_ids,
    check_real,
    check_weights,
    generator,
    legacy_rng,
    shown,
)
from preflearn.datasets import four_items, simulate_norm_pairs
from preflearn.datasets.simulations import squared_norm
from preflearn.dynamics import Matern32, Wiener
from preflearn.ground import ItemKFold
from preflearn.ground.kernels import check_kernel, kernel_matrix, kernel_parameters, scale_gamma
from preflearn.matches import Matches
from preflearn.metrics import (
    best_threshold,
    comparison_loss,
    disagreement_error,
    ranking_loss,
    threshold,
)
from preflearn.pairs import Pairs, as_pairs
from preflearn.path.validation import cross_validated_path
from preflearn.pursuit import RankingPursuit, SparseRankRLS
from preflearn.ranking import Davidson, OrdinalComparison, RankNet
from preflearn.ratings import Elo, Glicko, TrueSkill
from preflearn.svm import SVMRank
from preflearn.svm.logistic import LogisticCompare
from studies.ch02_separable import simulate_separable_pairs
from studies.ch05_simulations import compare_methods, direction_auc
from studies.ch05_sushi import disjoint_samples, simulate_sushi
from studies.ch07_histories import match_features
from studies.ch07_protocol import season_tests
from studies.ch10_users import user_tasks
from studies.ch13_simulated import simulate_matches
from studies.ch14_sports import random_split
from studies.ch15_proportions import proportion_gram

HUGE = 10**400  # a finite integer, of which float makes an OverflowError
LONG = np.longdouble(10) ** 400  # finite where floats may be longer than 64 bits
TWO = np.ma.array([1.0, 2.0], mask=[False, True])
PAIRS = Pairs([[1.0], [2.0], [4.0]], [[0, 1], [1, 2], [2, 0]])
Y = [1, 0, -1]
FRAME = pd.DataFrame(
    {"first": list("abc"), "second": list("bca"), "time": [0, 1, 2], "outcome": Y, "advantage": True}
)
MATCHES, _ = Matches.from_frame(FRAME, advantage="advantage")
RATINGS = np.ones((3, 2))
UNIT = np.linspace(0, 1, 24).reshape(12, 2) ** [1, 2]
RANK = np.array([3, 1, 2, 4, 6, 5, 7, 8, 12, 10, 11, 9])
MANY = Pairs.from_rankings(UNIT, RANK)
TABLE = sparse.csr_array(np.arange(1, 121).reshape(12, 10) % 7 * (np.arange(12)[:, None] + np.arange(10) > 5))
MATERN = Matern32().state_space()


def fitted(system, **later):
    """A fitted rating system whose parameters are changed afterwards."""
    return system.fit(MATCHES, Y).set_params(**later)


ARRAYS = [
    (lambda: Pairs([[10**5000], [1]], [[0, 1]]), r"items\[0, 0\] is a int; expected a number"),
    (lambda: Pairs([[np.complex128(1), {}]], [[0, 1]]), r"items\[0, 0\] is .*1\+0j.*; expected a number"),
    (lambda: Pairs([[np.datetime64(1, "D")]], [[0, 1]]), r"items has dtype datetime64\[D\]; expected real"),
    (lambda: Pairs([[1.0], [2.0]], [[0, HUGE]]), "index has dtype object; expected integers"),
    (lambda: Pairs([[1.0], [2.0]], [[0], [1, 2]]), "index must be an array of numbers; expected rows of"),
    (lambda: Pairs([[1.0]] * 2, np.ma.array([[0, 1]], mask=[[0, 1]])), "index has 1 masked values"),
    (
        lambda: Pairs([[LONG], [1]], [[0, 1]]),
        r"items\[0, 0\] is .*e\+400.*; expected a number of at most 1.79",
    ),
    (lambda: as_pairs(np.ma.masked_equal(np.ones((1, 2, 1)), 1)), "pairs has 2 masked values; expected none"),
    (lambda: Pairs.from_scores([[1.0], [2.0]], TWO), "scores has 1 masked values; expected none"),
    (lambda: PAIRS.flipped([1, HUGE, 0]), r"y\[1\] is 10+\.\.\.; expected one of \[-1, 0, 1\]"),
    (lambda: PAIRS.flipped([1, LONG, 0]), r"y\[1\] is .*; expected one of \[-1, 0, 1\]"),
    (lambda: PAIRS.flipped([1, 1j, 0]), r"y\[0\] is \(1\+0j\); expected one of"),
    (lambda: PAIRS.flipped([True, False, True]), r"y\[0\] is True; expected one of"),
    (lambda: PAIRS.flipped([1, True, None]), r"y\[1\] is True; expected one of"),
    (lambda: PAIRS.flipped([1, [0], 1]), "y must be an array of numbers; expected rows of equal length"),
    (lambda: PAIRS.flipped(np.ma.array(Y, mask=[0, 0, 1])), "y has 1 masked values; expected none"),
    (lambda: PAIRS.B.differences([1.0, 2.0]), r"f has shape \(2,\); expected \(3,\)$"),
    (lambda: PAIRS.B.differences(np.ones((2, 1))), r"f has shape \(2, 1\); expected \(3, k\)"),
    (lambda: PAIRS.B.differences(["a", 1, 2]), r"f\[0\] is 'a'; expected a number"),
    (lambda: PAIRS.B.adjoint(1.0), r"v has shape \(\); expected \(3,\)"),
    (lambda: PAIRS.B.laplacian(np.ones((3, 3))), r"weights has shape \(3, 3\); expected \(3,\)"),
    (lambda: PAIRS.B.gram(np.ones((3, 2))), r"K has shape \(3, 2\); expected \(3, 3\)"),
    (lambda: comparison_loss(Y, Y, [1, HUGE, 1]), r"sample_weight\[1\] is 10+\.\.\.; expected a number"),
    (lambda: best_threshold(Y, [1, 2j, 3]), "differences has dtype complex128; expected real numbers"),
    (lambda: ranking_loss([1, 2], [1, 2], [1, [2]]), "qid must be an array of numbers; expected rows of"),
    (lambda: ranking_loss([1, 2], [1, 2], np.array([1, "a"], object)), "qid is .*; expected ids of one kind"),
    (lambda: ranking_loss([1, 2], [1, 2], [pd.NaT, 1]), r"qid\[0\] is NaT; expected a query id"),
    (lambda: ranking_loss([1, 2], [1, 2], ["a", math.nan]), r"qid\[1\] is nan; expected a query id"),
    (lambda: ranking_loss([1, 2], [1, 2], (1, "1")), r"qid is \(1, '1'\); expected ids of one kind"),
    (lambda: plots.style(["QP"]), r"the style is \['QP'\]; expected one of"),
    (
        lambda: threshold([1.0, LONG], 1.0),
        r"differences\[1\] is .*e\+400.*; expected a number of at most 1.797",
    ),
    (lambda: threshold([1.0, Decimal("-1e400")], 1.0), r"differences\[1\] is Decimal.*; expected a number"),
    (lambda: threshold(["1.0", "1e400"], 1.0), r"differences\[1\] is '1e400'; expected a number"),
    (lambda: PAIRS.B.adjoint(np.array([1, 2, LONG])), r"v\[2\] is .*e\+400.*; expected a number of at most"),
    (lambda: Matches([[1, -1]], [LONG], "ab"), r"time\[0\] is .*e\+400.*; expected a number of at most"),
    (lambda: Matches(sparse.csr_array([[1, LONG]]), [0], "ab"), r"design.data\[1\] is .*e\+400.*; expected"),
    (lambda: proportion_gram("min-max", [[HUGE, 0], [0, 1]]), r"pairs\[0, 0\] is .*; expected a number in"),
    (
        lambda: proportion_gram("min-max", [[10**5000, 0]]),
        r"pairs\[0, 0\] is a Fraction; expected a number in",
    ),
    (lambda: proportion_gram("min-max", [[0.0, LONG]]), r"pairs\[0, 1\] is .*e\+400.*; expected a number of"),
    (
        lambda: Wiener(origin="first").state_space().initial(3.0),
        r"time has shape \(\); expected \(n,\): first",
    ),
    (lambda: MATERN.transitions(1.0, [3.0]), r"start has shape \(\); expected \(n,\): times"),
    (lambda: MATERN.transitions([1.0, 2.0], [3.0]), r"end has shape \(1,\); expected \(2,\): times"),
    (lambda: MATERN.transitions([1.0], [3.0], 1.0), r"first has shape \(\); expected \(1,\): times"),
]
KEYS = [
    (lambda rows: rows["a"], "the key is 'a'; expected a slice, a mask, or row numbers"),
    (lambda rows: rows[None], "the key is None; expected a slice, a mask, or row numbers"),
    (lambda rows: rows[HUGE], r"the key is 10+\.\.\.; expected a slice"),
    (lambda rows: rows[1.0], "the key is 1.0; expected a slice"),
    (lambda rows: rows[[0.0, 1.0]], r"the key is \[0.0, 1.0\]; expected a slice"),
    (lambda rows: rows[[[0, 1]]], r"the key is \[\[0, 1\]\]; expected a slice"),
    (lambda rows: rows[[0], [1, 2]], r"the key is \(\[0\], \[1, 2\]\); expected a selection along the first"),
    (lambda rows: rows[[[0], [1, 2]]], "the key must be an array of numbers"),
    (
        lambda rows: rows[::0],
        r"the key is slice\(None, None, 0\); expected integers, and a step other than 0",
    ),
    (lambda rows: rows["a":], r"the key is slice\('a', None, None\); expected integers"),
]
PARAMETERS = [
    (lambda: threshold([1.0], "a"), "tau is 'a'; expected a threshold of at least 0"),
    (lambda: threshold([1.0], math.nan), "tau is nan; expected a threshold of at least 0"),
    (lambda: threshold([1.0, math.nan], 1.0), r"differences\[1\] is nan; expected numbers"),
    (lambda: disagreement_error(Y, Y, ties=np.array(["keep"])), "ties is array.*; expected 'keep' or 'drop'"),
    (lambda: Davidson(HUGE).fit(PAIRS, Y), r"alpha is 10+\.\.\.; expected a positive number"),
    (
        lambda: Davidson(1e300).fit(PAIRS, Y),
        "alpha is .*; expected a positive number, at most 1e.100$",
    ),
    (lambda: Davidson(1e-300).fit(PAIRS, Y), "alpha is 1e-300; expected a positive number, at least 1e-100$"),
    (lambda: Davidson(-1e300).fit(PAIRS, Y), r"alpha is -1e\+300; expected a positive number$"),
    (lambda: Elo(rate=2).fit(MATCHES, Y), "rate is 2; expected a number above 0 and at most 1$"),
    (lambda: Elo(initial=-1e200).fit(MATCHES, Y), "expected a finite number, at least -1e.100$"),
    (lambda: check_real(2, "tol", "a number from 0 to 1", 0, 1), "tol is 2; expected a number from 0 to 1$"),
    (lambda: check_real(math.inf, "C", "'path' or a number"), "expected 'path' or a finite number$"),
    (lambda: check_real(-math.inf, "coef0"), "coef0 is -inf; expected a finite number$"),
    (lambda: check_real(HUGE, "C", "a number"), r"expected a number, at most 1.79769e\+308$"),
    (lambda: RankingPursuit(2, mix=2).fit(PAIRS.items, [0, 1, 2]), r"0 \(ranking\) to 1 \(regression\)$"),
    (lambda: AnKerRank(C=1e101).fit(PAIRS.items, [1, 2, 3]), r"a number from 1e-100 to 1e\+100 or 'path'$"),
    (lambda: check_count(1e300, "n", 1), r"n is 1e\+300; expected a whole number of at least 1, at most 2"),
    (lambda: Davidson(LONG).fit(PAIRS, Y), "alpha is .*; expected a positive number, at most"),
    (lambda: Davidson(True).fit(PAIRS, Y), "alpha is True; expected a positive number"),
    (lambda: Davidson(np.ones(2)).fit(PAIRS, Y), r"alpha is array\(\[1., 1.\]\); expected a positive"),
    (lambda: Davidson(np.timedelta64(1, "D")).fit(PAIRS, Y), "alpha is .*timedelta64.*; expected a positive"),
    (
        lambda: OrdinalComparison(["logit"]).fit(PAIRS, Y),
        r"link is \['logit'\]; expected 'logit' or 'probit'",
    ),
    (lambda: Elo(np.array(["fide"])).fit(MATCHES, Y), "k is array.*; expected a positive number"),
    (lambda: Glicko(c=None).fit(MATCHES, Y), "c is None; expected a number of at least 0"),
    (lambda: Glicko(period=[1]).fit(MATCHES, Y), r"period is \[1\]; expected a positive number"),
    (lambda: fitted(Elo(), scale="a").predict(MATCHES), "scale is 'a'; expected a positive number"),
    (lambda: fitted(Elo(), k=None).partial_fit(MATCHES[2:], [1]), "k is None; expected a positive number"),
    (lambda: fitted(Glicko(), advantage=[1]).predict(MATCHES), r"advantage is \[1\]; expected a finite"),
    (lambda: check_kernel(["rbf"]), r"kernel is \['rbf'\]; expected a callable k\(X, Y\) or one of"),
    (lambda: scale_gamma(None, RATINGS), "gamma is None; expected 'scale' or a positive number"),
    (lambda: kernel_parameters("poly", RATINGS, 1.0, 0, 1.0), "degree is 0; expected a number of at least 1"),
    (lambda: kernel_parameters("poly", RATINGS, 1.0, 3, "a"), "coef0 is 'a'; expected a finite number"),
    (lambda: kernel_matrix("chi2", -RATINGS, RATINGS), r"X\[0, 0\] is -1.0; expected features of at least 0"),
    (lambda: kernel_matrix(lambda X, Y: X @ Y.T * 1j, RATINGS, RATINGS), "the kernel has dtype complex128"),
    (lambda: kernel_matrix(lambda X, Y: None, RATINGS, RATINGS), "the kernel is None; expected an array of"),
    (
        lambda: kernel_matrix("poly", 1e200 * RATINGS, RATINGS, degree=3),
        r"the kernel\[0, 0\] is inf; expected",
    ),
    (lambda: four_items(np.array([1, 2])), r"n_features is array\(\[1, 2\]\); expected 1 or 2"),
    (lambda: four_items(True), "n_features is True; expected 1 or 2"),
    (lambda: squared_norm(RATINGS, np.array([1, 2])), r"norm is array\(\[1, 2\]\); expected 1, 2, inf, or"),
    (lambda: squared_norm(RATINGS, True), "norm is True; expected 1, 2, inf, or"),
    (lambda: simulate_sushi(0, -1), "n_users is -1; expected a whole number of at least 1"),
    (lambda: simulate_sushi(0, math.inf), "n_users is inf; expected a whole number of at least 1"),
    (
        lambda: disjoint_samples(PAIRS, Y, [1, math.inf], 0.5, 0),
        r"sizes\[1\] is inf; expected a whole number",
    ),
    (lambda: disjoint_samples(PAIRS, Y, None, 0.5, 0), "sizes is None; expected the number of pairs of each"),
    (lambda: simulate_separable_pairs(5, 2, 0.5, 1.5, 0), "margin is 1.5; expected a number between 0 and 1"),
    (lambda: simulate_separable_pairs(5, 2, 0.5, 0.5, 0, [1]), r"scale has shape \(1,\); expected \(2,\)"),
    (lambda: simulate_matches(5, 2.5, 0), "n_players is 2.5; expected a whole number of at least 2"),
    (lambda: simulate_matches("5", 2, 0), "n_matches is '5'; expected a whole number of at least 1"),
    (lambda: random_split(math.inf, 0), "n_games is inf; expected a whole number of at least 0"),
    (lambda: user_tasks(TABLE, (1, 4), 2.5, 0), "n_tasks is 2.5; expected a whole number of at least 1"),
    (lambda: user_tasks(TABLE, 3, 2, 0), r"group has shape \(\); expected \(2,\)"),
]
OUTCOMES = (np.array([1, HUGE], object), np.array([None, 1], object), ["a", "b", 1], [1, [1], 0])
SCORED = [(system, labels) for system in (Elo(), Glicko(), TrueSkill(margin=0.5)) for labels in OUTCOMES]
SOURCES = {
    "search": lambda source: simulate_norm_pairs(2, 5, 0.5, source),
    "AnKerRank": lambda source: AnKerRank(random_state=source).fit(UNIT, RANK),
    "Able2Rank": lambda source: Able2Rank("cv", random_state=source).fit(UNIT, RANK),
    "RankNet": lambda source: RankNet(n_epochs=1, random_state=source).fit(UNIT, RANK),
    "ItemKFold": lambda source: list(ItemKFold(2, shuffle=True, random_state=source).split(MANY[0])),
    "LogisticCompare": lambda source: LogisticCompare(kernel="rbf", n_components=2, random_state=source).fit(
        PAIRS, Y
    ),
    "SparseRankRLS": lambda source: SparseRankRLS(2, random_state=source).fit(UNIT, RANK),
    "SVMRank": lambda source: SVMRank("path", "linear", random_state=source).fit(UNIT, RANK),
    "cross_validated_path": lambda source: cross_validated_path(*MANY, n_folds=2, random_state=source),
    "simulate_separable_pairs": lambda source: simulate_separable_pairs(5, 2, 0.5, 0.5, source),
    "simulate_sushi": lambda source: simulate_sushi(source, 20),
    "disjoint_samples": lambda source: disjoint_samples(PAIRS, Y, [1, 1], 0.5, source),
    "season_tests": lambda source: season_tests([1.0, 2.0], [0.5, 0.3], source),
    "user_tasks": lambda source: user_tasks(TABLE, (4, 12), 2, source, n_reference=3, least=4),
    "simulate_matches": lambda source: simulate_matches(9, 4, source),
    "random_split": lambda source: random_split(9, source),
}
OPTIONAL = {"AnKerRank", "Able2Rank", "RankNet", "ItemKFold", "LogisticCompare", "SparseRankRLS"}
FRAMES = [
    (lambda: Matches.from_frame([1, 2]), r"frame is \[1, 2\]; expected a DataFrame, one row a match"),
    (lambda: Matches.from_frame(FRAME, first=["first"]), r"expected also \[\['first'\]\], once each"),
    (lambda: Matches.from_frame(pd.concat([FRAME, FRAME["time"]], axis=1)), r"also \['time'\], once each"),
    (lambda: Matches.from_frame(FRAME, interactions=None), "interactions is None; expected True or False"),
    (lambda: Matches.from_frame(FRAME.assign(outcome=[1j, 0, 1])), "column 'outcome' has dtype complex128"),
    (lambda: Matches.from_frame(FRAME.assign(outcome=[HUGE, 0, 1])), "column 'outcome' has dtype object"),
    (lambda: Matches.from_frame(FRAME.assign(time=[0, 1, 1e200])), r"time\[2\] is 1e\+200; expected times"),
    (lambda: Matches([[1j, 0]], [0], "ab"), "design has dtype complex128; expected real numbers"),
    (lambda: Matches(sparse.csr_array([[1j, 0]]), [0], "ab"), "design.data has dtype complex128; expected"),
    (lambda: Matches([[HUGE, 0]], [0], "ab"), r"design\[0, 0\] is 10+\.\.\.; expected a number"),
    (lambda: Matches([[0, 1e200]], [0], "ab"), r"design\[0, 1\] is 1e\+200; expected finite numbers up to"),
    (lambda: Matches([[1, -1]], TWO[1:], "ab"), "time has 1 masked values; expected none"),
    (lambda: Matches([[1, -1]], [0], None), "features is None; expected hashable names, one a column"),
    (lambda: Matches([[1, -1]], [0], [["a"], ["b"]]), r"features is \[\['a'\], \['b'\]\]; expected hashable"),
    (lambda: match_features(None, RATINGS, RATINGS), "frame is .*; expected a DataFrame"),
    (lambda: match_features(FRAME, [[HUGE, 1]] * 3, RATINGS), r"elo\[0, 0\] is 10+\.\.\.; expected a number"),
]


def refused(call, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a cast in silence, or with a warning, is no refusal
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(("call", "message"), [*ARRAYS, *PARAMETERS, *FRAMES])
def test_bad_input_is_refused_in_our_words(call, message):
    refused(call, message)


@pytest.mark.parametrize("rows", [PAIRS, MATCHES], ids=["pairs", "matches"])
@pytest.mark.parametrize(("select", "message"), KEYS)
def test_odd_keys_are_refused(rows, select, message):
    refused(lambda: select(rows), message)


@pytest.mark.parametrize("rows", [PAIRS, MATCHES], ids=["pairs", "matches"])
def test_a_row_out_of_range_ends_a_loop_like_that_of_a_list(rows):
    with pytest.raises(IndexError):
        rows[3]
    assert [len(row) for row in rows] == [1, 1, 1]


def test_numbers_of_any_kind_are_numbers():
    assert [as_real(x) for x in (2, np.int8(2), np.float32(2), Fraction(2), HUGE, -HUGE)] == [
        *[2.0] * 4,
        math.inf,
        -math.inf,
    ]
    assert all(math.isnan(as_real(x)) for x in (True, np.bool_(True), "2", None, 2j, [2]))
    assert check_count(np.float64(4), "n", 2) == 4
    assert check_weights(np.array([True, False, True]), 3).tolist() == [1, 0, 1]
    assert check_weights(np.ma.array([1, 2]), 2).tolist() == [1, 2]  # nothing is masked
    assert check_labels(np.array([1, 0, -1], dtype=object), 3).tolist() == Y
    assert check_labels(pd.Series([1, 0], dtype="Int64"), 2).tolist() == [1, 0]
    assert check_query_ids(pd.Series(["a", "b"]), 2).tolist() == ["a", "b"]
    assert check_query_ids(["b", "a"], 2).tolist() == ["b", "a"]
    assert threshold([5.0, -5.0], HUGE).tolist() == [0, 0]


def test_fractions_as_parameters_give_floats():
    half = fitted(Elo(), advantage=Fraction(1, 2), scale=Fraction(400)).decision_function(MATCHES)
    assert half.dtype == np.float64
    glicko = Glicko(deviation=Fraction(350), c=Fraction(5, 2), period=Fraction(3, 2)).fit(MATCHES, Y)
    expected = Glicko(deviation=350, c=2.5, period=1.5).fit(MATCHES, Y)
    np.testing.assert_array_equal(glicko.predict_proba(MATCHES), expected.predict_proba(MATCHES))


def test_what_is_shown_is_one_short_line():
    class Silent:
        def __repr__(self):
            raise RuntimeError

    assert shown(np.arange(4).reshape(2, 2)) == "array([[0, 1], [2, 3]])"
    assert shown(Silent()) == "a Silent"
    assert shown("x" * 100) == "'" + "x" * 56 + "..."


@pytest.mark.parametrize(("system", "labels"), SCORED)
def test_labels_that_are_none_have_no_score(system, labels):
    refused(lambda: clone(system).fit(MATCHES, Y).score(MATCHES, labels), "^y.*; expected")


@pytest.mark.parametrize("system", [Elo(), Glicko(), TrueSkill(margin=0.5)])
def test_the_score_of_a_rating_system_is_the_share_of_its_right_predictions(system):
    fitted_one = clone(system).fit(MATCHES, Y)
    right, weights = fitted_one.predict(MATCHES) == Y, np.array([1.0, 2.0, 5.0])
    assert fitted_one.score(MATCHES, np.array(Y, object)) == pytest.approx(right.mean())
    assert fitted_one.score(MATCHES, Y, weights) == pytest.approx((weights * right).sum() / 8)


@pytest.mark.parametrize("take", [pytest.param(call, id=name) for name, call in SOURCES.items()])
@pytest.mark.parametrize(
    "wrong", [True, 0.1, 1e-100, 3.0, [1], -1, 2**53 + 1, "a", np.timedelta64(1, "D"), 10**5000], ids=shown
)
def test_what_is_no_source_of_randomness_is_refused(take, wrong):
    refused(
        lambda: take(wrong), r"^(random_state|rng|seed) is .*; expected a seed, a whole number from 0 to 2"
    )


@pytest.mark.parametrize("name", SOURCES)
def test_a_seed_and_a_generator_are_sources_of_randomness(name):
    def told(source):
        found = SOURCES[name](source)
        return repr(found.get_params(False) if hasattr(found, "get_params") else found)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a few data
        assert told(3) == told(np.int8(3)).replace("np.int8(3)", "3")
        SOURCES[name](2**53)
        rng = np.random.default_rng(3)
        before = str(rng.bit_generator.state)
        SOURCES[name](rng)
        assert str(rng.bit_generator.state) != before, "it draws from the one that it is given"
        if name in OPTIONAL:
            SOURCES[name](None)
        else:
            refused(lambda: SOURCES[name](None), "is None; expected a seed, a whole number .* Generator$")


def test_the_draws_of_scikit_learn_stay_what_they_were():
    expected = check_random_state(7).permutation(20)
    np.testing.assert_array_equal(legacy_rng(7).permutation(20), expected)
    given = np.random.RandomState(7)
    assert legacy_rng(given) is given
    one, other = (legacy_rng(seed).random() for seed in (2**32, 2**32 + 1))
    assert one != other
    rng = np.random.default_rng(5)
    assert legacy_rng(rng).random() != legacy_rng(rng).random(), "the stream goes on"
    assert generator(2**53).random() != generator(2**53 - 1).random()


TRAIN = Pairs([[0.0], [0.4], [1.0], [1.1]], [[0, 1], [2, 0], [2, 3], [3, 1]]), [0, 1, 0, 1]
GRIDS = [
    ([], "_grid is empty"),
    ([1.0, math.nan], r"_grid\[1\] is nan; expected finite"),
    ([0.0, 1.0], r"_grid\[0\] is 0.0; expected a number from 1e-100"),
    ([10.0, 1.0], r"_grid\[1\] is 1.0; expected a number .*, larger than the one before"),
    (["a"], r"_grid\[0\] is 'a'; expected a number"),
    (1.0, r"_grid has shape \(\); expected \(k,\): increasing positive numbers"),
    (None, "_grid is None; expected an array of numbers"),
    ([HUGE], r"_grid\[0\] is 10+\.\.\.; expected a number"),
    (RATINGS, r"_grid has shape \(3, 2\); expected \(k,\)"),
]


@pytest.mark.parametrize("search", [direction_auc, compare_methods])
def test_a_search_looks_at_its_grids_and_labels(search):
    grid = [1.0, 10.0], [0.1, 1.0]
    assert search(TRAIN, TRAIN, TRAIN, *grid)
    for wrong, message in GRIDS:
        refused(lambda wrong=wrong: search(TRAIN, TRAIN, TRAIN, wrong, grid[1]), f"^C{message}")
        refused(lambda wrong=wrong: search(TRAIN, TRAIN, TRAIN, grid[0], wrong), f"^gamma{message}")
    pairs, wide = TRAIN[0], Pairs(np.ones((4, 2)), TRAIN[0].index)
    for k in range(3):
        for labels, message in [
            ([0, 1], r"y has shape \(2,\); ex"),
            (list("abcd"), r"y\[0\] is 'a'"),
        ]:
            parts = [TRAIN] * 3
            parts[k] = pairs, labels
            refused(lambda parts=parts: search(*parts, *grid), message)
    refused(lambda: search((pairs, [0] * 4), TRAIN, TRAIN, *grid), "y has only ties")
    refused(lambda: search(pairs, TRAIN, TRAIN, *grid), "a part of the data is .*; expected .pairs, labels.")
    refused(lambda: search(TRAIN, TRAIN, (wide, TRAIN[1]), *grid), "the number of features is 2; expected 1")

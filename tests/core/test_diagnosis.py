"""What comparisons identify, compared with a linear program."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from scipy import sparse
from sklearn.base import clone

from preflearn.core import NotIdentifiedWarning, diagnose
from preflearn.core.diagnosis import _separable
from preflearn.matches import Matches, OutcomeWarning
from preflearn.metrics import threshold
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison
from preflearn.svm import SVMRank

TWO_LEAGUES = [[0, 1], [1, 0], [2, 3], [3, 4], [4, 2], [4, 3]]


def test_groups_that_never_meet_are_named():
    matches = Matches(
        [[1, -1, 0, 0, 0], [0, 0, 1, -1, 0]], [0, 1], ["Ann", "Bob", "Cy", "Di", "Eve"]
    )
    found = diagnose(matches, [1, -1])
    assert found.components == [["Ann", "Bob"], ["Cy", "Di"], ["Eve"]]
    assert found.unbeaten == ["Ann", "Di"]
    assert found.separable
    for names in ("['Ann', 'Bob']", "['Cy', 'Di']", "['Eve']"):
        assert names in found.message
    assert diagnose(matches).separable is None


@examples(40)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 7),
    m=st.integers(1, 14),
    ties=st.booleans(),
)
def test_the_graph_decides_as_the_linear_program_does(seed, n, m, ties):
    rng = np.random.default_rng(seed)
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    y = rng.choice([-1, 0, 1] if ties else [-1, 1], m)
    B = Pairs(np.eye(n), index).incidence()
    found = diagnose(Pairs(np.eye(n), index), y)
    assert found.separable == (bool(y.any()) and _separable(B, y))
    for k in range(n):
        own = np.where(index[:, 0] == k, y, -y)[(index == k).any(axis=1)]
        assert (k in found.unbeaten) == (len(own) > 0 and bool((own > 0).all()))
    reach = np.linalg.matrix_power(np.eye(n) + (abs(B).T @ abs(B)).toarray(), n) > 0
    assert {tuple(part) for part in found.components} == {
        tuple(np.flatnonzero(row).tolist()) for row in reach
    }


def more_wins_than_ties(n, index, y):
    """Return whether some cycle of comparisons, with wins in its direction, has more
    wins than ties.

    By powers of the adjacency matrix in max-plus algebra: a closed walk of positive
    weight contains a cycle of positive weight, of at most n steps.
    """
    step = np.full((n, n), -np.inf)
    for (i, j), outcome in zip(index, y, strict=True):
        if outcome == 0:
            step[i, j] = max(step[i, j], -1)
            step[j, i] = max(step[j, i], -1)
        elif outcome > 0:
            step[i, j] = 1
        else:
            step[j, i] = 1
    walk = step
    for _ in range(n):
        if (np.diag(walk) > 0).any():
            return True
        walk = (walk[:, :, None] + step[None]).max(axis=1)
    return False


@pytest.mark.filterwarnings("ignore::preflearn.matches.OutcomeWarning")
@examples(60)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 5), m=st.integers(2, 12))
def test_cycles_decide_whether_ties_have_a_finite_parameter(seed, n, m):
    rng = np.random.default_rng(seed)
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    y = rng.choice([-1, 0, 0, 1], m)
    y[:2] = [1, 0]
    found = diagnose(index, y)
    unbounded = not more_wins_than_ties(n, index, y)
    assert found.ties_unbounded == (unbounded and not found.separable)
    # the same items given as features are diagnosed by the linear program
    same = diagnose(Pairs(np.eye(n) + 1e-9, index), y)
    assert (same.separable, same.ties_unbounded) == (
        found.separable,
        found.ties_unbounded,
    )
    # swapping the items of a pair changes nothing
    assert diagnose(index[:, ::-1], -y).ties_unbounded == found.ties_unbounded


@pytest.mark.parametrize("model", [Davidson(), OrdinalComparison()])
def test_scores_that_grow_with_the_parameter_for_ties_cause_a_warning(model):
    index = [[0, 1], [1, 2], [2, 0]]
    with pytest.warns(NotIdentifiedWarning, match=r"parameter for ties.*alpha"):
        weak = clone(model).set_params(alpha=1e-6).fit(index, [1, 0, 0])
    items = np.array([[0.0, 1.0], [1.0, 0.5], [0.5, 2.0]])
    with pytest.warns(NotIdentifiedWarning, match="alpha"):
        clone(model).fit(Pairs(items, index), [1, 0, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strong = clone(model).set_params(alpha=0.2).fit(index, [1, 0, 0])
        # a cycle with two wins and one tie
        bounded = clone(model).set_params(alpha=1e-6).fit(index, [1, 1, 0])
    scores = [np.ptp(fit.coef_) for fit in (weak, strong, bounded)]
    assert scores[0] > 20 > scores[1]
    assert scores[2] < 20


def test_features_are_separable_where_some_w_is_right_on_all():
    X = np.random.default_rng(0).normal(size=(8, 2))
    pairs, y = Pairs.from_scores(X, X @ [1.0, -2.0])
    assert diagnose(pairs, y).separable
    y[0] = -y[0]
    assert not diagnose(pairs, y).separable


def test_lineups_and_an_advantage():
    design = [[1, 1, -1, -1, 1], [1, -1, 1, -1, -1]]
    matches = Matches(design, [0, 1], ["a", "b", "c", "d", "advantage"])
    found = diagnose(matches, [1, 1])
    assert found.components == [["a", "b", "c", "d"]]
    assert found.unbeaten == ["a"]
    assert found.separable
    # two players on one side do not play against each other
    together = Matches([[1, 1], [1, 1]], [0, 1], ["a", "b"])
    assert diagnose(together, [1, 1]).separable
    assert not diagnose(together, [1, -1]).separable


@pytest.mark.parametrize("model", [Davidson(), OrdinalComparison()])
def test_fits_warn_where_the_penalty_decides(model):
    y = [1, 1, 1, 1, 1, 1]
    with pytest.warns(NotIdentifiedWarning, match=r"alpha=0.001.*\[0, 1\]"):
        model.fit(TWO_LEAGUES, y)
    with pytest.warns(NotIdentifiedWarning, match=r"\[0\] .* \[1\] "):
        model.fit([[0, 1]] * 3, [1, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # this alpha is meant as a prior
        clone(model).set_params(alpha=0.5).fit(TWO_LEAGUES, y)


@pytest.mark.filterwarnings("error")
def test_bias_reduction_solves_what_the_warning_names_and_identified_data_do_not_warn():
    index = [[0, 1], [1, 2], [2, 0], [0, 3]]
    y = [1, 1, 1, 1]
    with pytest.raises(NotIdentifiedWarning, match="bias_reduced=True"):
        Davidson().fit(index, y)
    reduced = [
        Davidson(alpha, bias_reduced=True).fit(index, y).coef_ for alpha in (1e-4, 1e-8)
    ]
    np.testing.assert_allclose(*reduced, atol=1e-2)  # the penalty does not matter
    Davidson().fit([*index, [3, 0]], [*y, 1])
    # items 4 and 5 have no comparisons
    Davidson().fit(Pairs(sparse.eye_array(6).toarray(), [*index, [3, 0]]), [*y, 1])


def test_features_that_separate_cause_a_warning():
    rng = np.random.default_rng(0)
    pairs = Pairs(rng.normal(size=(12, 2)), [(k, k + 1) for k in range(11)])
    y = np.where(pairs.differences() @ [1.0, 2.0] > 0, 1, -1)
    with pytest.warns(NotIdentifiedWarning, match=r"alpha=0.001"):
        Davidson().fit(pairs, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.abs(Davidson(bias_reduced=True).fit(pairs, y).coef_).max() < 20
        Davidson(0.5).fit(pairs, y)
        Davidson().fit(pairs, -y * np.where(np.arange(11) == 4, -1, 1))


def test_bias_reduction_is_advised_only_up_to_the_number_of_players_that_it_can_take():
    index = np.column_stack([np.arange(5001), np.arange(1, 5002)])
    for count, advised in ((5001, False), (4000, True)):
        assert (
            "bias_reduced" in diagnose(index[:count], np.ones(count)).message
        ) == advised


MODELS = [Davidson(), diagnose]


@pytest.mark.parametrize("model", MODELS, ids=["Davidson", "diagnose"])
def test_outcomes_of_another_coding_cause_a_warning(model):
    rng = np.random.default_rng(1)
    pairs = Pairs(
        rng.normal(size=(20, 2)), [rng.choice(20, 2, replace=False) for _ in range(60)]
    )
    y = threshold(pairs.differences() @ [1.0, 1.0] + rng.normal(size=60), 0.7)

    def fitted(y):
        found = model(pairs, y) if model is diagnose else clone(model).fit(pairs, y)
        return found if model is diagnose else found.decision_function(pairs).tolist()

    with pytest.warns(OutcomeWarning, match="1 and 0"):
        fitted(np.where(np.arange(60) % 3, np.abs(y), 0))
    with pytest.warns(OutcomeWarning, match="1/2") as caught:
        halves = fitted((y + 1) / 2)
    assert Path(caught[0].filename) == Path(__file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted(y) == halves
        with pytest.raises(ValueError, match=r"True|False"):
            fitted(y > 0)
        # SVMRank accepts pairs that all have the better item first
        SVMRank().fit(pairs, np.abs(y))


def test_half_points_are_ties():
    with pytest.warns(OutcomeWarning):
        found = diagnose([[0, 1]] * 4, [1, 0.5, 1, 0.5])
    assert (found.unbeaten, found.separable) == ([], False)


@pytest.mark.parametrize("kind", ["Int64", "object"])
def test_frames_of_row_numbers_are_players(kind):
    index = [[0, 1], [1, 2], [2, 0], [1, 0]]
    y = [1, 1, 1, -1]
    frame = pd.DataFrame(index, columns=["winner", "loser"], index=list("abcd")).astype(
        kind
    )
    np.testing.assert_array_equal(
        Davidson().fit(frame, y).coef_, Davidson().fit(index, y).coef_
    )
    assert diagnose(frame, y) == diagnose(index, y)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"\[1, 1\]"):
        diagnose([[1, 1]])
    with pytest.raises(ValueError, match=r"^y "):
        diagnose([[0, 1], [1, 2]], [1])

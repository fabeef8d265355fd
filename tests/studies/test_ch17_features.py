"""Pairs with ties and features in chapter 17: the judge, splits without leaks, and
learners."""

import numpy as np
import pandas as pd
import pytest

import preflearn_book.studies.ch17_features as features
from preflearn.datasets.sports import MatchData
from preflearn.metrics import threshold
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison
from preflearn.svm import SVMCompare
from preflearn_book.studies.ch05_sushi import simulate_sushi
from preflearn_book.studies.ch17_learners import LEARNERS
from preflearn_book.studies.ch17_pairs import (
    fit_gaussian_process,
    fit_logistic,
    fit_with_threshold,
    on_a_line,
    pair_covariance,
)
from preflearn_book.studies.ch17_queries import Queries

BY_NAME = {learner.name: learner for learner in LEARNERS["features"]}


def simulated_pairs(seed=0, m=60, n=40, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    index = features.drawn_pairs(rng, np.arange(n), m)
    z = (X[:, 0] + X[:, 1] ** 2)[index] @ [1, -1] + rng.normal(size=m) / 2
    return Pairs(X, index), np.where(np.abs(z) < 0.6, 0, np.sign(z)).astype(np.int8)


def item_rows(pairs):
    """Return the items of pairs as a set."""
    return {tuple(row) for row in pairs.items[np.unique(pairs.index)].round(9)}


@pytest.fixture
def toy_football(monkeypatch):
    """Return results of twelve teams, with three matches per day. A team may play twice
    on one day."""
    rng = np.random.default_rng(3)
    n = 3900
    teams = features.drawn_pairs(rng, np.arange(12), n)
    goals = rng.poisson(1.3, size=(n, 2))
    frame = pd.DataFrame(
        {
            "first": [f"t{k}" for k in teams[:, 0]],
            "second": [f"t{k}" for k in teams[:, 1]],
            "time": pd.Timestamp("1996-01-01")
            + pd.to_timedelta(np.arange(n) // 3, unit="D"),
            "outcome": np.sign(goals[:, 0] - goals[:, 1]).astype(np.int8),
            "first_score": goals[:, 0],
            "second_score": goals[:, 1],
            "advantage": rng.random(n) < 0.8,
        }
    )

    def use(frame):
        features._known_before.cache_clear()
        monkeypatch.setattr(features, "load_football", lambda: MatchData(frame, ()))

    use(frame)
    yield frame, use
    features._known_before.cache_clear()


def test_measures_by_hand():
    truth = [1, -1, 0, 0]
    probabilities = np.array([[0, 1, 3], [2, 1, 1], [1, 1, 2], [1, 2, 1]]) / 4
    assert features.judge(truth, probabilities) == {
        "loss": 0.25,
        "log_loss": pytest.approx(-np.log([0.75, 0.5, 0.25, 0.5]).mean()),
        "overconfidence": pytest.approx((0.75 + 0.5 + 0.5 + 0.5) / 4 - 0.75),
    }
    assert features.judge(truth, np.array([1, 1, 0, 1])) == {"loss": 0.5}


def test_simulated_pairs_of_training_and_test_share_no_item():
    problem = features.problem("norm 2/1")
    for split in (problem.whole, *problem.folds):
        assert not item_rows(split.train[0]) & item_rows(split.test)
    y = np.concatenate([problem.whole.train[1], problem.whole.truth])
    assert len(y) == features.N_PAIRS + features.N_ASKED
    assert abs(y.mean()) < 0.07
    assert np.mean(y == 0) == pytest.approx(0.3)


def test_features_are_scaled_by_the_training_items():
    pairs, y = simulated_pairs()
    learn = np.arange(20)
    ask = np.arange(20, 60)
    (train, _), test, _ = features.scaled_split(pairs, y, learn, ask)
    items = pairs.items[np.unique(pairs.index[learn])]
    np.testing.assert_allclose(
        train.first, (pairs.first[learn] - items.mean(axis=0)) / items.std(axis=0)
    )
    np.testing.assert_allclose(
        test.second, (pairs.second[ask] - items.mean(axis=0)) / items.std(axis=0)
    )


def test_pairs_of_documents_are_of_one_query_and_draws_have_no_query_in_common(
    monkeypatch,
):
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(245), rng.integers(13, 18, 245))
    # The first feature is the number of the document, and the second is its query.
    X = np.column_stack([np.arange(len(qid)), qid]).astype(float)
    grades = rng.integers(0, 5, len(qid)).astype(float)
    data = Queries(X, grades, qid)
    monkeypatch.setattr(features, "search_results", lambda: data)
    made = []
    monkeypatch.setattr(features, "make_problem", lambda *call: made.append(call))
    for draw in range(features.DRAWS):
        features.problem(f"search/{draw}")
    seen = set()
    for _, _, pairs, y, n, folds in made:
        numbers = [pairs.first[:, 0].astype(int), pairs.second[:, 0].astype(int)]
        queries = qid[numbers[0]]
        np.testing.assert_array_equal(queries, qid[numbers[1]])
        np.testing.assert_array_equal(np.sign(np.subtract(*grades[numbers])), y)
        assert len({frozenset(pair) for pair in np.transpose(numbers)}) == len(y)
        assert not set(queries[:n]) & set(queries[n:])
        for train, test in folds:
            assert not set(queries[train]) & set(queries[test])
        assert not seen & set(queries)
        seen |= set(queries)
        assert abs(y.mean()) < 0.1


def test_sushi_users_of_training_and_test_differ(monkeypatch):
    data = simulate_sushi(0, 560)
    monkeypatch.setattr(features, "load_sushi", lambda: data)
    problem = features.problem("sushi/0")
    assert [len(problem.whole.train[0]), len(problem.whole.test)] == [300, 1000]
    assert len(item_rows(problem.whole.test)) == 2000  # each rating is used once
    for train, test, _ in (problem.whole, *problem.folds):
        users = [{row[7:] for row in item_rows(pairs)} for pairs in (train[0], test)]
        assert not users[0] & users[1]


def test_recent_results_are_means_over_the_last_matches_of_earlier_days():
    rng = np.random.default_rng(3)
    teams = features.drawn_pairs(rng, np.arange(12), 200)
    goals = rng.poisson(1.3, size=(200, 2))
    frame = pd.DataFrame(
        {"first": teams[:, 0], "second": teams[:, 1], "time": np.arange(200) // 3}
    )
    frame = frame.assign(first_score=goals[:, 0], second_score=goals[:, 1])
    frame["outcome"] = np.sign(goals[:, 0] - goals[:, 1])
    found = features.recent_results(frame)
    for k, match in enumerate(frame.itertuples()):
        for side, team in enumerate((match.first, match.second)):
            past = []
            for row in frame[frame["time"] < match.time].itertuples():
                if row.first == team:
                    past.append((row.outcome, row.first_score, row.second_score))
                elif row.second == team:
                    past.append((-row.outcome, row.second_score, row.first_score))
            expected = np.mean(past[-10:], axis=0) if past else np.zeros(3)
            np.testing.assert_allclose(found[k, side], expected, atol=1e-12)


def test_football_features_do_not_contain_later_results(toy_football):
    frame, use = toy_football
    _, X = features._known_before()
    later = frame["time"] >= pd.Timestamp("1998-02-01")
    changed = frame.copy()
    changed.loc[later, ["first_score", "second_score"]] = [[7, 0]]
    changed.loc[later, "outcome"] = np.int8(1)
    use(changed)
    matches, other = features._known_before()
    # features do not use results of the same day
    unaffected = (matches["time"] <= pd.Timestamp("1998-02-01")).to_numpy()
    assert 1000 < unaffected.sum() < len(X)
    assert np.array_equal(X[unaffected], other[unaffected])
    assert not np.array_equal(X[~unaffected], other[~unaffected])


@pytest.mark.usefixtures("toy_football")
def test_football_matches_of_training_are_earlier_than_those_of_the_test():
    problem = features.problem("football/1998")
    times = features._known_before()[0]["time"].to_numpy()
    start = np.searchsorted(times, np.datetime64("1998")) - features.N_PAIRS
    dates = times[start : start + features.N_PAIRS + features.N_ASKED]
    assert len(problem.folds) == 3
    for train, test, _ in (problem.whole, *problem.folds):
        # the index of the first item in a pair equals the index of the pair
        assert dates[train[0].index[:, 0]].max() < dates[test.index[:, 0]].min()


@pytest.mark.parametrize(
    "name", [name for name in BY_NAME if name not in ("constant", "random")]
)
def test_swapped_pairs_flip_the_forecast_and_other_items_do_not_change_it(name):
    pairs, y = simulated_pairs()
    learner = BY_NAME[name]
    asked = simulated_pairs(1)[0]
    options = learner.configurations[5 % len(learner.configurations)]
    found = learner.fit((pairs, y), **options)(asked)
    swapped = learner.fit((pairs.swapped(), -y), **options)(asked.swapped())
    if swapped.ndim == 1:
        # rounding may decide about a pair on the threshold
        assert np.mean(found != -swapped) <= 0.02
    else:
        np.testing.assert_allclose(found, swapped[:, ::-1], atol=2e-3)
    more = Pairs(np.vstack([pairs.items, 100 + asked.items]), pairs.index)
    again = learner.fit((more, y), **options)(asked)
    np.testing.assert_allclose(again, found, atol=1e-6)


def test_logistic_regression_in_both_orders_is_davidsons_model():
    pairs, y = simulated_pairs()
    for C in (0.05, 2.0):
        model = Davidson(alpha=1 / (4 * C)).fit(pairs, y)
        found = fit_logistic((pairs, y), C)(pairs)
        np.testing.assert_allclose(found, model.predict_proba(pairs), atol=1e-3)


def test_the_link_of_the_gaussian_process_is_fitted_to_leave_one_out_forecasts():
    pairs, y = simulated_pairs(m=30)
    width = 0.5
    noise = 0.7
    K = pair_covariance(pairs, pairs, width / 3) + noise * np.eye(30)
    without = []
    for k in range(30):
        rest = np.delete(np.arange(30), k)
        weights = np.linalg.solve(K[np.ix_(rest, rest)], y[rest])
        without.append(K[k, rest] @ weights)
    link = OrdinalComparison("probit", alpha=1e-3).fit(on_a_line(np.array(without)), y)
    asked = simulated_pairs(1)[0]
    means = pair_covariance(asked, pairs, width / 3) @ np.linalg.solve(K, y)
    expected = link.predict_proba(on_a_line(means))
    found = fit_gaussian_process((pairs, y), width, noise)(asked)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_fitted_threshold_is_the_best_on_the_training_pairs():
    pairs, y = simulated_pairs()
    options = {"C": 0.1}
    loss = np.mean(fit_with_threshold((pairs, y), **options)(pairs) != y)
    model = SVMCompare(kernel="linear", tie_weight="least", **options).fit(pairs, y)
    differences = model.decision_function(pairs)
    for tau in np.linspace(0, np.abs(differences).max(), 50):
        assert loss <= np.mean(threshold(differences, tau) != y)


def test_the_constant_forecasts_smoothed_frequencies_and_chance_is_repeatable():
    pairs, _ = simulated_pairs()
    y = np.repeat([1, 0, -1], [30, 20, 10]).astype(np.int8)
    constant = BY_NAME["constant"]
    chance = BY_NAME["random"]
    frequencies = constant.fit((pairs, y))(pairs)
    np.testing.assert_allclose(
        frequencies, np.tile(np.array([11, 21, 31]) / 63, (60, 1))
    )
    draws = [chance.fit((pairs, y))(pairs) for _ in range(2)]
    assert np.array_equal(*draws)
    assert set(draws[0]) == {-1, 0, 1}

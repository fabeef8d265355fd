"""Pairs with ties and features: judges, splits that don't leak, and learners that are what they say."""

import numpy as np
import pandas as pd
import pytest

import studies.ch17_features as arena
from preflearn import datasets
from preflearn.datasets.sports import MatchData
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison
from studies.ch05_sushi import simulate_sushi
from studies.ch17_pairs import LEARNERS, PairProcess, RankedPairs, logistic, refitted
from studies.ch17_protocol import entries

BY_NAME = {one.name: one for one in LEARNERS}
TIMES = ["fit_s", "forecast_s", "fit_mb", "forecast_mb"]


def some_pairs(seed=0, m=60, n=40, p=3):
    rng = np.random.default_rng(seed)
    X, index = rng.normal(size=(n, p)), arena.drawn_pairs(rng, np.arange(n), m)
    z = (X[:, 0] + X[:, 1] ** 2)[index] @ [1, -1] + rng.normal(size=m) / 2
    return Pairs(X, index), np.where(np.abs(z) < 0.6, 0, np.sign(z)).astype(np.int8)


def rows_of(pairs):
    """The items of pairs as a set."""
    return {tuple(row) for row in pairs.items[np.unique(pairs.index)].round(9)}


@pytest.fixture
def toy_football(monkeypatch):
    """Results of twelve teams, three matches a day, some of them of one team on one day."""
    rng = np.random.default_rng(3)
    n = 3900
    two = arena.drawn_pairs(rng, np.arange(12), n)
    goals = rng.poisson(1.3, size=(n, 2))
    frame = pd.DataFrame({
        "first": [f"t{k}" for k in two[:, 0]],
        "second": [f"t{k}" for k in two[:, 1]],
        "time": pd.Timestamp("1996-01-01") + pd.to_timedelta(np.arange(n) // 3, unit="D"),
        "outcome": np.sign(goals[:, 0] - goals[:, 1]).astype(np.int8),
        "first_score": goals[:, 0],
        "second_score": goals[:, 1],
        "advantage": rng.random(n) < 0.8,
    })  # fmt: skip

    def play(frame):
        arena._known_before.cache_clear()
        monkeypatch.setattr(arena, "load_football", lambda: MatchData(frame, (), ()))

    play(frame)
    yield frame, play
    arena._known_before.cache_clear()


def test_judges_by_hand():
    truth, chances = [1, -1, 0, 0], np.array([[0, 1, 3], [2, 1, 1], [1, 1, 2], [1, 2, 1]]) / 4
    found = arena.judge(truth, chances)
    assert found == {
        "loss": 0.25,
        "log_loss": pytest.approx(-np.log([0.75, 0.5, 0.25, 0.5]).mean()),
        "overconfidence": pytest.approx((0.75 + 0.5 + 0.5 + 0.5) / 4 - 0.75),
    }
    assert arena.judge(truth, [1, 1, 0, 1]) == {"loss": 0.5}


def test_a_quick_run_is_part_of_a_full_one():
    full = arena.tasks("full")
    assert set(arena.tasks("quick")) < set(full)
    assert len(full) == len(set(full)) == 25


@pytest.mark.parametrize("domain", ["norm 1", "norm 2", "norm inf"])
def test_simulated_pairs_share_no_item_and_their_order_tells_nothing(domain):
    problem = arena.problem(f"{domain}/1")
    for split in (problem.whole, *problem.folds):
        assert not rows_of(split.train[0]) & rows_of(split.test)
    ys = np.concatenate([problem.whole.train[1], problem.whole.truth])
    assert len(ys) == arena.N_PAIRS + arena.N_ASKED
    assert abs(ys.mean()) < 0.07
    assert np.mean(ys == 0) == pytest.approx(0.3)
    other = arena.problem(f"{domain}/2")
    assert not np.array_equal(other.whole.test.items, problem.whole.test.items)


def test_features_are_scaled_by_the_items_learned_from():
    pairs, y = some_pairs()
    learn, ask = np.arange(20), np.arange(20, 60)
    (train, labels), test, truth = arena.parted(pairs, y, learn, ask)
    met = pairs.items[np.unique(pairs.index[learn])]
    np.testing.assert_allclose(train.first, (pairs.first[learn] - met.mean(axis=0)) / met.std(axis=0))
    np.testing.assert_allclose(test.second, (pairs.second[ask] - met.mean(axis=0)) / met.std(axis=0))
    assert np.array_equal(labels, y[:20])
    assert np.array_equal(truth, y[20:])


def test_users_of_the_sushi_are_parted_and_ratings_used_once(monkeypatch):
    data = simulate_sushi(0, 560)
    monkeypatch.setattr(arena, "load_sushi", lambda: data)
    for draw in (0, 1):
        problem = arena.problem(f"sushi/{draw}")
        assert [len(part) for part in (problem.whole.train[0], problem.whole.test)] == [300, 1000]
        for train, test, _ in (problem.whole, *problem.folds):
            users = [{tuple(row[7:]) for row in rows_of(pairs)} for pairs in (train[0], test)]
            assert not users[0] & users[1]
        assert len(rows_of(problem.whole.test)) == 2000
        same = problem.whole.test.first[:, 7:] - problem.whole.test.second[:, 7:]
        assert not same.any()  # one user likes one better than the other


def test_later_results_are_not_known_before(toy_football):
    frame, play = toy_football
    _, X = arena._known_before()
    later = frame["time"] >= pd.Timestamp("1998-02-01")
    changed = frame.copy()
    changed.loc[later, ["first_score", "second_score"]] = [[7, 0]]
    changed.loc[later, "outcome"] = np.int8(1)
    play(changed)
    matches, other = arena._known_before()
    untouched = (matches["time"] <= pd.Timestamp("1998-02-01")).to_numpy()  # of that day none is known
    assert 1000 < untouched.sum() < len(X)
    assert np.array_equal(X[untouched], other[untouched])
    assert not np.array_equal(X[~untouched], other[~untouched])


def test_matches_to_learn_from_lie_before_those_to_forecast(toy_football):
    problem, times = arena.problem("football/1998"), arena._known_before()[0]["time"].to_numpy()
    start = np.searchsorted(times, np.datetime64("1998")) - arena.N_PAIRS
    dates = times[start : start + arena.N_PAIRS + arena.N_ASKED]
    assert len(problem.folds) == 3
    for train, test, _ in (problem.whole, *problem.folds):  # the first item has the number of its pair
        assert dates[train[0].index[:, 0]].max() < dates[test.index[:, 0]].min()


def test_recent_results_are_means_over_the_last_matches_of_earlier_days(toy_football):
    frame = toy_football[0][:200]
    found = arena.recent_results(frame, 4)
    for k, match in enumerate(frame.itertuples()):
        for side, team in enumerate((match.first, match.second)):
            past = []
            for row in frame[frame["time"] < match.time].itertuples():
                if row.first == team:
                    past.append((row.outcome, row.first_score, row.second_score))
                elif row.second == team:
                    past.append((-row.outcome, row.second_score, row.first_score))
            expected = np.mean(past[-4:], axis=0) if past else np.zeros(3)
            np.testing.assert_allclose(found[k, side], expected, atol=1e-12)


def test_the_last_ten_matches_of_real_teams(monkeypatch):
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    if not datasets.available("football"):
        pytest.skip("football is not here")
    frame = datasets.load_football().matches
    k = 30_000
    found, match = arena.recent_results(frame)[k], frame.iloc[k]
    past = frame[(frame["time"] < match["time"]) & frame[["first", "second"]].eq(match["first"]).any(axis=1)]
    home = past["first"] == match["first"]
    goals = past["first_score"].where(home, past["second_score"])[-10:]
    assert found[0, 1] == pytest.approx(goals.mean())


@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in ("constant", "random")])
def test_swapped_pairs_flip_and_other_items_teach_nothing(name):
    pairs, y = some_pairs()
    learner, asked = BY_NAME[name], some_pairs(1)[0]
    how = learner.configurations[5 % len(learner.configurations)]
    found = learner.forecast(learner.fit((pairs, y), **how), asked)
    turned = learner.forecast(learner.fit((pairs.swapped(), -y), **how), asked.swapped())
    flipped = -turned if turned.ndim == 1 else turned[:, ::-1]
    if turned.ndim == 1:
        assert np.mean(found != flipped) <= 0.02  # rounding may decide a pair on its threshold
    else:
        np.testing.assert_allclose(found, flipped, atol=2e-3)
    more = Pairs(np.vstack([pairs.items, 100 + asked.items]), pairs.index)  # whose pairs are asked later
    again = learner.forecast(learner.fit((more, y), **how), asked)
    np.testing.assert_allclose(again, found, atol=1e-6)


def test_logistic_regression_in_both_orders_is_davidsons_model():
    pairs, y = some_pairs()
    for C in (0.05, 2.0):
        model = Davidson(alpha=1 / (4 * C)).fit(pairs, y)
        found = logistic((pairs, y), C).predict_proba(pairs)
        np.testing.assert_allclose(found, model.predict_proba(pairs), atol=1e-3)


def test_the_link_of_the_gaussian_process_has_not_seen_the_label():
    pairs, y = some_pairs(m=30)
    width, noise = 0.5, 0.7
    without = []
    for k in range(30):
        rest = np.arange(30) != k
        K = PairProcess._covariance(pairs[rest], pairs[rest], width) + noise * np.eye(29)
        without.append(PairProcess._covariance(pairs[[k]], pairs[rest], width) @ np.linalg.solve(K, y[rest]))
    line = Pairs.from_arrays(np.array(without), np.zeros((30, 1)))
    expected = OrdinalComparison("probit").fit(line, y)
    link = PairProcess.fit((pairs, y), width, noise).link
    assert link.coef_[0] == pytest.approx(expected.coef_[0])
    assert link.threshold_ == pytest.approx(expected.threshold_)


@pytest.mark.parametrize("name", ["RankNet", "SVMCompare"])
def test_a_threshold_that_is_fitted_is_the_best_on_the_training_pairs(name):
    pairs, y = some_pairs()
    if name == "RankNet":
        model = RankedPairs.fit((pairs, y), n_epochs=10)
        gaps = model.differences(pairs)
    else:
        model = refitted((pairs, y), C=0.1, kernel="linear")
        gaps = model.decision_function(pairs)
        assert model.tau_ != 1
    loss = np.mean(model.predict(pairs) != y)
    for tau in np.linspace(0, np.abs(gaps).max(), 50):
        assert loss <= np.mean(np.where(np.abs(gaps) <= tau, 0, np.sign(gaps)) != y)


def test_the_constant_says_what_was_most_frequent_and_chance_is_repeatable():
    pairs, y = some_pairs()
    y = np.repeat([1, 0, -1], [30, 20, 10]).astype(np.int8)
    constant, chance = BY_NAME["constant"], BY_NAME["random"]
    shares = constant.forecast(constant.fit((pairs, y)), pairs)
    np.testing.assert_allclose(shares, np.tile(np.array([11, 21, 31]) / 63, (60, 1)))
    tossed = [chance.forecast(chance.fit((pairs, y)), pairs) for _ in range(2)]
    assert np.array_equal(*tossed)
    assert set(tossed[0]) == {-1, 0, 1}


def test_a_second_run_gives_the_same_rows():
    some = [BY_NAME[name] for name in ("ranking SVM", "RankNet", "boosted trees", "constant", "random")]
    first, second = (entries(arena.problem("norm 2/0"), some).drop(columns=TIMES) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    assert first["fitted"].all()
    assert first["loss"][2] < 0.3 < first["loss"][3]


def test_the_new_user_has_300_pairs_of_20_features_of_other_patients():
    problems = arena.new_user()
    assert [problem.unit for problem in problems] == [str(k) for k in range(arena.DRAWS)] * 2
    for problem in problems:
        assert (problem.facts["n_pairs"], problem.facts["n_features"]) == (300, 20)
        assert 0.2 < problem.facts["tie_share"] < 0.6
        for split in (problem.whole, *problem.folds):
            assert not rows_of(split.train[0]) & rows_of(split.test)
            assert len(split.train[0]) > 80

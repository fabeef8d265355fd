"""The templates for a user's own data, and their reports."""

import json
import re
import signal
import subprocess
import sys
import tomllib
import warnings
from base64 import b64encode
from io import BytesIO, TextIOWrapper
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import psutil
import pytest
from scipy import sparse, stats
from sklearn.model_selection import GroupKFold
from toy_project import run_here, wait_until

from preflearn.matches import Matches
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson
from preflearn.ratings import Elo
from preflearn_book.groups import without_ranks
from preflearn_book.penalty import penalty_by_evidence
from preflearn_book.report_figures import comparison_bars
from preflearn_book.runner import execution
from preflearn_book.runner.command import main
from preflearn_book.runner.execution import Result
from preflearn_book.runner.project import Chapter
from preflearn_book.runner.records import filled
from preflearn_book.sentences import agreement_sentence, between

ROOT = Path(__file__).parents[2]
TEMPLATES = ["use_matches", "use_judgements", "use_races"]
SIDES = ["-p", "first", "home", "-p", "second", "away"]
MATCHES = [*SIDES, "-p", "time", "day", "-p", "outcome", "result"]
WINNER_FIRST = [*SIDES, "-p", "time", "day", "-p", "outcome", "first won"]
JUDGEMENTS = ["-p", "first", "left", "-p", "second", "right", "-p", "outcome", "better"]


@pytest.fixture(autouse=True)
def own_settings(monkeypatch):
    """Undo what a template sets, and ignore the backend that another test set for this
    process."""
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("PREFLEARN_ROOT", str(ROOT))
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.use("Agg")
        yield
        plt.close("all")


@pytest.fixture
def here(monkeypatch, tmp_path):
    """Run templates in this process, in a folder of their own."""
    monkeypatch.setattr(execution, "execute", run_here)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_report(data, options):
    """Write the user's file, make the report, and return the page."""
    Path("own.csv").write_text(
        data if isinstance(data, str) else data.to_csv(index=False), "utf-8"
    )
    assert main(["report", "own.csv", *options]) == 0
    return Path("own_report.html").read_text("utf-8")


def cells(name):
    notebook = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cells(template, *words, **names):
    """Run the cells of a template that hold one of the words; return the names that
    they define."""
    names = {
        "np": np,
        "pd": pd,
        "Path": Path,
        "source": "own.csv",
    } | names
    for cell in cells(template):
        source = "".join(cell["source"])
        if any(word in source for word in words):
            exec(source, names)
    return names


def games(n=60):
    rng = np.random.default_rng(1)
    sides = [
        rng.choice(["Ann", "Bob", "Cy", "Dee"], 2, replace=False) for _ in range(n)
    ]
    day = pd.date_range("2024-01-01", periods=n, freq="3D").strftime("%Y-%m-%d")
    return pd.DataFrame(sides, columns=["home", "away"]).assign(
        day=day, result=rng.choice([1, 0, -1], n)
    )


def tastes(n=80):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        [rng.choice(["ale", "bitter", "cider"], 2, replace=False) for _ in range(n)],
        columns=["left", "right"],
    )
    frame["better"] = np.where(
        rng.random(n) < 0.2, "tie", np.where(rng.random(n) < 0.6, "left", "right")
    )
    return frame.assign(
        judge=rng.choice(["eve", "fay", "gus"], n), left_sweet=rng.normal(size=n)
    )


# ---- The templates


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("use_matches", marks=pytest.mark.nightly),
        "use_judgements",
        "use_races",
    ],
)
def test_a_template_runs_on_its_example(template):
    chapter = Chapter(ROOT / "notebooks" / f"{template}.ipynb")
    # a warning would be printed before the first words of the report
    warnings.simplefilter("error", UserWarning)
    result = run_here(chapter.notebook, {}, chapter.parameters, str(ROOT))
    assert result.summary == ""
    for cell in result.notebook["cells"]:
        if "plt.show()" in "".join(cell["source"]):
            assert cell["metadata"]["mystnb"]["image"]["alt"]
    # the simulated judge 12 answers at random
    if template == "use_judgements":
        assert "others**: judge 12." in json.dumps(result.notebook)


# ---- The reports


@pytest.mark.parametrize(
    ("frame", "options"),
    [
        (games().replace("Ann", "<b>Ann</b><script>"), MATCHES),
        pytest.param(tastes(), JUDGEMENTS, marks=pytest.mark.nightly),
    ],
)
def test_a_report_is_one_file_that_needs_no_other(
    tmp_path, monkeypatch, frame, options
):
    monkeypatch.chdir(tmp_path)
    Path("own_report.html").write_text("an earlier one")
    page = make_report(frame, options)
    assert {path.name for path in tmp_path.iterdir()} == {"own.csv", "own_report.html"}
    assert set(re.findall(r'(?:src|href|srcset)="([^"]{4})', page)) == {"data"}
    assert not re.search(r"<script|@import|url\(|<link|<iframe|<b>Ann", page)
    assert page.count("<img alt=") == (2 if options is MATCHES else 1)
    assert "import numpy" not in page, "no code"
    assert all(
        name.replace("<", "&lt;").replace(">", "&gt;") in page
        for name in set(frame.iloc[:, 0])
    )
    assert str(tmp_path) not in page


def test_nothing_is_learned_from_matches_after_until(here):
    pages = []
    for change in (1, -1):
        frame = games()
        frame.loc[45:, "result"] *= change
        page = make_report(frame, [*MATCHES, "-p", "until", frame["day"][44]])
        pages.append(page[: page.index("Next matches")])
        assert "45 matches" in page
        assert "15 rows" in page
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    "options", [MATCHES, ["--judgements", *SIDES, "-p", "outcome", "result"]]
)
def test_groups_that_never_met_are_not_compared(here, options):
    other = games().replace({"Ann": "Eve", "Bob": "Fay", "Cy": "Gus", "Dee": "Hal"})
    to_come = pd.DataFrame({"home": ["Ann", "Bob"], "away": ["Eve", "Fay"]})
    frame = pd.concat([games(), other, to_come.assign(day="2024-07-01")])
    frame.loc[5, "result"] = None
    page = make_report(
        frame, [*options, *(["-p", "pair", "Ann - Eve"] * (options is MATCHES))]
    )
    assert "form 2 groups that never met" in page
    assert "4 competitors of group 1" in page or "4 items of group 1" in page
    assert "lost to" not in page  # no group is better than another if they never met
    assert "Note: " not in page  # a warning in the report would begin with this word
    groups = [{"Ann", "Bob", "Cy", "Dee"}, {"Eve", "Fay", "Gus", "Hal"}]
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    cells_of = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]
    standings = [
        row for row in cells_of if len(row) > 6 and row[2] in set.union(*groups)
    ]
    for k, group in enumerate(groups, 1):
        ranked = [row for row in standings if row[0] == str(k)]
        assert {row[2] for row in ranked} == group
        assert [row[1] for row in ranked] == ["1", "2", "3", "4"]
        assert sum(float(row[3].replace("−", "-")) for row in ranked) == pytest.approx(
            0, abs=0.03
        )
    forecasts = [
        row for row in cells_of if len(row) > 4 and {*row[:2]} <= set.union(*groups)
    ]
    assert forecasts
    for row in forecasts:
        percentages = [cell for cell in row[2:] if cell.strip("−").isdigit()]
        if not any({*row[:2]} <= group for group in groups):
            assert len(percentages) <= 1, "only the number of comparisons so far"
    if options is MATCHES:
        assert "Ann and Eve are in groups that never met" in page
        assert "No forecast of the final ranks is possible" in page


def test_players_of_a_group_that_never_lost_to_the_others_are_not_compared_with_them(
    here,
):
    pairs = [("A", "B"), ("B", "A"), ("C", "D"), ("D", "C"), ("A", "C"), ("B", "D")] * 4
    page = make_report(
        pd.DataFrame(pairs, columns=["home", "away"]),
        ["--judgements", *SIDES, "-p", "outcome", "first won"],
    )
    assert "never lost or tied against the rest" in page
    assert "any two can be compared" not in page


def test_the_intervals_of_few_judgements_hold_as_often_as_they_say():
    coverage = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        s = rng.normal(0, 0.3, 10)
        index = np.array([rng.choice(10, 2, replace=False) for _ in range(100)])
        y = np.where(
            rng.random(100) < 1 / (1 + np.exp(s[index[:, 1]] - s[index[:, 0]])), 1, -1
        )
        names = {
            "GroupKFold": GroupKFold,
            "Davidson": Davidson,
            "cluster": None,
            "seed": seed,
            "y": y,
        }
        pairs = Pairs(np.eye(10), index)
        _, alpha, *_ = run_cells("use_judgements", "def held_out", **names)["held_out"](
            pairs
        )
        low, high = Davidson(alpha).fit(pairs, y).interval(0.95).T
        coverage.append(np.mean((low <= s - s.mean()) & (s - s.mean() <= high)))
    # at the penalty with the best forecasts, the coverage is 0.87
    assert np.mean(coverage) > 0.92


def test_ties_do_not_count_against_the_favorite_of_the_forecasts():
    names = run_cells(
        "use_matches",
        "def verdict_on_forecasts",
        own_forecasts=np.tile([0.2, 0.2, 0.6], (40, 1)),
        near_y=np.repeat([1, -1, 0], [15, 5, 20]),
        start=0,
        n_test=40,
        binom=stats.binom,
        between=between,
    )
    assert names["hits"].startswith("75 % of the last 20 matches with a winner")


@pytest.mark.parametrize(
    ("gap", "half", "words"),
    [
        (0.005, 0.02, "about as well as Elo"),  # the interval includes 0
        (-0.005, 0.02, "about as well as Elo"),
        (-0.05, 0.02, "better than Elo"),
        (0.05, 0.02, "Elo forecasts better than the report's model"),
    ],
)
def test_two_methods_are_called_equal_unless_the_interval_excludes_0(gap, half, words):
    means = {"scores": 0.58, "Elo": 0.58 - gap, "outcome frequencies": 0.69}
    names = run_cells(
        "use_matches",
        "def verdict_on_forecasts",
        own_forecasts=np.tile([0.2, 0.2, 0.6], (40, 1)),
        near_y=np.repeat([1, -1, 0], [15, 5, 20]),
        start=0,
        n_test=40,
        binom=stats.binom,
        between=between,
        losses={name: np.full(40, mean) for name, mean in means.items()},
        excess=lambda worse, better: (means[worse] - means[better], half),
        interval=lambda gap, half: "",
        own="scores",
        name="scores",
        tested="the report's model",
        CONSTANT="constant scores",
        FREQUENCIES="outcome frequencies",
        number=str,
    )
    assert words in names["headline_on_forecasts"]()
    assert words in names["verdict_on_forecasts"]()
    assert "log loss" not in names["headline_on_forecasts"]()


def test_no_judge_is_in_training_and_test_of_a_fold():
    cluster = np.random.default_rng(0).integers(12, size=200)
    names = {"GroupKFold": GroupKFold, "cluster": cluster, "seed": 0, "y": 0 * cluster}
    folds = run_cells("use_judgements", "def held_out", **names)["folds"]
    assert len(folds) == 5
    for train, test in folds:
        assert not set(cluster[train]) & set(cluster[test])


def test_agreement_counts_answers_of_different_judges_only():
    """Two judges who repeat their own answers, and contradict each other."""
    names = run_cells(
        "use_judgements",
        "def n_doubles",
        cluster=np.array([0, 0, 1, 1]),
        pair=np.zeros(4, dtype=int),
        index=np.array([[0, 1], [1, 0], [0, 1], [1, 0]]),
        y=np.array([1, -1, -1, 1]),
        fractions=[0.5, 0.0, 0.5],
        agreement_sentence=agreement_sentence,
    )
    assert (names["together"], names["same"]) == (4, 0)
    assert names["kappa"] == -1


def test_intervals_cover_those_of_independent_and_of_clustered_answers():
    rng = np.random.default_rng(0)
    n = 5
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(200)])
    names = run_cells(
        "use_judgements",
        "def from_the_mean",
        "half = (ends",
        sparse=sparse,
        Pairs=Pairs,
        Davidson=Davidson,
        between=between,
        index=index,
        y=rng.choice([-1, 0, 1], 200),
        cluster=rng.integers(6, size=200),
        n=n,
        items=np.array(list("abcde"), dtype=object),
        group=np.ones(n, dtype=int),
        grouped=False,
        order_matters=False,
        feature_names=[],
        file=SimpleNamespace(doubtful={}),
        comparison_bars=comparison_bars,
        without_ranks=without_ranks,
        SCORES="scores",
        penalty={"scores": 1.0},
        weak={"scores": 0.1},
        seed=0,
    )
    apart = names["from_the_mean"](np.arange(n))
    halves = [np.diff(model.interval(0.95, apart))[:, 0] / 2 for model in names["fits"]]
    assert len(halves) == 2
    np.testing.assert_allclose(names["half"], np.max(halves, axis=0))
    assert not np.allclose(*halves, rtol=0.01)


def test_scores_at_equal_features_have_the_intervals_of_their_own_model(here):
    rng = np.random.default_rng(4)
    sides = np.array([rng.choice(4, 2, replace=False) for _ in range(160)])
    length = rng.normal(sides, 1.0)
    difference = 2 * (length[:, 0] - length[:, 1]) - (sides[:, 0] - sides[:, 1])
    better = np.where(difference + rng.logistic(size=160) > 0, "left", "right")
    frame = pd.DataFrame(np.array(list("abcd"))[sides], columns=["left", "right"])
    frame = frame.assign(better=better, left_length=length[:, 0])
    frame["right_length"] = length[:, 1]
    page = make_report(frame, ["--judgements", *JUDGEMENTS, "-p", "features", "length"])
    assert "those of the model without features" in page
    assert re.search(r"Scores\s+and\s+features\s+together\s+forecast\s+better", page)
    forecasts = page[page.index("How good are the forecasts") :]
    left_over = {}
    for item in "abcd":
        row = re.search(rf">{item}</td>(.*?)</tr>", forecasts, re.DOTALL)[1]
        numbers = re.sub(r"<[^>]*>", " ", row).replace("\u2212", "-")
        left_over[item] = [float(x) for x in re.findall(r"-?\d+\.\d+", numbers)][1:]
    # the model with one indicator per item and the feature in ten standard deviations
    rows = np.column_stack(
        [np.eye(4)[sides.T.ravel()], 10 * length.T.ravel() / length.std()]
    )
    pairs = Pairs(rows, np.arange(320).reshape(2, -1).T)
    y = np.where(better == "left", 1, -1)
    names = {"Davidson": Davidson, "Pairs": Pairs, "sparse": sparse, "y": y, "n": 4}
    names |= {"cluster": None, "LOOSE": 10.0, "stats": stats}
    names["penalty_by_evidence"] = penalty_by_evidence
    pairs = Pairs(sparse.csr_array(rows), pairs.index)
    spread = run_cells("use_judgements", "def effects(", **names)["spread"]
    model = Davidson(spread(pairs)).fit(pairs, y)
    from_the_mean = np.column_stack([np.eye(4) - 0.25, np.zeros(4)])
    against_0 = np.column_stack([np.arange(4), np.full(4, 4)])
    asked = Pairs(np.vstack([from_the_mean, np.zeros(5)]), against_0)
    mean, variance = model.moments(asked)
    low, high = mean - 1.96 * np.sqrt(variance), mean + 1.96 * np.sqrt(variance)
    expected = dict(zip("abcd", np.column_stack([mean, low, high]), strict=True))
    for item, found in left_over.items():
        np.testing.assert_allclose(found, expected[item], atol=0.006)


@pytest.mark.nightly
def test_intervals_of_features_without_effect_exclude_0_in_5_percent_of_cases():
    excluded = []
    logs = []
    m = 500
    n = 40
    f = 6
    for seed in range(12):
        rng = np.random.default_rng(seed)
        first = rng.integers(n, size=m)
        index = np.column_stack([first, (first + rng.integers(1, n, m)) % n])
        score = rng.normal(0, 1, n)
        difference = score[index[:, 0]] - score[index[:, 1]] + rng.logistic(size=m)
        y = np.where(np.abs(difference) < 0.4, 0, np.sign(difference)).astype(int)
        own = index.T.ravel()
        values = rng.normal(size=(n, f))[own]
        rows = sparse.hstack(
            [sparse.eye_array(n, format="csr")[own], 10 * values], format="csr"
        )
        pairs = Pairs(rows, np.arange(2 * m).reshape(2, -1).T)
        names = {
            "Davidson": Davidson,
            "Pairs": Pairs,
            "sparse": sparse,
            "stats": stats,
            "LOOSE": 10.0,
            "penalty_by_evidence": penalty_by_evidence,
        }
        names |= {"cluster": rng.integers(12, size=m), "y": y, "n": n}
        names = run_cells("use_judgements", "def effects(", **names)
        alpha = names["spread"](pairs)
        logs.append(np.log(alpha))
        _, added, half = names["effects"](pairs, alpha, np.ones(f, dtype=bool))
        excluded.append(np.abs(added) > half)
    # The expected number is 3.6 of 72. More than 7 have a probability of 2 %.
    assert np.mean(excluded) < 0.11
    assert abs(np.mean(logs)) < 0.35, "the spread is 1"


@pytest.mark.parametrize("outcome", ["better", "first won"])
def test_a_file_with_a_column_judge_holds_judgements(here, outcome):
    # a byte order mark of a spreadsheet precedes the first name
    names = ["judge", "left", "right", "better"]
    page = make_report(
        "\ufeff" + tastes()[names].to_csv(index=False), [*JUDGEMENTS[:-1], outcome]
    )
    assert "<h1>Comparisons" in page


def test_a_file_without_times_needs_no_option(here):
    """Rows of a small league, each with the number of wins of both sides."""
    rows = [("North", "South", 6, 1), ("South", "East", 4, 3), ("East", "North", 0, 7)]
    names = ["home", "away", "home_wins", "away_wins"]
    frame = pd.DataFrame(rows, columns=names)
    page = make_report(frame, [*SIDES, "-p", "outcome", "home_wins - away_wins"])
    assert "<strong>21 comparisons</strong>" in page
    assert "has no column with times" in page


def test_a_judge_who_always_gives_the_same_answer_is_named(here):
    frame = tastes()
    frame.loc[frame["judge"] == "eve", "better"] = "left"
    page = make_report(frame, JUDGEMENTS)
    assert "One judge gives the same answer in every row" in page
    head, *rows = rows_of(page, "Do judges agree?")
    first_better = {row[0]: row[head.index("first better (%)")] for row in rows}
    assert float(first_better["eve"]) == 100
    assert "same answer in every row" not in make_report(tastes(), JUDGEMENTS)


def test_repeated_rows_are_noted_where_a_judge_is_named(here):
    frame = tastes()[["left", "right", "better"]].assign(
        left_length=171.0, right_length=12.0
    )
    options = ["--judgements", *JUDGEMENTS, "-p", "features", "length"]
    assert "of another row" not in make_report(frame, options)
    page = make_report(frame.assign(judge="eve"), options)
    assert "of another row" in page
    assert re.search(r"of another row</strong>: line \d+ \(\w+ against \w+\)", page)
    assert "<td>171</td>" in page


def test_names_that_may_be_misspelled_are_not_ranked_or_compared_next(here):
    frame = tastes(200)
    frame.loc[3, ["left", "right", "better"]] = ["Bitter", "ale", "left"]
    frame.loc[[5, 9], "better"] = ""
    frame.loc[7, "judge"] = "Eve"
    page = make_report(frame, JUDGEMENTS)
    head, *rows = rows_of(page, "Scores")
    assert [row[head.index("item")] for row in rows][-1] == "Bitter"
    assert rows[-1][:1] == ["–"]
    assert [row[0] for row in rows[:-1]] == ["1", "2", "3"]
    for row in rows_of(page, "Which pairs to compare next"):
        assert "Bitter" not in row
    assert re.search(r"leaves\s+out\s+names\s+that\s+may\s+be\s+misspelled", page)
    assert "Eve (1 answer) may be a misspelling of eve" in page
    assert "2 rows without an answer" in page
    assert "lines 7, 11" in page
    assert page.count("<details>") == 2


def test_judges_are_listed_without_a_statement_that_all_of_them_differ(here):
    """Earlier, a sentence about judges who differ was printed above a table of judges
    who do not."""
    page = make_report(tastes(), JUDGEMENTS)
    assert "No judge clearly differs from the others" in page
    assert "judges with the largest z, none of which exceeds 3" in page
    assert "is listed if" not in page
    assert re.search(r"favorite of the forecasts was better in \d+", page)
    assert "equal probabilities has a log loss of 1.099" in page
    assert re.search(
        r"judges agree (slightly )?(more|less) often than", page, re.IGNORECASE
    )


def test_a_match_without_an_outcome_in_the_past_is_named(here):
    frame = games()
    frame.loc[7, "result"] = None
    page = make_report(frame, MATCHES)
    one, other = frame.loc[7, ["home", "away"]]
    assert re.search(
        rf"no outcome, but.*?line 9 \({one} against {other}\)", page, re.DOTALL
    )
    assert "<strong>own.csv</strong>" in page


def test_a_few_wrong_rows_are_left_out_and_named(here):
    frame = games(300).assign(neutral=["no", "yes"] * 150)
    frame.loc[7, ["home", "away"]] = "Bob"
    frame.loc[250, ["home", "away", "result"]] = ["Dees", "Bob", 1]
    frame.loc[299, ["home", "away", "result"]] = ["Annn", "Bob", None]
    page = make_report(
        pd.concat([frame.iloc[:9], frame.iloc[8:]]), [*MATCHES, "-p", "profile", "full"]
    )
    assert re.search(r"in column 'away'.*?'Bob' in line 9", page, re.DOTALL)
    assert "of another row" in page
    assert "Dees (1 row; Dee: " in page
    summary = page[page.index("In short") : page.index("Details: the data")]
    first_bullet = re.search(r"<li>(.*?)</li>", summary, re.DOTALL)[1]
    assert "Dees (1 match) may be a misspelling of Dee" in first_bullet
    others = summary.replace(first_bullet, "")
    assert "without Dees" in others
    assert "Dees" not in others.replace("without Dees", "")
    assert "Annn (1 row" not in page, "only names of matches that were played"
    assert "<strong>299 matches</strong>" in page
    assert "Annn" in page[page.index("Next matches") :]
    assert "rest of the season" not in page.lower(), "a single match is to come"


def test_a_match_to_come_among_winners_is_named_and_a_pair_is_forecast(here, capsys):
    """Earlier, a future match counted as won by the player in the first column, without
    a warning."""
    frame = games(90).assign(points="21")
    frame.loc[89, "points"] = ""
    page = make_report(frame, [*WINNER_FIRST, "-p", "pair", "Cy - Ann"])
    assert re.search("'points': line 91", page)
    beats = (
        r"(?:Cy beats\s+Ann|Ann beats\s+Cy)\s+with probability\s+\d+\s+%"
        r"\s+\((\d+)\s+to\s+(\d+)\s+% given"
    )
    low, high = map(int, re.search(beats, page).groups())
    assert 0 <= low < 50 < high <= 100
    page = make_report(
        frame,
        [*WINNER_FIRST, "-p", "pair", "Cy - Ann", "-p", "until", frame["day"][80]],
    )
    assert "9 rows" in page
    assert main(["report", "own.csv", *WINNER_FIRST, "-p", "pair", "Cy - Anne"]) == 2
    assert "'Cy - Anne'" in capsys.readouterr().err


def league():
    """Three double rounds of six players; the last nine matches are to come."""
    rng = np.random.default_rng(0)
    names = ["Ann", "Bob", "Cy", "Dee", "Eve", "<b>Fay$"]
    pairs = np.array([*permutations(range(6), 2)])
    rounds = [rng.permutation(pairs) for _ in range(3)]
    first, second = np.concatenate(rounds).T
    day = pd.to_datetime(np.repeat(["2021-09-01", "2022-09-01", "2023-09-01"], 30))
    day += pd.to_timedelta(7 * (np.arange(90) % 30 // 3), "D")
    gap = 0.4 * (second - first) + rng.normal(size=90)
    frame = pd.DataFrame(np.array(names)[[first, second]].T, columns=["home", "away"])
    result = pd.Series(np.where(np.abs(gap) < 0.3, 0, np.sign(gap)))
    return frame.assign(day=day.astype(str), result=result.where(frame.index < 81))


@pytest.mark.nightly
def test_the_rest_of_a_season_of_six_players_is_simulated(here):
    frame = league()
    page = make_report(frame, [*MATCHES, "-p", "points", "2 1 0"])
    head, *rows = rows_of(page, "The rest of the season")
    assert head[0] == "name"
    assert head[1] == "points"
    assert head[4:6] == ["1st (%)", "last (%)"]
    now = frame[60:81]
    points = dict.fromkeys(frame["home"], 0)
    for home, away, _, result in now.itertuples(index=False):
        points[home] += 1 + result
        points[away] += 1 - result
    found = {row[0].replace("&lt;b&gt;", "<b>"): row for row in rows}
    assert {name: int(row[1]) for name, row in found.items()} == points
    assert sum(int(row[4]) for row in rows) == pytest.approx(100, abs=3)
    assert sum(int(row[5]) for row in rows) == pytest.approx(100, abs=3)
    best = rows[0][0]
    assert re.search(rf"10,000 simulated seasons, .*{best}", page)
    assert "has 21 matches with an outcome and 9 to come" in page.replace("\n", " ")
    assert "-p points &#x27;2 1 0&#x27;" in page or "-p points '2 1 0'" in page
    assert "<b>Fay" not in page


def test_the_stronger_of_two_is_the_favorite(here):
    frame = games(90)
    won = np.where(frame["home"] < frame["away"], 1, -1)
    frame["result"] = won * np.resize([1, 1, 1, -1, 1, 0, 1], 90)
    page = make_report(frame, [*MATCHES, "-p", "pair", "Ann - Dee"])
    ann, dee = (
        int(re.search(rf"{words}\s+probability\s+(\d+)", page)[1])
        for words in (r"Ann beats\s+Dee\s+with", r"Dee\s+wins\s+with")
    )
    assert ann > 55 > 45 > dee
    forecast = page[page.index("Next matches") :]
    row = re.search(r">Ann</td>\s*<td[^>]*>Dee</td>(.*?)</tr>", forecast, re.DOTALL)
    percentages = [int(x) for x in re.findall(r">(\d+)</td>", row[1])]
    assert (percentages[0], percentages[2]) == (ann, dee)


def turned(n=90):
    """Matches of four players whose order is reversed after 72 % of the matches, so
    that forecasts by the earlier matches are worse than those of Elo."""
    rng = np.random.default_rng(5)
    sides = np.array([rng.choice(4, 2, replace=False) for _ in range(n)])
    is_early = np.arange(n) < 0.72 * n
    lead = np.where(is_early, 1, -1) * (sides[:, 1] - sides[:, 0])
    won = rng.random(n) < 1 / (1 + np.exp(-1.5 * lead))
    frame = games(n).assign(result=np.where(won, 1, -1))
    frame["home"], frame["away"] = np.array(["Ann", "Bob", "Cy", "Dee"])[sides.T]
    return frame


def rows_of(page, heading):
    """The rows of the first table after a heading, each as a list of texts."""
    table = page[page.index(f"{heading}</h2>") :]
    table = table[table.index("<table") : table.index("</table>")]
    rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_standings_have_elo_ratings_if_elo_forecasts_better(here):
    frame = turned(200)
    page = make_report(frame, MATCHES)
    head, *rows = rows_of(page, "Standings")
    assert head[-1] == "rank by Elo"
    step = re.fullmatch(r"Elo, k\s=\s(\S+)", head[-2])[1]
    assert re.search(r"Elo\s+forecasts\s+better\s+than\s+the", page)
    matches, y = Matches.from_frame(
        frame.assign(day=pd.to_datetime(frame["day"])),
        first="home",
        second="away",
        time="day",
        outcome="result",
    )
    elo = Elo(k=float(step)).fit(matches, y)
    expected = dict(zip(elo.players_, elo.ratings_, strict=True))
    assert {row[1]: float(row[-2]) for row in rows} == pytest.approx(expected, abs=1)
    by_elo = sorted(expected, key=expected.get, reverse=True)
    assert {row[1]: by_elo[int(row[-1]) - 1] for row in rows} == {n: n for n in by_elo}


def test_standings_have_no_elo_ratings_if_the_model_forecasts_better(here):
    page = make_report(turned(200).iloc[:140], MATCHES)
    assert "rest of the season" not in page.lower(), "no match is to come"
    assert not re.search(r"Elo\s+forecasts\s+better", page)
    assert rows_of(page, "Standings")[0][-1] == "matches"


def test_the_tested_forecasts_come_from_models_of_the_earlier_matches():
    class Model:
        covariance = likelihood = None

        def __init__(self, *_):
            self.n_learned = 0

        def fit(self, *_):
            return self

    def maximize(model, matches, y, **_):
        found = Model()
        found.n_learned = len(y)
        return SimpleNamespace(model=found, gradient=[0.0], evidence=0.0)

    def forecast(model, matches, y, start):
        return SimpleNamespace(probabilities=model.n_learned)

    names = run_cells(
        "use_matches",
        "def fit_and_compare",
        warnings=warnings,
        ConvergenceWarning=UserWarning,
        TimeWarning=UserWarning,
        DynamicComparisons=Model,
        maximise_evidence=maximize,
        one_step_ahead=forecast,
        models={"constant": None, "changing": None},
        near=np.zeros(100),
        near_y=np.ones(100),
        matches=np.zeros(100),
        y=np.ones(100),
        start=70,
    )
    assert names["forecasts"] == {"constant": 70, "changing": 70}


@pytest.mark.parametrize("options", [MATCHES, [*SIDES, "-p", "outcome", "result"]])
def test_few_matches_of_one_day_can_be_judgements(here, options):
    make_report(games(20).assign(day="2024-01-01"), ["--judgements", *options])


def test_an_advantage_of_the_first_item_is_estimated(here):
    rng = np.random.default_rng(3)
    first, second = np.array([rng.choice(4, 2, replace=False) for _ in range(600)]).T
    won = rng.random(600) < 1 / (1 + np.exp(-(1.5 + 0.5 * (first - second))))
    frame = pd.DataFrame({"left": first, "right": second, "better": won.astype(int)})
    page = make_report(frame, ["--judgements", *JUDGEMENTS])
    percent = int(re.search(r"the\s+first-named item is better in (\d+)\s%", page)[1])
    assert percent == pytest.approx(100 / (1 + np.exp(-1.5)), abs=4)
    assert "so the scores are corrected" in page
    names = re.findall(
        r'<td>\d</td>\s*<td style="text-align: left[^"]*">(\d)</td>', page
    )
    assert names[:4] == ["3", "2", "1", "0"]


def test_a_model_of_point_differences_is_tested_if_asked_for(here, capsys):
    rng = np.random.default_rng(4)
    names = ["Ann", "Bob", "Cy", "Dee"]
    sides = np.array([rng.choice(4, 2, replace=False) for _ in range(120)])
    margin = np.round(4 * (sides[:, 1] - sides[:, 0]) + rng.normal(0, 6, 120))
    frame = games(120).assign(points=10 + np.abs(margin), result="tie")
    frame["home"], frame["away"] = np.array(names)[sides.T]
    frame["lost"] = np.where(margin > 0, 10, frame["points"])
    frame["won"] = np.where(margin > 0, frame["points"], 10)
    options = [*SIDES, "-p", "time", "day", "-p", "outcome", "won - lost"]
    page = make_report(frame, [*options, "-p", "margins", "yes"])
    assert "The size of wins" in page
    assert re.search(r">point differences</td>\s*<td>0\.\d{3}", page)
    games().to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *MATCHES, "-p", "margins", "yes"]) == 2
    assert "-p outcome 'ONE - OTHER'" in capsys.readouterr().err


def won_by_another():
    """Return matches with a column of winners, which in two rows names neither
    player."""
    frame = pd.DataFrame(
        {
            "home": ["A", "B", "C"] * 20,
            "away": ["B", "C", "A"] * 20,
            "day": games()["day"],
        }
    )
    frame["result"] = frame["home"]
    frame.loc[[2, 5], "result"] = "B"
    return frame


def not_played():
    frame = games().assign(result="3:1")
    frame.loc[7:9, "result"] = "w.o."
    return frame


def races():
    """Return the places of four drivers in races, of which one did not finish."""
    rng = np.random.default_rng(6)
    rows = [
        (f"r{k}", driver, place)
        for k in range(20)
        for place, driver in enumerate(rng.permutation(["Ann", "Bob", "Cy", "Dee"]), 1)
    ]
    frame = pd.DataFrame(rows, columns=["race", "driver", "place"])
    return frame.astype({"place": "string"}).replace({"place": {"4": "DNF"}})


WRONG = [
    (races(), ["--races", "-p", "event", "gp"], "'gp' not found"),
    (races(), ["-p", "retired", "first"], "'first'.*'leave_out'"),
    (races()[:12], [], "3 events.* 5"),
    (games().assign(rank=1), ["-p", "first", "host"], "'host'.* not found"),
    (games(), [], "home, away, day, result.*-p first"),
    (games(), [*SIDES, "-p", "outcome", "result"], "-p time.*--judgements"),
    (games().assign(day="03/04/2024"), MATCHES, "'03/04/2024'.*time_format"),
    (games().assign(day="soon"), MATCHES, "'soon' in line 2, column 'day'"),
    (games().assign(result="later"), MATCHES, "'later' in line 2, column 'result'"),
    (games().assign(result=["3:1", "31"] * 30), MATCHES, "'31' in line 3"),
    (not_played(), MATCHES, "'w.o.' in line 9"),
    (won_by_another(), MATCHES, "'B' in line 4"),  # B is not the second player
    (games().assign(away="Ann", home="Ann"), MATCHES, "'Ann' in line 2, column 'away'"),
    (games(20), MATCHES, "20 matches.* 30"),
    (games().assign(result="tie"), MATCHES, "ties"),
    (games().assign(result=1), MATCHES, "first won"),
    (games(), [*MATCHES, "-p", "season", "soon"], "season='soon'.*home, away"),
    (games(), [*MATCHES, "-p", "points", "3 1"], "points='3 1'.*'3 1 0'"),
    (games().assign(day="2024-01-01"), MATCHES, "at only 1 time;"),
    ("home,away\nAnn,Bob\nAnn,Bob,1\n", MATCHES, "own.csv"),
    (tastes(), [*JUDGEMENTS, "-p", "features", "sweet"], "'right_sweet'"),
    (tastes(), [*JUDGEMENTS, "-p", "until", "2024"], "until.*-p time"),
    (tastes().assign(better="tie"), JUDGEMENTS, "80 comparisons.* 10"),
]


@pytest.mark.parametrize(("data", "options", "named"), WRONG)
def test_what_is_wrong_with_a_file_is_one_line_and_the_report_stays(
    here, capsys, data, options, named
):
    (here / "own_report.html").write_text("before")
    (here / "own.csv").write_text(
        data if isinstance(data, str) else data.to_csv(index=False), "utf-8"
    )
    assert main(["report", "own.csv", *options]) == 2
    message = capsys.readouterr().err
    assert message.startswith("preflearn: error: ")
    assert re.search(named, message)
    assert message.count("\n") == 1
    assert " in cell " not in message
    assert (here / "own_report.html").read_text() == "before"


def test_messages_name_the_report_and_quotation_marks(here, capsys):
    tastes().to_csv("own.csv", index=False)
    assert main(["report", "own.csv", "--judgements", "-p", "left", "left"]) == 2
    assert "the report on judgments has no parameter 'left'" in capsys.readouterr().err
    assert main(["report", "own.csv", "-p", "first", "player", "1"]) == 2
    assert "-p NAME 'TWO WORDS'" in capsys.readouterr().err


def test_a_report_on_races_ranks_and_forecasts_by_name(here, capsys):
    """Names and texts are data: Markdown, formulas, and HTML are shown as written."""
    names = {"Ann": "<b>Ann</b>", "Bob": "$b_1$", "Cy": "*Cy*_x", "DNF": "`D`<i>"}
    to_come = [("final", name, "") for name in ("Ann", "Bob", "Cy", "New")]
    future = pd.DataFrame(to_come, columns=["race", "driver", "place"])
    page = make_report(pd.concat([races(), future]).replace(names), [])
    printed = capsys.readouterr().out
    assert "columns 'race', 'driver', 'place'" in printed
    assert "-p retired leave_out" in printed
    visible = {
        name: text.replace("<", "&lt;").replace(">", "&gt;")
        for name, text in names.items()
    }
    drivers = {visible[name] for name in ("Ann", "Bob", "Cy")}
    standings = rows_of(page, "Standings")
    assert {row[1] for row in standings[1:]} == {*drivers, "Dee"}
    chances = rows_of(page, "Who wins the next race?")
    assert {row[0] for row in chances[1:]} == {*drivers, "New"}
    assert sum(float(row[1]) for row in chances[1:]) == pytest.approx(100, abs=2)
    assert sum(float(row[3]) for row in chances[1:]) == pytest.approx(300, abs=2)
    assert "Without a past event" in page
    assert f"{visible['DNF']} (20)" in page
    assert not re.search(r"<b>Ann|<i>|<script", page)
    assert page.count("<details>") == page.count("</details>") == 2
    command = re.search(r"<code>(preflearn report own.csv --races [^<]*)</code>", page)
    assert main(command[1].split()[1:]) == 0


@pytest.mark.parametrize("retired", ["last", "leave_out"])
def test_groups_of_races_and_retirements_are_named(here, retired):
    others = {"Ann": "Eve", "Bob": "Fay", "Cy": "Gus", "Dee": "Hal"}
    frame = pd.concat(
        [races(), races().replace(others).replace(r"^r", "s", regex=True)]
    )
    to_come = [("final", name, "") for name in ("Ann", "Eve")]
    future = pd.DataFrame(to_come, columns=["race", "driver", "place"])
    page = make_report(
        pd.concat([frame, future]), ["--races", "-p", "retired", retired]
    )
    assert "form 2 groups that never met" in page
    assert "4 participants of group 1" in page
    assert "no forecast is possible" in page
    assert f"retired={retired}" in page
    assert "Note: " not in page
    rows = rows_of(page, "Standings")[1:]
    assert [row[:2] for row in rows] == [[k, r] for k in "12" for r in "1234"]
    for group in (rows[:4], rows[4:]):
        scores = [float(row[3].replace("−", "-")) for row in group]
        assert sum(scores) == pytest.approx(0, abs=0.03)


def test_templates_are_installed_where_a_report_looks_for_them():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"][
        "hatch"
    ]["build"]
    for name in TEMPLATES:
        path = f"notebooks/{name}.ipynb"
        assert (
            build["targets"]["wheel"]["force-include"][path]
            == f"preflearn_book/_files/{path}"
        )


def test_a_missing_file_and_a_bad_output_path_are_one_line(here, capsys):
    assert main(["report", "none.csv"]) == 2
    assert "none.csv" in capsys.readouterr().err
    games().to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *MATCHES, "--output", "own.csv/x.html"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_report_replaces_neither_the_file_nor_what_is_not_a_file(here, capsys):
    games().to_csv("own.csv", index=False)
    before = Path("own.csv").read_text()
    for output, named in (("own.csv", "the data file itself"), (".", "not a file")):
        assert main(["report", "own.csv", *MATCHES, "--output", output]) == 2
        assert named in capsys.readouterr().err
    assert Path("own.csv").read_text() == before


def test_an_error_in_a_file_needs_no_kernel(here, monkeypatch):
    monkeypatch.setattr(execution, "execute", lambda *_, **__: pytest.fail("executed"))
    games().assign(day="soon").to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *MATCHES]) == 2


def test_a_pipe_is_read_once_and_matches_are_as_asked(here, monkeypatch):
    seen = []

    def execute(notebook, given, *_, **__):
        seen.append((given["data"], Path(given["data"]).read_text("utf-8")))
        return Result(None, "KeyError: 'x' in cell 3")

    monkeypatch.setattr(execution, "execute", execute)
    text = games().assign(judge="eve").to_csv(index=False)
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))
    assert main(["report", "-", "--matches", *MATCHES]) == 1
    ((name, content),) = seen
    assert Path(name).name == "standard_input.csv"
    assert content == text


def test_sigterm_ends_a_report_without_kernels_or_partial_files(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    tastes().to_csv(tmp_path / "own.csv", index=False)
    command = [
        str(Path(sys.executable).with_name("preflearn")),
        "report",
        "own.csv",
        *JUDGEMENTS,
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    parent = psutil.Process(process.pid)
    wait_until(parent.children, lambda: process.poll() is not None)
    kernels = parent.children(recursive=True)
    process.send_signal(signal.SIGTERM)
    printed, log = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert printed == ""
    assert re.fullmatch("preflearn: terminated by SIGTERM;.*\n", log)
    assert psutil.wait_procs(kernels, timeout=30)[1] == []
    assert list(temporary.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"own.csv", "temporary"}


def test_names_are_shown_as_they_are_written(here):
    names = {"ale": "$a$_x", "bitter": "_b*[c](d)", "cider": "x`y<z>"}
    page = make_report(tastes().replace(names), JUDGEMENTS)
    for name in names.values():
        visible = name.replace("<", "&lt;").replace(">", "&gt;")
        assert page.count(f">{visible}</td>") >= 2
    assert re.search(r"against (\$a\$_x|_b\*\[c\]\(d\)|x`y&lt;z&gt;)\.", page)


def test_the_name_of_a_file_is_text_in_its_report():
    page = filled(
        "report.html", cells=[], title="a<b>.csv", markdown=str, b64encode=b64encode
    )
    assert page.count("a&lt;b&gt;.csv") == 2
    assert "a<b>" not in page


def test_an_unexpected_failure_of_a_cell_has_its_traceback(here, capsys, monkeypatch):
    games().to_csv("own.csv", index=False)
    failed = Result(None, "KeyError: 'x' in cell 3", "a traceback")
    monkeypatch.setattr(execution, "execute", lambda *_, **__: failed)
    assert main(["report", "own.csv", *MATCHES]) == 1
    message = capsys.readouterr().err
    assert "a traceback" in message
    assert "KeyError: 'x' in cell 3" in message

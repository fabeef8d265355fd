"""The templates for own data, and the reports that are made by them."""

import json
import re
import tomllib
import unicodedata
import warnings
from io import StringIO
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.model_selection import GroupKFold
from toy_project import run_here

from bookrunner import report
from bookrunner.command import main
from bookrunner.execution import Result
from bookrunner.project import Chapter
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson

ROOT = Path(__file__).parents[2]
TEMPLATES = ["use_matches", "use_judgements"]
MATCHES = ["-p", "first", "home", "-p", "second", "away", "-p", "time", "day", "-p", "outcome", "result"]
JUDGEMENTS = ["-p", "first", "left", "-p", "second", "right", "-p", "outcome", "better"]


@pytest.fixture(autouse=True)
def look(monkeypatch):
    """What a template sets for its kernel ends with the test."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    with matplotlib.rc_context():
        matplotlib.use("Agg")
        yield
        plt.close("all")


@pytest.fixture
def here(monkeypatch, tmp_path):
    """Templates run in this process; the report is written to a folder of its own."""
    monkeypatch.setattr(report, "execute", run_here)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFLEARN_ROOT", str(ROOT))
    return tmp_path


def cells(name, kind="code"):
    notebook = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def defined(name, word, **names):
    """What the cells of a template define that hold a word."""
    names = {"np": np, "pd": pd, "Path": Path, "StringIO": StringIO, "source": "own.csv"} | names
    for cell in cells(name):
        if word in "".join(cell["source"]):
            exec("".join(cell["source"]), names)
    return names


def games(n=60):
    rng = np.random.default_rng(1)
    sides = [rng.choice(["Ann", "Bob", "Cy", "Dee"], 2, replace=False) for _ in range(n)]
    day = pd.date_range("2024-01-01", periods=n, freq="3D").strftime("%Y-%m-%d")
    return pd.DataFrame(sides, columns=["home", "away"]).assign(day=day, result=rng.choice([1, 0, -1], n))


def tastes(n=80):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        [rng.choice(["ale", "bitter", "cider"], 2, replace=False) for _ in range(n)],
        columns=["left", "right"],
    )
    frame["better"] = np.where(rng.random(n) < 0.2, "tie", np.where(rng.random(n) < 0.6, "left", "right"))
    return frame.assign(judge=rng.choice(["eve", "fay", "gus"], n), left_sweet=rng.normal(size=n))


# ---- The templates


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_has_the_form_of_a_page(name):
    for cell in cells(name):
        source = "".join(cell["source"])
        assert cell["outputs"] == []
        assert len(source.splitlines()) <= 30
        assert source.count("preflearn.") == len(re.findall(r"from preflearn\.\w+ import", source))
        if "plt.show()" in source:
            about = cell["metadata"]["mystnb"]
            assert len(about["figure"]["caption"]) > 40
            assert len(about["image"]["alt"]) > 40
        if "parameters" in cell["metadata"].get("tags", []):
            assert all("#" in line for line in source.splitlines())


def test_both_templates_read_files_in_the_same_way():
    words = ["def column(", "def labels(", "def said(", "def clock(", "def read(", "def identified("]
    words += ["def slips(", "def by_form("]
    sources = [["".join(cell["source"]) for cell in cells(name)] for name in TEMPLATES]
    found = [[one for one in both if any(word in one for word in words)] for both in sources]
    assert len(found[0]) == 8
    assert found[0] == found[1]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_runs_on_its_example(name):
    chapter = Chapter(ROOT / "notebooks" / f"{name}.ipynb")
    warnings.simplefilter("error", UserWarning)  # as a note it would stand before the report's first words
    result = run_here(chapter.notebook, {}, chapter.parameters, str(ROOT))
    assert result.summary == ""
    told = {
        "use_matches": "570 matches** of **12 players",
        "use_judgements": "**1 of 12 do, by more than 3**: judge 12.",
    }  # by chance
    shown = json.dumps(result.notebook)
    assert told[name] in shown
    assert ("unlike the rest: judge 12." in shown) == (name == "use_judgements")
    if name == "use_matches":  # whose forecasts were judged is said where all matches prefer another model
        late = re.search(r"prefers scores that \*\*([^*]+)", shown)[1]
        early = re.search(r"before them preferred scores that ([^:]+)", shown)[1]
        assert (f"The forecasts were made with those that {early}," in shown) == (early != late)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([1, 0, -1, 1], [1, 0, -1, 1]),
        ([1, 0, 0, 1], [1, -1, -1, 1]),  # won and lost, and not won and tied
        ([1, 0.5, 0, None], [1, 0, -1, None]),
        ([3, 0, -2, None], [1, 0, -1, None]),
        (["H", "d", "A", None], [1, 0, -1, None]),
        (["Ann", "Bob", "tie (both bad)", ""], [1, 1, 0, None]),  # the names of who won
        (["Home", "away", "tie (both bad)", "home"], [1, -1, 0, 1]),  # the columns' names
        (["1-0", "0-1", "1/2-1/2", None], [1, -1, 0, None]),
        (["1", "1/2", "0", None], [1, 0, -1, None]),
        (["3-0", "1 : 1", "10–2 (4–1)", ""], [1, 0, 1, None]),
        (["0-3", "draw", "3.5-2.5", "?"], [-1, 0, 1, None]),
        (["True", "False", "True", "n/a"], [1, -1, 1, None]),
        (["home", "No preference", "neither", "away"], [1, 0, 0, -1]),
        (["home", "equal", "Same", ""], [1, 0, 0, None]),
        (["A", "b", "tie", "B"], [1, -1, 0, -1]),  # which are no home and away
    ],
)
def test_outcomes_are_read_as_they_are_meant(column, expected):
    raw = pd.DataFrame({"home": ["Ann", "Bob"] * 2, "away": ["Bob", "Cy"] * 2, "x": column})
    asked = {"first": "home", "second": "away", "outcome": "x"}
    names = defined("use_matches", "def said(", **defined("use_matches", "def column(", **asked))
    names = defined("use_matches", "def labels(", **names)
    found = names["labels"](raw, raw["home"], raw["away"])
    np.testing.assert_array_equal(found, np.array(expected, dtype=float))
    told = {"H": "a as lost, d as a tie, h as won", "3-0": "Outcomes such as 3-0 are points of both"}
    told |= {"A": "a as won, b as lost, tie as a tie"}
    assert told.get(column[0], "") in " ".join(names["notes"])


@pytest.mark.parametrize(
    ("column", "form", "expected"),
    [
        (["2024-01-31", "2024-02-01 18:00"], "", "2024-01-31"),
        (["31.01.2024", "01.02.2024"], "", "2024-01-31"),
        (["1/31/2024", "2/1/2024"], "", "2024-01-31"),
        (["31/01/24", "01/02/24"], "", "2024-01-31"),
        (["January 31, 2024", "February 1, 2024"], "", "2024-01-31"),
        ([20240131, 20240201], "", "2024-01-31"),
        (["2024.01.31", "2024.02.01"], "", "2024-01-31"),
        (["03/04/2024", "05/04/2024"], "%d/%m/%Y", "2024-04-03"),
        (["31/01/2024", "2024-02-01"], "%d/%m/%Y", "2024-01-31"),  # and ISO, which has one reading
        ([3.5, 7], "", 3.5),
    ],
)
def test_times_are_read_by_the_one_form_that_fits(column, form, expected):
    raw = pd.DataFrame({"day": column})
    times = clock("day", form)["clock"](raw)
    assert times[0] == (pd.Timestamp(expected) if isinstance(expected, str) else expected)
    assert len(times) == 2


def clock(time, form=""):
    names = defined("use_matches", "def column(") | {"time": time, "time_format": form}
    return defined("use_matches", "def clock(", **defined("use_matches", "def by_form(", **names))


@pytest.mark.parametrize("form", ["", "%d/%m/%Y"])
def test_dates_of_two_forms_are_read_and_told(form):
    day = pd.Series(pd.date_range("2023-01-01", periods=300))
    mixed = day.dt.strftime("%Y-%m-%d").where(np.arange(300) % 20 > 0, day.dt.strftime("%d/%m/%Y"))
    names = clock("day", form)
    assert names["clock"](pd.DataFrame({"day": mixed[::-1].reset_index(drop=True)})).tolist() == [*day[::-1]]
    said = "15 of 300 dates are read as %d/%m/%Y: 08/10/2023 is 08 October 2023."
    assert names["notes"] == [said]


@pytest.mark.parametrize(("side", "slip"), [("first", "1926-03-01"), ("last", "2062-11-03")])
@pytest.mark.parametrize("template", ["use_matches", "use_judgements"])
def test_a_date_far_from_all_others_is_told(template, side, slip):
    names = defined(template, "def by_form(", pd=pd, notes=[])
    days = pd.Series(pd.date_range("2026-01-01", periods=12))
    names["lonely"](days)
    assert names["notes"] == []
    names["lonely"](pd.concat([days, days, pd.Series([pd.NaT, pd.Timestamp(slip)])]))
    said = f"The {side} date, {pd.Timestamp(slip):%d %B %Y}, is far from all others**; if it is a slip, mend"
    assert said in names["notes"][0]


def test_lines_without_a_date_are_deleted_as_the_error_says():
    days = pd.DataFrame({"day": ["03.11.2026", "", "24.11.2026"]})
    with pytest.raises(ValueError, match="'' in line 3, column 'day'; expected a date, or that the lines"):
        clock("day")["clock"](days)
    assert clock("day")["clock"](days[days["day"] != ""]).dt.day.tolist() == [3, 24]


def test_dates_of_two_forms_of_which_each_might_be_the_other_are_refused():
    """Some begin with a day, some with a month: which of those up to the twelfth do, nobody can tell."""
    days = ["13/01/2024", "14/01/2024", "02/03/2024", "01/15/2024"]
    with pytest.raises(ValueError, match="'01/15/2024' in line 5, column 'day'; expected a number"):
        clock("day")["clock"](pd.DataFrame({"day": days}))
    with pytest.raises(ValueError, match="'01/02/2024' in column 'day'; expected -p time_format"):
        clock("day")["clock"](pd.DataFrame({"day": ["2024-01-31", "2024-02-01", "01/02/2024"]}))
    with pytest.raises(ValueError, match="'2024-01-31' in line 2"):  # a form that fits nothing is an error
        clock("day", "%d.%m.%Y")["clock"](pd.DataFrame({"day": ["2024-01-31"] * 3}))


@pytest.mark.parametrize(
    "content",
    [
        "a,b\nCafé,1\n".encode(),
        "a;b\nCafé;1\n".encode("cp1252"),
        "a\tb\r\nCafé\t1\r\n\r\n".encode("utf-16"),
        "\ufeffa,b\nCafé,1\n,\n".encode(),
    ],
)
def test_a_file_is_read_in_its_code_and_with_its_separators(tmp_path, content):
    (tmp_path / "own.csv").write_bytes(content)
    names = defined("use_matches", "def read(", **defined("use_matches", "def column("))
    table = names["read"](tmp_path / "own.csv")
    assert table.to_dict("list") == {"a": ["Café"], "b": ["1"]}


def test_of_more_than_two_thousand_items_those_judged_most_are_kept(tmp_path):
    chain = pd.DataFrame(
        {"first": range(2009), "second": range(1, 2010), "outcome": [1, -1, 0] * 669 + [1, -1]}
    )
    pd.concat([chain, chain[:2000]]).to_csv(tmp_path / "own.csv", index=False)
    names = {}
    for cell in cells("use_judgements"):
        exec("".join(cell["source"]), names)
        if "data = " in "".join(cell["source"]):
            names["data"] = str(tmp_path / "own.csv")
        if "counts = " in "".join(cell["source"]):
            break
    assert names["n"] == 2000
    assert set(names["items"]) >= set(map(str, range(1, 2000)))
    assert "all but the 2,000 items of the 2,010 that were judged most often" in names["notes"][-1]


@pytest.mark.parametrize(
    ("rare", "told"),
    [
        ("Red Lyon", True),
        ("red  lion", True),
        ("Red Lino", True),
        ("Rd Lion", True),
        ("Red Bull", False),
        ("Réd Lïon", True),
        ("Lion Red", True),
        ("Lion, Rd", True),
        ("LION RÉDE", True),
        ("Team 1", False),  # of "Team 2"
        ("Ale", False),  # too short to tell
    ],
)
def test_a_name_of_a_row_or_two_near_one_of_many_is_noted(rare, told):
    names = defined("use_matches", "def slips(", notes=[], some=", ".join, unicodedata=unicodedata)
    names["slips"](pd.Series({"Red Lion": 57, "Team 2": 30, "Pale": 20, "Red Lima": 4, rare: 2}))
    assert names["notes"] == [] if not told else f"{rare} (in 2; Red Lion in 57)" in names["notes"][0]


def test_no_probability_is_nothing_or_all():
    names = {}
    for cell in cells("use_matches"):
        exec("".join(cell["source"]), names)
        if "percent" in names:
            break
    assert [names["percent"](p) for p in (0.0004, 0.012, 0.5, 0.9996)] == [
        "under 1 %",
        "1 %",
        "50 %",
        "over 99 %",
    ]


# ---- The reports


@pytest.mark.parametrize(("frame", "options"), [(games(), MATCHES), (tastes(), JUDGEMENTS)])
def test_a_report_is_one_file_that_needs_no_other(tmp_path, monkeypatch, capsys, frame, options):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFLEARN_ROOT", str(ROOT))
    frame.to_csv("own.csv", index=False, sep=";")
    Path("own_report.html").write_text("an earlier one")
    assert main(["report", "own.csv", *options]) == 0, capsys.readouterr().err
    assert "the report, replaced: own_report.html" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"own.csv", "own_report.html"}
    page = (tmp_path / "own_report.html").read_text("utf-8")
    assert set(re.findall(r'(?:src|href|srcset)="([^"]{4})', page)) == {"data"}
    assert not re.search(r"<script|@import|url\(|<link|<iframe", page)
    assert page.count("<img alt=") == (3 if options is MATCHES else 1)
    assert "import numpy" not in page, "no code"
    assert all(name in page for name in frame.iloc[:, 0].unique())
    assert str(tmp_path) not in page


def test_a_name_is_a_text_on_the_page(here):
    frame = games().replace("Ann", "<b>Ann</b><script>")
    frame.to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *MATCHES]) == 0
    page = (here / "own_report.html").read_text("utf-8")
    assert "&lt;b&gt;Ann" in page
    assert "<b>Ann" not in page


def test_what_comes_after_until_is_not_learned_from(here):
    pages = []
    for change in (1, -1):
        frame = games()
        frame.loc[45:, "result"] *= change
        frame.to_csv("own.csv", index=False)
        assert main(["report", "own.csv", *MATCHES, "-p", "until", frame["day"][44]]) == 0
        page = (here / "own_report.html").read_text("utf-8")
        pages.append(page[: page.index("What comes next")])
        assert "45 matches" in page
        assert "15 rows are to be forecast" in page
    assert pages[0] == pages[1]


@pytest.mark.parametrize("options", [MATCHES, ["--judgements", *JUDGEMENTS]])
def test_who_leads_is_not_said_of_groups_that_never_met(here, options):
    names = {"home": "left", "away": "right", "result": "better"} if "--judgements" in options else {}
    other = games().replace({"Ann": "Eve", "Bob": "Fay", "Cy": "Gus", "Dee": "Hal"})
    frame = pd.concat([games(), other]).rename(columns=names)
    frame.loc[5, frame.columns[3]] = None
    frame.to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *options]) == 0
    page = (here / "own_report.html").read_text("utf-8")
    assert "Not all have met" in page[: page.index("The data")]
    assert "never met the other 4" in page
    assert "Note: " not in page  # which is how a warning begins: the report has said it
    assert ("Left out: 2 rows without an outcome, before the last match" in page) == (not names)


def test_all_are_connected_and_a_part_never_loses(here):
    pairs = [("A", "B"), ("B", "A"), ("C", "D"), ("D", "C"), ("A", "C"), ("B", "D")] * 4
    pd.DataFrame(pairs, columns=["left", "right"]).to_csv("own.csv", index=False)
    options = ["--judgements", *JUDGEMENTS[:6], "-p", "outcome", "first won"]
    assert main(["report", "own.csv", *options]) == 0
    page = (here / "own_report.html").read_text("utf-8")
    assert "Some never lost to the rest" in page
    assert "any two can be compared" not in page


def test_the_intervals_of_few_judgements_hold_as_often_as_they_say():
    held = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        s = rng.normal(0, 0.3, 10)
        index = np.array([rng.choice(10, 2, replace=False) for _ in range(100)])
        y = np.where(rng.random(100) < 1 / (1 + np.exp(s[index[:, 1]] - s[index[:, 0]])), 1, -1)
        names = {"GroupKFold": GroupKFold, "Davidson": Davidson, "cluster": None, "seed": seed}
        pairs = Pairs(np.eye(10), index)
        _, alpha, _ = defined("use_judgements", "def held_out", y=y, **names)["held_out"](pairs)
        low, high = Davidson(alpha).fit(pairs, y).interval(0.95).T
        held.append(np.mean((low <= s - s.mean()) & (s - s.mean() <= high)))
    assert np.mean(held) > 0.92  # 0.87 at the penalty that forecasts best


@pytest.mark.parametrize("of", ["items", "answers"])
def test_of_features_without_effect_five_intervals_in_a_hundred_exclude_none(of):
    """Judges share the items: without scores of items a third and more of the intervals did."""
    wrong, logs, m, n, f = [], [], 500, 40, 6
    for seed in range(12):
        rng = np.random.default_rng(seed)
        first = rng.integers(n, size=m)
        index, score = np.column_stack([first, (first + rng.integers(1, n, m)) % n]), rng.normal(0, 1, n)
        lead = score[index[:, 0]] - score[index[:, 1]] + rng.logistic(size=m)
        y, own = np.where(np.abs(lead) < 0.4, 0, np.sign(lead)).astype(int), index.T.ravel()
        values = rng.normal(size=(n, f))[own] if of == "items" else rng.normal(size=(2 * m, f))
        rows = sparse.hstack([sparse.eye_array(n, format="csr")[own], 10 * values], format="csr")
        pairs = Pairs(rows, np.arange(2 * m).reshape(2, -1).T)
        names = {"Davidson": Davidson, "Pairs": Pairs, "sparse": sparse, "stats": stats, "LOOSE": 10.0}
        names |= {"cluster": rng.integers(12, size=m), "y": y, "n": n}
        names = defined("use_judgements", "def effects(", **names)
        alpha = names["spread"](pairs)
        logs.append(np.log(alpha))
        _, added, half = names["effects"](pairs, alpha, np.full(f, of == "items"))
        steps = Pairs(np.eye(f + 1, n + f, n) * 10, [[k, f] for k in range(f)])
        alone = Davidson(1e-3).fit(Pairs(rows[:, n:], pairs.index), y, cluster=names["cluster"])
        low, high = alone.interval(0.95, Pairs(steps.items[:, n:], steps.index)).T
        wrong.append([np.abs(added) > half, (low > 0) | (high < 0)])
    share = np.mean(wrong, axis=(0, 2))
    assert share[0] < 0.11  # 3.6 of 72 are expected; more than 7 in two of a hundred
    assert share[1] > 0.25 or of == "answers", "where features are taken to explain all"
    assert abs(np.mean(logs)) < 0.35, "the spread is 1"


@pytest.mark.parametrize(
    ("options", "title"),
    [
        (JUDGEMENTS, "Judgements"),  # by the column "judge"
        (["-p", "first", "left", "-p", "second", "right", "-p", "outcome", "first won"], "Judgements"),
    ],
)
def test_a_file_with_judges_is_one_of_judgements(here, options, title):
    names = ["judge", "left", "right", "better"]  # the first stands behind the mark of a spreadsheet's UTF-8
    tastes()[names].to_csv("own.csv", index=False, encoding="utf-8-sig")
    assert main(["report", "own.csv", *options, "--output", "there.html"]) == 0
    page = (here / "there.html").read_text("utf-8")
    assert f"<h1>{title}" in page


def test_repeated_rows_are_told_where_a_judge_tells_them_apart(here):
    copy = tastes()[["left", "right", "better", "judge"]]
    for frame, said in ((copy, True), (copy.drop(columns="judge"), False)):
        frame.assign(left_length=171.0, right_length=12.0).to_csv("own.csv", index=False)
        options = ["--judgements", *JUDGEMENTS, "-p", "features", "length", "--output", "there.html"]
        assert main(["report", "own.csv", *options]) == 0
        page = (here / "there.html").read_text("utf-8")
        assert ("copies of another row" in page) == said
        assert "<td>171</td>" in page
        assert "171.0" not in page


def test_features_of_items_are_told_from_those_of_answers(here):
    rng, frame = np.random.default_rng(4), tastes(200)
    values = {
        "sweet": {"ale": 1.0, "bitter": -2.0, "cider": 4.0},
        "warm": {"ale": 9, "bitter": 8, "cider": 8.5},
    }
    for side in ("left", "right"):
        for name, of in values.items():
            frame[f"{side}_{name}"] = frame[side].map(of)
        frame[f"{side}_full"] = rng.normal(size=200)
    frame.to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *JUDGEMENTS, "-p", "features", "sweet, warm, full"]) == 0
    page = (here / "own_report.html").read_text("utf-8")
    assert "Features beside the scores make that log loss" in page[: page.index("The data")]
    assert (
        "<strong>The same in all rows of an item: sweet, warm.</strong> Of such a feature 3 items tell"
        in page
    )
    low, high = zip(
        *re.findall(r"<td>-?\d.\d\d</td>\s*<td[^>]*>(-?[\d.]+)\s+to\s+(-?[\d.]+)<", page)[-3:], strict=True
    )
    width = np.array(high, float) - np.array(low, float)
    assert width[:2].min() > 3 * width[2], "of three items with two features hardly anything is known"
    assert re.search(r"<th[^>]*>column</th>\s*<th[^>]*>row 196</th>", page), "a wide table is turned"


def games_with_slips():
    frame = games(300).assign(neutral=["no", "yes"] * 150)
    frame.loc[7, ["home", "away"]] = "Bob"
    frame.loc[100, ["home", "away"]] = ["Dees", "Bob"]
    frame.loc[299, ["home", "away", "result"]] = ["Annn", "Bob", None]
    return pd.concat([frame.iloc[:9], frame.iloc[8:]])


def test_a_few_slips_in_a_file_are_left_out_and_told(here):
    games_with_slips().to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *MATCHES, "-p", "profile", "full"]) == 0
    page = (here / "own_report.html").read_text("utf-8")
    assert "own.csv has 'Bob' in line 9, column 'away'; expected another name than in column 'home'" in page
    assert "<strong>1 row is a copy of another row</strong>" in page
    assert "Dees (in 1; Dee in" in page
    assert "Annn (in" not in page, "only those of matches that were played"
    assert "<td>–</td>\n" in page
    assert "evidence, less the price of parameters" in page
    assert "<strong>299 matches</strong> of <strong>5 players" in page
    assert re.search(r"Annn[^.]*Ann", page[page.index("What comes next") :])


def test_winners_and_losers_with_a_match_to_come_and_a_pair_that_is_named(here, capsys):
    """The match of tomorrow counted as won by the one whose name stood first, and nothing said so."""
    frame = games(90).assign(points="21")
    frame.loc[89, "points"] = ""
    frame.to_csv("own.csv", index=False)
    options = [*MATCHES[:-1], "first won", "-p", "pair"]
    assert main(["report", "own.csv", *options, "Cy - Ann"]) == 0
    page = (here / "own_report.html").read_text("utf-8")
    assert "Taken as won, with nothing in 'points': line 91." in page
    assert "-p until DATE" in page.replace("<code>", "").replace("</code>", "")
    ends = re.search(r"If they met: Cy against Ann, .*; the first with (\d+)\s+to\s+(\d+) %", page)
    low, high = map(int, ends.groups())
    assert 0 <= low < 50 < high <= 100
    assert main(["report", "own.csv", *options, "Cy - Ann", "-p", "until", frame["day"][80]]) == 0
    page = (here / "own_report.html").read_text("utf-8")
    assert "9 rows are to be forecast, without an outcome, or later than" in page
    assert "what happened</th>" not in page
    assert main(["report", "own.csv", *options, "Cy - Anne"]) == 2
    assert "pair is 'Cy - Anne'; expected two names of the file, such as" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [[*MATCHES[:-1], "first won"], ["--judgements", *MATCHES], ["--judgements", *MATCHES[:6], *MATCHES[9:]]],
)
def test_what_a_message_advises_works(here, options):
    """Of files whose rows name the winner first, or have one time, or none, or few matches."""
    frame = games(20 if "--judgements" in options else 60)
    frame.assign(day="2024-01-01" if "--judgements" in options else frame["day"]).to_csv(
        "own.csv", index=False
    )
    assert main(["report", "own.csv", *options]) == 0


def test_rows_of_what_was_not_played_are_named_and_deleted(here, capsys):
    frame = games().assign(result="3:1")
    frame.loc[:19, "result"] = "1:3"
    frame.loc[7:9, "result"] = "w.o."
    frame.to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *MATCHES]) == 2
    assert "'w.o.' in line 9, column 'result'; expected who won" in capsys.readouterr().err
    frame.drop(index=range(7, 10)).to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *MATCHES]) == 0


def test_a_number_among_points_of_both_is_no_outcome(here, capsys):
    """As 31 for 3:1; numbers are outcomes where all rows have one."""
    games().assign(result=["3:1", "31"] * 30).to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *MATCHES]) == 2
    assert "'31' in line 3" in (said := capsys.readouterr().err)
    assert "points of both such as 3-0, numbers alone, or one of" in said


def test_a_player_called_b_is_no_side(here, capsys):
    """Who won is named; that neither side is B is a slip, and no win of the second."""
    frame = pd.DataFrame({"home": ["A", "B", "C"] * 20, "away": ["B", "C", "A"] * 20})
    frame = frame.assign(day=games()["day"], result=frame["home"])
    frame.loc[2, "result"] = "B"
    frame.loc[5, "result"] = "B"
    frame.to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *MATCHES]) == 2
    assert "'B' in line 4, column 'result'; expected who won" in capsys.readouterr().err


def test_the_order_of_two_items_is_corrected_for(here):
    rng = np.random.default_rng(3)
    first, second = np.array([rng.choice(4, 2, replace=False) for _ in range(600)]).T
    won = rng.random(600) < 1 / (1 + np.exp(-(1.5 + 0.5 * (first - second))))
    frame = pd.DataFrame({"left": first, "right": second, "better": won.astype(int)})
    frame.to_csv("own.csv", index=False)
    assert main(["report", "own.csv", "--judgements", *JUDGEMENTS]) == 0
    page = (here / "own_report.html").read_text("utf-8")
    added = float(re.search(r"Being first adds ([\d.]+) to a score", page)[1])
    assert added == pytest.approx(1.5, abs=0.25)
    names = re.findall(r'<td>\d</td>\s*<td style="text-align: left">(\d)</td>', page)
    assert names[:4] == ["3", "2", "1", "0"]


WRONG = [
    (games(), [], "the columns home, away, day, result; expected one called 'first', or -p first NAME"),
    (
        games(),
        [*MATCHES[:6], *MATCHES[9:]],
        "expected one called 'time', or -p time NAME, or --judgements, for comparisons without times",
    ),
    (
        tastes().assign(better="perhaps"),
        JUDGEMENTS,
        "same, 1/2-1/2, first, second, true, false; write tie where neither won, and delete what was not",
    ),
    (
        games().assign(day="03/04/2024"),
        MATCHES,
        "'03/04/2024' in column 'day'; expected -p time_format '%d/%m/%Y' or -p time_format '%m/%d/%Y'",
    ),
    (games().assign(day="soon"), MATCHES, "'soon' in line 2, column 'day'; expected a number, or a date"),
    (games().assign(result="lost"), MATCHES, "'lost' in line 2, column 'result'; expected who won, 'home'"),
    (games().assign(result=3), MATCHES, "'3' in line 2, column 'result'; expected 1, 0, -1, or 1, 1/2, 0"),
    (games().assign(away=" "), MATCHES, "'' in line 2, column 'away'; expected a name"),
    (games().assign(away="Ann", home="Ann"), MATCHES, "'Ann' in line 2, column 'away'; expected another"),
    (games(20), MATCHES, "20 matches with an outcome; expected 30 at least"),
    (games(1), MATCHES, "1 matches with an outcome; expected 30 at least"),
    (games().assign(result=None), MATCHES, "0 matches with an outcome; expected 30 at least"),
    (games().assign(result="tie"), MATCHES, "all of them ties"),
    (
        games().assign(result=1),
        MATCHES,
        "all the same; expected both sides to win, or -p outcome 'first won'",
    ),
    (games().assign(day="2024-01-01"), MATCHES, "60 matches with an outcome at 1 times; expected several"),
    (games(), [*MATCHES, "-p", "frist", "home"], "no parameter 'frist'; expected one of"),
    (games(), [*MATCHES, "-p", "n_next", "many"], "n_next is 'many'; expected one like 8"),
    (games(0), MATCHES, "own.csv is empty"),
    ("", MATCHES, "own.csv is empty; expected a line of names of columns"),
    ("home,away\nAnn,Bob\nAnn,Bob,1\n", MATCHES, "expected as many values in each line as there are columns"),
    (tastes(), [*JUDGEMENTS, "-p", "features", "sweet"], "expected one called 'right_sweet'"),
    (tastes(), [*JUDGEMENTS, "-p", "until", "2024"], "no column has times; expected one: -p time NAME"),
    (tastes().assign(better="tie"), JUDGEMENTS, "80 judgements, 0 without a tie; expected 10 at least"),
    (tastes().assign(better="left"), JUDGEMENTS, "all the same; expected both sides to win, or -p"),
]


@pytest.mark.parametrize(("frame", "options", "message"), WRONG)
def test_what_is_wrong_with_a_file_is_one_line_and_the_report_stays(here, capsys, frame, options, message):
    (here / "own_report.html").write_text("before")
    content = frame if isinstance(frame, str) else frame.to_csv(index=False)
    (here / "own.csv").write_text(content, "utf-8")
    assert main(["report", "own.csv", *options]) == 2
    said = capsys.readouterr().err
    assert said.startswith("preflearn: error: ")
    assert message in said
    assert said.count("\n") == 1
    assert " in cell " not in said
    assert (here / "own_report.html").read_text() == "before"


def test_templates_are_installed_where_a_report_looks_for_them():
    carried = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]
    for name in TEMPLATES:
        path = f"notebooks/{name}.ipynb"
        assert carried["wheel"]["force-include"][path] == f"bookrunner/_files/{path}"


def test_a_file_that_is_not_there_and_a_place_that_is_not_one(here, capsys):
    assert main(["report", "none.csv"]) == 2
    assert "none.csv' does not exist" in capsys.readouterr().err
    games().to_csv("own.csv", index=False)
    assert main(["report", "own.csv", *MATCHES, "--output", "own.csv/x.html"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_another_failure_of_a_cell_has_its_traceback(here, capsys, monkeypatch):
    games().to_csv("own.csv", index=False)
    failed = Result(None, "KeyError: 'x' in cell 3", "a traceback")
    monkeypatch.setattr(report, "execute", lambda *_, **__: failed)
    assert main(["report", "own.csv", *MATCHES]) == 1
    said = capsys.readouterr().err
    assert "a traceback\npreflearn: error: KeyError: 'x' in cell 3" in said

"""The script of the page that computes scores in the browser: it reads tables, and its
numbers are those of the package."""

import re
import shlex
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from node import run_in_node
from scipy.optimize import linprog

from preflearn.core import diagnose
from preflearn.core.outcome_losses import davidson_loss
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, bradley_terry

in_node = partial(run_in_node, "scores.js")
PAGE = Path(__file__).parents[1] / "book" / "scores_in_the_browser.md"
ODD_NAMES = [
    'The "Big" One',
    "a,b;c\td",
    "<b>x</b> & y",
    "$x_1$",
    "naïve Ωmega",
    "李雷",
    "O'Neill",
    "100%",
    "x" * 90,
    "-3",
]
FIT = """(script, cases) => cases.map(({ text, model, alpha }) => {
  const table = script.readTable(text);
  return { ...table, ...script.fit(table.items.length, table.comparisons, model, alpha) };
})"""


class Kind(NamedTuple):
    """Options for the construction of a file."""

    n: int
    m: int
    ties: float = 0.2
    weighted: bool = False
    groups: int = 1
    unbeaten: bool = False
    odd: bool = False
    separator: str = ","
    way: str = "names"
    header: bool = True


FILES = [
    Kind(2, 30),
    Kind(2, 40, ties=0, way="numbers"),
    Kind(3, 20, separator=";", way="signs"),
    Kind(4, 40, weighted=True, separator="\t"),
    Kind(5, 60, groups=2),
    Kind(5, 40, unbeaten=True),
    Kind(6, 50, ties=0.6, way="points"),
    Kind(6, 80, odd=True),
    Kind(8, 120, odd=True, separator=";", weighted=True, way="sides"),
    Kind(9, 150, groups=3, ties=0.1, separator="\t", way="numbers"),
    Kind(10, 150, odd=True, separator="\t", unbeaten=True),
    Kind(12, 60, ties=0, unbeaten=True),
    Kind(12, 150, ties=0, header=False, way="won"),
    Kind(15, 200, weighted=True, header=False),
    Kind(20, 400, groups=2, unbeaten=True, way="signs"),
    Kind(30, 300, ties=0.4, separator=";", way="words"),
    Kind(40, 2000, weighted=True, groups=4),
    Kind(60, 500, ties=0.05),
    Kind(100, 3000, way="points", separator=";"),
    Kind(200, 4000, ties=0.3),
]


class File(NamedTuple):
    """A table as text, and its contents."""

    text: str
    items: list[str]
    pairs: np.ndarray
    y: np.ndarray
    weights: np.ndarray


def quoted(cell, separator):
    if separator in cell or '"' in cell:
        return '"' + cell.replace('"', '""') + '"'
    return cell


def written(y, first, second, way):
    """Return an outcome as text."""
    return {
        "names": {1: first, 0: "tie", -1: second},
        "numbers": {1: "1", 0: "0.5", -1: "0"},
        "signs": {1: "1", 0: "0", -1: "-1"},
        "points": {1: "3-1", 0: "½-½", -1: "0–2"},
        "sides": {1: "A", 0: "Draw", -1: "B"},
        "words": {1: "won", 0: "no preference", -1: "lost"},
    }[way][int(y)]


def simulated(kind, seed):
    """Return a file of this kind, with outcomes from Davidson's model."""
    rng = np.random.default_rng([57, seed])
    scores = rng.normal(0, 0.7, kind.n)
    group = np.arange(kind.n) % kind.groups
    names = [f"item {k + 1}" for k in range(kind.n)]
    if kind.odd:
        names = ODD_NAMES[: kind.n]
    pairs = []
    while len(pairs) < kind.m:
        i, j = rng.choice(kind.n, 2, replace=False)
        if group[i] == group[j]:
            pairs.append((i, j))
    pairs = np.array(pairs)
    d = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    y = np.where(
        rng.random(kind.m) < kind.ties, 0, np.sign(d + rng.logistic(size=kind.m))
    )
    if kind.unbeaten:
        y = np.where(pairs[:, 0] == 0, 1, np.where(pairs[:, 1] == 0, -1, y))
    if kind.way == "won":
        pairs = np.where((y < 0)[:, None], pairs[:, ::-1], pairs)
        y = np.abs(y)
    weights = np.ones(kind.m)
    if kind.weighted:
        weights = rng.integers(1, 9, kind.m) / 2
    rows = []
    for (i, j), one, weight in zip(pairs, y, weights, strict=True):
        cells = [names[i], names[j]]
        if kind.way != "won":
            cells.append(written(one, names[i], names[j], kind.way))
        if kind.weighted:
            cells.append(f"{weight:g}")
        rows.append(cells)
    if kind.header:
        rows.insert(0, ["first", "second", "outcome", "weight"][: len(rows[0])])
    lines = [
        kind.separator.join(quoted(cell, kind.separator) for cell in cells)
        for cells in rows
    ]
    # items are numbered in the order in which they appear
    order = list(dict.fromkeys(pairs.ravel()))
    number = np.zeros(kind.n, dtype=int)
    number[order] = np.arange(len(order))
    text = "\n".join(lines) + "\n"
    return File(text, [names[k] for k in order], number[pairs], y, weights)


@pytest.fixture(scope="module")
def files():
    return [simulated(kind, seed) for seed, kind in enumerate(FILES)]


def halves(file):
    """Return the same file, where each tie is replaced by half a win for each item."""
    tie = file.y == 0
    pairs = np.concatenate([file.pairs, file.pairs[tie]])
    y = np.concatenate([np.where(tie, 1, file.y), -np.ones(tie.sum())])
    weights = np.where(tie, file.weights / 2, file.weights)
    return file._replace(
        pairs=pairs, y=y, weights=np.concatenate([weights, file.weights[tie] / 2])
    )


def package(file, alpha):
    """Return scores, standard errors relative to the mean of the group, and nu,
    computed by the package."""
    model = Davidson(alpha).fit(file.pairs, file.y, sample_weight=file.weights)
    n = len(file.items)
    groups = diagnose(file.pairs, file.y).components
    means = np.zeros((n, n))
    for group in groups:
        means[np.ix_(group, group)] = 1 / len(group)
    ends = np.column_stack([np.arange(n), n + np.arange(n)])
    errors = model.standard_errors(Pairs(np.vstack([np.eye(n), means]), ends))
    return model.coef_ - means @ model.coef_, errors, model.nu_


@pytest.mark.parametrize("model", ["davidson", "bradley-terry"])
@pytest.mark.parametrize("alpha", [0, 0.1, 1])
@pytest.mark.filterwarnings("ignore::preflearn.core.NotIdentifiedWarning")
def test_numbers_on_twenty_files_are_those_of_the_package(files, model, alpha):
    """The package does not accept a penalty of 0. A penalty of 1e-9 changes each score
    by less than 1e-7."""
    cases = [{"text": file.text, "model": model, "alpha": alpha} for file in files]
    fallbacks = 0
    for file, found in zip(files, in_node(FIT, cases), strict=True):
        assert found["items"] == file.items
        comparisons = [
            (one["i"], one["j"], one["y"], one["weight"])
            for one in found["comparisons"]
        ]
        np.testing.assert_array_equal(
            comparisons, np.column_stack([file.pairs, file.y, file.weights])
        )
        diagnosis = diagnose(file.pairs, file.y)
        assert found["diagnosis"]["groups"] == [
            sorted(group) for group in diagnosis.components
        ]
        assert found["diagnosis"]["unbeaten"] == diagnosis.unbeaten
        assert found["diagnosis"]["exists"] == (not diagnosis.separable)
        fallbacks += found["alpha"] != alpha
        same = file if model == "davidson" else halves(file)
        scores, errors, nu = package(same, found["alpha"] or 1e-9)
        np.testing.assert_allclose(found["scores"], scores, atol=1e-6)
        np.testing.assert_allclose(found["errors"], errors, atol=1e-6)
        assert found["nu"] == pytest.approx(nu, abs=1e-6)
    assert (fallbacks > 0) == (alpha == 0)


def test_errors_are_those_of_dense_algebra():
    """The reference uses second derivatives of the likelihood, with scores that sum to
    zero."""
    file = simulated(Kind(6, 80), 3)
    (found,) = in_node(FIT, [{"text": file.text, "model": "davidson", "alpha": 0}])
    s, t = np.array(found["scores"]), np.log(found["nu"])
    D = np.zeros((80, 7))
    D[np.arange(80), file.pairs[:, 0]] += 1
    D[np.arange(80), file.pairs[:, 1]] -= 1
    D[:, 6] = 1
    loss = davidson_loss(D[:, :6] @ s, t, file.y)
    np.testing.assert_allclose(loss.d @ D[:, :6], 0, atol=1e-8)
    assert loss.t.sum() == pytest.approx(0, abs=1e-8)
    H = D.T @ (loss.dd[:, None] * D)
    H[6, :6] = H[:6, 6] = loss.dt @ D[:, :6]
    H[6, 6] = loss.tt.sum()
    Q = np.linalg.qr(np.column_stack([np.ones(6), np.eye(6)[:, :5]]))[0][:, 1:]
    whole = np.block([[Q, np.zeros((6, 1))], [np.zeros((1, 5)), np.ones((1, 1))]])
    covariance = (whole @ np.linalg.inv(whole.T @ H @ whole) @ whole.T)[:6, :6]
    np.testing.assert_allclose(found["covariance"], covariance, atol=1e-8)


def test_maximum_likelihood_is_that_of_bradley_terry():
    """This holds within a group. For groups that never met, the package adds a small
    number to all counts."""
    for seed in range(5):
        file = simulated(Kind(5, 60, ties=0.3), seed)
        case = {"text": file.text, "model": "bradley-terry", "alpha": 0}
        (found,) = in_node(FIT, [case])
        P = np.zeros((5, 5))
        np.add.at(P, tuple(file.pairs.T), (1 + file.y) / 2)
        np.add.at(P, tuple(file.pairs[:, ::-1].T), (1 - file.y) / 2)
        np.testing.assert_allclose(found["scores"], bradley_terry(P), atol=1e-7)


def separated(n, comparisons):
    """Return whether scores exist that put winners at least one step above losers, and
    tied items at most one step apart."""
    rows = []
    ends = []
    for i, j, y in comparisons:
        for sign in (1, -1):
            row = np.zeros(n)
            row[[i, j]] = [sign, -sign]
            if y == 0 or sign == -y:
                rows.append(row)
                ends.append(1 if y == 0 else -1)
    return linprog(np.zeros(n), np.array(rows), ends, bounds=(None, None)).success


@pytest.mark.filterwarnings("ignore::preflearn.matches.OutcomeWarning")
def test_a_missing_maximum_is_found():
    """The reference uses linear programs: Davidson's likelihood has no maximum if it
    increases in some direction.

    In one kind of direction, the weight of ties is constant, and `diagnose` finds this.
    In the other, it increases.
    """
    rng = np.random.default_rng(57)
    cases = []
    for _ in range(150):
        m = rng.integers(3, 9)
        first = rng.integers(4, size=m)
        second = (first + rng.integers(1, 4, m)) % 4
        y = rng.choice([-1, 0, 0, 1], m)
        y[0] = 1
        ids = np.unique([first, second], return_inverse=True)[1].reshape(2, m)
        cases.append(np.column_stack([*ids, y]).tolist())
    code = """(script, cases) => cases.map((rows) => {
      const comparisons = rows.map(([i, j, y]) => ({ i, j, y, weight: 1 }));
      const n = 1 + Math.max(...rows.flatMap(([i, j]) => [i, j]));
      return script.fit(n, comparisons).diagnosis;
    })"""
    kinds = set()
    for rows, found in zip(cases, in_node(code, cases), strict=True):
        pairs, y = np.array(rows)[:, :2], np.array(rows)[:, 2]
        n = pairs.max() + 1
        diagnosis = diagnose(pairs, y)
        infinite = bool(diagnosis.separable)
        stepped = bool((y == 0).any() and separated(n, rows))
        assert diagnosis.ties_unbounded == (stepped and not infinite)
        assert bool(found["parts"]) == infinite
        assert found["separable"] == stepped
        assert found["exists"] == (not infinite and not stepped)
        kinds.add((infinite, stepped))
    assert len(kinds) == 4


BAD_TABLES = [
    ("", "empty"),
    ("Ann beats Bob", "Line 1: “Ann beats Bob”.*commas"),
    ("first,second,outcome", "no comparison"),
    ("a,b,a\nb,c,c\nc,a,b", "Line 3: the outcome “b”.*“c” or “a”"),
    ("first,second,outcome\na,b,2", "Line 2: the outcome “2”.*“a” or “b”"),
    ("a,b,a\na,a,a", "Line 2 compares “a” with itself.*delete"),
    ("a,b,a\na,,a", "Line 2 has no name.*delete"),
    ("a,b,a\na,b,a,b", "Line 2 has 4 values, but line 1 has 3.*quotes"),
    ('a,b,a\n"a,b,b\n', "Line 2: the quote.*Close it"),
    ('a,b,a\n"a"x,b,b\n', "Line 2: after the quoted value “a”.*two quotes"),
    ("first,second,outcome,weight\na,b,a,many", "Line 2: the weight “many”.*number"),
    ("first,second,outcome,weight\na,b,a,-1", "Line 2: the weight “-1”.*number"),
    ("first,second,outcome,outcome\na,b,a,b", "two columns are called “outcome”"),
    ("first,second,outcome\nx,y,a\nx,y,a", "Line 2: the outcome “a” may mean.*“x”"),
    ("a,b,tie\nb,c,tie", "ties.*half a win"),
    ("\n".join(f"{k},{k + 1},{k}" for k in range(201)), "202 items.*preflearn report"),
]


@pytest.fixture(scope="module")
def messages():
    code = """(script, texts) => texts.map((text) => {
      try {
        const table = script.readTable(text);
        script.fit(table.items.length, table.comparisons);
      } catch (error) { return error.message; }
    })"""
    return dict(
        zip(BAD_TABLES, in_node(code, [text for text, _ in BAD_TABLES]), strict=True)
    )


@pytest.mark.parametrize("case", BAD_TABLES, ids=lambda case: case[0][:30])
def test_a_bad_table_is_rejected_with_the_line_and_the_remedy(messages, case):
    assert re.search(case[1], messages[case])


def test_columns_of_public_files_are_found():
    """Headers are as in public files. The columns are first, second, outcome, and
    weight."""
    headers = {
        "winner,loser": [0, 1, None, None],
        "winner,loser,n": [0, 1, None, 2],
        "model_a,model_b,winner,judge": [0, 1, 2, None],
        "date,home,away,result": [1, 2, 3, None],
        "id,Player1,Player2,Result,Count": [1, 2, 3, 4],
        "Wine,Other wine,Preferred": [0, 1, 2, None],
    }
    texts = []
    for header, (first, second, outcome, weight) in headers.items():
        cells = ["1"] * (header.count(",") + 1)
        cells[first], cells[second] = "x", "y"
        if outcome is not None:
            cells[outcome] = "x"
        if weight is not None:
            cells[weight] = "2"
        texts.append(f"{header}\n{','.join(cells)}")
    code = "(script, texts) => texts.map((text) => script.readTable(text).columns)"
    found = [list(columns.values()) for columns in in_node(code, texts)]
    assert found == list(headers.values())


def test_a_column_of_persons_is_ignored_and_passed_to_the_report():
    """Such a column holds items only if fewer than two columns are left for them."""
    cases = {
        "friend,film A,film B,winner\nAnn,Up,Jaws,Up": ([1, 2, 3, None], "friend"),
        "film1;film2;better;Who\nUp;Jaws;Up;Ann": ([0, 1, 2, None], "Who"),
        "winner,loser,judge\nUp,Jaws,Ann": ([0, 1, None, None], "judge"),
        "film,other film,user\nUp,Jaws,Ann": ([0, 1, None, None], "user"),
        "person,other,winner\nAnn,Bob,Ann": ([0, 1, 2, None], None),
        "first,second,outcome\nAnn,Bob,Ann": ([0, 1, 2, None], None),
    }
    code = """(script, texts) => texts.map((text) => {
      const table = script.readTable(text);
      return [Object.values(table.columns), table.notes.join(" "), script.command(table)];
    })"""
    for (text, (columns, person)), (found, notes, command) in zip(
        cases.items(), in_node(code, list(cases)), strict=True
    ):
        assert found == columns, text
        assert (f"“{person}” is not used" in notes) == (person is not None)
        assert command.endswith(f" -p judge {person}") == (person is not None)


def test_a_line_that_is_left_out_is_noted():
    text = "first,second,outcome,weight\na,b,a,1\na,b,,1\nb,a,b,0\nA,b,tie,2\n"
    found = in_node("(script, text) => script.readTable(text)", text)
    assert len(found["comparisons"]) == 2
    notes = " ".join(found["notes"])
    for words in ("empty outcome: line 3", "weight of 0: line 4", "“a” and “A”"):
        assert words in notes


def test_the_command_quotes_names_of_columns_for_the_shell():
    titles = ["it's", "the other", "won $(x)"]
    text = f"{','.join(titles)}\na,b,a\nb,a,a\n"
    command = in_node("(script, text) => script.command(script.readTable(text))", text)
    words = shlex.split(command)
    assert words[:4] == ["preflearn", "report", "FILE", "--judgements"]
    named = dict(zip(["first", "second", "outcome"], titles, strict=True))
    assert words[4:] == [word for one in named.items() for word in ("-p", *one)]


def test_the_table_without_scripts_has_the_scores_of_the_example():
    rows = in_node("(script) => script.readTable(script.EXAMPLE)", None)
    pairs = np.array([[one["i"], one["j"]] for one in rows["comparisons"]])
    y = np.array([one["y"] for one in rows["comparisons"]])
    model = Davidson(1e-9).fit(pairs, y)
    counts = np.zeros((3, 5), dtype=int)
    for end, sign in product((0, 1), (1, 0, -1)):
        outcome = y if end == 0 else -y
        np.add.at(counts[1 - sign], pairs[outcome == sign, end], 1)
    expected = []
    for k in np.argsort(-model.coef_):
        low, high = model.interval()[k]
        text = f"{model.coef_[k]:.2f} {low:.2f} to {high:.2f}".replace("-", "−")
        expected.append(f"{rows['items'][k]} {text} {' '.join(map(str, counts[:, k]))}")
    rows_of_page = re.findall(
        r"<tr>(<th scope=\"row\">.*)</tr>", PAGE.read_text("utf-8")
    )
    assert [
        re.sub(r"(</?t[hd][^>]*>)+", " ", row).strip() for row in rows_of_page
    ] == expected

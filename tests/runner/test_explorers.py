import base64
import json
import math
import re
from fractions import Fraction
from functools import partial
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from node import run_in_node
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.analogy.certificate import psd_certificate
from preflearn.core import validation
from preflearn.core.diagnosis import NotIdentifiedWarning
from preflearn.datasets import four_items
from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Linear,
    Matern12,
    Matern32,
    PiecewiseConstant,
    Probit,
    Wiener,
)
from preflearn.margins import MarginLP, MarginQP, separability
from preflearn.matches import Matches
from preflearn.metrics import threshold
from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path, svm_path
from preflearn.pursuit import RankingPursuit
from preflearn.ranking import bradley_terry
from preflearn.ratings import Elo
from preflearn_book.runner import explorer, parameters
from preflearn_book.studies.ch02_separable import simulate_separable_pairs
from preflearn_book.studies.ch15_proportions import PROPORTIONS, proportion_gram
from preflearn_book.studies.ch17_compared import advice

in_node = partial(run_in_node, "explorers.js")

GRAPH = {"items": ["a", "b", "c"], "pairs": [[1, 0], [2, 1]], "y": [1, 0]}
MARGINS = {"preferences": [[2.0, 1.0]], "ties": [[0.5, 0.0]]}
TIMELINES = {
    "players": ["a", "b"],
    "years": [2000.0, 2000.5, 2001.0],
    "mean": [[np.nan, 1.0, 1.5], [0.0, -1.0, np.nan]],
    "std": [[np.nan, 0.5, 0.25], [1.0, 0.001, np.nan]],
}
SIGNED = ("arithmetic", "geometric", "signed min-max")
OTHERS = ("difference", "clipped", "softened", "min-max", "approximate", "graded")
NAMES = (*SIGNED, *(f"{name}, 0 positive" for name in SIGNED), *OTHERS)


@pytest.fixture
def short_repr(monkeypatch):
    """Collect what explorers show in a notebook, as a list of bundles."""
    bundles = []
    monkeypatch.setattr(parameters, "running_shell", lambda: object())
    monkeypatch.setattr(
        "IPython.display.display", lambda bundle, raw: bundles.append(bundle)
    )
    return bundles


def show(kind="graph", data=GRAPH, alt="What is seen.", **rest):
    figure = Figure()
    figure.subplots().plot([0, 1], [0, 1])
    explorer(kind, data, fallback=figure, alt=alt, **rest)


def inline_json(bundle):
    return json.loads(
        bundle["text/html"].partition('json">')[2].partition("</script>")[0]
    )


def test_html_contains_the_data_and_the_figure(short_repr):
    data = MARGINS | {
        "preferences": np.array(MARGINS["preferences"]),
        "note": np.float64(0.5),
    }
    show(
        "margins",
        data,
        alt="What\n is  seen.",
        caption_state="Here nothing is stretched.",
    )
    text = short_repr[0]["text/html"]
    assert text.startswith('<div class="explorer" data-explorer="margins">')
    assert inline_json(short_repr[0]) == MARGINS | {"note": 0.5}
    picture = re.search(
        r'<img src="data:image/svg\+xml;base64,([^"]+)" alt="What is seen.">', text
    )
    assert b"<svg" in base64.b64decode(picture[1])
    assert "<p>Here nothing is stretched.</p>" in text
    show("margins", data, caption_state="Here nothing is stretched.")
    assert short_repr[1] == short_repr[0]


def test_texts_cannot_end_the_script_or_the_attribute(short_repr):
    name = "</script><script>alert(1)</script> & <!-- \u2028"
    show(
        data=GRAPH | {"items": [name, "b", "c"]},
        alt='a "quoted" <b>',
        caption_state="<i> & so on",
    )
    text = short_repr[0]["text/html"]
    assert text.count("</script>") == text.count("<script") == 1
    assert "<!--" not in text
    assert "\u2028" not in text
    assert inline_json(short_repr[0])["items"][0] == name
    assert 'alt="a &quot;quoted&quot; &lt;b&gt;"' in text
    assert "<p>&lt;i&gt; &amp; so on</p>" in text


def test_timelines_are_rounded_and_gaps_have_std_0(short_repr):
    show("timelines", TIMELINES | {"chosen": np.array(["b", "a"])})
    expected = {"chosen": ["b", "a"], "mean": [[0, 1, 1.5], [0, -1, 0]]}
    expected["std"] = [[0, 0.5, 0.25], [1, 0.001, 0]]
    assert inline_json(short_repr[0]) == TIMELINES | expected


@pytest.mark.parametrize(
    ("kind", "data", "options", "named"),
    [
        ("grahp", GRAPH, {}, "'grahp'"),
        ("graph", {"items": ["a", "b"], "pairs": [[1, 0]]}, {}, "'y'"),
        ("timelines", TIMELINES | {"years": [1, 2, 10**400]}, {}, "'years'"),
        ("graph", GRAPH, {"alt": "  "}, "alternative text"),
    ],
    ids=validation.short_repr,
)
def test_bad_arguments_are_named(kind, data, options, named):
    with pytest.raises(ValueError, match=named):
        explorer(kind, data, **{"fallback": Figure(), "alt": "What is seen."} | options)


def test_margins_agree_with_the_solvers():
    stretches = [0.25, 0.5, 1.0, 1.7, 4.0]
    sets = []
    expected = []
    for seed in (3, 7, 49):
        pairs, y, *_ = simulate_separable_pairs(12, 2, 0.5, margin=0.2, rng=seed)
        D = pairs.differences()
        sets.append(
            {
                "preferences": (y[y != 0, None] * D[y != 0]).tolist(),
                "ties": D[y == 0].tolist(),
            }
        )
        lp = MarginLP().fit(pairs, y)
        for stretch in stretches:
            units = [1, stretch]
            qp = MarginQP().fit(Pairs(pairs.items * units, pairs.index), y)
            directions = [
                complex(*w) / np.linalg.norm(w) for w in (lp.coef_, qp.u_ * units)
            ]
            expected.append(
                [*directions, lp.margin_, qp.margin_, 2 / np.linalg.norm(qp.u_)]
            )
    # no direction separates these pairs
    sets.append({"preferences": [[1.0, 0.0]], "ties": [[2.0, 0.0], [0.0, 2.0]]})
    code = """(script, {sets, stretches}) => sets.flatMap(({preferences, ties}) => {
        const problem = script.marginProblem(preferences, ties);
        return stretches.map(stretch => {
            const [lp, qp] = [problem.lp(stretch), problem.qp(stretch)], at = problem.worst(qp, stretch);
            return qp === null ? qp : [lp, qp, problem.worst(lp, stretch).mu, at.mu, at.gap];
        });
    })"""
    *found, nothing = np.split(
        np.array(in_node(code, {"sets": sets, "stretches": stretches}), object),
        [5, 10, 15],
    )
    assert list(nothing) == [None] * 5
    angles, values = np.split(
        np.array([[*row] for row in np.concatenate(found)], dtype=float), [2], axis=1
    )
    assert np.allclose(np.exp(1j * angles), [row[:2] for row in expected], atol=1e-6)
    assert np.allclose(values, [row[2:] for row in expected], rtol=1e-6)


def labelled_graphs(n, count):
    """Return labels 1, 0, -1 or None of all pairs of n items, with a preference and a
    tie."""
    rng = np.random.default_rng(n)
    pairs = np.array([(a, b) for a in range(n) for b in range(a)])
    cases = []
    while len(cases) < count:
        labels = rng.integers(-1, 3, len(pairs))
        if np.any(labels == 0) and np.any(np.abs(labels) == 1):
            cases.append([None if label > 1 else int(label) for label in labels])
    return pairs, cases


SEMIORDERS = """(script, {n, pairs, cases}) => cases.map(y => {
    const {cycles, ratio, fits, scores} = script.semiorder(n, pairs, y);
    return {cycles, ratio, fits, scores: fits ? scores(10) : null};
})"""


@pytest.mark.parametrize("n", [3, 4, 5])
def test_semiorders_agree_with_the_linear_program(n):
    pairs, cases = labelled_graphs(n, 60)
    answers = in_node(SEMIORDERS, {"n": n, "pairs": pairs.tolist(), "cases": cases})
    for labels, found in zip(cases, answers, strict=True):
        given = np.array([label is not None for label in labels])
        y = np.array([label for label in labels if label is not None])
        index = pairs[given]
        comparisons = Pairs(np.eye(n), index)
        assert found["fits"] is separability(comparisons, y).separable
        if not found["fits"]:
            continue
        margin = MarginLP().fit(comparisons, y).margin_
        # JSON has no infinity
        ratio = math.inf if found["ratio"] is None else found["ratio"]
        expected = 1 if ratio == math.inf else (ratio - 1) / (ratio + 1)
        assert margin == pytest.approx(expected, abs=1e-9)
        f = np.array(found["scores"])
        z = f[index[:, 0]] - f[index[:, 1]]
        # the scores are on the grid of the slider
        assert np.array_equal(f, f.round())
        assert f.min() >= 0
        assert f.max() <= 20 * (n - 1)
        assert np.array_equal(threshold(z, 10), y)
    fits = [found["fits"] for found in answers]
    assert 3 < sum(fits) < 57


def test_cycles_of_a_semiorder_are_obstacles():
    pairs, cases = labelled_graphs(5, 30)
    answers = in_node(SEMIORDERS, {"n": 5, "pairs": pairs.tolist(), "cases": cases})
    B = np.eye(5)[pairs[:, 0]] - np.eye(5)[pairs[:, 1]]
    for labels, found in zip(cases, answers, strict=True):
        ratios = []
        for cycle in found["cycles"]:
            way = np.zeros(len(pairs))
            starts = cycle["items"]
            ends = zip(starts, starts[1:] + starts[:1], strict=True)
            for pair, (start, end) in zip(cycle["pairs"], ends, strict=True):
                assert {start, end} == set(pairs[pair])
                way[pair] = 1 if pairs[pair, 0] == end else -1
            # a preference is passed to the better item, and the cycle closes
            preferences = [i for i in cycle["pairs"] if labels[i]]
            assert all(way[i] == labels[i] for i in preferences)
            assert len(preferences) == cycle["preferences"] > 0
            assert len(cycle["pairs"]) == cycle["preferences"] + cycle["ties"]
            assert not (way @ B).any()
            ratios.append(cycle["ties"] / cycle["preferences"])
        assert ratios == sorted(ratios)


def test_if_all_pairs_are_compared_cycles_of_four_edges_decide():
    """This is the theorem of Scott and Suppes."""
    rng = np.random.default_rng(0)
    pairs = [(a, b) for a in range(5) for b in range(a)]
    cases = []
    for _ in range(100):
        # nearly a semiorder: one answer may be changed
        f = rng.uniform(0, 4, 5)
        y = threshold(np.array([f[a] - f[b] for a, b in pairs]), 1).astype(int)
        y[rng.integers(10)] = rng.integers(-1, 2)
        cases.append(y.tolist())
    answers = in_node(SEMIORDERS, {"n": 5, "pairs": pairs, "cases": cases})
    for found in answers:
        short = [one for one in found["cycles"] if len(one["pairs"]) <= 4]
        assert found["fits"] is all(one["ties"] > one["preferences"] for one in short)
    assert 20 < sum(found["fits"] for found in answers) < 95


def test_stacked_marks_do_not_overlap():
    rng = np.random.default_rng(0)
    cases = [[3, 3, 3], [0, 30, 60], [40, 10, 20]]
    cases += rng.uniform(0, 100, (20, 5)).tolist()
    answers = in_node(
        "(script, cases) => cases.map(at => script.stacked(at, 21))", cases
    )
    assert answers[:3] == [[0, 1, 2], [0, 0, 0], [0, 0, 1]]
    for places, rows in zip(cases, answers, strict=True):
        for row in set(rows):
            same = np.sort(np.array(places)[np.array(rows) == row])
            assert np.all(np.diff(same) >= 21)


def test_graphs_agree_with_least_squares():
    rng = np.random.default_rng(0)
    cases = [{"pairs": [], "y": []}]
    every = np.array([(a, b) for a in range(5) for b in range(a)])
    for size in (1, 2, 3, 4, 5, 7, 10):
        pairs = rng.permuted(every[rng.choice(10, size, replace=False)], axis=1)
        cases.append({"pairs": pairs.tolist(), "y": rng.integers(-1, 2, size).tolist()})
    pairs, y = four_items()
    cases.append({"pairs": pairs.index.tolist(), "y": y.tolist()})
    code = "(script, cases) => cases.map(({pairs, y}) => script.comparisonGraph(5, pairs, y))"
    for case, found in zip(cases, in_node(code, cases), strict=True):
        index = np.reshape(case["pairs"], (-1, 2)).astype(int)
        B = np.eye(5)[index[:, 0]] - np.eye(5)[index[:, 1]]
        # the shortest solution has mean zero in each component
        f = np.linalg.pinv(B) @ np.array(case["y"])
        assert np.array_equal(np.reshape(found["B"], (-1, 5)), B)
        assert np.allclose(found["f"], f, atol=1e-12)
        assert np.allclose(found["Bf"], B @ f, atol=1e-12)
        assert (
            found["rank"] == np.linalg.matrix_rank(B) if len(B) else found["rank"] == 0
        )
        assert found["count"] == 5 - found["rank"] == len(set(found["component"]))


def test_bias_between_knots_is_that_of_the_path():
    pairs, y = four_items(2)
    flipped, y_tilde = pairs.flipped(y)
    B = flipped.incidence().toarray()
    K = rbf_kernel(pairs.items, gamma=0.3)
    path = svm_path(B @ K @ B.T, y_tilde, lambda_min=0.05)

    def solution(lam):
        return [path.bias(lam), *(K @ B.T @ (y_tilde * path.alpha(lam)) / lam)]

    lam = np.array([100, *path.breakpoints, path.lambda_end])
    at_knots = np.array([solution(knot) for knot in lam])
    costs = np.geomspace(0.01, 20, 60)
    data = {
        "lambda": lam.tolist(),
        "bias": at_knots[:, 0].tolist(),
        "scores": at_knots[:, 1:].tolist(),
    }
    code = """(script, {data, costs}) => ({
        zeros: script.zeros(data),
        at: costs.map(C => { const {beta, scores} = script.pathAt(data, C); return [beta, ...scores]; }),
    })"""
    found = in_node(code, {"data": data, "costs": costs.tolist()})
    assert np.allclose(found["at"], [solution(1 / C) for C in costs], atol=1e-9)
    (crossing,) = found["zeros"]
    assert abs(path.bias(1 / crossing)) < 1e-9


def test_ranking_path_between_knots_is_that_of_the_package():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 2))
    classes = np.repeat([1.0, 0.0], 7)
    X[:7] += 0.7
    X = X.round(3)
    gamma = 0.8
    (pairs, y) = Pairs.from_scores(X, classes)
    others = rng.normal(size=(8, 2)).round(3)
    valid, y_valid = Pairs.from_scores(others, np.repeat([1.0, 0.0], 4))
    path = ranksvm_path(pairs, y, gamma=gamma)
    knots = np.append(path.breakpoints, 0.8 * path.breakpoints[-1])
    better, better_valid = (
        np.where((label > 0)[:, None], some.index, some.index[:, ::-1])
        for some, label in ((pairs, y), (valid, y_valid))
    )
    data = {
        "items": pairs.items.tolist(),
        "pairs": better.tolist(),
        "valid": valid.items.tolist(),
        "valid_pairs": better_valid.tolist(),
        "gamma": gamma,
        "lambda": knots.tolist(),
        "coefficients": [
            pairs.B.adjoint(y * path.alpha(lam)).tolist() for lam in knots
        ],
    }
    places = np.geomspace(knots[0], knots[-1], 80)
    code = "(script, {data, places}) => places.map(script.rankingPath(data).at)"
    for lam, found in zip(
        places, in_node(code, {"data": data, "places": places.tolist()}), strict=True
    ):
        assert np.allclose(found["margins"], path.margins(lam), atol=1e-7)
        assert np.allclose(
            found["scores"], path.decision_function(lam, pairs.items), atol=1e-7
        )
        assert [found[name] for name in ("inside", "on", "beyond")] == [
            s.tolist() for s in path.sets(lam)
        ]
        assert found["training"] == np.mean(path.margins(lam) <= 1e-9)
        wrong = y_valid * path.decision_function(lam, valid) <= 1e-9
        assert found["validation"] == np.mean(wrong)
    first = in_node("(script, data) => script.rankingPath(data).at(1e9)", data)
    # above the first breakpoint, the answer is that of the end of the path
    assert first["lambda"] == knots[0]
    code = "(script, data) => (({steps, step}) => [steps, steps.map(step)])(script.rankingPath(data))"
    steps, back = in_node(code, data)
    # the slider reaches both ends
    assert [steps[0], steps[-1]] == [knots[-1], knots[0]]
    assert back == list(range(401))
    straight = in_node("(script, data) => script.rankingPath(data).knots", data)
    assert [lam for lam, _ in straight] == knots.tolist()
    lines = [lam * path.decision_function(lam, pairs.items) for lam in knots]
    assert np.allclose([g for _, g in straight], lines, atol=1e-7)


def test_pursuit_step_by_step_is_that_of_the_package():
    rng = np.random.default_rng(0)
    mixes = [0, 0.3, 1]
    gamma = 20.0
    size = 6
    x = rng.uniform(size=21).round(3)
    scores = rng.normal(size=21).round(3)
    places = rng.uniform(size=9)
    query = np.array([0, 1] * 8 + [0] * 5)  # two queries of 13 and 8 items
    fits = [
        RankingPursuit(size, gamma=gamma, mix=mix).fit(x[:, None], scores, query)
        for mix in mixes
    ]
    coefs = np.zeros((len(mixes), size, size))
    for fit, rows in zip(fits, coefs, strict=True):
        for p in range(1, size + 1):
            rows[p - 1, :p] = fit.coefs_[:p, p]
    data = {
        "train": np.column_stack([x, query, scores]).tolist(),
        "gamma": gamma,
        "mix": mixes,
        "basis": [fit.basis_.tolist() for fit in fits],
        "coefficients": coefs.tolist(),
    }
    code = """(script, {data, places}) => {
        const {at, curve, weights} = script.rankingPursuit(data), steps = [0, 1, 2, 3, 4, 5, 6];
        return data.mix.map((_, m) =>
            [weights(m), steps.map(p => at(m, p)), steps.map(p => curve(m, p, places))]);
    }"""
    found = in_node(code, {"data": data, "places": places.tolist()})
    same = query[:, None] == query
    K = rbf_kernel(x[:, None], gamma=gamma)
    laplacian = np.diag(same.sum(axis=1)) - same
    for mix, fit, (weights, steps, curves) in zip(mixes, fits, found, strict=True):
        form = mix * np.eye(21) + (1 - mix) * laplacian
        # indicator of the query of 13 items
        ones = 1.0 * (query == 0)
        apart = np.eye(21)[0] - np.eye(21)[-1]
        assert weights[0] == pytest.approx(
            ones @ form @ ones / 13 / (apart @ form @ apart / 2)
        )
        assert len(weights) == 2
        assert np.allclose([step["loss"] for step in steps], fit.losses_, rtol=1e-9)
        assert [step["next"] for step in steps[:-1]] == fit.basis_.tolist()
        for p, (step, curve) in enumerate(zip(steps, curves, strict=True)):
            basis = fit.basis_[:p]
            coef = fit.coefs_[:p, p]
            residual = scores - K[:, basis] @ coef
            assert np.allclose(step["residual"], residual, atol=1e-9)
            assert np.allclose(
                step["means"], [residual[query == q].mean() for q in (0, 1)], atol=1e-9
            )
            gains = (K @ form @ residual) ** 2 / np.diag(K @ form @ K)
            assert np.allclose(step["gains"], gains, atol=1e-9)
            there = np.exp(-gamma * (places[:, None] - x[basis]) ** 2) @ coef
            assert np.allclose(curve, there, atol=1e-9)


# prior means and standard deviations, including wide priors and a win of the weaker
# player
MATCHES = [
    ([0.0, 0.0], [1.0, 1.0]),
    ([2.5, -0.5], [0.5, 4.0]),
    ([-1.0, 5.0], [0.5, 0.5]),
    ([5.0, -1.0], [4.0, 0.5]),
]


def bound(mean, std, place, spread):
    """Return E log Phi(s1 - s2) - KL(q | prior) for independent Gaussians q with means
    `place` and deviations `spread`."""
    t = np.linspace(-10, 10, 401)
    lead = place[0] - place[1] + np.hypot(*spread) * t
    divergence = (
        np.log(std / spread) + (spread**2 + (place - mean) ** 2) / (2 * std**2) - 0.5
    )
    return norm.pdf(t) @ log_ndtr(lead) * 0.05 - divergence.sum()


@pytest.fixture(params=MATCHES)
def match(request):
    """Return prior means and deviations, scores on a grid, the joint density on the
    grid, and the answer of the script."""
    mean, std = map(np.array, request.param)
    scores = mean[:, None] + std[:, None] * np.linspace(-10, 10, 601)
    one, other = norm.pdf(scores, mean[:, None], std[:, None])
    joint = np.outer(one, other) * ndtr(scores[0][:, None] - scores[1])
    code = """(script, {mean, std, places}) => {
        const found = script.oneMatch(mean, std);
        return {...found, densities: places.map((x, i) => x.map(found.exact.densities[i]))};
    }"""
    data = {"mean": mean.tolist(), "std": std.tolist(), "places": scores.tolist()}
    return mean, std, scores, joint, in_node(code, data)


def test_exact_posterior_of_a_match_and_expectation_propagation(match):
    _, _, (first, second), joint, found = match
    steps = np.array([first[1] - first[0], second[1] - second[0]])
    total = joint.sum()
    lead = first[:, None] - second
    cell = steps.prod()
    density = [
        joint.sum(axis=1) / total / steps[0],
        joint.sum(axis=0) / total / steps[1],
    ]
    exact = found["exact"]
    ep = found["ep"]
    assert np.allclose(found["densities"], density, atol=1e-9)
    for i, (place, share) in enumerate(((first[:, None], joint), (second, joint))):
        average = (place * share).sum() / total
        spread = np.sqrt(((place - average) ** 2 * share).sum() / total)
        assert np.allclose(
            [exact["mean"][i], exact["std"][i]], [average, spread], atol=1e-8
        )
        # EP matches the moments
        assert np.allclose([ep["mean"][i], ep["std"][i]], [average, spread], atol=1e-8)
    average = (lead * joint).sum() / total
    spread = np.sqrt(((lead - average) ** 2 * joint).sum() / total)
    assert np.allclose(exact["difference"], [average, spread], atol=1e-8)
    assert exact["again"] == pytest.approx((ndtr(lead) * joint).sum() / total, abs=1e-8)
    assert exact["evidence"] == pytest.approx(np.log(total * cell), abs=1e-8)
    assert ep["evidence"] == pytest.approx(exact["evidence"], abs=1e-8)
    assert found["prior"]["again"] == pytest.approx(total * cell, abs=1e-8)
    # the difference is wider without the correlation
    assert ep["difference"] == pytest.approx([average, np.hypot(*ep["std"])])
    assert ep["difference"][1] > spread


def test_reverse_kl_of_a_match_has_the_greatest_bound(match):
    mean, std, *_, found = match
    kl = found["kl"]
    exact = found["exact"]

    def loss(x):  # x is in units of the prior
        return -bound(mean, std, mean + std * x[:2], std * np.exp(x[2:]))

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    assert np.allclose(kl["mean"], mean + std * best.x[:2], atol=1e-5)
    assert np.allclose(kl["std"], std * np.exp(best.x[2:]), atol=1e-5)
    assert kl["evidence"] == pytest.approx(-best.fun, abs=1e-9)
    assert kl["evidence"] < exact["evidence"]
    assert np.all(np.array(kl["std"]) < exact["std"])
    difference = np.subtract(*kl["mean"]), np.hypot(*kl["std"])
    assert kl["difference"] == pytest.approx(difference)
    assert kl["again"] == pytest.approx(
        ndtr(difference[0] / np.hypot(1, difference[1]))
    )


def test_timelines_are_linear_and_probabilities_those_of_the_package(short_repr):
    show("timelines", TIMELINES)
    code = """(script, {data, times, pairs}) => {
        const lines = script.scoreTimelines(data);
        return {at: [0, 1].map(i => times.map(time => lines.at(i, time))), pieces: lines.pieces(k => k !== 1),
                chances: pairs.map(([m1, m2, s1, s2]) =>
                    lines.chance({mean: m1, std: s1}, {mean: m2, std: s2}))};
    }"""
    rng = np.random.default_rng(0)
    pairs = np.column_stack([rng.normal(0, 2, (40, 2)), rng.uniform(0.001, 3, (40, 2))])
    pairs[0] = 6, -6, 0.001, 0.001  # a difference far in the tail
    times = [1999.9, 2000, 2000.1, 2000.5, 2000.6, 2000.75, 2001, 2001.1]
    found = in_node(
        code,
        {"data": inline_json(short_repr[0]), "times": times, "pairs": pairs.tolist()},
    )
    for values, inside, *rows in zip(
        found["at"],
        ([3, 4, 5, 6], [1, 2, 3]),
        TIMELINES["mean"],
        TIMELINES["std"],
        strict=True,
    ):
        assert [k for k, value in enumerate(values) if value is not None] == inside
        for name, row in zip(("mean", "std"), rows, strict=True):
            known = np.isfinite(row)
            expected = np.interp(
                np.array(times)[inside],
                np.array(TIMELINES["years"])[known],
                np.array(row)[known],
            )
            assert np.allclose([values[k][name] for k in inside], expected, atol=1e-12)
    assert found["pieces"] == [[0], [2]]
    for (m1, m2, s1, s2), chance in zip(pairs, found["chances"], strict=True):
        expected = Probit().probabilities([m1 - m2], [s1**2 + s2**2])[0]
        assert chance == pytest.approx(expected[1], rel=1e-9)


COVARIANCES = {  # variance, length scale or None, and the function of the package
    "constant": (1.0, None, Constant(1.0)),
    "piecewise constant": (1.0, None, PiecewiseConstant(1.0, (3.5, 7.5))),
    "Wiener": (0.4, None, Wiener(0.4, origin=0.0)),
    "linear": (0.04, None, Linear(0.04, origin=0.0)),
    "Matérn 1/2": (1.3, 2.5, Matern12(1.3, 2.5)),
    "Matérn 3/2": (1.0, 2.0, Matern32(1.0, 2.0)),
}


@pytest.mark.parametrize("name", COVARIANCES)
def test_posteriors_of_a_score_are_those_of_the_package(name):
    variance, scale, covariance = COVARIANCES[name]
    # the results that chapter 12 shows first
    times = [1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0]
    results = [-1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0]
    places = [0.0, 0.5, 3.5, 4.0, 7.5, 10.5, 12.0]
    code = """(script, {name, variance, scale, times, results, places}) => {
        const k = script.COVARIANCES[name](variance, scale, [3.5, 7.5]);
        const given = n => script.scorePosterior(k, times.slice(0, n), results.slice(0, n));
        return [0, 1, 8].map(n => [given(n).evidence, ...places.map(given(n).at)]);
    }"""
    data = {"name": name, "variance": variance, "scale": scale}
    data |= {"times": times, "results": results, "places": places}
    nothing, *found = in_node(code, data)
    prior = np.sqrt(np.diag(covariance.gram(places)))
    assert nothing[0] == 0
    assert [one["mean"] for one in nothing[1:]] == [0] * len(places)
    assert np.allclose([one["std"] for one in nothing[1:]], prior, rtol=1e-12)
    for n, (evidence, *posterior) in zip((1, 8), found, strict=True):
        matches = Matches(np.ones((n, 1)), times[:n], ["player"])
        model = DynamicComparisons(covariance, Gaussian(1.0), tol=1e-10)
        model.fit(matches, results[:n])
        mean, std = model.scores("player", places)
        assert np.allclose([one["mean"] for one in posterior], mean, atol=1e-8)
        assert np.allclose([one["std"] for one in posterior], std, atol=1e-7)
        assert evidence == pytest.approx(model.log_marginal_likelihood_, abs=1e-8)
        weighted = [np.dot(one["weights"], results[:n]) for one in posterior]
        assert np.allclose(weighted, mean, atol=1e-8)


LEAGUE = [  # first player, second player, and outcome, as in chapter 7
    [1, 0, 1],
    [2, 1, 0],
    [3, 2, 1],
    [3, 0, 1],
    [0, 3, 1],
    [1, 2, -1],
    [1, 3, 0],
    [0, 2, 0],
]


def elo_of_package(results, k):
    """Return the ratings of four players after all matches."""
    first, second, y = np.array(results).T
    B = np.eye(4)[first] - np.eye(4)[second]
    matches = Matches(B, range(len(results)), ["1", "2", "3", "4"])
    return Elo(k).fit(matches, y).ratings_


def test_elo_ratings_of_a_league_are_those_of_the_package():
    some = [LEAGUE[i] for i in (5, 0, 3, 1, 4)]
    cases = [[LEAGUE, 32], [LEAGUE[::-1], 32], [LEAGUE, 200], [some, 60]]
    code = "(script, cases) => cases.map(([all, k]) => script.eloRatings(4, all, k))"
    for (results, k), found in zip(cases, in_node(code, cases), strict=True):
        assert found[0] == [1200] * 4
        assert np.allclose(found[-1], elo_of_package(results, k), atol=1e-9)
    orders = [elo_of_package(order, 60) for order in permutations(some)]
    first = np.argmax(orders, axis=1)
    code = "(script, some) => script.eloOrders(4, some, 60)"
    found = in_node(code, some)
    assert found["count"] == len(orders) == 120
    assert np.allclose(found["low"], np.min(orders, axis=0), atol=1e-9)
    assert np.allclose(found["high"], np.max(orders, axis=0), atol=1e-9)
    alone = np.diff(np.sort(orders, axis=1)[:, -2:], axis=1)[:, 0] > 1e-9
    assert alone.all()
    assert np.allclose(found["first"], np.bincount(first, minlength=4) / 120)


@pytest.mark.filterwarnings("error")
def test_bradley_terry_scores_of_a_league_are_those_of_the_package():
    rng = np.random.default_rng(0)
    cases = [LEAGUE, LEAGUE[::-1], LEAGUE[:4]]
    for _ in range(60):
        outcomes = rng.integers(-1, 2, 8)
        cases.append(
            [[i, j, int(y)] for (i, j, _), y in zip(LEAGUE, outcomes, strict=True)]
        )
    code = "(script, cases) => cases.map(all => script.bradleyTerry(4, all))"
    without = 0
    for results, found in zip(cases, in_node(code, cases), strict=True):
        P = np.zeros((4, 4))
        for i, j, y in results:
            P[i, j] += (1 + y) / 2
            P[j, i] += (1 - y) / 2
        if found["scores"] is not None:
            assert np.allclose(found["scores"], bradley_terry(P), atol=1e-6)
            continue
        with pytest.warns(NotIdentifiedWarning):
            bradley_terry(P)
        best = found["unbeaten"]
        rest = np.setdiff1d(range(4), best)
        assert len(best) > 0
        assert len(rest) > 0
        assert not P[np.ix_(rest, best)].any()
        without += 1
    assert 3 < without < 60


def test_nearest_tasks_are_those_of_the_advice():
    rng = np.random.default_rng(0)
    grid = [(pairs, features) for pairs in (50, 300, 3200) for features in (2, 10, 60)]
    sizes = [*grid, *grid[::3]]  # some tasks have equal sizes
    runs = pd.DataFrame(sizes, columns=["n_pairs", "n_features"])
    runs["domain"] = [str(k) for k in range(len(sizes))]
    runs = runs.assign(learner="constant", loss=1.0, fit_s=1.0, forecast_s=0.0)
    wanted = np.exp(rng.uniform(0, 9, (40, 2))).round(2).tolist()
    code = """(script, {tasks, wanted}) => wanted.map(sizes => script.nearestTasks(tasks, sizes))"""
    data = {"tasks": [{"sizes": size} for size in sizes], "wanted": wanted}
    for (pairs, features), found in zip(wanted, in_node(code, data), strict=True):
        advised = advice(runs, n_pairs=pairs, n_features=features)
        assert [str(k) for k in found] == advised.attrs["domains"]


def test_a_task_fits_from_half_to_twice_each_size():
    tasks = [{"sizes": size} for size in ([100, 10], [200, 10], [400, 5], [400, 40])]
    wanted = [[200, 10], [50, 5], [49, 5], [210, 20], [3000, 10]]
    code = """(script, {tasks, wanted}) => wanted.map(sizes => script.fittingTasks(tasks, sizes))"""
    found = in_node(code, {"tasks": tasks, "wanted": wanted})
    assert [one["fits"] for one in found] == [[0, 1, 2], [0], [], [1, 3], []]
    assert [one["nearest"] for one in found] == [[1], [0], [0], [1], [1, 2]]
    # The first task is nearer, but only the second fits.
    sizes = {
        "tasks": [{"sizes": [210, 10]}, {"sizes": [180, 19]}],
        "wanted": [[100, 10]],
    }
    assert in_node(code, sizes) == [{"fits": [1], "nearest": [1]}]
    # A family without sizes fits all data.
    assert in_node(code, {"tasks": [{"sizes": []}], "wanted": [[]]}) == [
        {"fits": [0], "nearest": [0]}
    ]


def task_in_words(rows, sizes=(90, 10), units=5):
    """The sentence about a task with 100 pairs and 10 features."""
    task = {"name": "x", "sizes": [100, 10], "units": units, "rows": rows}
    family = {"name": "pairs", "sizes": ["pairs", "features"], "tasks": [task]}
    code = "(script, {family, sizes}) => script.taskInWords(family, 0, sizes)"
    return in_node(code, {"family": family | {"replicate": "draw"}, "sizes": sizes})


def test_benchmark_names_no_best_learner_without_a_difference():
    lowest = ["a", 0, 0, 0, False, True]
    close = ["b", 0.1, -0.1, 0.3, False, False]
    worse = ["c", 0.2, 0.1, 0.3, True, False]
    constant = ["constant", 1, 0.8, 1.2, True, False]
    start = (
        "Your data are pairs: 90 pairs and 10 features. Recorded tasks that fit: 1 of 1. "
        "The task x (100 pairs and 10 features) has 5 replicates, each a draw. "
        "The mean loss of a is the lowest, "
    )
    assert task_in_words([lowest, close, worse, constant]) == (
        f"{start}but 1 of the 3 others is not shown to be worse: b."
    )
    assert task_in_words([lowest, worse, constant]) == (
        f"{start}and all 2 others are shown to be worse."
    )
    no_power = task_in_words([lowest, close, ["constant", 1, -1, 3, False, False]])
    assert no_power.endswith(
        "The constant forecast is among them, so this task decides little."
    )
    few = [[*row[:4], None, False] for row in (lowest, close, constant)]
    assert task_in_words(few, units=2).endswith(
        "but there are too few replicates to decide anything."
    )


def test_benchmark_says_when_no_task_fits():
    rows = [["a", 0, 0, 0, False, True], ["constant", 1, 0.8, 1.2, True, False]]
    words = task_in_words(rows, sizes=(900, 10))
    assert "Recorded tasks that fit: none of 1. The figure shows the nearest" in words


def test_labels_do_not_overlap_and_stay_within_the_plot():
    rng = np.random.default_rng(0)
    cases = [
        [[100, 15], [130, 15]],
        [[100, 15], [100, 15]],
        [[0, 30], [10, 15], [250, 30]],
    ]
    cases += [
        [[middle, 30] for middle in np.sort(rng.uniform(24, 258, 4))] for _ in range(40)
    ]
    answers = in_node(
        "(script, cases) => cases.map(wishes => script.apart(wishes, 24, 258))", cases
    )
    # in the first case no label moves, and in the second both move by half of the
    # overlap
    assert answers[:2] == [[100, 130], [92.5, 107.5]]
    for wishes, middles in zip(cases, answers, strict=True):
        height = np.array(wishes)[:, 1]
        assert np.all(np.diff(middles) >= (height[1:] + height[:-1]) / 2 - 1e-9)
        assert middles[0] - height[0] / 2 >= 24
        assert middles[-1] + height[-1] / 2 <= 258 + 1e-9


# JSON has no BigInt.
IN_WORDS = """const text = value =>
    JSON.parse(JSON.stringify(value, (_, part) => (typeof part === "bigint" ? String(part) : part)));"""


def fractions(values):
    """Return fractions from a list of [numerator, denominator] as strings."""
    return [Fraction(int(n), int(d)) for n, d in values]


def test_explorer_knows_the_proportions_of_the_package():
    assert {name.split(",")[0] for name in NAMES} == set(PROPORTIONS)


def check_verdict(K, found):
    """Compare an answer of `semidefinite` with that of the package, and evaluate its
    counterexample."""
    certificate = psd_certificate(K)
    assert found["psd"] is certificate.psd
    if found["psd"]:
        assert found["rank"] == certificate.rank
        assert (
            sum(pivot > 0 for pivot in fractions(found["pivots"])) == certificate.rank
        )
        assert min(fractions(found["pivots"])) >= 0
        # their product is the determinant for any order of the pivots
        if found["rank"] == len(K):
            assert math.prod(fractions(found["pivots"])) == math.prod(
                certificate.pivots
            )
        return
    x = np.array([int(entry) for entry in found["x"]], dtype=object)
    (value,) = fractions([found["value"]])
    assert x @ K @ x == value < 0


@pytest.mark.parametrize("name", NAMES)
def test_proportions_and_verdicts_are_those_of_the_package(name):
    rng = np.random.default_rng(0)
    cases = []
    for k in range(60):
        q = (1, 2, 3, 5, 20)[k % 5]  # coarse grids have many ties and zeros
        points = rng.integers(0, q + 1, (rng.integers(2, 7), 2)).tolist()
        cases.append(
            {
                "q": q,
                "points": points,
                "stretch": 100,
                "tolerance": int(rng.integers(1, q + 1)),
            }
        )
    code = f"""(script, {{name, cases}}) => {{ {IN_WORDS}
        return cases.map(one => {{
            const K = script.analogyGram(name, one.points, one);
            return text([K, script.semidefinite(K)]);
        }});
    }}"""
    answers = in_node(code, {"name": name, "cases": cases})
    zero = "positive" if name.endswith("positive") else "apart"
    for case, (K, verdict) in zip(cases, answers, strict=True):
        pairs = np.array(
            [[Fraction(x, case["q"]) for x in pair] for pair in case["points"]]
        )
        eps = Fraction(case["tolerance"], case["q"])
        expected = proportion_gram(name.split(",")[0], pairs, zero=zero, tolerance=eps)
        assert [fractions(row) for row in K] == expected.tolist()
        check_verdict(expected, verdict)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("difference", lambda u, v: True),
        ("arithmetic", lambda u, v: np.sign(u) == np.sign(v)),
        ("arithmetic, 0 positive", lambda u, v: (u >= 0) == (v >= 0)),
        ("clipped", lambda u, v: abs(u - v) <= 1),
    ],
)
def test_stretched_differences_have_their_limit(name, same):
    rng = np.random.default_rng(0)
    cases = []
    for stretch in range(100, 305, 5):
        more = rng.integers(0, 21, (2, 2)).tolist()
        points = [[20, 0], [0, 20], [10, 9], [9, 10], *more]
        cases.append({"q": 20, "points": points, "stretch": stretch, "tolerance": 0})
    code = f"""(script, {{name, cases}}) => {{ {IN_WORDS}
        return cases.map(one => text(script.semidefinite(script.analogyGram(name, one.points, one)))); }}"""
    answers = in_node(code, {"name": name, "cases": cases})
    for case, verdict in zip(cases, answers, strict=True):
        u = [Fraction((a - b) * case["stretch"], 2000) for a, b in case["points"]]
        check_verdict(
            np.array([[(1 - abs(x - y)) * bool(same(x, y)) for y in u] for x in u]),
            verdict,
        )
        longest = max(abs(x - y) for x in u for y in u if same(x, y))
        assert verdict["psd"] is (longest <= 2)
    assert {verdict["psd"] for verdict in answers} == {True, name == "clipped"}


def test_semidefinite_is_exact_for_any_symmetric_matrix():
    rng = np.random.default_rng(0)
    matrices = [[[0, 1], [1, 0]], [[0, 3], [3, 7]], [[0]], [[-1]]]
    for n in [*range(1, 7)] * 50:
        B = rng.integers(-4, 5, (rng.integers(1, n + 1), n))
        # a matrix of any rank
        square = B.T @ B
        one = np.eye(n, dtype=int)
        matrices += [
            K.tolist() for K in (square, 2 * square - one, B[:1].T @ B[:1] - square)
        ]
    code = f"""(script, matrices) => {{ {IN_WORDS}
        const exact = K => K.map(row => row.map(entry => [BigInt(entry), 1n]));
        return matrices.map(K => text(script.semidefinite(exact(K)))); }}"""
    answers = in_node(code, matrices)
    for K, verdict in zip(matrices, answers, strict=True):
        check_verdict(np.array(K, dtype=object), verdict)
    assert 100 < sum(verdict["psd"] for verdict in answers) < len(answers) - 100


def test_numbers_are_written_for_readers():
    cases = [
        (-0.001, 2, "0.00"),
        (0.125, 2, "0.13"),
        (-1.5, 1, "−1.5"),
        (12, 0, "12"),
        ("Infinity", 2, "∞"),
    ]
    code = "(script, cases) => cases.map(([value, digits]) => script.number(Number(value), digits))"
    assert in_node(code, [case[:2] for case in cases]) == [case[2] for case in cases]

"""The search for a covariance finds a known one, and reports failures."""

import math

import numpy as np
import pytest

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Linear,
    Matern12,
    Matern32,
    OrdinalProbit,
    Probit,
    Wiener,
    discover_covariance,
    in_words,
    parameters_of,
)
from preflearn.matches import Matches

SPAN = 1000.0


def simulated(covariance, n=400, players=6, seed=0, noise=None):
    """Return results of the probit model, or with `noise`, point differences with this
    noise variance."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, SPAN, n)).round()
    who = np.array([rng.permutation(players)[:2] for _ in range(n)])
    scores = np.zeros((n, 2))
    design = np.zeros((n, players))
    for m in range(players):
        rows, sides = np.nonzero(who == m)
        gram = covariance.gram(times[rows])
        scores[rows, sides] = rng.multivariate_normal(np.zeros(len(rows)), gram)
        design[rows, m] = 1.0 - 2 * sides
    d = scores[:, 0] - scores[:, 1] + rng.normal(scale=math.sqrt(noise or 1.0), size=n)
    return Matches(
        design, times, [f"player {m}" for m in range(players)]
    ), d if noise else np.sign(d)


def best_of(found):
    return found.table.loc[found.table["bic"].idxmin(), "structure"]


@pytest.mark.parametrize(
    "truth",
    [Constant(1.0), pytest.param(Matern12(2.0, 100.0), marks=pytest.mark.nightly)],
    ids=repr,
)
def test_it_finds_one_part(truth):
    matches, y = simulated(truth)
    found = discover_covariance(
        matches, y, Probit(), bases=[Constant(), Wiener(origin="first"), Matern12()]
    )
    assert best_of(found) == type(truth).__name__
    assert type(found.model.covariance) is type(truth)
    for name, value in parameters_of(DynamicComparisons(truth, Probit())).items():
        assert 0.5 < found.maximum.parameters[name] / value < 1.9


@pytest.mark.nightly
def test_it_finds_a_sum():
    matches, y = simulated(Constant(1.0) + Matern12(1.0, 40.0), n=250, noise=0.1)
    bases = [Constant(), Wiener(origin="first"), Matern12()]
    found = discover_covariance(matches, y, Gaussian(variance=1.0), bases=bases)
    assert best_of(found) == "Constant + Matern12"
    assert found.maximum.converged
    likelihood = found.model.likelihood
    assert isinstance(likelihood, Gaussian)
    assert likelihood.variance == pytest.approx(0.1, rel=0.8)
    table = found.table
    np.testing.assert_allclose(
        table["bic"], table["n_parameters"] * math.log(250) - 2 * table["evidence"]
    )
    steps = table.groupby("step")["bic"].min().cummin()
    # the last step did not find a better structure
    assert steps.iloc[-1] == steps.iloc[-2]
    assert steps.iloc[1] < steps.iloc[0]
    best = table.loc[table["bic"].idxmin()]
    assert best["n_parameters"] == 4
    assert found.maximum.evidence == pytest.approx(best["evidence"], abs=0.05)


def test_a_search_tries_each_structure_once_and_reports_the_best():
    matches, y = simulated(Constant(1.0), n=100)
    known = {
        "sample_weight": np.arange(100) % 3,
        "offset": np.random.default_rng(0).normal(size=100),
    }
    found = discover_covariance(
        matches, y, Probit(), bases=[Matern12(), Matern32()], max_parts=2, **known
    )
    table = found.table
    product = table.set_index("structure").loc["Matern12 * Matern32"]
    assert product["n_parameters"] == 3  # one variance and two length scales
    assert table["structure"].is_unique
    np.testing.assert_allclose(
        table["bic"], table["n_parameters"] * math.log(99) - 2 * table["evidence"]
    )
    for row in table.itertuples():
        covariance = eval(row.covariance, {"Matern12": Matern12, "Matern32": Matern32})
        model = DynamicComparisons(covariance, Probit()).fit(matches, y, **known)
        assert model.log_marginal_likelihood_ == pytest.approx(row.evidence, abs=1e-3)
    assert best_of(found) in found.report
    assert (
        in_words(found.model.covariance, span=float(np.ptp(matches.time)))
        in found.report
    )


@pytest.mark.nightly
def test_any_number_of_processes_finds_the_same():
    matches, y = simulated(Constant(1.0), n=30)
    options = {"bases": [Constant(), Linear(origin="first")], "max_parts": 1}
    one, two = (
        discover_covariance(matches, y, Probit(), n_jobs=n, **options) for n in (1, 2)
    )
    assert one.table.drop(columns="seconds").equals(two.table.drop(columns="seconds"))
    assert one.report == two.report


def test_a_base_that_fails_is_reported():
    matches, y = simulated(Constant(1.0), n=100)
    bases = [Wiener(origin=500.0), Constant()]  # has no covariance before its origin
    found = discover_covariance(matches, y, OrdinalProbit(margin=0.3), bases=bases)
    assert best_of(found) == "Constant"
    failed = found.table[found.table["error"] != ""]
    assert failed["structure"].tolist() == ["Wiener", "Wiener + Constant"]
    assert failed["evidence"].isna().all()
    assert np.isinf(failed["bic"]).all()
    with pytest.raises(ValueError, match=r"base.*origin"):
        discover_covariance(matches, y, Probit(), bases=bases[:1])


def test_bases_of_one_class_are_labelled_in_full():
    matches, y = simulated(Constant(1.0), n=60)
    bases = [Wiener(origin="first"), Wiener(origin=-100.0)]
    found = discover_covariance(matches, y, Probit(), bases=bases, max_parts=1)
    assert found.table["structure"].tolist() == [repr(base) for base in bases]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"matches": [1, 2]}, "matches"),
        ({"likelihood": "probit"}, "likelihood"),
        ({"y": [3] * 20}, r"y\[0\]"),
        ({"bases": []}, "bases"),
        ({"bases": Constant()}, "bases"),
        ({"n_jobs": 0, "bases": [Constant()]}, "n_jobs"),
        ({"bases": [Constant() + Matern12()]}, r"bases\[0\]"),
        ({"bases": [Constant(), "Matern12"]}, r"bases\[1\]"),
        ({"bases": [Constant(), Constant()]}, r"bases\[1\]"),
        ({"max_parts": 0}, "max_parts"),
        (
            {"matches": Matches([[1, -1]] * 20, np.full(20, 5.0), ["a", "b"])},
            "time.* 5",
        ),
    ],
)
def test_bad_input(changes, named):
    matches, y = simulated(Constant(1.0), n=20)
    with pytest.raises(ValueError, match=named):
        discover_covariance(
            **({"matches": matches, "y": y, "likelihood": Probit()} | changes)
        )

"""The search for a covariance finds a known truth, and tells of what fails."""

import math

import numpy as np
import pytest

from preflearn.dynamics import (
    Constant,
    Covariance,
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
PROBIT = Probit()


def simulated(covariance, n=400, players=6, seed=0, noise=None):
    """Results of the probit model; with a noise, differences of points of this variance."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, SPAN, n)).round()
    who = np.array([rng.permutation(players)[:2] for _ in range(n)])
    scores, design = np.zeros((n, 2)), np.zeros((n, players))
    for m in range(players):
        rows, sides = np.nonzero(who == m)
        gram = covariance.gram(times[rows])
        scores[rows, sides] = rng.multivariate_normal(np.zeros(len(rows)), gram)
        design[rows, m] = 1.0 - 2 * sides
    d = scores[:, 0] - scores[:, 1] + rng.normal(scale=math.sqrt(noise or 1.0), size=n)
    return Matches(design, times, [f"player {m}" for m in range(players)]), d if noise else np.sign(d)


def best_of(found):
    return found.table.loc[found.table["bic"].idxmin(), "structure"]


@pytest.mark.parametrize("truth", [Constant(1.0), Matern12(2.0, 100.0)], ids=repr)
def test_it_finds_one_part(truth):
    matches, y = simulated(truth)
    found = discover_covariance(matches, y, Probit(), bases=[Constant(), Wiener(origin="first"), Matern12()])
    assert best_of(found) == type(truth).__name__
    assert type(found.model.covariance) is type(truth)
    for name, value in parameters_of(DynamicComparisons(truth, Probit())).items():
        assert 0.5 < found.maximum.parameters[name] / value < 1.9


def test_it_finds_a_sum_and_reports_it():
    matches, y = simulated(Constant(1.0) + Matern12(1.0, 40.0), n=250, noise=0.1)
    bases = [Constant(), Wiener(origin="first"), Matern12()]
    found = discover_covariance(matches, y, Gaussian(variance=1.0), bases=bases)
    assert best_of(found) == "Constant + Matern12"
    assert found.maximum.converged
    likelihood = found.model.likelihood
    assert isinstance(likelihood, Gaussian)
    assert likelihood.variance == pytest.approx(0.1, rel=0.8)
    table = found.table
    columns = "step structure evidence n_parameters bic converged covariance error seconds"
    assert list(table) == columns.split()
    np.testing.assert_allclose(table["bic"], table["n_parameters"] * math.log(250) - 2 * table["evidence"])
    assert table["structure"].is_unique
    steps = table.groupby("step")["bic"].min().cummin()
    assert steps.iloc[-1] == steps.iloc[-2]  # the last step found nothing better
    assert steps.iloc[1] < steps.iloc[0]
    best = table.loc[table["bic"].idxmin()]
    assert best["n_parameters"] == 4
    assert found.maximum.evidence == pytest.approx(best["evidence"], abs=0.05)
    lines = found.report.splitlines()
    assert lines[0].startswith(
        f"{len(table)} structures were tried in 3 steps. The smallest BIC, {best['bic']:.1f}"
    )
    assert "is that of Constant + Matern12" in lines[0]
    assert lines[1].startswith("Next is ")
    told = in_words(found.model.covariance, span=float(np.ptp(matches.time)))
    assert "\n".join(lines[2:]) == told


def test_a_part_that_no_longer_pays_is_dropped():
    """A product is one parameter dearer than its factor; from a structure that has too much it goes back."""
    matches, y = simulated(Matern12(2.0, 100.0))
    found = discover_covariance(matches, y, Probit(), bases=[Matern12(), Matern32()], max_parts=2)
    rows = found.table.set_index("structure")
    for label in ("Matern12 + Matern12", "Matern12 + Matern32", "Matern12 * Matern32"):
        assert rows.loc[label, "evidence"] > rows.loc["Matern12", "evidence"] - 0.1  # it contains it
        assert rows.loc[label, "bic"] > rows.loc["Matern12", "bic"]
    assert rows.loc["Matern12 * Matern32", "n_parameters"] == 3  # one variance, two lengths
    assert best_of(found) == "Matern12"


def test_candidates_are_what_they_say():
    matches, y = simulated(Constant(1.0), n=150)
    found = discover_covariance(matches, y, Probit(), bases=[Constant(), Matern12()], max_parts=2)
    for row in found.table.itertuples():
        covariance = eval(row.covariance, {"Constant": Constant, "Matern12": Matern12})
        assert Covariance.read(covariance.describe()) == covariance
        model = DynamicComparisons(covariance, Probit()).fit(matches, y)
        assert model.log_marginal_likelihood_ == pytest.approx(row.evidence, abs=1e-3)


def test_any_number_of_processes_finds_the_same():
    matches, y = simulated(Constant(1.0), n=30)
    options = {"bases": [Constant(), Linear(origin="first")], "max_parts": 1}
    one, two = (discover_covariance(matches, y, Probit(), n_jobs=n, **options) for n in (1, 2))
    assert one.table.drop(columns="seconds").equals(two.table.drop(columns="seconds"))
    assert one.report == two.report


def test_a_base_that_fails_is_told():
    matches, y = simulated(Constant(1.0), n=100)
    bases = [Wiener(origin=500.0), Constant()]  # no covariance before its origin
    found = discover_covariance(matches, y, OrdinalProbit(margin=0.3), bases=bases)
    assert best_of(found) == "Constant"
    failed = found.table[found.table["error"] != ""]
    assert failed["structure"].tolist() == ["Wiener", "Wiener + Constant"]
    assert failed["evidence"].isna().all()
    assert np.isinf(failed["bic"]).all()
    with pytest.raises(ValueError, match=r"no base could be fitted: .*origin"):
        discover_covariance(matches, y, Probit(), bases=bases[:1])


def test_bases_of_one_class_are_told_apart():
    matches, y = simulated(Constant(1.0), n=60)
    bases = [Wiener(origin="first"), Wiener(origin=-100.0)]
    found = discover_covariance(matches, y, Probit(), bases=bases, max_parts=1)
    assert found.table["structure"].tolist() == [repr(base) for base in bases]


def test_bad_input():
    matches, y = simulated(Constant(1.0), n=20)

    def refused(message, matches=matches, y=y, likelihood=PROBIT, **options):
        with pytest.raises(ValueError, match=message):
            discover_covariance(matches, y, likelihood, **options)

    refused("matches is .*; expected Matches", matches=[1, 2])
    refused("likelihood is 'probit'; expected a likelihood", likelihood="probit")
    refused(r"y\[0\] is 3", y=[3] * 20)
    for bases in ([], None, Constant(), 3):
        refused("bases is .*; expected at least one covariance, in a list", bases=bases)
    for n_jobs in ("a", 0, True):
        refused("n_jobs is .*; expected a whole number of processes", n_jobs=n_jobs, bases=[Constant()])
    refused(r"bases\[0\] is .*; expected a covariance that is no sum", bases=[Constant() + Matern12()])
    refused(r"bases\[1\] is 'Matern12'", bases=[Constant(), "Matern12"])
    refused(r"bases\[1\] is Constant.*; expected each base once", bases=[Constant(), Constant()])
    refused("max_parts is 0", max_parts=0)
    refused(
        "the time of all matches is 5", matches=Matches(matches.design, np.full(20, 5.0), matches.features)
    )


def test_it_has_the_weights_and_offsets_of_a_fit():
    matches, y = simulated(Matern12(2.0, 100.0), n=120)
    weights, offset = np.arange(120) % 3, np.random.default_rng(0).normal(size=120)
    several, bases = np.repeat(np.arange(120), weights), [Constant(), Matern12()]
    found = discover_covariance(
        matches, y, PROBIT, sample_weight=weights, offset=offset, bases=bases, max_parts=1
    )
    twice = discover_covariance(
        matches[several], y[several], PROBIT, offset=offset[several], bases=bases, max_parts=1
    )
    np.testing.assert_allclose(found.table["bic"], twice.table["bic"], atol=0.1)  # hundredths of a nat
    assert "for 120 matches" in found.report

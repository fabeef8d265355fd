"""A mixture of fitted models: its moments, quantiles, and ranks."""

import zipfile

import numpy as np
import pandas as pd
import pytest
from dynamics.problems import NAMES, small
from scipy import stats

from preflearn.dynamics import (
    AveragedComparisons,
    Constant,
    DynamicComparisons,
    Matern12,
    OrdinalProbit,
    Probit,
    average_over_hyperparameters,
    load,
)
from preflearn.matches import Matches

WEIGHTS = [0.5, 0.2, 0.3]


PLAIN = (Probit(),) * 3


def mixture(likelihoods=PLAIN, outcomes=(1, -1)):
    matches, y = small(n=30, outcomes=outcomes)
    covariances = Constant(0.05), Matern12(0.7, 2.0), Constant(2.0)
    fits = [
        DynamicComparisons(covariance, likelihood).fit(matches, y)
        for covariance, likelihood in zip(covariances, likelihoods, strict=True)
    ]
    return AveragedComparisons(fits, WEIGHTS), matches, y


def draws_of(found, matches, size, rng):
    """Return draws of the score differences, (N, size), and the model of each draw."""
    which = rng.choice(len(WEIGHTS), size, p=WEIGHTS)
    moments = np.array([model.moments(matches) for model in found.models_])
    mean, variance = moments[which].transpose(1, 2, 0)
    return rng.normal(mean, np.sqrt(variance)), which


def test_moments_and_quantiles_are_those_of_draws():
    found, matches, _ = mixture()
    draws, _ = draws_of(found, matches[:4], 200_000, np.random.default_rng(1))
    mean, variance = found.moments(matches[:4])
    np.testing.assert_allclose(mean, draws.mean(axis=1), atol=0.02)
    np.testing.assert_allclose(variance, draws.var(axis=1), rtol=0.03)
    for level in (0.5, 0.95):
        expected = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=1)
        np.testing.assert_allclose(
            found.interval(matches[:4], level), expected.T, atol=0.03
        )


def test_intervals_of_chances_are_those_of_draws_where_margins_differ():
    likelihoods = OrdinalProbit(0.2), OrdinalProbit(0.5), OrdinalProbit(1.0)
    found, matches, _ = mixture(likelihoods, (1, 0, -1))
    draws, which = draws_of(found, matches[:4], 100_000, np.random.default_rng(1))
    chances = np.array(
        [stats.norm.cdf(row - np.array([0.2, 0.5, 1.0])[which]) for row in draws]
    )
    expected = np.quantile(chances, [0.025, 0.975], axis=1)
    np.testing.assert_allclose(found.proba_interval(matches[:4]), expected.T, atol=0.01)
    proba = found.predict_proba(matches[:4])
    np.testing.assert_allclose(proba[:, -1], chances.mean(axis=1), atol=0.01)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_a_mixture_of_one_is_the_model():
    matches, y = small(n=30, outcomes=(1, -1))
    model = DynamicComparisons(Constant(0.5), Probit()).fit(matches, y)
    found = AveragedComparisons([model], [1.0])
    np.testing.assert_allclose(found.moments(matches), model.moments(matches))
    np.testing.assert_array_equal(found.predict(matches), model.predict(matches))
    assert found.score(matches, y) == model.score(matches, y)
    mean, std = model.scores("Ann", [0.0, 1.0])
    np.testing.assert_allclose(found.scores("Ann", [0.0, 1.0]), (mean, std))
    ends = np.column_stack([mean - 1.959964 * std, mean + 1.959964 * std])
    np.testing.assert_allclose(found.score_interval("Ann", [0.0, 1.0]), ends, rtol=1e-6)
    assert found.log_marginal_likelihood_ == model.log_marginal_likelihood_
    own = found.standings()
    theirs = model.standings()
    assert list(own["name"]) == list(theirs["name"])
    centered = theirs["score"] - theirs["score"].mean()
    np.testing.assert_allclose(own["score"], centered, atol=1e-12)


def test_joint_scores_agree_with_differences_and_standings():
    found, matches, _ = mixture()
    last = matches.time[-1]
    mean, covariance = found.joint_scores(NAMES, last)
    x = np.zeros(len(NAMES))
    x[[1, 3]] = 1, -1
    difference = found.difference(NAMES[1], NAMES[3], last)
    np.testing.assert_allclose(difference[0], x @ mean, atol=1e-12)
    np.testing.assert_allclose(difference[1] ** 2, x @ covariance @ x)
    center = np.eye(len(NAMES)) - 1 / len(NAMES)
    table = found.standings().set_index("name").loc[list(NAMES)]
    np.testing.assert_allclose(table["score"], center @ mean, atol=1e-12)
    variance = np.diag(center @ covariance @ center)
    np.testing.assert_allclose(table["std"], np.sqrt(variance))
    assert (table["low"] < table["score"]).all()
    assert (table["score"] < table["high"]).all()


def test_differences_at_times_in_any_order():
    found, _, _ = mixture()
    mean, std = found.difference("Ann", "Bob", [3.0, 0.0, 9.0])
    alone = [found.difference("Ann", "Bob", t) for t in (3.0, 0.0, 9.0)]
    np.testing.assert_allclose(np.column_stack([mean, std]), alone)


def test_rank_intervals_hold_the_share_of_the_mixture():
    """With two players, both ranks are in the interval if models with 2.5 % of the
    weight say so."""
    matches = Matches([[1, -1]] * 30, np.arange(30.0), ["Ann", "Bob"])
    for lost, certain in ((1, True), (14, False)):
        y = np.repeat([1, -1], [30 - lost, lost])
        fits = [
            DynamicComparisons(Constant(v), Probit()).fit(matches, y) for v in (0.3, 1)
        ]
        table = AveragedComparisons(fits, [0.4, 0.6]).standings()
        assert table["name"].tolist() == ["Ann", "Bob"]
        assert (table["rank_high"][0] == 1) == certain


@pytest.mark.parametrize(
    ("weights", "named"),
    [([1.0], "one weight per model"), ([2, -1], "at least 0"), ([1, 1], "sum")],
)
def test_wrong_weights_are_named(weights, named):
    matches, y = small(n=30, outcomes=(1, -1))
    model = DynamicComparisons(Constant(0.5), Probit()).fit(matches, y)
    with pytest.raises(ValueError, match=named):
        AveragedComparisons([model, model], weights)


@pytest.mark.parametrize("models", [[], 0.5, 10**120], ids=["empty", "float", "int"])
def test_models_must_be_a_list(models):
    with pytest.raises(ValueError, match=r"models.*list"):
        AveragedComparisons(models, [1.0])


def message_of(function, *arguments):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        function(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("posterior", ["factorized", "joint"])
@pytest.mark.parametrize("name", ["Zoe", "Anne", 3, 2.5, None, ["Ann"]], ids=repr)
def test_unknown_names_have_the_message_of_a_model(posterior, name):
    matches, y = small(n=30, outcomes=(1, -1))
    model = DynamicComparisons(Constant(0.5), Probit(), posterior=posterior)
    model.fit(matches, y)
    found = AveragedComparisons([model, model], [0.5, 0.5])
    for method, arguments in (
        ("scores", (name, 1.0)),
        ("difference", ("Ann", name, 1.0)),
        ("difference", (name, "Ann", 1.0)),
        ("joint_scores", (["Ann", name], 1.0)),
    ):
        expected = message_of(getattr(model, method), *arguments)
        assert message_of(getattr(found, method), *arguments) == expected
        assert "features_" in expected
    text = message_of(model.scores, name, 1.0)
    assert text == message_of(found.score_interval, name, 1.0)
    if name == "Anne":
        assert "closest: 'Ann'" in text
    if name == 3:
        assert "feature is 3" in text


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("difference", ("Ann", "Ann", 1.0)),
        ("difference", ("Ann", "Bob", "soon")),
        ("joint_scores", (["Ann", "Ann"], 1.0)),
        ("joint_scores", ([], 1.0)),
        ("joint_scores", ("Ann", 1.0)),
        ("joint_scores", (3, 1.0)),
        ("joint_scores", (["Ann"], float("nan"))),
    ],
)
def test_other_mistakes_about_scores_have_the_message_of_a_model(method, arguments):
    found, _, _ = mixture()
    expected = message_of(getattr(found.models_[0], method), *arguments)
    assert message_of(getattr(found, method), *arguments) == expected


def test_unknown_names_of_matches_and_levels_are_named():
    found, matches, _ = mixture()
    with pytest.raises(ValueError, match="level"):
        found.interval(matches, level=95)
    other = Matches([[1, -1]], [1.0], ["Ann", "Zoe"])
    with pytest.raises(ValueError, match="Zoe"):
        found.predict_proba(other, unseen="raise")


# ---- Files


def everything(found, matches):
    """All that depends on the models and weights, as arrays."""
    last = matches.time[-1]
    table = found.standings()
    return [
        found.predict_proba(matches),
        *found.moments(matches),
        found.interval(matches),
        found.proba_interval(matches),
        *found.scores("Ann", [0.0, 1.0, 9.0]),
        *found.difference("Ann", "Bob", [0.0, 1.0, 9.0]),
        *found.joint_scores(NAMES, last),
        found.simulate(matches[-1:], 50, 0),
        table.drop(columns="name").to_numpy(dtype=float),
    ]


def assert_same_mixture(read, found, matches):
    assert len(read.models_) == len(found.models_)
    np.testing.assert_array_equal(read.weights_, found.weights_)
    assert read.log_marginal_likelihood_ == found.log_marginal_likelihood_
    assert read.features_ == found.features_
    if found.hyperparameters_ is None:
        assert read.hyperparameters_ is None
    else:
        pd.testing.assert_frame_equal(
            read.hyperparameters_, found.hyperparameters_, check_exact=True
        )
    for own, model in zip(read.models_, found.models_, strict=True):
        assert own.get_params() == model.get_params()
        assert own.trace_.equals(model.trace_)
        assert own.converged_ == model.converged_
        np.testing.assert_array_equal(own.observations_, model.observations_)
        np.testing.assert_array_equal(
            own.pseudo_observations_, model.pseudo_observations_
        )
    for one, other in zip(
        everything(read, matches), everything(found, matches), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("posterior", ["factorized", "joint"])
@pytest.mark.parametrize("covariance", [Constant(0.5), Matern12(0.5, 2.0)], ids=repr)
def test_an_average_is_what_was_saved(tmp_path, posterior, covariance):
    matches, y = small(n=30)
    model = DynamicComparisons(
        covariance, OrdinalProbit(0.3), posterior=posterior, mean={"Ann": 0.3}
    )
    known = {"sample_weight": np.arange(30) % 3, "offset": np.linspace(-1, 1, 30)}
    fixed = ["Matern12.lengthscale"] if isinstance(covariance, Matern12) else ()
    found = average_over_hyperparameters(
        model, matches, y, n_points=8, fixed=fixed, **known
    )
    assert len(found.models_) > 3
    found.save(tmp_path / "mixture")
    assert [file.name for file in tmp_path.iterdir()] == ["mixture"]
    assert_same_mixture(AveragedComparisons.load(tmp_path / "mixture"), found, matches)


def test_a_mixture_without_a_table_or_an_evidence_is_saved(tmp_path):
    found, matches, _ = mixture()
    assert found.log_marginal_likelihood_ is None
    found.save(tmp_path / "mixture.npz")
    read = AveragedComparisons.load(tmp_path / "mixture.npz")
    assert_same_mixture(read, found, matches)
    single = AveragedComparisons(found.models_[:1], [1.0])
    single.save(tmp_path / "mixture.npz")
    read = AveragedComparisons.load(tmp_path / "mixture.npz")
    assert_same_mixture(read, single, matches)


def test_models_of_different_matches_keep_their_own(tmp_path):
    matches, y = small(n=30, outcomes=(1, -1))
    fits = [
        DynamicComparisons(Constant(0.5), Probit()).fit(matches[part], y[part])
        for part in (slice(0, 30), slice(0, 20), slice(10, 30))
    ]
    found = AveragedComparisons(fits, WEIGHTS)
    found.save(tmp_path / "mixture.npz")
    read = AveragedComparisons.load(tmp_path / "mixture.npz")
    assert_same_mixture(read, found, matches)


def test_matches_are_stored_once(tmp_path):
    """Eight models of 3,000 matches take less than three separate files."""
    matches, y = small(n=3000, outcomes=(1, -1))
    model = DynamicComparisons(Constant(0.5), Probit(), posterior="joint")
    model.fit(matches, y).save(tmp_path / "one.npz")
    AveragedComparisons([model] * 8, np.full(8, 1 / 8)).save(tmp_path / "all.npz")
    size = (tmp_path / "all.npz").stat().st_size
    assert size < 3 * (tmp_path / "one.npz").stat().st_size


def test_the_other_kind_of_file_is_named(tmp_path):
    found, _, _ = mixture()
    found.save(tmp_path / "average.npz")
    found.models_[0].save(tmp_path / "single.npz")
    with pytest.raises(
        ValueError,
        match=r"average\.npz.*AveragedComparisons, .*AveragedComparisons\.load",
    ):
        load(tmp_path / "average.npz")
    with pytest.raises(
        ValueError,
        match=r"single\.npz.*DynamicComparisons, .*preflearn\.dynamics\.load",
    ):
        AveragedComparisons.load(tmp_path / "single.npz")


def test_missing_and_foreign_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.npz"):
        AveragedComparisons.load(tmp_path / "gone.npz")
    (tmp_path / "a.txt").write_text("alpha,beta\n")
    np.savez(tmp_path / "b.npz", alpha=np.ones(3))
    for name in ("a.txt", "b.npz"):
        with pytest.raises(ValueError, match=f"{name} was not written by `save`"):
            AveragedComparisons.load(tmp_path / name)
    found, _, _ = mixture()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        found.save(tmp_path / "nowhere" / "mixture.npz")
    with pytest.raises(IsADirectoryError, match="folder"):
        found.save(tmp_path)


@pytest.mark.parametrize("stride", [701, pytest.param(97, marks=pytest.mark.nightly)])
def test_a_damaged_file_is_rejected_or_is_the_same_mixture(tmp_path, stride):
    found, matches, _ = mixture()
    path = tmp_path / "mixture.npz"
    broken = tmp_path / "broken.npz"
    found.save(path)
    whole = path.read_bytes()
    rejected = 0
    for place in range(0, len(whole), stride):
        for content in (
            whole[:place] + bytes([whole[place] ^ 0x81]) + whole[place + 1 :],
            whole[:place],
            whole[:place] + whole[place + 64 :],
        ):
            broken.write_bytes(content)
            try:
                read = AveragedComparisons.load(broken)
            except ValueError:
                rejected += 1
            else:
                assert_same_mixture(read, found, matches)
    assert rejected > 30


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_every_part_of_the_file_is_necessary(tmp_path):
    """Without an array, none of another model is used in its place."""
    found = average_over_hyperparameters(
        DynamicComparisons(Constant(0.5), Probit()),
        *small(n=12, outcomes=(1, -1)),
        n_points=3,
    )
    path = tmp_path / "mixture.npz"
    found.save(path)
    whole = members_of(path)
    assert len(whole) > 15
    for left_out in whole:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in whole.items():
                if name != left_out:
                    archive.writestr(name, content)
        with pytest.raises(ValueError, match="damaged"):
            AveragedComparisons.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**whole, "more.npy": whole["weights.npy"]}.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="more"):
        AveragedComparisons.load(path)


@pytest.mark.parametrize(
    ("table", "named"),
    [
        (pd.DataFrame({1: [0.5]}), "column is 1"),
        (pd.DataFrame({"a": ["b"]}), r"hyperparameters_\['a'\].*numbers"),
        (pd.DataFrame({"a": [0.5]}, index=[4]), "reset_index"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "different names"),
        ([0.5], "DataFrame"),
    ],
)
def test_tables_that_cannot_be_stored_are_named(tmp_path, table, named):
    found, _, _ = mixture()
    found = AveragedComparisons(found.models_, WEIGHTS, hyperparameters=table)
    with pytest.raises(ValueError, match=named):
        found.save(tmp_path / "mixture.npz")
    assert not list(tmp_path.iterdir())

"""Parameters that `set_params` changes after a fit: forecasts are those of the fit, and
what would mix old and new parameters is rejected."""

import numpy as np
import pandas as pd
import pytest
from dynamics.problems import MOVING, NAMES, curves, fitted, small
from sklearn.base import clone

from preflearn.dynamics import (
    AveragedComparisons,
    Constant,
    DynamicComparisons,
    OrdinalLogit,
    OrdinalProbit,
    Probit,
    load,
    maximise_evidence,
    one_step_ahead,
)
from preflearn.dynamics.saving import read_npz, write_npz
from preflearn.matches import Matches
from preflearn.ranking import next_pairs

TIES = OrdinalProbit(0.4)
OTHER = {"factorized": "joint", "joint": "factorized"}
both_posteriors = pytest.mark.parametrize("posterior", OTHER)
every_covariance = pytest.mark.parametrize("covariance", [Constant(0.8), MOVING])


def changes_of(posterior):
    """Changes of each parameter that determines the posterior."""
    return [
        {"posterior": OTHER[posterior]},
        {"posterior": 5},
        {"method": "kl"},
        {"likelihood": OrdinalProbit(2.0)},
        {"likelihood": OrdinalLogit(0.1)},
        {"covariance": Constant(9.0)},
        {"mean": {"Ann": 3.0}},
    ]


def answers(model, matches, y):
    """Results of all methods that read the fit."""
    last = matches.time[-1]
    mixture = AveragedComparisons([model], [1.0])
    return [
        model.log_marginal_likelihood_,
        model.scores("Ann", [0.0, last, last + 1.0]),
        model.difference("Ann", "Bob", last),
        *model.joint_scores(NAMES, last),
        model.standings(),
        model.standings(1.0),
        model.moments(matches),
        model.predict_proba(matches),
        model.predict(matches),
        model.score(matches, y),
        model.simulate(matches[-1:], 50, 0),
        next_pairs(model, matches, 5),
        mixture.standings(),
        mixture.interval(matches),
        mixture.proba_interval(matches),
        mixture.predict_proba(matches),
        mixture.predict(matches),
        mixture.score(matches, y),
        mixture.simulate(matches[-1:], 50, 0),
    ]


def assert_equal(one, other):
    for a, b in zip(one, other, strict=True):
        if isinstance(a, pd.DataFrame):
            pd.testing.assert_frame_equal(a, b)
        else:
            np.testing.assert_array_equal(a, b)


@both_posteriors
@every_covariance
def test_methods_answer_from_the_fit(covariance, posterior):
    """Also at their first call, which computes the posterior."""
    matches, y = small()
    expected = answers(
        fitted(covariance, TIES, matches, y, posterior=posterior), matches, y
    )
    for changes in changes_of(posterior):
        model = fitted(covariance, TIES, matches, y, posterior=posterior)
        assert_equal(answers(model.set_params(**changes), matches, y), expected)


@both_posteriors
def test_a_fit_after_a_change_has_the_new_parameters(posterior):
    matches, y = small()
    for changes in changes_of(posterior):
        if changes == {"posterior": 5}:
            continue
        model = fitted(MOVING, TIES, matches, y, posterior=posterior)
        model.set_params(**changes).fit(matches, y)
        new = clone(model).fit(matches, y)
        assert_equal(answers(model, matches, y), answers(new, matches, y))


# ---- Files


@both_posteriors
@pytest.mark.parametrize("name", ["posterior", "method", "nonsense"])
def test_files_whose_parameters_are_not_those_of_the_fit_are_not_written(
    tmp_path, posterior, name
):
    matches, y = small()
    model = fitted(MOVING, TIES, matches, y, posterior=posterior)
    changes, old, new = {
        "posterior": ({"posterior": OTHER[posterior]}, posterior, OTHER[posterior]),
        "method": ({"method": "kl"}, "ep", "kl"),
        "nonsense": ({"method": np.array(["ep", "kl"])}, "ep", "array"),
    }[name]
    path = tmp_path / "model.npz"
    model.save(path)
    before = path.read_bytes()
    model.set_params(**changes)
    message = rf"is .*{new}.*'{old}'.*fit all matches again"
    for saved in (model, AveragedComparisons([model], [1.0])):
        with pytest.raises(ValueError, match=message):
            saved.save(path)
    assert path.read_bytes() == before
    if name != "nonsense":
        model.fit(matches, y).save(path)
        again = load(path)
        assert again.get_params() == model.get_params()
        assert_equal(answers(again, matches, y), answers(model, matches, y))
    model = load(path)
    kept = model.get_params()
    model.set_params(**changes).set_params(**kept).save(path)


@both_posteriors
def test_files_have_the_covariance_and_the_likelihood_of_the_fit(tmp_path, posterior):
    matches, y = small()
    model = fitted(MOVING, TIES, matches, y, posterior=posterior)
    expected = answers(model, matches, y)
    model.set_params(covariance=Constant(9.0), likelihood=Probit(), mean={"Ann": 1.0})
    for saved in (model, AveragedComparisons([model], [1.0])):
        saved.save(tmp_path / "model.npz")
    again = AveragedComparisons.load(tmp_path / "model.npz").models_[0]
    assert (again.covariance, again.likelihood, again.mean) == (MOVING, TIES, None)
    assert_equal(answers(again, matches, y), expected)


@both_posteriors
def test_contradictory_files_are_rejected_with_a_remedy(tmp_path, posterior):
    """Earlier versions wrote files with a posterior that was set after the fit."""
    path = tmp_path / "model.npz"
    fitted(MOVING, TIES, *small(), posterior=posterior).save(path)
    header, arrays = read_npz(path, lambda *both: both)
    header["options"]["posterior"] = OTHER[posterior]
    write_npz(path, header, arrays)
    message = rf"model.npz.*posterior='{OTHER[posterior]}'.*fit the model again"
    with pytest.raises(ValueError, match=message):
        load(path)


# ---- Updates and one-step-ahead forecasts


@both_posteriors
def test_updates_reject_another_posterior(posterior):
    matches, y = small()
    model = fitted(MOVING, TIES, matches[:9], y[:9], posterior=posterior)
    before = answers(model, matches[:9], y[:9])
    model.set_params(posterior=OTHER[posterior])
    message = f"posterior is '{OTHER[posterior]}'.*'{posterior}'.*fit all matches again"
    with pytest.raises(ValueError, match=message):
        model.update(matches[9:], y[9:])
    assert_equal(answers(model, matches[:9], y[:9]), before)
    model.fit(matches[:9], y[:9]).update(matches[9:], y[9:])
    new = clone(model).fit(matches, y)
    np.testing.assert_allclose(curves(model), curves(new), atol=1e-7)


@both_posteriors
def test_updates_apply_other_changes_to_all_matches(posterior):
    matches, y = small()
    for changes in changes_of(posterior)[2:]:
        model = fitted(MOVING, TIES, matches[:9], y[:9], posterior=posterior, tol=1e-10)
        model.set_params(**changes).update(matches[9:], y[9:])
        new = clone(model).fit(matches, y)
        np.testing.assert_allclose(curves(model), curves(new), atol=1e-7)
        assert model.log_marginal_likelihood_ == pytest.approx(
            new.log_marginal_likelihood_, abs=1e-7
        )


@both_posteriors
def test_functions_that_fit_use_the_present_parameters(posterior):
    matches, y = small()
    for changes in changes_of(posterior):
        if changes == {"posterior": 5}:
            continue
        model = fitted(MOVING, TIES, matches, y, posterior=posterior)
        model.set_params(**changes)
        found = one_step_ahead(model, matches, y, start=6)
        assert_equal(found, one_step_ahead(clone(model), matches, y, start=6))
    model = DynamicComparisons(Constant(1.0), TIES, posterior=posterior)
    model.fit(matches, y).set_params(posterior=OTHER[posterior])
    fixed = ["likelihood.margin"]
    found = maximise_evidence(model, matches, y, fixed=fixed)
    expected = maximise_evidence(clone(model), matches, y, fixed=fixed)
    assert found.evidence == expected.evidence
    assert found.model.posterior == OTHER[posterior]


def test_one_player_per_match_does_not_hide_a_change(tmp_path):
    """Both posteriors then have equally many pseudo-observations."""
    matches = Matches([[1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]], [0.0, 1.0, 2.0], "ab")
    model = DynamicComparisons(Constant(1.0), Probit()).fit(matches, [1, 1, 1])
    model.set_params(posterior="joint")
    with pytest.raises(ValueError, match="posterior is 'joint'"):
        model.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="posterior is 'joint'"):
        model.update(matches[2:], [1])

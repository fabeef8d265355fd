"""What users may give to DynamicComparisons by mistake, and regimes at the edge of what is legal."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import (
    Affine,
    Constant,
    DynamicComparisons,
    Gaussian,
    Linear,
    Logit,
    Matern12,
    Matern32,
    OrdinalLogit,
    OrdinalProbit,
    Probit,
    Wiener,
    load,
)
from preflearn.dynamics.engine import posterior
from preflearn.dynamics.saving import read_npz, write_npz
from preflearn.matches import Matches

NAMES = ("Ann", "Bob", "Cy", "Dee")
PRIOR = Constant(0.5) + Matern32(0.5, 2.0)


def random_matches(n=30, seed=0, begin=0.0):
    rng = np.random.default_rng(seed)
    design = np.zeros((n, 4))
    for row in design:
        row[rng.permutation(4)[:2]] = rng.choice([1, -1], 2)
    return Matches(design, begin + np.sort(rng.uniform(0, 10, n)), NAMES), rng.choice([1, -1], n)


def fitted(covariance=PRIOR, likelihood=None, scale=1.0, shift=0.0, **options):
    matches, y = random_matches()
    scaled = Matches(scale * matches.design, matches.time + shift, NAMES)
    return DynamicComparisons(covariance, likelihood or Probit(), **options).fit(scaled, y)


def is_finite(model):
    """Whether all that a model returns is a number; forecasts may be refused, where scores vary too much."""
    later = Matches(model.matches_.design[:4], np.repeat(model.matches_.time[-1], 4), NAMES)
    scores = [model.scores(name, model.matches_.time[-5:] + 1) for name in NAMES]
    returned = scores, model.pseudo_observations_, model.log_marginal_likelihood_, model.moments(later)
    if model.moments(later)[1].max() > 1e100:
        with pytest.raises(ValueError, match=r"variance\[0\] is .*; expected variances up to 1e\+100"):
            model.predict_proba(later)
    else:
        returned = *returned, model.predict_proba(later)
    return all(np.isfinite(found).all() for found in returned)


# ---- Overflow


@pytest.mark.parametrize(
    ("covariance", "likelihood", "scale", "shift"),
    [
        (PRIOR, Logit(), 1e12, 0.0),
        (PRIOR, Logit(), 1e100, 0.0),
        (PRIOR, OrdinalLogit(0.3), 1e12, 0.0),
        (Linear(1e6), Probit(), 1.0, 1e12),
        (Affine(1e-12, 1e6), Probit(), 1.0, 1e12),
    ],
)
@pytest.mark.parametrize("method", ["ep", "kl"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_sweep_that_overflows_is_no_convergence_and_leaves_no_nan(
    covariance, likelihood, scale, shift, method
):
    """NaN is not a change of 0: such a sweep is taken back, also if it is the last one."""
    for max_iter in (2, 3, 40):
        try:
            model = fitted(covariance, likelihood, scale, shift, method=method, max_iter=max_iter)
        except ValueError as error:
            assert "overflow" in str(error)  # noqa: PT017  (it may, and need not, fail)
            continue
        assert is_finite(model)
        last = model.trace_.iloc[-1]
        assert model.converged_ == (last.accepted and last.residual <= model.tol)


def test_an_evidence_that_is_nan_is_never_accepted():
    with pytest.warns(ConvergenceWarning):
        model = fitted(likelihood=Logit(), scale=1e12, max_iter=60)
    assert np.isfinite(model.trace_.evidence[model.trace_.accepted]).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_precise_observation_may_follow_one_that_said_nothing():
    """The logarithm of beta leaps by more than 709, from 0."""
    with np.errstate(over="raise"):
        assert is_finite(fitted(likelihood=Gaussian(1e-12), method="kl", max_iter=50))


# ---- Parameters


def test_whole_numbers_may_be_floats_and_choices_no_arrays():
    assert is_finite(fitted(max_iter=500.0, n_threads=2.0))
    for changes in ({"method": np.array(["ep", "kl"])}, {"rate": np.array([0.5, 1])}, {"rate": ["auto"]}):
        with pytest.raises(ValueError, match=r"(method|rate) is .*; expected"):
            fitted(**changes)


def test_parameters_that_are_set_after_a_fit_wait_for_the_next_one(tmp_path):
    """Forecasts, and what is saved, are of the model that was fitted."""
    model, (later, y) = fitted(), random_matches(5, seed=1, begin=10.0)
    newcomer = Matches([[1.0, -1.0]], [12.0], ["Zoe", "Ann"])
    before = [model.predict_proba(later), model.predict_proba(newcomer)]
    for changes in ({"covariance": Constant(9.0), "likelihood": OrdinalProbit(2.0)}, {"covariance": 5}):
        model.set_params(**changes)
        for ask, expected in zip((later, newcomer), before, strict=True):
            np.testing.assert_array_equal(model.predict_proba(ask), expected)
        model.save(tmp_path / "model.npz")
        np.testing.assert_array_equal(load(tmp_path / "model.npz").predict_proba(newcomer), before[1])
    model.set_params(covariance=Constant(2.0), likelihood=Probit(), tol=1e-10).update(later, y)
    old, outcomes = random_matches()
    design = np.vstack([old.design.toarray(), later.design.toarray()])
    whole = Matches(design, np.append(old.time, later.time), NAMES)
    refit = DynamicComparisons(Constant(2.0), Probit(), tol=1e-10).fit(whole, np.append(outcomes, y))
    np.testing.assert_allclose(model.predict_proba(later), refit.predict_proba(later), atol=1e-8)


def test_an_update_with_another_likelihood_checks_what_was_learned():
    matches, y = random_matches()
    later, y_later = random_matches(5, seed=1, begin=10.0)
    model = DynamicComparisons(PRIOR, Gaussian(1.0)).fit(matches, 1.5 * y).set_params(likelihood=Probit())
    with pytest.raises(ValueError, match=r"y\[0\] is -?1.5; expected one of \[-1, 1\]"):
        model.update(later, y_later)
    assert len(model.matches_) == 30


def test_a_mapping_that_changes_after_the_fit_changes_nothing():
    covariance = {"Ann": Constant(1.0), "*": PRIOR}
    model = fitted(covariance)
    ask = Matches([[1.0, -1.0]], [12.0], ["Zoe", "Ann"])
    before = model.moments(ask)
    covariance["*"] = Constant(100.0)
    np.testing.assert_array_equal(model.moments(ask), before)


# ---- Covariances and times


@pytest.mark.parametrize("left", [Constant(0.5), Linear(0.3), Affine(0.5, 0.2)], ids=repr)
@pytest.mark.parametrize("method", ["ep", "kl"])
def test_a_product_of_what_has_no_noise_and_a_process_from_the_first_match(left, method):
    model = fitted(left * (Constant(1.0) + Wiener(0.5, "first")), method=method)
    assert model.converged_
    assert is_finite(model)


def test_a_constant_factor_is_a_variance():
    product, wiener = Constant(0.5) * Wiener(1.0, "first"), Wiener(0.5, "first")
    found, expected = (
        fitted(k + Constant(0.2), tol=1e-10).scores("Ann", [9.0, 20]) for k in (product, wiener)
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_scores_at_times_of_any_kind():
    model = fitted()
    mean, deviation = model.scores("Ann", [3.0, 1.0])
    for scalar in (3, np.float32(3), np.array(3.0)):
        found = model.scores("Ann", scalar)
        assert [np.shape(part) for part in found] == [(), ()]
        assert found == (mean[0], deviation[0])
    far = model.scores("Ann", [-1e6, 1e6])  # the Matern forgets, the constant does not
    assert far[0][0] == pytest.approx(far[0][1], abs=1e-9)
    assert np.all(far[1] < 1.0)
    for time in ([], [[1.0]], None, "now", np.datetime64("2020-01-01"), np.nan, [0.0, np.inf]):
        with pytest.raises(ValueError, match=r"time( |\[)"):
            model.scores("Ann", time)
    for name in ("Zoe", ["Ann"], {}, None):
        with pytest.raises(ValueError, match="is no feature of the matches"):
            model.scores(name, 3.0)


def test_forecasts_do_not_depend_on_what_is_asked_together(monkeypatch):
    """Of many features and covariances at once, in blocks of any size, and one at a time."""
    covariance = {"Ann": Matern12(1.0, 3.0), "Bob": Constant(0.5), "*": PRIOR}
    model, (ask, _) = fitted(covariance), random_matches(50, seed=3, begin=-2.0)
    whole = model.moments(ask)
    for size in (1, 7):
        monkeypatch.setattr(posterior, "_TOGETHER", size)
        again = fitted(covariance)
        np.testing.assert_allclose(again.moments(ask), whole, rtol=1e-12)
    alone = fitted(covariance)
    np.testing.assert_allclose([alone.moments(ask[[k]]) for k in range(50)], np.transpose(whole)[:, :, None])
    x, k = ask.design[[0]].toarray()[0], 0
    scores = np.array([model.scores(name, ask.time[k]) for name in NAMES])
    np.testing.assert_allclose([x @ scores[:, 0], x**2 @ scores[:, 1] ** 2], np.transpose(whole)[0])


# ---- Files


def overwritten(place, value):
    return lambda starts: np.where(np.arange(len(starts)) == place, value, starts)


def test_options_that_are_numbers_of_numpy_are_saved(tmp_path):
    options = {"n_threads": np.int64(1), "tol": np.float32(1e-6), "max_iter": np.int64(50)}
    fitted(**options).save(tmp_path / "model.npz")
    read = load(tmp_path / "model.npz")
    assert {name: getattr(read, name) for name in options} == options
    assert read.covariance == PRIOR  # one for all features is no mapping


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"covariance": None}, {}),
        ({"covariance": []}, {}),
        ({"covariance": [1, 2]}, {}),
        ({"likelihood": {"kind": "Foo"}}, {}),
        ({"options": {"foo": 3}}, {}),
        ({"options": {"tol": -1}}, {}),
        ({"options": [1]}, {}),
        ({"features": 3}, {}),
        ({"features": ["Ann"]}, {}),
        ({"features": [{}, "Bob", "Cy", "Dee"]}, {}),
        ({"converged": 3}, {}),
        ({}, {"time": None}),
        ({}, {"time": lambda time: time[:-1]}),
        ({}, {"time": lambda time: time * np.nan}),
        ({}, {"outcomes": lambda y: y[:-1]}),
        ({}, {"outcomes": lambda y: 7 * y}),
        ({}, {"pseudo_observations": lambda sites: sites[:-1]}),
        ({}, {"pseudo_observations": lambda sites: sites[:, 0]}),
        ({}, {"pseudo_observations": lambda sites: sites * np.nan}),
        ({}, {"indices": lambda columns: columns + 100}),
        ({}, {"indices": lambda columns: columns - 100}),
        ({}, {"indices": lambda columns: columns + 0.5}),
        ({}, {"indptr": lambda starts: starts[::-1]}),
        *(  # each of these once ended the process, or came out as an error of C++
            ({}, {"indptr": overwritten(place, value)})
            for place, value in [(5, 400_000), (30, 700), (1, 99), (1, -5), (1, 2**31 - 1)]
        ),
        ({}, {"trace_rate": lambda rate: rate[:-1]}),
        ({}, {"trace_rate": None}),
    ],
)
def test_files_whose_parts_do_not_fit_are_refused(tmp_path, header, arrays):
    path = tmp_path / "model.npz"
    fitted().save(path)
    found, numbers = read_npz(path)
    found |= header
    for name, change in arrays.items():
        if change is None:
            del numbers[name]
        else:
            numbers[name] = change(numbers[name])
    write_npz(path, found, numbers)
    with pytest.raises(ValueError, match=r"model\.npz is damaged.*expected a file that `save` wrote"):
        load(path)

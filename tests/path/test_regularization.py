"""The methods that both kinds of path share."""

import numpy as np
import pytest
from small_problems import along, points, two_classes

from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path, svm_path
from preflearn.path.regularization import select_widest

PAIRS, Y = two_classes(10, seed=0)
GRAM, LABELS = points("rbf", 30, seed=0)


@pytest.fixture(params=["binary", "ranking"])
def path(request):
    if request.param == "binary":
        return svm_path(GRAM, LABELS, lambda_min=0.01)
    return ranksvm_path(PAIRS, Y, lambda_min=0.01)


@pytest.mark.parametrize(
    ("lam", "message"), [(0.0, "positive"), (np.nan, "nan"), (0.001, r"0\.001.*0\.01")]
)
def test_lambda_is_a_number_within_the_path(path, lam, message):
    with pytest.raises(ValueError, match=rf"lambda.*{message}"):
        path.alpha(lam)


def test_breakpoints_are_read_only_and_counted_by_repr(path):
    with pytest.raises(ValueError, match="read-only"):
        path.breakpoints[0] = 1.0
    assert f"{type(path).__name__}: {len(path.breakpoints)} breakpoints" in repr(path)


RANKING = ranksvm_path(PAIRS, Y)
BINARY = svm_path(GRAM, LABELS, lambda_min=0.01)
CONSTANT = ranksvm_path(Pairs(np.eye(2), [[0, 1], [1, 0]]), [1, 1])


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        (RANKING.decision_function, (1.0, np.ones((2, 5))), "X has shape"),
        (RANKING.select, (PAIRS, 0 * Y), r"\[0\] is 0"),
        (CONSTANT.select, (PAIRS, Y), "no breakpoint"),
        (BINARY.decision_function, (1.0, np.ones((2, 3))), r"\(2, 3\).*30"),
        (BINARY.decision_function, (1.0, np.full((1, 30), np.nan)), "nan"),
    ],
)
def test_bad_input_to_a_path_is_named(method, arguments, message):
    with pytest.raises(ValueError, match=message):
        method(*arguments)


@pytest.mark.parametrize(
    ("lambdas", "end", "chosen"),
    [([100.0, 90.0, 10.0], 1.0, 10**0.5), ([1000.0, 10.0, 9.0], 8.0, 100.0)],
)
def test_of_equal_losses_the_widest_interval_counts_on_the_logarithmic_scale(
    lambdas, end, chosen
):
    found = select_widest(np.array(lambdas), np.array([0.1, 0.2, 0.1]), end)
    assert found.lam == pytest.approx(chosen)
    assert found.loss == 0.1


def chosen(kind, seed):
    """Return a path, its validation data with their labels, and the error of decisions
    on these data."""
    if kind == "two classes":
        path = ranksvm_path(*two_classes(16, seed), gamma=0.7, lambda_min=0.02)
        valid, labels = two_classes(14, 100 + seed)
        return path, valid, labels, lambda f: np.mean(np.sign(f) != labels)
    K, y = points(kind, 90, seed, share=0.4)
    path = svm_path(K[:50, :50], y[:50])
    return path, K[50:, :50], y[50:], lambda f: np.mean((f >= -1e-10) != (y[50:] > 0))


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("rbf", 3),
        ("linear", 3),
        ("integers", 3),
        *(("two classes", k) for k in range(6)),
    ],
)
def test_the_choice_is_exact_over_every_lambda(kind, seed):
    path, valid, labels, error = chosen(kind, seed)
    found = path.select(valid, labels)
    assert (
        found.loss
        == found.losses.min()
        == error(path.decision_function(found.lam, valid))
    )
    middles = np.sqrt(found.lambdas[1:] * found.lambdas[:-1])
    drawn = along(path, 300, np.random.default_rng(0))
    for lam in [*middles, *drawn[drawn < found.lambdas[0]]]:
        place = np.searchsorted(-found.lambdas, -lam, side="right") - 1
        assert error(path.decision_function(lam, valid)) == found.losses[place]

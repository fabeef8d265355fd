"""What every path keeps: its answers are those of a finished course, which nobody changes, and to its end."""

import numpy as np
import pytest
from small_problems import along, points, two_classes

from preflearn.pairs import Pairs
from preflearn.path import RegularizationPath, ranksvm_path, svm_path

PAIRS, Y = two_classes(10, seed=0)
GRAM, LABELS = points("rbf", 30, seed=0)


@pytest.fixture(params=["binary", "ranking"])
def path(request):
    if request.param == "binary":
        return svm_path(GRAM, LABELS, lambda_min=0.01)
    return ranksvm_path(PAIRS, Y, lambda_min=0.01)


def test_lambda_is_a_number_within_the_path(path):
    assert isinstance(path, RegularizationPath)
    for lam in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"lambda is .*; expected a positive finite number"):
            path.alpha(lam)
    with pytest.raises(ValueError, match=r"below the end of the path at 0\.01"):
        path.alpha(0.001)


def test_a_path_cannot_be_changed(path):
    with pytest.raises(ValueError, match="read-only"):
        path.breakpoints[0] = 1.0
    assert repr(path).startswith(f"<{type(path).__name__}: {len(path.breakpoints)} breakpoints down to")


def test_what_is_selected_on_is_checked():
    path, nan = ranksvm_path(PAIRS, Y), float("nan")
    binary = svm_path(GRAM, LABELS, lambda_min=0.01)
    loop = ranksvm_path(Pairs(np.eye(2), [[0, 1], [1, 0]]), [1, 1])
    for call, message in (
        (lambda: path.decision_function(1.0, np.ones((2, 5))), "X has shape"),
        (lambda: path.select(PAIRS, 0 * Y), "expected"),
        (lambda: path.select(PAIRS, Y, loss=lambda *_: nan), "the loss at the breakpoints"),
        (lambda: loop.select(PAIRS, Y), "no breakpoint"),
        (lambda: binary.decision_function(1.0, np.ones((2, 3))), r"shape \(2, 3\); expected \(n, 30\)"),
        (lambda: binary.decision_function(1.0, np.full((1, 30), np.nan)), "nan"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_the_end_is_sound():
    pairs, y = two_classes(20, seed=0)
    path = ranksvm_path(pairs, y, gamma=0.5)
    assert path.kkt_residual(path.lambda_end or 1e-6) < 1e-8
    flat = ranksvm_path(Pairs(np.zeros((3, 3)), [[0, 1], [1, 2]]), [1, 1], "precomputed")
    assert len(flat.breakpoints) == 0


def chosen(kind, seed):
    """A path, what it is validated on with its labels, and the errors that its decisions there make."""
    if kind == "two classes":
        path = ranksvm_path(*two_classes(16, seed), gamma=0.7, lambda_min=0.02)
        valid, labels = two_classes(14, 100 + seed)
        return path, valid, labels, lambda f: np.mean(np.sign(f) != labels)
    K, y = points(kind, 90, seed, share=0.4)
    path = svm_path(K[:50, :50], y[:50])
    return path, K[50:, :50], y[50:], lambda f: np.mean((f >= -1e-10) != (y[50:] > 0))


@pytest.mark.parametrize(
    ("kind", "seed"), [("rbf", 3), ("linear", 3), ("integers", 3), *(("two classes", k) for k in range(6))]
)
def test_the_choice_is_exact_over_every_lambda(kind, seed):
    path, valid, labels, error = chosen(kind, seed)
    found = path.select(valid, labels)
    assert found.loss == found.losses.min() == error(path.decision_function(found.lam, valid))
    middles = np.sqrt(found.lambdas[1:] * found.lambdas[:-1])
    drawn = along(path, 300, np.random.default_rng(0))
    for lam in [*middles, *drawn[drawn < found.lambdas[0]]]:
        place = np.searchsorted(-found.lambdas, -lam, side="right") - 1
        assert error(path.decision_function(lam, valid)) == found.losses[place]


@pytest.mark.parametrize("kind", ["rbf", "linear", "integers", "two classes"])
def test_by_a_loss_the_breakpoints_are_compared(kind):
    path, valid, labels, _ = chosen(kind, 3)

    def hinge(labels, f):
        return np.maximum(0, 1 - labels * f).mean()

    found = path.select(valid, labels, loss=hinge)
    expected = [hinge(labels, path.decision_function(lam, valid)) for lam in path.breakpoints]
    np.testing.assert_array_equal(found.lambdas, path.breakpoints)
    np.testing.assert_allclose(found.losses, expected, rtol=0, atol=1e-9)
    assert (found.lam, found.loss) == (path.breakpoints[np.argmin(found.losses)], found.losses.min())

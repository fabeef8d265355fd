"""The numbers in the primer's small examples are those of an independent
computation."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import ks_2samp, multivariate_normal, norm, sem, spearmanr, wilcoxon

from preflearn.datasets import four_items
from preflearn.metrics import comparison_auc

TEXT = (Path(__file__).parents[1] / "book" / "primer.md").read_text("utf-8")
PAIRS, Y = four_items()
B = PAIRS.incidence().toarray()
X = PAIRS.items[:, 0]
D = B @ X
PREFERENCE = Y != 0
GAPS = D[PREFERENCE]
EYE = np.eye(4)


def numbers(section):
    """Return decimals, integers, and fractions in a section, each with the error that
    its last digit allows."""
    text = TEXT.split(f"(primer-{section})=")[1].split("\n(primer-")[0]
    for top, bottom in re.findall(r"\\frac(\d|\{\d+\})(\d|\{\d+\})", text):
        yield int(top.strip("{}")) / int(bottom.strip("{}")), 1e-9
    for number in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", text):
        yield (
            float(number),
            0.5 * 10.0 ** -len(number.partition(".")[2]) + 1e-9
            if "." in number
            else 1e-9,
        )


def missing(section, *values):
    """Return the values that a section does not show."""
    in_text = list(numbers(section))
    return [
        value
        for value in values
        if not any(abs(value - x) <= error for x, error in in_text)
    ]


def log_odds_loss(scale):
    return np.log1p(np.exp(-scale * GAPS))


def test_numbers_are_found_to_the_digits_that_are_shown():
    assert missing("norm", 4.1231, 0.63246, 1.5) == []
    assert missing("norm", 4.1131, 0.6333, 2.5) == [4.1131, 0.6333, 2.5]


def test_norms_ranks_and_samples():
    item = four_items(2)[0].items[3]
    # in the example, the first item is never the worse one
    won = np.maximum(B, 0).T @ PREFERENCE
    assert (
        missing("norm", *(np.linalg.norm(item, order) for order in (1, 2, np.inf)))
        == []
    )
    assert (
        missing("norm", spearmanr(X, won).statistic, spearmanr(X, X**2).statistic) == []
    )
    for moved in (X + 5, X + 2.5):
        found = ks_2samp(X, moved, method="exact")
        assert missing("ks", found.statistic, found.pvalue) == []
    assert (
        missing("signedrank", wilcoxon(D).pvalue, wilcoxon([-1, *D[1:]]).pvalue) == []
    )


def test_kernel_and_area():
    K = np.outer(X, X) + np.outer(X, X) ** 2
    assert missing("kernel", *K.ravel(), (B @ K @ B.T)[1, 1]) == []
    assert missing("roc", comparison_auc(Y, D)) == []


def test_logistic_regression_and_its_loss():
    p = expit(GAPS)
    assert missing("logistic", *p, p.prod(), *-np.log(p), -np.log(p).sum()) == []
    for scale in (1, 0.5):
        loss = log_odds_loss(scale)
        assert missing("logloss", *np.exp(-loss), loss.mean()) == []
    forecasts = [-0.7 * np.log(p) - 0.3 * np.log(1 - p) for p in (0.6, 0.7)]
    assert missing("logloss", *forecasts, forecasts[0] - forecasts[1]) == []


def test_standard_errors_of_paired_differences():
    full = log_odds_loss(1)
    half = log_odds_loss(0.5)
    differences = half - full
    assert missing("paired", *differences, differences.mean(), sem(differences)) == []
    assert missing("paired", sem(full), sem(half), np.hypot(sem(full), sem(half))) == []
    rest = differences - differences.mean()
    # the comparisons are from two days
    clustered = np.sqrt(2 * (rest[:2].sum() ** 2 + rest[2] ** 2)) / 3
    assert missing("paired", clustered) == []


def test_random_search():
    def loss(w):
        return log_odds_loss(w).sum() + (np.log1p(np.exp(-w)) + np.log1p(np.exp(w))) / 2

    best = minimize_scalar(loss, bounds=(0.1, 10), method="bounded")
    hits = [1 - (1 - 2 * np.log(factor) / np.log(100)) ** 20 for factor in (1.1, 1.25)]
    assert missing("randomsearch", best.fun, best.x, *hits) == []


def test_least_squares():
    def project(*functions):
        columns = B @ np.column_stack(functions)
        a = np.linalg.lstsq(columns, B @ s)[0]
        return a, np.sum((B @ s - columns @ a) ** 2)

    s = np.array([0, 1, 1, 2])
    (a, by_x), (_, by_square), (both, by_both) = (
        project(X),
        project(X**2),
        project(X, X**2),
    )
    residual = s - a[0] * X
    step = (B @ X**2) @ (B @ residual) / np.sum((B @ X**2) ** 2)
    pursued = np.sum((B @ (residual - step * X**2)) ** 2)
    ridge = (B @ X) @ (B @ s) / ((B @ X) @ (B @ X) + 22)
    assert (
        missing("leastsquares", a[0], by_x, by_square, by_both, both[0], pursued, ridge)
        == []
    )


def test_gaussian_conditioning_and_divergence():
    posterior = np.linalg.inv(EYE + B.T @ B)
    assert missing("gaussian", *(15 * posterior @ B.T @ Y), *(15 * posterior[0])) == []
    ends = B[3]  # the comparison of items 1 and 4
    assert missing("gaussian", ends @ posterior @ ends, 2 * posterior[0, 0]) == []
    evidence = [multivariate_normal.logpdf(Y, cov=s * B @ B.T + EYE) for s in (1, 0)]
    assert missing("gaussian", *evidence) == []

    def divergence(v, w):
        return (np.log(w / v) + v / w - 1) / 2

    full = posterior[0, 0]
    reverse = 1 / np.linalg.inv(posterior)[0, 0]
    assert (
        missing(
            "kl", full, reverse, divergence(reverse, full), divergence(full, reverse)
        )
        == []
    )


@pytest.mark.parametrize("used", [4, 3])
def test_natural_parameters(used):
    alpha = D[:used].sum() / 2
    beta = 1 + used / 2
    assert missing("natural", alpha, beta, alpha / beta, 1 / beta) == []


def test_processes_in_time():
    def covariance(t, u):
        return np.exp(-abs(np.subtract.outer(t, u)) / 2)

    weights = np.linalg.solve(covariance(X, X), covariance(X, [3.0]))[:, 0]
    np.testing.assert_allclose(weights[:3], [0, 0, weights[3]], atol=1e-12)
    assert missing("gp", weights[3], 1 - covariance([3.0], X)[0] @ weights) == []
    steps = np.array([1, 2])
    assert missing("brownian", *np.exp(-steps / 2), *(1 - np.exp(-steps))) == []
    assert missing("statespace", *np.diag(1 + np.minimum.outer(X, X))) == []


def test_filter_and_smoother():
    K = 1 + np.minimum.outer(X, X)

    def given(n):
        """Return means and variances, given the first n labels."""
        gain = np.linalg.solve(K[:n, :n] + np.eye(n), K[:n]).T
        return np.array([gain @ Y[:n], np.diag(K - gain @ K[:n])])

    for n in range(1, 5):
        assert missing("kalman", *given(n)[:, n - 1]) == []
    assert missing("kalman", *47 * given(4).ravel()) == []


def test_fixed_points():
    neighbors = 2 * EYE - B.T @ B
    solution = np.linalg.solve(EYE + B.T @ B, B.T @ Y)
    f = np.zeros(4)
    for _ in range(5):
        f = f / 4 + (B.T @ Y + neighbors @ f) / 4  # a damped step
    error = np.linalg.norm(f - solution) / np.linalg.norm(solution)
    rate = np.linalg.eigvalsh(neighbors / 3).max()
    assert missing("fixedpoint", error, rate**5) == []


@pytest.mark.parametrize("variance", [1, 100])
def test_quadrature(variance):
    scale = np.sqrt(variance)
    exact = quad(
        lambda u: expit(u) * norm.pdf(u, 1, scale), -12 * scale, 12 * scale, points=[0]
    )[0]
    points, weights = np.polynomial.hermite_e.hermegauss(3)
    assert (
        missing(
            "quadrature", exact, weights / weights.sum() @ expit(1 + scale * points)
        )
        == []
    )
    grid = np.arange(-40, 41)
    trapezoid = norm.pdf(grid) @ expit(1 + scale * grid)
    if variance == 1:
        # as stated on the page
        assert trapezoid - exact == pytest.approx(4e-9, abs=5e-10)
    else:
        assert missing("quadrature", trapezoid) == []


def test_evidence():
    def log_evidence(variance, n=4):
        covariance = variance * B @ B.T + EYE / 4
        return multivariate_normal.logpdf(Y[:n], cov=covariance[:n, :n])

    best = minimize_scalar(
        lambda v: -log_evidence(v),
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert (
        missing(
            "evidence", *(log_evidence(v) for v in (0, 1, 10, 100)), best.x, -best.fun
        )
        == []
    )
    assert missing("evidence", -best.fun - log_evidence(0), np.log(4) / 2) == []
    totals = [0, *(log_evidence(1, n) for n in range(1, 5))]
    # probability of each label, given the earlier ones
    assert missing("evidence", *np.diff(totals)) == []

"""The numbers of the primer's small examples, computed, and found in its text."""

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import ks_2samp, multivariate_normal, norm, rankdata, sem, spearmanr, wilcoxon

from preflearn.datasets import four_items
from preflearn.metrics import comparison_auc

TEXT = (Path(__file__).parents[1] / "book" / "primer.md").read_text("utf-8")
EXAMPLES = {
    part.partition(")=")[0]: part.partition("*Four items.*")[2] for part in TEXT.split("\n(primer-")[1:]
}
PAIRS, Y = four_items()
B, X = PAIRS.incidence().toarray(), PAIRS.items[:, 0]
D, PREFER = B @ X, Y != 0


def says(section, *texts):
    return [text for text in texts if text not in EXAMPLES[section]] == []


def test_every_section_has_a_label_and_an_example():
    first = ["graph", "norm", "program", "hinge", "slack", "duality", "kernel", "svm", "logistic"]
    later = ["leastsquares", "cv", "signedrank", "ks", "roc", "hull"]
    moving = ["gaussian", "natural", "gp", "brownian", "statespace", "kalman"]
    inference = ["kl", "fixedpoint", "quadrature"]
    choosing = ["evidence", "logloss", "paired", "randomsearch"]
    assert list(EXAMPLES) == first + later + moving + inference + choosing
    assert all(EXAMPLES.values())


def test_graph_and_hinge():
    cycle = np.array([1, 1, 1, -1])
    assert not (B.T @ cycle).any()
    assert len(B) - np.linalg.matrix_rank(B) == 1
    assert says("graph", "$(1, 1, 1, -1)$", "$n - c = 3$")
    hinges = [np.maximum(0, 1 - w * D[PREFER]).tolist() for w in (0.5, -0.5)]
    assert hinges == [[0.5, 0, 0], [1.5, 2, 3]]
    assert says("hinge", r"hinges are $\frac12$, 0 and 0", r"hinges are $\frac32$, 2 and 3")


def test_norms_and_ranks():
    item = four_items(2)[0].items[3]
    norms = [np.linalg.norm(item, order) for order in (1, 2, np.inf)]
    assert np.round(norms, 2).tolist() == [5, 4.12, 4]
    assert says("norm", r"norms 5, $\sqrt{17} = 4.12$ and 4")
    won = np.maximum(B, 0).T @ PREFER  # in the example the first item is never the worse one
    assert spearmanr(X, X**2).statistic == pytest.approx(1)
    assert rankdata(won).tolist() == [1.5, 3, 1.5, 4]
    assert says("norm", f"{spearmanr(X, won).statistic:.3f}")


def test_samples_that_are_far_apart():
    for moved, distance, p in ((X + 5, 1.0, "0.029"), (X + 2.5, 0.75, "0.229")):
        found = ks_2samp(X, moved, method="exact")
        assert found.statistic == distance
        assert says("ks", p)
        assert f"{found.pvalue:.3f}" == p
    assert says("ks", r"$(\frac52, \frac72, \frac92, \frac{13}2)$", "$(5, 6, 7, 9)$", r"\frac{8}{35}")


def test_convex_sum_of_hinges():
    def slope(w, ridge):
        return ridge * w - D[PREFER][D[PREFER] * w < 1].sum()

    assert [slope(w, 0) for w in (0.1, 0.3, 0.7, 1.1)] == [-7, -3, -1, 0]
    assert says("program", "$-7$, $-3$, $-1$ and 0")
    grid = np.linspace(0, 2, 20001)
    total = grid**2 / 2 + np.maximum(0, 1 - np.outer(grid, D[PREFER])).sum(axis=1)
    assert grid[np.argmin(total)] == pytest.approx(1)
    assert (slope(1 - 1e-12, 1), slope(1, 1)) == (pytest.approx(0, abs=1e-9), 1)


def test_support_vector_machine():
    pairs, y = four_items(2)
    rows, labels = pairs.flipped(y)
    d, u, v = rows.differences(), np.array([1, 1]), np.array([1, 0, 0, 0.5, 0.5])
    assert (d @ u - 1).tolist() == [1, 2, 4, -1, -1]
    assert (labels * v @ d).tolist() == u.tolist()
    assert labels @ v == 0
    assert v.sum() - u @ u / 2 == u @ u / 2 == 1  # no gap: both are optimal
    assert says("svm", "$u = (1, 1)$ and $\\beta = -1$", "1, 2 and 4 on the preferences", "$v = 1$")


@pytest.mark.parametrize(("C", "w"), [(0.1, 0.3), (1.0, 1.0), (2.0, 1.0)])
def test_slack_and_duality(C, w):
    grid = np.linspace(0, 2, 20001)
    slack = np.maximum(0, 1 - np.outer(grid, D[PREFER]))
    best = np.argmin(grid**2 / 2 + C * slack.sum(axis=1))
    assert grid[best] == pytest.approx(w)
    if C < 1:
        np.testing.assert_allclose(slack[best], [0.7, 0.4, 0], atol=1e-12)
        assert says("slack", "$w = 0.3$, with slacks 0.7, 0.4 and 0")
    v = np.array([1.0, 0, 0])  # without slack
    assert v.sum() - (v @ D[PREFER]) ** 2 / 2 == 0.5 == (v @ D[PREFER]) ** 2 / 2
    assert (D[PREFER] * 1.0 >= 1).all()


def test_kernel():
    K = np.outer(X, X) + np.outer(X, X) ** 2
    rows = (" & ".join(f"{value:.0f}" for value in row) for row in K)
    assert says("kernel", r" \\ ".join(rows), r"$20 + 2 - 2 \cdot 6 = 10$")
    assert (B @ K @ B.T)[1, 1] == 10


def test_logistic_and_validation():
    probability = 1 / (1 + np.exp(-D[PREFER]))
    loss = -np.log(probability)
    assert says("logistic", *(f"{p:.3f}" for p in [*probability, probability.prod(), *loss, loss.sum()]))
    w = np.linalg.lstsq(D[:3, None], Y[:3])[0][0]
    assert (w, w * D[3]) == (pytest.approx(0.5), pytest.approx(2))


def test_pursuit_and_ridge():
    def left(functions):
        """The squared length of B(s - Va) for the best a, and a."""
        columns = B @ np.column_stack(functions)
        a = np.linalg.lstsq(columns, B @ s)[0]
        return np.sum((B @ s - columns @ a) ** 2), a

    s = np.array([0, 1, 1, 2])
    assert (B @ s).tolist() == [1, 0, 1, 2]
    (by_x, a), (by_square, _), (by_both, both) = left([X]), left([X**2]), left([X, X**2])
    assert (a, by_x) == (pytest.approx(0.5), pytest.approx(0.5))
    residue = s - X / 2
    assert residue.tolist() == [0, 0.5, 0, 0]
    step = (B @ X**2) @ (B @ residue) / np.sum((B @ X**2) ** 2)
    assert step == pytest.approx(-1 / 410)
    pursued = np.sum((B @ (residue - step * X**2)) ** 2)
    assert (by_square, by_both) == (pytest.approx(6 - 45**2 / 410), pytest.approx(1 / 2 - 11 / 278))
    np.testing.assert_allclose((B @ X) @ B @ (X**2 - 46 / 11 * X), 0, atol=1e-12)
    assert says("leastsquares", f"= {by_square:.2f}$", f"leaves {pursued:.3f}", f"= {by_both:.3f}$")
    assert says("leastsquares", f"becomes {both[0]:.3f}", r"\frac12 - \frac{11}{278}")
    design, target = np.append(B @ X, np.sqrt(22)), np.append(B @ s, 0)  # a ridge is one more row
    assert np.linalg.lstsq(design[:, None], target)[0] == pytest.approx(1 / 4)


def test_signed_rank():
    assert wilcoxon(D).pvalue == 1 / 8
    assert wilcoxon([-1, *D[1:]]).pvalue == 3 / 8
    assert rankdata(abs(D)).tolist() == [1.5, 1.5, 3, 4]
    assert wilcoxon(range(1, 6)).pvalue == 2 / 2**5
    thresholds = 0.05 / np.array([3, 2, 1])
    passed = np.cumprod(np.array([0.01, 0.03, 0.04]) <= thresholds)
    assert passed.tolist() == [1, 0, 0]
    first, second, third = (f"{threshold:.3g}" for threshold in thresholds)
    assert says("signedrank", r"$p = \frac18$", r"$p = \frac38$", f"{first}, {second} and {third}")


def test_area_and_hulls():
    assert says("roc", f"{comparison_auc(Y, D):.3f}")
    pairs, _ = four_items(2)
    values = pairs.differences() @ [1, 2]
    assert values[PREFER].min() == 3
    assert abs(values[~PREFER]).max() == 1
    assert says("hull", "$w = (1, 2)$", "at least 3", "at most 1")


def test_gaussian_conditioning_and_divergence():
    mean = B.T @ np.linalg.solve(B @ B.T + np.eye(4), Y)
    np.testing.assert_allclose(15 * mean, [-7, 2, -2, 7])
    np.testing.assert_allclose(np.linalg.solve(2 * B.T @ B + 2 * np.eye(4), 2 * B.T @ Y), mean)
    posterior = np.linalg.inv(np.eye(4) + B.T @ B)
    np.testing.assert_allclose(15 * posterior, 2 + 5 * np.eye(4) + abs(B.T @ B - 2 * np.eye(4)))
    variance = posterior[0, 0] + posterior[3, 3] - 2 * posterior[0, 3]
    assert says("gaussian", f"= {variance:.3f}$", f"have {14 / 15:.3f}", r"$\frac{1}{15}(-7, 2, -2, 7)$")
    evidence = [multivariate_normal.logpdf(Y, cov=s * B @ B.T + np.eye(4)) for s in (1, 0)]
    assert says("gaussian", *(f"${value:.2f}$" for value in evidence))

    def divergence(v, w):
        return (np.log(w / v) + v / w - 1) / 2

    full, reverse = posterior[0, 0], 1 / (1 + 2)
    assert np.diag(np.linalg.inv(posterior)) == pytest.approx(3)
    assert says("kl", f"= {full:.3f}$", f"= {reverse:.3f}$")
    assert says("kl", rf"q \,\|\, p)$ is {divergence(reverse, full):.3f}")
    assert says("kl", rf"p \,\|\, q)$ is {divergence(full, reverse):.3f}")


def test_natural_parameters():
    alpha, beta = D / 2, np.full(4, 1 / 2)
    both, without = (np.array([alpha[:k].sum(), 1 + beta[:k].sum()]) for k in (4, 3))
    assert (both.tolist(), without.tolist()) == ([4, 3], [2, 2.5])

    def log_product(s):
        return norm.logpdf(D, s, np.sqrt(2)).sum() + norm.logpdf(s)

    s = 1.7
    assert log_product(s) - log_product(0) == pytest.approx(both @ [s, -(s**2) / 2])
    assert says("natural", "$(4, 3)$", "mean 0.8 and variance 0.4", r"mean $\frac43$ and variance $\frac13$")


def test_processes_in_time():
    def covariance(t, u):
        return np.exp(-abs(np.subtract.outer(t, u)) / 2)

    weights = np.linalg.solve(covariance(X, X), covariance(X, [3.0]))[:, 0]
    variance = 1 - covariance([3.0], X)[0] @ weights
    np.testing.assert_allclose(weights[:2], 0, atol=1e-12)
    assert weights[2] == pytest.approx(weights[3])
    assert says("gp", f"${weights[2]:.3f}\\,(s(2) + s(4))$", f"variance {variance:.3f}")
    factors, noise = np.exp(-np.array([1, 2]) / 2), 1 - np.exp(-np.array([1, 2]))
    assert says("brownian", *(f"{value:.3f}" for value in [*factors, *noise]), "would add 2")
    wiener = 1 + np.minimum.outer(X, X)
    assert np.diag(wiener).tolist() == [1, 2, 3, 5]
    inverse = np.linalg.inv(wiener)
    np.testing.assert_allclose(inverse[abs(np.subtract.outer(range(4), range(4))) > 1], 0, atol=1e-12)


def test_filter_and_smoother():
    """Conditioned on the labels so far, and on all."""
    K = 1 + np.minimum.outer(X, X)

    def given(n):
        gain = np.linalg.solve(K[:n, :n] + np.eye(n), K[:n]).T
        return np.array([gain @ Y[:n], np.diag(K - gain @ K[:n])])

    filtered = np.array([given(n)[:, n - 1] for n in range(1, 5)]).T
    np.testing.assert_allclose(filtered, [[1 / 2, 1 / 5, 9 / 13, 43 / 47], [1 / 2, 3 / 5, 8 / 13, 34 / 47]])
    assert says("kalman", r"means are $\frac12$, $\frac15$, $\frac9{13}$ and $\frac{43}{47}$")
    assert says("kalman", r"variances $\frac12$, $\frac35$, $\frac8{13}$ and $\frac{34}{47}$")
    for values in 47 * given(4):
        assert says("kalman", rf"$\frac1{{47}}({', '.join(f'{value:.0f}' for value in values)})$")
        np.testing.assert_allclose(values, values.round())


def test_fixed_points():
    neighbours = 2 * np.eye(4) - B.T @ B
    solution = np.linalg.solve(np.eye(4) + B.T @ B, B.T @ Y)
    np.testing.assert_allclose((B.T @ Y + neighbours @ solution) / 3, solution)
    np.testing.assert_allclose(np.linalg.eigvalsh(neighbours / 3), [-2 / 3, 0, 0, 2 / 3], atol=1e-12)
    left = {}
    for rate in (1, 3 / 4):
        f = np.zeros(4)
        for _ in range(5):
            f = (1 - rate) * f + rate * (B.T @ Y + neighbours @ f) / 3
        left[rate] = np.linalg.norm(f - solution) / np.linalg.norm(solution)
    assert left[1] <= (2 / 3) ** 5
    assert left[3 / 4] == pytest.approx(1 / 4**5)
    assert says("fixedpoint", f"= {(2 / 3) ** 5:.3f}$", f"= {left[3 / 4]:.3f}$")
    assert min(np.linalg.eigvalsh(neighbours / 2)) == pytest.approx(-1)


def test_quadrature():
    points, weights = np.polynomial.hermite_e.hermegauss(3)
    np.testing.assert_allclose(points, [-np.sqrt(3), 0, np.sqrt(3)], atol=1e-12)
    np.testing.assert_allclose(weights / weights.sum(), [1 / 6, 2 / 3, 1 / 6])
    grid = np.arange(-40, 41)
    for variance, digits in ((1, 6), (100, 3)):
        scale = np.sqrt(variance)
        exact = quad(lambda u, s=scale: expit(u) * norm.pdf(u, 1, s), -12 * scale, 12 * scale, points=[0])[0]
        rule = weights / weights.sum() @ expit(1 + scale * points)
        trapezoid = norm.pdf(grid) @ expit(1 + scale * grid)
        assert says("quadrature", f"{exact:.{digits}f}", f"{rule:.{digits}f}")
        text = r"$4 \cdot 10^{-9}$" if variance == 1 else f"rule {trapezoid:.3f}"
        assert says("quadrature", text)
        assert variance > 1 or trapezoid - exact == pytest.approx(4e-9, abs=5e-10)


def test_evidence():
    def log_evidence(variance):
        return multivariate_normal.logpdf(Y, cov=variance * B @ B.T + np.eye(4) / 4)

    assert says("evidence", *(f"{log_evidence(v):.2f}$ for $\\theta = {v}$" for v in (0, 1, 10, 100)))
    best = minimize_scalar(
        lambda v: -log_evidence(v), bounds=(0, 1), method="bounded", options={"xatol": 1e-9}
    )
    gain, cost = -best.fun - log_evidence(0), np.log(4) / 2
    assert says("evidence", f"= {best.x:.3f}$, with ${-best.fun:.2f}$", f"gains {gain:.2f}", f"= {cost:.2f}$")
    assert gain > cost
    covariance, factors = B @ B.T + np.eye(4) / 4, []
    for n in range(4):  # each label given the earlier ones
        weights = np.linalg.solve(covariance[:n, :n], covariance[:n, n])
        variance = covariance[n, n] - weights @ covariance[:n, n]
        factors.append(norm.logpdf(Y[n], weights @ Y[:n], np.sqrt(variance)))
    assert sum(factors) == pytest.approx(log_evidence(1))
    first, second, third, last = (f"${value:.3f}$" for value in factors)
    assert says("evidence", f"logarithms {first}, {second}, {third} and {last}")


def test_log_loss_and_differences():
    losses = {w: np.log1p(np.exp(-w * D[PREFER])) for w in (1, 1 / 2)}
    for loss in losses.values():
        first, second, third = (f"{p:.3f}" for p in np.exp(-loss))
        assert says("logloss", f"{first}, {second} and {third}", rf"$\bar\ell = {loss.mean():.3f}$")
        assert loss.max() < np.log(2)  # all are hits
    found = [-0.7 * np.log(p) - 0.3 * np.log(1 - p) for p in (0.6, 0.7)]
    assert says("logloss", f"loss is {found[0]:.3f}", f"has {found[1]:.3f}", f"{found[0] - found[1]:.3f}")
    assert found[0] - found[1] == pytest.approx(0.7 * np.log(7 / 6) + 0.3 * np.log(3 / 4))
    differences = losses[1 / 2] - losses[1]
    first, second, third = (f"{value:.3f}" for value in differences)
    assert says("paired", f"{first}, {second} and {third}", rf"$\bar\delta = {differences.mean():.3f}$")
    error, *alone = (sem(values) for values in (differences, losses[1 / 2], losses[1]))
    assert says("paired", f"error {error:.3f}", f"errors {alone[0]:.3f} and {alone[1]:.3f}")
    assert says("paired", f"would be {np.hypot(*alone):.3f}")

    def blocked(day):
        size, total = np.bincount(day), np.bincount(day, differences)
        rest = total - size * differences.mean()
        return np.sqrt(len(size) / (len(size) - 1) * np.sum(rest**2)) / len(day)

    assert blocked([0, 1, 2]) == pytest.approx(error)
    assert says("paired", f"standard error is {blocked([0, 0, 1]):.3f}")


def test_random_search():
    def loss(w):
        tie = (np.log1p(np.exp(-w)) + np.log1p(np.exp(w))) / 2
        return np.log1p(np.exp(-w * D[PREFER])).sum() + tie

    best = minimize_scalar(loss, bounds=(0.1, 10), method="bounded")
    assert says("randomsearch", f"{best.fun:.3f} at the best", f"$w = {best.x:.2f}$")
    for factor in (1.1, 1.25):
        share = 2 * np.log(factor) / np.log(100)
        assert says("randomsearch", f"{factor} ", f"{1 - (1 - share) ** 20:.3f}")
    assert 1 - 0.95**58 < 0.95 < 1 - 0.95**59
    assert abs(0.05 - 0.997**1000) < 1e-3

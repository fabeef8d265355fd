"""The numbers of the primer's small examples, computed, and found in its text."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr, wilcoxon

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
    later = ["leastsquares", "cv", "signedrank", "roc", "hull", "gaussian", "statespace"]
    assert list(EXAMPLES) == first + later
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
    item = four_items(2).pairs.items[3]
    norms = [np.linalg.norm(item, order) for order in (1, 2, np.inf)]
    assert np.round(norms, 2).tolist() == [5, 4.12, 4]
    assert says("norm", r"norms 5, $\sqrt{17} = 4.12$ and 4")
    won = np.maximum(B, 0).T @ PREFER  # in the example the first item is never the worse one
    assert spearmanr(X, X**2).statistic == pytest.approx(1)
    assert rankdata(won).tolist() == [1.5, 3, 1.5, 4]
    assert says("norm", f"{spearmanr(X, won).statistic:.3f}")


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


def test_gaussian_and_state_space():
    mean = B.T @ np.linalg.solve(B @ B.T + np.eye(4), Y)
    np.testing.assert_allclose(15 * mean, [-7, 2, -2, 7])
    np.testing.assert_allclose(np.diag(np.linalg.inv(np.eye(4) + B.T @ B)), 7 / 15)
    np.testing.assert_allclose(np.linalg.solve(2 * B.T @ B + 2 * np.eye(4), 2 * B.T @ Y), mean)
    covariance = 1 + np.minimum.outer(X, X)
    assert np.diag(covariance).tolist() == [1, 2, 3, 5]
    inverse = np.linalg.inv(covariance)
    np.testing.assert_allclose(inverse[abs(np.subtract.outer(range(4), range(4))) > 1], 0, atol=1e-12)

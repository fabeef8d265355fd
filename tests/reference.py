"""Slow and exact answers by the definitions, with which several test files compare
results."""

from fractions import Fraction

import cvxpy as cp
import numpy as np


def times(c, vector):
    return tuple(c * x for x in vector)


def solve(A, b):
    """Return the unique solution of A x = b in fractions, or None if there is no
    solution or more than one."""
    rows = [
        [Fraction(x) for x in [*row, value]] for row, value in zip(A, b, strict=True)
    ]
    columns = len(rows[0]) - 1
    for k in range(columns):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = times(1 / rows[k][k], rows[k])
        for i in range(len(rows)):
            if i != k and rows[i][k] != 0:
                rows[i] = [
                    x - rows[i][k] * z for x, z in zip(rows[i], rows[k], strict=True)
                ]
    if any(row[-1] != 0 for row in rows[columns:]):
        return None
    return [row[-1] for row in rows[:columns]]


def rank(vectors):
    """Return the number of independent vectors, in fractions."""
    chosen = []
    for vector in vectors:
        if any(vector) and (
            not chosen or solve(list(zip(*chosen, strict=True)), vector) is None
        ):
            chosen.append(vector)
    return len(chosen)


def determinant(K):
    """Return the determinant, by elimination in fractions. A pivot is chosen only to
    avoid zeros."""
    K = [list(row) for row in K]
    value = Fraction(1)
    while K:
        top = next((i for i, row in enumerate(K) if row[0]), None)
        if top is None:
            return Fraction(0)
        value *= Fraction(K[top][0]) * (-1) ** top
        first = K.pop(top)
        K = [
            [
                x - Fraction(row[0]) / first[0] * y
                for x, y in zip(row, first, strict=True)
            ][1:]
            for row in K
        ]
    return value


def flipped_rows(d, y):
    """Return the rows of eq. 8 and their labels. Each row is multiplied by its label:
    preferences with the better item first, and ties in both orders."""
    preferences = d[y != 0] * y[y != 0, None]
    ties = d[y == 0]
    return np.vstack([preferences, ties, -ties]), np.repeat(
        [1.0, -1.0], [len(preferences), 2 * len(ties)]
    )


def hinge_machine(rows, cost, label=0.0, ridge=1.0, tol=1e-10):
    """Minimize ridge |u|²/2 + cost·(1 - rows u - label beta)_+ by cvxpy. Return the
    value, u, beta, and the multipliers."""
    u = cp.Variable(rows.shape[1])
    beta = cp.Variable()
    slack = cp.Variable(len(rows), nonneg=True)
    limits = [slack >= 1 - rows @ u - np.broadcast_to(label, len(rows)) * beta]
    loss = np.broadcast_to(cost, len(rows)) @ slack
    problem = cp.Problem(cp.Minimize(ridge * cp.sum_squares(u) / 2 + loss), limits)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
    return problem.value, u.value, beta.value, limits[0].dual_value


def textbook_path(K, y, lam, alpha, elbow, end, bias):
    """Return the breakpoints below lam of a path with a bias [Hastie2004] or without
    [Zapien2009], if no two events coincide.

    Each event uses dense algebra on all points, without special cases.
    """
    alpha = alpha.copy()
    elbow = list(elbow)
    found = []
    for _ in range(100 * len(y)):
        signed = y[elbow]
        n = len(elbow)
        system = np.block(
            [
                [K[np.ix_(elbow, elbow)], np.ones((n, 1))],
                [np.ones((1, n)), np.zeros((1, 1))],
            ]
        )
        rates = np.zeros(n + 1)  # rates of y alpha and of the offset
        size = n + bias
        rates[:size] = np.linalg.solve(
            system[:size, :size], np.append(signed, 0.0)[:size]
        )
        offset = np.mean(lam * signed - K[elbow] @ (y * alpha)) if bias else 0.0
        gaps = y * (K @ (y * alpha) + offset) - lam
        stay = y * (K[:, elbow] @ rates[:-1] + rates[-1]) - 1
        stay[elbow] = 0.0
        da = signed * rates[:-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            hits = np.where(np.abs(stay) > 1e-9, gaps / stay, np.inf)
            leaves = np.where(da > 0, alpha[elbow], alpha[elbow] - 1) / da
        hits, leaves = (
            np.where(steps > 1e-9, steps, np.inf) for steps in (hits, leaves)
        )
        after = leaves.min(initial=np.inf)
        step = min(hits.min(), after)
        if lam - step < end:
            return np.array(found)
        alpha[elbow] -= step * da
        lam -= step
        found.append(lam)
        if hits.min() < after:
            elbow.append(int(np.argmin(hits)))
        else:
            out = elbow.pop(int(np.argmin(leaves)))
            alpha[out] = np.round(alpha[out])
    raise AssertionError("no end of events")


def same_query(qid):
    """Return the matrix W of all item pairs within a query, as a dense matrix."""
    return np.equal.outer(qid, qid).astype(float) - np.eye(len(qid))


def laplacian(W):
    """Return the dense Laplacian L = D - W of a graph. For a directed graph, W is
    replaced by (W + W') / 2."""
    W = (np.asarray(W) + np.transpose(W)) / 2
    return np.diag(W.sum(axis=0)) - W


def root(L):
    """Return a matrix R with R'R = L."""
    values, vectors = np.linalg.eigh(L)
    return np.sqrt(np.maximum(values, 0))[:, None] * vectors.T


def least_squares(K, L, s):
    """Return the a that minimizes (s - K a)'L(s - K a), and the minimum."""
    R = root(L)
    a = np.linalg.lstsq(R @ K, R @ s, rcond=1e-12)[0]
    r = s - K @ a
    return a, float(r @ L @ r)

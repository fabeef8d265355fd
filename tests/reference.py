"""Answers by definition, slow and exact, that several test files compare with."""

from fractions import Fraction

import cvxpy as cp
import numpy as np


def times(c, vector):
    return tuple(c * x for x in vector)


def solve(A, b):
    """The one solution of A x = b, in fractions; None if there is none, or more than one."""
    rows = [[Fraction(x) for x in [*row, value]] for row, value in zip(A, b, strict=True)]
    columns = len(rows[0]) - 1
    for k in range(columns):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = times(1 / rows[k][k], rows[k])
        for i in range(len(rows)):
            if i != k and rows[i][k] != 0:
                rows[i] = [x - rows[i][k] * z for x, z in zip(rows[i], rows[k], strict=True)]
    if any(row[-1] != 0 for row in rows[columns:]):
        return None
    return [row[-1] for row in rows[:columns]]


def rank(vectors):
    """How many of some vectors are independent, in fractions."""
    chosen = []
    for vector in vectors:
        if any(vector) and (not chosen or solve(list(zip(*chosen, strict=True)), vector) is None):
            chosen.append(vector)
    return len(chosen)


def determinant(K):
    """By elimination in fractions, without a choice of pivots but for zeros."""
    K, value = [list(row) for row in K], Fraction(1)
    while K:
        top = next((i for i, row in enumerate(K) if row[0]), None)
        if top is None:
            return Fraction(0)
        value *= Fraction(K[top][0]) * (-1) ** top
        first = K.pop(top)
        K = [[x - Fraction(row[0]) / first[0] * y for x, y in zip(row, first, strict=True)][1:] for row in K]
    return value


def hinges(won, drawn, beta):
    """The slack of eq. 15, of all preferences and of both rows of all ties, for cvxpy.

    won, drawn: u·d of the preferences, better item first, and of the ties.
    """
    return cp.sum(cp.pos(1 - beta - won)), cp.sum(cp.pos(1 + beta + drawn) + cp.pos(1 + beta - drawn))


def same_query(qid):
    """W of all pairs of items of one query, a dense matrix."""
    return np.equal.outer(qid, qid).astype(float) - np.eye(len(qid))


def laplacian(W):
    """L = D - W of a graph, of a directed one that of (W + W') / 2, a dense matrix."""
    W = (np.asarray(W) + np.transpose(W)) / 2
    return np.diag(W.sum(axis=0)) - W


def root(L):
    """R with R'R = L."""
    values, vectors = np.linalg.eigh(L)
    return np.sqrt(np.maximum(values, 0))[:, None] * vectors.T


def least_squares(K, L, s):
    """The a with (s - K a)'L(s - K a) least, and that loss."""
    R = root(L)
    a = np.linalg.lstsq(R @ K, R @ s, rcond=1e-12)[0]
    r = s - K @ a
    return a, float(r @ L @ r)

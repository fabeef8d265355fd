"""The exact maximum that whole-history rating looks for: Newton's method on all ratings
at once.

Its linear systems are solved by conjugate gradients; the preconditioner is what one
player's Newton step in whole-history rating solves, the tridiagonal blocks of the
players.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit

from preflearn.matches import Matches

__all__ = ["posterior_mode"]


def posterior_mode(matches: Matches, y: NDArray, wins: float, drift: float) -> NDArray:
    """Each player's rating at his last match, where the posterior density of all
    ratings is largest.

    A win of `first` over `second` has probability expit(r_first - r_second). A player's
    ratings at his times are a Brownian motion that gains the variance `drift` per unit
    of time; the first one has a density in proportion to (expit(r) expit(-r))^wins.
    """
    times, at = np.unique(matches.time, return_inverse=True)
    keys, visits = np.unique(
        matches.players() * len(times) + at[:, None], return_inverse=True
    )
    visits = visits.reshape(-1, 2)
    player = keys // len(times)
    time = times[keys % len(times)]
    # ratings are in the order of players, then of times
    begins = np.diff(player, prepend=-1) > 0
    first = np.flatnonzero(begins)
    later = np.flatnonzero(~begins)
    precision = 1 / (drift * (time[later] - time[later - 1]))
    couples = np.concatenate([visits, np.stack([later - 1, later], axis=1)])
    n = len(keys)
    won = np.asarray(y) > 0
    r = np.zeros(n)
    step = np.array([np.inf])
    while np.abs(step).max() > 1e-7:
        p = expit(r[visits[:, 0]] - r[visits[:, 1]])
        q = expit(r[first])
        push = np.concatenate([won - p, precision * (r[later] - r[later - 1])])
        pull = np.concatenate([p * (1 - p), precision])
        gradient = np.bincount(couples[:, 0], push, n) - np.bincount(
            couples[:, 1], push, n
        )
        gradient[first] += wins * (1 - 2 * q)
        diagonal = np.bincount(couples[:, 0], pull, n) + np.bincount(
            couples[:, 1], pull, n
        )
        diagonal[first] += 2 * wins * q * (1 - q)
        step, failed = cg(
            _symmetric(diagonal, couples, pull),
            gradient,
            rtol=1e-10,
            M=_chains(diagonal, later, precision),
        )
        if failed:
            raise RuntimeError("conjugate gradients did not converge")
        r += step
    return r[np.append(first[1:], n) - 1]


def _symmetric(diagonal: NDArray, couples: NDArray, pull: NDArray) -> Any:
    rows = np.concatenate([np.arange(len(diagonal)), couples[:, 0], couples[:, 1]])
    columns = np.concatenate([np.arange(len(diagonal)), couples[:, 1], couples[:, 0]])
    return sparse.csr_array((np.concatenate([diagonal, -pull, -pull]), (rows, columns)))


def _chains(diagonal: NDArray, later: NDArray, precision: NDArray) -> LinearOperator:
    """Solves with the part of the matrix that couples the ratings of one player."""
    below = np.zeros_like(diagonal)
    below[later - 1] = -precision
    factor = cholesky_banded(np.stack([diagonal, below]), lower=True)
    n = len(diagonal)
    return LinearOperator((n, n), matvec=lambda x: cho_solve_banded((factor, True), x))  # pyright: ignore

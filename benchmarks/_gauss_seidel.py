"""The schedule of TrueSkill Through Time, compiled: how many of its sweeps lead to its
tolerance.

A sweep goes back through the times and forth again; at each time it updates the matches
one after the other, with the messages from both sides as they are by then. Its updates
are those of EP for (ordinal) probit.
"""

from __future__ import annotations

import math

import numpy as np

from preflearn.core.compilation import njit
from preflearn.matches import Matches

__all__ = ["sweep_through_time"]

# messages at a visit from before, after and its matches: tau and pi of each
_FORTH = 0
_BACK = 2
_HERE = 4


def sweep_through_time(
    matches: Matches,
    y: np.ndarray,
    variance: float,
    drift: float,
    margin: float,
    epsilon: float,
    most: int = 20_000,
) -> tuple[np.ndarray, np.ndarray]:
    """Sweeps until none moves a mean or a standard deviation by more than epsilon.

    Returns
    -------
    steps : ndarray of shape (sweeps,)
        The largest such move of each.
    moments : ndarray of shape (N, 2, 2)
        Mean and standard deviation of both skills at each match.
    """
    times, at = np.unique(matches.time, return_inverse=True)
    n_players = len(matches.features)
    keys, visit_of = np.unique(
        at[:, None] * n_players + matches.players(), return_inverse=True
    )
    visit_of = visit_of.reshape(-1, 2)
    counted = np.arange(len(times) + 1)
    # where those of each time begin
    visits = np.searchsorted(keys // n_players, counted)
    begins = np.searchsorted(at, counted)
    player = keys % n_players
    gained = _gained(player, times[keys // n_players], drift)
    messages = np.zeros((len(keys), 6))
    sites = np.zeros((len(y), 2, 2))
    fixed = (
        visits,
        begins,
        player,
        gained,
        variance,
        visit_of,
        y.astype(np.int64),
        margin,
    )
    _first_pass(messages, sites, *fixed)
    steps = [math.inf]
    while steps[-1] > epsilon and len(steps) <= most:
        steps.append(_sweep(messages, sites, *fixed))
    tau, pi = (
        messages[:, k] + messages[:, k + 2] + messages[:, k + 4] for k in range(2)
    )
    moments = np.stack([tau / pi, np.sqrt(1 / pi)], axis=1)
    return np.array(steps[1:]), moments[visit_of]


@njit
def _gained(player, time, drift):
    """The variance that a skill gains since the player's last visit; -1 at the first
    one."""
    last = np.full(player.max() + 1, -np.inf)
    gained = np.empty(len(player))
    for k in range(len(player)):
        gained[k] = (
            drift * (time[k] - last[player[k]]) if last[player[k]] > -np.inf else -1.0
        )
        last[player[k]] = time[k]
    return gained


@njit
def _first_pass(
    messages, sites, visits, begins, player, gained, variance, visit_of, y, margin
):
    out = np.zeros((player.max() + 1, 2))
    for j in range(len(visits) - 1):
        _receive(j, out, messages, visits, player, gained, variance)
        _update(j, messages, sites, begins, visit_of, y, margin)
        _send(j, out, messages, visits, player)


@njit
def _sweep(
    messages, sites, visits, begins, player, gained, variance, visit_of, y, margin
):
    last = len(visits) - 2
    step = 0.0
    out = np.zeros((player.max() + 1, 2))
    for j in range(last, -1, -1):
        if j < last:
            before = messages[visits[j] : visits[j + 1]].copy()
            for k in range(visits[j], visits[j + 1]):
                messages[k, _BACK], messages[k, _BACK + 1] = (
                    out[player[k], 0],
                    out[player[k], 1],
                )
            _update(j, messages, sites, begins, visit_of, y, margin)
            step = max(step, _moved(before, messages[visits[j] : visits[j + 1]]))
        for k in range(visits[j], visits[j + 1]):
            tau = messages[k, _BACK] + messages[k, _HERE]
            pi = messages[k, _BACK + 1] + messages[k, _HERE + 1]
            out[player[k], 0], out[player[k], 1] = _later(tau, pi, max(gained[k], 0.0))
    for j in range(last + 1):
        if j > 0:
            before = messages[visits[j] : visits[j + 1]].copy()
            _receive(j, out, messages, visits, player, gained, variance)
            _update(j, messages, sites, begins, visit_of, y, margin)
            step = max(step, _moved(before, messages[visits[j] : visits[j + 1]]))
        _send(j, out, messages, visits, player)
    return step


@njit
def _moved(before, after):
    """By how much a mean or a standard deviation of the visits of one time moved."""
    step = 0.0
    for k in range(len(before)):
        m, v = _skill(before, k)
        m2, v2 = _skill(after, k)
        step = max(step, abs(m - m2), abs(math.sqrt(v) - math.sqrt(v2)))
    return step


@njit
def _later(tau, pi, gained):
    return tau / (1 + pi * gained), pi / (1 + pi * gained)


@njit
def _receive(j, out, messages, visits, player, gained, variance):
    for k in range(visits[j], visits[j + 1]):
        tau = 0.0
        pi = 1 / variance
        if gained[k] >= 0:
            tau, pi = _later(out[player[k], 0], out[player[k], 1], gained[k])
        messages[k, _FORTH], messages[k, _FORTH + 1] = tau, pi


@njit
def _send(j, out, messages, visits, player):
    for k in range(visits[j], visits[j + 1]):
        for part in range(2):
            out[player[k], part] = (
                messages[k, _FORTH + part] + messages[k, _HERE + part]
            )


@njit
def _skill(messages, k):
    """Mean and variance at visit k."""
    pi = messages[k, 1] + messages[k, 3] + messages[k, 5]
    return (messages[k, 0] + messages[k, 2] + messages[k, 4]) / pi, 1 / pi


@njit
def _add(sign, messages, sites, n, first, second):
    """The pseudo-observations of match n to what its two visits learned, or off it."""
    for part in range(2):
        messages[first, _HERE + part] += sign * sites[n, 0, part]
        messages[second, _HERE + part] += sign * sites[n, 1, part]


@njit
def _update(j, messages, sites, begins, visit_of, y, margin):
    """All matches of time j, one after the other."""
    for n in range(begins[j], begins[j + 1]):
        first = visit_of[n, 0]
        second = visit_of[n, 1]
        _add(-1.0, messages, sites, n, first, second)
        m, v = _skill(messages, first)
        m2, v2 = _skill(messages, second)
        total = v + v2 + 1.0
        up, narrowing = _truncated(
            (m - m2) / math.sqrt(total), margin / math.sqrt(total), y[n]
        )
        up *= math.sqrt(total)
        sites[n, 0, 1] = narrowing / (total - narrowing * v)
        sites[n, 0, 0] = (narrowing * m + up) / (total - narrowing * v)
        sites[n, 1, 1] = narrowing / (total - narrowing * v2)
        sites[n, 1, 0] = (narrowing * m2 - up) / (total - narrowing * v2)
        _add(1.0, messages, sites, n, first, second)


@njit
def _truncated(mean, margin, y):
    """Of N(mean, 1), cut by the outcome: the shift of the mean, and by how much the
    variance shrinks."""
    if y == 0:
        low = -margin - mean
        high = margin - mean
        mass = _cumulated(high) - _cumulated(low)
        up = (_density(low) - _density(high)) / mass
        return up, up * up - (low * _density(low) - high * _density(high)) / mass
    z = y * mean - margin
    up = _density(z) / _cumulated(z)
    return y * up, up * (up + z)


@njit
def _density(z):
    return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


@njit
def _cumulated(z):
    return 0.5 * math.erfc(-z / math.sqrt(2.0))

"""EP with one pseudo-observation for each match, on its difference of scores: the joint
posterior.

A match depends on the scores only by z = x·s. Its pseudo-observation exp(alpha z - beta
z²/2) leaves all covariances between features in the posterior, the prior times all
pseudo-observations, which is a Gaussian over all features. In terms of `algorithm`, a
match has one entry, with x = 1, whose "feature" is z: with the mean c and the variance v
of z in the cavity,

    alpha = (d1 - c d2) / D,   beta = -d2 / D,   D = 1 + v d2.

For Gaussian outcomes of variance a, d1 = (y - c)/(a + v) and d2 = -1/(a + v), so that
alpha = y/a and beta = 1/a for any cavity: pseudo-observations are the likelihoods, and
posterior and evidence are exact.

What remains are the marginals of all z. Where no score moves, one Cholesky factor of
size F gives them (`joint_static`), else a Kalman filter and smoother over all features
(`joint_filter`). Matches of one row (and time, where scores move) share their z; if they
also share outcome and offset, they count as one match of their weights' sum, which to
power EP is the same (`algorithm`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.validation import Floats, Ids, require
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.covariances.state_space import StateSpace, is_static
from preflearn.dynamics.engine.algorithm import UpdateMap
from preflearn.dynamics.engine.joint_filter import JointFilter, Rows, costs
from preflearn.dynamics.engine.joint_static import StaticScores
from preflearn.dynamics.engine.schedule import distinct
from preflearn.dynamics.engine.threads import ParallelMap, njit_nogil
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.matches import Matches

MAX_SIZE = 5000  # of the state: its covariance takes 200 MB
MAX_NUMBERS = 2.5e8  # that a sweep of the filter keeps: 2 GB
MAX_OPERATIONS = 2e11  # per sweep: a minute or two
# deviations of noise: the common offset of all scores keeps the variance of the prior,
# and with its square differences are rounded
MAX_JOINT_STD = 1e4
_MOST_MERGED = 16  # entries of rows that are compared


class Groups(NamedTuple):
    """Matches that share their pseudo-observation, and rows that share their z.

    Attributes
    ----------
    rows : Rows
        The distinct rows, with their times.
    row_of_match : ndarray of int, shape (N,)
    group_of_match : ndarray of int, shape (N,)
    match : ndarray of int, shape (G,)
        A match of each group.
    """

    rows: Rows
    row_of_match: Ids
    group_of_match: Ids
    match: Ids


def group_matches(matches: Matches, observations: Floats, moving: bool) -> Groups:
    """Find equal rows, at equal times if scores move, and equal matches of a row.

    Matches of a weight below 1 are never merged: the power of a likelihood is not
    additive there.
    """
    design = matches.design
    keys: list[NDArray] = [_row_codes(design)]
    if moving:
        keys.append(matches.time)
    row, row_of_match = distinct(keys)
    outcome, weight, offset = observations.T
    alone = (weight > 0) & (weight < 1)
    apart = np.where(alone, np.arange(len(matches)), -1)
    match, group = distinct([row_of_match, outcome, offset, apart])
    return Groups(Rows(design[row], matches.time[row]), row_of_match, group, match)


def _row_codes(design: Any) -> Ids:
    """A number for each distinct row of a design."""
    start = design.indptr[:-1]
    lengths = np.diff(design.indptr)
    if lengths.max() > _MOST_MERGED:
        return np.arange(len(lengths))
    keys: list[NDArray] = [lengths]
    for k in range(lengths.max()):
        at = start + np.minimum(k, lengths - 1)
        keys += [design.indices[at], design.data[at]]
    return distinct(keys)[1]


def make_static_scores(
    rows: Rows, spaces: list[StateSpace], space_of: Ids, parallel_map: ParallelMap
) -> tuple[StaticScores, Ids]:
    """The scores of those features that are in some row, and which these are."""
    visited = np.unique(rows.design.indices)
    variances = np.zeros(len(spaces))
    for k in np.unique(space_of[visited]):
        variances[k] = spaces[k].initial(np.zeros(1))[0, 0, 0]
    std = np.sqrt(variances[space_of[visited]])
    return StaticScores(rows.design[:, visited], std, parallel_map), visited


def sums_of(sites: Floats, group: Ids, n_groups: int) -> Floats:
    """The sums of alpha and of beta of each group, (n_groups, 2)."""
    sums = [np.bincount(group, site, n_groups) for site in sites.T]
    return np.column_stack(sums).astype(np.float64)


class JointSweep(UpdateMap):
    """The map of the joint posterior: a pseudo-observation for each group of matches.

    Parameters
    ----------
    matches : Matches
    prior : Prior
    likelihood, ep, parallel_map
        As of `UpdateMap`.
    observations : ndarray of shape (N, 3)
        Outcome, weight and known part of the score difference of each match.

    Raises
    ------
    ValueError
        If there are too many features.
    """

    contracts = True

    def __init__(
        self,
        matches: Matches,
        prior: Prior,
        likelihood: Likelihood,
        observations: Floats,
        *,
        ep: bool,
        parallel_map: ParallelMap,
    ) -> None:
        space_of = prior.space_index(matches.features)
        moving = not all(is_static(prior.spaces[k]) for k in np.unique(space_of))
        self.prior = prior
        self._groups = group_matches(matches, observations, moving)
        rows, _, group, match = self._groups
        weight = np.bincount(group, observations[:, 1])
        self._fraction = observations[:, 1] / np.where(weight > 0, weight, 1.0)[group]
        merged = observations[match]
        merged[:, 1] = weight
        n_groups = len(match)
        super().__init__(
            merged,
            np.arange(n_groups + 1),
            np.ones(n_groups),
            likelihood,
            ep=ep,
            parallel_map=parallel_map,
        )
        self._row = self._groups.row_of_match[match]
        self._moments = np.empty((len(rows.time), 2))
        self._scores: JointFilter | StaticScores
        if moving:
            sizes = np.array([space.size for space in prior.spaces])[space_of]
            check_size(rows, sizes)
            self._scores = JointFilter(rows, prior.spaces, space_of)
        else:
            n_features = len(np.unique(matches.design.indices))
            _check(n_features, "the number of features", MAX_SIZE)
            self._scores, _ = make_static_scores(
                rows, prior.spaces, space_of, parallel_map
            )

    def smooth_features(self) -> float:
        """Find the cavity (EP) or the posterior (reverse-KL) of each group's z."""
        sites = self.entries[:, :2]
        totals = sums_of(sites, self._row, len(self._moments))
        log_z = self._scores.smooth(totals, self._moments)
        _give_back(self.ep, self._row, totals, self._moments, self.entries)
        return log_z

    def check_score_scale(self) -> None:
        largest = self._scores.max_std / self._noise
        expected = (
            f"at most {MAX_JOINT_STD:g}, or differences are rounded: less variance, "
        )
        expected += "other units of x or of time, or posterior='factorized'"
        name = "the largest deviation of a score, times x by noise,"
        require(largest <= MAX_JOINT_STD, largest, name, expected)

    @property
    def sites(self) -> Floats:
        return self.entries[self._groups.group_of_match, :2] * self._fraction[:, None]

    @sites.setter
    def sites(self, sites: Floats) -> None:
        groups = self._groups.group_of_match
        self.entries[:, :2] = sums_of(sites, groups, len(self.entries))


def check_size(rows: Rows, sizes: Ids) -> None:
    """Raise ValueError if the filter over all features would take too long."""
    visited = np.unique(rows.design.indices)
    _check(int(sizes[visited].sum()), "the size of the state of all features", MAX_SIZE)
    numbers, operations = costs(rows, sizes)
    name = "the sum over matches of the size of the state of the features between their first and last match,"
    _check(numbers, name, MAX_NUMBERS)
    name = "the number of operations per sweep, the sum over matches of the squared size of the state,"
    _check(operations, name, MAX_OPERATIONS)


def _check(value: float, name: str, largest: float) -> None:
    expected = f"at most {largest:g} for posterior='joint': use posterior='factorized'"
    require(value <= largest, value, name, f"{expected}, or fewer features or matches")


@njit_nogil
def _give_back(ep, row, totals, moments, entries):
    """From the cavity of a row, without all its pseudo-observations, to those of its
    groups: the other groups' are put back, or, for the posterior, all."""
    for i in range(len(row)):
        alpha = totals[row[i], 0]
        beta = totals[row[i], 1]
        if ep:
            alpha -= entries[i, 0]
            beta -= entries[i, 1]
        c = moments[row[i], 0]
        v = moments[row[i], 1]
        shrink = 1.0 / (1.0 + beta * v)
        entries[i, 2] = (c + alpha * v) * shrink
        entries[i, 3] = v * shrink

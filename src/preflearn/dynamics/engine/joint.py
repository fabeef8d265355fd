"""EP for the joint posterior, with one pseudo-observation per match.

A match depends on the scores only through z = x·s. Its pseudo-observation exp(alpha z -
beta z²/2) keeps all covariances between features in the posterior. This is the prior
times all pseudo-observations, a Gaussian over all features. In terms of `algorithm`, a
match has one entry, with x = 1, whose "feature" is z. With the mean c and the variance
v of z in the cavity,

    alpha = (d1 - c d2) / D,   beta = -d2 / D,   D = 1 + v d2.

For Gaussian outcomes of variance a, d1 = (y - c)/(a + v) and d2 = -1/(a + v). Then
alpha = y/a and beta = 1/a for any cavity: pseudo-observations are the likelihoods, and
posterior and evidence are exact.

The remaining task is to compute the marginals of all z. If no score changes, a Cholesky
factor of size F gives these marginals (`joint_static`). Otherwise a Kalman filter and
smoother over all features gives them (`joint_filter`). Matches with the same row (and
the same time, if scores change) share their z. If they also share outcome and offset,
they count as one match with the sum of their weights, which is equivalent in power EP
(`algorithm`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.validation import Floats, Ids
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.covariances.state_space import StateSpace, is_static
from preflearn.dynamics.engine.algorithm import UpdateMap
from preflearn.dynamics.engine.joint_filter import JointFilter, Rows, costs
from preflearn.dynamics.engine.joint_static import StaticScores
from preflearn.dynamics.engine.schedule import distinct
from preflearn.dynamics.engine.threads import ParallelMap, njit_nogil
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.matches import Matches

MAX_SIZE = 5000  # size of the state; its covariance needs 200 MB
MAX_NUMBERS = 2.5e8  # numbers that a sweep of the filter stores; 2 GB
MAX_OPERATIONS = 2e11  # per sweep; one or two minutes
# In standard deviations of the noise. The common offset of all scores keeps its prior
# variance, which causes rounding errors in score differences.
MAX_JOINT_STD = 1e4
_MAX_COMPARED_ENTRIES = 16  # rows with more entries are not compared


class Groups(NamedTuple):
    """Matches that share their pseudo-observation, and rows that share their z.

    Attributes
    ----------
    rows : Rows
        Distinct rows, with their times.
    row_of_match : ndarray of int, shape (N,)
        Row number of each match.
    group_of_match : ndarray of int, shape (N,)
        Group number of each match.
    match : ndarray of int, shape (G,)
        A match of each group.
    """

    rows: Rows
    row_of_match: Ids
    group_of_match: Ids
    match: Ids


def group_matches(matches: Matches, observations: Floats, moving: bool) -> Groups:
    """Find equal rows (at equal times if scores change) and equal matches of a row.

    Matches with a weight below 1 are never merged, because the power of a likelihood is
    not additive for them.
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
    """Number of the distinct row for each row of a design."""
    start = design.indptr[:-1]
    lengths = np.diff(design.indptr)
    if lengths.max() > _MAX_COMPARED_ENTRIES:
        return np.arange(len(lengths))
    keys: list[NDArray] = [lengths]
    for k in range(lengths.max()):
        at = start + np.minimum(k, lengths - 1)
        keys += [design.indices[at], design.data[at]]
    return distinct(keys)[1]


def make_static_scores(
    rows: Rows, spaces: list[StateSpace], space_of: Ids, parallel_map: ParallelMap
) -> tuple[StaticScores, Ids]:
    """Scores of the features that occur in some row, and the list of these features."""
    visited = np.unique(rows.design.indices)
    variances = np.zeros(len(spaces))
    for k in np.unique(space_of[visited]):
        variances[k] = spaces[k].initial(np.zeros(1))[0, 0, 0]
    std = np.sqrt(variances[space_of[visited]])
    return StaticScores(rows.design[:, visited], std, parallel_map), visited


def sums_of(sites: Floats, group: Ids, n_groups: int) -> Floats:
    """Sums of alpha and beta of each group, shape (n_groups, 2)."""
    sums = [np.bincount(group, site, n_groups) for site in sites.T]
    return np.column_stack(sums).astype(np.float64)


class JointSweep(UpdateMap):
    """Update map of the joint posterior: a pseudo-observation per group of matches.

    Parameters
    ----------
    matches : Matches
    prior : Prior
    likelihood, ep, parallel_map
        Arguments of `UpdateMap`.
    observations : ndarray of shape (N, 3)
        Outcome, weight, and known part of the score difference of each match.

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
        """Compute the cavity (EP) or posterior (reverse-KL) of each group's z."""
        sites = self.entries[:, :2]
        totals = sums_of(sites, self._row, len(self._moments))
        log_z = self._scores.smooth(totals, self._moments)
        _give_back(self.ep, self._row, totals, self._moments, self.entries)
        return log_z

    def posterior_moments(self) -> Floats:
        """Mean and variance of z of each match, after `smooth_features`, shape (2, N)."""
        totals = sums_of(self.entries[:, :2], self._row, len(self._moments))
        mean, variance = self._moments.T
        shrink = 1.0 / (1.0 + totals[:, 1] * variance)
        moments = np.array([mean + totals[:, 0] * variance, variance]) * shrink
        return moments[:, self._groups.row_of_match]

    def check_score_scale(self) -> None:
        largest = self._scores.max_std / self._noise
        if not largest <= MAX_JOINT_STD:
            raise ValueError(
                f"the largest prior standard deviation of a score, times its entry of the "
                f"design, is {largest:.3g} times the noise, which is too large for "
                f"floating-point accuracy (the limit is {MAX_JOINT_STD:g}); reduce the "
                "variance of the covariance, rescale the design or the times, or use "
                "posterior='factorized'"
            )

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
    _check(int(sizes[visited].sum()), "the state size of all features", MAX_SIZE)
    numbers, operations = costs(rows, sizes)
    name = "the memory of a sweep in numbers (state size, summed over matches)"
    _check(numbers, name, MAX_NUMBERS)
    name = (
        "the number of operations per sweep (squared state size, summed over matches)"
    )
    _check(operations, name, MAX_OPERATIONS)


def _check(value: float, name: str, largest: float) -> None:
    if value > largest:
        raise ValueError(
            f"{name} is {value:,.10g}, but posterior='joint' supports at most {largest:,.10g}; use "
            "posterior='factorized', or fewer features or matches"
        )


@njit_nogil
def _give_back(ep, row, totals, moments, entries):
    """Convert the cavity of a row to the cavities of its groups.

    The cavity of the row lacks the pseudo-observations of all its groups. Those of the
    other groups are added, or, for the posterior, those of all groups.
    """
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

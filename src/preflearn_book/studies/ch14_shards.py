"""Algorithm 1 of [Maystre2019]_ on several workers, each with some players and all
their matches.

If the players of a match belong to two workers, both workers store the match. After a
sweep of the smoother, each worker sends the mean and the variance of its own side of
each such match, computed without this match. It sends nothing else about the history of
a player. From the moments of both sides, both workers compute the same new
pseudo-observations. A match between workers therefore needs two numbers in each
direction per sweep, 32 bytes in total. Other matches need no communication.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from preflearn.core.validation import Floats, warn_user
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.engine.algorithm import Sweep
from preflearn.dynamics.engine.posterior import Posterior
from preflearn.dynamics.engine.schedule import make_schedule
from preflearn.dynamics.model import DynamicComparisons, check_problem
from preflearn.matches import Matches

Inbox = Mapping[int, Floats]  # Keys are senders.


class Shard:
    """The players of one worker and their matches.

    Parameters
    ----------
    model : DynamicComparisons
        Model with the covariance, likelihood, and method to use, without prior means.
    matches : Matches
        Matches with all features, in each of which a player of this worker takes part.
    y : array-like of shape (N,)
    owner : ndarray of int, shape (M,)
        The worker of each feature.
    me : int
    """

    def __init__(
        self,
        model: DynamicComparisons,
        matches: Matches,
        y: ArrayLike,
        owner: NDArray,
        me: int,
    ) -> None:
        self._prior = Prior(model.covariance, None)
        self._matches = matches
        self._mine = owner == me
        schedule = make_schedule(matches, self._prior)
        self._sweep = Sweep(
            schedule,
            model.likelihood,
            check_problem(model, matches, y),
            ep=model.method == "ep",
            parallel_map=_map_serially,
        )
        self._some = np.empty(len(owner), dtype=bool)
        self._some[schedule.rank] = self._mine
        # Entries are in the order of rows and columns, which is the same on both workers.
        place = np.empty_like(schedule.entry_order)
        place[schedule.entry_order] = np.arange(len(place))
        design = matches.design
        row = np.repeat(np.arange(len(matches)), np.diff(matches.design.indptr))
        entry_owner = owner[design.indices]
        self._sent: dict[int, NDArray] = {}
        self._received: dict[int, NDArray] = {}
        for other in np.unique(entry_owner[entry_owner != me]).tolist():
            theirs = entry_owner == other
            shared = np.bincount(row[theirs], minlength=len(matches)) > 0
            self._sent[other] = place[(entry_owner == me) & shared[row]]
            self._received[other] = place[theirs]
        self._sweep.smooth_features(self._some)

    def outbox(self, to: int) -> Floats:
        """Means and variances for another worker, one row per shared match."""
        return self._sweep.entries[self._sent.get(to, []), 2:]

    def turn(self, inbox: Inbox, sweeps: int = 1, rate: float = 1.0) -> float:
        """Run sweeps with new moments of the players of other workers.

        Return the largest change in the first sweep.
        """
        for sender, moments in inbox.items():
            self._sweep.entries[self._received.get(sender, []), 2:] = moments
        residuals = []
        for _ in range(sweeps):
            residuals.append(self._sweep.update_matches(0.0).residual)
            self._sweep.move(rate)
            self._sweep.smooth_features(self._some)
        return residuals[0]

    def scores(self, time: float) -> dict[str, tuple[float, float]]:
        """Mean and standard deviation of each player of this worker at a time."""
        schedule = self._sweep.schedule
        sites = np.empty((len(schedule.entry_order), 2))
        sites[schedule.entry_order] = self._sweep.entries[:, :2]
        posterior = Posterior(self._prior, self._matches, sites)
        names: Any = tuple(
            self._matches.features[k] for k in np.flatnonzero(self._mine)
        )
        mean, variance = posterior.moments(
            posterior.feature_ids(names), np.full(len(names), time)
        )
        moments = zip(mean.tolist(), np.sqrt(variance).tolist(), strict=True)
        return dict(zip(names, moments, strict=True))


def _map_serially(function: Any, parts: Sequence) -> list:
    return list(map(function, parts))


class Sharded(NamedTuple):
    """The result of `fit_shards`.

    Attributes
    ----------
    scores : dict
        Mean and standard deviation of each player at the time of the last match.
    residuals : list of float
        Residual in the first sweep after each exchange.
    crossing : int
        Number of sides of matches that all workers send in each exchange.
    """

    scores: dict[str, tuple[float, float]]
    residuals: list[float]
    crossing: int


def fit_shards(
    client: Any,
    model: DynamicComparisons,
    matches: Matches,
    y: NDArray,
    owner: NDArray,
    *,
    every: int = 1,
) -> Sharded:
    """Fit on the workers of a Dask client, which exchange only moments.

    Parameters
    ----------
    client : distributed.Client
        Client with at least as many workers as `owner` uses.
    model : DynamicComparisons
        Model, whose `tol` is the largest residual of a converged fit and whose
        `max_iter` is the largest number of exchanges. The sweeps are not accelerated
        here, so its rate must be a number. If EP oscillates, use a smaller rate, such as
        1/2. This happens, for example, if a player has dozens of wins and no loss within
        one length scale.
    matches, y
        Matches and outcomes, as in `DynamicComparisons.fit`.
    owner : ndarray of int, shape (M,)
        The worker of each feature, 0, 1, .... Each worker must have a match.
    every : int
        Number of sweeps between two exchanges.

    Returns
    -------
    Sharded

    Warns
    -----
    ConvergenceWarning
        If the last residual is above the `tol` of the model.
    """
    rate = float(model.rate)
    run = uuid4().hex
    everyone = range(int(owner.max()) + 1)
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])

    def on(me: int, task: Any, *arguments: Any) -> Any:
        return client.submit(
            task, (run, me), *arguments, workers=[workers[me]], pure=False
        )

    ready = []
    for me in everyone:
        rows = np.flatnonzero(abs(matches.design) @ (owner == me))
        ready.append(on(me, _place, model, matches[rows], y[rows], owner, me))
    residuals: list[float] = []
    for _ in range(model.max_iter):
        # A worker sends its moments after its last turn and before its next one.
        post = {
            (a, b): on(a, _outbox, b, ready[a]) for a, b in permutations(everyone, 2)
        }
        for me in everyone:
            inbox = {a: future for (a, b), future in post.items() if b == me}
            own = [future for (a, _), future in post.items() if a == me]
            ready[me] = on(me, _turn, inbox, every, rate, own)
        residuals.append(max(client.gather(ready)))
        if residuals[-1] <= model.tol:
            break
    else:
        warn_user(
            f"the residual is {residuals[-1]:.2g} after {model.max_iter} exchanges; expected "
            f"at most tol = {model.tol:g}: pass a larger max_iter or, if it oscillates, a "
            "smaller rate",
            ConvergenceWarning,
        )
    scores: dict[str, tuple[float, float]] = {}
    time = float(matches.time[-1])
    for part in client.gather([on(me, _scores, time) for me in everyone]):
        scores |= part
    sizes = [client.submit(len, future) for future in post.values()]
    return Sharded(scores, residuals, sum(client.gather(sizes)))


_PLACED: dict[tuple[str, int], Shard] = {}  # shards that this worker stores


def _place(key: tuple[str, int], *arguments: Any) -> None:
    _PLACED[key] = Shard(*arguments)


def _outbox(key: tuple[str, int], to: int, _: object) -> Floats:
    return _PLACED[key].outbox(to)


def _turn(
    key: tuple[str, int], inbox: Inbox, sweeps: int, rate: float, _: object
) -> float:
    return _PLACED[key].turn(inbox, sweeps, rate)


def _scores(key: tuple[str, int], time: float) -> dict[str, tuple[float, float]]:
    return _PLACED.pop(key).scores(time)

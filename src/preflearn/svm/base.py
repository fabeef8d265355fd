"""What the machines share: their kernel, their scores, checks of input, of the bias and
of the gap."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.estimator import ComparisonEstimator, check_asked
from preflearn.core.expansion import Expansion, KernelParameters
from preflearn.core.kernels import Kernel
from preflearn.core.validation import (
    LARGEST,
    Floats,
    Ids,
    check_kinds,
    check_labels,
    check_real,
    check_weights,
)
from preflearn.metrics import best_threshold, comparison_loss, threshold
from preflearn.pairs import Pairs, as_pairs
from preflearn.solvers.newton import warn_about_gap
from preflearn.svm.kernel_problem import INACCURATE, Solution

# of 1: differences of support vectors are known to about the root of the gap
_ON_MARGIN = 1e-6
NEGATIVE = -1e-8  # beta below this counts as negative; its unit is that of the margin
# of the preferences' weight; from 1 on beta is negative for all data
_SHARES = (0.6, 0.7, 0.8, 0.9, 1.0)
_USELESS = 1e-2  # a duality gap beyond which there is no answer


def on_margin(z: Floats) -> Floats:
    """Differences of scores; those on the margin but for rounding, which would choose
    tau, are put on it."""
    return np.where(np.abs(np.abs(z) - 1) < _ON_MARGIN, np.sign(z), z)


def clear_threshold(
    y: NDArray, z: Floats, sample_weight: Floats | None = None
) -> float:
    """tau of eq.

    6, with the differences on the margin on one side of it, wherever rounding left
    them.
    """
    tau, _ = best_threshold(y, on_margin(z), sample_weight)
    if abs(tau - 1) >= _ON_MARGIN:
        return tau
    sides = (1 + _ON_MARGIN, 1 - _ON_MARGIN)
    return min(
        sides, key=lambda side: comparison_loss(y, threshold(z, side), sample_weight)
    )


class DegenerateBiasError(ValueError):
    """beta >= 0: every pair counts as a significant difference, and -u / beta is no
    ranking function."""


def weighed(
    tie_weight: object, y: NDArray, weights: Floats, solved: Callable
) -> tuple[float, Floats, Any]:
    """The tie weight that is given, or the first that serves; what the pairs weigh
    then, and the solution.

    For weights of the pairs `solved` gives a solution and its beta.
    """
    if isinstance(tie_weight, str) and tie_weight == "least":
        even = float(weights[y != 0].sum() / weights[y == 0].sum())
        factors = [1.0, *(share * even for share in _SHARES if share * even > 1)]
    else:
        factors = [
            check_real(
                tie_weight,
                "tie_weight",
                "a positive number or 'least'",
                1 / LARGEST,
                LARGEST,
            )
        ]
    for factor in factors:
        scaled = np.where(y == 0, factor, 1.0) * weights
        found, beta = solved(scaled)
        if beta < NEGATIVE:
            break
    return factor, scaled, found  # pyright: ignore[reportPossiblyUnboundVariable]  (there is a factor)


def check_bias(
    bias: float, y: NDArray, z: Callable, setting: str, weaker: Callable
) -> None:
    """Raise DegenerateBiasError unless beta is negative.

    Parameters
    ----------
    z : callable
        Gives the differences u·d of the pairs, shape (m,).
    setting : str
        What regularises, and how much.
    weaker : callable
        What to do for a regulariser that is so many times weaker, and the beta that
        this has.
    """
    if bias < NEGATIVE:
        return
    advice = "Model"
    reach = float(np.abs(z()).max())
    # no difference has met a margin: the regulariser may be to blame, not the data
    if 0 < reach < 1:
        with suppress(ValueError):
            remedy, beta = weaker(100 / reach)  # differences grow with C at first
            advice = (
                f"{remedy}, where beta is {beta:.3g}; or model"
                if beta < NEGATIVE
                else advice
            )
    raise DegenerateBiasError(
        f"beta is {bias:.3g}, but the ranking function -u / beta needs a negative one: with {setting}, "
        f"{np.count_nonzero(y)} preferences against {np.count_nonzero(y == 0)} ties call every pair "
        "significant, since what tells ties from preferences does not outweigh their numbers here. "
        f"{advice} ties (OrdinalComparison or Davidson of preflearn.ranking), leave them out of the order "
        "(SVMRank), or let them weigh more: tie_weight='least' finds how much, and may predict far more of "
        "them than there are"
    )


class Training(NamedTuple):
    """The pairs of a fit that have a weight."""

    pairs: Pairs
    y: NDArray[np.int8]
    weights: Floats  # positive
    ids: Ids  # among all pairs
    n_pairs: int  # all of them

    @classmethod
    def of(
        cls,
        owner: object,
        pairs: Pairs | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        ties: bool = True,
    ) -> Training:
        """The arguments of a fit, checked; the owner needs a preference and, with
        `ties`, a tie."""
        pairs = as_pairs(pairs, keep=getattr(owner, "kernel", None) == "linear")
        y = check_labels(y, len(pairs))
        weights = check_weights(sample_weight, len(pairs))
        ids = np.flatnonzero(weights)
        check_kinds(y[ids], type(owner).__name__, ties)
        some = pairs if len(ids) == len(pairs) else pairs[ids]
        return cls(some, y[ids], weights[ids], ids, len(pairs))

    def spread(self, values: Floats) -> Floats:
        """Values of these pairs, for all pairs; the others have 0."""
        every = np.zeros(self.n_pairs)
        every[self.ids] = values
        return every


class ExpandedMachine(KernelParameters, ComparisonEstimator):
    """A ranking function in the span of kernels at the items; `SVMCompare` documents
    its parameters."""

    kernel: Kernel
    _expansion: Expansion

    def rank_function(self, X: ArrayLike) -> Floats:
        """Scores r(x) of items, shape (n,); larger is better.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With ``kernel="precomputed"``: rows of the kernel between these items and
            all items of the fit.

        Raises
        ------
        ValueError
            If X has another number of columns than the items of the fit.
        """
        X = check_asked(self, X)
        return self._expansion(X)


class KernelMachine(ExpandedMachine):
    """One whose coefficients are sums of the pairs' dual weights, with its certificate."""

    def _keep(self, solution: Solution, given: Training, scale: float) -> None:
        """Remember r = scale · u·Phi, the solution of the pairs that have a weight."""
        self.n_features_in_ = given.pairs.shape[2]
        self.objective_, self.dual_gap_, _ = solution.certificate
        self.dual_coef_ = given.spread(solution.dual_coef)
        self.support_ = np.flatnonzero(self.dual_coef_)
        self._expansion = solution.expansion._replace(
            coef=scale * solution.expansion.coef
        )
        if self.kernel == "linear":
            self.coef_ = self._expansion.coef @ self._expansion.centres


def preferences_first(y: NDArray) -> Ids:
    """The ids of the pairs, ties last."""
    return np.append(np.flatnonzero(y), np.flatnonzero(y == 0))


def check_gap(owner: object, gap: float, remedy: str, tol: float = 0.0) -> None:
    """Say so where rounding spoils an answer: a warning, or ValueError."""
    remedy = f"{remedy}, or standardise the features"
    if not gap <= _USELESS:
        raise ValueError(
            f"no optimum was found (the duality gap is {gap:.1e}): {remedy}"
        )
    warn_about_gap(type(owner).__name__, gap, max(INACCURATE, tol), remedy)

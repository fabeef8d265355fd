"""Shared parts of the support vector rankers: checks, the bias, and scores."""

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

# Score differences of support vectors are 1 up to about the root of the gap.
MARGIN_TOL = 1e-6
MAX_BETA = -1e-8  # beta above it does not count as negative; its unit is the margin's
# What ties weigh, relative to preferences; from 1 on beta is negative for all data.
_TIE_FRACTIONS = (0.6, 0.7, 0.8, 0.9, 1.0)
_MAX_GAP = 1e-2  # with a larger relative duality gap, the result is useless


def snap_to_margin(z: Floats) -> Floats:
    """Put differences that only rounding separates from the margin on it.

    Else rounding would choose tau.
    """
    return np.where(np.abs(np.abs(z) - 1) < MARGIN_TOL, np.sign(z), z)


def clear_threshold(
    y: NDArray, z: Floats, sample_weight: Floats | None = None
) -> float:
    """tau of eq. 6, with all differences on the margin on one side of it."""
    tau, _ = best_threshold(y, snap_to_margin(z), sample_weight)
    if abs(tau - 1) >= MARGIN_TOL:
        return tau
    sides = (1 + MARGIN_TOL, 1 - MARGIN_TOL)
    return min(
        sides, key=lambda side: comparison_loss(y, threshold(z, side), sample_weight)
    )


class DegenerateBiasError(ValueError):
    """beta >= 0: every pair is significant, and -u / beta is not a ranking function."""


def choose_tie_weight(
    tie_weight: object, y: NDArray, weights: Floats, solve: Callable
) -> tuple[float, Floats, Any]:
    """Return the tie weight, the weights of the pairs with it, and the solution.

    "least" is the first tie weight with a negative beta.

    For weights of the pairs `solve` returns a solution and its beta.
    """
    if isinstance(tie_weight, str) and tie_weight == "least":
        even = float(weights[y != 0].sum() / weights[y == 0].sum())
        heavier = [fraction * even for fraction in _TIE_FRACTIONS]
        factors = [1.0, *(factor for factor in heavier if factor > 1)]
    else:
        expected = "a positive number or 'least'"
        factors = [check_real(tie_weight, "tie_weight", expected, 1 / LARGEST, LARGEST)]
    for factor in factors:
        scaled = np.where(y == 0, factor, 1.0) * weights
        solution, beta = solve(scaled)
        if beta < MAX_BETA:
            break
    return factor, scaled, solution  # pyright: ignore[reportPossiblyUnboundVariable]  (there is a factor)


def check_bias(
    bias: float, y: NDArray, differences: Callable, setting: str, weaken: Callable
) -> None:
    """Raise DegenerateBiasError unless beta is negative.

    Parameters
    ----------
    bias : float
        beta.
    y : ndarray of shape (m,)
        Labels.
    differences : callable
        Returns the differences u·d of the pairs, shape (m,).
    setting : str
        The parameter that regularizes, with its value.
    weaken : callable
        For a factor, returns what to do for a regularization that is so many times
        weaker, and the beta of that solution.
    """
    if bias < MAX_BETA:
        return
    advice = "Model"
    reach = float(np.abs(differences()).max())
    # No difference has reached a margin: regularization may be the reason, not the data.
    if 0 < reach < 1:
        with suppress(ValueError):
            remedy, beta = weaken(100 / reach)  # differences grow with C at first
            if beta < MAX_BETA:
                advice = f"{remedy}, where beta is {beta:.3g}; or model"
    raise DegenerateBiasError(
        f"beta is {bias:.3g}, but the ranking function -u / beta needs a negative one: with {setting}, "
        f"{np.count_nonzero(y)} preferences against {np.count_nonzero(y == 0)} ties call every pair "
        "significant, since what tells ties from preferences does not outweigh their numbers here. "
        f"{advice} ties (OrdinalComparison or Davidson of preflearn.ranking), leave them out of the order "
        "(SVMRank), or let them weigh more: tie_weight='least' finds how much, and may predict far more of "
        "them than there are"
    )


class Training(NamedTuple):
    """The pairs of a fit whose weight is positive."""

    pairs: Pairs
    y: NDArray[np.int8]
    weights: Floats
    ids: Ids  # among all pairs
    n_pairs: int  # all of them

    @classmethod
    def validate(
        cls,
        estimator: object,
        pairs: Pairs | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        ties: bool = True,
    ) -> Training:
        """Check the arguments of a fit; it needs a preference and, with `ties`, a tie."""
        linear = getattr(estimator, "kernel", None) == "linear"
        pairs = as_pairs(pairs, keep=linear)
        y = check_labels(y, len(pairs))
        weights = check_weights(sample_weight, len(pairs))
        ids = np.flatnonzero(weights)
        check_kinds(y[ids], type(estimator).__name__, ties)
        weighted = pairs if len(ids) == len(pairs) else pairs[ids]
        return cls(weighted, y[ids], weights[ids], ids, len(pairs))

    def for_all_pairs(self, values: Floats) -> Floats:
        """Values of these pairs, for all pairs; the others have 0."""
        full = np.zeros(self.n_pairs)
        full[self.ids] = values
        return full


class ExpansionRanker(KernelParameters, ComparisonEstimator):
    """A ranking function in the span of kernels at the items.

    `SVMCompare` documents its parameters.
    """

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


class SupportVectorRanker(ExpansionRanker):
    """A ranking function from the pairs' dual weights, with its certificate."""

    def _store(self, solution: Solution, training: Training, scale: float) -> None:
        """Set the attributes of r = scale · u·Phi, the solution of the training pairs."""
        self.n_features_in_ = training.pairs.shape[2]
        self.objective_, self.dual_gap_, _ = solution.certificate
        self.dual_coef_ = training.for_all_pairs(solution.dual_coef)
        self.support_ = np.flatnonzero(self.dual_coef_)
        coef = scale * solution.expansion.coef
        self._expansion = solution.expansion._replace(coef=coef)
        if self.kernel == "linear":
            self.coef_ = coef @ self._expansion.centres


def preferences_first(y: NDArray) -> Ids:
    """The ids of the pairs, ties last."""
    return np.append(np.flatnonzero(y), np.flatnonzero(y == 0))


def check_gap(estimator: object, gap: float, remedy: str, tol: float = 0.0) -> None:
    """Warn where rounding spoils an answer; ValueError where there is none."""
    remedy = f"{remedy}, or standardise the features"
    if not gap <= _MAX_GAP:
        raise ValueError(
            f"no optimum was found (the duality gap is {gap:.1e}): {remedy}"
        )
    warn_about_gap(type(estimator).__name__, gap, max(INACCURATE, tol), remedy)

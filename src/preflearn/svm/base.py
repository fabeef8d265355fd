"""Shared parts of the support vector rankers: checks, bias, and scores."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.estimator import ComparisonEstimator, check_new_items
from preflearn.core.expansion import Expansion, KernelParameters
from preflearn.core.kernels import Kernel
from preflearn.core.validation import (
    LARGEST,
    Floats,
    Ids,
    check_label_kinds,
    check_labels,
    check_real,
    check_weights,
)
from preflearn.metrics import best_threshold, comparison_loss, threshold
from preflearn.pairs import Pairs, as_pairs
from preflearn.solvers.newton import warn_about_gap
from preflearn.svm.kernel_problem import INACCURATE, Solution

# Score differences of support vectors are 1 up to about the square root of the gap.
MARGIN_TOL = 1e-6
MAX_BETA = -1e-8  # a larger beta does not count as negative, in units of the margin
# Weights of all ties relative to all preferences; from 1 on beta is always negative.
_TIE_FRACTIONS = (0.6, 0.7, 0.8, 0.9, 1.0)
_MAX_GAP = 1e-2  # a larger relative duality gap raises an error


def snap_to_margin(z: Floats) -> Floats:
    """Set differences to the margin if they deviate by rounding errors only.

    Otherwise rounding errors would determine tau.
    """
    return np.where(np.abs(np.abs(z) - 1) < MARGIN_TOL, np.sign(z), z)


def clear_threshold(
    y: NDArray, z: Floats, sample_weight: Floats | None = None
) -> float:
    """Return tau of eq. 6, with all differences on the margin on the same side."""
    tau, _ = best_threshold(y, snap_to_margin(z), sample_weight)
    if abs(tau - 1) >= MARGIN_TOL:
        return tau
    sides = (1 + MARGIN_TOL, 1 - MARGIN_TOL)
    return min(
        sides, key=lambda side: comparison_loss(y, threshold(z, side), sample_weight)
    )


class DegenerateBiasError(ValueError):
    """Error for a solution with beta >= 0, which gives no ranking function.

    Every pair would be predicted to differ, and -u / beta would rank backwards.
    """


def choose_tie_weight(
    tie_weight: object, y: NDArray, weights: Floats, solve: Callable
) -> tuple[float, Floats, Any]:
    """Return the tie weight, the resulting weights of the pairs, and the solution.

    If `tie_weight` is "least", candidates are tried until beta is negative.

    `solve` maps weights of the pairs to a solution and its beta.
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
        Function that returns the differences u·d of the pairs, shape (m,).
    setting : str
        Name and value of the regularization parameter.
    weaken : callable
        Function of a factor. It returns the advice that makes the regularization weaker
        by this factor, and the beta of the resulting solution.
    """
    if bias < MAX_BETA:
        return
    advice = ""
    reach = float(np.abs(differences()).max())
    # If no difference reaches the margin, the regularization may be the cause.
    if 0 < reach < 1:
        with suppress(ValueError):
            remedy, beta = weaken(
                100 / reach
            )  # for small C, differences grow in proportion to C
            if beta < MAX_BETA:
                advice = f"{remedy}, where beta is {beta:.3g}, or "
    raise DegenerateBiasError(
        f"beta is {bias:.3g}, but the ranking function -u / beta needs a negative beta. With "
        f"{setting}, the fit cannot distinguish {np.count_nonzero(y)} preferences from "
        f"{np.count_nonzero(y == 0)} ties and predicts a preference for every pair. To fix "
        f"this, {advice}use a model with ties (OrdinalComparison or Davidson of "
        "preflearn.ranking), or use SVMRank, which needs no ties. You can also give ties "
        "more weight by tie_weight='least', but this may predict far too many ties"
    )


class Training(NamedTuple):
    """The training pairs with positive weights."""

    pairs: Pairs
    y: NDArray[np.int8]
    weights: Floats
    ids: Ids  # their positions among all pairs
    n_pairs: int  # number of all pairs

    @classmethod
    def validate(
        cls,
        estimator: object,
        pairs: Pairs | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        ties: bool = True,
    ) -> Training:
        """Check the arguments of `fit`; there must be preferences and, if `ties`, ties."""
        linear = getattr(estimator, "kernel", None) == "linear"
        pairs = as_pairs(pairs, keep=linear)
        y = check_labels(y, len(pairs))
        weights = check_weights(sample_weight, len(pairs))
        ids = np.flatnonzero(weights)
        check_label_kinds(y[ids], type(estimator).__name__, ties)
        weighted = pairs if len(ids) == len(pairs) else pairs[ids]
        return cls(weighted, y[ids], weights[ids], ids, len(pairs))

    def for_all_pairs(self, values: Floats) -> Floats:
        """Return values for all pairs: 0 for the pairs that are not in training."""
        full = np.zeros(self.n_pairs)
        full[self.ids] = values
        return full


class ExpansionRanker(KernelParameters, ComparisonEstimator):
    """Base class for ranking functions that are sums of kernel functions at items.

    `SVMCompare` documents its parameters.
    """

    kernel: Kernel
    _expansion: Expansion

    def rank_function(self, X: ArrayLike) -> Floats:
        """Return the scores r(x) of items, shape (n,); larger is better.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Items; with ``kernel="precomputed"`` the kernel between these items (rows)
            and all training items.

        Raises
        ------
        ValueError
            If X has another number of columns than the training items.
        """
        X = check_new_items(self, X)
        return self._expansion(X)


class SupportVectorRanker(ExpansionRanker):
    """Base class for ranking functions that are given by dual weights of the pairs."""

    def _store(self, solution: Solution, training: Training, scale: float) -> None:
        """Set the attributes for r = scale · u·Phi, from a solution."""
        self.n_features_in_ = training.pairs.shape[2]
        self.objective_, self.dual_gap_, _ = solution.certificate
        self.dual_coef_ = training.for_all_pairs(solution.dual_coef)
        self.support_ = np.flatnonzero(self.dual_coef_)
        coef = scale * solution.expansion.coef
        self._expansion = solution.expansion._replace(coef=coef)
        if self.kernel == "linear":
            self.coef_ = coef @ self._expansion.centres


def preferences_first(y: NDArray) -> Ids:
    """Return the ids of the pairs, ties last."""
    return np.append(np.flatnonzero(y), np.flatnonzero(y == 0))


def check_gap(estimator: object, gap: float, remedy: str, tol: float = 0.0) -> None:
    """Warn about a duality gap above `tol`; raise ValueError if it is large."""
    remedy = f"{remedy}, or standardize the features"
    if not gap <= _MAX_GAP:
        raise ValueError(
            f"no optimum was found (the relative duality gap is {gap:.1e}): {remedy}"
        )
    warn_about_gap(type(estimator).__name__, gap, max(INACCURATE, tol), remedy)

"""What every regularization path answers, and the choice of lambda on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from preflearn.checks import Floats, Ids, check_real, refuse

SHORT = 1e-12  # a piece shorter than this share of lambda


class Selection(NamedTuple):
    """The best lambda, its loss, and the loss along the path (see `RegularizationPath.select`)."""

    lam: float
    loss: float
    lambdas: Floats
    losses: Floats


class RegularizationPath(ABC):
    """The solutions of a machine for all lambda = 1/C, as made by `svm_path` or `ranksvm_path`.

    Attributes
    ----------
    breakpoints : ndarray of shape (k,)
        Values of lambda, decreasing, between which alpha and lambda f are linear. Above the first alpha is
        constant. Empty if alpha is constant for all lambda.
    lambda_end : float
        The path is known for all lambda >= lambda_end > 0, or lambda > 0 if this is 0.
    status : str
        "complete" if it came to where it was to end, "max_events" if it was stopped after so many, "rounding"
        if rounding stopped it.
    """

    def __init__(self, breakpoints: Floats, lambda_end: float, status: str):
        self.breakpoints, self.lambda_end, self.status = breakpoints, lambda_end, status
        breakpoints.setflags(write=False)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {len(self.breakpoints)} breakpoints down to {self.lambda_end:g}, "
            f"{self.status}>"
        )

    @property
    @abstractmethod
    def events(self) -> list[tuple[float, int, str]]:
        """(lambda, index, kind): who came to the margin ("enter") or left it ("leave at 0", "leave at 1")."""

    @abstractmethod
    def alpha(self, lam: float) -> Floats: ...

    @abstractmethod
    def kkt_residual(self, lam: float) -> float: ...

    @abstractmethod
    def duality_gap(self, lam: float) -> float: ...

    def _check(self, lam: float) -> float:
        lam = check_real(lam, "lambda", "a positive finite number (1/C)", least=np.finfo(np.float64).tiny)
        if lam < self.lambda_end:
            raise ValueError(f"lambda is {lam}, below the end of the path at {self.lambda_end}")
        return lam

    def _end(self, lambdas: Floats) -> float:
        """Where the last interval ends: one without an end is no wider than its half on this scale."""
        return self.lambda_end or float(min(lambdas[-1], self.breakpoints[-1])) / 2

    def _least(self, losses: Floats) -> Selection:
        """The largest breakpoint of least loss."""
        refuse(~np.isfinite(losses), losses, "the loss at the breakpoints", "finite numbers")
        best = int(np.argmin(losses))
        return Selection(float(self.breakpoints[best]), float(losses[best]), self.breakpoints, losses)

    def _check_choice(self) -> None:
        if len(self.breakpoints) == 0:
            reason = "rounding hides them" if self.status == "rounding" else "every C gives the same weights"
            raise ValueError(f"the path has no breakpoint ({reason}): there is nothing to select")


def named(knots: Floats, changes: Ids) -> list[tuple[float, int, str]]:
    """The events of changes (piece, index, weight) of the margin set; the weight is -1 where one comes in."""
    kinds = ("leave at 0", "leave at 1", "enter")
    lams = knots[changes[:, 0]].tolist()
    return [
        (lam, index, kinds[weight])
        for lam, (index, weight) in zip(lams, changes[:, 1:].tolist(), strict=True)
    ]


def widest(lambdas: Floats, losses: Floats, end: float) -> Selection:
    """The geometric middle of the widest interval of least loss; the last one goes down to the end."""
    lower = np.append(lambdas[1:], end)
    width = np.where(losses <= losses.min(), np.log(lambdas / lower), -1.0)
    best = int(np.argmax(width))
    return Selection(float(np.sqrt(lambdas[best] * lower[best])), float(losses[best]), lambdas, losses)


def steps(count: float, start: float, places: list[Floats], changes: list[Floats]) -> tuple[Floats, Floats]:
    """Where a count changes as lambda falls, beginning at the start, and the counts from there on."""
    place, change = np.concatenate(places), np.concatenate(changes)
    place, change = place[place > 0], change[place > 0]
    edges, which = np.unique(-place, return_inverse=True)
    sums = np.bincount(which, weights=change, minlength=len(edges))
    counts = count + np.append(0.0, np.cumsum(sums))
    lambdas = np.append(start, -edges)
    last = np.append(lambdas[1:] < lambdas[:-1], True)  # of the steps at one lambda
    return lambdas[last], counts[last]

"""The data sets of section 4 of P4 and the models of its Tables 8 and 9.

Times are in years since 1970.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from preflearn.datasets import load_atp, load_football, load_nba, load_starcraft
from preflearn.dynamics import Affine, Constant, Matern12, OrdinalProbit, Probit, Wiener
from preflearn.matches import Matches

__all__ = ["SPORTS", "Sport", "sport"]

SPORTS = ("NBA", "ATP", "football", "StarCraft")
_YEAR = 365.25
_ORIGIN = 20.0  # 1990, before the first ATP match


class Sport(NamedTuple):
    """Matches, and the same model for preflearn and for kickscore."""

    matches: Matches
    y: NDArray
    covariance: Any
    likelihood: Any
    reference: dict[str, Any]


def sport(name: str) -> Sport:
    """Load one of the data sets in `SPORTS`."""
    return {"NBA": _nba, "ATP": _atp, "football": _football, "StarCraft": _starcraft}[
        name
    ]()


def _nba() -> Sport:
    games = load_nba().matches
    covariance = Constant(0.003) + Matern12(0.152, 3.324)
    reference = {
        "kernels": [["Constant", [0.003]], ["Exponential", [0.152, 3.324]]],
        "margin": None,
    }
    return Sport(
        *_in_years(games.query("time < '2019'")), covariance, Probit(), reference
    )


def _atp() -> Sport:
    covariance = Affine(0.366, 0.001, origin=_ORIGIN) + Wiener(0.147, origin=_ORIGIN)
    reference = {
        "kernels": [["Affine", [0.366, 0.001, _ORIGIN]], ["Wiener", [0.147, _ORIGIN]]],
        "margin": None,
    }
    return Sport(*_in_years(load_atp("main").matches), covariance, Probit(), reference)


def _football() -> Sport:
    covariance = Constant(0.750) + Matern12(0.248, 69.985)
    reference = {
        "kernels": [["Constant", [0.750]], ["Exponential", [0.248, 69.985]]],
        "margin": 0.386,
    }
    return Sport(
        *_in_years(load_football().matches),
        covariance,
        OrdinalProbit(margin=0.386),
        reference,
    )


def _starcraft() -> Sport:
    reference = {"kernels": [["Constant", [4.821]]], "margin": None}
    matches, y = Matches.from_frame(load_starcraft("WoL").matches)
    return Sport(matches, y, Constant(4.821), Probit(), reference)


def _in_years(frame: pd.DataFrame) -> tuple[Matches, NDArray]:
    matches, y = Matches.from_frame(frame)
    return Matches(
        matches.design, np.asarray(matches.time) / _YEAR, matches.features
    ), y

"""Matches in time, and what can be learned of players whose strength changes: [Maystre2019]_, ratings."""

from preflearn.dynamics.matches import Matches
from preflearn.dynamics.ratings import Elo, Glicko

__all__ = ["Elo", "Glicko", "Matches"]

"""Rating systems that are updated after each match: Elo, Glicko, and TrueSkill."""

from preflearn.ratings.elo_glicko import Elo, Glicko
from preflearn.ratings.system import earlier_forecasts
from preflearn.ratings.trueskill import TrueSkill

__all__ = ["Elo", "Glicko", "TrueSkill", "earlier_forecasts"]

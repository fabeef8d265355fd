"""Baselines and aggregation: models of paired comparisons with ties, and counts of wins."""

from preflearn.ranking.naive import naive_probabilities
from preflearn.ranking.tie_models import Davidson, OrdinalComparison

__all__ = ["Davidson", "OrdinalComparison", "naive_probabilities"]

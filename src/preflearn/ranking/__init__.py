"""Baselines and aggregation: models of paired comparisons with ties."""

from preflearn.ranking.tie_models import Davidson, OrdinalComparison

__all__ = ["Davidson", "OrdinalComparison"]

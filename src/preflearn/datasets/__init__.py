"""Public data sets, verified before they are read, and simulations whose truth is known.

`load_*` return named tuples: first what a method needs, then names and `provenance`. A data set that
can't be had raises `DatasetUnavailable`, which says how to get it and under which licence.
"""

from preflearn.datasets.catalogue import available, fetch, listing, verify
from preflearn.datasets.chess import load_chess
from preflearn.datasets.items import load_auto, load_cancer, load_diabetes, load_mixture
from preflearn.datasets.matches import load_football, load_nba, load_starcraft
from preflearn.datasets.object_ranking import OBJECT_RANKINGS, load_object_ranking
from preflearn.datasets.ratings import load_jester, load_movielens
from preflearn.datasets.simulations import simulate_norm_pairs, simulate_separable_pairs, squared_norm
from preflearn.datasets.storage import CorruptedFile, DatasetUnavailable, provenance, used
from preflearn.datasets.sushi import load_sushi
from preflearn.datasets.tennis import load_atp

__all__ = [
    "OBJECT_RANKINGS",
    "CorruptedFile",
    "DatasetUnavailable",
    "available",
    "fetch",
    "listing",
    "load_atp",
    "load_auto",
    "load_cancer",
    "load_chess",
    "load_diabetes",
    "load_football",
    "load_jester",
    "load_mixture",
    "load_movielens",
    "load_nba",
    "load_object_ranking",
    "load_starcraft",
    "load_sushi",
    "provenance",
    "simulate_norm_pairs",
    "simulate_separable_pairs",
    "squared_norm",
    "used",
    "verify",
]

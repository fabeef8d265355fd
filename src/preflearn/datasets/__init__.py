"""Public data sets, verified before use, and simulations with known scores.

The functions `load_*` return named tuples: first the data that a method needs, then
names and `provenance`. Every loader raises

- `DatasetUnavailable` (an OSError) if a file is not available, cannot be read, or
  cannot be verified; the message says how to get the file and under which license;
- `CorruptedFile` (a ValueError) if a file differs from the registered one; the message
  has the file, its hash, and what to do.

The docstring of a loader lists only further errors.
"""

from preflearn.datasets.items import (
    load_auto,
    load_cancer,
    load_diabetes,
    load_jester,
    load_lightgbm_ranking,
    load_mixture,
    load_movielens,
)
from preflearn.datasets.object_ranking import OBJECT_RANKINGS, load_object_ranking
from preflearn.datasets.registry import CorruptedFile, DatasetUnavailable, how_to_get
from preflearn.datasets.simulations import four_items, simulate_norm_pairs, squared_norm
from preflearn.datasets.sports import (
    load_atp,
    load_chess,
    load_football,
    load_nba,
    load_starcraft,
)
from preflearn.datasets.storage import (
    available,
    fetch,
    listing,
    provenance,
    unread,
    used,
    verify,
)
from preflearn.datasets.sushi import load_sushi

__all__ = [
    "OBJECT_RANKINGS",
    "CorruptedFile",
    "DatasetUnavailable",
    "available",
    "fetch",
    "four_items",
    "how_to_get",
    "listing",
    "load_atp",
    "load_auto",
    "load_cancer",
    "load_chess",
    "load_diabetes",
    "load_football",
    "load_jester",
    "load_lightgbm_ranking",
    "load_mixture",
    "load_movielens",
    "load_nba",
    "load_object_ranking",
    "load_starcraft",
    "load_sushi",
    "provenance",
    "simulate_norm_pairs",
    "squared_norm",
    "unread",
    "used",
    "verify",
]

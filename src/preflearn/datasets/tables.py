"""Tables of registered files: text with separators, and R data, of which nothing is executed."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pandas as pd
import rdata

from preflearn.datasets.storage import read

__all__ = ["csv_table", "r_objects"]


def csv_table(dataset: str, file: str, **how: Any) -> pd.DataFrame:
    """A registered file of separated values; `how` to read it as in `pandas.read_csv`."""
    return pd.read_csv(io.BytesIO(read(dataset, file)), **how)


def r_objects(dataset: str, file: str) -> dict[str, Any]:
    """The objects of a registered R file, by name; vectors as arrays, data frames as DataFrame.

    Objects of other classes (S4) come as namespaces of their slots.
    """
    parsed = rdata.parser.parse_data(read(dataset, file), extension=".rda")
    with warnings.catch_warnings():
        # One warning for each class that stays as it is; attributes of no interest have many.
        warnings.filterwarnings("ignore", message="Missing constructor for R class")
        return rdata.conversion.convert(parsed)

"""R data files, read with `rdata`: it rebuilds vectors and tables and executes nothing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import rdata
from scipy import sparse

from preflearn.datasets.storage import read

__all__ = ["r_objects", "sparse_matrix"]


def r_objects(dataset: str, file: str) -> dict[str, Any]:
    """The objects of a registered R file, by name; vectors as arrays, data frames as DataFrame.

    Objects of other classes (S4) come as namespaces of their slots.

    Raises
    ------
    ValueError
        As `CorruptedFile` if the file is not the registered one.
    DatasetUnavailable
        If the file can't be had.
    """
    parsed = rdata.parser.parse_data(read(dataset, file), extension=".rda")
    with warnings.catch_warnings():
        # One warning for each class that stays as it is; attributes of no interest have many.
        warnings.filterwarnings("ignore", message="Missing constructor for R class")
        return rdata.conversion.convert(parsed)


def sparse_matrix(slots: Any) -> sparse.csr_array:
    """The R class dgCMatrix as CSR; stored zeros stay stored."""
    columns = sparse.csc_array((slots.x, slots.i, slots.p), shape=tuple(slots.Dim))
    return columns.tocsr().astype(np.float64)

"""Ratings of many users, sparse: the data sets of section 6 of [Tsivtsivadze2011]_."""

from __future__ import annotations

from typing import NamedTuple

from scipy import sparse

from preflearn.datasets.rfiles import r_objects, sparse_matrix
from preflearn.datasets.storage import provenance

__all__ = ["Ratings", "load_jester", "load_movielens"]


class Ratings(NamedTuple):
    """A sparse matrix of ratings, users by items.

    Attributes
    ----------
    ratings : csr_array of shape (users, items)
        What is stored was rated, a stored 0 too: `ratings.nnz` counts ratings, and
        `ratings.eliminate_zeros()` would lose some.
    user_names, item_names : tuple of str
    provenance : tuple of dict
    """

    ratings: sparse.csr_array
    user_names: tuple[str, ...]
    item_names: tuple[str, ...]
    provenance: tuple[dict[str, str], ...]


def load_jester() -> Ratings:
    """Ratings of 100 jokes by 5000 users, from -10 to 10: a sample of the 73,421 users of the paper.

    Returns
    -------
    Ratings

    Raises
    ------
    DatasetUnavailable
        If the file can't be had.
    CorruptedFile
        If it is not the registered one.
    """
    return _load("jester", "Jester5k.rda", "Jester5k")


def load_movielens() -> Ratings:
    """Ratings of 1664 films by 943 users, from 1 to 5 (the paper uses the larger set of a million).

    Returns
    -------
    Ratings

    Raises
    ------
    DatasetUnavailable
        If the file can't be had.
    CorruptedFile
        If it is not the registered one.
    """
    return _load("movielens", "MovieLense.rda", "MovieLense")


def _load(dataset: str, file: str, name: str) -> Ratings:
    slots = r_objects(dataset, file)[name].data
    users, items = (tuple(str(entry) for entry in names) for names in slots.Dimnames)
    return Ratings(sparse_matrix(slots), users, items, provenance(dataset, [file]))

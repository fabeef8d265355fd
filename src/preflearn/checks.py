"""Checks of input: each returns what it checked as an array or a number, or says what is wrong with it."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

__all__ = [
    "check_array",
    "check_index",
    "check_items",
    "check_kinds",
    "check_labels",
    "check_number",
    "check_query_ids",
    "check_scale",
    "check_values",
    "check_vector",
    "check_weights",
]

Floats = NDArray[np.float64]

_LARGEST = 1e100


def _first_index(mask: NDArray) -> tuple[int, ...]:
    return tuple(int(k) for k in np.argwhere(mask)[0])


def check_array(
    values: ArrayLike, name: str, shape: tuple[int | str, ...], meaning: str = ""
) -> NDArray[np.float64]:
    """Return `values` as a finite float array of this shape, or say what is wrong, and where.

    Parameters
    ----------
    values : array-like
    name : str
        What messages call it.
    shape : tuple of int or str
        A length, or the letter for a length of at least one that is free.
    meaning : str
        Of the axes, for messages, such as "one value an item".

    Raises
    ------
    ValueError
        If the values are no real finite numbers, some are masked, or the shape is another.
    """
    array = _as_floats(values, name)
    expected = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
    fits = array.ndim == len(shape) and all(
        isinstance(wanted, str) or found == wanted for found, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        raise ValueError(
            f"{name} has shape {array.shape}; expected {expected}{': ' * bool(meaning)}{meaning}"
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}); expected at least one value")
    finite = np.isfinite(array)
    if not finite.all():
        where, more = _first_index(~finite), np.count_nonzero(~finite) - 1
        raise ValueError(
            f"{name}[{', '.join(map(str, where))}] is {array[where]}; expected finite numbers"
            + f" ({more} more are not finite)" * bool(more)
        )
    return array


def _as_floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Real numbers as floats; what NumPy would cast in silence, or refuse in its own words, is named."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise ValueError(f"{name} has {np.ma.count_masked(values)} masked values; expected numbers only")
        values = values.data
    if sparse.issparse(values):
        raise ValueError(f"{name} is sparse; expected a dense array")
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmM":
            raise ValueError(f"{name} has dtype {array.dtype}; expected real numbers")
        return array.astype(np.float64, copy=False)
    except OverflowError:
        raise ValueError(f"{name} holds an integer too large for a float; expected finite numbers") from None
    except (TypeError, ValueError) as error:
        if str(error).startswith(name):
            raise
        raise ValueError(
            f"{name} must be an array of numbers; expected no other objects, and rows of equal length"
        ) from None


def check_items(items: ArrayLike, name: str = "items") -> NDArray[np.float64]:
    """Return `items` as a finite (n, p) float array, or say which entry is wrong."""
    return check_array(items, name, ("n", "p"), "one row an item, one column a feature")


def check_labels(y: ArrayLike, n_pairs: int, allow: tuple[int, ...] = (-1, 0, 1)) -> NDArray[np.int8]:
    """Return comparison labels as an (m,) array of -1, 0, 1, or say which label is wrong.

    Parameters
    ----------
    y : array-like of shape (m,)
        +1: the first item of the pair is better; -1: the second; 0: no difference.
    n_pairs : int
        The number m of pairs that the labels belong to.
    allow : tuple of int
        The labels that the caller accepts.

    Raises
    ------
    ValueError
        On a wrong shape, a length other than m, or a label that is not in `allow`.
    """
    array = np.asarray(y)
    if array.ndim != 1:
        raise ValueError(f"y has shape {array.shape}; expected ({n_pairs},): one label a pair")
    if len(array) != n_pairs:
        raise ValueError(f"y has {len(array)} labels for {n_pairs} pairs; expected one label a pair")
    known = np.isin(array, allow)
    if not known.all():
        (where,) = _first_index(~known)
        raise ValueError(
            f"y[{where}] is {array.tolist()[where]!r}; expected one of {sorted(allow)} "
            "(+1 first better, -1 second better, 0 no difference)"
        )
    return array.astype(np.int8)


def check_query_ids(qid: ArrayLike | None, n_items: int) -> NDArray | None:
    """Return query ids as an (n,) array, or None where there is only one query."""
    if qid is None:
        return None
    array = np.asarray(qid)
    if array.shape != (n_items,):
        raise ValueError(f"qid has shape {array.shape}; expected ({n_items},): one query id an item")
    if array.dtype.kind == "O":  # where None and NaN stand for a missing id
        usable = np.array([value is not None and value == value for value in array])
    else:
        usable = np.isfinite(array) if array.dtype.kind == "f" else np.ones(n_items, dtype=bool)
    if not usable.all():
        (where,) = _first_index(~usable)
        raise ValueError(f"qid[{where}] is {array[where]}; expected a query id for each item")
    return array


def check_index(index: ArrayLike, n_items: int) -> NDArray[np.int64]:
    array = np.asarray(index)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"index has shape {array.shape}; expected (m, 2): first and second item of a pair")
    if len(array) == 0:
        raise ValueError("there are no pairs (index has shape (0, 2)); expected at least one")
    if array.dtype.kind not in "iu":
        raise ValueError(f"index has dtype {array.dtype}; expected integers, the row numbers of items")
    outside = (array < 0) | (array >= n_items)
    if outside.any():
        row, side = _first_index(outside)
        raise ValueError(
            f"index[{row}, {side}] is {array[row, side]}, out of range; "
            f"expected a row number of items, from 0 to {n_items - 1}"
        )
    same = array[:, 0] == array[:, 1]
    if same.any():
        (row,) = _first_index(same)
        raise ValueError(
            f"pair {row} compares item {array[row, 0]} with itself; expected two different items"
        )
    return array.astype(np.int64, copy=False)


def check_values(values: ArrayLike, n_items: int, name: str) -> NDArray[np.float64]:
    """Return one finite value an item, shape (n_items,)."""
    return check_array(values, name, (n_items,), "one value an item")


def check_vector(values: ArrayLike, name: str, length: int | None = None) -> Floats:
    """Return `values` as a finite, non-empty float vector, or say which value is wrong."""
    return check_array(values, name, ("n" if length is None else length,))


def check_weights(sample_weight: ArrayLike | None, length: int) -> Floats:
    """Return weights as a (length,) array with a positive sum, or say which one is wrong."""
    if sample_weight is None:
        return np.ones(length)
    weights = check_vector(sample_weight, "sample_weight", length)
    outside = (weights < 0) | (weights > 1e100)  # beyond, products of two might overflow in a sum
    if outside.any():
        where = np.flatnonzero(outside)[0]
        raise ValueError(f"sample_weight[{where}] is {weights[where]}; expected weights from 0 to 1e100")
    if not weights.any():
        raise ValueError(f"all {length} values of sample_weight are 0; expected at least one positive weight")
    return weights


def check_kinds(y: NDArray, owner: str, ties: bool = True) -> None:
    """Raise unless the labels hold a preference and, where the owner needs `ties`, a tie."""
    if not y.any():
        needs = "both ties and preferences" if ties else "at least one preference (label +1 or -1)"
        raise ValueError(
            f"y has only ties (label 0); {owner} needs {needs}: with ties alone, predict 0 for each pair"
        )
    if ties and y.all():
        raise ValueError(
            f"y has only preferences (labels +1 and -1), no ties; {owner} needs both, to learn which "
            "differences count: use SVMRank, which needs no ties"
        )


def check_number(estimator: object, name: str, positive: bool = False) -> float:
    """The value of a parameter, or ValueError if it is no such number."""
    value = getattr(estimator, name)
    if not isinstance(value, Real) or not (0 if positive else -math.inf) < value < math.inf:
        raise ValueError(f"{name} is {value!r}; expected a {'positive' if positive else 'finite'} number")
    return float(value)


def check_scale(values: Floats, name: str) -> None:
    """Raise ValueError where squares or differences of values might overflow."""
    largest = max(float(values.max()), -float(values.min()))
    if largest > _LARGEST:
        raise ValueError(
            f"{name} holds values up to {largest:.3g} in size; expected at most {_LARGEST:g}, since beyond "
            "products overflow: standardise the features"
        )

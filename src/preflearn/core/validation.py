"""Validation of user input.

Each function returns the checked value as an array or a number, or raises ValueError
with a message that names the argument and shows the wrong value.

Every message says what was found, where, and what is expected. In numeric arrays True
and False count as 1 and 0, so that a mask can be used as weights. A bool is not
accepted as a parameter or as a label, since it is probably a mistake.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
PerMatch = ArrayLike | None  # one value per match, if any

_MAX = float(np.finfo(np.float64).max)
LARGEST = 1e100  # sums of products of two larger numbers might overflow
# limit for sparse features that are made dense: one gigabyte
_MAX_DENSE_ENTRIES = 2**27


# ---- Messages


def short_repr(value: object) -> str:
    """Represent a value in one line of at most 60 characters, for messages."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        # repr may raise any exception, for example for an integer of 5,000 digits
        text = f"a {type(value).__name__}"
    if len(text) > 60:
        text = text[:57] + "..."
    return text


def require(good: bool, value: object, name: str, expected: str) -> None:
    """Raise a ValueError that shows the value, unless it is good."""
    if not good:
        raise ValueError(f"{name} is {short_repr(value)}; expected {expected}")


def raise_if_any(wrong: NDArray, values: Any, name: str, expected: str) -> None:
    """Raise a ValueError that shows the first wrong entry of `values`, if any.

    For sparse values the mask `wrong` refers to the stored entries.
    """
    if not wrong.any():
        return
    where = tuple(np.argwhere(wrong)[0].tolist())
    if sparse.issparse(values):
        value = values.data[where]
        where = tuple(ids[where] for ids in values.tocoo().coords)
    else:
        value = values[where]
    if where:
        name += f"[{', '.join(map(str, where))}]"
    # tolist gives Python numbers, whose repr is 1.0 and not np.float64(1.0)
    require(False, np.asarray(value).tolist(), name, expected)


def check_shape(
    array: NDArray, name: str, shape: tuple[int | str, ...], meaning: str = ""
) -> None:
    """Raise a ValueError unless an array has this shape.

    A letter in the shape stands for any length; equal letters stand for equal lengths.
    """
    lengths = dict(zip(shape, array.shape, strict=False))
    wanted = [lengths.get(size) if isinstance(size, str) else size for size in shape]
    if tuple(wanted) == array.shape:
        return
    expected = str(tuple(map(str, shape))).replace("'", "")
    if meaning:
        expected += f": {meaning}"
    raise ValueError(f"{name} has shape {array.shape}; expected {expected}")


def warn_user(text: str, category: type[Warning]) -> None:
    """Issue a warning that points to the user's line of code.

    This is the innermost line outside of this package and of joblib, which the package
    calls.
    """
    frame = inspect.currentframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(
        ("preflearn.", "joblib.")
    ):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)


# ---- Arrays


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return `values` as an array of any kind; raise if masked, sparse, or ragged."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} has {np.ma.count_masked(values)} masked values; "
            "fill or remove them first"
        )
    if sparse.issparse(values):
        raise ValueError(
            f"{name} is sparse; expected a dense array: call .toarray() first"
        )
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} is not an array of numbers; expected rows of equal length"
        ) from None


def as_floats(values: ArrayLike, name: str) -> Floats:
    """Return real numbers as floats, finite or not; raise ValueError for others."""
    array = as_array(values, name)
    if array.dtype.kind in "cmMV":
        raise ValueError(f"{name} has dtype {array.dtype}; expected real numbers")
    if array.dtype.kind in "OSU":
        unreadable = [not _is_readable(value) for value in array.flat]
        expected = "a number"
        if array.ndim == 0:
            expected = "an array of numbers"
        raise_if_any(np.reshape(unreadable, array.shape), array, name, expected)
    # an integer of more than 64 bits may become infinite
    with np.errstate(over="ignore"):
        return array.astype(np.float64, copy=False)


def _is_readable(value: Any) -> bool:
    # float() accepts these with a warning only
    if value is np.ma.masked or isinstance(value, np.complexfloating):
        return False
    try:
        float(value)
    except (OverflowError, TypeError, ValueError):
        return False
    return True


def check_array(
    values: ArrayLike, name: str, shape: tuple[int | str, ...], meaning: str = ""
) -> Floats:
    """Return `values` as a finite, non-empty float array of the given shape.

    Parameters
    ----------
    values : array-like
    name : str
        Name of the argument in messages.
    shape : tuple of int or str
        Length of each axis; a letter stands for any length of at least one.
    meaning : str
        Meaning of the axes, for messages, such as "one value per item".

    Raises
    ------
    ValueError
        If a value is not a finite real number or is masked, or the shape differs.
    """
    array = as_floats(values, name)
    check_shape(array, name, shape, meaning)
    if array.size == 0:
        raise ValueError(
            f"{name} is empty (shape {array.shape}); expected at least one value"
        )
    raise_if_any(~np.isfinite(array), array, name, "finite numbers")
    return array


def check_items(
    items: Any, name: str = "items", scaled: bool = False, keep: Any = False
) -> Floats:
    """Return `items` as a finite float array of shape (n, p).

    With `scaled`, values whose products might overflow raise ValueError.

    Sparse items become dense, up to one gigabyte, unless `keep` asks for a CSR array
    with sorted entries: always if True, only for n < p if "few".
    """
    if sparse.issparse(items):
        suits = keep is True or (keep == "few" and items.shape[0] < items.shape[-1])
        if suits and 0 not in items.shape:
            items = _as_csr(items, name)
        else:
            items = _as_dense(items, name)
    if not sparse.issparse(items):
        meaning = "one row per item, one column per feature"
        items = check_array(items, name, ("n", "p"), meaning)
    if scaled:
        check_scale(items, name)
    return items


def _as_csr(items: Any, name: str) -> Any:
    check_shape(items, name, ("n", "p"))
    values: Any = sparse.csr_array(items)
    check_array(np.append(values.data, 0), f"{name}.data", ("entries",))
    values = values.astype(np.float64)  # a copy, which sum_duplicates may sort in place
    values.sum_duplicates()
    return values


def _as_dense(items: Any, name: str) -> NDArray[Any]:
    advice = (
        "reduce p by TruncatedSVD or, if n < p, use SVMRank or RankRLS with "
        "kernel='linear', which keep the features sparse"
    )
    expected = (
        f"at most {_MAX_DENSE_ENTRIES:,} numbers, since they become dense; {advice}"
    )
    fits = math.prod(items.shape) <= _MAX_DENSE_ENTRIES
    require(fits, items.shape, f"the shape (n, p) of the sparse {name}", expected)
    return items.toarray()


def check_weights(sample_weight: ArrayLike | None, length: int) -> Floats:
    """Return weights as a (length,) array with a positive sum."""
    if sample_weight is None:
        return np.ones(length)
    weights = check_array(sample_weight, "sample_weight", (length,))
    wrong = (weights < 0) | (weights > LARGEST)
    raise_if_any(wrong, weights, "sample_weight", "weights from 0 to 1e100")
    if not weights.any():
        raise ValueError(
            f"all {length} values of sample_weight are 0; expected at least one positive weight"
        )
    return weights


def check_scale(values: Floats, name: str) -> None:
    """Raise ValueError if squares or differences of the values might overflow."""
    largest = max(float(values.max()), -float(values.min()))
    name = f"the largest absolute value of {name}"
    expected = (
        f"at most {LARGEST:g}, so that products do not overflow; "
        "standardize the features"
    )
    require(largest <= LARGEST, largest, name, expected)


# ---- Comparisons


def check_labels(
    y: ArrayLike, n_pairs: int, allow: tuple[int, ...] = (-1, 0, 1)
) -> NDArray[np.int8]:
    """Return comparison labels as an (m,) array of -1, 0, 1.

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
        If the shape or the length is wrong, or a label is not in `allow`. True and
        False are not labels.
    """
    array = as_array(y, "y")
    check_shape(array, "y", (n_pairs,), "one label per pair")
    labels = array
    if array.dtype.kind not in "iuf":  # an object array may hold numbers
        labels = np.array([as_real(value) for value in array.tolist()])
    expected = (
        f"one of {sorted(allow)} (+1 first better, -1 second better, 0 no difference)"
    )
    if (labels == 2).any():
        expected += "; if 2 means second better, pass np.where(np.equal(y, 2), -1, y)"
        if (labels == 0).any():
            expected += "; cross_val_predict renumbers labels unless method='predict'"
    raise_if_any(~np.isin(labels, allow), array, "y", expected)
    return labels.astype(np.int8, copy=False)


def check_label_kinds(y: NDArray, model: str, ties: bool = True) -> None:
    """Raise ValueError if the labels lack preferences, or ties if `ties` are needed."""
    if not y.any():
        needed = "at least one preference (label +1 or -1)"
        if ties:
            needed = "both ties and preferences"
        raise ValueError(
            f"y has only ties (label 0); {model} needs {needed}: "
            "add pairs with label +1 or -1"
        )
    if ties and y.all():
        raise ValueError(
            f"y has only preferences (labels +1 and -1), no ties; {model} needs both to "
            "learn which differences are significant: use SVMRank, which needs no ties"
        )


def check_index(
    index: ArrayLike, n_items: int, name: str = "index"
) -> NDArray[np.int64]:
    """Return the (m, 2) row numbers of items, checked to be within range."""
    array = as_array(index, name)
    check_shape(array, name, ("m", 2), "first and second item of a pair")
    if len(array) == 0:
        raise ValueError(
            f"there are no pairs ({name} has shape (0, 2)); expected at least one"
        )
    if array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} has dtype {array.dtype}; expected integers, the row numbers of items"
        )
    outside = (array < 0) | (array >= n_items)
    expected = f"a row number of items, from 0 to {n_items - 1}"
    raise_if_any(outside, array, name, expected)
    raise_if_any(array[:, 0] == array[:, 1], array, name, "two different items")
    return array.astype(np.int64, copy=False)


def check_query_ids(
    qid: ArrayLike | None,
    n_items: int,
    name: str = "qid",
    kind: str = "query id",
    unit: str = "item",
) -> NDArray | None:
    """Return query ids as a sortable (n,) array, or None if there is only one query."""
    if qid is None:
        return None
    array = as_array(qid, name)
    # NumPy converts a list of strings and numbers to strings, also 1 and nan
    if array.dtype.kind in "SU" and not hasattr(qid, "dtype"):
        array = np.asarray(qid, dtype=object)
    check_shape(array, name, (n_items,), f"one {kind} per {unit}")
    raise_if_any(pd.isna(array), array, name, f"a {kind} for each {unit}")
    try:
        if array.dtype.kind == "O":
            np.unique(array)
    except TypeError:
        raise ValueError(
            f"{name} is {short_repr(qid)}; expected ids of one type (all strings or "
            "all numbers), so that they can be sorted"
        ) from None
    return array


def query_numbers(qid: ArrayLike | None, n_items: int) -> Ids:
    """Return the query of each item as a number from 0; without ids all are 0."""
    checked = check_query_ids(qid, n_items)
    if checked is None:
        return np.zeros(n_items, np.int64)
    return np.unique(checked, return_inverse=True)[1]


def require_pairs(n_pairs: float, n_items: int, condition: str) -> None:
    """Raise ValueError if there are no pairs of items to compare.

    `condition` describes, for the message, which further condition the pairs must meet.
    """
    if not n_pairs:
        raise ValueError(
            f"no pair is left of {n_items} items; expected at least two items of the "
            f"same query{condition}"
        )


def check_selection(key: Any, length: int, name: str = "the key") -> slice | NDArray:
    """Return a selection as a slice or as an array; NumPy checks its range."""
    if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
        key = key[0]  # scikit-learn indexes arrays as X[ids, ...]
    along_first_axis = not isinstance(key, tuple)
    require(along_first_axis, key, name, "a selection along the first axis only")
    if isinstance(key, slice):
        try:
            key.indices(length)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} is {short_repr(key)}; expected integers and a step other than 0"
            ) from None
        return key
    array = np.atleast_1d(as_array(key, name))
    if array.size == 0 and array.dtype.kind == "f":  # an empty list selects nothing
        return array.astype(np.int64)
    usable = array.ndim == 1 and array.dtype.kind in "biu"
    require(usable, key, name, "a slice, a mask, or row numbers")
    return array


# ---- Parameters


def as_real(value: object) -> float:
    """Return a real number as a float, and NaN for anything else.

    A number that is too large for a float becomes infinite. A bool becomes NaN.
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        with np.errstate(over="ignore"):  # an integer of more than 64 bits may overflow
            return float(value)
    except TypeError:  # numpy.timedelta64 is registered as an integer
        return math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # pyright: ignore[reportOperatorIssue]  (a Real has order)


def check_real(
    value: object,
    name: str,
    expected: str = "a finite number",
    least: float = -_MAX,
    most: float = _MAX,
) -> float:
    """Return a number from `least` to `most` as a float.

    `expected` describes the allowed numbers in the message. If the value is very large
    or very small, the message also gives the bounds that keep products from
    overflowing.
    """
    number = as_real(value)
    size = abs(number)
    if most >= LARGEST and (size >= LARGEST or 0 < size <= 1 / LARGEST):
        expected += f", from {least:g} to {most:g}"
    require(least <= number <= most, value, name, expected)
    return number


def check_number(
    estimator: object, name: str, positive: bool = False, most: float = _MAX
) -> float:
    """Return a parameter of an estimator as a float.

    The bounds are -most and most or, if `positive`, 1/most and most.
    """
    expected = "a finite number"
    least = -most
    if positive:
        expected = "a positive number"
        least = 1 / most
    return check_real(getattr(estimator, name), name, expected, least, most)


def check_count(value: object, name: str, least: int) -> int:
    """Return an integer of at least `least`."""
    number = as_real(value)
    expected = f"an integer of at least {least}"
    if number > 2**53:
        expected += ", at most 2**53"
    good = least <= number <= 2**53 and number == int(number)
    require(good, value, name, expected)
    return int(number)


def generator(
    source: Any, name: str = "random_state", allow_none: bool = False
) -> np.random.Generator:
    """Return a numpy Generator for a seed or a Generator; if `allow_none`, also for None."""
    if isinstance(source, np.random.Generator) or (allow_none and source is None):
        return np.random.default_rng(source)
    # as_real(True) is NaN
    good = isinstance(source, Integral) and as_real(source) >= 0 and source <= 2**53
    expected = "a seed (an integer from 0 to 2**53) or a numpy Generator"
    if allow_none:
        expected += " or None"
    require(good, source, name, expected)
    return np.random.default_rng(int(source))


def legacy_rng(
    source: Any, name: str = "random_state", allow_none: bool = False
) -> np.random.RandomState:
    """Return a RandomState, which scikit-learn needs, for what `generator` accepts.

    A seed below 2**32 gives the same draws as in scikit-learn.
    """
    if isinstance(source, np.random.RandomState):
        return source
    bits = generator(source, name, allow_none).bit_generator
    if as_real(source) < 2**32:
        return np.random.RandomState(int(source))
    return np.random.RandomState(bits)


def check_flag(value: object, name: str) -> bool:
    """Return True or False."""
    require(isinstance(value, (bool, np.bool_)), value, name, "True or False")
    return bool(value)


def check_list(values: Any, name: str, expected: str) -> list[Any]:
    """Return an iterable, except a string, as a list."""
    good = isinstance(values, Iterable) and not isinstance(values, str)
    require(good, values, name, expected)
    return list(values)


def check_choice(value: object, name: str, options: tuple[str, ...]) -> None:
    """Raise unless a parameter is one of its options."""
    good = isinstance(value, str) and value in options
    require(good, value, name, " or ".join(map(repr, options)))

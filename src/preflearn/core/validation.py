"""Checks of input: each returns what it checked as an array or a number, or says what
is wrong with it.

Every message says what was found, where, and what is expected. In arrays of numbers
True and False count as 1 and 0 (a mask makes good weights); as a parameter or a label a
bool is refused, since it is rather a slip.
"""

from __future__ import annotations

import math
import sys
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
PerMatch = ArrayLike | None  # one value a match, if any

_MAX = float(np.finfo(np.float64).max)
LARGEST = 1e100  # beyond, products of two might overflow in a sum
# numbers that sparse features may have as a dense array: a gigabyte
_MOST_DENSE = 2**27


# ---- What was found


def short_repr(value: object) -> str:
    """What messages print of a value that is not ours: one line of at most 60
    characters."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an integer of 5,000 digits, say; an object may fail in any way
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def require(good: bool, value: object, name: str, expected: str) -> None:
    """Raise ValueError that shows a value, unless it is good."""
    if not good:
        raise ValueError(f"{name} is {short_repr(value)}; expected {expected}")


def raise_if_any(wrong: NDArray, values: Any, name: str, expected: str) -> None:
    """Raise ValueError that shows the first of `values`, or of their entries if sparse,
    that is wrong."""
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0].tolist())
        entries = values.data if sparse.issparse(values) else values
        # as Python writes it, not np.float64(...)
        value = np.asarray(entries[where]).tolist()
        if sparse.issparse(values):
            where = [ids[where] for ids in values.tocoo().coords]
        place = f"[{', '.join(map(str, where))}]" if where else ""
        require(False, value, name + place, expected)


def check_shape(
    array: NDArray, name: str, shape: tuple[int | str, ...], meaning: str = ""
) -> None:
    """Raise unless an array has this shape; a letter stands for any length, the same
    wherever it occurs."""
    lengths: dict[int | str, int] = {}
    fits = [
        found
        == (lengths.setdefault(wanted, found) if isinstance(wanted, str) else wanted)
        for found, wanted in zip(array.shape, shape, strict=False)
    ]
    if array.ndim != len(shape) or not all(fits):
        expected = (
            f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
            + f": {meaning}" * bool(meaning)
        )
        raise ValueError(f"{name} has shape {array.shape}; expected {expected}")


def warn_user(text: str, category: type[Warning]) -> None:
    """Warn, and point to the line outside of the package, and of joblib that it calls,
    that led to it."""
    frame = sys._getframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(
        ("preflearn.", "joblib.")
    ):
        frame = frame.f_back
        level = level + 1
    warnings.warn(text, category, stacklevel=level)


# ---- Arrays


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """`values` as an array of any kind; what NumPy would drop, or refuse in its own
    words, is named."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} has {np.ma.count_masked(values)} masked values; expected none"
        )
    if sparse.issparse(values):
        raise ValueError(f"{name} is sparse; expected a dense array")
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be an array of numbers; expected rows of equal length"
        ) from None


def as_floats(values: ArrayLike, name: str) -> Floats:
    """Real numbers as floats, finite or not; what is no number, or finite and no float,
    is named."""
    array = as_array(values, name)
    if array.dtype.kind in "cmMV":
        raise ValueError(f"{name} has dtype {array.dtype}; expected real numbers")
    if array.dtype.kind in "OSU":
        unreadable = np.reshape(
            [not _is_readable(value) for value in array.flat], array.shape
        )
        raise_if_any(
            unreadable, array, name, "a number" if array.ndim else "an array of numbers"
        )
    with np.errstate(over="ignore"):  # of longer ones
        floats = array.astype(np.float64, copy=False)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        raise_if_any(
            np.isinf(floats) & np.isfinite(array),
            array,
            name,
            f"a number of at most {_MAX:g} in size",
        )
    return floats


def _is_readable(value: Any) -> bool:
    # float() only warns
    if value is np.ma.masked or isinstance(value, np.complexfloating):
        return False
    try:
        with np.errstate(over="ignore"):  # of a longer float
            return not math.isinf(float(value)) or "inf" in str(value).lower()
    except (OverflowError, TypeError, ValueError):
        return False


def check_array(
    values: ArrayLike, name: str, shape: tuple[int | str, ...], meaning: str = ""
) -> Floats:
    """Return `values` as a finite, non-empty float array of this shape, or say what is
    wrong, and where.

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
        If the values are no real finite numbers, some are masked, or the shape is
        another.
    """
    array = as_floats(values, name)
    check_shape(array, name, shape, meaning)
    if array.size == 0:
        raise ValueError(
            f"{name} is empty (shape {array.shape}); expected at least one value"
        )
    if not np.isfinite(array).all():
        wrong = ~np.isfinite(array)
        more = int(np.count_nonzero(wrong)) - 1
        raise_if_any(
            wrong,
            array,
            name,
            "finite numbers" + f" ({more} more are not finite)" * (more > 0),
        )
    return array


def check_items(
    items: Any, name: str = "items", scaled: bool = False, keep: Any = False
) -> Floats:
    """Return `items` as a finite (n, p) float array, `scaled` if products are to be
    finite.

    Sparse ones become dense, up to a gigabyte, unless `keep` asks for a CSR array with
    entries in order: True, or "few" where they are fewer than their features.
    """
    if sparse.issparse(items):
        kept = (
            keep
            and 0 not in items.shape
            and (keep is True or items.shape[0] < items.shape[-1])
        )
        items = _as_csr(items, name) if kept else _as_dense(items, name)
    if not sparse.issparse(items):
        items = check_array(
            items, name, ("n", "p"), "one row an item, one column a feature"
        )
    if scaled:
        check_scale(items, name)
    return items


def _as_csr(items: Any, name: str) -> Any:
    check_shape(items, name, ("n", "p"))
    values: Any = sparse.csr_array(items)
    check_array(np.append(values.data, 0), f"{name}.data", ("entries",))
    values = values.astype(np.float64)  # a copy, whose entries are put in order
    values.sum_duplicates()
    return values


def _as_dense(items: Any, name: str) -> NDArray[Any]:
    advice = "SVMRank or RankRLS, kernel='linear', keeps n < p items sparse; TruncatedSVD makes p smaller"
    expected = f"at most {_MOST_DENSE:,} numbers, where they become dense: {advice}"
    fits = math.prod(items.shape) <= _MOST_DENSE
    require(fits, items.shape, f"the shape (n, p) of the sparse {name}", expected)
    return items.toarray()


def check_weights(sample_weight: ArrayLike | None, length: int) -> Floats:
    """Return weights as a (length,) array with a positive sum, or say which one is
    wrong."""
    if sample_weight is None:
        return np.ones(length)
    weights = check_array(sample_weight, "sample_weight", (length,))
    if not 0 <= weights.min() <= weights.max() <= LARGEST:
        raise_if_any(
            (weights < 0) | (weights > LARGEST),
            weights,
            "sample_weight",
            "weights from 0 to 1e100",
        )
    if not weights.any():
        raise ValueError(
            f"all {length} values of sample_weight are 0; expected at least one positive weight"
        )
    return weights


def check_scale(values: Floats, name: str) -> None:
    """Raise ValueError where squares or differences of values might overflow."""
    largest = max(float(values.max()), -float(values.min()))
    expected = (
        f"at most {LARGEST:g}, since beyond products overflow: standardise the features"
    )
    require(
        largest <= LARGEST,
        largest,
        f"the size of the largest value of {name}",
        expected,
    )


# ---- Comparisons


def check_labels(
    y: ArrayLike, n_pairs: int, allow: tuple[int, ...] = (-1, 0, 1)
) -> NDArray[np.int8]:
    """Return comparison labels as an (m,) array of -1, 0, 1, or say which label is
    wrong.

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
        On a wrong shape, a length other than m, or a label that is not in `allow`; True
        is no label.
    """
    array = as_array(y, "y")
    check_shape(array, "y", (n_pairs,), "one label a pair")
    labels = array
    if array.dtype.kind not in "iuf":  # objects may be numbers; nothing else is
        labels = np.array([as_real(value) for value in array.tolist()])
    with np.errstate(invalid="ignore"):  # what is no small number is unequal below
        small = labels.astype(np.int8, copy=False)
    between = range(int(small.min(initial=0)), int(small.max(initial=0)) + 1)
    strange = any(label not in allow and (small == label).any() for label in between)
    if strange or (small is not labels and (small != labels).any()):
        expected = f"one of {sorted(allow)} (+1 first better, -1 second better, 0 no difference)"
        if (labels == 2).any():
            expected += (
                "; for cross_val_predict, which renumbers them, method='predict'"
            )
        raise_if_any(~np.isin(labels, allow), array, "y", expected)
    return small


def check_kinds(y: NDArray, owner: str, ties: bool = True) -> None:
    """Raise unless the labels hold a preference and, where the owner needs `ties`, a
    tie."""
    if not y.any():
        needs = (
            "both ties and preferences"
            if ties
            else "at least one preference (label +1 or -1)"
        )
        needs += ": with ties alone, predict 0 for each pair"
        raise ValueError(f"y has only ties (label 0); {owner} needs {needs}")
    if ties and y.all():
        needs = (
            "both, to learn which differences count: use SVMRank, which needs no ties"
        )
        raise ValueError(
            f"y has only preferences (labels +1 and -1), no ties; {owner} needs {needs}"
        )


def check_index(index: ArrayLike, n_items: int) -> NDArray[np.int64]:
    """Return the (m, 2) row numbers of first and second items, or say which one is
    wrong."""
    array = as_array(index, "index")
    check_shape(array, "index", ("m", 2), "first and second item of a pair")
    if len(array) == 0:
        raise ValueError(
            "there are no pairs (index has shape (0, 2)); expected at least one"
        )
    if array.dtype.kind not in "iu":
        raise ValueError(
            f"index has dtype {array.dtype}; expected integers, the row numbers of items"
        )
    outside = (array < 0) | (array >= n_items)
    raise_if_any(
        outside, array, "index", f"a row number of items, from 0 to {n_items - 1}"
    )
    raise_if_any(array[:, 0] == array[:, 1], array, "index", "two different items")
    return array.astype(np.int64, copy=False)


def check_query_ids(
    qid: ArrayLike | None,
    n_items: int,
    name: str = "qid",
    kind: str = "query id",
    each: str = "an item",
) -> NDArray | None:
    """Return query ids as an (n,) array that can be sorted, or None where there is only
    one query."""
    if qid is None:
        return None
    array = as_array(qid, name)
    # a list, whose 1 and nan are texts by now
    if array.dtype.kind in "SU" and not hasattr(qid, "dtype"):
        array = np.asarray(qid, dtype=object)
    check_shape(array, name, (n_items,), f"one {kind} {each}")
    raise_if_any(pd.isna(array), array, name, f"a {kind} for each {each.split()[-1]}")
    try:
        if array.dtype.kind == "O":
            np.unique(array)
    except TypeError:
        raise ValueError(
            f"{name} is {short_repr(qid)}; expected ids of one kind, which can be sorted"
        ) from None
    return array


def query_numbers(qid: ArrayLike | None, n_items: int) -> Ids:
    """The queries of n items, checked, as numbers from 0 on; one, if there are no ids."""
    checked = check_query_ids(qid, n_items)
    return (
        np.zeros(n_items, np.int64)
        if checked is None
        else np.unique(checked, return_inverse=True)[1]
    )


def check_left(n_pairs: float, n_items: int, condition: str) -> None:
    """Raise where all pairs of items were sorted out: those of two queries, and what
    `condition` says."""
    if not n_pairs:
        raise ValueError(
            f"no pair is left of {n_items} items: expected two items of one query{condition}"
        )


def check_selection(key: Any, length: int) -> slice | NDArray:
    """Return what selects rows: a slice, or an array of ids or of bool; its range is
    left to NumPy."""
    if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
        key = key[0]  # scikit-learn indexes arrays as X[ids, ...]
    require(
        not isinstance(key, tuple),
        key,
        "the key",
        "a selection along the first axis only",
    )
    if isinstance(key, slice):
        try:
            key.indices(length)
        except (TypeError, ValueError):
            raise ValueError(
                f"the key is {short_repr(key)}; expected integers, and a step other than 0"
            ) from None
        return key
    array = np.atleast_1d(as_array(key, "the key"))
    if array.size == 0 and array.dtype.kind == "f":  # an empty list selects nothing
        return array.astype(np.int64)
    usable = array.ndim == 1 and array.dtype.kind in "biu"
    require(usable, key, "the key", "a slice, a mask, or row numbers")
    return array


# ---- Parameters


def as_real(value: object) -> float:
    """A real number as a float, infinite if it is too large for one; NaN for all else,
    also for a bool."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        with np.errstate(over="ignore"):  # of a longer float
            return float(value)
    except TypeError:  # a numpy.timedelta64 calls itself an integer
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
    """Return a number from `least` to `most`, or say that another is `expected`.

    The words name the bounds that a reader knows of; those that keep products from
    overflowing are added where a value that the words allow lies beyond, and the words
    do not name them. Where only infinity lies beyond, they ask for a finite number.
    """
    number = as_real(value)
    beyond = ""
    if number > most >= LARGEST:
        beyond = f", at most {most:g}"
    elif number < least <= -LARGEST or 0 < number < least <= 1 / LARGEST:
        beyond = f", at least {least:g}"
    if beyond.endswith(f"{_MAX:g}") and value in (math.inf, -math.inf):
        beyond = ""
        expected = expected.replace("finite number", "number").replace(
            "number", "finite number"
        )
    named = beyond.rpartition(" ")[2] in expected
    require(least <= number <= most, value, name, expected + beyond * (not named))
    return number


def check_number(
    estimator: object, name: str, positive: bool = False, most: float = _MAX
) -> float:
    """The value of an estimator's parameter, or ValueError if it is no such number.

    `most` bounds its size, and from below by 1/most where it is positive.
    """
    expected = "a positive number" if positive else "a finite number"
    return check_real(
        getattr(estimator, name), name, expected, 1 / most if positive else -most, most
    )


def check_count(value: object, name: str, least: int) -> int:
    """Return a whole number of at least `least`."""
    number = as_real(value)
    good = least <= number <= 2**53 and number == int(number)
    require(
        good,
        value,
        name,
        f"a whole number of at least {least}" + ", at most 2**53" * (number > 2**53),
    )
    return int(number)


def generator(
    source: Any, name: str = "random_state", fresh: bool = False
) -> np.random.Generator:
    """A Generator as it is, or one from a seed, with the same draws each time; `fresh`:
    or from None."""
    if isinstance(source, np.random.Generator) or (fresh and source is None):
        return np.random.default_rng(source)
    # no bool
    good = isinstance(source, Integral) and as_real(source) >= 0 and source <= 2**53
    expected = (
        "a seed, a whole number from 0 to 2**53, a numpy Generator"
        + ", or None" * fresh
    )
    require(good, source, name, expected)
    return np.random.default_rng(int(source))


def legacy_rng(
    source: Any, name: str = "random_state", fresh: bool = False
) -> np.random.RandomState:
    """The same for what draws by scikit-learn: a RandomState as it is, or one with the
    bits of `generator`.

    A seed that scikit-learn takes too gives the draws that it gives.
    """
    if isinstance(source, np.random.RandomState):
        return source
    bits = generator(source, name, fresh).bit_generator
    return np.random.RandomState(int(source) if as_real(source) < 2**32 else bits)


def check_flag(value: object, name: str) -> bool:
    """Return True or False."""
    require(isinstance(value, (bool, np.bool_)), value, name, "True or False")
    return bool(value)


def check_list(values: Any, name: str, expected: str) -> list[Any]:
    """Return what `values` lists; a text is no list."""
    require(
        isinstance(values, Iterable) and not isinstance(values, str),
        values,
        name,
        expected,
    )
    return list(values)


def check_choice(value: object, name: str, options: tuple[str, ...]) -> None:
    """Raise unless a parameter is one of its words."""
    require(
        isinstance(value, str) and value in options,
        value,
        name,
        " or ".join(map(repr, options)),
    )

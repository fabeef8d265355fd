"""The sushi preferences of [Kamishima2003]_, as pairs.

See section 4.2 of [Venuto2017]_.
"""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.datasets.registry import package_file
from preflearn.datasets.storage import csv_table, provenance, read
from preflearn.pairs import Pairs

_FILES = ("sushi3.idata", "sushi3.udata", "sushi3b.5000.10.score", "README-en.txt")
_SUSHI = (
    "style",
    "major group",
    "minor group",
    "oiliness",
    "frequency eaten",
    "price",
    "frequency sold",
)
_USER = ("gender", "age group", "survey time")
_PLACES = ("latitude until 15", "longitude until 15", "latitude now", "longitude now")
BEST = 4  # ratings in the file are from 0, the best, to 4


class SushiData(NamedTuple):
    """Pairs of rated sushi, with the ratings and the users.

    Attributes
    ----------
    pairs : Pairs
        25,000 pairs of 50,000 items. An item is one rating of a sushi by a user, with
        14 features.
    y : ndarray of shape (25000,)
        Labels. +1: the user likes the first sushi better; 0: the user likes both
        equally.
    feature_names : tuple of str
        Seven features of the sushi and seven of the user.
    item_names : tuple of str
        Names of the 100 sushi, in English if the description of the data has a
        translation.
    scores : ndarray of shape (50000,)
        Rating of each item by its user, 0 to 4; larger is better.
    user, sushi : ndarray of int, shape (50000,)
        User and sushi of each item.
    provenance : tuple of dict
        Sources and licenses of the files.
    """

    pairs: Pairs
    y: NDArray[np.int8]
    feature_names: tuple[str, ...]
    item_names: tuple[str, ...]
    scores: NDArray[np.int8]
    user: NDArray[np.int64]
    sushi: NDArray[np.int64]
    provenance: tuple[dict[str, str], ...]


def load_sushi() -> SushiData:
    """Load the 17,832 ties and 7,168 preferences of section 4.2 of [Venuto2017]_.

    Each of 5000 users rated ten of 100 sushi on a five-step scale. The ten sushi are
    sorted from the worst to the best, with equal ratings in the order of the sushi's
    numbers, and paired in this order. This reproduces the paper's numbers of ties and
    preferences. Sorting from the best gives the same numbers but other, harder pairs.
    Since popular sushi have small numbers, such a pair consists of the least popular
    sushi with one rating and the most popular sushi with the next lower rating. The
    paper does not state its order; its test errors agree with the order from the worst
    (chapter 5). Within a pair the sushi with the smaller number is the first.

    According to the file's description, 4 is the most preferred step. The users'
    answers show that 0 is. Each user also ranked the same ten sushi, and 98 percent of
    these rankings agree with 0 as the best. (Fatty tuna has the lowest mean, and sea
    cucumber has the highest.) The score here is therefore 4 minus the number in the
    file. The direction only changes the sign of all labels, which does not affect the
    methods of the paper.

    The data are for research only and must not be redistributed.

    Latitude and longitude are those of the prefecture where the user lived until age
    15, and of the one where the user lives now.

    Returns
    -------
    SushiData
    """
    sushi_features = _table("sushi3.idata", columns=range(2, 9))
    users = _table("sushi3.udata", columns=range(1, 11))
    places = [coordinates(users[:, column].astype(int)) for column in (3, 6)]
    user_features = np.hstack([users[:, :3], *places])
    text = read("sushi", "sushi3b.5000.10.score").decode("ascii")
    ratings = np.array(text.split(), dtype=np.int8).reshape(
        len(users), len(sushi_features)
    )

    user, sushi = np.nonzero(ratings >= 0)
    scores = BEST - ratings[user, sushi]
    index = pairs_of_neighbours(user, scores)
    items = np.hstack([sushi_features[sushi], user_features[user]])
    y = np.sign(scores[index[:, 0]] - scores[index[:, 1]]).astype(np.int8)
    names = _english_names(
        read("sushi", "README-en.txt").decode("utf-8"), len(sushi_features)
    )
    features = _SUSHI + _USER + _PLACES
    sources = provenance("sushi", _FILES)
    return SushiData(
        Pairs(items, index), y, features, names, scores, user, sushi, sources
    )


def _table(file: str, columns: range) -> NDArray[np.float64]:
    """Read columns of numbers from a file."""
    frame = csv_table(
        "sushi", file, sep="\t", header=None, comment="#", usecols=list(columns)
    )
    return frame.to_numpy(dtype=np.float64)


def coordinates(codes: ArrayLike) -> NDArray[np.float64]:
    """Latitude and longitude of the capitals of prefectures.

    The values are from the Geospatial Information Authority of Japan, accurate to about
    0.01 degrees.

    Parameters
    ----------
    codes : array-like of int, shape (n,)
        Codes from 0 to 46, as in ``data/prefectures.csv``. The sushi data also define
        47 for foreign countries, without coordinates; no respondent has it.

    Returns
    -------
    ndarray of shape (n, 2)
        Degrees north and degrees east.

    Examples
    --------
    >>> coordinates([13])
    array([[ 35.69, 139.69]])
    """
    places = np.loadtxt(
        package_file("prefectures.csv"), delimiter=",", skiprows=1, usecols=(2, 3)
    )
    return places[np.asarray(codes)]


def pairs_of_neighbours(user: NDArray, scores: NDArray) -> NDArray[np.int64]:
    """Row numbers of items, paired from the worst up within each user."""
    # lexsort is stable: equal ratings stay in the order of the sushi's numbers
    order = np.lexsort((scores, user))
    return np.sort(order.reshape(-1, 2), axis=1)


def _english_names(description: str, n_sushi: int) -> tuple[str, ...]:
    """Names of the item set B.

    They come from the lines "number:name (translation)" of the description.
    """
    listed = description.split("*** ID for the item set B")[1].split("###")[0]
    names = dict(re.findall(r"^ ?(\d+):(.+?)\s*$", listed, flags=re.MULTILINE))
    return tuple(names[str(number)] for number in range(n_sushi))

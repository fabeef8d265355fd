"""Where the prefectures of Japan are: the seats of their governments, in the coding of the sushi data.

Degrees north and east, to about 0.01, of the cities that house the prefectural governments (facts of
geography, as the Geospatial Information Authority of Japan publishes them).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["PREFECTURES", "coordinates"]

# In the order of the codes of sushi3.udata, 0 to 46; code 47, foreign countries, is not a place.
PREFECTURES: tuple[tuple[str, float, float], ...] = (
    ("Hokkaido", 43.06, 141.35),
    ("Aomori", 40.82, 140.74),
    ("Iwate", 39.70, 141.15),
    ("Akita", 39.72, 140.10),
    ("Miyagi", 38.27, 140.87),
    ("Yamagata", 38.24, 140.36),
    ("Fukushima", 37.75, 140.47),
    ("Niigata", 37.90, 139.02),
    ("Ibaraki", 36.34, 140.45),
    ("Tochigi", 36.57, 139.88),
    ("Gunma", 36.39, 139.06),
    ("Saitama", 35.86, 139.65),
    ("Chiba", 35.60, 140.12),
    ("Tokyo", 35.69, 139.69),
    ("Kanagawa", 35.45, 139.64),
    ("Yamanashi", 35.66, 138.57),
    ("Shizuoka", 34.98, 138.38),
    ("Nagano", 36.65, 138.18),
    ("Aichi", 35.18, 136.91),
    ("Gifu", 35.39, 136.72),
    ("Toyama", 36.70, 137.21),
    ("Ishikawa", 36.59, 136.63),
    ("Fukui", 36.07, 136.22),
    ("Shiga", 35.00, 135.87),
    ("Mie", 34.73, 136.51),
    ("Kyoto", 35.02, 135.76),
    ("Osaka", 34.69, 135.52),
    ("Nara", 34.69, 135.83),
    ("Wakayama", 34.23, 135.17),
    ("Hyogo", 34.69, 135.18),
    ("Okayama", 34.66, 133.93),
    ("Hiroshima", 34.40, 132.46),
    ("Tottori", 35.50, 134.24),
    ("Shimane", 35.47, 133.05),
    ("Yamaguchi", 34.19, 131.47),
    ("Ehime", 33.84, 132.77),
    ("Kagawa", 34.34, 134.04),
    ("Tokushima", 34.07, 134.56),
    ("Kochi", 33.56, 133.53),
    ("Fukuoka", 33.61, 130.42),
    ("Nagasaki", 32.74, 129.87),
    ("Saga", 33.25, 130.30),
    ("Kumamoto", 32.79, 130.74),
    ("Kagoshima", 31.56, 130.56),
    ("Miyazaki", 31.91, 131.42),
    ("Oita", 33.24, 131.61),
    ("Okinawa", 26.21, 127.68),
)


def coordinates(codes: ArrayLike) -> NDArray[np.float64]:
    """Latitude and longitude of prefectures.

    Parameters
    ----------
    codes : array-like of int, shape (n,)
        0 to 46. The sushi data also define 47, foreign countries; no respondent has it.

    Returns
    -------
    ndarray of shape (n, 2)
        Degrees north, degrees east.

    Raises
    ------
    ValueError
        On another code.

    Examples
    --------
    >>> coordinates([13])
    array([[ 35.69, 139.69]])
    """
    codes = np.asarray(codes)
    outside = (codes < 0) | (codes >= len(PREFECTURES))
    if outside.any():
        where = int(np.flatnonzero(outside)[0])
        raise ValueError(
            f"codes[{where}] is {codes[where]}; expected a prefecture, 0 to {len(PREFECTURES) - 1}"
        )
    return np.array([place[1:] for place in PREFECTURES])[codes]

"""The loader of the sushi ratings, on small files and on the real ones."""

from collections import Counter

import numpy as np
import pandas as pd

from preflearn import datasets
from preflearn.datasets.registry import package_file
from preflearn.datasets.storage import read
from preflearn.datasets.sushi import coordinates


def add_sushi(toy):
    rows = "".join(f"{k}\tx\t1\t0\t{k}\t1\t1\t1\t{k / 10}\n" for k in range(1, 5))
    items = "#name style\n\n0\t海老\t1\t0\t6\t2.5\t2\t1.5\t0.5\n" + rows
    toy.add("sushi", "sushi3.idata", items.encode())
    users = b"9\t1\t2\t300\t13\t3\t0\t46\t10\t1\t1\n8\t0\t5\t200\t0\t0\t0\t0\t0\t0\t0\n"
    toy.add("sushi", "sushi3.udata", users)
    toy.add("sushi", "sushi3b.5000.10.score", b"4 0 -1 4 2 \n-1 3 1 1 1 \n")
    names = "*** ID for the item set A\n0:no\n*** ID for the item set B\n\n 0:ebi (shrimp)\n"
    names += "".join(f" {k}:sushi {k}\n" for k in range(1, 5))
    toy.add("sushi", "README-en.txt", (names + "###  rest\n 0:no\n").encode())


def test_sushi_pairs_are_neighbours_in_the_order_of_ratings(toy):
    add_sushi(toy)
    pairs, y, features, names, scores, user, sushi, provenance = datasets.load_sushi()
    # In the file 0 is the best item. User 0 gave 0 to sushi 1, 2 to 4, and 4 to 0 and
    # 3. User 1 gave 1 to sushi 2, 3, 4 and 3 to 1.
    assert user.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert sushi.tolist() == [0, 1, 3, 4, 1, 2, 3, 4]
    assert scores.tolist() == [0, 4, 0, 2, 1, 3, 3, 3]
    assert sushi[pairs.index].tolist() == [[0, 3], [1, 4], [1, 2], [3, 4]]
    assert user[pairs.index].tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]
    assert y.tolist() == [0, 1, -1, 0]
    assert len(features) == pairs.items.shape[1] == 14
    np.testing.assert_allclose(pairs.items[0, :7], [1, 0, 6, 2.5, 2, 1.5, 0.5])
    np.testing.assert_allclose(
        pairs.items[0, 7:], [1, 2, 300, 35.69, 139.69, 26.21, 127.68]
    )
    assert names == ("ebi (shrimp)", "sushi 1", "sushi 2", "sushi 3", "sushi 4")
    assert len(provenance) == 4


def test_prefectures_lie_in_japan():
    table = pd.read_csv(package_file("prefectures.csv"))
    assert table["code"].tolist() == list(range(47))
    assert table["prefecture"].nunique() == 47
    latitude, longitude = coordinates(range(47)).T
    assert ((latitude > 26) & (latitude < 43.1)).all()
    assert ((longitude > 127) & (longitude < 141.4)).all()
    # Tohoku lies north of Kanto, Kanto east of Kinki, and Kinki east of Kyushu.
    tohoku = range(1, 7)
    kanto = range(8, 15)
    kinki = [23, 25, 26, 27, 28, 29]
    kyushu = range(39, 46)
    assert latitude[tohoku].min() > latitude[kanto].max()
    assert longitude[kanto].min() > longitude[kinki].max()
    assert longitude[kinki].min() > longitude[kyushu].max()


# The real file


def test_sushi(load):
    sushi = load("sushi", datasets.load_sushi)
    pairs = sushi.pairs
    y = sushi.y
    assert Counter(np.abs(y).tolist()) == {0: 17_832, 1: 7_168}
    assert pairs.shape == (25_000, 2, 14)
    assert len(pairs.items) == 50_000
    assert np.bincount(pairs.index.ravel()).tolist() == [1] * 50_000
    np.testing.assert_array_equal(
        *(sushi.user[pairs.index[:, side]] for side in (0, 1))
    )
    gain = pairs.B.differences(sushi.scores)
    np.testing.assert_array_equal(np.sign(gain), y)
    assert sushi.item_names[8] == "toro (fatty tuna)"
    assert len(set(sushi.item_names)) == 100


def test_sushi_scores_agree_with_the_orders_of_the_same_users(load):
    """The description of the file states the opposite direction of the scale."""
    sushi = load("sushi", datasets.load_sushi)
    lines = read("sushi", "sushi3b.5000.10.order").decode("ascii").splitlines()[1:]
    # orders list the best item first
    orders = np.array([line.split()[2:] for line in lines], dtype=int)
    scores = np.full((5000, 100), -1)
    scores[sushi.user, sushi.sushi] = sushi.scores
    ordered = np.take_along_axis(scores, orders, axis=1)
    assert (ordered >= 0).all()  # each user rated and ordered the same ten sushi
    better, worse = np.triu_indices(10, 1)
    agreement = np.sign(ordered[:, better] - ordered[:, worse]).mean(axis=1)
    assert (agreement > 0).mean() > 0.97
    assert (agreement < 0).mean() < 0.01
    means = [sushi.scores[sushi.sushi == number].mean() for number in (8, 97)]
    assert means[0] > sushi.scores.mean() > means[1]  # fatty tuna, sea cucumber

import numpy as np
import pytest

from preflearn import datasets


def test_object_rankings_in_both_encodings_of_the_files(toy):
    text = '"RANK","Bundesliga","GP","Pts","W","Home"\n1,"München",34,88,28,"15-1"\n3,"Köln",34,50,11,"1-1"\n'
    toy.add("object_ranking", "ds_B1.csv", text.encode("cp1252"))
    toy.add("object_ranking", "ds_B2.csv", text.encode("utf-8"))
    one, two = datasets.load_object_ranking("B1"), datasets.load_object_ranking("B2")
    assert one.item_names == two.item_names == ("München", "Köln")
    assert one.feature_names == ("Pts", "W")
    np.testing.assert_array_equal(one.X, [[88, 28], [50, 11]])
    assert one.rank.tolist() == [1, 3]
    assert one.provenance[0]["file"] == "ds_B1.csv"
    with pytest.raises(ValueError, match="name is 'B3'; expected 'D1' or "):
        datasets.load_object_ranking("B3")

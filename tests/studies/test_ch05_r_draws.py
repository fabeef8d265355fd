"""R's random numbers, against values that R prints."""

import numpy as np

from preflearn_book.studies.ch05_r_draws import RDraws, draw_figure_4


def test_uniform_numbers_are_those_of_r():
    expected = [0.2655087, 0.3721239, 0.5728534]
    np.testing.assert_allclose(RDraws(1).uniform(3), expected, atol=5e-8)


def test_normal_numbers_are_those_of_r():
    expected = [-0.6264538, 0.1836433, -0.8356286]
    np.testing.assert_allclose(RDraws(1).normal(3), expected, atol=5e-8)


def test_samples_are_those_of_r():
    expected = [3, 4, 5, 7, 2, 8, 9, 6, 10, 1]
    assert RDraws(1).sample(range(1, 11), 10).tolist() == expected


def test_a_smaller_test_set_has_a_similar_error():
    found = draw_figure_4(n_pairs=4_000, n_test=1_000)
    assert found.keys() == {"l2", "l1", "linf"}
    for one in found.values():
        assert 3 < one.error < 12
        assert 3 < one.largest < 6

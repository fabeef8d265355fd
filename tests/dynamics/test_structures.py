"""Structures in the search for a covariance: sums of products of bases, and their
neighbors."""

from preflearn.dynamics import Affine, Constant, Matern12, Matern32, Matern52, Wiener
from preflearn.dynamics.model_selection.discovery import BASES
from preflearn.dynamics.model_selection.structures import (
    Grammar,
    covariance_of,
    structure_at,
)

SPAN = 1000.0


def labels(grammar, candidates):
    return {grammar.label(starts[0]) for starts in candidates}


def test_singles_come_first_with_lengths_over_the_span():
    grammar = Grammar(
        [Constant(5.0), Wiener(3.0, "first"), Matern32(7.0, 8.0)], SPAN / 2, 4
    )
    constant, wiener, matern = [
        [covariance_of(start) for start in starts] for starts in grammar.singles(0.3)
    ]
    assert constant == [Constant(0.3)]
    assert wiener == [Wiener(0.3 / (SPAN / 2), "first")]
    assert matern == [Matern32(0.3, length) for length in (10.0, 100.0, 1000.0)]


def test_neighbours_differ_by_one_part():
    grammar = Grammar(
        [Constant(), Wiener(origin="first"), Matern12(), Matern32()], SPAN / 2, 3
    )
    constant, _, matern, _ = grammar.singles(0.3)
    both = constant[0] + matern[0]
    assert labels(grammar, grammar.next_to(both)) - {"Constant + Matern12"} == {
        "Constant + Wiener + Matern12",  # one more term
        "Constant + Matern12 + Matern12",
        "Constant + Matern12 + Matern32",
        "Constant + Wiener * Matern12",  # one more factor
        "Constant + Matern12 * Matern32",
        "Wiener + Matern12",  # one part replaced
        "Matern12 + Matern12",
        "Matern12 + Matern32",
        "Constant + Wiener",
        "Constant + Matern32",
    }  # dropping a part gives single bases, which were tried before
    assert grammar.next_to(both) == []  # no structure is tried twice


def test_structures_that_say_nothing_new_are_left_out():
    grammar = Grammar(list(BASES), SPAN / 2, 4)
    found = labels(
        grammar,
        [s for first, *_ in grammar.singles(0.3) for s in grammar.next_to(first)],
    )
    assert {"Constant + Wiener", "Matern12 + Matern12"} < found
    assert "Constant + Affine" not in found  # Affine has an offset of its own
    assert not {"Wiener + Wiener", "Matern12 * Matern12"} & found
    assert not any("Constant *" in label or "* Constant" in label for label in found)


def test_a_part_in_place_of_another_keeps_its_length():
    grammar = Grammar([Matern12(), Matern52(), Constant()], SPAN / 2, 2)
    term = grammar.singles(0.3)[0][0][0]
    moved = (term._replace(parts=((0, Matern12(1.0, 77.0)),)),)
    fresh = Grammar([Matern12(), Matern52(), Constant()], SPAN / 2, 2)
    starts = next(s for s in fresh.next_to(moved) if fresh.label(s[0]) == "Matern52")
    assert [covariance_of(start) for start in starts] == [Matern52(0.3, 77.0)]


def test_parameters_go_back_into_the_structure():
    """The parameters are those of a sum of products. The variance of a product is taken
    from its first factor, and the others keep theirs."""
    grammar = Grammar([Affine(origin="first"), Matern12(), Constant()], SPAN / 2, 3)
    affine, matern, constant = grammar.singles(0.3)
    product = next(
        starts[0]
        for starts in grammar.next_to(affine[0])
        if grammar.label(starts[0]) == "Affine * Matern12"
    )
    structure = product + constant[0]
    assert covariance_of(
        structure_at(covariance_of(structure), structure)
    ) == covariance_of(structure)
    first, *_ = matern
    moved = structure_at(Matern12(2.0, 33.0), first)
    assert covariance_of(moved) == Matern12(2.0, 33.0)
    assert moved[0].variance == 2.0

"""Sums of products of covariances and their neighbors in `discover_covariance`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import islice
from operator import add, mul
from typing import Any, NamedTuple

from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.elementary import Affine, Constant
from preflearn.dynamics.model import DynamicComparisons
from preflearn.dynamics.model_selection.hyperparameters import parameters_of
from preflearn.dynamics.model_selection.summary import variance_after

_LENGTHS = (0.01, 0.1, 1.0)  # start values of length scales, relative to the time span
_NEW_TERM_VARIANCE = 0.1  # start value for a new term, relative to the present variance


class Term(NamedTuple):
    """A variance times a product of covariances.

    The product has variance 1 halfway through the time span.
    """

    variance: float
    # for each factor: the number of its base, and the base with its lengths
    parts: tuple[tuple[int, Any], ...]


Structure = tuple[Term, ...]  # the terms of a sum
Key = tuple[tuple[int, ...], ...]  # the base numbers of each term


class Grammar:
    """The neighbors of a structure that were not tried yet, with start values."""

    def __init__(self, bases: list[Covariance], half: float, max_parts: int) -> None:
        kinds = [type(base).__name__ for base in bases]
        self._names = [
            kind if kinds.count(kind) == 1 else repr(base)
            for kind, base in zip(kinds, bases, strict=True)
        ]
        self._bases = [_standard(base, half) for base in bases]
        self._span = 2 * half
        self._max_parts = max_parts
        self._seen: set[Key] = set()

    def label(self, structure: Structure) -> str:
        return " + ".join(
            " * ".join(self._names[base] for base in term) for term in _key(structure)
        )

    def singles(self, variance: float) -> list[list[Structure]]:
        """Structures of a single base."""
        return self._new(
            [(Term(variance, (part,)),) for part in self._starts(base)]
            for base in range(len(self._bases))
        )

    def next_to(self, structure: Structure) -> list[list[Structure]]:
        """Structures that differ in one part."""
        return self._new(self._neighbors(structure))

    def _neighbors(self, structure: Structure) -> Iterator[list[Structure]]:
        further = _NEW_TERM_VARIANCE * sum(term.variance for term in structure)
        bases = range(len(self._bases))
        for base in bases:
            yield [(*structure, Term(further, (part,))) for part in self._starts(base)]
        for k, term in enumerate(structure):
            rest = _put(structure, k)
            for place, old in [
                (len(term.parts), None),
                *enumerate(part for _, part in term.parts),
            ]:
                for base in bases:  # add a part, or replace an old one
                    parts = [
                        _put(term.parts, place, part)
                        for part in self._starts(base, old)
                    ]
                    yield [(*rest, term._replace(parts=some)) for some in parts]
                if old is not None:
                    fewer = _put(term.parts, place)
                    if fewer:
                        yield [(*rest, term._replace(parts=fewer))]
                    else:
                        yield [rest]

    def _starts(self, base: int, like: Any = None) -> list[tuple[int, Any]]:
        """A base with start values of its length scale.

        If it replaces a part with a length scale, it has this length scale.
        """
        part: Any = self._bases[base]
        if not _has_length(part):
            return [(base, part)]
        lengths = [fraction * self._span for fraction in _LENGTHS]
        if _has_length(like):
            lengths = [like.lengthscale]
        return [(base, part.changed(lengthscale=length)) for length in lengths]

    def _new(self, candidates: Iterable[list[Structure]]) -> list[list[Structure]]:
        fresh = []
        for starts in candidates:
            key = _key(starts[0])
            if key not in self._seen and self._makes_sense(key):
                fresh.append(starts)
            self._seen.add(key)
        return fresh

    def _makes_sense(self, key: Key) -> bool:
        """Whether a structure is not empty, not too large, and has no redundant parts.

        A part is redundant if it only repeats, scales, or contains another one.
        """
        constants = {
            k for k, base in enumerate(self._bases) if isinstance(base, Constant)
        }
        lines = {k for k, base in enumerate(self._bases) if isinstance(base, Affine)}
        levels = [
            term for term in key if len(term) == 1 and term[0] in constants | lines
        ]
        products = all(
            len(set(term)) == len(term) and not constants & {*term}
            for term in key
            if len(term) > 1
        )
        repeated = {term for term in key if key.count(term) > 1}
        lengths = all(
            any(_has_length(self._bases[k]) for k in term) for term in repeated
        )
        return (
            0 < sum(map(len, key)) <= self._max_parts
            and len(levels) < 2
            and products
            and lengths
        )


def _key(structure: Structure) -> Key:
    return tuple(
        sorted(tuple(sorted(base for base, _ in term.parts)) for term in structure)
    )


def _put(items: tuple[Any, ...], place: int, *new: Any) -> tuple[Any, ...]:
    """Replace one item of a tuple by new items, or remove it."""
    return (*items[:place], *new, *items[place + 1 :])


def _has_length(part: Any) -> bool:
    """Whether a part has a length scale in time, unlike Periodic, whose scale is a number."""
    return part is not None and "lengthscale" in part.lengths()


def _standard(base: Any, half: float) -> Any:
    """A base with variance 1 at a time `half` after its origin.

    For a straight line, half of this variance comes from the slope.
    """
    if isinstance(base, Affine):
        base = base.changed(slope_variance=base.variance / half**2)
    return _scaled(base, 1 / variance_after(base, half))


def _scaled(part: Any, factor: float) -> Any:
    found = part.positive()
    names = [name for name in ("variance", "slope_variance") if name in found]
    return part.changed(**{name: factor * found[name] for name in names})


def fixed_in(model: DynamicComparisons, structure: Structure) -> list[str]:
    """The variances of all factors of each product except the first."""
    names = iter(parameters_of(model))
    fixed = list[str]()
    for term in structure:
        for place, (_, part) in enumerate(term.parts):
            own = dict(zip(part.positive(), names, strict=False))
            fixed += [own["variance"]] * (place > 0)
    return fixed


def covariance_of(structure: Structure) -> Covariance:
    """The covariance of a structure; first factors have the variances."""
    terms = ((variance, *(part for _, part in parts)) for variance, parts in structure)
    return reduce(
        add, (reduce(mul, (_scaled(first, v), *others)) for v, first, *others in terms)
    )


def structure_at(covariance: Covariance, start: Structure) -> Structure:
    """Return the structure of a covariance of the same form as `covariance_of(start)`."""
    leaves = iter(covariance.leaves())
    found = []
    first: Any
    for _, parts in start:
        first, *others = islice(leaves, len(parts))
        bases = [base for base, _ in parts]
        variance = first.variance / parts[0][1].variance
        found.append(
            Term(
                variance,
                tuple(zip(bases, (_scaled(first, 1 / variance), *others), strict=True)),
            )
        )
    return tuple(found)

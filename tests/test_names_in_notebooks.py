"""One name means one object in a notebook, so that its cells can run again in any
order."""

import symtable
from collections import defaultdict

import nbformat
import pytest
from reruns import NOTEBOOKS

# The cell with the parameters and the one that checks them and sets the profile.
N_PARAMETER_CELLS = 2


# Comprehensions, and lambdas, which are usually called by the cell that has them.
NAMELESS = {"listcomp", "setcomp", "dictcomp", "genexpr", "lambda"}


def uses(table):
    """The names that a cell assigns without an import, those that it uses, and those
    that its named functions take from outside."""
    assigned = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_assigned() and not symbol.is_imported()
    }
    used = {
        symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()
    }
    in_functions = set()
    inner = list(table.get_children())
    while inner:
        scope = inner.pop()
        inner.extend(scope.get_children())
        from_outside = {
            symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global()
        }
        used |= from_outside
        if scope.get_name() not in NAMELESS:
            in_functions |= from_outside
    return assigned, used, in_functions


def names_with_two_meanings(sources):
    """Names that more than one cell assigns, and that are used by a cell which does not
    assign them, or by a function."""
    assigned_by = defaultdict(set)
    used_by = defaultdict(set)
    of_functions = set()
    for number, source in enumerate(sources):
        assigned, used, in_functions = uses(symtable.symtable(source, "cell", "exec"))
        for name in assigned:
            assigned_by[name].add(number)
        for name in used:
            used_by[name].add(number)
        of_functions |= in_functions
    return sorted(
        name
        for name, cells in assigned_by.items()
        if len(cells) > 1 and (used_by[name] - cells or name in of_functions)
    )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_name_means_one_object(name):
    cells = nbformat.read(NOTEBOOKS[name], as_version=4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    assert names_with_two_meanings(sources[N_PARAMETER_CELLS:]) == []


def test_a_second_meaning_is_found():
    assert names_with_two_meanings(["rows = 1", "print(rows)", "x = 2"]) == []
    assert names_with_two_meanings(["rows = 1", "print(rows)", "rows = 2"]) == ["rows"]
    assert names_with_two_meanings(
        ["rows = 1", "def show():\n    print(rows)", "rows = 2"]
    ) == ["rows"]
    assert names_with_two_meanings(["rows = 1; rows", "rows = 2; rows"]) == []
    # another cell can call the function after `rows` has changed
    show = "rows = 1\ndef show():\n    return rows"
    assert names_with_two_meanings([show, "rows = 2"]) == ["rows"]
    assert names_with_two_meanings(["rows = [1]; [rows for k in rows]"] * 2) == []

"""One name means one object in a notebook, so that its cells can run again in any
order."""

import symtable
from collections import defaultdict

import nbformat
import pytest
from reruns import NOTEBOOKS

# The cell with the parameters and the one that checks them and sets the profile.
N_PARAMETER_CELLS = 2


def uses(table):
    """The names that a cell assigns without an import, and those that it uses, also
    inside functions."""
    assigned = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_assigned() and not symbol.is_imported()
    }
    used = {
        symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()
    }
    inner = list(table.get_children())
    while inner:
        scope = inner.pop()
        inner.extend(scope.get_children())
        used |= {
            symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global()
        }
    return assigned, used


def names_with_two_meanings(sources):
    """Names that more than one cell assigns, and that a cell uses which does not
    assign them."""
    assigned_by = defaultdict(set)
    used_by = defaultdict(set)
    for number, source in enumerate(sources):
        assigned, used = uses(symtable.symtable(source, "cell", "exec"))
        for name in assigned:
            assigned_by[name].add(number)
        for name in used:
            used_by[name].add(number)
    return sorted(
        name
        for name, cells in assigned_by.items()
        if len(cells) > 1 and used_by[name] - cells
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

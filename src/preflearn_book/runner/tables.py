"""Tables of pandas, written as a person would write them."""

import re
from decimal import Decimal
from itertools import cycle

_NUMBER = '<td class="number">'
_COLUMN = '<td class="number column">'

# Two rows of a head.
_NAMES = re.compile(
    r"(?P<begin><thead>\s*<tr[^>]*>)(?P<levels>(?:\s*<th></th>)+)(?P<rest>(?:(?!</tr>).)*</tr>)"
    r"\s*<tr>\s*(?P<names>(?:<th>[^<]*</th>\s*)+)</tr>(?=\s*</thead>)",
    re.DOTALL,
)


def tidy_table(html: str) -> str:
    """A table of pandas as a person would write it.

    Names of the index stand in the head's first row, rows lose numbers that only count
    them, a minus is one and zero has none, a missing number is a dash, what is written
    as 5e-09 or 2^-21 is a power, cells of numbers are told from those of words, and so
    are columns that have nothing but numbers.
    """
    before, begin, table = html.partition("<table")
    table = _NAMES.sub(_one_head, begin + table)
    head, _, body = table.partition("<tbody>")
    counted = [
        int(number) for number in re.findall(r"<tr>\s*<th>(\d+)</th>\s*<td", body)
    ]
    nameless = (
        re.search(r"<tr[^>]*>\s*<th></th>", head)
        and len(counted) == body.count("<tr") > 1
    )
    if nameless and counted == [*range(counted[0], counted[0] + len(counted))]:
        table = re.sub(r"(<tr[^>]*>\s*)<th[^>]*>[^<]*</th>", r"\1", table)
    # wide pages break no cell, narrow ones must
    table = table.replace("\xa0", " ").replace(" ± ", " ±\xa0")
    table = re.sub(
        r"(?<=<t[hd]>)[^<±]{1,9}(?=</t[hd]>)",
        lambda name: name[0].replace(" ", "\xa0"),
        table,
    )
    table = re.sub(r"(?<=<td>)-(?=0(?:\.0*)?</td>)", "", table).replace(
        "<td>NaN</td>", "<td>–</td>"
    )
    table = re.sub(r"(?<=[>\s(])-(?=\d)", "−", table)
    table = _columns(
        re.sub(r"<td>(?=(?:–|[−+]?\d(?:(?!,\s)[^a-df-zA-Z<])*)?</td>)", _NUMBER, table)
    )
    table = re.sub(
        r"\b(\d+)\^(-?\d+)\b",
        lambda of: f"{of[1]}<sup>{of[2]}</sup>".replace("-", "−"),
        table,
    )
    return before + re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)e([-+−]?\d+)\b", _power, table)


def _columns(table: str) -> str:
    """The table with a class on the cells and the head of each column that has nothing
    but numbers."""
    head, begin, body = table.rpartition("<tbody>")
    rows = [re.findall(r"<td[^>]*>", row) for row in body.split("</tr>")]
    numbers = [
        set(cells) == {_NUMBER} for cells in zip(*filter(None, rows), strict=True)
    ]
    of_cell = cycle(numbers)
    body = re.sub(
        r"<td[^>]*>", lambda cell: _COLUMN if next(of_cell) else cell[0], body
    )
    above, *names = re.split(r"<th\b", head)
    of_name = ([False] * len(names) + numbers)[-len(names) :]
    marks = ['<th class="column"' if number else "<th" for number in of_name]
    return above + "".join(map("".join, zip(marks, names, strict=False))) + begin + body


def _one_head(rows: re.Match) -> str:
    """The first row of a head with the names that stand in the second, if these are all
    that is there."""
    names = re.findall(r"<th>([^<]*)</th>", rows["names"])
    levels = rows["levels"].count("<th>")
    if any(names[levels:]):
        return rows[0]
    return "".join(
        [rows["begin"], *(f"<th>{name}</th>" for name in names[:levels]), rows["rest"]]
    )


def _power(number: re.Match) -> str:
    value = Decimal(number[0].replace("−", "-"))
    exponent = int(number[2].replace("−", "-"))
    if not value or abs(exponent) < 4:
        return f"{value:f}" if value else "0"
    factor = "" if number[1] == "1" else f"{number[1]}·"
    return f"{factor}10<sup>{exponent}</sup>".replace("-", "−")

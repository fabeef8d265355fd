"""Formatting of pandas tables for readers."""

import re
from decimal import Decimal
from itertools import cycle

_NUMBER = '<td class="number">'
_COLUMN = '<td class="number column">'

_INTERVAL = re.compile(r"\([-−+]?[\d.,]+ to [-−+]?[\d.,]+(?: %)?\)")
_SHORT = re.compile(r"<th(?=[^>]*>[^<]{1,16}</th>)")  # the name of a row

# Two rows of a table head.
_NAMES = re.compile(
    r"(?P<begin><thead>\s*<tr[^>]*>)(?P<levels>(?:\s*<th></th>)+)(?P<rest>(?:(?!</tr>).)*</tr>)"
    r"\s*<tr>\s*(?P<names>(?:<th>[^<]*</th>\s*)+)</tr>(?=\s*</thead>)",
    re.DOTALL,
)


def tidy_table(html: str) -> str:
    """Format the HTML of a pandas table for readers.

    - Names of the index move to the first row of the head, and an index that only counts
      rows is removed.
    - Minus signs are typographic, zero has no sign, a missing number is a dash, and
      5e-09 or 2^-21 is written as a power.
    - Cells with numbers, columns with only numbers, and short names of rows get a class.
    - An interval in brackets gets a class, because a line should not break within it.
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
    # Wide pages do not break cells; narrow pages have to.
    table = table.replace("\xa0", " ").replace(" ± ", " ±\xa0")
    table = re.sub(
        r"(?<=<t[hd]>)[^<±]{1,9}(?=</t[hd]>)",
        lambda name: name[0].replace(" ", "\xa0"),
        table,
    )
    table = _INTERVAL.sub(r'<span class="interval">\g<0></span>', table)
    head, begin, body = table.rpartition("<tbody>")
    table = head + begin + _SHORT.sub('<th class="short"', body)
    table = re.sub(r"(?<=<td>)-(?=0(?:\.0*)?</td>)", "", table).replace(
        "<td>NaN</td>", "<td>–</td>"
    )
    table = re.sub(r"(?<=[>\s(])-(?=\d)", "−", table)
    table = _columns(
        re.sub(r"<td>(?=(?:–|[−+]?\d(?:(?!,\s)[^a-df-zA-Z<])*)?</td>)", _NUMBER, table)
    )
    table = re.sub(
        r"\b(\d+)\^(-?\d+)\b",
        lambda power: f"{power[1]}<sup>{power[2]}</sup>".replace("-", "−"),
        table,
    )
    return before + re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)e([-+−]?\d+)\b", _power, table)


def _columns(table: str) -> str:
    """Add a class to the cells and the head of each column that has only numbers."""
    head, begin, body = table.rpartition("<tbody>")
    rows = [re.findall(r"<td[^>]*>", row) for row in body.split("</tr>")]
    numbers = [
        set(cells) == {_NUMBER} for cells in zip(*filter(None, rows), strict=True)
    ]
    is_number = cycle(numbers)

    def marked(cell: re.Match) -> str:
        return _COLUMN if next(is_number) else cell[0]

    body = re.sub(r"<td[^>]*>", marked, body)
    above, *names = re.split(r"<th\b", head)
    # The last names of the head are those of the columns.
    has_numbers = ([False] * len(names) + numbers)[-len(names) :]
    marks = ['<th class="column"' if has else "<th" for has in has_numbers]
    return above + "".join(map("".join, zip(marks, names, strict=False))) + begin + body


def _one_head(rows: re.Match) -> str:
    """Move index names from the second row of a head to the first if the second row has
    no other names."""
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
    if not value:
        return "0"
    if abs(exponent) < 4:
        return f"{value:f}"
    power = f"10<sup>{exponent}</sup>".replace("-", "−")
    if number[1] == "1":
        return power
    return f"{number[1]}·{power}"

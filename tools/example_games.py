"""Write examples/games.csv, the simulated league of `preflearn report --example`.

Eight clubs that do not exist play four seasons. In a season, each club plays twice
against each other club. Their scores change from week to week, and the home team has an
advantage. The last round has no results yet.
"""

from __future__ import annotations

import argparse
import csv
import io
from datetime import date, timedelta
from pathlib import Path
from random import Random

EXAMPLE = Path(__file__).parents[1] / "examples" / "games.csv"
CLUBS = [
    "Ashford Rovers",
    "Birkdale",
    "Corbridge",
    "Dunmore",
    "Eastlow",
    "Fenwick",
    "Glenside",
    "Harwick Town",
]
FIRST_DAYS = [date(2022, 9, 3), date(2023, 9, 2), date(2024, 9, 7), date(2025, 9, 6)]
HOME_ADVANTAGE = 0.35
TIE_MARGIN = 0.55
SPREAD = 0.8  # standard deviation of the scores at the start
STEP = 0.14  # of the change of a score from one week to the next


def rounds(clubs: list[str]) -> list[list[tuple[str, str]]]:
    """The rounds of a season, by the circle method: lists of (home, away)."""
    fixed = clubs[0]
    others = clubs[1:]
    first_half = []
    for week in range(len(others)):
        turned = others[week:] + others[:week]
        pairs = [(fixed, turned[0])] if week % 2 == 0 else [(turned[0], fixed)]
        pairs += [(turned[k], turned[-k]) for k in range(1, len(clubs) // 2)]
        first_half.append(pairs)
    second_half = [[(away, home) for home, away in pairs] for pairs in first_half]
    return first_half + second_half


def games(seed: int = 4) -> list[tuple[str, str, str, str]]:
    """Rows of (date, home, away, result), the result H, D, A, or nothing in the last
    round."""
    random = Random(seed)
    score = {club: random.gauss(0, SPREAD) for club in CLUBS}
    rows = []
    for first_day in FIRST_DAYS:
        for week, pairs in enumerate(rounds(random.sample(CLUBS, len(CLUBS)))):
            day = first_day + timedelta(weeks=week)
            for club in CLUBS:
                score[club] += random.gauss(0, STEP)
            for home, away in pairs:
                difference = (
                    score[home] - score[away] + HOME_ADVANTAGE + random.gauss(0, 1)
                )
                result = "D"
                if abs(difference) > TIE_MARGIN:
                    result = "H" if difference > 0 else "A"
                rows.append((day.isoformat(), home, away, result))
    to_come = rows[-1][0]
    return [(*row[:3], "" if row[0] == to_come else row[3]) for row in rows]


def to_csv(rows: list[tuple[str, str, str, str]]) -> str:
    """The rows as the text of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("date", "home", "away", "result"))
    writer.writerows(rows)
    return text.getvalue()


if __name__ == "__main__":
    argparse.ArgumentParser(
        description="Write the example of a simulated league."
    ).parse_args()
    EXAMPLE.write_text(to_csv(games()), "utf-8")

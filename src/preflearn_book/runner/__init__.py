"""Tools of the book: functions that chapters call, and the code that executes, checks
and renders the chapters."""

from preflearn_book.runner.claims import check
from preflearn_book.runner.explorers import explorer
from preflearn_book.runner.parameters import check_profile, check_range
from preflearn_book.runner.records import Flips, published, record, recorded

__all__ = [
    "Flips",
    "check",
    "check_profile",
    "check_range",
    "explorer",
    "published",
    "record",
    "recorded",
]

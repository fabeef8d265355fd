"""The machinery of the book: what a chapter calls, and what executes, checks and renders the chapters."""

from bookrunner.ledger import check
from bookrunner.parameters import check_profile
from bookrunner.records import published, record, recorded
from bookrunner.yardstick import BAND, best, lead

__all__ = ["BAND", "best", "check", "check_profile", "lead", "published", "record", "recorded"]

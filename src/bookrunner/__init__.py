"""The machinery of the book: what a chapter calls, and what executes, checks and renders the chapters."""

from bookrunner.explorers import explorer
from bookrunner.ledger import check
from bookrunner.parameters import check_profile, check_range
from bookrunner.records import published, record, recorded

__all__ = ["check", "check_profile", "check_range", "explorer", "published", "record", "recorded"]

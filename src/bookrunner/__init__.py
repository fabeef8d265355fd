"""The machinery of the book: what a chapter calls, and what executes, checks and renders the chapters."""

from bookrunner.ledger import check
from bookrunner.records import published, record, recorded

__all__ = ["check", "published", "record", "recorded"]

"""The machinery of the book: what a chapter calls, and what executes, checks and renders the chapters."""

from bookrunner.explorers import explorer
from bookrunner.ledger import check
from bookrunner.parameters import check_profile
from bookrunner.records import published, record, recorded
from bookrunner.yardstick import BAND, Lead, lead

__all__ = [
    "BAND",
    "Lead",
    "check",
    "check_profile",
    "explorer",
    "lead",
    "published",
    "record",
    "recorded",
]

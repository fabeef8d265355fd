"""The machinery of the book: what a chapter calls, and what executes, checks and renders the chapters."""

from bookrunner.explorers import explorer
from bookrunner.ledger import check
from bookrunner.parameters import check_profile
from bookrunner.records import published, record, recorded
from bookrunner.yardstick import (
    BAND,
    BANDS,
    Lead,
    best,
    every,
    lead,
    near_optimal,
    robust,
    selection,
    some,
    sparse,
    typical,
)

__all__ = [
    "BAND",
    "BANDS",
    "Lead",
    "best",
    "check",
    "check_profile",
    "every",
    "explorer",
    "lead",
    "near_optimal",
    "published",
    "record",
    "recorded",
    "robust",
    "selection",
    "some",
    "sparse",
    "typical",
]

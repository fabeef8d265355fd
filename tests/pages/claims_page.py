"""The page of claims, as tests read it."""

from preflearn_book.runner.claims import load_claims

CLAIMS = "chapters/claims.html"


def listed(page):
    """Return the ids of the claims that are visible without opening a fold."""
    return page.eval_on_selector_all(
        ".claims-fold .claim",
        "claims => claims.filter((one) => one.checkVisibility()).map((one) => one.id)",
    )


def ids_of(**wanted):
    """Return the ids of the entries with these contents."""
    return [
        f"claim-{entry.id.lower()}"
        for entry in load_claims().values()
        if all(getattr(entry, name) == content for name, content in wanted.items())
    ]

"""Let README's links to pages of the book lead to the published pages, or, without
these, to "See the book".

    python tools/readme_links.py

Run it after a change of `repository.url` in _config.yml, from which the address of the
pages follows.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from preflearn_book.runner.project import Project
from preflearn_book.runner.render import published, repository

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
SECTION = "#see-the-book"
PAGES = {
    "The guide": "chapters/guide.html",
    "The claims list": "chapters/claims.html",
    "ways through the book": "paths.html",
    "Run the notebooks": "run_the_notebooks.html",
}
_LINK = re.compile(rf"\[([^\]]+)\]\((?:{SECTION}|https://\S+?\.html)\)")


def page_of(text: str, chapters: list[str]) -> str:
    """The page that a link with this text is for, relative to the front page; "" for
    other links.

    Examples
    --------
    >>> page_of("chapter 4", ["04_svmcompare"])
    'chapters/04_svmcompare.html'
    """
    if number := re.fullmatch(r"[Cc]hapter (\d+)", text):
        (name,) = [
            name for name in chapters if name.startswith(f"{int(number[1]):02d}_")
        ]
        return f"chapters/{name}.html"
    return PAGES.get(text, "")


def with_links(readme: str, site: str, chapters: list[str]) -> str:
    """The text with links to the pages of a site, or to the section that says how to
    build them.

    Parameters
    ----------
    readme : str
    site : str
        Address of the published book, with a slash at its end; "" if it is not
        published.
    chapters : list of str
        Names such as "04_svmcompare".
    """

    def link(found: re.Match[str]) -> str:
        page = page_of(found[1], chapters)
        if not page:
            return found[0]
        return f"[{found[1]}]({site + page if site else SECTION})"

    return _LINK.sub(link, readme)


def main() -> None:
    argparse.ArgumentParser(
        description="Renew README's links to pages of the book."
    ).parse_args()
    project = Project(ROOT)
    names = [chapter.name for chapter in project.chapters]
    text = README.read_text("utf-8")
    README.write_text(with_links(text, published(repository(project)), names), "utf-8")


if __name__ == "__main__":
    main()

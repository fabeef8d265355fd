import pytest
from docutils.core import publish_doctree

from bookrunner.theme import description

LONG = "One sentence. " * 40


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'A book & its "words". It has :math:`x` in it. See the\nnext page.',
            'A book & its "words". See the next page.',
        ),
        ("no sentence", ""),
        ("", ""),
        (LONG, f"{LONG[:199]} …"),
    ],
)
def test_a_page_says_what_it_is_about_in_sentences_without_formulas(text, said):
    assert description(publish_doctree(f"A title\n=======\n\n{text}")) == said

"""Figures on a telephone: their letters can be read."""

import pytest
from pages.browser import opened, window
from pages.builds import contents
from pages.test_browser import browser, site

__all__ = ["browser", "site"]

SMALLEST = 9  # pixels
# Letters are paths, scaled from a hundred units an em; what is a number's exponent is smaller by custom.
LETTERS = """async (smallest) => {
  const found = [];
  for (const image of document.querySelectorAll("article figure img")) {
    if (!image.clientWidth) continue; // the picture of an explorer that is there itself
    const text = await (await fetch(image.currentSrc)).text();
    const drawing = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    const wide = image.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
    for (const one of drawing.querySelectorAll('g[id^="text_"] > g[transform*="scale"]')) {
      const high = Number(one.getAttribute("transform").match(/scale\\((\\S+)/)[1]) * 100 * wide;
      if (high < smallest) found.push(`${image.alt.slice(0, 60)}: ${one.parentNode.id}, ${high.toFixed(1)}`);
    }
  }
  return found;
}"""


@pytest.fixture(scope="module")
def telephone(browser):
    with window(browser, width=400) as context:
        yield context


@pytest.mark.parametrize("name", contents())
def test_letters_of_figures_can_be_read_on_a_telephone(telephone, site, name):
    with opened(telephone, site, f"{name}.html") as seen:
        assert seen.page.evaluate(LETTERS, SMALLEST) == []

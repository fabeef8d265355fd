"""The built book in Firefox: every page opens without complaint, has its equations, and fits its window.

Playwright drives no Firefox but its own, so the browser is asked in its own protocol, Marionette.
"""

import json
import re
import shutil
import socket
import subprocess
import time
from urllib.parse import urlsplit

import pytest
from pages.browser import PROBES, served
from pages.test_browser import EXPLORERS, FAULTS, PAGES, POLICY, pages_with, site, with_faults

__all__ = ["site"]

PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
if PROGRAM is None:
    pytest.skip("there is no Firefox on this machine", allow_module_level=True)

# A free port; what pages say to the console is written out.
PREFERENCES = [("marionette.port", 0), ("devtools.console.stdout.content", True)]
KEYS = {"Space": " ", "ArrowRight": "\ue014"}
MATH_DONE = "return typeof MathJax === 'undefined' || MathJax.startup.promise.then(() => true)"
UNSET = "[...document.querySelectorAll('.bd-article .math:not(:has(mjx-container))')]"
REQUESTS = "performance.getEntriesByType('resource').map((entry) => [entry.name, entry.responseStatus])"
COMPLAINTS = """const found = Services.console.getMessageArray()
  .filter((entry) => entry instanceof Ci.nsIScriptError && !(entry.flags & Ci.nsIScriptError.warningFlag))
  .filter((entry) => /^https?:/.test(entry.sourceName))
  .map((entry) => `${entry.errorMessage} (${entry.sourceName})`);
Services.console.reset();
return found;"""


class Firefox:
    """A Firefox without a screen, and what it is asked."""

    def __init__(self, folder):
        self.said = folder / "said.txt"
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES]
        (folder / "user.js").write_text("\n".join(lines))
        options = ["--headless", "--no-remote", "--marionette", "--remote-allow-system-access"]
        with self.said.open("a") as said:
            command = [PROGRAM, *options, "--profile", str(folder)]
            self.process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        port = folder / "MarionetteActivePort"
        while not (port.exists() and port.read_text()):
            assert self.process.poll() is None, self.said.read_text()
            time.sleep(0.1)
        self.socket = socket.create_connection(("127.0.0.1", int(port.read_text())))
        self.answers = self.socket.makefile("rb")
        self.answer()
        self.ask("WebDriver:NewSession", capabilities={})
        self.ask("WebDriver:SetTimeouts", pageLoad=300_000, script=300_000)  # a slow machine is no failure

    def answer(self):
        size = b""
        while (digit := self.answers.read(1)) != b":":
            size += digit
        return json.loads(self.answers.read(int(size)))

    def ask(self, command, **parameters):
        message = json.dumps([0, 1, command, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self.answer()
        assert error is None, error
        return result

    def run(self, script, *values):
        return self.ask("WebDriver:ExecuteScript", script=script, args=values)["value"]

    def open(self, address):
        self.complaints()  # of the page before
        self.ask("WebDriver:Navigate", url=address)
        self.run(MATH_DONE)
        self.run(PROBES)

    def resize(self, width):
        self.ask("WebDriver:SetWindowRect", width=width, height=900)

    def complaints(self):
        """What the console has got since it was asked before."""
        self.ask("Marionette:SetContext", value="chrome")
        found = self.run(COMPLAINTS)
        self.ask("Marionette:SetContext", value="content")
        # Parts of the browser itself begin with their name.
        found += re.findall(r"^console\.error: (?!\w+: ).*", self.said.read_text(), re.MULTILINE)
        self.said.write_text("")
        return found

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    browser = Firefox(tmp_path_factory.mktemp("firefox"))
    yield browser
    browser.close()


def wrong_with(firefox, site, name):
    """What is wrong with a page, by rule."""
    firefox.resize(1400)
    firefox.open(site + name)
    found = {}
    for width in (1400, 500):  # no window of Firefox is narrower
        firefox.resize(width)
        found[width] = firefox.run("probes.unfold(); return probes.layout().leaves")
    found["equations that are not set"] = firefox.run(f"return {UNSET}.map((one) => one.textContent)")
    requests = firefox.run(f"return {REQUESTS}")
    found["failed"] = [address for address, status in requests if status >= 400]
    found["foreign"] = [one for one, _ in requests if urlsplit(one).netloc not in ("", urlsplit(site).netloc)]
    found["errors"] = firefox.complaints()
    return {rule: lines for rule, lines in found.items() if lines}


@pytest.mark.parametrize("name", PAGES)
def test_page_is_whole_in_firefox(firefox, site, name):
    assert wrong_with(firefox, site, name) == {}


def changed(firefox, script, before):
    """The answer of a script once it is another one, or as it is after a minute."""
    end = time.monotonic() + 60
    while (after := firefox.run(script)) == before and time.monotonic() < end:
        time.sleep(0.1)
    return after


@pytest.mark.parametrize("kind", EXPLORERS)
def test_explorer_answers_to_the_keyboard_in_firefox(firefox, site, book, kind):
    (name,) = pages_with(book, f'data-explorer="{kind}"')
    _, _, control, key = EXPLORERS[kind]
    explorer = f'.explorer[data-explorer="{kind}"]'
    sentence = f"return document.querySelector('{explorer} [aria-live]').innerText"
    firefox.open(site + name)
    before = changed(firefox, sentence, "")  # scripts of the page may still draw
    found = firefox.ask("WebDriver:FindElement", using="css selector", value=f"{explorer} {control}")
    (element,) = found["value"].values()
    firefox.ask("WebDriver:ElementSendKeys", id=element, text=5 * KEYS[key])
    after = changed(firefox, sentence, before)
    assert len(before) > 20
    assert after != before
    assert firefox.complaints() == []


def test_faults_are_found_in_firefox(firefox, book, tmp_path):
    faults = "".join(FAULTS[name] for name in ("errors", "foreign", "failed", "leaves"))
    name, text = with_faults(book, tmp_path, faults)
    (tmp_path / name).write_text(POLICY.sub("", text).replace(r"\(", "(", 1), "utf-8")
    with served(tmp_path) as address:
        found = wrong_with(firefox, address, name)
    assert set(found) == {1400, 500, "equations that are not set", "failed", "foreign", "errors"}
    assert any("fault-errors" in line for line in found["errors"])

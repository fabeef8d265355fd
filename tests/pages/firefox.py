"""Control Firefox by its own protocol, Marionette, because Playwright controls only its
own build."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from pages.browser import PATIENCE, PROBES

START_SECONDS = 120
# a free port, and messages of pages to the console are written to the output
_PREFERENCES = {"marionette.port": 0, "devtools.console.stdout.content": True}
_MATH_DONE = """return typeof MathJax === "undefined"
  || MathJax.startup.promise.then(() => true)"""
_COMPLAINTS = """const found = Services.console.getMessageArray()
  .filter((entry) => entry instanceof Ci.nsIScriptError)
  .filter((entry) => !(entry.flags & Ci.nsIScriptError.warningFlag))
  .filter((entry) => /^https?:/.test(entry.sourceName))
  .map((entry) => `${entry.errorMessage} (${entry.sourceName})`);
Services.console.reset();
return found;"""


def firefox_program() -> str | None:
    """Return the path of the installed browser."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """A Firefox without a screen, with its profile in a folder."""

    def __init__(self, program: str, folder: Path) -> None:
        self.output = folder / "output.txt"
        preferences = [
            [json.dumps(part) for part in item] for item in _PREFERENCES.items()
        ]
        lines = [f"user_pref({name}, {value});" for name, value in preferences]
        (folder / "user.js").write_text("\n".join(lines))
        options = [
            "--headless",
            "--no-remote",
            "--marionette",
            "--remote-allow-system-access",
        ]
        with self.output.open("a") as output:
            command = [program, *options, "--profile", str(folder)]
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            port = self._wait_for_port(folder / "MarionetteActivePort")
            self.socket = socket.create_connection(
                ("127.0.0.1", port), timeout=PATIENCE / 1000
            )
            self.answers = self.socket.makefile("rb")
            self._answer()
            self.ask("WebDriver:NewSession", capabilities={})
            self.ask("WebDriver:SetTimeouts", pageLoad=PATIENCE, script=PATIENCE)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def _wait_for_port(self, path: Path) -> int:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if path.exists() and (text := path.read_text()):
                return int(text)
            if self.process.poll() is not None:
                raise RuntimeError(
                    f"Firefox stopped at once: {self.output.read_text()}"
                )
            time.sleep(0.1)
        raise TimeoutError(
            f"Firefox opened no port in {START_SECONDS} s: {self.output.read_text()}"
        )

    def _answer(self) -> list[Any]:
        size = b""
        while (digit := self.answers.read(1)) != b":":
            if not digit:
                raise ConnectionError(
                    f"Firefox closed the connection: {self.output.read_text()}"
                )
            size += digit
        return json.loads(self.answers.read(int(size)))

    def ask(self, command: str, **parameters: Any) -> Any:
        """Send a command and return its result."""
        message = json.dumps([0, 1, command, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._answer()
        if error is not None:
            raise RuntimeError(f"{command}: {error}")
        return result

    def run(self, script: str, *values: Any) -> Any:
        """Run the body of a function in the page and return its value."""
        return self.ask("WebDriver:ExecuteScript", script=script, args=values)["value"]

    def open(self, address: str) -> None:
        """Open a page and wait for its equations."""
        self.complaints()  # discards the messages of the previous page
        self.ask("WebDriver:Navigate", url=address)
        self.run(_MATH_DONE)
        self.run(PROBES)

    def resize(self, width: int) -> None:
        self.ask("WebDriver:SetWindowRect", width=width, height=900)

    def type(self, selector: str, keys: str) -> None:
        """Send keys to the first element that a selector names."""
        found = self.ask("WebDriver:FindElement", using="css selector", value=selector)
        (element,) = found["value"].values()
        self.ask("WebDriver:ElementSendKeys", id=element, text=keys)

    def complaints(self) -> list[str]:
        """Return what was reported to the console since the last call."""
        self.ask("Marionette:SetContext", value="chrome")
        found = self.run(_COMPLAINTS)
        self.ask("Marionette:SetContext", value="content")
        # Messages of the browser itself begin with the name of a part.
        text = self.output.read_text()
        found += re.findall(r"^console\.error: (?!\w+: ).*", text, re.MULTILINE)
        self.output.write_text("")
        return found

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=60)

"""Run the scripts of the book in node."""

import json
import shutil
import subprocess
from pathlib import Path

from optional import skip_or_fail

STATIC = Path(__file__).parents[1] / "book" / "_static"
NODE = shutil.which("node")


def run_in_node(script, code, data):
    """Return the result of `code`, a function of (script, data), in node.

    `script` is the name of a file in book/_static.
    """
    if NODE is None:
        skip_or_fail("node is not installed")
    program = (
        f"const script = require({json.dumps(str(STATIC / script))});"
        "const data = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        f"console.log(JSON.stringify(({code})(script, data)))"
    )
    done = subprocess.run(
        [NODE, "-e", program], input=json.dumps(data), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

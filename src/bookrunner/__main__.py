"""``python -m bookrunner`` is the command `preflearn`."""

import sys

from bookrunner.command import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m preflearn`` is the command `preflearn`."""

import sys

from preflearn.cli import main

if __name__ == "__main__":
    sys.exit(main())

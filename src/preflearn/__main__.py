"""``python -m preflearn`` is the command `preflearn`."""

import sys

from preflearn.cli import main

sys.exit(main())

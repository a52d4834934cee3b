"""Runs the formatter and the type checker: `python -m scripts.javascript`."""

import sys

from scripts.javascript import main

sys.exit(main(sys.argv[1:]))

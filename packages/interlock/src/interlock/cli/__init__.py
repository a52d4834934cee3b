"""The `interlock` command: run servers, talk to any server, install them into clients, start new ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (`sys.argv` unless told otherwise) and exit with its code; see `interlock --help` for the codes."""
    try:
        from .program import program  # late: click is an extra, and its lack needs a plain word
    except ModuleNotFoundError as missing:
        if missing.name != "click":
            raise
        sys.exit(
            "The command line needs click, which comes with the extra `cli`: pip install 'interlock[cli]'"
        )
    program.main(None if arguments is None else list(arguments), prog_name="interlock")

"""Starts the server of a file while the command that uses it is still being loaded.

The child loads the library side by side with this process, and loads the file only when the command
line has been read and names it. A child that nobody asks for ends without having loaded the file.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_COMMANDS: Final = frozenset(
    {"list", "schema", "call", "read", "prompt", "complete", "load", "ping", "lint", "tasks"}
)
# The rest of the line leads to another server, or to another environment, or to the help page.
_OTHERWISE: Final = ("-h", "--help", "--config", "--server", "--env", "--inherit-env", "--sandbox")
_IMPORTS: Final = re.compile(rb"^\s*(?:from|import)\s+interlock\b", re.MULTILINE)
_MOST_READ = 1 << 20  # bytes of the file that are searched


def run_command(target: str) -> list[str]:
    """The command that serves a file, or `FILE:object`, over stdio in development mode.

    The user who names a file is trying it out, and should see why it fails. `-P`: the working
    folder must not shadow any module.
    """
    return [sys.executable, "-P", "-m", "interlock", "run", "--dev", "--no-reload", target]


def start_server(words: Sequence[str]) -> None:
    """Start the server of a command line if its first words are a command and a Python file that
    imports interlock.

    Args:
        words: The words after `interlock`.
    """
    if len(words) < 2 or words[0] not in _COMMANDS or not words[1].endswith(".py"):
        return
    if any(word == "--" or word.startswith(_OTHERWISE) for word in words):
        return
    try:
        with open(words[1], "rb") as file:
            if not _IMPORTS.search(file.read(_MOST_READ)):
                return
    except OSError:
        return
    from ..transport.spawn import spawn_ahead  # late: only for these commands

    command = run_command(str(Path(words[1])))
    spawn_ahead(command, os.environ, [*command[:-1], "--held", command[-1]])

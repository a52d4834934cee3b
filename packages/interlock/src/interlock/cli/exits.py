"""The exit codes of the command, and their paragraph in the help pages."""

from __future__ import annotations

from typing import Final

OK: Final = 0
TOOL_FAILED: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
UNREACHABLE: Final = 4
INTERRUPTED: Final = 130

WORDS: Final = """\b
Exit codes:
  0    success
  1    the tool reported a failure (isError), or its task was cancelled
  2    wrong usage, or a question that nobody could answer
  3    the server refused with a JSON-RPC error, or broke the protocol
  4    the server could not be reached or started, or took too long
  130  interrupted
"""
"""The last paragraph of help pages. The `\\b` at its beginning stops click from wrapping it."""

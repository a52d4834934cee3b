"""A terminal for programs under test: what they show, and somebody who answers when asked."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Sequence


def at_terminal(words: Sequence[str], answers: Sequence[tuple[str, str]], *, seconds: float = 30.0) -> tuple[str, int]:
    """Run the command at a terminal; return what it showed and its exit code.

    `answers` are pairs: once the first text has been shown (since the last answer), the second is typed. AssertionError where a
    text is not shown in time.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "interlock", *words], {**os.environ, "TERM": "xterm", "COLUMNS": "100"})
    shown, mark, waiting = "", 0, list(answers)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.5)[0]:
            continue
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # Linux says so where the other end is closed
            break
        if not chunk:
            break
        shown += chunk.decode("utf-8", "replace")
        while waiting and (found := shown.find(waiting[0][0], mark)) >= 0:
            mark = found + len(waiting[0][0])
            os.write(terminal, waiting.pop(0)[1].encode())
    else:
        os.kill(pid, 9)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert not waiting, f"never shown: {waiting[0][0]!r}\n{shown}"
    return shown.replace("\r\n", "\n"), os.waitstatus_to_exitcode(status)

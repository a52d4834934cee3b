"""A terminal for programs under test: what they show, and somebody who answers when asked."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence

# Makes the terminal the one that Ctrl-C comes from, then becomes the program under test.
_TAKE_THE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def at_terminal(
    words: Sequence[str],
    answers: Sequence[tuple[str, str]],
    *,
    ahead: str = "",
    seconds: float = 30.0,
) -> tuple[str, int]:
    """Run the command at a terminal; return what it showed and its exit code.

    `answers` are pairs: once the first text has been shown (since the last answer), the second is
    typed. `ahead` is typed before the command starts. AssertionError where a text is not shown in
    time.
    """
    terminal, end = pty.openpty()
    os.write(terminal, ahead.encode())
    command = [sys.executable, "-c", _TAKE_THE_TERMINAL, sys.executable, "-m", "interlock", *words]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        command, stdin=end, stdout=end, stderr=end, env=env, start_new_session=True
    )
    os.close(end)
    shown = ""
    mark = 0
    waiting = list(answers)
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
        process.kill()
    code = process.wait()
    os.close(terminal)
    assert not waiting, f"never shown: {waiting[0][0]!r}\n{shown}"
    return shown.replace("\r\n", "\n"), code

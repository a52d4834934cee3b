"""Somebody at a real terminal: types what the chat waits for, and reads what it shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

# Makes the terminal the one that Ctrl-C comes from, then becomes the program under test.
_TAKE_THE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]")
_CUT = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*)?$"
)  # a command of which the end is still to come
PATIENCE = 30.0


def legible(text: str) -> str:
    """What was sent to the terminal, without the commands to it."""
    return _ESCAPE.sub("", text).replace("\r", "").replace("\xa0", " ")


class Terminal:
    """A program at a terminal of its own.

    `raw` is all that it has sent, `text` the same without commands to the terminal.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        columns: int = 100,
        rows: int = 40,
        env: Mapping[str, str] = {},
    ) -> None:
        self._master, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        command = [
            sys.executable,
            "-c",
            _TAKE_THE_TERMINAL,
            sys.executable,
            "-P",
            "-m",
            "interlock",
            *words,
        ]
        clean = {
            name: value
            for name, value in os.environ.items()
            if name not in ("EDITOR", "VISUAL", "COLUMNS", "LINES")
        }
        environment = {**clean, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **env}
        self.process = subprocess.Popen(
            command, stdin=end, stdout=end, stderr=end, env=environment, start_new_session=True
        )
        os.close(end)
        self.raw = b""
        self._mark = 0
        self._is_gone = False

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if not self._is_gone:
            os.close(self._master)

    @property
    def text(self) -> str:
        """All that was shown, legible."""
        whole = self.raw[: max(self.raw.rfind(b"\x1b"), 0)] if _CUT.search(self.raw) else self.raw
        return legible(whole.decode("utf-8", "ignore"))

    def see(self, pattern: str, seconds: float = PATIENCE) -> str:
        """Wait until something is shown that was not seen before; what was shown up to it.

        AssertionError when it never is.
        """
        deadline = time.monotonic() + seconds
        while (found := re.search(pattern, self.text[self._mark :])) is None:
            goes_on = time.monotonic() < deadline and self._read()
            assert goes_on, f"never shown: {pattern!r}, but:\n{self.text[self._mark :]}"
        shown = self.text[self._mark : self._mark + found.end()]
        self._mark += found.end()
        return shown

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._master, text.encode())

    def answer(self, pattern: str, text: str) -> str:
        """Wait for something, then type something."""
        shown = self.see(pattern)
        self.type(text)
        return shown

    def end(self, seconds: float = PATIENCE) -> int:
        """Wait until the program ends; its exit code."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._read():
            pass
        return self.process.wait(timeout=max(deadline - time.monotonic(), 1.0))

    def hang_up(self) -> None:
        """Close the terminal's window."""
        os.close(self._master)
        self._is_gone = True

    def keep(self, name: str) -> None:
        """Keep what was shown as an artefact, where INTERLOCK_SHOTS names a folder for it."""
        folder = os.environ.get("INTERLOCK_SHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / f"{name}.txt").write_text(self.text, encoding="utf-8")
            (Path(folder) / f"{name}.ansi").write_bytes(self.raw)

    def _read(self) -> bool:
        """Take in what is shown; False where nothing more can be."""
        if not select.select([self._master], [], [], 0.5)[0]:
            return True
        try:
            chunk = os.read(self._master, 65536)
        except OSError:  # Linux says so where the other end is closed
            return False
        self.raw += chunk
        return bool(chunk)

"""Reads one line at a terminal, of any length, without a thread that outlives the wait."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator

if sys.platform != "win32":
    import termios

_LONGEST = 64 * 1024  # bytes
# the bytes that the keys send, including Ctrl-D and Ctrl-U
_ENTER = (10, 13)
_BACK = (8, 127)
_END = 4
_CLEAR = 21
# an arrow key, or the markers of a bracketed paste
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[@-~]|O.|.)?")
_GLANCE = 0.05  # poll interval in seconds, for a console that cannot be awaited


class TypedLine:
    """A line while the user types it. `echo` gets the text that the user sees."""

    def __init__(self, echo: Callable[[str], object]) -> None:
        self._bytes = bytearray()
        self._echo = echo

    def feed(self, data: bytes) -> str | None:
        """Process input bytes. Return the line when it is complete, else None.

        Raises EOFError if the user ends the input.
        """
        for byte in data:
            if byte in _ENTER:
                self._echo("\n")
                return self.text
            if byte == _END and not self._bytes:
                self._echo("\n")
                raise EOFError
            if byte in _BACK and self._bytes:
                del self._bytes[-1]
                self._echo("\b \b")
            elif byte == _CLEAR:
                self._echo("\b \b" * len(self._bytes))
                self._bytes.clear()
            elif (byte >= 32 or byte == 27) and byte != 127 and len(self._bytes) < _LONGEST:
                self._bytes.append(byte)
                self._echo(chr(byte) if 32 <= byte < 127 else "?")
        return None

    @property
    def text(self) -> str:
        """The text so far, without the markers of a bracketed paste."""
        return _SEQUENCE.sub("", self._bytes.decode("utf-8", "replace")).strip()


async def read_line(fd: int, echo: Callable[[str], object]) -> str:
    """Read a line from the terminal at a file descriptor, and restore the terminal's mode.

    Raises EOFError at the end of the input.
    """
    typed = TypedLine(echo)
    if sys.platform == "win32":
        return await _glance(typed)
    with _key_by_key(fd):
        while True:
            await _readable(fd)
            try:
                data = os.read(fd, 64 * 1024)
            except OSError:  # the terminal is gone
                data = b""
            if not data:
                raise EOFError
            line = typed.feed(data)
            if line is not None:
                return line


@contextlib.contextmanager
def _key_by_key(fd: int) -> Iterator[None]:
    """Read each key as it is pressed: a terminal in line mode truncates long lines, some at 1,024
    characters.
    """
    if sys.platform == "win32" or not os.isatty(fd):
        yield
        return
    before = termios.tcgetattr(fd)
    now = termios.tcgetattr(fd)
    now[3] &= ~(termios.ICANON | termios.ECHO)
    now[6][termios.VMIN] = 1
    now[6][termios.VTIME] = 0
    termios.tcsetattr(fd, termios.TCSANOW, now)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(fd, termios.TCSANOW, before)


async def _readable(fd: int) -> None:
    """Wait until there is input."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(fd, lambda: None if ready.done() else ready.set_result(None))
    except PermissionError:  # a regular file is always readable
        return
    try:
        await ready
    finally:
        loop.remove_reader(fd)


async def _glance(typed: TypedLine) -> str:
    """Read a line on Windows, where a console has to be polled."""
    if sys.platform == "win32":
        import msvcrt  # exists only on Windows

        while True:
            while not msvcrt.kbhit():  # noqa: ASYNC110 - no event signals a pressed key
                await asyncio.sleep(_GLANCE)
            line = typed.feed(msvcrt.getwch().encode("utf-8", "replace"))
            if line is not None:
                return line
    raise AssertionError("never reached")

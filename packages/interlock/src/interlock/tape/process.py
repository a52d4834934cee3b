"""Recording of a server's process: the recorder runs between host and server, and passes bytes on.

One thread for each stream reads with a blocking call, records the messages that have become whole,
and writes the same bytes. Nothing is queued, so a peer that does not read slows the other one down
as without a recorder, and a request is on the tape before its response.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from ..wire.lines import LineSplitter
from .writer import RecordedConnection, TapeWriter

_CHUNK = 64 * 1024  # bytes
_STDERR_LINE = 1024 * 1024  # bytes; a longer line of stderr is passed on, and not recorded
_LAST_OUTPUT = 2.0  # seconds in which the output of an ended server is still read
_FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_OF_TERMINAL = ("SIGINT", "SIGQUIT", "SIGHUP")  # a terminal sends these to the server too
_PR_SET_PDEATHSIG = 1


def record_process(
    command: Sequence[str],
    recorder: TapeWriter,
    *,
    stdin: int = 0,
    stdout: int = 1,
    stderr: int = 2,
) -> int:
    """Run a server, and pass its streams and signals on unchanged, until it ends.

    On Linux the server gets SIGTERM if this process is killed. Elsewhere the end of its stdin tells
    it. Call it in the main thread.

    Args:
        command: The command of the server.
        recorder: Records the messages and stderr.
        stdin: The descriptor of the host's messages.
        stdout: The descriptor for the server's messages.
        stderr: The descriptor for the server's stderr.

    Returns:
        The exit code of the server; negative for a signal.

    Raises:
        OSError: The server cannot be started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        close_fds=False,
        preexec_fn=_end_with_parent(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    restore = _forward_signals(process)
    connection = recorder.connection()
    log = _StderrLog(connection)
    messages = _Messages(connection)
    # Each thread owns its two descriptors, and closes them at the end.
    relays = [
        _relay(stdin, os.dup(process.stdin.fileno()), messages.of_client),
        _relay(os.dup(process.stdout.fileno()), stdout, messages.of_server),
        _relay(os.dup(process.stderr.fileno()), stderr, log),
    ]
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()
    try:
        code = process.wait()
        for relay in relays[1:]:
            relay.join(_LAST_OUTPUT)  # a process that the server has started may hold the pipe
    finally:
        restore()
    connection.end(code)
    return code


class _Messages:
    """Splits the bytes of both directions into messages, and records them."""

    def __init__(self, connection: RecordedConnection) -> None:
        self._connection = connection
        self._from_client = LineSplitter()
        self._from_server = LineSplitter()

    def of_client(self, chunk: bytes) -> None:
        """Record bytes of the client; b"" at the end."""
        splitter = self._from_client
        if frames := splitter.feed(chunk) if chunk else splitter.close():
            self._connection.frames("client", frames)

    def of_server(self, chunk: bytes) -> None:
        """Record bytes of the server; b"" at the end."""
        splitter = self._from_server
        if frames := splitter.feed(chunk) if chunk else splitter.close():
            self._connection.frames("server", frames)


class _StderrLog:
    """Records whole lines of stderr."""

    def __init__(self, connection: RecordedConnection) -> None:
        self._connection = connection
        self._lines = LineSplitter(_STDERR_LINE)

    def __call__(self, chunk: bytes) -> None:
        lines = self._lines.feed(chunk) if chunk else self._lines.close()
        if lines:
            text = b"\n".join(lines).decode("utf-8", "backslashreplace")
            self._connection.stderr(f"{text}\n")


def _relay(source: int, target: int, record: Callable[[bytes], None]) -> threading.Thread:
    """Start to pass bytes on. At the end of one side the other one is closed."""

    def run() -> None:
        with contextlib.suppress(OSError):  # the reader has gone, and the writer learns it too
            while chunk := os.read(source, _CHUNK):
                record(chunk)
                rest = memoryview(chunk)
                while rest:
                    rest = rest[os.write(target, rest) :]
        record(b"")
        for descriptor in (source, target):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def _forward_signals(process: subprocess.Popen[bytes]) -> Callable[[], None]:
    """Send the server the signals that this process gets. Returns what undoes it."""
    is_at_terminal = os.isatty(2)
    before = {}

    def forward(number: int, _frame: object) -> None:
        process.send_signal(number)

    def ignore(number: int, _frame: object) -> None:
        """The terminal has sent the server the same signal."""

    for name in _FORWARDED:
        number = getattr(signal, name, None)
        if number is not None:
            is_sent_twice = is_at_terminal and name in _OF_TERMINAL
            before[number] = signal.signal(number, ignore if is_sent_twice else forward)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore


def _end_with_parent() -> Callable[[], None] | None:
    """Return what makes a new process get SIGTERM when its parent ends; None if that is not
    supported here.
    """
    if sys.platform != "linux":
        return None
    import ctypes  # late: on Linux only

    prctl = ctypes.CDLL(None).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    return ask


def end_like(code: int) -> None:
    """End this process as a child ended that has this exit code: with the code, or by the same
    signal.
    """
    sys.stderr.flush()
    if code < 0:
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        with contextlib.suppress(OSError):
            os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)  # a thread may still wait for the host's messages

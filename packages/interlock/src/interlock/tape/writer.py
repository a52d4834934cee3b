"""The writer of tapes: it appends messages, stderr and HTTP heads to a file, redacted and in a hash
chain.

Lines are only ever appended. One recorder at a time writes to a file: while another one holds it, a
file with a number in its name is taken instead. If the disk is full, recording stops with a warning
in the log, and the conversation goes on.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..logs import limited
from ..store.files import open_private, try_lock
from ..version import VERSION
from ..wire.jsonrpc import Frame
from .format import (
    FORMAT_VERSION,
    ConnectionEnd,
    HttpHead,
    Sender,
    StderrText,
    TapeError,
    TapeHeader,
    chain_line,
    decode_line,
    encode_end,
    encode_frame,
    encode_header,
    encode_http_head,
    encode_stderr,
    unchain_line,
)
from .frame_redaction import FrameRedactor

_log = limited("interlock.tape")
_MOST_FILES = 100  # recordings of one name at a time
_BLOCK = 64 * 1024  # bytes


class TapeWriter:
    """A tape file that is being written. All methods may be called from any thread.

    Args:
        path: The file. If it exists, a new section is appended.
        about: Members for the header: what is recorded.
        secrets: Values that are redacted wherever they occur, besides those with the shape of a
            key and those whose name says that they are secret.
        clock: Returns monotonic seconds.
        wall_clock: Returns seconds of the wall clock.

    Raises:
        OSError: The file cannot be written.
        TapeError: The file exists, and is not a tape.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        about: Mapping[str, Any] | None = None,
        secrets: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.redactor = FrameRedactor(secrets)
        self.failure = ""  # why recording stopped
        self._clock = clock
        self._lock = threading.Lock()
        self._connections = 0
        self._exchanges = 0
        self.path, self._descriptor = _open(Path(path))
        try:
            self._chain, is_torn = _last_chain(self.path, self._descriptor)
            if is_torn:
                os.write(self._descriptor, b"\n")
            self._start = clock()
            header = TapeHeader(
                self.redactor.data({"recorder": f"interlock {VERSION}", **(about or {})}),
                FORMAT_VERSION,
                wall_clock(),
            )
            self._append([encode_header(header)])
        except BaseException:
            os.close(self._descriptor)
            raise

    def connection(self) -> RecordedConnection:
        """Start to record another connection."""
        with self._lock:
            self._connections += 1
            return RecordedConnection(self, str(self._connections))

    def next_exchange(self) -> int:
        """The number for another HTTP exchange."""
        with self._lock:
            self._exchanges += 1
            return self._exchanges

    def close(self) -> None:
        """End the recording. Later messages are not recorded."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, make: Callable[[float], Iterable[bytes]]) -> None:
        """Append lines; `make` is called with the seconds since recording began. It never raises
        OSError.
        """
        with self._lock:
            if self._descriptor < 0 or self.failure:
                return
            try:
                self._append(make(self._clock() - self._start))
            except OSError as bad:
                self.failure = bad.strerror or str(bad)
                _log.warning(
                    "Recording to %s has stopped: %s. The connection goes on.",
                    self.path,
                    self.failure,
                )

    def _append(self, bodies: Iterable[bytes]) -> None:
        lines = []
        for body in bodies:
            line, self._chain = chain_line(body, self._chain)
            lines.append(line)
        if not lines:
            return
        lines.append(b"")
        data = memoryview(b"\n".join(lines))
        while data:
            data = data[os.write(self._descriptor, data) :]


class RecordedConnection:
    """One connection of a recording. It is a tap for transports: call it with the sender and the
    message.
    """

    def __init__(self, recorder: TapeWriter, name: str) -> None:
        self.name = name
        self._recorder = recorder

    def __call__(self, sender: str, frame: Frame) -> None:
        """Record a message."""
        self.frames("client" if sender == "client" else "server", [frame])

    def frames(self, sender: Sender, frames: Sequence[Frame], exchange: int = 0) -> None:
        """Record messages that were read together. `exchange` is the number of their HTTP
        exchange.
        """
        redact = self._recorder.redactor.frame
        name = self.name
        self._recorder.write(
            lambda at: [encode_frame(sender, redact(frame), at, name, exchange) for frame in frames]
        )

    def next_exchange(self) -> int:
        """The number for another HTTP exchange."""
        return self._recorder.next_exchange()

    def stderr(self, text: str) -> None:
        """Record what the server wrote to stderr: whole lines, so that no secret is cut in two."""
        redact = self._recorder.redactor.text
        self._recorder.write(lambda at: [encode_stderr(StderrText(redact(text), at, self.name))])

    def http_request(
        self, exchange: int, method: str, target: str, headers: Iterable[tuple[str, str]]
    ) -> None:
        """Record the head of an HTTP request."""
        redactor = self._recorder.redactor
        self._recorder.write(
            lambda at: [
                encode_http_head(
                    HttpHead(
                        request=f"{method} {redactor.text(target)}",
                        headers=redactor.headers(headers),
                        at=at,
                        connection=self.name,
                        exchange=exchange,
                    )
                )
            ]
        )

    def http_response(self, exchange: int, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Record the head of an HTTP response."""
        redactor = self._recorder.redactor
        self._recorder.write(
            lambda at: [
                encode_http_head(
                    HttpHead(
                        status=status,
                        headers=redactor.headers(headers),
                        at=at,
                        connection=self.name,
                        exchange=exchange,
                    )
                )
            ]
        )

    def end(self, code: int | None = None) -> None:
        """Record the end of the connection. `code` is the exit code of the server's process."""
        self._recorder.write(lambda at: [encode_end(ConnectionEnd(code, at, self.name))])


def _open(path: Path) -> tuple[Path, int]:
    """Open a file to append to it, and lock it. If another recorder has it, take the next name."""
    for number in range(1, _MOST_FILES + 1):
        numbered = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        descriptor = open_private(numbered, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            if try_lock(descriptor):
                return numbered, descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise OSError(f"{path} and {_MOST_FILES - 1} files beside it are held by other recorders")


def _last_chain(path: Path, descriptor: int) -> tuple[bytes, bool]:
    """Find the chain value of the last whole line of a tape, and whether a line after it is torn.

    Raises TapeError for a file that is not a recorded tape.
    """
    size = os.fstat(descriptor).st_size
    if not size:
        return b"", False
    with open(path, "rb") as file:
        first = file.readline()
        try:
            header = decode_line(first)
        except TapeError:
            header = None
        if not isinstance(header, TapeHeader) or not header.version:
            raise TapeError(f"{path} exists, and is not a recorded tape: give another file")
        read = 0
        rest = b""
        while read < size:
            read = min(size, max(2 * read, _BLOCK))
            file.seek(size - read)
            rest = file.read(read)
            for line in reversed(rest.split(b"\n")[:-1]):
                _, value = unchain_line(line)
                if value:
                    return value, not rest.endswith(b"\n")
    return b"", not rest.endswith(b"\n")

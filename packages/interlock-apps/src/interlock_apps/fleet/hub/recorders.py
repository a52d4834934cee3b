"""What records the messages of a server: a tape file, the buffer of the last messages, or both."""

from __future__ import annotations

from typing import Any

from interlock.tape import Recorder, TapeBuffer

from .connect import LossDetector


class ServerRecorder:
    """Records the connections of one server. See `record=` of a Client.

    Args:
        server: The id of the server.
        recorder: The tape file; None for no file.
        buffer: Keeps the last messages.
    """

    def __init__(self, server: str, recorder: Recorder | None, buffer: TapeBuffer) -> None:
        self._server = server
        self._recorder = recorder
        self._buffer = buffer

    def connection(self) -> Any:
        """Start to record a connection; return its tap."""
        keep = self._buffer.connection(self._server)
        if self._recorder is None:
            return keep
        write = self._recorder.connection()

        def both(sender: str, frame: bytes) -> None:
            keep(sender, frame)
            write(sender, frame)

        return both

    def channel(self, channel: Any) -> Any:
        """Not for servers. Raises TypeError."""
        raise TypeError("the messages of a client are recorded here")

    def endpoint(self, app: Any) -> Any:
        """Not for servers. Raises TypeError."""
        raise TypeError("the messages of a client are recorded here")


def recorder_of(
    server: str, target: Any, recorder: Recorder | None, buffer: TapeBuffer | None
) -> Any:
    """Return what records a server's messages; None for nothing.

    A transport without a tap is not buffered. With a recorder it is an error of the client.
    """
    has_tap = not isinstance(target, LossDetector) or hasattr(target, "tap")
    if buffer is None or not has_tap:
        return recorder
    return ServerRecorder(server, recorder, buffer)

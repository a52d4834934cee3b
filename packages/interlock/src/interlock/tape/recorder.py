"""The recorder: records the connections of clients, servers and hosts in a tape file."""

from __future__ import annotations

from typing import Any

from ..transport.channel import Channel
from .conversation import taped
from .writer import TapeWriter


class Recorder(TapeWriter):
    """A tape file that is being written. Give it as `record=` to a `Client`, to `Server.run` or to
    a host. All methods may be called from any thread.

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

    def channel(self, channel: Channel) -> Channel:
        """Return a channel of a server whose messages are recorded."""
        return taped(channel, self.connection(), "server")

    def endpoint(self, app: Any) -> Any:
        """Return an HTTP endpoint whose exchanges are recorded."""
        from .http import RecordedEndpoint  # late: only for servers over HTTP

        return RecordedEndpoint(app, self)

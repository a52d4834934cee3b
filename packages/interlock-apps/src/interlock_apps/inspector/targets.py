"""Targets of the inspector: what the command line named. A page cannot add one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from interlock import ClientTransport
from interlock.tape import RecordedConnection

AUTO = "auto"
"""The revision of a connection for which the client and the server negotiate one."""

OpenTransport = Callable[[RecordedConnection], ClientTransport]
"""Makes the transport to a target. Its messages and its stderr are recorded."""


class InspectorTarget(Struct, frozen=True):
    """A server to connect to, or a tape.

    Attributes:
        name: A short name, unique in one inspector.
        shown: The target as the user named it, without secrets.
        words: The words that name the target in `interlock call`; empty for a tape.
        transport: Makes the transport; None for a tape.
        tape: The file of a recorded conversation; None for a server.
        revision: The revision to ask for at first.
        url: The URL of the server, if it is reached by HTTP. It may have secrets.
        account: The account of the stored login at that server.
    """

    name: str
    shown: str
    words: tuple[str, ...] = ()
    transport: OpenTransport | None = None
    tape: Path | None = None
    revision: str = AUTO
    url: str = ""
    account: str = ""

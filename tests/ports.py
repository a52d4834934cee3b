"""Free ports, for servers that need a port number."""

from __future__ import annotations

import secrets
import socket

_FIRST = 10_240
_PAST = 32_768  # systems choose the ports of outgoing connections from here on


def free_port() -> int:
    """Return a free port of loopback that no outgoing connection takes before it is used, and that
    is hardly chosen twice by concurrent tests.
    """
    while True:
        port = _FIRST + secrets.randbelow(_PAST - _FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port

"""Free ports, for servers that need a port number."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a free port of loopback that the system chooses, so that concurrent tests get
    different ports."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

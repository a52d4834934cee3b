"""Ports that are free, for servers that want to be told one."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of loopback that nobody listens on, of the system's choosing, so that tests that run
    at the same time get different ones."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

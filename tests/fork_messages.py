"""Messages of the fork server: values with file descriptors, over a Unix socket."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Sequence
from typing import Any

MAX_FDS = 64
"""The largest number of file descriptors that a message passes."""

SIZE = 4
"""The number of bytes that hold the length of a message."""


def send(channel: socket.socket, value: object, fds: Sequence[int] = ()) -> None:
    """Send a value and file descriptors."""
    body = pickle.dumps(value)
    socket.send_fds(channel, [len(body).to_bytes(SIZE, "big")], fds)
    channel.sendall(body)


def receive(channel: socket.socket) -> tuple[Any, list[int]] | None:
    """Return a value and its file descriptors, or None at the end of the socket."""
    head, fds, _, _ = socket.recv_fds(channel, SIZE, MAX_FDS)
    if len(head) < SIZE:
        return None
    body = bytearray()
    while len(body) < int.from_bytes(head, "big"):
        body += channel.recv(1 << 16)
    return pickle.loads(body), fds

"""The ports of the web site."""

from __future__ import annotations

import asyncio
import socket

import pytest

from interlock import listening_socket


async def test_answers_are_sent_at_once() -> None:
    """No connection waits for the other side's word before it sends the rest of an answer: that
    made each file of the page 40 ms late.
    """
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def met(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set_result(
            writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        )
        writer.close()

    sock = listening_socket("127.0.0.1", 0)
    async with await asyncio.start_server(met, sock=sock):
        reader, writer = await asyncio.open_connection(*sock.getsockname())
        await reader.read()
        writer.close()
    assert await accepted


def test_a_port_that_is_taken_is_named() -> None:
    """With words."""
    with listening_socket("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
            listening_socket("127.0.0.1", port)

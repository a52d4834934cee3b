"""The HTTP server for measurements of clients: it uses no SDK and gives one fixed answer to each
request. Its own cost is not counted.

In the handshake era it has one session and answers each request with an event stream; it has no GET
stream.
"""

from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec

import httptools
from fixed_server import answers

STATELESS = b"io.modelcontextprotocol/protocolVersion"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
NO_STREAM = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST, DELETE\r\nContent-Length: 0\r\n\r\n"
ENDED = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
TABLES = {
    stateless: {method: end.rstrip() for method, end in answers(stateless).items()}
    for stateless in (False, True)
}


def answer(method: bytes, body: bytes) -> bytes:
    """Return the whole answer to a request."""
    if method != b"POST":
        return NO_STREAM if method == b"GET" else ENDED
    message = json.loads(body)
    if "id" not in message:
        return ACCEPTED
    stateless = STATELESS in body
    result = (
        b'{"jsonrpc":"2.0","id":'
        + json.dumps(message["id"]).encode()
        + TABLES[stateless][message["method"]]
    )
    if stateless:
        return (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (len(result), result)
        )
    event = b"event: message\r\ndata: " + result + b"\r\n\r\n"
    session = b"Mcp-Session-Id: the-only-one\r\n" if message["method"] == "initialize" else b""
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
        b"%bTransfer-Encoding: chunked\r\n\r\n"
    )
    return head % session + b"%x\r\n%b\r\n0\r\n\r\n" % (len(event), event)


class Connection(asyncio.Protocol):
    """One connection of a client."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.body = b""

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.transport.write(answer(self.parser.get_method(), self.body))
        self.body = b""


async def main() -> None:
    """Listen on a free port, print it, and answer until the process is killed."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    if find_spec("uvloop"):
        import uvloop

        uvloop.run(main())
    else:
        asyncio.run(main())

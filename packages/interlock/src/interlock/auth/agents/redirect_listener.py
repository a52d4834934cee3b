"""The redirect listener: a loopback server that takes one answer of a login (RFC 8252, 7.3)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import re
from collections.abc import Collection

from .interface import belongs, is_answer, is_refusal

_LONGEST_HEAD = 32 * 1024  # bytes; codes and states of some providers are long
_MOST_GUESTS = 32  # concurrent connections; the oldest is closed when there are more
_REQUEST = re.compile(rb"GET (/[!-~]*) HTTP/1\.[01]")
_HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\r\n\0]*?)[ \t]*")

_STYLE = """
:root { color-scheme: light dark; --paper: #f4f5f3; --ink: #1c2321; }
@media (prefers-color-scheme: dark) { :root { --paper: #131715; --ink: #e8edea; } }
body {
  margin: 0;
  padding: 4rem 1.5rem;
  background: var(--paper);
  color: var(--ink);
  font: 1.125rem/1.5 system-ui, sans-serif;
}
main { max-width: 32rem; margin: auto; }
h1 { font-size: 1.375rem; line-height: 1.3; }
"""
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = (
    "Content-Type: text/html; charset=utf-8",
    "Cache-Control: no-store",
    f"Content-Security-Policy: {_POLICY}",
    "Cross-Origin-Resource-Policy: same-origin",
    "Referrer-Policy: no-referrer",
    "X-Content-Type-Options: nosniff",
    "X-Frame-Options: DENY",
    "Connection: close",
)


def _page(status: str, title: str, words: str) -> bytes:
    html = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>{words}</p>\n</main>\n</body>\n</html>\n"
    ).encode()
    head = "\r\n".join([f"HTTP/1.1 {status}", *_HEADERS, f"Content-Length: {len(html)}"])
    return head.encode() + b"\r\n\r\n" + html


# A response never contains text of the request.
_CLOSE = "You may close this window and go back to the program."
ARRIVED = _page("200 OK", "The answer has arrived", f"The program continues with it. {_CLOSE}")
REFUSED = _page("200 OK", "The log-in was not completed", f"See the program for details. {_CLOSE}")
OVER = _page("200 OK", "This log-in is over", f"Its answer has already arrived. {_CLOSE}")
ANOTHER = _page(
    "400 Bad Request",
    "This answer belongs to another log-in",
    "The program is still waiting for its own answer. Please use the newest window.",
)
NOTHING = _page(
    "404 Not Found",
    "Page not found",
    "A program listens here only for the answer to a log-in.",
)
TOO_LONG = _page(
    "431 Request Header Fields Too Large",
    "This request is too long",
    "A program listens here for the answer to a log-in.",
)


def query_of(head: bytes, path: str, hosts: Collection[str]) -> str | None:
    """Return the query of a request to this path, or None for any other request.

    Args:
        head: The whole head of the request.
        path: The path of the redirect URI.
        hosts: The accepted values of Host, in lower case. They do not include other names that
            resolve to this machine.
    """
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    request = _REQUEST.fullmatch(first)
    headers = [_HEADER.fullmatch(line) for line in lines]
    if request is None or None in headers:
        return None
    named = [
        header[2].decode("latin-1").lower()
        for header in headers
        if header is not None and header[1].lower() == b"host"
    ]
    if len(named) != 1 or named[0] not in hosts:
        return None
    target, _, query = request[1].decode("ascii").partition("?")
    return query if target == path else None


class RedirectListener:
    """A listener for one login. The first authorization response with the right state ends the
    wait; all other requests are ignored.

    Attributes:
        port: The port that it listens at.
        others: The number of responses to other logins that arrived meanwhile.
    """

    def __init__(self, path: str, *, patience: float = 10.0) -> None:
        self.port = 0
        self.others = 0
        self._path = path
        self._patience = patience
        self._hosts: set[str] = set()
        self._servers: list[asyncio.Server] = []
        self._guests: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._state: str | None = None
        self._arrival: asyncio.Future[str] | None = None

    async def open(self, host: str, port: int, names: Collection[str] = ()) -> None:
        """Listen. `names` are further accepted values of Host.

        Raises OSError.
        """
        is_name = host == "localhost" or host.endswith(".localhost")
        first = "127.0.0.1" if is_name else host
        self._servers.append(
            await asyncio.start_server(self._welcome, first, port, limit=_LONGEST_HEAD)
        )
        self.port = self._servers[0].sockets[0].getsockname()[1]
        if is_name:  # a browser may resolve the name to either address
            with contextlib.suppress(OSError):
                self._servers.append(
                    await asyncio.start_server(self._welcome, "::1", self.port, limit=_LONGEST_HEAD)
                )
        own = {"127.0.0.1", "localhost", "[::1]"}
        self._hosts = (
            {f"{name}:{self.port}" for name in own}
            | {name.lower() for name in names}
            | (own if self.port == 80 else set())
        )

    def expect(self, state: str | None) -> asyncio.Future[str]:
        """Wait from now on for the response with this state; None accepts any state.

        The result of the returned future is the query string.
        """
        self._state = state
        self._arrival = asyncio.get_running_loop().create_future()
        return self._arrival

    async def aclose(self) -> None:
        """Stop listening, and close all connections."""
        servers = self._servers
        self._servers = []
        for server in servers:
            server.close()
        guests = list(self._guests.items())
        for task, _ in guests:
            task.cancel()
        await asyncio.gather(*(task for task, _ in guests), return_exceptions=True)
        for server in servers:
            await server.wait_closed()

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._guests) >= _MOST_GUESTS:
            eldest = next(iter(self._guests))
            self._guests.pop(eldest).transport.abort()
            eldest.cancel()
        task = asyncio.get_running_loop().create_task(self._answer(reader, writer))
        self._guests[task] = writer
        task.add_done_callback(lambda task: self._guests.pop(task, None))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read a request, respond, and close. A client that sends too slowly is disconnected."""
        query: str | None = None
        try:
            async with asyncio.timeout(self._patience):
                try:
                    head = await reader.readuntil(b"\r\n\r\n")
                except asyncio.LimitOverrunError:
                    page = TOO_LONG
                else:
                    query, page = self._judge(query_of(head, self._path, self._hosts))
                writer.write(page)
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, EOFError, OSError):
            pass
        finally:
            writer.transport.abort()  # no effect if it is already closed
            if query is not None and self._arrival is not None and not self._arrival.done():
                self._arrival.set_result(
                    query
                )  # only after the page was sent, because the program may exit now

    def _judge(self, query: str | None) -> tuple[str | None, bytes]:
        """The query if it is the expected response, and the page for the browser."""
        if query is None or not is_answer(query):
            return None, NOTHING
        if not belongs(query, self._state):
            self.others += 1
            return None, ANOTHER
        if self._arrival is None or self._arrival.done():
            return None, OVER
        return query, REFUSED if is_refusal(query) else ARRIVED

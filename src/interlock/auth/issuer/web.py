"""The little of HTTP that an authorization server needs: what was asked, what is replied, and the ASGI app between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from ...logs import limited
from ...protocol.sessions import StoreError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LONGEST_BODY = 64 * 1024  # bytes
LONGEST_QUERY = 16 * 1024  # characters
MOST_FIELDS = 64
BODY_SECONDS = 30.0
SEVERAL = frozenset(
    {"resource", "audience"}
)  # what may be said more than once (RFC 8707, 2; RFC 8693, 2.1)
FORM = "application/x-www-form-urlencoded"
NO_STORE = ("cache-control", "no-store")
QUIET_PAGE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

_log = limited("interlock.auth")


class BadForm(ValueError):
    """Parameters that cannot be read; the words say why."""


class Asked(Struct, frozen=True):
    """One request, whole: `path` without the query, `query` as it came, names of `headers` in lower case, `address` of the client."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    body: bytes = b""
    address: str = ""
    secure: bool = False

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the query. One without a value is as good as absent, several of `SEVERAL` are joined by blanks
        (RFC 6749, 3.1). Raises BadForm where another comes twice, and for what cannot be read."""
        if len(self.query) > LONGEST_QUERY:
            raise BadForm(f"the query is longer than {LONGEST_QUERY} characters")
        return _fields(self.query)

    @property
    def form(self) -> dict[str, str]:
        """The parameters of the body, as those of the query. Raises BadForm, also where the body is no form."""
        if self.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            raise BadForm(f"the body must be {FORM}")
        if len(self.body) > LONGEST_BODY:
            raise BadForm(f"the body is longer than {LONGEST_BODY} bytes")
        try:
            return _fields(self.body.decode("ascii"))
        except UnicodeDecodeError:
            raise BadForm("the body is not percent-encoded") from None

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies, the first where there are several of one name: a browser sends the closest first (RFC 6265, 5.4)."""
        found: dict[str, str] = {}
        for pair in self.headers.get("cookie", "").split(";"):
            name, equals, value = pair.strip().partition("=")
            if equals:
                found.setdefault(name, value.strip('"'))
        return found


def _fields(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except UnicodeDecodeError:
        raise BadForm("a parameter is not UTF-8") from None
    except ValueError:
        raise BadForm(f"there are more than {MOST_FIELDS} parameters") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if any(c < " " and c not in "\t\r\n" for c in value):
            raise BadForm(f"{name[:40]} holds a control character")
        if name not in found:
            found[name] = value
        elif name in SEVERAL:
            found[name] = f"{found[name]} {value}"
        else:
            raise BadForm(f"{name[:40]} comes more than once")
    return {name: value for name, value in found.items() if value}


class Reply(Struct, frozen=True):
    """One response, whole."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def adding(self, *headers: tuple[str, str]) -> Reply:
        """The same with more headers behind."""
        return Reply(self.status, (*self.headers, *headers), self.body)

    def header(self, name: str) -> str | None:
        """The first header of a name, in any case; None where there is none."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)


def json(value: Any, status: int = 200, headers: Iterable[tuple[str, str]] = (NO_STORE,)) -> Reply:
    """A JSON document; nobody keeps it, unless `headers` say otherwise."""
    return Reply(
        status, (("content-type", "application/json"), *headers), msgspec.json.encode(value)
    )


def page(
    html: str,
    status: int = 200,
    *,
    policy: str = QUIET_PAGE,
    headers: Iterable[tuple[str, str]] = (),
) -> Reply:
    """A page for a person: `html` whole and escaped, `policy` its Content-Security-Policy; nobody frames it, nobody keeps it."""
    shields = (
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", policy),
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        (
            "referrer-policy",
            "same-origin",
        ),  # not less: a browser would then hide the Origin of our own forms as well
        NO_STORE,
    )
    return Reply(status, (*shields, *headers), html.encode())


def redirect(url: str, status: int = 303, headers: Iterable[tuple[str, str]] = ()) -> Reply:
    """Send the browser to an address: 303, so that a form is not sent along. Raises ValueError for what no header may say."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"no address to send a browser to: {url!r}")
    return Reply(
        status, (("location", url), ("referrer-policy", "no-referrer"), NO_STORE, *headers)
    )


def plain(status: int, words: str, headers: Iterable[tuple[str, str]] = ()) -> Reply:
    """A line of text."""
    return Reply(
        status, (("content-type", "text/plain; charset=utf-8"), NO_STORE, *headers), words.encode()
    )


async def converse(
    answer: Callable[[Asked], Awaitable[Reply]],
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    closing: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """One ASGI conversation: `answer` is given the request whole, bounded in size and time; `closing` runs when the app ends."""
    if scope["type"] == "lifespan":
        await _live(receive, send, closing)
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
    elif scope["type"] == "http":
        read = await _read(scope, receive)
        if read is not None:
            await _write(
                await _reply(answer, read) if isinstance(read, Asked) else read,
                send,
                head=scope["method"] == "HEAD",
            )


async def _live(
    receive: Receive, send: Send, closing: Callable[[], Awaitable[None]] | None
) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            if closing is not None:
                await closing()
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _read(scope: Scope, receive: Receive) -> Asked | Reply | None:
    """The request whole; the refusal of one that is too large or too slow; None where the client has gone."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        # Joined as HTTP has it, so that a doubled Authorization is one that nobody can read, not the first or the last of two.
        headers[key] = (
            text
            if key not in headers
            else f"{headers[key]}{'; ' if key == 'cookie' else ', '}{text}"
        )
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > LONGEST_BODY:
                    return plain(
                        413,
                        f"A request has at most {LONGEST_BODY} bytes.",
                        [("connection", "close")],
                    )
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        return plain(
            408,
            f"The request did not come within {BODY_SECONDS:g} seconds.",
            [("connection", "close")],
        )
    client = scope.get("client")
    return Asked(
        method=scope["method"],
        path=scope["path"],
        query=scope.get("query_string", b"").decode("latin-1"),
        headers=headers,
        body=bytes(body),
        address=client[0] if client else "",
        secure=scope.get("scheme") == "https",
    )


async def _reply(answer: Callable[[Asked], Awaitable[Reply]], asked: Asked) -> Reply:
    try:
        return await answer(asked)
    except StoreError as bad:
        _log.error("the authorization server cannot use its vault: %s", bad)
        told = {
            "error": "temporarily_unavailable",
            "error_description": "The authorization server cannot reach its store.",
        }
        return json(told, 503, (NO_STORE, ("retry-after", "10")))
    except Exception:  # whatever it is, the client hears that it is not its fault, and no word of what went wrong inside
        _log.exception("the authorization server has failed at %s %s", asked.method, asked.path)
        return json(
            {"error": "server_error", "error_description": "The authorization server has failed."},
            500,
        )


async def _write(reply: Reply, send: Send, *, head: bool) -> None:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers]
    headers.append((b"content-length", b"%d" % len(reply.body)))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else reply.body})

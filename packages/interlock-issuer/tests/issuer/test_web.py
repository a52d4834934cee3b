"""The ASGI boundary of the issuer: bodies within bounds, headers as they are, failures without
details.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response

from interlock.store import StoreError
from interlock_issuer.http import endpoints
from interlock_issuer.http.endpoints import Boundary, Endpoint
from interlock_issuer.http.parameters import (
    FORM,
    BadParameters,
    form_parameters,
    header,
    parse,
    query_parameters,
)
from interlock_issuer.http.responses import (
    html_response,
    redirect_response,
    text_response,
    with_headers,
)
from tests.issuer.exchange import Message, Reply, call
from tests.issuer.office import Office, said


def noting(seen: list[tuple[Request, bytes]]) -> Boundary:
    """An app that notes what it gets."""

    async def answer(request: Request) -> Response:
        seen.append((request, await request.body()))
        return text_response(200, "fine")

    return Boundary(Endpoint(answer))


async def test_a_request_whole() -> None:
    """A body in pieces comes whole; a header that comes twice is one that nobody can read."""
    seen: list[tuple[Request, bytes]] = []
    headers = (
        (b"Cookie", b"a=1"),
        (b"cookie", b"b=2"),
        (b"Authorization", b"one"),
        (b"authorization", b"two"),
    )
    reply = await call(noting(seen), b"ab", b"", b"cd", headers=headers)
    ((request, body),) = seen
    assert (reply.status, reply.body, reply.header("content-length")) == (200, b"fine", "4")
    assert body == b"abcd"
    assert request.cookies == {"a": "1", "b": "2"}
    assert header(request, "authorization") == "one, two"
    assert header(request, "dpop") is None


async def test_bounds() -> None:
    """A large body is refused, one whose client leaves is dropped, and HEAD has no body."""
    seen: list[tuple[Request, bytes]] = []
    assert (await call(noting(seen), *[b"x" * 1024] * 65)).status == 413
    assert (await call(noting(seen), b"x", None)).status == 0
    assert not seen
    head = await call(noting(seen), method="HEAD")
    assert (head.body, head.header("content-length")) == (b"", "4")


async def test_a_slow_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is waited for so long and no longer."""
    monkeypatch.setattr(endpoints, "BODY_SECONDS", 0.0)
    forever = asyncio.Event()

    async def receive() -> Message:
        await forever.wait()
        return {}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await noting([])({"type": "http", "method": "POST", "path": "/", "headers": ()}, receive, send)
    assert sent[0]["status"] == 408


async def test_a_failure_inside(caplog: pytest.LogCaptureFixture) -> None:
    """The client hears that something failed, the log hears what."""

    async def fails(request: Request) -> Response:
        raise RuntimeError("the secret is 42")

    async def store_fails(request: Request) -> Response:
        raise StoreError("redis://:password@10.0.0.1 is away")

    for answer, status, error in (
        (fails, 500, "server_error"),
        (store_fails, 503, "temporarily_unavailable"),
    ):
        reply = await call(Boundary(Endpoint(answer)))
        told = said(reply, status)
        assert told["error"] == error
        assert "42" not in str(told)
        assert "password" not in str(told)
    assert "the secret is 42" in caplog.text


async def test_lifespan_and_sockets() -> None:
    """The app closes what it has opened; a WebSocket is closed."""
    office = Office()
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await office.issuer({"type": "lifespan"}, receive, send)
    await office.issuer({"type": "websocket", "path": "/", "headers": ()}, receive, send)
    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
        "websocket.close",
    ]
    reply = await call(office.issuer, method="GET", path="/.well-known/oauth-authorization-server")
    assert said(reply)["issuer"]


@pytest.mark.parametrize(
    "host, status",
    [("127.0.0.1:9", 200), ("[::1]:9", 200), ("localhost", 200), ("evil.example", 403), ("[", 403)],
)
async def test_dns_rebinding(host: str, status: int) -> None:
    """On loopback no other name than those of this machine is answered (SEC-01)."""
    office = Office("http://127.0.0.1:9")
    headers = ((b"host", host.encode()),)
    reply = await call(office.issuer, method="GET", path="/jwks", headers=headers)
    assert reply.status == status


async def reading(body: bytes, kind: str = FORM) -> dict[str, str]:
    """The form in a body."""
    found: list[dict[str, str]] = []

    async def answer(request: Request) -> Response:
        found.append(await form_parameters(request))
        return text_response(200, "fine")

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    async def send(message: Message) -> None:
        pass

    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b""}
    await Endpoint(answer)(scope | {"headers": [(b"content-type", kind.encode())]}, receive, send)
    return found[0]


def query(text: str) -> dict[str, str]:
    """The parameters in a query."""
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": []}
    return query_parameters(Request(scope | {"query_string": text.encode()}))


@given(st.binary(max_size=200) | st.text("a=&%+;20\u00e4\n", max_size=60).map(str.encode))
async def test_forms_are_read_or_refused(body: bytes) -> None:
    """Whatever comes: names and values, none empty, none with control characters, or an error."""
    try:
        form = await reading(body, f"{FORM}; charset=utf-8")
    except BadParameters:
        return
    assert all(value and "\0" not in value for value in form.values())


@given(
    st.dictionaries(
        st.text("abc_", min_size=1),
        st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1),
        max_size=8,
    )
)
def test_parameters_come_through(told: dict[str, str]) -> None:
    """As they were sent."""
    assert parse("&".join(f"{k}={quote(v, safe='')}" for k, v in told.items())) == told


def test_what_may_come_twice() -> None:
    """A resource may; nothing else, even where both are the same."""
    assert query("resource=https://a&resource=https://b") == {"resource": "https://a https://b"}
    with pytest.raises(BadParameters):
        query("a=1&a=1")
    assert query("a=") == {}
    with pytest.raises(BadParameters):
        query("a=&a=1")


async def test_what_is_no_form() -> None:
    """Another media type, and too many or giant parameters, are refused."""
    with pytest.raises(BadParameters, match="must be"):
        await reading(b"a=1", "application/json")
    with pytest.raises(BadParameters, match="longer"):
        query("&".join(f"a{n}={'x' * 1000}" for n in range(20)))
    with pytest.raises(BadParameters, match="more than"):
        await reading(b"&".join(b"a%d=1" % n for n in range(65)))


@pytest.mark.parametrize("url", ["https://a\r\nx: y", "https://a b", "https://ä", "https://a\t"])
def test_no_header_is_smuggled(url: str) -> None:
    """What cannot be an address is no place to redirect to."""
    with pytest.raises(ValueError, match="cannot be redirected"):
        redirect_response(url)


def test_pages_are_shielded() -> None:
    """Nobody frames or caches them, and no script runs in them."""
    response = html_response("<p>x</p>")
    reply = Reply.of(response)
    policy = reply.header("Content-Security-Policy") or ""
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    names = ("x-frame-options", "x-content-type-options", "cache-control")
    assert [reply.header(name) for name in names] == ["DENY", "nosniff", "no-store"]
    more = with_headers(with_headers(response, ("set-cookie", "a=b")), ("set-cookie", "c=d"))
    assert more.headers.getlist("set-cookie") == ["a=b", "c=d"]

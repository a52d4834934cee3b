"""The ASGI shell of the issuer: bodies within bounds, headers as they are, failures without words of what failed."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.auth.issuer import web
from interlock.auth.issuer.web import Asked, BadForm, Reply
from interlock.protocol.sessions import StoreError
from tests.auth.issuer.office import Office, said

Message = MutableMapping[str, Any]


async def call(
    app: Any,
    *bodies: bytes | None,
    method: str = "POST",
    headers: tuple[tuple[bytes, bytes], ...] = (),
    **scope: Any,
) -> Reply:
    """One request; a body that is None is the client going away."""
    told: Message = {"type": "http", "method": method, "path": "/", "headers": headers} | scope
    pieces = list(bodies) or [b""]
    sent: list[Message] = []

    async def receive() -> Message:
        piece = pieces.pop(0)
        return (
            {"type": "http.disconnect"}
            if piece is None
            else {"type": "http.request", "body": piece, "more_body": bool(pieces)}
        )

    async def send(message: Message) -> None:
        sent.append(message)

    await app(told, receive, send)
    if not sent:
        return Reply(0)
    start, *rest = sent
    headers_sent = tuple((name.decode(), value.decode()) for name, value in start["headers"])
    return Reply(
        start["status"], headers_sent, b"".join(message.get("body", b"") for message in rest)
    )


def seeing(seen: list[Asked]) -> Any:
    """An app that notes what it is asked."""

    async def answer(asked: Asked) -> Reply:
        seen.append(asked)
        return web.plain(200, "fine")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await web.converse(answer, scope, receive, send)

    return app


async def test_a_request_whole() -> None:
    """Body in pieces, names in lower case, who asks and how."""
    seen: list[Asked] = []
    headers = (
        (b"Content-Type", b"x/y"),
        (b"Cookie", b"a=1"),
        (b"cookie", b"b=2; a=3"),
        (b"Authorization", b"one"),
        (b"authorization", b"two"),
    )
    reply = await call(
        seeing(seen),
        b"ab",
        b"",
        b"cd",
        headers=headers,
        path="/p",
        query_string=b"q=1",
        scheme="https",
        client=("203.0.113.9", 4),
    )
    (asked,) = seen
    assert (reply.status, reply.body, reply.header("content-length")) == (200, b"fine", "4")
    assert (asked.method, asked.path, asked.query, asked.body, asked.address, asked.secure) == (
        "POST",
        "/p",
        "q=1",
        b"abcd",
        "203.0.113.9",
        True,
    )
    assert asked.cookies == {"a": "1", "b": "2"}
    assert asked.headers["authorization"] == "one, two"  # two are none that anybody can read


async def test_bounds() -> None:
    """A body that is too large is refused; of one whose client goes nothing is done; HEAD has no body, and says how long it were."""
    seen: list[Asked] = []
    assert (await call(seeing(seen), *[b"x" * 1024] * 65)).status == 413
    assert (await call(seeing(seen), b"x", None)).status == 0
    assert not seen
    head = await call(seeing(seen), method="HEAD")
    assert (head.body, head.header("content-length")) == (b"", "4")


async def test_a_slow_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is waited for so long and no longer."""
    monkeypatch.setattr(web, "BODY_SECONDS", 0.0)
    forever = asyncio.Event()

    async def receive() -> Message:
        await forever.wait()
        return {}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await seeing([])({"type": "http", "method": "POST", "path": "/", "headers": ()}, receive, send)
    assert sent[0]["status"] == 408


async def test_a_failure_inside(caplog: pytest.LogCaptureFixture) -> None:
    """The client hears that something failed, the log hears what; a store that is away is no fault of anybody's."""

    async def fails(asked: Asked) -> Reply:
        raise RuntimeError("the secret is 42")

    async def away(asked: Asked) -> Reply:
        raise StoreError("redis://:password@10.0.0.1 is away")

    for answer, status, error in (
        (fails, 500, "server_error"),
        (away, 503, "temporarily_unavailable"),
    ):

        async def app(scope: Any, receive: Any, send: Any, answer: Any = answer) -> None:
            await web.converse(answer, scope, receive, send)

        reply = await call(app)
        told = said(reply, status)
        assert told["error"] == error
        assert "42" not in str(told)
        assert "password" not in str(told)
    assert "the secret is 42" in caplog.text


async def test_lifespan_and_sockets() -> None:
    """The app ends what it has opened; a WebSocket is closed."""
    office = Office()
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await office.issuer({"type": "lifespan"}, receive, send)
    await office.issuer({"type": "websocket"}, receive, send)
    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
        "websocket.close",
    ]
    reply = await call(office.issuer, method="GET", path="/.well-known/oauth-authorization-server")
    assert said(reply)["issuer"]


@given(st.binary(max_size=200) | st.text("a=&%+;20\u00e4\n", max_size=60).map(str.encode))
def test_forms_are_read_or_refused(body: bytes) -> None:
    """Whatever comes: names and values, none empty, none with control characters, or a BadForm."""
    asked = Asked(
        "POST", "/", "", {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}, body
    )
    try:
        form = asked.form
    except BadForm:
        return
    assert all(value and "\0" not in value for value in form.values())


@given(
    st.dictionaries(
        st.text("abc_", min_size=1),
        st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1),
        max_size=8,
    )
)
def test_forms_come_through(told: dict[str, str]) -> None:
    """As they were sent."""
    query = web_encoded(told)
    assert Asked("GET", "/", query).parameters == told


def web_encoded(told: dict[str, str]) -> str:
    """A form by another way than the library's: everything is escaped."""
    return "&".join(
        f"{k}={''.join(f'%{byte:02X}' for byte in v.encode('utf-8', 'ignore'))}"
        for k, v in told.items()
    )


def test_what_may_come_twice() -> None:
    """A resource may; nothing else, even where both are the same."""
    assert Asked("GET", "/", "resource=https://a&resource=https://b").parameters == {
        "resource": "https://a https://b"
    }
    with pytest.raises(BadForm):
        _ = Asked("GET", "/", "a=1&a=1").parameters
    assert Asked("GET", "/", "a=").parameters == {}
    with pytest.raises(BadForm):
        _ = Asked("GET", "/", "a=&a=1").parameters


def test_giant_parameters() -> None:
    """They are not even read, whoever asks for them."""
    with pytest.raises(BadForm, match="longer"):
        _ = Asked("GET", "/", "&".join(f"a{n}={'x' * 1000}" for n in range(20))).parameters
    with pytest.raises(BadForm, match="longer"):
        _ = Asked("POST", "/", "", {"content-type": web.FORM}, b"a=" + b"x" * 70_000).form


@pytest.mark.parametrize("url", ["https://a\r\nx: y", "https://a b", "https://ä", "https://a\t"])
def test_no_header_is_smuggled(url: str) -> None:
    """An address that is none is no place to send anybody to."""
    with pytest.raises(ValueError, match="no address"):
        web.redirect(url)


def test_pages_are_shielded() -> None:
    """Nobody frames them, nobody keeps them, nothing runs in them."""
    reply = web.page("<p>x</p>")
    assert "frame-ancestors 'none'" in (reply.header("Content-Security-Policy") or "")
    assert "default-src 'none'" in (reply.header("content-security-policy") or "")
    assert [
        reply.header(name)
        for name in ("x-frame-options", "x-content-type-options", "cache-control")
    ] == [
        "DENY",
        "nosniff",
        "no-store",
    ]
    assert reply.adding(("set-cookie", "a=b")).header("set-cookie") == "a=b"

"""One HTTP request to an endpoint: its head, its body, and the means to respond.

Interlock's own server passes its requests to the endpoint as they are (`EndpointRequest`). A
request of another ASGI server is wrapped (`AsgiRequest`). The endpoint sees no difference.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, MutableMapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from ...exchange import Principal
from ...protocol.http import JSON, EndpointHead

T = TypeVar("T")
Message = MutableMapping[str, Any]
Scope = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
Pairs = tuple[tuple[bytes, bytes], ...]

PRINCIPAL = "interlock.principal"
"""The key of the ASGI scope under which the guard stores the Principal."""
CHALLENGE = "interlock.challenge"
"""The key of the ASGI scope under which the guard stores a function from scopes to the headers of a
403 challenge.
"""
HOLD = "interlock.hold"
"""The key of the ASGI scope for the holder of a response whose task has ended (see ResponseHolder).
Only some servers set it.
"""

EVENT_HEADERS: Pairs = (
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
"""The headers of an event stream besides its type (`HTM-11`)."""

Challenge = Callable[[Sequence[str]], Sequence[tuple[bytes, bytes]]]


class ResponseOwner(Protocol):
    """Writes a response that a ResponseHolder holds."""

    def client_gone(self) -> None:
        """Clean up after the client has disconnected."""
        ...

    def continue_writing(self) -> None:
        """Write what is queued: the write buffer has room."""
        ...


class ResponseHolder(Protocol):
    """Holds an open response, so that no task has to wait for it."""

    def hold(self, owner: ResponseOwner) -> bool:
        """Take over the response for its owner; False if that is impossible."""
        ...

    @property
    def is_paused(self) -> bool:
        """Whether the write buffer is full."""
        ...

    def write(self, piece: bytes) -> None:
        """Write a piece of the body."""
        ...

    def paced(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Return a coroutine of the current request, started now, that shares the event loop fairly
        with those of other holders.
        """
        ...

    def finish(self) -> None:
        """End the response."""
        ...


class EndpointRequest(Protocol):
    """One HTTP request to the endpoint.

    Attributes:
        head: The head.
        body: The body, once it has been read.
    """

    head: EndpointHead
    body: bytes

    @property
    def principal(self) -> Principal | None:
        """The principal that the guard has found."""
        ...

    @property
    def challenge(self) -> Challenge | None:
        """Makes the headers of a 403 challenge from the missing scopes, if there is a guard."""
        ...

    @property
    def client(self) -> Sequence[Any] | None:
        """The address and the port of the client; None if they are unknown."""
        ...

    @property
    def scope(self) -> Scope:
        """The ASGI scope."""
        ...

    @property
    def receive(self) -> Receive:
        """The ASGI `receive`."""
        ...

    @property
    def send(self) -> Send:
        """The ASGI `send`."""
        ...

    @property
    def holder(self) -> ResponseHolder | None:
        """What can hold an open response after its task has ended; None if the server cannot."""
        ...

    def take_body(self) -> bytes | None:
        """Return the body, if it is complete and unread; otherwise None."""
        ...

    def respond(
        self, status: int, body: bytes, kind: bytes = JSON, headers: Pairs = ()
    ) -> Awaitable[None]:
        """Send a whole response with a body of this type."""
        ...


class PreparedHead(Struct):
    """What the app has read from a head, for all requests with an equal one.

    Attributes:
        head: The head as the endpoint reads it.
        shown: The headers that handlers may see: those without credentials.
        token: The bearer token as the guard knows it; None without a guard.
    """

    head: EndpointHead
    shown: list[tuple[bytes, bytes]]
    token: BearerToken | None


class BearerToken(Protocol):
    """The token of a request, which its guard may have verified before."""

    def principal(self) -> Principal | None:
        """Return the principal, if the token was verified a short time ago and is still valid."""
        ...

    def challenge(self, scopes: Sequence[str]) -> Sequence[tuple[bytes, bytes]]:
        """Return the headers of a 403 challenge for missing scopes."""
        ...


class RawHead(Protocol):
    """The head of a request as a server has parsed it. Requests with equal heads share it.

    Attributes:
        prepared: What the app has read from the head before.
    """

    prepared: PreparedHead | None

    @property
    def method(self) -> str:
        """The method, in capitals."""
        ...

    @property
    def path(self) -> str:
        """The decoded path."""
        ...

    @property
    def query(self) -> bytes:
        """The query of the target."""
        ...

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers in order, with names in lower case."""
        ...


class ServerRequest(EndpointRequest, Protocol):
    """A request of Interlock's own server.

    Attributes:
        principal: The principal, once it is known.
    """

    principal: Principal | None

    @property
    def raw(self) -> RawHead:
        """The head as it was parsed."""
        ...

    def admit(self, prepared: PreparedHead, principal: Principal | None) -> None:
        """Set what the endpoint sees of this request."""
        ...


class AsgiRequest:
    """A request of any ASGI server, or one that ASGI middleware has changed."""

    __slots__ = ("body", "head", "receive", "scope", "send")

    def __init__(self, scope: Scope, receive: Receive, send: Send, head: EndpointHead) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.head = head
        self.body = b""

    @property
    def principal(self) -> Principal | None:
        """The principal that the guard has found."""
        return self.scope.get(PRINCIPAL)

    @property
    def challenge(self) -> Challenge | None:
        """Makes the headers of a 403 challenge from the missing scopes, if there is a guard."""
        return self.scope.get(CHALLENGE)

    @property
    def client(self) -> Sequence[Any] | None:
        """The address and the port of the client; None if they are unknown."""
        return self.scope.get("client")

    @property
    def holder(self) -> ResponseHolder | None:
        """What can hold an open response after its task has ended; None if the server cannot."""
        return self.scope.get(HOLD)

    def take_body(self) -> bytes | None:
        """Return None: the body comes in messages."""
        return None

    async def respond(
        self, status: int, body: bytes, kind: bytes = JSON, headers: Pairs = ()
    ) -> None:
        """Send a whole response with a body of this type."""
        await send_body(self.send, status, body, kind, headers)


def is_direct(app: object, method: str) -> bool:
    """Whether an ASGI app also serves requests with a method of its own.

    Hazard: a wrapper with the attributes of the app inside, or a subclass with its own `__call__`,
    may protect that app. So one class must define both ways.
    """
    called = next(base for base in type(app).__mro__ if "__call__" in vars(base))
    return method in vars(called)


async def send_body(
    send: Send, status: int, body: bytes, kind: bytes = JSON, headers: Pairs = ()
) -> None:
    """Send a whole response as ASGI messages."""
    head: list[tuple[bytes, bytes]] = (
        [*headers] if status == 204 else [(b"content-length", b"%d" % len(body)), *headers]
    )
    if body:
        head.append((b"content-type", kind))
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def gone(receive: Receive) -> None:
    """Wait until the client has disconnected, or has received the whole response."""
    while (await receive())["type"] != "http.disconnect":
        pass

"""The Exchange: every request is one, and a handler turns it into a Result. Transports make
exchanges, middleware wraps handlers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from msgspec import Raw, Struct
from msgspec.structs import replace

from .types.base import NOTHING, Implementation, ProgressToken, Result
from .types.errors import ProtocolError, Unanswerable
from .types.input import InputRequest, InputResponse
from .types.lifecycle import ClientCapabilities, LoggingLevel
from .wire.codec import decode
from .wire.jsonrpc import Malformed
from .wire.revisions import Ability, Era, era, supports

NO_CAPABILITIES = ClientCapabilities()


class Principal(Struct, frozen=True, kw_only=True):
    """The identity on whose behalf a request is made, as authorization established it.

    The access token is not part of it, and cannot be read from it: the token was issued for this
    server
    only (`SEC-06`).

    Attributes:
        subject: The user, unique within `issuer`.
        issuer: The authorization server that vouches for the subject.
        client: The program that acts.
        scopes: What the program may do.
        actor: The party that acts in the subject's place, if that is another one (RFC 8693, 4.1).
        expires: When this identity expires, in seconds of the wall clock; None for never.
        claims: Whatever else the authorization server said about the subject.
    """

    subject: str
    issuer: str = ""
    client: str = ""
    scopes: frozenset[str] = frozenset()
    actor: str = ""
    expires: float | None = None
    claims: Mapping[str, Any] = {}

    @property
    def key(self) -> str:
        """One string that is the same for the same principal and no other."""
        return repr(
            (self.issuer, self.subject, self.client)
        )  # no name, however it is chosen, can run into the next


class TraceContext(Struct, frozen=True):
    """The trace that a request belongs to, as its sender gave it (W3C Trace Context and Baggage).

    Attributes:
        traceparent: The id of the trace and of the sender's span.
        tracestate: What tracing systems add to it.
        baggage: Properties that travel with the trace.
    """

    traceparent: str | None = None
    tracestate: str | None = None
    baggage: str | None = None


class Caller(Struct, frozen=True):
    """The sender of a request, its revision and its capabilities.

    Every request has a caller. In the handshake era its values are those of the handshake. The
    protocol's own keys of a request's `_meta` are read into this record and appear nowhere else.

    Attributes:
        revision: The revision that the request is made under.
        capabilities: What the client supports.
        info: The name and version of the client, if it gave them.
        log_level: The lowest level of log messages that the client asks for; None for no messages.
        principal: The authorized identity. None means the person at this machine, who may do
            everything, unless `anonymous` is true.
        session: The ID of the session, on transports that have sessions.
        anonymous: Whether the request came over a network without a principal. An anonymous caller
            has
            no scopes.
        trace: The trace that the request belongs to.
    """

    revision: str
    capabilities: ClientCapabilities = NO_CAPABILITIES
    info: Implementation | None = None
    log_level: LoggingLevel | None = None
    principal: Principal | None = None
    session: str | None = None
    anonymous: bool = False
    trace: TraceContext | None = None

    @property
    def era(self) -> Era:
        """The era of the caller's revision: handshake or stateless."""
        return era(self.revision)

    def supports(self, ability: Ability) -> bool:
        """Whether the revision that this caller speaks has an ability, such as "elicitation".

        What the caller itself declares is in `capabilities`.

        Raises:
            ValueError: There is no ability of this name; the message lists those that there are.
        """
        return supports(self.revision, ability)


class RawResult(Struct, frozen=True):
    """A result as bytes, for the caller's revision: a list that is kept encoded, or the result of
    another server.

    Attributes:
        body: The JSON object, without the members that the protocol itself puts into a result.
        meta: The members of `_meta` that are to be sent with it, where they are not in the body.
        kind: The type of the result, for those who want to look at it.
        read: The result, where it was read already.
    """

    body: bytes
    meta: Raw = NOTHING
    kind: type[Result] = Result
    read: Result | None = None

    def decode(self) -> Result:
        """Read the result: for middleware that looks at what passes.

        Raises:
            ProtocolError: The result is not as its type has it.
        """
        if self.read is not None:
            return self.read
        try:
            result: Result = decode(self.body, self.kind)
            if self.meta is NOTHING:
                return result
            return replace(result, meta=decode(self.meta, dict[str, Any]))
        except Malformed as bad:
            raise ProtocolError(f"The result cannot be read: {bad}") from None


# What a handler gives: a result, or one that is bytes already.
AnyResult = Result | RawResult
Notify = Callable[[str, Any], None]
PauseTimeout = Callable[[], AbstractContextManager[object]]


class Asker(Protocol):
    """The way an input request travels to whoever can answer it."""

    async def ask(self, request: InputRequest, key: str | None = None) -> InputResponse:
        """Ask, and wait for the answer. `key` names the question where its place and words are not
        to name it.

        Raises McpError where the other side refused to answer, Unreachable where it has gone.
        """
        ...

    async def once(self, name: str, do: Callable[[], Awaitable[Any]]) -> Any:
        """Do something that must not happen twice in one call, though a handler may run again from
        the top; return its result.
        """
        ...


class Mute:
    """The asker of an exchange whose other side cannot be asked anything.

    Args:
        why: Why not, in one sentence.
    """

    def __init__(self, why: str = "There is nobody to ask on this exchange.") -> None:
        self.why = why

    async def ask(self, request: InputRequest, key: str | None = None) -> InputResponse:
        """Refuse; a question that cannot be put is never taken as answered."""
        raise Unanswerable(self.why, "")

    async def once(self, name: str, do: Callable[[], Awaitable[Any]]) -> Any:
        """Do it: without questions nothing runs again."""
        return await do()


MUTE = Mute()


def silent(method: str, params: Any) -> None:
    """The notify of an exchange that nobody listens to."""


async def ready() -> None:
    """The drain of an exchange that nothing slows down."""


class HttpRequest(Struct, frozen=True):
    """The HTTP request that brought an exchange.

    Attributes:
        method: The HTTP method, such as POST.
        path: The path of the URL, decoded.
        query: What follows the question mark, as it was sent.
        headers: By name in lower case; the values of a repeated header are joined by commas. An
            authorization header that a guard has used is not among them.
        client: The address of the client, or of the named proxy's client; None where the web server
            does not say.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    client: str | None = None


class ExchangeTransport:
    """What the transport of an exchange can do besides carrying it. This one, of stdio and memory,
    can do nothing of it.
    """

    __slots__ = ()

    @property
    def request(self) -> HttpRequest | None:
        """The HTTP request; None on every other transport."""
        return None

    @property
    def mirrored(self) -> Mapping[str, str] | None:
        """The headers that repeat parts of the body (`Mcp-Param-*`); None where there are none to
        compare.
        """
        return None

    def release(self, retry_ms: int | None = None) -> bool:
        """Let the client go, to come back for the rest after `retry_ms` milliseconds; False where
        it could not come back.
        """
        return False

    def pause_timeout(self) -> AbstractContextManager[object]:
        """A block in which the sender of the exchange does not count the time: while a person is
        asked.
        """
        return nullcontext()


PLAIN_TRANSPORT = ExchangeTransport()


class Received(Protocol):
    """A request as it came from a peer, with the bytes it came in."""

    @property
    def method(self) -> str:
        """Its method."""
        ...

    @property
    def params(self) -> Any:
        """Its params, read."""
        ...

    @property
    def caller(self) -> Caller:
        """The peer."""
        ...

    @property
    def frame(self) -> bytes | None:
        """The message; None where it is not kept."""
        ...


class SessionStorage(Protocol):
    """Where the state of one session is kept, as bytes that only the reader of them understands."""

    async def load(self) -> bytes | None:
        """The bytes kept last, empty where there are none; None where the session has ended."""
        ...

    async def save(self, state: bytes, *, was: bytes) -> bool:
        """Keep bytes in place of those that were loaded; False where others stand there by now."""
        ...


class Exchange(Struct):
    """One request and all that flows because of it.

    Attributes:
        method: The method of the newest revision.
        params: The protocol type of the method's params. Its `meta` holds what the author of the
            request put there; the protocol's own keys of `_meta` are on the caller.
        caller: Who asks.
        notify: `notify(method, params)` sends a notification on the way of this request and never
            waits.
        asker: How questions travel to whoever can answer them.
        progress_token: The token of the request's progress; None where the sender does not want to
            hear of it.
        drain: Waits until the peer has taken in most of what was sent.
        transport: What the transport can do besides.
        received: The request or notification as a peer sent it; None for one that was made here. A
            client that forwards the exchange under the same revision sends what was not changed as
            the bytes it came in, and returns a RawResult.
        session: Where the state of the caller's session is kept; None where it has no session.
        replayed: Whether a handler runs again from the top for a request that it has seen: it
            asked, and the answers have come to a process that did not keep the call suspended
            (`suspend=False`, another worker, a restart). Middleware that logs, counts or audits
            each call once leaves it out then.
    """

    method: str
    params: Any
    caller: Caller
    notify: Notify = silent
    asker: Asker = MUTE
    progress_token: ProgressToken | None = None
    drain: Callable[[], Awaitable[None]] = ready
    transport: ExchangeTransport = PLAIN_TRANSPORT
    received: Received | None = None
    session: SessionStorage | None = None
    replayed: bool = False


# The one shape, and what goes around it.
Handler = Callable[[Exchange], Awaitable[AnyResult]]
Middleware = Callable[[Handler], Handler]


def stack(handler: Handler, *middleware: Middleware) -> Handler:
    """Put middleware around a handler; the first one given is the outermost."""
    for layer in reversed(middleware):
        handler = layer(handler)
    return handler

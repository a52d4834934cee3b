"""The Exchange: one request with everything that belongs to it. A handler turns an Exchange into a
Result. Transports make exchanges, and middleware wraps handlers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
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
    """The identity on whose behalf a request is made, as authorization verified it.

    The access token is not part of it, and cannot be read from it: the token was issued for this
    server only (`SEC-06`).

    Attributes:
        subject: The user, unique within `issuer`.
        issuer: The authorization server that vouches for the subject.
        client: The program that acts.
        scopes: The scopes that the program was granted.
        actor: The party that acts in the subject's place, if that is another one (RFC 8693, 4.1).
        expires: When this identity expires, in seconds of the wall clock; None for never.
        claims: Further claims of the authorization server about the subject.
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
        """A string that identifies the principal: equal for equal principals, different for all
        others.
        """
        return _principal_key(self.issuer, self.subject, self.client)


@lru_cache(10_000)
def _principal_key(*parts: str) -> str:
    return repr(parts)  # repr separates the parts, whatever characters they contain


class TraceContext(Struct, frozen=True):
    """The trace that a request belongs to, as its sender gave it (W3C Trace Context and Baggage).

    Attributes:
        traceparent: The id of the trace and of the sender's span.
        tracestate: The additions of tracing systems.
        baggage: Properties that travel with the trace.
    """

    traceparent: str | None = None
    tracestate: str | None = None
    baggage: str | None = None


class Caller(Struct, frozen=True):
    """The sender of a request, its revision and its capabilities.

    Every request has a caller. In the handshake era its values come from the handshake. This record
    contains the protocol's own keys of a request's `_meta`, which appear nowhere else.

    Attributes:
        revision: The revision that the request is made under.
        capabilities: The capabilities of the client.
        info: The name and version of the client, if it gave them.
        log_level: The lowest level of log messages that the client requests; None for no messages.
        principal: The authorized identity. None means the person at this machine, who needs no
            permission, unless `anonymous` is true.
        session: The ID of the session, on transports that have sessions.
        anonymous: Whether the request came over a network without a principal. An anonymous caller
            has no scopes.
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
        """Whether the caller's revision has an ability, such as "elicitation".

        The capabilities that the caller declares are in `capabilities`.

        Raises:
            ValueError: There is no ability of this name. The message lists all abilities.
        """
        return supports(self.revision, ability)


class RawResult(Struct, frozen=True):
    """An encoded result under the caller's revision: a cached list, or the result of another
    server.

    Attributes:
        body: The JSON object, without the members that the protocol itself adds to a result.
        meta: Members of `_meta` to send with the body, if they are not part of it.
        kind: The type of the result, which `decode` reads.
        read: The decoded result, if it has been decoded already.
    """

    body: bytes
    meta: Raw = NOTHING
    kind: type[Result] = Result
    read: Result | None = None

    def decode(self) -> Result:
        """Decode the result, for middleware that inspects it.

        Raises:
            ProtocolError: The bytes are not a valid result of this type.
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


# The return value of a handler: a result, or a result that is encoded already.
AnyResult = Result | RawResult
Notify = Callable[[str, Any], None]
PauseTimeout = Callable[[], AbstractContextManager[object]]


class Asker(Protocol):
    """Carries input requests to the client."""

    async def ask(self, request: InputRequest, key: str | None = None) -> InputResponse:
        """Ask a question, and wait for the answer.

        Args:
            request: The input request.
            key: Identifies the question across runs of the handler. By default its position and
                content identify it.

        Raises:
            McpError: The other side rejected the question.
            Unreachable: The other side is gone.
        """
        ...

    async def once(
        self, name: str, do: Callable[[], Awaitable[Any]], *, idempotent: bool = False
    ) -> Any:
        """Run a side effect at most once in a call, although the handler may run again from the
        top.

        Args:
            name: The name of the effect, unique in the call.
            do: The effect.
            idempotent: Whether the effect may be repeated if it is unknown whether it happened.

        Returns:
            The result of the first run.

        Raises:
            McpError: The effect may have happened, and it is not idempotent.
        """
        ...


class NoAsker:
    """The asker of an exchange on which the other side cannot be asked anything.

    Args:
        why: The reason, in one sentence.
    """

    def __init__(self, why: str = "There is nobody to ask on this exchange.") -> None:
        self.why = why

    async def ask(self, request: InputRequest, key: str | None = None) -> InputResponse:
        """Raise an error. A question that cannot be delivered never counts as answered."""
        raise Unanswerable(self.why, "")

    async def once(
        self, name: str, do: Callable[[], Awaitable[Any]], *, idempotent: bool = False
    ) -> Any:
        """Run the side effect. Without questions the handler never runs again.

        Args:
            name: The name of the effect.
            do: The effect.
            idempotent: Not used here.
        """
        return await do()


MUTE = NoAsker()


def silent(method: str, params: Any) -> None:
    """The `notify` of an exchange without a listener: it drops notifications."""


class _Ready:
    """An awaitable that is done. Many calls await one, so all share it."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


_READY = _Ready()


def ready() -> Awaitable[None]:
    """The `drain` of an exchange without backpressure: awaiting it returns at once."""
    return _READY


class HttpRequest(Struct, frozen=True):
    """The HTTP request that carried an exchange.

    Attributes:
        method: The HTTP method, such as POST.
        path: The path of the URL, decoded.
        query: The part of the URL after the question mark, as it was sent.
        headers: The headers by name in lower case. The values of a repeated header are joined by
            commas. An Authorization header that a guard has used is removed.
        client: The address of the client, or the address that a trusted proxy reports; None if the
            web server does not provide it.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    client: str | None = None


class ExchangeTransport:
    """The abilities of an exchange's transport, beyond sending and receiving.

    Stdio and memory use this class itself, because they have none of these abilities.
    """

    __slots__ = ()

    @property
    def request(self) -> HttpRequest | None:
        """The HTTP request; None on every other transport."""
        return None

    @property
    def mirrored(self) -> Mapping[str, str] | None:
        """The headers that repeat parts of the body (`Mcp-Param-*`); None on other transports."""
        return None

    @property
    def address(self) -> str | None:
        """The network address of the client; None on other transports."""
        request = self.request
        return None if request is None else request.client

    @property
    def is_http(self) -> bool:
        """Whether it is HTTP."""
        return False

    @property
    def held_bytes(self) -> int:
        """The memory that the request holds while it lasts, in bytes; 0 where nobody counts it."""
        return 0

    def release(self, retry_ms: int | None = None) -> bool:
        """Close the client's stream; the client resumes after `retry_ms` milliseconds.

        Returns False, and keeps the stream open, if the client could not resume it.
        """
        return False

    def pause_timeout(self) -> AbstractContextManager[object]:
        """A block in which the sender's timeout is paused, because a person is being asked."""
        return nullcontext()


PLAIN_TRANSPORT = ExchangeTransport()


class Received(Protocol):
    """A request as a peer sent it, with its bytes."""

    @property
    def method(self) -> str:
        """The method."""
        ...

    @property
    def params(self) -> Any:
        """The decoded params."""
        ...

    @property
    def caller(self) -> Caller:
        """The sender."""
        ...

    @property
    def frame(self) -> bytes | None:
        """The bytes of the message; None if they were not stored."""
        ...


class SessionStorage(Protocol):
    """Stores the state of one session, as opaque bytes."""

    async def load(self) -> bytes | None:
        """Return the bytes that were saved last: empty if none were, None if the session has
        ended.
        """
        ...

    async def save(self, state: bytes, *, was: bytes) -> bool:
        """Replace the bytes that were loaded; False if another request has replaced them since."""
        ...


class Exchange(Struct):
    """One request, with the channels for everything that belongs to it.

    Attributes:
        method: The method of the newest revision.
        params: The protocol type of the method's params. Its `meta` contains the keys of `_meta`
            that the author of the request set; the protocol's own keys are on the caller.
        caller: The sender.
        notify: `notify(method, params)` sends a notification that belongs to this request. It never
            waits.
        asker: Carries questions to the client.
        progress_token: The token for progress notifications; None if the sender wants none.
        drain: Waits until the peer has read most of the sent data.
        transport: Further abilities of the transport.
        received: The message as a peer sent it; None for an exchange of local origin. A client that
            forwards an unchanged exchange under the same revision sends these bytes again, and
            returns a RawResult.
        session: The storage of the session's state; None if the caller has no session.
        replayed: Whether the handler runs again from the top for a request that it has seen before.
            It asked a question, and the answers reached a process that does not hold the suspended
            call (`suspend=False`, another worker, a restart). Middleware that logs, counts or
            audits calls skips such a run.
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


# The types of handlers and middleware.
Handler = Callable[[Exchange], Awaitable[AnyResult]]
Middleware = Callable[[Handler], Handler]


def stack(handler: Handler, *middleware: Middleware) -> Handler:
    """Wrap a handler in middleware, the outermost first."""
    for layer in reversed(middleware):
        handler = layer(handler)
    return handler

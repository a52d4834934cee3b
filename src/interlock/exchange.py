"""The one shape of the house: an Exchange goes in, a Result comes out. Transports make exchanges, middleware wraps handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from msgspec import Struct

from .types.base import Implementation, Result
from .types.errors import Unanswerable
from .types.input import InputRequest, InputResponse
from .types.lifecycle import ClientCapabilities, LoggingLevel, RequestMeta
from .wire.revisions import Ability, Era, era, supports

NO_CAPABILITIES = ClientCapabilities()
NO_META = RequestMeta()


class Principal(Struct, frozen=True, kw_only=True):
    """On whose behalf a request is made, as authorization found it; nobody in particular has none.

    `subject` is unique within `issuer`; `client` is the program that acts, `scopes` what it may do. `actor` is who acts in the subject's
    place, where that is somebody else (RFC 8693, 4.1). `expires` is when this ends, in seconds of the wall clock. `claims` is what else
    the authorization server said. The token that showed all this is not here, and not to be had: it was for this server and no other
    (`SEC-06`).
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


class Caller(Struct, frozen=True):
    """Who asks, and under which revision. Every request has one; in the handshake era it is what the peer said once.

    Without a principal it is the person at this machine, who may do everything; a `stranger` came over a network, where anybody could.
    """

    revision: str
    capabilities: ClientCapabilities = NO_CAPABILITIES
    info: Implementation | None = None
    log_level: LoggingLevel | None = None
    principal: Principal | None = None
    session: str | None = None
    stranger: bool = False

    @property
    def era(self) -> Era:
        """The manner in which this caller speaks."""
        return era(self.revision)

    def supports(self, ability: Ability) -> bool:
        """Whether the revision that this caller speaks has an ability, such as "elicitation".

        What the caller itself declares is in `capabilities`.

        Raises:
            ValueError: There is no ability of this name; the message lists those that there are.
        """
        return supports(self.revision, ability)


class RawResult(Struct, frozen=True):
    """A result that is encoded already for the caller's revision: a catalogue kept as bytes, or one that only passes through."""

    body: bytes


# What a handler gives: a result, or one that is bytes already.
AnyResult = Result | RawResult
Notify = Callable[[str, Any], None]
Unhurried = Callable[[], AbstractContextManager[object]]


class Asker(Protocol):
    """The way an input request travels to whoever can answer it."""

    async def ask(self, request: InputRequest, key: str | None = None) -> InputResponse:
        """Ask, and wait for the answer. `key` names the question where its place and words are not to name it.

        Raises McpError where the other side refused to answer, Unreachable where it has gone.
        """
        ...

    async def once(self, name: str, do: Callable[[], Awaitable[Any]]) -> Any:
        """Do something that must not happen twice in one call, though a handler may run again from the top; return its result."""
        ...


class Mute:
    """The asker of an exchange whose other side cannot be asked anything."""

    async def ask(self, request: InputRequest, key: str | None = None) -> InputResponse:
        """Refuse; a question that cannot be put is never taken as answered."""
        raise Unanswerable("There is nobody to ask on this exchange.", "")

    async def once(self, name: str, do: Callable[[], Awaitable[Any]]) -> Any:
        """Do it: without questions nothing runs again."""
        return await do()


MUTE = Mute()


def silent(method: str, params: Any) -> None:
    """The notify of an exchange that nobody listens to."""


async def ready() -> None:
    """The drain of an exchange that nothing slows down."""


def stay(retry: int | None = None) -> bool:
    """The release of an exchange whose way cannot be given up and found again."""
    return False


class Exchange(Struct):
    """One request and all that flows because of it.

    `params` is the protocol type of the method; `notify(method, params)` sends a notification on the way of this request and
    never waits; `drain()` waits until the peer has taken in most of what was sent. `headers` are the mirrored HTTP headers,
    None where there are none. `release(retry)` lets the client go, to come back for the rest after `retry` milliseconds; False where
    it could not come back. `meta` holds the keys of `_meta` that the protocol defines. `unhurried()` is a block in which whoever sent the
    exchange does not count the time: while a person is asked.
    """

    method: str
    params: Any
    caller: Caller
    meta: RequestMeta = NO_META
    notify: Notify = silent
    asker: Asker = MUTE
    headers: Mapping[str, str] | None = None
    drain: Callable[[], Awaitable[None]] = ready
    release: Callable[[int | None], bool] = stay
    unhurried: Unhurried = nullcontext


# The one shape, and what goes around it.
Handler = Callable[[Exchange], Awaitable[AnyResult]]
Middleware = Callable[[Handler], Handler]


def stack(handler: Handler, *middleware: Middleware) -> Handler:
    """Put middleware around a handler; the first one given is the outermost."""
    for layer in reversed(middleware):
        handler = layer(handler)
    return handler

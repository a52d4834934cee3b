"""The I/O of the OAuth client: sends requests, asks the user, stores grants and registrations."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import msgspec

from .. import types as t
from ..http11.fetch import Fetch, Request
from .oauth.addresses import is_loopback
from .oauth.documents import LONGEST_DOCUMENT
from .oauth.errors import Unauthorized
from .oauth.members import Member
from .oauth.steps import (
    CallFunction,
    Got,
    Listen,
    LoadRegistration,
    Note,
    Procedure,
    SaveRegistration,
    SendRequest,
    ShowCode,
    Step,
    Visit,
    Wait,
)

if TYPE_CHECKING:
    from ..store import Vault
    from .agents import Agent

R = TypeVar("R")
OnExchange = Callable[[Request, Got | t.Unreachable], object]
"""Called with each HTTP request of a procedure, and its response or the reason for none."""
_MEMBERS = "oauth client"  # the kind of records in the vault, by issuer
# the same, by issuer and client ID: a grant outlives the replacement of its registration
_FORMER = "oauth client id"
_SECONDS = 20.0  # seconds that an authorization server has to answer


class HttpClients:
    """Chooses the HTTP client for a request: hosts that the user named may have private addresses,
    all others must be public.

    `server` is the address that the user gave; `hosts` are further ones that may be private. With
    `fetch`, all requests use that client.
    """

    def __init__(self, server: str, hosts: Iterable[str] = (), fetch: Fetch | None = None) -> None:
        self._known = {(urlsplit(server).hostname or "").lower(), *(host.lower() for host in hosts)}
        self._loopback = is_loopback(server)
        self._given = fetch
        self._own: Fetch | None = None
        self._public: Fetch | None = None

    def of(self, url: str) -> Fetch:
        """The HTTP client for a URL."""
        if self._given is not None:
            return self._given
        if (urlsplit(url).hostname or "").lower() in self._known:
            if self._own is None:
                from ..http11.client import HttpFetch  # imported late: only authorization needs it

                self._own = HttpFetch(connect_seconds=10.0, head_seconds=_SECONDS)
            return self._own
        if self._public is None:
            from ..http11.safe_fetch import SafeFetch  # imported late: as above

            self._public = SafeFetch(
                loopback=self._loopback, limit=LONGEST_DOCUMENT, seconds=_SECONDS
            )
        return self._public

    async def aclose(self) -> None:
        """Close the clients that were opened here."""
        for fetch in (self._own, self._public):
            if fetch is not None:
                await fetch.aclose()
        self._own = self._public = None


def named(url: str | None) -> tuple[str, ...]:
    """The host of an address that the user named, as one of the `hosts` for HttpClients."""
    host = urlsplit(url or "").hostname
    return () if host is None else (host,)


async def perform(
    procedure: Procedure[R],
    clients: HttpClients,
    *,
    agent: Agent | None = None,
    vault: Vault | None = None,
    on_step: Callable[[Note], None] | None = None,
    on_exchange: OnExchange | None = None,
) -> R:
    """Run a procedure and return its result; the agent is closed at the end. Raises what the
    procedure raises.

    Hazard: `on_exchange` gets each HTTP request and response as they are, secrets included.
    """
    try:
        step: Step = next(procedure)
        while True:
            try:
                came = await _carry(step, clients, agent, vault, on_step, on_exchange)
            except t.Unreachable as bad:
                step = procedure.throw(bad)
            else:
                step = procedure.send(came)
    except StopIteration as done:
        result: R = done.value
        return result
    finally:
        procedure.close()
        if agent is not None:
            await agent.aclose()


async def _carry(
    step: Step,
    clients: HttpClients,
    agent: Agent | None,
    vault: Vault | None,
    on_step: Callable[[Note], None] | None,
    on_exchange: OnExchange | None,
) -> object:
    match step:
        case SendRequest():
            return await _exchange(clients, step.request, on_exchange)
        case LoadRegistration():
            return await recall(vault, step.issuer)
        case CallFunction():
            return await _called(step)
        case Listen() | Visit() | ShowCode():
            return await _reach(step, agent, vault)
        case Note():
            if on_step is not None:
                on_step(step)
        case SaveRegistration():
            await _remember(vault, step)
        case Wait():
            await asyncio.sleep(step.seconds)
    return None


async def _exchange(clients: HttpClients, request: Request, on_exchange: OnExchange | None) -> Got:
    """Send a request, and report it with its outcome. Raises Unreachable."""
    try:
        got = await _send(clients.of(request.url), request)
    except t.Unreachable as bad:
        if on_exchange is not None:
            on_exchange(request, bad)
        raise
    if on_exchange is not None:
        on_exchange(request, got)
    return got


async def _called(step: CallFunction) -> str:
    """The result of the user's function. Raises Unauthorized if it is empty."""
    given: object
    try:
        called = step.function()
        given = await called if inspect.isawaitable(called) else called
        what = "the client's assertion is empty or not text"
    except (OSError, UnicodeDecodeError) as bad:
        given = None
        what = f"the client's assertion cannot be read: {bad}"
    if isinstance(given, str) and given.strip():
        return given
    raise Unauthorized(
        "token",
        what,
        expected="a token",
        advice="Check the file or the function that was given.",
        culprit="client",
    )


async def _reach(
    step: Listen | Visit | ShowCode, agent: Agent | None, vault: Vault | None
) -> str | None:
    """Ask the agent to reach the user. Raises Unauthorized without an agent."""
    if agent is None:
        raise Unauthorized(
            "log-in",
            "a user has to log in, and no user can be reached",
            advice="Pass an agent= that reaches the user.",
            culprit="client",
        )
    if isinstance(step, Listen):
        member = await recall(vault, step.issuer)
        return await agent.listen(member.redirect_uris if member is not None else ())
    if isinstance(step, Visit):
        return await agent.visit(step.url, step.redirect_uri)
    await agent.show_code(step)
    return None


async def _send(fetch: Fetch, request: Request) -> Got:
    """Send a request, and read the whole response.

    Raises Unreachable, also if the response is too long or too slow.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            response = await fetch(request)
            try:
                return Got(response.status, response.headers, await response.read(LONGEST_DOCUMENT))
            finally:
                await response.aclose()
    except TimeoutError:
        raise t.TimedOut(
            f"{urlsplit(request.url).netloc} did not answer within {_SECONDS:g} seconds."
        ) from None
    except t.ProtocolError as bad:
        raise t.Unreachable(str(bad)) from bad


async def recall(vault: Vault | None, issuer: str, client_id: str | None = None) -> Member | None:
    """The last registration at an authorization server, or the one with the client ID of a
    grant.
    """
    if vault is None:
        return None
    kept = (
        await vault.get(_MEMBERS, issuer)
        if client_id is None
        else await vault.get(_FORMER, f"{issuer} {client_id}")
    )
    try:
        return None if kept is None else msgspec.json.decode(kept, type=Member)
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
    ):  # written by a newer version: registering again does no harm
        return None


async def dismiss(vault: Vault, member: Member) -> None:
    """Delete a registration that its authorization server no longer has."""
    await vault.remove(_FORMER, f"{member.issuer} {member.client_id}")
    if (
        kept := await recall(vault, member.issuer)
    ) is not None and kept.client_id == member.client_id:
        await vault.remove(_MEMBERS, member.issuer)


async def _remember(vault: Vault | None, step: SaveRegistration) -> None:
    if vault is None:
        return
    if step.member is None:
        await vault.remove(_MEMBERS, step.issuer)
    else:
        record = msgspec.json.encode(step.member)
        until = step.member.until
        await vault.put(_MEMBERS, step.issuer, record, until=until)
        await vault.put(_FORMER, f"{step.issuer} {step.member.client_id}", record, until=until)


async def known_issuers(vault: Vault) -> list[str]:
    """The authorization servers at which the client is registered."""
    return await vault.keys(_MEMBERS)

"""Gathers facts about an MCP endpoint over HTTP: what it answers to the first requests, its
session, its event stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec
from msgspec import Struct

from ... import types as t
from ...addresses import is_here
from ...auth.oauth.probe import modern
from ...http11.fetch import Authorized, Fetch, Request, Response
from ...protocol.handshake.messages import OPENING, opening_params
from ...redaction import url_without_secrets
from ...version import VERSION
from ...wire.codec import encode
from ...wire.revisions import LAST_HANDSHAKE
from ..facts import EndpointFacts, HttpAnswer
from ..options import ExamineOptions

_MOST_BODY = 64 * 1024
_MOST_HOPS = 2  # redirects that are followed
_REDIRECTS = (301, 302, 303, 307, 308)
_USUAL_PATHS = ("/mcp", "/mcp/", "/sse", "/")
_FOREIGN = "attacker.example"
_JSON = (("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"))
_STREAM = (("Accept", "text/event-stream"),)
_TOOLS = "tools/list"


class ExaminedEndpoint(Struct, frozen=True):
    """An endpoint to examine.

    Attributes:
        url: Its URL.
        fetch: The HTTP client.
        options: The options of the examination.
        authorized: Signs requests; None without a token.
    """

    url: str
    fetch: Fetch
    options: ExamineOptions
    authorized: Authorized | None = None

    async def send(self, request: Request) -> HttpAnswer:
        """Send a request, and read the beginning of its response. It never raises."""
        try:
            async with asyncio.timeout(self.options.timeout), self.opened(request) as response:
                return await _answer(response)
        except TimeoutError:
            return HttpAnswer(error=f"there was no response within {self.options.timeout:g} s")
        except (t.InterlockError, ValueError) as bad:
            return HttpAnswer(error=str(bad))

    @contextlib.asynccontextmanager
    async def opened(self, request: Request) -> AsyncIterator[Response]:
        """The head of a response, whose body can be read. Raises what a Fetch raises."""
        response = await self.fetch(await self._signed(request))
        try:
            yield response
        finally:
            await response.aclose()

    async def has_credentials(self) -> bool:
        """Whether requests have an Authorization header."""
        request = await self._signed(Request("GET", self.url))
        return any(name.lower() == "authorization" for name, _ in request.headers)

    async def _signed(self, request: Request) -> Request:
        """The request with the headers of the options, and with its token."""
        headers = tuple(self.options.headers.items())
        request = msgspec.structs.replace(request, headers=(*request.headers, *headers))
        if self.authorized is not None:
            with contextlib.suppress(t.Unreachable):  # the response without a token says more
                request = await self.authorized.sign(request)
        return request


async def endpoint_facts(endpoint: ExaminedEndpoint, hops: int = 0) -> EndpointFacts:
    """Return the facts about an endpoint. A session that was started is ended again.

    Args:
        endpoint: The endpoint.
        hops: How many redirects led to it.
    """
    url = url_without_secrets(endpoint.url)
    first = await endpoint.send(modern(endpoint.url, "server/discover"))
    there = urljoin(endpoint.url, first.location)
    if first.status in (307, 308) and hops < _MOST_HOPS and _is_same_origin(there, endpoint.url):
        moved = await endpoint_facts(msgspec.structs.replace(endpoint, url=there), hops + 1)
        if moved.first.is_ok or moved.first.status == 401:
            return msgspec.structs.replace(moved, url=url, moved=url_without_secrets(there))
    greeting = first
    if not first.error and first.status not in (*_REDIRECTS, 401):
        greeting = await endpoint.send(_handshake(endpoint.url))
    if not first.is_ok and first.status != 401 and not first.error:
        first = greeting
    if first.error or first.status == 401 or not first.is_ok:
        has_sse = first.status in (400, 404, 405) and await _has_sse(endpoint, endpoint.url)
        is_wrong_place = first.status in (404, 405, 410) or 200 <= first.status < 300
        return EndpointFacts(
            url=url,
            first=first,
            has_sse=has_sse,
            elsewhere=() if has_sse or not is_wrong_place else await _elsewhere(endpoint),
        )
    foreign = await _foreign(endpoint)
    facts = EndpointFacts(
        url=url,
        first=first,
        foreign=None if foreign is None else foreign.status,
        idle_seconds=endpoint.options.idle_seconds,
    )
    if not greeting.is_ok:
        stream = await _watched(endpoint, _listening(endpoint.url))
        return facts if stream.watched is None else stream.added_to(facts)
    session = greeting.session
    own: tuple[tuple[str, str], ...] = (("MCP-Protocol-Version", LAST_HANDSHAKE),)
    unknown = None
    if session:
        unknown = await endpoint.send(_tools(endpoint.url, (*own, ("Mcp-Session-Id", _invented()))))
        own = _of_session(session)
    stream = await _watched(endpoint, Request("GET", endpoint.url, (*_STREAM, *own)))
    other = "" if foreign is None else foreign.session
    facts = msgspec.structs.replace(
        facts,
        session=session,
        unknown_session=None if unknown is None else unknown.status,
        get=stream.answer,
        after_session=await _end_sessions(endpoint, [id for id in (other, session) if id]),
    )
    return stream.added_to(facts)


async def _answer(response: Response) -> HttpAnswer:
    """The head of a response, and the beginning of its body, if that is no stream."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    text = b""
    if kind != "text/event-stream":
        with contextlib.suppress(t.ProtocolError):  # only the beginning matters
            text = await response.read(_MOST_BODY)
    return HttpAnswer(
        status=response.status,
        kind=kind,
        location=url_without_secrets(response.headers.get("location", "")),
        text=text.decode("utf-8", "replace")[:2_000],
        session=response.headers.get("mcp-session-id", ""),
    )


async def _has_sse(endpoint: ExaminedEndpoint, url: str) -> bool:
    """Whether a GET request returns an event stream."""
    answer = await endpoint.send(Request("GET", url, _STREAM))
    return answer.status == 200 and answer.kind == "text/event-stream"


async def _elsewhere(endpoint: ExaminedEndpoint) -> tuple[str, ...]:
    """The usual paths of the same host at which there is an endpoint."""
    parts = urlsplit(endpoint.url)
    found = []
    for path in _USUAL_PATHS:
        url = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        if path == parts.path:
            continue
        answer = await endpoint.send(_handshake(url))
        is_endpoint = answer.is_ok or answer.status == 401
        if is_endpoint or (path == "/sse" and await _has_sse(endpoint, url)):
            if answer.session:
                await endpoint.send(Request("DELETE", url, _of_session(answer.session)))
            found.append(url_without_secrets(url))
    return tuple(found)


async def _end_sessions(endpoint: ExaminedEndpoint, sessions: list[str]) -> HttpAnswer | None:
    """End sessions, and return the response to the next handshake; None without sessions."""
    for session in sessions:
        await endpoint.send(Request("DELETE", endpoint.url, _of_session(session)))
    if not sessions:
        return None
    answer = await endpoint.send(_handshake(endpoint.url))
    if answer.session:
        await endpoint.send(Request("DELETE", endpoint.url, _of_session(answer.session)))
    return answer


def _of_session(session: str) -> tuple[tuple[str, str], ...]:
    return (("MCP-Protocol-Version", LAST_HANDSHAKE), ("Mcp-Session-Id", session))


async def _foreign(endpoint: ExaminedEndpoint) -> HttpAnswer | None:
    """The response to a request that a page of another site could send from a browser here."""
    parts = urlsplit(endpoint.url)
    if not is_here(parts.hostname or ""):
        return None
    host = f"{_FOREIGN}:{parts.port or 80}"
    request = _handshake(endpoint.url, ("Host", host), ("Origin", f"http://{host}"))
    return await endpoint.send(request)


class WatchedStream(Struct, frozen=True, kw_only=True):
    """An event stream that was watched.

    Attributes:
        answer: The head of the response.
        watched: How long it was watched, in seconds; None if there is no stream.
        quiet: The longest time without a byte, in seconds.
        ended: Whether it ended meanwhile.
    """

    answer: HttpAnswer
    watched: float | None = None
    quiet: float = 0.0
    ended: bool = False

    def added_to(self, facts: EndpointFacts) -> EndpointFacts:
        """The facts about the endpoint with those about its stream."""
        return msgspec.structs.replace(
            facts, watched=self.watched, quiet=self.quiet, stream_ended=self.ended
        )


async def _watched(endpoint: ExaminedEndpoint, request: Request) -> WatchedStream:
    """Open an event stream, and watch it for as long as the options say."""
    try:
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(endpoint.options.timeout):
                response = await stack.enter_async_context(endpoint.opened(request))
                answer = await _answer(response)
            seconds = endpoint.options.keep_alive_seconds
            if response.status != 200 or answer.kind != "text/event-stream" or not seconds:
                return WatchedStream(answer=answer)
            return await _watch(response, answer, seconds)
    except TimeoutError:
        return WatchedStream(answer=HttpAnswer(error="there was no response in time"))
    except (t.InterlockError, ValueError) as bad:
        return WatchedStream(answer=HttpAnswer(error=str(bad)))


async def _watch(response: Response, answer: HttpAnswer, seconds: float) -> WatchedStream:
    """Read a stream until it ends or the time is over."""
    now = asyncio.get_running_loop().time
    began = last = now()
    quiet = 0.0
    ended = True
    try:
        async with asyncio.timeout(seconds):
            async for _ in response.chunks():
                quiet = max(quiet, now() - last)
                last = now()
    except TimeoutError:
        ended = False
    except t.Unreachable:
        pass  # a broken connection ends the stream too
    over = now()
    return WatchedStream(
        answer=answer, watched=over - began, quiet=max(quiet, over - last), ended=ended
    )


def _listening(url: str) -> Request:
    """A subscription of the newest revision, whose response is an event stream."""
    request = modern(url, "subscriptions/listen")
    message = msgspec.json.decode(request.body)
    message["params"]["notifications"] = {"toolsListChanged": True}
    return msgspec.structs.replace(request, body=msgspec.json.encode(message))


def _handshake(url: str, *own: tuple[str, str]) -> Request:
    """The first request of the handshake."""
    info = t.Implementation(name="interlock-doctor", version=VERSION)
    params = opening_params(LAST_HANDSHAKE, t.ClientCapabilities(), info)
    return _post(url, OPENING, msgspec.Raw(encode(params, LAST_HANDSHAKE)), own)


def _tools(url: str, own: tuple[tuple[str, str], ...]) -> Request:
    return _post(url, _TOOLS, {}, own)


def _post(url: str, method: str, params: Any, own: tuple[tuple[str, str], ...]) -> Request:
    message: Mapping[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Request("POST", url, (*_JSON, *own), msgspec.json.encode(message), again=True)


def _is_same_origin(one: str, other: str) -> bool:
    return urlsplit(one)[:2] == urlsplit(other)[:2]


def _invented() -> str:
    """A session id that no server has issued."""
    return f"interlock-doctor-{secrets.token_hex(8)}"

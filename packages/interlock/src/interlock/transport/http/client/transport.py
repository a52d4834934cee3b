"""A client's transport over HTTP: each exchange is a separate request, and no lock is held during
one.

It supports both eras of Streamable HTTP, and the legacy transport with two endpoints for servers
that have nothing else (2026-07-28 and 2025-11-25, "Streamable HTTP"; 2024-11-05, "HTTP with SSE").
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping
from typing import Any

from msgspec.structs import replace

from interlock import types as t
from interlock.exchange import AnyResult, Caller, Exchange, RawResult
from interlock.http11.fetch import Authorizer, ConnectionLost, Fetch
from interlock.http11.headers import is_address
from interlock.logs import limited
from interlock.protocol.handshake.messages import OPENED, OPENING, agreed_revision, opening_params
from interlock.protocol.opening import DEFAULT_PROBE_SECONDS, Opened, UnsupportedRevision
from interlock.redaction.urls import url_without_secrets
from interlock.wire import jsonrpc
from interlock.wire.codec import encode
from interlock.wire.jsonrpc import Frame
from interlock.wire.lines import DEFAULT_LIMIT
from interlock.wire.revisions import Era, era

from ...channel import Tap
from ...conversation import GONE, Conversation, Hello, OpeningSteps, agree
from ..legacy.sse_client import LegacySse, NoLegacySse
from .event_stream import Sleep, backoff
from .listening import ListeningStream, listen
from .refusals import SessionGone, rejects_protocol
from .request_headers import RequestHeaders
from .requests import HttpRequests
from .retries import MOST_TRIES, MOST_UNAVAILABLE_TRIES, RetryRules

log = limited("interlock.client")

_GOODBYE = 2.0  # seconds that ending a session may take
# seconds that the response to the GET stream may take before calls start without it
_LISTENING = 1.0


class Http:
    """Sends exchanges to the MCP endpoint at a URL.

    Args:
        url: An `http://` or `https://` URL.
        headers: Headers of every request.
        token: A bearer token for every request.
        auth: Authorizes each request, and logs in where necessary (`interlock.auth`).
        fetch: The HTTP client. By default an `HttpFetch` with the further options. A client that
            you pass is not closed.
        legacy_sse: True for servers of 2024-11-05 only, False to never try that transport. None
            tries it if the other transports fail.
        repeat: Whether calls are sent again after their connection was lost. This applies only to
            calls that are safe to repeat: read-only requests, and tools that declare themselves
            idempotent.
        listen: Whether the transport keeps a stream for notifications open in the handshake era.
        limit: The maximum size of a message, in bytes.
        tap: Called with every frame, and with "client" or "server" as its sender.
        sleep: Waits for a number of seconds before a retry.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        auth: Authorizer | None = None,
        fetch: Fetch | None = None,
        legacy_sse: bool | None = None,
        repeat: bool = True,
        listen: bool = True,
        limit: int = DEFAULT_LIMIT,
        tap: Tap | None = None,
        sleep: Sleep = asyncio.sleep,
        **fetching: Any,
    ) -> None:
        if not is_address(url):
            raise ValueError(
                f"{url_without_secrets(url)} is no address of a server; it is http://host/path or "
                "https://host/path"
            )
        if fetching and fetch is not None:
            raise TypeError(f"{', '.join(fetching)} and a fetch of your own cannot both be given")
        if auth is not None and token is not None:
            raise TypeError(
                "token and auth cannot both be given: the one is sent as it is, the other is what "
                "gets tokens"
            )
        if auth is not None and (isinstance(auth, type) or not callable(getattr(auth, "to", None))):
            raise TypeError(
                "auth is what gets tokens, such as OAuth() or ClientCredentials(...); a token that "
                "you have goes to token="
            )
        own = {
            **(headers or {}),
            **({"Authorization": f"Bearer {token}"} if token is not None else {}),
        }
        self.url = url
        self.limit = limit
        self.tap = tap
        self._authorized = auth.to(url) if auth is not None else None
        self.letters = RequestHeaders(own)
        self._given = fetch
        self._fetching = fetching
        self._fetch = fetch
        self._sleep = sleep
        self._legacy_sse = legacy_sse
        self._listens = listen
        self._repeats = RetryRules(allowed=repeat)
        self._trips: HttpRequests | None = None
        self._hello: Hello | None = None
        self._revision = ""
        self._renewing: asyncio.Task[None] | None = None
        # state that a new session has to be sent again, such as subscriptions
        self._level: Exchange | None = None
        self._subscribed: dict[str, Exchange] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._calls: set[asyncio.Task[Any]] = set()
        self._thrown_out: set[asyncio.Task[Any]] = set()
        self._old: LegacySse | None = None
        self._closing = False

    # -- opening and closing -----------------------------------------------------------------------

    async def open(self, hello: Hello) -> Opened:
        """Determine the server's era, and negotiate a revision. Raises Unreachable,
        UnsupportedRevision or McpError.
        """
        self._closing = False
        self._level = None
        self._subscribed = {}
        task = asyncio.current_task()
        assert task is not None
        self._calls.add(task)
        try:
            return await self._open(hello)
        except asyncio.CancelledError:
            self._say_if_closed(task)
            raise
        finally:
            self._calls.discard(task)
            self._thrown_out.discard(task)

    async def _open(self, hello: Hello) -> Opened:
        if self._fetch is None:
            from interlock.http11.client import (
                HttpFetch,  # late: only if no HTTP client is given
            )

            self._fetch = HttpFetch(**self._fetching)
        self._hello = hello
        conversation = Conversation(self._send_apart)
        conversation.hello = hello
        self.letters.extensions = hello.extensions
        self._trips = HttpRequests(
            self.url,
            self._fetch,
            self.letters,
            conversation,
            limit=self.limit,
            tap=self.tap,
            sleep=self._sleep,
            spawn=self._spawn,
            authorized=self._authorized,
        )
        if self._legacy_sse:
            return await self._open_old(hello)
        steps = OpeningSteps(
            hello, conversation.connection, self._send_opening_request, keeps=False
        )
        try:
            opened = await agree(hello, steps.run_step)
        except t.Unreachable as bad:
            why = bad.__cause__ if isinstance(bad.__cause__, t.McpError) else bad
            if (
                self._legacy_sse is False
                or not rejects_protocol(bad.status)
                or not any(era(r) is Era.HANDSHAKE for r in hello.revisions)
            ):
                raise why from None
            return await self._open_old(hello, why)
        finally:
            await steps.aclose()
        conversation.connection.revision = opened.revision
        self._revision = opened.revision
        if era(opened.revision) is Era.HANDSHAKE:
            await self.trips.post(jsonrpc.notification(OPENED, b"{}"))
            if self._listens:
                await self._start_listening(hello)
        return opened

    async def _send_opening_request(self, x: Exchange) -> AnyResult:
        """Send one exchange of the opening. If the server does not know the newest revision, the
        handshake is tried next (`ERA-10`).
        """
        try:
            return await self.trips.make(x)
        except t.Unreachable as bad:
            if x.method == "server/discover" and rejects_protocol(bad.status):
                raise t.McpError(t.INTERNAL_ERROR, str(bad)) from bad
            raise

    async def _open_old(self, hello: Hello, why: t.InterlockError | None = None) -> Opened:
        """Open the legacy transport: an event stream that names the endpoint to post to (`ERA-11`,
        `ERA-12`).

        `why` is the error of Streamable HTTP that led here. With it the wait is short, because a
        server of Streamable HTTP may return a silent stream.
        """
        handshake = tuple(r for r in hello.revisions if era(r) is Era.HANDSHAKE)
        if not handshake:
            raise UnsupportedRevision(
                f"HTTP with SSE is older than {', '.join(hello.revisions)}; allow a revision of "
                "the handshake era for it."
            )
        probe_seconds = (
            DEFAULT_PROBE_SECONDS if hello.probe_seconds is None else hello.probe_seconds
        )
        seconds = hello.open_seconds if why is None else min(probe_seconds, hello.open_seconds)
        self._old = old = LegacySse(
            self.url,
            self.trips.send,
            self.letters,
            limit=self.limit,
            tap=self.tap,
            repeats=self._repeats,
            sleep=self._sleep,
        )
        hello = replace(hello, revisions=handshake, known=handshake[0])
        try:
            return await old.open(hello, seconds)
        except NoLegacySse as bad:
            raise (why or bad.why) from bad.why

    @property
    def token_refreshes(self) -> Mapping[str, int]:
        """How often the OAuth tokens were refreshed, by outcome; empty without `auth`."""
        found: Mapping[str, int] = getattr(self._authorized, "refreshes", {})
        return found

    @property
    def trips(self) -> HttpRequests:
        """The state that requests share while the transport is open. Raises Unreachable if it is
        not open.
        """
        if self._trips is None:
            raise t.Unreachable("The client is closed, or was not opened.")
        return self._trips

    async def aclose(self) -> None:
        """End the session, if there is one, and all running requests."""
        self._closing = True
        for task in self._calls - {asyncio.current_task()}:
            self._thrown_out.add(task)
            task.cancel()
        try:
            old = self._old
            self._old = None
            if old is not None:
                await old.aclose()
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            trips = self._trips
            self._trips = None
            if trips is not None:
                await trips.conversation.close(t.Unreachable("The client was closed."))
                with contextlib.suppress(t.InterlockError, TimeoutError):
                    async with asyncio.timeout(_GOODBYE):
                        await trips.end_session()
        finally:
            if self._fetch is not None and self._given is None:
                fetch = self._fetch
                self._fetch = None
                await fetch.aclose()

    # -- exchanges ---------------------------------------------------------------------------------

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """Send one exchange and return its result."""
        if self._old is not None:
            return await self._old(exchange)
        task = asyncio.current_task()
        if self._trips is None or task is None:
            raise t.Unreachable("The client is closed, or was not opened.")
        nested = task in self._calls
        self._calls.add(task)
        try:
            if exchange.method == "subscriptions/listen":
                return await listen(exchange, self.trips.make, self._sleep)
            return self._learn(exchange, await self._carry(exchange))
        except asyncio.CancelledError:
            self._say_if_closed(task)
            raise
        finally:
            if not nested:
                self._calls.discard(task)
                self._thrown_out.discard(task)

    def _say_if_closed(self, task: asyncio.Task[Any]) -> None:
        if task in self._thrown_out:
            task.uncancel()
            raise t.Unreachable("The client was closed.") from None

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification that belongs to no request."""
        if self._old is not None:
            self._old.send_notification(method, params)
            return
        if self._trips is None:
            return
        connection = self._trips.conversation.connection
        if method not in connection.extensions.notifications:
            self._trips.conversation.send_notification(method, params)
        elif not self._closing:  # the stateless era has no other separate notifications
            frame = jsonrpc.notification(method, encode(params, connection.revision))
            self._spawn(self._post_quietly(frame, repeat=False))

    async def _carry(self, x: Exchange) -> AnyResult:
        """Send a request. Repeat it if its session was gone, if its headers were out of date, or if
        it was lost and may be repeated.
        """
        renewed = relisted = False
        tries = 0
        while True:
            if self._renewing is not None:
                await asyncio.shield(self._renewing)
            session = self.trips.session
            try:
                return await self.trips.make(x)
            except SessionGone:
                if renewed:
                    raise
                renewed = True
                await self._renew(session)
                if (
                    getattr(x.params, "cursor", None) is not None
                ):  # `PAG-04`: the cursor belonged to the old session
                    raise t.McpError(
                        t.INVALID_PARAMS,
                        "The list has to be begun again: the session that gave the cursor is gone.",
                        GONE,
                    ) from None
            except t.Unreachable as bad:
                if not (
                    isinstance(bad, ConnectionLost) or (tries and bad.status is None)
                ):  # a server that restarts is unavailable for a moment
                    raise
                tries += 1
                if not self._repeats.may(x) or tries >= MOST_TRIES:
                    raise
                await self._sleep(backoff(tries))
            except t.McpError as bad:
                if bad.code != t.HEADER_MISMATCH or x.method != "tools/call" or relisted:
                    raise
                relisted = True
                if not await self._relist(x):
                    raise

    def _learn(self, x: Exchange, result: AnyResult) -> AnyResult:
        """Record what a response means for later requests."""
        self._repeats.learn(result)
        listed = result.read if isinstance(result, RawResult) else result
        if isinstance(listed, t.ListToolsResult):
            if x.caller.era is not Era.STATELESS:
                return result
            good = self.letters.learn(listed)
            return result if good is listed else good
        if x.method == "logging/setLevel":
            self._level = x
        elif x.method == "resources/subscribe":
            self._subscribed[x.params.uri] = x
        elif x.method == "resources/unsubscribe":
            self._subscribed.pop(x.params.uri, None)
        return result

    async def _relist(self, x: Exchange) -> bool:
        """List the tools again, because the server misses headers (`XMH-18`). Returns whether the
        headers have changed.
        """
        before = self.letters.knows(x.params.name)
        cursor: str | None = None
        for _ in range(1000):
            page = await self.trips.make(
                Exchange("tools/list", t.ListToolsRequestParams(cursor=cursor), x.caller)
            )
            self._learn(Exchange("tools/list", None, x.caller), page)
            cursor = page.next_cursor if isinstance(page, t.ListToolsResult) else None
            if cursor is None:
                break
        return self.letters.knows(x.params.name) != before

    # -- separate messages, and the GET stream -----------------------------------------------------

    def _send_apart(self, frames: list[Frame]) -> None:
        """Post responses to the server's questions, and notifications, each in a separate POST
        (`HTL-02`).
        """
        if (
            self._trips is not None
            and not self._closing
            and era(self._trips.conversation.connection.revision) is Era.HANDSHAKE
        ):
            for frame in frames:
                self._spawn(self._post_quietly(frame))

    async def _post_quietly(self, frame: Frame, *, repeat: bool = True) -> None:
        """Post a message. With `repeat`, post it again if it was lost, because it may arrive twice;
        and more often if the server cannot take it for now.
        """
        tried = 0
        while True:
            try:
                await self.trips.post(frame, aside=True)
                return
            except (t.Unreachable, t.ProtocolError) as bad:
                tried += 1
                status = bad.status if isinstance(bad, t.Unreachable) else 400
                most = {None: MOST_TRIES, 503: MOST_UNAVAILABLE_TRIES}.get(status, 1)
                if not repeat or tried >= most:
                    log.warning("a message did not reach the server: %s", bad)
                    return
            await self._sleep(backoff(tried))

    async def _start_listening(self, hello: Hello) -> None:
        """Open the GET stream before the first call, because the server may drop notifications
        without a listener.
        """
        listening = ListeningStream(
            self.trips, hello.notify, self._renew, self._subscribed, self.limit, self._sleep
        )
        self._spawn(listening.run())
        with contextlib.suppress(
            TimeoutError
        ):  # some servers send their response only with the first event
            async with asyncio.timeout(_LISTENING):
                await listening.begun.wait()

    # -- sessions ----------------------------------------------------------------------------------

    async def _renew(self, gone: str | None) -> None:
        """Open a new session in place of one that is gone (`HTL-43`). Concurrent callers wait for
        the same one.
        """
        if self.trips.session != gone:
            return
        if self._renewing is None:
            self._renewing = self._spawn(self._open_session_again())
            self._renewing.add_done_callback(self._renewed)
        await asyncio.shield(self._renewing)

    def _renewed(self, task: asyncio.Task[None]) -> None:
        self._renewing = None
        if not task.cancelled():
            task.exception()  # mark the exception as retrieved: possibly no request waits for it

    async def _open_session_again(self) -> None:
        hello = self._hello
        trips = self.trips
        assert hello is not None
        gone = trips.session
        capabilities = hello.capabilities_in(self._revision)
        caller = Caller(self._revision, capabilities, hello.info)
        params = opening_params(self._revision, capabilities, hello.info)
        try:
            async with asyncio.timeout(hello.open_seconds):
                result = await trips.make(Exchange(OPENING, params, caller))
                if agreed_revision(result) != self._revision:
                    raise t.Unreachable(
                        "The server has ended the session, and speaks another revision now; open "
                        "the client anew."
                    )
                await trips.post(jsonrpc.notification(OPENED, b"{}"))
                for x in [
                    *([self._level] if self._level is not None else []),
                    *self._subscribed.values(),
                ]:
                    with contextlib.suppress(t.McpError):
                        await trips.make(x)
        except BaseException as bad:
            trips.session = gone  # so that the next call tries to renew the session again
            if isinstance(bad, TimeoutError):
                raise t.TimedOut(
                    "The server has ended the session, and does not answer who wants to begin "
                    "another."
                ) from None
            raise

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

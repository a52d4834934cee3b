"""A channel to a server over HTTP that posts recorded messages as they were written."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from .. import types as t
from ..http11.client import HttpFetch
from ..http11.fetch import Authorizer, Fetch, Request, Response
from ..logs import limited
from ..protocol.extensions import MIRRORED_NAMES
from ..protocol.handshake.messages import OPENED, is_opening
from ..tasks.messages import TASKS
from ..transport.http.client.event_stream import EventStream, Sleep, is_events
from ..transport.http.client.refusals import error_of, refusal, session_of
from ..transport.http.client.request_headers import Pairs, RequestHeaders
from ..transport.http.client.sending import HttpSender
from ..types.base import NOTHING, RequestId
from ..wire.codec import decode
from ..wire.jsonrpc import READ_ERRORS, Frame, Malformed, encode_json, failure
from ..wire.lines import DEFAULT_LIMIT
from ..wire.revisions import NEWEST, REVISIONS, supports
from .message import revision_of

log = limited("interlock.tape")

_CLOSE_SECONDS = 2.0  # that queued messages and the end of the session may take at the end
_LISTEN_SECONDS = 1.0  # that the response to the GET stream may take before later messages are sent
_MOST_RECONNECTS = 5
_MOST_PAGES = 100  # of the list of tools
_LONGEST_REFUSAL = 1024 * 1024
_OWN_LIST = "interlock-replay-list"  # the id of the list of tools that no recorded message asks for
_CANCELLED = "notifications/cancelled"
_NO_ACCESS = (401, 403, 407)
_NAMES: Mapping[str, str] = {
    **MIRRORED_NAMES,
    **{name: each.mirrored for name, each in TASKS.methods.items() if each.mirrored is not None},
}  # the member of the params that the header Mcp-Name repeats


class HttpReplayChannel:
    """Posts the messages of a client to the endpoint at a URL, and receives those of the server.

    Each message is one POST, with the headers that its revision prescribes. Requests are answered
    concurrently; a notification and a response are posted before the messages after them. In the
    handshake era the session of the server is kept, and its GET stream is open. In the stateless
    era `notifications/cancelled` closes the stream of the request, because over HTTP this cancels
    it.

    Args:
        url: The URL of the endpoint.
        headers: Headers of every request.
        auth: Authorizes each request.
        fetch: The HTTP client. By default an `HttpFetch`. A client that you pass is not closed.
        limit: The maximum size of a message, in bytes.
        sleep: Waits for a number of seconds before a stream is resumed.

    Attributes:
        error: Why the server cannot be used: it cannot be reached, refuses access, or has no
            endpoint there. The channel has ended then.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Authorizer | None = None,
        fetch: Fetch | None = None,
        limit: int = DEFAULT_LIMIT,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.error: t.InterlockError | None = None
        self._fetch = HttpFetch() if fetch is None else fetch
        self._closes_fetch = fetch is None
        self._sender = HttpSender(url, self._fetch, None if auth is None else auth.to(url))
        self._headers = RequestHeaders(headers or {})
        self._limit = limit
        self._sleep = sleep
        self._revision = ""
        self._session: str | None = None
        self._outgoing: asyncio.Queue[Frame] = asyncio.Queue()
        self._incoming: deque[Frame] = deque()
        self._arrived = asyncio.Event()
        self._posts: dict[RequestId, asyncio.Task[None]] = {}  # requests without a response so far
        self._tasks: set[asyncio.Task[None]] = set()
        self._posting: asyncio.Task[None] | None = None
        self._has_ended = False

    # -- the channel -------------------------------------------------------------------------------

    async def receive(self) -> list[Frame]:
        """Return the next messages of the server; an empty list at the end."""
        while not self._incoming and not self._has_ended:
            self._arrived.clear()
            await self._arrived.wait()
        frames = list(self._incoming)
        self._incoming.clear()
        return frames

    def send(self, frames: list[Frame]) -> None:
        """Queue messages to be posted, in order."""
        if self._has_ended:
            return
        for frame in frames:
            self._outgoing.put_nowait(bytes(frame))
        if self._posting is None:
            self._posting = asyncio.get_running_loop().create_task(self._post_all())

    async def drain(self) -> None:
        """Return at once: the queue has no limit."""

    @property
    def queued(self) -> int:
        """Always 0: the bytes of the queue are not counted."""
        return 0

    @property
    def lost(self) -> str:
        """Always empty: no messages are dropped."""
        return ""

    async def aclose(self) -> None:
        """Post the queued messages, end the session, and close every stream."""
        if self._posting is not None and self.error is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._outgoing.join()
        tasks = [*self._tasks, *([] if self._posting is None else [self._posting])]
        self._posting = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        session = self._session
        self._session = None
        if session is not None:
            headers = self._headers.get(self._revision, session, None)
            with contextlib.suppress(t.InterlockError, TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._sender.send_signed(
                        Request("DELETE", self._sender.url, headers, aside=True)
                    )
        self._end()
        if self._closes_fetch:
            await self._fetch.aclose()

    def _deliver(self, frame: Frame) -> None:
        self._incoming.append(frame)
        self._arrived.set()

    def _end(self) -> None:
        self._has_ended = True
        self._arrived.set()

    def _fail(self, bad: t.InterlockError) -> None:
        """End the channel, because the server cannot be used."""
        if self.error is None:
            self.error = bad
        self._end()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- messages of the client --------------------------------------------------------------------

    async def _post_all(self) -> None:
        while True:
            frame = await self._outgoing.get()
            try:
                await self._forward(frame)
            finally:
                self._outgoing.task_done()

    async def _forward(self, frame: Frame) -> None:
        """Post one message. Return once the next one may be posted."""
        self._revision = revision_of(frame) or self._revision
        try:
            message = msgspec.json.decode(frame)
        except READ_ERRORS:
            message = None
        if not isinstance(message, dict):  # a batch, or what the client sent in place of a message
            self._spawn(self._answered(frame, {}, self._revision))
            return
        method = message.get("method")
        id = message.get("id")
        if isinstance(method, str) and is_opening(method):  # of the other era, after a probe
            self._revision = ""
            self._session = None
        if isinstance(method, str) and isinstance(id, int | str):
            task = self._posts[id] = self._spawn(self._answered(frame, message, self._revision))
            if is_opening(method):  # later messages need its session and its revision
                await asyncio.wait({task})
            return
        if method == _CANCELLED and self._is_stateless:
            params = message.get("params")
            cancelled = params.get("requestId") if isinstance(params, dict) else None
            running = self._posts.get(cancelled) if isinstance(cancelled, int | str) else None
            if running is not None:
                running.cancel()
            return
        await self._post_without_answer(frame)
        if method == OPENED:
            begun = asyncio.Event()
            self._spawn(self._listen(begun))
            with contextlib.suppress(TimeoutError):  # some servers respond with the first event
                async with asyncio.timeout(_LISTEN_SECONDS):
                    await begun.wait()

    async def _post_without_answer(self, frame: Frame) -> None:
        """Post a notification, or a response to the server."""
        headers = self._headers.message(self._revision, self._session)
        try:
            response = await self._sender.send(
                Request("POST", self._sender.url, headers, frame, again=True, aside=True)
            )
            try:
                if response.status >= 300:
                    body = await response.read(_LONGEST_REFUSAL)
                    log.warning("%s", refusal(self._sender.url, response, body))
            finally:
                await response.aclose()
        except t.InterlockError as bad:
            self._fail(bad)

    async def _answered(self, frame: Frame, message: Mapping[str, Any], revision: str) -> None:
        """Post a request of a revision, and deliver what the server sends for it."""
        id = message.get("id")
        try:
            await self._request(frame, message, revision)
        except t.InterlockError as bad:
            self._fail(bad)
        except (ValueError, Malformed) as bad:  # a header that cannot be sent
            self._refuse(id, str(bad))
        finally:
            if isinstance(id, int | str):
                self._posts.pop(id, None)

    def _refuse(self, id: Any, words: str) -> None:
        """Deliver an error in place of the response that the server did not send."""
        self._deliver(failure(id if isinstance(id, int | str) else None, t.INTERNAL_ERROR, words))

    async def _request(self, frame: Frame, message: Mapping[str, Any], revision: str) -> None:
        method = message.get("method")
        opens = isinstance(method, str) and is_opening(method)
        is_relisted = False
        while True:
            response = await self._post(frame, message, revision)
            try:
                if opens and response.status == 200:
                    self._session = session_of(response)
                if is_events(response):
                    await self._follow(response, message)
                    return
                body = await response.read(self._limit)
            finally:
                await response.aclose()
            error = error_of(body)
            if (
                response.status == 400
                and error is not None
                and error.code == t.HEADER_MISMATCH
                and method == "tools/call"
                and not is_relisted
            ):
                is_relisted = True
                await self._list_tools(message, revision)
                continue
            self._receive_body(response, body, message, opens=opens)
            return

    def _receive_body(
        self, response: Response, body: bytes, message: Mapping[str, Any], *, opens: bool
    ) -> None:
        """Deliver a response that is no event stream."""
        id = message.get("id")
        kind = response.headers.get("content-type", "").lower()
        if response.status == 200 and kind.startswith("application/json"):
            self._learn(body, message)
            self._deliver(body)
            return
        if response.status == 202 and id is None:  # a batch without requests
            return
        error = error_of(body)
        if error is not None and response.status not in _NO_ACCESS:
            known = id if isinstance(id, int | str) else None
            self._deliver(failure(known, error.code, error.message, error.data))
            return
        bad = refusal(self._sender.url, response, body)
        if opens or response.status in _NO_ACCESS:
            self._fail(bad)
        else:
            self._refuse(id, str(bad))

    async def _post(self, frame: Frame, message: Mapping[str, Any], revision: str) -> Response:
        method = message.get("method")
        headers = (
            self._head(message, revision)
            if isinstance(method, str)
            else self._headers.message(revision, self._session)
        )
        request = Request(
            "POST",
            self._sender.url,
            headers,
            frame,
            aside=method == "subscriptions/listen",
        )
        return await self._sender.send(request)

    def _head(self, message: Mapping[str, Any], revision: str) -> Pairs:
        """Return the headers of a request. They repeat parts of its params."""
        method = message["method"]
        params = message.get("params")
        members = params if isinstance(params, dict) else {}
        name = members.get(_NAMES.get(method, ""))
        arguments = members.get("arguments")
        # A recorded request may name a revision that does not exist, to see it refused.
        known = revision if not revision or revision in REVISIONS else NEWEST
        pairs = self._headers.request(
            known,
            method,
            None if is_opening(method) else self._session,
            name if isinstance(name, str) else None,
            Raw(encode_json(arguments)) if isinstance(arguments, dict) else NOTHING,
        )
        return tuple(
            (header, revision if header == "MCP-Protocol-Version" else value)
            for header, value in pairs
        )

    # -- messages of the server --------------------------------------------------------------------

    async def _follow(self, response: Response, message: Mapping[str, Any]) -> None:
        """Deliver the messages of a stream until the response has come. A broken stream is resumed
        if the server gave it event ids (`HTL-18`).
        """
        id = message.get("id")
        stream = EventStream(self._limit)
        failed = 0
        while True:
            before = stream.last
            try:
                if await self._read(response, stream, message):
                    return
                how = "The server ended the stream before its response."
            except t.Unreachable as bad:
                how = str(bad)
            failed = 0 if stream.last != before else failed + 1
            if stream.last is None or self._is_stateless or failed > _MOST_RECONNECTS:
                self._refuse(id, how)
                return
            await self._sleep(stream.wait(failed))
            response = await self._get(stream.last)
            if not is_events(response):
                await response.aclose()
                self._refuse(id, f"{how} It is not resumed: status {response.status}.")
                return

    @property
    def _is_stateless(self) -> bool:
        return supports(self._revision, "mirrored_headers")

    async def _read(
        self, response: Response, stream: EventStream, message: Mapping[str, Any]
    ) -> bool:
        """Deliver the messages of a stream. Returns whether the response to a request was among
        them.
        """
        id = message.get("id")
        stream.start()
        try:
            async for chunk in response.chunks():
                for frame in stream.feed(chunk):
                    is_last = id is not None and _answers(frame, id)
                    if is_last:
                        self._learn(frame, message)
                    self._deliver(frame)
                    if is_last:
                        return True
        finally:
            await response.aclose()
        return id is None  # a batch: the end of the stream is the end of its responses

    async def _listen(self, begun: asyncio.Event) -> None:
        """Deliver the messages of the session's GET stream, until the server refuses it."""
        stream = EventStream(self._limit)
        failed = 0
        while failed <= _MOST_RECONNECTS:
            before = stream.last
            try:
                response = await self._get(stream.last)
                begun.set()
                if not is_events(response):
                    await response.aclose()
                    return
                await self._read(response, stream, {})
            except t.InterlockError as bad:
                log.debug("the stream of the session broke: %s", bad)
            finally:
                begun.set()
            failed = 0 if stream.last != before else failed + 1
            await self._sleep(stream.wait(failed))

    async def _get(self, last_event: str | None) -> Response:
        headers = self._headers.get(self._revision, self._session, last_event)
        return await self._sender.send(Request("GET", self._sender.url, headers, aside=True))

    # -- what responses say about later requests ---------------------------------------------------

    def _learn(self, body: Frame, message: Mapping[str, Any]) -> str | None:
        """Note the revision of a handshake, and which arguments of tools headers repeat. Returns
        the cursor of the next page of tools.
        """
        method = message.get("method")
        if isinstance(method, str) and is_opening(method):
            self._revision = revision_of(body) or self._revision
        if method != "tools/list":
            return None
        try:
            result = msgspec.json.decode(body, type=_Response).result
            listed = decode(result, t.ListToolsResult)
        except (*READ_ERRORS, Malformed):
            return None
        assert isinstance(listed, t.ListToolsResult)
        self._headers.learn(listed)
        return listed.next_cursor

    async def _list_tools(self, message: Mapping[str, Any], revision: str) -> None:
        """List the tools, because the server misses headers that repeat arguments (`XMH-18`)."""
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            asked: dict[str, Any] = {"_meta": meta or {}}
            if cursor is not None:
                asked["cursor"] = cursor
            own = {"jsonrpc": "2.0", "id": _OWN_LIST, "method": "tools/list", "params": asked}
            response = await self._post(encode_json(own), own, revision)
            try:
                body = await _whole_answer(response, self._limit)
            finally:
                await response.aclose()
            cursor = self._learn(body, own)
            if cursor is None:
                return


class _Response(msgspec.Struct):
    """A successful response with its result as bytes."""

    result: Raw


async def _whole_answer(response: Response, limit: int) -> Frame:
    """Return the last message of a response, which is JSON or an event stream."""
    if not is_events(response):
        return await response.read(limit)
    stream = EventStream(limit)
    last = b""
    async for chunk in response.chunks():
        for frame in stream.feed(chunk):
            last = frame
    return last


def _answers(frame: Frame, id: RequestId) -> bool:
    """Whether a frame is the response to a request."""
    try:
        message = msgspec.json.decode(frame)
    except READ_ERRORS:
        return False
    return isinstance(message, dict) and "method" not in message and message.get("id") == id

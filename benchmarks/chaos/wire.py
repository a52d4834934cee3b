"""An MCP client by hand, over HTTP: each request ends with an outcome, whatever happens to it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from interlock import types as t
from interlock.http11.client import HttpFetch
from interlock.http11.fetch import ConnectionLost, Request, Response
from interlock.http11.proxies import Proxies
from interlock.wire.sse import Event, EventReader

from ..roster import HANDSHAKE, STATELESS
from .ledger import Ledger, Outcome

MOST = 64 * 1024 * 1024  # bytes of one answer
AGAIN = 0.2  # seconds before a stream is resumed
TEMPORARY = {"store", "shutdown", "busy", "rate", "overloaded"}
SAYS_NOTHING = {"", "internal error", "internal server error"}
YES = {"action": "accept", "content": {"confirm": True}}
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": {"name": "chaos", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}

Question = Callable[[dict[str, Any]], Awaitable[None]]


class WireClient:
    """One client with its own connections and its own address.

    Args:
        url: The endpoint.
        address: What `X-Forwarded-For` says.
        ledger: Where outcomes are recorded.
        deadline: The time after which an unanswered request is lost, in seconds.
    """

    def __init__(self, url: str, address: str, ledger: Ledger, deadline: float) -> None:
        self.ledger = ledger
        self.session = ""
        self.last_end = ""
        self._url = url
        self._address = address
        self._deadline = deadline
        self._fetch = HttpFetch(proxies=Proxies())
        self._ids = itertools.count(1)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._fetch.aclose()

    async def call(
        self,
        kind: str,
        tool: str,
        arguments: dict[str, Any],
        *,
        question: Question | None = None,
        cancel_after: float | None = None,
        **params: Any,
    ) -> Outcome:
        """Call a tool, in the session if there is one."""
        given = {"name": tool, "arguments": arguments, **params}
        return await self.request(
            kind, "tools/call", given, question=question, cancel_after=cancel_after
        )

    async def request(
        self,
        kind: str,
        method: str,
        params: dict[str, Any],
        *,
        question: Question | None = None,
        cancel_after: float | None = None,
    ) -> Outcome:
        """Send a request and record how it ended.

        Args:
            kind: The kind of load, for the ledger.
            method: The method.
            params: Its params.
            question: Answers the server's requests that arrive before the response.
            cancel_after: The seconds after which the client gives the request up.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        fault = self.ledger.fault
        id = next(self._ids)
        try:
            async with asyncio.timeout(cancel_after or self._deadline):
                outcome = await self._exchange(id, method, params, question)
        except TimeoutError:
            if cancel_after is None:
                outcome = Outcome("lost", reason=f"no answer in {self._deadline:g} s")
            else:
                outcome = Outcome("cancelled")
                await self._cancel(id)
        self.ledger.record(kind, outcome, loop.time() - began, fault)
        self.last_end = outcome.end
        return outcome

    async def notify(self, message: dict[str, Any]) -> int:
        """Send a message without an answer; the HTTP status, 0 if the connection failed."""
        try:
            async with asyncio.timeout(self._deadline):
                response = await self._post(message, "")
        except (t.Unreachable, TimeoutError):
            return 0
        await response.aclose()
        return response.status

    async def stream(self, last: str | None = None) -> Response:
        """Open the session's GET stream, or resume a stream after an event."""
        headers = [("Accept", "text/event-stream"), *self._headers()]
        if last is not None:
            headers.append(("Last-Event-ID", last))
        return await self._fetch(Request("GET", self._url, tuple(headers)))

    async def end_session(self) -> None:
        """End the session."""
        headers = tuple(self._headers())
        self.session = ""
        try:
            async with asyncio.timeout(self._deadline):
                await (await self._fetch(Request("DELETE", self._url, headers))).aclose()
        except (t.Unreachable, TimeoutError):
            pass  # it expires by itself

    def _headers(self) -> list[tuple[str, str]]:
        session = []
        if self.session:
            session = [("Mcp-Session-Id", self.session), ("MCP-Protocol-Version", HANDSHAKE)]
        return [("X-Forwarded-For", self._address), *session]

    async def _post(self, message: dict[str, Any], method: str) -> Response:
        headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            *self._headers(),
        ]
        if method and method != "initialize" and not self.session:
            headers += [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", method)]
            if "name" in message["params"]:
                headers.append(("Mcp-Name", message["params"]["name"]))
        return await self._fetch(
            Request("POST", self._url, tuple(headers), json.dumps(message).encode())
        )

    async def _exchange(
        self, id: int, method: str, params: dict[str, Any], question: Question | None
    ) -> Outcome:
        if not self.session and method != "initialize":
            params = {**params, "_meta": {**META, **params.get("_meta", {})}}
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        try:
            response = await self._post(message, method)
            try:
                if response.status >= 400:
                    return refusal(response.status, await response.read(MOST))
                if method == "initialize":
                    self.session = response.headers.get("mcp-session-id", "")
                if "text/event-stream" not in response.headers.get("content-type", ""):
                    return outcome_of(json.loads(await response.read(MOST)))
            except BaseException:
                await response.aclose()
                raise
            return await self._follow(response, id, question)
        except t.InterlockError as bad:
            return Outcome("cut", reason=shortened(str(bad)))

    async def _follow(self, response: Response, id: int, question: Question | None) -> Outcome:
        """Read an event stream up to the response; resume it if it has event ids."""
        last: str | None = None
        while True:
            ended = Outcome("lost", reason="the stream ended without the response")
            try:
                async for event in events(response):
                    last = event.id or last
                    message = json.loads(event.data) if event.data else {}
                    if message.get("id") == id and "method" not in message:
                        return outcome_of(message)
                    if "method" in message and "id" in message and question is not None:
                        await question(message)
            except ConnectionLost:
                ended = Outcome("cut", reason="the stream was cut")
            finally:
                await response.aclose()
            if last is None or not self.session:
                return ended
            while True:
                await asyncio.sleep(AGAIN)
                try:
                    response = await self.stream(last)
                except t.Unreachable:
                    continue
                if response.status == 200:
                    break
                refused = refusal(response.status, await response.read(MOST))
                if not refused.temporary:
                    return refused

    async def _cancel(self, id: int) -> None:
        """Cancel a request as its revision does; the stateless era closes the connection."""
        if self.session:
            await self.notify(
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/cancelled",
                    "params": {"requestId": id},
                }
            )


async def events(response: Response) -> AsyncIterator[Event]:
    """The events of a stream, as they arrive."""
    reader = EventReader()
    async for chunk in response.chunks():
        for event in reader.feed(chunk):
            yield event


def outcome_of(message: dict[str, Any]) -> Outcome:
    """The outcome that a JSON-RPC response states."""
    if "error" in message:
        return _error(message["error"], "")
    result = message["result"]
    if result.get("isError"):
        return Outcome("refused", reason=f"tool: {shortened(text_of(result))}")
    return Outcome("answered", result)


def refusal(status: int, body: bytes) -> Outcome:
    """The outcome that an HTTP error states."""
    try:
        return _error(json.loads(body)["error"], f"{status}: ", status in (429, 503))
    except (ValueError, KeyError, TypeError):
        text = body.decode(errors="replace").strip()
    if text.lower() in SAYS_NOTHING:
        return Outcome("lost", reason=f"{status}: an error that says nothing")
    return Outcome("refused", reason=f"{status}: {shortened(text)}", temporary=status in (429, 503))


def _error(error: Any, before: str, temporary: bool = False) -> Outcome:
    if not isinstance(error, dict):
        return Outcome("refused", reason=f"{before}{shortened(str(error))}", temporary=temporary)
    words = str(error.get("message", ""))
    data = error.get("data")
    reason = data.get("reason") if isinstance(data, dict) else None
    if words.partition(" (")[0].strip().lower().rstrip(".") in SAYS_NOTHING and not reason:
        return Outcome("lost", reason=f"{before}{error.get('code')}: an error that says nothing")
    told = f"{before}{reason}" if reason else f"{before}{error.get('code')} {shortened(words)}"
    return Outcome("refused", reason=told, temporary=temporary or reason in TEMPORARY)


def text_of(result: dict[str, Any]) -> str:
    """The text of a tool's result."""
    return "".join(part.get("text", "") for part in result.get("content", []))


def shortened(words: str) -> str:
    """A text without what differs from request to request."""
    kept = " ".join("N" if word.strip(".,:'\"()").isdigit() else word for word in words.split())
    return kept[:110]

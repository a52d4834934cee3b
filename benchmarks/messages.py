"""The messages that the load generator sends, as bytes built once, and the expected answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .roster import HANDSHAKE, STATELESS

Params = dict[str, Any]
WHO: Params = {"name": "load", "version": "1.0.0"}
META: Params = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": WHO,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Request:
    """A request that is sent repeatedly, each time with another id."""

    method: str
    params: Params
    right: Callable[[Params], bool]  # whether a result is the expected one

    def parts(self, revision: str) -> tuple[bytes, bytes]:
        """Return the bytes before and after the id."""
        params = {"_meta": META, **self.params} if revision >= STATELESS else self.params
        text = dump({"method": self.method, "params": params})
        return b'{"jsonrpc":"2.0","id":', b"," + text[1:] + b"\n"

    def one(self, revision: str, number: int) -> bytes:
        """Return the request with this id."""
        before, after = self.parts(revision)
        return before + b"%d" % number + after


@dataclass(frozen=True)
class Hold:
    """The kind and number of objects that a server must keep: `session`, `bare session` (opened
    quickly: many requests at once, and no notification), `stream` (a session and its GET stream) or
    `listen`. `tells`: how often all listeners are told of a change."""

    what: str
    count: int
    tells: int = 0


def dump(message: Any) -> bytes:
    """Return JSON without needless spaces."""
    return json.dumps(message, separators=(",", ":")).encode()


def call(name: str, arguments: Params, right: Callable[[Params], bool]) -> Request:
    """Return a call of a tool."""
    return Request("tools/call", {"name": name, "arguments": arguments}, right)


def says(answer: int) -> Callable[[Params], bool]:
    """Return a check for a number, given both as text and as structured content."""
    return lambda result: (
        result["content"][0]["text"] == str(answer)
        and result["structuredContent"] == {"result": answer}
    )


def rows(count: int) -> Request:
    """Return a call whose structured result has a number of rows."""
    return call(
        "rows", {"count": count}, lambda result: len(result["structuredContent"]["result"]) == count
    )


MEGABYTE = 1_000_000
ROWS = [
    {
        "id": number,
        "name": f"Person Number {number}",
        "email": f"person.{number}@example.org",
        "score": number * 1.25,
        "active": number % 2 == 0,
        "tags": ["alpha", "beta"],
    }
    for number in range(20)
]

AADD = call("aadd", {"a": 1, "b": 2}, says(3))
ADD = call("add", {"a": 1, "b": 2}, says(3))
RECORD = call("record", {"records": ROWS}, says(90))
TEXT = call(
    "text", {"size": MEGABYTE}, lambda result: len(result["content"][0]["text"]) == MEGABYTE
)
LENGTH = call("length", {"text": "x" * MEGABYTE}, says(MEGABYTE))
ANNOUNCE = call("announce", {}, lambda result: not result.get("isError"))
LIST = Request("tools/list", {}, lambda result: "tools" in result)

LISTEN = Request(
    "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, lambda result: True
)

INITIALIZE = Request(
    "initialize",
    {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": WHO},
    lambda result: result["protocolVersion"] == HANDSHAKE,
)
INITIALIZED = dump({"jsonrpc": "2.0", "method": "notifications/initialized"}) + b"\n"

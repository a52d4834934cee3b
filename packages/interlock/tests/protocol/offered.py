"""HTTP requests as they come to an endpoint, as plain data that a test can spoil one thing of, and
what is judged of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from interlock.protocol.http import (
    EndpointHead,
    EndpointRules,
    HttpRefusal,
    Verdict,
    judge,
    read_head,
)
from interlock.protocol.identity import Identity
from interlock.wire.revisions import NEWEST
from tests.protocol.frames import identity, stamped

BOTH = "application/json, text/event-stream"
HOUSE = identity()


@dataclass
class Offered:
    """One HTTP request; `body` is JSON as Python has it, or bytes as they are."""

    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = b""
    twice: list[str] = field(default_factory=list)

    def head(self, rules: EndpointRules | None = None) -> EndpointHead:
        """The head."""
        headers = {
            name.lower().encode(): value.encode("utf-8") for name, value in self.headers.items()
        }
        twice = [name.encode() for name in self.twice]
        return read_head(rules or EndpointRules(), self.method, pairs(headers, twice))

    def judged(self, rules: EndpointRules | None = None, house: Identity = HOUSE) -> Verdict:
        """The verdict."""
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        rules = rules or EndpointRules()
        return judge(rules, house, self.head(rules), body)


def pairs(headers: dict[bytes, bytes], twice: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Headers as they come, some of them twice."""
    twice = [*twice, *(name for name in twice if name not in headers)]
    return [*((name, headers.get(name, b"http://localhost")) for name in twice), *headers.items()]


Spoil = Callable[[Offered], None]


def offered(
    body: Any, *, method: str = "POST", twice: Sequence[str] = (), **headers: str | None
) -> Offered:
    """A request with a body from this machine; a header of None is left out, an underscore in a
    name stands for a hyphen.
    """
    said: dict[str, str | None] = {
        "host": "127.0.0.1:8000",
        "content-type": "application/json",
        "accept": BOTH,
    }
    said |= {name.replace("_", "-").lower(): value for name, value in headers.items()}
    return Offered(
        method,
        {name: value for name, value in said.items() if value is not None},
        body,
        list(twice),
    )


def modern(
    method: str = "tools/call",
    params: dict[str, Any] | None = None,
    *,
    id: Any = 1,
    **headers: str | None,
) -> Offered:
    """A good request of the newest revision, its headers with it; more of them, or others, as
    given.
    """
    given = (
        {"name": "add", "arguments": {}}
        if params is None and method == "tools/call"
        else params or {}
    )
    name = (
        given.get("uri" if method == "resources/read" else "name")
        if method in ("tools/call", "prompts/get", "resources/read")
        else None
    )
    said: dict[str, str | None] = {
        "mcp_protocol_version": NEWEST,
        "mcp_method": method,
        "mcp_name": name,
    }
    return offered(json.loads(stamped(id, method, given)), **{**said, **headers})


def refusal(verdict: Verdict) -> tuple[int, int | None]:
    """The status of a refusal, and the code of the JSON-RPC error in its body."""
    assert isinstance(verdict, HttpRefusal), verdict
    return verdict.status, json.loads(verdict.body)["error"]["code"] if verdict.body else None

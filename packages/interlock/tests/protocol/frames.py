"""Frames as peers send them, and what comes back, as plain data: the words that the tests of the
pure floor are written in.
"""

from __future__ import annotations

import json
from typing import Any

from interlock import types as t
from interlock.extension import Extension, Method, messages_of
from interlock.protocol.client import ClientConnection
from interlock.protocol.events import RequestReceived
from interlock.protocol.handshake.server import ServerConnection
from interlock.protocol.identity import Identity
from interlock.wire.revisions import NEWEST, REVISIONS

KEY = "io.modelcontextprotocol/"
INFO = {"name": "peer", "version": "9"}
CAPABILITIES: dict[str, Any] = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}
OFFERED = t.ServerCapabilities(
    tools=t.ListChangedCapability(list_changed=True),
    resources=t.ResourcesCapability(subscribe=True, list_changed=True),
    prompts=t.ListChangedCapability(list_changed=True),
    logging={},
    completions={},
)


def identity(
    *,
    revisions: tuple[str, ...] = REVISIONS,
    offered: t.ServerCapabilities = OFFERED,
    methods: dict[str, Any] | None = None,
) -> Identity:
    """A server's word about itself."""
    info = t.Implementation(name="house", version="1", title="The house")
    extension = Extension(
        "com.example/house",
        methods={name: Method(params, t.Result) for name, params in (methods or {}).items()},
    )
    return Identity(
        info,
        lambda caller: offered,
        instructions="Be kind.",
        revisions=revisions,
        extensions=messages_of([extension] if methods else []),
    )


def request(id: Any, method: str, params: Any = ...) -> bytes:
    """A request; without params where none are given."""
    said = {"jsonrpc": "2.0", "id": id, "method": method} | (
        {} if params is ... else {"params": params}
    )
    return json.dumps(said).encode()


def notification(method: str, params: Any = ...) -> bytes:
    """A notification."""
    return json.dumps(
        {"jsonrpc": "2.0", "method": method} | ({} if params is ... else {"params": params})
    ).encode()


def answer(id: Any, result: Any) -> bytes:
    """A response."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()


def error(id: Any, code: int, message: str = "no", data: Any = ...) -> bytes:
    """An error response."""
    body = {"code": code, "message": message} | ({} if data is ... else {"data": data})
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": body}).encode()


def meta(revision: Any = NEWEST, capabilities: Any = None, **more: Any) -> dict[str, Any]:
    """The `_meta` of the stateless era; a value of ... leaves the key out."""
    said = {
        "protocolVersion": revision,
        "clientCapabilities": CAPABILITIES if capabilities is None else capabilities,
        "clientInfo": INFO,
    }
    return {KEY + key: value for key, value in (said | more).items() if value is not ...}


def stamped(id: Any, method: str, params: dict[str, Any] | None = None, **said: Any) -> bytes:
    """A request of the stateless era; the params may have a `_meta` of their own."""
    own = (params or {}).get("_meta", {})
    return request(id, method, {**(params or {}), "_meta": {**own, **meta(**said)}})


def initialize(id: Any, revision: str, capabilities: Any = None) -> bytes:
    """The first message of the handshake era."""
    hello = {
        "protocolVersion": revision,
        "capabilities": CAPABILITIES if capabilities is None else capabilities,
        "clientInfo": INFO,
    }
    return request(id, "initialize", hello)


def sent(connection: ServerConnection | ClientConnection) -> list[dict[str, Any]]:
    """What a connection has to send now, read as JSON."""
    out: list[Any] = connection.outgoing()
    return [json.loads(frame if isinstance(frame, bytes) else frame[1]) for frame in out]


def greeted(
    revision: str, server: Identity | None = None, *, capabilities: Any = None
) -> ServerConnection:
    """A connection whose peer has introduced itself in the handshake era, with list changes not yet
    listened to.
    """
    connection = ServerConnection(server or identity())
    assert connection.receive(initialize("hello", revision, capabilities)) == []
    (reply,) = sent(connection)
    assert reply["result"]["protocolVersion"] == revision
    return connection


def asked(connection: ServerConnection, frame: bytes) -> RequestReceived:
    """Hand over a request that somebody has to carry out, and give it back as the event it
    becomes.
    """
    (event,) = connection.receive(frame)
    assert isinstance(event, RequestReceived), event
    assert sent(connection) == []
    return event

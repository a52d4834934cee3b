"""Plays what a text prints: sends the client's messages as they stand,
and compares what the server says with what is printed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from interlock import Server
from interlock.testing import MemoryChannel, channel_pair
from tests.seeds.mirror import ASK, Mirror
from tests.seeds.printed import Printed, as_specified, plain

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}, "sampling": {}, "roots": {}},
    "clientInfo": {"name": "player", "version": "1"},
}
SERVER_METHODS = ("sampling/", "elicitation/", "roots/list")
CHANGES = {f"notifications/{what}/list_changed": what for what in ("tools", "resources", "prompts")}


class Wire:
    """A client that speaks in messages as they stand."""

    def __init__(self, channel: MemoryChannel, server: Server) -> None:
        self.server = server
        self._channel = channel
        self._arrived: list[dict[str, Any]] = []
        self._last = 1000

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self._channel.send([json.dumps(message).encode()])

    async def receive(self) -> dict[str, Any]:
        """The next message of the server."""
        while not self._arrived:
            async with asyncio.timeout(10):
                frames = await self._channel.receive()
            assert frames, "the server has gone"
            self._arrived += [json.loads(frame) for frame in frames]
        return self._arrived.pop(0)

    async def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request of our own, and return its result; the next message must be its answer."""
        self._last += 1
        self.send(
            {
                "jsonrpc": "2.0",
                "id": self._last,
                "method": method,
                **({} if params is None else {"params": params}),
            }
        )
        answer = await self.receive()
        assert answer.get("id") == self._last, answer
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result


@asynccontextmanager
async def wired(server: Server, hello: dict[str, Any] | None = HELLO) -> AsyncIterator[Wire]:
    """A wire to a server, after the handshake unless `hello` is None."""
    ours, theirs = channel_pair()
    serving = asyncio.create_task(server.serve(theirs))
    wire = Wire(ours, server)
    try:
        if hello is not None:
            await wire.request("initialize", hello)
            wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield wire
    finally:
        await ours.aclose()
        await serving


async def play(session: Sequence[Printed]) -> int:
    """Play a conversation; returns how many messages of the server were compared. Raises
    AssertionError where one is not as printed."""
    compared = 0
    mirror = mirrored(session)
    answers = _answers(session)
    async with wired(mirror.server, None) as wire:
        for number, (_, message, where) in enumerate(session):
            answer = answers.get(number)
            method = message.get("method", "")
            if not method:
                continue
            if method in CHANGES:
                mirror.server.changed(CHANGES[method])
                assert _bare(await wire.receive()) == _bare(message), where
            elif method.startswith(SERVER_METHODS):
                await put(wire, message, answer, where)
            elif "id" in message:
                wire.send(await _with_real_cursor(wire, message))
                given = await wire.receive()
                assert given.get("id") == message["id"], where
                assert "result" in given, (where, given)
                if answer is None:
                    continue
                agree(answer, given["result"], where)
            else:
                wire.send(message)
                # the next word of the server is the answer to this: it had none for the
                # notification
                await wire.request("ping")
            compared += 1
    return compared


async def put(
    wire: Wire, request: dict[str, Any], answer: dict[str, Any] | None, where: str
) -> None:
    """Have the server put a printed request of its own, answer it as printed,
    and see that the answer arrives."""
    wanted = as_specified(request)
    wire.send(
        {
            "jsonrpc": "2.0",
            "id": "ask",
            "method": "tools/call",
            "params": {"name": ASK, "arguments": wanted},
        }
    )
    asked = await wire.receive()
    assert (asked.get("method"), asked.get("params", {})) == (
        wanted["method"],
        wanted.get("params", {}),
    ), where
    answer = answer or {"action": "decline"}
    if wanted["method"] == "sampling/createMessage" and "action" in answer:
        answer = {"role": "assistant", "content": {"type": "text", "text": "No."}, "model": "none"}
    wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
    done = await wire.receive()
    assert done["id"] == "ask", where
    assert json.loads(done["result"]["content"][0]["text"]) == answer, where


def mirrored(session: Sequence[Printed]) -> Mirror:
    """The server that would answer as a conversation prints it."""
    answers = _answers(session)
    hello = next(
        (
            result
            for number, result in answers.items()
            if session[number].value["method"] == "initialize"
        ),
        None,
    )
    mirror = Mirror(hello)
    if any(_is_placeholder(item.value) for item in session):
        mirror.fill()
    for number, result in answers.items():
        mirror.know(session[number].value, result)
    mirror.offer((hello or {}).get("capabilities", {}))
    return mirror


def agree(wanted: dict[str, Any], given: dict[str, Any], where: str) -> None:
    """A result is as printed. What a server offers is its own affair: of the capabilities,
    those that are printed are there.

    `isError: false` says the same as nothing, and is not sent.
    """
    wanted = {key: value for key, value in wanted.items() if (key, value) != ("isError", False)}
    if "capabilities" in wanted:
        wanted = dict(wanted)
        given = dict(given)
        offered = given.pop("capabilities")
        for name, settings in wanted.pop("capabilities").items():
            assert settings.items() <= offered[name].items(), (where, name)
    assert plain(given) == plain(wanted), where


def _answers(session: Sequence[Printed]) -> dict[int, dict[str, Any]]:
    """The printed result of each request, by the request's place: the next answer with its id."""
    found: dict[int, dict[str, Any]] = {}
    for number, (_, message, _) in enumerate(session):
        if "method" not in message or "id" not in message:
            continue
        after = next(
            (item.value for item in session[number + 1 :] if item.value.get("id") == message["id"]),
            {},
        )
        if "result" in after:
            found[number] = after["result"]
    return found


def _is_placeholder(message: dict[str, Any]) -> bool:
    """Whether a request names a cursor that is cut short:
    it stands for one that the server gave before."""
    return str((message.get("params") or {}).get("cursor") or "").endswith("...")


async def _with_real_cursor(wire: Wire, message: dict[str, Any]) -> dict[str, Any]:
    if not _is_placeholder(message):
        return message
    first = await wire.request(message["method"])
    return {**message, "params": {**message["params"], "cursor": first["nextCursor"]}}


def _bare(message: dict[str, Any]) -> dict[str, Any]:
    """A notification without params that are empty."""
    return {key: value for key, value in message.items() if key != "params" or value}

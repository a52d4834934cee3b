"""The mock server: answers a client from a recording, without the server.

A request is matched with the recorded ones by its method and params, in order; `_meta` and ids do
not count. Requests that negotiate a revision match by their method alone. The
mock sends what the server sent for the recorded request: notifications, questions, and the
response. When all matching requests are used up, the last one is used again.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
from msgspec import Struct

from ..protocol.handshake.messages import OPENING
from ..transport.channel import Channel
from ..types.base import RequestId
from ..types.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from ..wire.jsonrpc import READ_ERRORS, Frame, failure, response
from .blanks import Blanks
from .conversation import Tape

_BY_METHOD = frozenset({OPENING, "server/discover"})
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_json = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class _Scene(Struct):
    """A recorded request, and what the server sent for it, in order. None in `frames` stands for an
    answer of the client that the mock waits for.
    """

    request: dict[str, Any]
    frames: list[dict[str, Any] | None]
    uses: int = 0


class _Running(Struct):
    """A request that is being answered: the messages that are still to be sent."""

    id: RequestId
    scene: _Scene
    token: Any
    frames: deque[dict[str, Any] | None]


class MockServer:
    """Answers from a recording: a state machine without I/O.

    Args:
        tapes: The messages of one connection each.
    """

    def __init__(self, *tapes: Tape) -> None:
        self._scenes = [scene for tape in tapes for scene in _scenes_of(tape)]
        self._waiting: dict[RequestId, _Running] = {}  # by the id of the question
        self.unanswered: list[str] = []  # what the recording had no answer for

    def respond(self, frame: Frame) -> list[Frame]:
        """Return the messages that a message of the client leads to."""
        try:
            message = _json(frame)
        except READ_ERRORS:
            return []
        if not isinstance(message, dict):
            return []
        id = message.get("id")
        if not isinstance(id, int | str):
            return []  # a notification
        if "method" not in message:
            running = self._waiting.pop(id, None)
            return self._continue(running) if running is not None else []
        scene = self._find(message)
        if scene is None:
            if message["method"] == "ping":
                return [response(id, b"{}")]
            return [self._refuse(id, message)]
        scene.uses += 1
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        return self._continue(_Running(id, scene, token, deque(scene.frames)))

    def _continue(self, running: _Running) -> list[Frame]:
        """Send until the response, or until the client has to answer a question."""
        sent: list[Frame] = []
        while running.frames:
            message = running.frames.popleft()
            if message is None:
                return sent
            if "method" in message and isinstance(message.get("id"), int | str):
                self._waiting[message["id"]] = running
            sent.append(_encode(_renamed(message, running)))
        return sent

    def _find(self, message: dict[str, Any]) -> _Scene | None:
        key = _key(message)
        alike = [scene for scene in self._scenes if _key(scene.request) == key]
        unused = (scene for scene in alike if not scene.uses)
        return next(unused, alike[-1] if alike else None)

    def _refuse(self, id: RequestId, message: dict[str, Any]) -> Frame:
        method = str(message["method"])
        same = [scene.request for scene in self._scenes if scene.request["method"] == method]
        if not same:
            words = f"The recording has no answer: it has no request {method}."
            self.unanswered.append(words)
            return failure(id, METHOD_NOT_FOUND, words)
        differences = [list(Blanks().differences(_params(each), _params(message))) for each in same]
        nearest = min(differences, key=len)
        words = (
            f"The recording has no answer: none of its {len(same)} requests {method} has these"
            f" params. The nearest differs at {'; '.join(nearest[:3])}."
        )
        self.unanswered.append(words)
        return failure(id, INVALID_PARAMS, words)

    async def serve(self, channel: Channel) -> None:
        """Answer the client of a channel until it closes the connection."""
        while frames := await channel.receive():
            for frame in frames:
                if sent := self.respond(frame):
                    channel.send(sent)
            await channel.drain()
        await channel.aclose()


def _scenes_of(tape: Tape) -> list[_Scene]:
    """The recorded requests, each with what the server sent for it."""
    scenes: list[_Scene] = []
    running: dict[RequestId, _Scene] = {}
    tokens: dict[Any, _Scene] = {}
    latest: _Scene | None = None
    for line in tape.lines:
        message = line.message
        if not isinstance(message, dict):
            continue
        id = message.get("id")
        is_request = "method" in message and isinstance(id, int | str)
        if line.sender == "client":
            if is_request:
                latest = running[message["id"]] = _Scene(message, [])
                scenes.append(latest)
                token = _member(message, "params", "_meta", "progressToken")
                if isinstance(token, int | str):
                    tokens[token] = latest
            continue
        if "method" not in message:
            scene = running.pop(id, None) if isinstance(id, int | str) else None
            if scene is not None:
                scene.frames.append(message)
            continue
        owner = tokens.get(_member(message, "params", "progressToken"))
        subscription = _member(message, "params", "_meta", _SUBSCRIPTION)
        scene = owner or running.get(subscription) or latest
        if scene is not None:
            scene.frames.append(message)
            if is_request:
                scene.frames.append(None)
    return [scene for scene in scenes if scene.frames]


def _renamed(message: dict[str, Any], running: _Running) -> dict[str, Any]:
    """A recorded message of the server with the ids of this conversation."""
    if "method" not in message:
        return {**message, "id": running.id}
    params = message.get("params")
    if not isinstance(params, dict):
        return message
    if "progressToken" in params and message["method"] == "notifications/progress":
        params = {**params, "progressToken": running.token}
    meta = params.get("_meta")
    if isinstance(meta, dict) and meta.get(_SUBSCRIPTION) == running.scene.request["id"]:
        params = {**params, "_meta": {**meta, _SUBSCRIPTION: running.id}}
    return {**message, "params": params}


def _key(message: dict[str, Any]) -> tuple[str, bytes]:
    method = str(message.get("method"))
    if method in _BY_METHOD:
        return method, b""
    return method, msgspec.json.encode(_params(message), order="sorted")


def _params(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params")
    if not isinstance(params, dict):
        return {}
    return {key: value for key, value in params.items() if key != "_meta"}


def _member(message: Any, *path: str) -> Any:
    for name in path:
        message = message.get(name) if isinstance(message, dict) else None
    return message if isinstance(message, int | str) else None

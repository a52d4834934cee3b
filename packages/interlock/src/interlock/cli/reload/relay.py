"""Relays messages between a client and a server that is restarted: a pure state machine."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from ... import types as t
from ...protocol.handshake import messages
from ...version import VERSION
from ...wire import jsonrpc
from ...wire.jsonrpc import Envelope, Frame, Malformed
from ...wire.revisions import NEWEST, supports

MOST_HELD: Final = 10_000
_OWN: Final = "interlock-reload-"  # the prefix of the relay's own request IDs
_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
_LISTS: Final = ("tools", "prompts", "resources")
_PROBE_META: Final = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "interlock-reload", "version": VERSION},
}


class State(Enum):
    """The state of the server."""

    STARTING = "starting"  # a child runs, and has not responded yet
    UP = "up"
    DRAINING = "draining"  # the file has changed; running calls may finish first
    STOPPED = "stopped"  # it exited by itself; the next request restarts it
    BROKEN = "broken"  # it cannot start until the file changes


class _Session(Struct):
    """The client's state in the handshake era, which each new child has to receive again."""

    hello: bytes
    revision: str
    capabilities: Mapping[str, Any]
    opened: bool = False
    level: bytes | None = None
    subscribed: dict[str, bytes] = {}


class _Listen(Struct):
    """An open `subscriptions/listen` request of the client, and whether it has been
    acknowledged.
    """

    frame: Frame
    acknowledged: bool = False


class Relay:
    """Relays between one client and a sequence of servers.

    The caller passes in frames and events, and sends `to_client` and `to_child`. When `wants_child`
    is set, it ends the running child, starts another one, and then calls `child_started`.
    """

    def __init__(self) -> None:
        self.state = State.STARTING
        self.wants_child = False
        self.to_client: list[Frame] = []
        self.to_child: list[Frame] = []
        self.trouble = ""  # why the server cannot start
        self._running: dict[t.RequestId, Envelope] = {}
        self._held: list[tuple[Envelope | None, Frame]] = []
        self._session: _Session | None = None
        self._listens: dict[t.RequestId, _Listen] = {}
        # the relay's ID of a child's question -> the child's ID
        self._asked: dict[int, t.RequestId] = {}
        self._last_asked = 0
        self._children = 0
        self._probe = ""

    @property
    def idle(self) -> bool:
        """Whether no call is running (open subscriptions do not count) or held."""
        return not self._held and not self._calls()

    # -- frames of the client ----------------------------------------------------------------------

    def from_client(self, frame: Frame) -> None:
        """Process a frame of the client."""
        try:
            envelope = jsonrpc.open_envelope(frame)
        except Malformed:
            if (
                jsonrpc.is_batch(frame)
                and self._session is not None
                and supports(self._session.revision, "batches")
            ):
                self._open_batch(frame)
            else:
                self._forward(None, frame)  # the server responds with the error
            return
        if envelope.method is UNSET and (
            envelope.result is not UNSET or envelope.error is not UNSET
        ):
            self._answer_question(envelope)
        elif envelope.method is UNSET or envelope.id is None:
            self._forward(None, frame)
        elif envelope.id is not UNSET:
            self._forward(envelope, frame)
        else:
            self._take_notification(envelope, frame)

    def _open_batch(self, frame: Frame) -> None:
        try:
            for message in jsonrpc.open_batch(frame):
                self.from_client(message)
        except Malformed:
            self._forward(None, frame)

    def _forward(self, envelope: Envelope | None, frame: Frame) -> None:
        """Forward a request, hold it, or refuse it."""
        if self.state is State.UP:
            self._send(envelope, frame)
        elif self.state is State.BROKEN:
            self._refuse(
                envelope,
                f"The server cannot start: {self.trouble}. It is started again when its file is "
                "saved.",
            )
        elif len(self._held) >= MOST_HELD:
            self._refuse(
                envelope, "The server is being restarted, and too many requests are waiting for it."
            )
        else:
            self._held.append((envelope, frame))
            if self.state is State.STOPPED:
                self.wants_child = True

    def _send(self, envelope: Envelope | None, frame: Frame) -> None:
        if envelope is not None and isinstance(envelope.id, int | str):
            self._running[envelope.id] = envelope
            if envelope.method == "subscriptions/listen":
                self._listens[envelope.id] = _Listen(frame)
        self.to_child.append(frame)

    def _refuse(self, envelope: Envelope | None, words: str) -> None:
        id = envelope.id if envelope is not None and isinstance(envelope.id, int | str) else None
        if envelope is None or id is not None:
            self.to_client.append(jsonrpc.failure(id, t.INTERNAL_ERROR, words))

    def _take_notification(self, envelope: Envelope, frame: Frame) -> None:
        if envelope.method == messages.OPENED and self._session is not None:
            self._session.opened = True
        if envelope.method == "notifications/cancelled":
            id = _member(envelope.params, "requestId")
            self._listens.pop(id, None)
            self._running.pop(id, None)
            kept = [(e, f) for e, f in self._held if e is None or e.id != id]
            if len(kept) < len(self._held):
                self._held = kept
                return
            self._settle()
        if self.state in (State.UP, State.DRAINING):
            self.to_child.append(frame)
        elif self.state is not State.BROKEN and envelope.method != "notifications/cancelled":
            self._held.append((envelope, frame))

    def _answer_question(self, envelope: Envelope) -> None:
        """Forward the client's answer to the child that asked the question, if that child still
        runs.
        """
        id = self._asked.pop(envelope.id, None) if isinstance(envelope.id, int) else None
        if id is None:
            return
        if envelope.error is not UNSET and envelope.error is not None:
            self.to_child.append(
                jsonrpc.failure(
                    id, envelope.error.code, envelope.error.message, envelope.error.data
                )
            )
        elif envelope.result is not UNSET:
            self.to_child.append(jsonrpc.response(id, bytes(envelope.result)))

    # -- frames of the child -----------------------------------------------------------------------

    def from_child(self, frame: Frame) -> None:
        """Process a frame of the running child."""
        try:
            envelope = jsonrpc.open_envelope(frame)
        except Malformed:
            return  # our servers never send malformed frames
        id = envelope.id
        if envelope.method is UNSET:
            self._take_answer(envelope, frame)
        elif isinstance(id, int | str):
            self._last_asked += 1
            self._asked[self._last_asked] = (
                id  # a new child starts at 1 again, but the client must not see an ID twice
            )
            self.to_client.append(
                jsonrpc.request(self._last_asked, envelope.method, bytes(envelope.params))
            )
        else:
            self._forward_notification(envelope, frame)

    def _take_answer(self, envelope: Envelope, frame: Frame) -> None:
        id = envelope.id
        if id == self._probe:
            self._take_probe(envelope)
            return
        if isinstance(id, str) and id.startswith(_OWN):
            return  # the response to a replayed request, not to one of the client
        if isinstance(id, int | str):
            request = self._running.pop(id, None)
            self._listens.pop(id, None)
            if request is not None and envelope.result is not UNSET:
                self._remember(request, envelope.result)
        self.to_client.append(frame)
        self._settle()

    def _forward_notification(self, envelope: Envelope, frame: Frame) -> None:
        """Forward a notification of the child, unless a new child repeats one that the client
        already has.
        """
        if envelope.method == "notifications/subscriptions/acknowledged":
            id = _member(_member(envelope.params, "_meta"), _SUBSCRIPTION)
            listen = self._listens.get(id)
            if listen is not None and listen.acknowledged:
                self._announce_to(id, _member(envelope.params, "notifications"))
                return
            if listen is not None:
                listen.acknowledged = True
        elif envelope.method == "notifications/cancelled":
            asked = next(
                (
                    ours
                    for ours, theirs in self._asked.items()
                    if theirs == _member(envelope.params, "requestId")
                ),
                None,
            )
            if asked is not None:
                del self._asked[asked]
                self.to_client.append(_cancelled(asked, _member(envelope.params, "reason")))
                return
        self.to_client.append(frame)

    def _remember(self, request: Envelope, result: Raw) -> None:
        """Record the state of the session."""
        match request.method:
            case messages.OPENING:
                capabilities = _member(result, "capabilities")
                self._session = _Session(
                    hello=bytes(request.params),
                    revision=str(_member(result, "protocolVersion")),
                    capabilities=capabilities if isinstance(capabilities, dict) else {},
                )
            case "logging/setLevel" if self._session is not None:
                self._session.level = bytes(request.params)
            case "resources/subscribe" if self._session is not None:
                self._session.subscribed[str(_member(request.params, "uri"))] = bytes(
                    request.params
                )
            case "resources/unsubscribe" if self._session is not None:
                self._session.subscribed.pop(str(_member(request.params, "uri")), None)

    # -- events of the child -----------------------------------------------------------------------

    def child_started(self) -> None:
        """A new child runs: probe it, with the handshake of the session if there is one."""
        self._children += 1
        self.state = State.STARTING
        self.wants_child = False
        self.trouble = ""
        self.to_child.clear()
        self._drop_questions()
        self._probe = f"{_OWN}{self._children}"
        if self._session is not None:
            self.to_child.append(
                jsonrpc.request(self._probe, messages.OPENING, self._session.hello)
            )
        else:
            self.to_child.append(
                jsonrpc.request(
                    self._probe, "server/discover", jsonrpc.encode_json({"_meta": _PROBE_META})
                )
            )

    def _take_probe(self, envelope: Envelope) -> None:
        self._probe = ""
        session = self._session
        if session is not None:
            revision = (
                _member(envelope.result, "protocolVersion")
                if envelope.result is not UNSET
                else None
            )
            if revision != session.revision:
                self.broke(
                    f"its new version cannot continue the session, which uses {session.revision}"
                )
                return
            self._replay(session)
        self.state = State.UP
        for listen in self._listens.values():
            self.to_child.append(listen.frame)
        held = self._held
        self._held = []
        for waiting, frame in held:
            self._send(waiting, frame)
        if session is not None and session.opened and self._children > 1:
            self._announce(session)

    def _replay(self, session: _Session) -> None:
        """Send the new child what the client has sent in its session. The responses are dropped."""
        if session.opened:
            self.to_child.append(jsonrpc.notification(messages.OPENED, b"{}"))
        again = [("logging/setLevel", session.level)] if session.level is not None else []
        again += [("resources/subscribe", params) for params in session.subscribed.values()]
        for n, (method, params) in enumerate(again):
            self.to_child.append(jsonrpc.request(f"{_OWN}{self._children}-{n}", method, params))

    def changed(self) -> None:
        """The file has changed: a new child takes over as soon as no call runs."""
        if self.state is State.UP:
            self.state = State.DRAINING
            self._settle()
        elif self.state is not State.DRAINING:
            self.state = State.STARTING if self.state is State.BROKEN else self.state
            self.wants_child = True

    def end_grace_period(self) -> None:
        """The grace period is over: fail the running calls, and start the new child."""
        if self.state is State.DRAINING:
            self._fail_calls(
                "The server was restarted with a newer version of its file during this call."
            )
            self._settle()

    def child_ended(self, words: str) -> None:
        """The child exited by itself. `words` say how, without a full stop."""
        if self.state is State.STARTING:
            self.broke(words)
            return
        self._fail_calls(f"The server exited during this call: {words}.")
        self._drop_questions()
        self.wants_child = self.state is State.DRAINING or bool(self._held)
        self.state = State.STOPPED

    def broke(self, words: str) -> None:
        """The child cannot serve: fail all waiting requests."""
        self.state = State.BROKEN
        self.trouble = words
        held = self._held
        self._held = []
        for waiting, _ in held:
            if waiting is None or isinstance(waiting.id, int | str):
                self._refuse(
                    waiting,
                    (
                        f"The server cannot start: {words}. "
                        "It is started again when its file is saved."
                    ),
                )
        self._fail_calls(f"The server cannot start: {words}.")

    def _settle(self) -> None:
        """Start the new child if the file has changed and no call runs."""
        if self.state is State.DRAINING and not self._calls():
            self.wants_child = True

    def _calls(self) -> list[t.RequestId]:
        return [id for id in self._running if id not in self._listens]

    def _fail_calls(self, words: str) -> None:
        for id in self._calls():
            del self._running[id]
            self.to_client.append(jsonrpc.failure(id, t.INTERNAL_ERROR, words))

    def _drop_questions(self) -> None:
        """Cancel the questions of the previous child, whose answers no longer matter."""
        for asked in self._asked:
            self.to_client.append(_cancelled(asked, "the server was restarted"))
        self._asked.clear()

    # -- notifications to the client ---------------------------------------------------------------

    def _announce(self, session: _Session) -> None:
        """Notify a session that everything may have changed."""
        for kind in _LISTS:
            capability = session.capabilities.get(kind)
            if isinstance(capability, Mapping) and capability.get("listChanged"):
                self.to_client.append(
                    jsonrpc.notification(f"notifications/{kind}/list_changed", b"{}")
                )
        for uri in session.subscribed:
            self.to_client.append(
                jsonrpc.notification(
                    "notifications/resources/updated", jsonrpc.encode_json({"uri": uri})
                )
            )

    def _announce_to(self, id: t.RequestId, honoured: Any) -> None:
        """Notify a subscription that everything it covers may have changed."""
        meta = {"_meta": {_SUBSCRIPTION: id}}
        for kind in _LISTS:
            if _member(honoured, f"{kind}ListChanged"):
                self.to_client.append(
                    jsonrpc.notification(
                        f"notifications/{kind}/list_changed", jsonrpc.encode_json(meta)
                    )
                )
        uris = _member(honoured, "resourceSubscriptions")
        for uri in uris if isinstance(uris, list) else ():
            params = jsonrpc.encode_json({**meta, "uri": uri})
            self.to_client.append(jsonrpc.notification("notifications/resources/updated", params))


def _member(data: Any, key: str) -> Any:
    """A member of a JSON object, decoded or not; None if it is missing."""
    if isinstance(data, Raw):
        try:
            data = msgspec.json.decode(data)
        except jsonrpc.READ_ERRORS:
            return None
    return data.get(key) if isinstance(data, dict) else None


def _cancelled(id: t.RequestId, reason: Any) -> Frame:
    params = {"requestId": id, **({"reason": reason} if isinstance(reason, str) else {})}
    return jsonrpc.notification("notifications/cancelled", jsonrpc.encode_json(params))

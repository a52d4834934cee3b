"""The client's end of one connection, without I/O: requests and notifications out; answers,
questions and notifications in.
"""

from __future__ import annotations

import contextlib
from typing import Any

from msgspec import UNSET, Raw, Struct

from .. import types as t
from ..wire import jsonrpc
from ..wire.codec import decode, encode
from ..wire.jsonrpc import Frame, Malformed
from ..wire.revisions import FIELDS, INPUT_METHODS, METHODS, NEWEST, Era, era, has, speaks
from ..wire.salvage import split
from .calls import OpenCalls
from .events import (
    ClientEvent,
    NotificationReceived,
    QuestionReceived,
    RequestCancelled,
    ResponseReceived,
)
from .extensions import NO_EXTENSIONS

VERSION_KEY, CAPABILITIES_KEY, INFO_KEY, LOG_LEVEL_KEY = (
    f"io.modelcontextprotocol/{key}"
    for key in ("protocolVersion", "clientCapabilities", "clientInfo", "logLevel")
)
_QUESTIONS: dict[str, type[Any]] = {
    "elicitation/create": t.ElicitRequest,
    "sampling/createMessage": t.CreateMessageRequest,
    "roots/list": t.ListRootsRequest,
}


class ProgressReceived(Struct, frozen=True):
    """Progress of one of our requests."""

    id: t.RequestId
    params: t.ProgressNotificationParams


class SubscriptionReceived(Struct, frozen=True):
    """Something that a subscription of ours was opened for; `id` is that of its listen request."""

    id: t.RequestId
    method: str
    params: Any


class _Call(Struct):
    method: str


class ClientConnection:
    """One server. `revision` is set once it is agreed; until then the newest is spoken.

    A progress token is the id of its request, so that progress finds its way without a table.
    """

    def __init__(self, revision: str = NEWEST) -> None:
        self.revision = revision
        self.extensions = NO_EXTENSIONS  # the messages of the client's extensions
        self._calls: OpenCalls[_Call] = OpenCalls()
        self._questions: dict[t.RequestId, str] = {}
        self._out: list[Frame] = []

    # -- what we say -----------------------------------------------------------------------------

    def request(self, method: str, params: bytes) -> t.RequestId:
        """Send a request whose params are encoded already; return its id."""
        id = self._calls.open(_Call(method))
        self._out.append(jsonrpc.request(id, method, params))
        return id

    def next_id(self) -> t.RequestId:
        """The id that the next request will have, for params that name it (progress tokens)."""
        return self._calls.next_id

    def cancel(self, id: t.RequestId, reason: str | None = None) -> None:
        """Give a request up, and tell the server so; `initialize` is only given up in silence
        (`LIF-13`).
        """
        call = self._calls.close(id)
        if call is not None and call.method != "initialize":
            self.notify(
                "notifications/cancelled",
                t.CancelledNotificationParams(request_id=id, reason=reason),
            )

    def forget(self, id: t.RequestId) -> None:
        """Nobody waits for a request any more, and the server knows, or need not know."""
        self._calls.close(id)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._out.append(jsonrpc.notification(method, encode(params, self.revision)))

    def respond(self, id: t.RequestId, answer: t.InputResponse) -> None:
        """Answer a question of the server; ignored where it took the question back. Raises where
        the answer is no JSON: then `fail` it.
        """
        if id in self._questions:
            if not isinstance(answer, t.Result):
                raise TypeError(f"a question was answered with {type(answer).__name__}")
            self._out.append(jsonrpc.response(id, encode(answer, self.revision)))
            del self._questions[id]

    def fail(self, id: t.RequestId, code: int, message: str, data: Any = None) -> None:
        """Refuse a question of the server; ignored where it took the question back."""
        if self._questions.pop(id, None) is not None:
            self._out.append(jsonrpc.failure(id, code, message, data))

    def drop(self, id: t.RequestId) -> None:
        """Leave a question of the server without an answer: what it was asked for is over."""
        self._questions.pop(id, None)

    @property
    def has_outgoing(self) -> bool:
        """Whether anything is to be sent."""
        return bool(self._out)

    def outgoing(self) -> list[Frame]:
        """What is to be sent now."""
        out = self._out
        self._out = []
        return out

    def close(self) -> list[t.RequestId]:
        """The channel is gone: the requests that will never be answered."""
        self._out.clear()
        self._questions.clear()
        return list(self._calls.clear())

    # -- what the server says ----------------------------------------------------------------------

    def receive(self, frame: Frame) -> list[ClientEvent | ProgressReceived | SubscriptionReceived]:
        """Take in one message. Raises Malformed for what is no JSON-RPC; the conversation can go on
        after that.
        """
        try:
            envelope = jsonrpc.open_envelope(frame)
        except Malformed as bad:
            if frame.isspace():
                return []  # an empty line between messages
            return (
                self._receive_batch(frame)
                if jsonrpc.is_batch(frame)
                else self._receive_bad_answer(bad)
            )
        if envelope.method is UNSET:
            return self._receive_response(envelope)
        if envelope.id is UNSET:
            return self._receive_notification(envelope.method, envelope.params)
        if envelope.id is None:
            raise Malformed(t.INVALID_REQUEST, "a request with a null id")
        return self._receive_question(envelope.id, envelope.method, envelope.params)

    def _receive_batch(self, frame: Frame) -> list[Any]:
        """Message by message; what is wrong with one does not touch the others (`RPC-13`).

        A batch that is no JSON as a whole still ends the calls whose answers it holds.
        """
        events: list[Any] = []
        unreadable: Malformed | None = None
        try:
            messages = jsonrpc.open_batch(frame)
        except Malformed as bad:
            if bad.code != t.PARSE_ERROR:
                raise
            unreadable = bad
            messages = split(frame)
        for message in messages:
            with contextlib.suppress(Malformed):
                events += [] if jsonrpc.is_batch(message) else self.receive(message)
        if unreadable is not None and not events:
            raise unreadable
        return events

    def _receive_response(self, envelope: jsonrpc.Envelope) -> list[Any]:
        id = envelope.id
        if id is UNSET or self._calls.close(id) is None or id is None:
            return []  # late, doubled or made up: nobody waits for it
        if envelope.error:
            return [
                ResponseReceived(
                    id, t.McpError(envelope.error.code, envelope.error.message, envelope.error.data)
                )
            ]
        if envelope.result is UNSET:
            return [
                ResponseReceived(
                    id, t.ProtocolError("The server answered with neither a result nor an error.")
                )
            ]
        return [ResponseReceived(id, envelope.result)]

    def _receive_bad_answer(self, bad: Malformed) -> list[Any]:
        """An answer that cannot be read still ends the wait for it; anything else that is no
        message is the shell's to log.
        """
        if bad.id is None or not bad.is_answer or self._calls.close(bad.id) is None:
            raise bad
        return [
            ResponseReceived(bad.id, t.ProtocolError(f"The server's answer cannot be read: {bad}"))
        ]

    def _receive_notification(self, method: str, raw: Raw) -> list[Any]:
        kind = self._notified_kind(method)
        if kind is None:
            return []
        try:
            params = decode(raw, kind)
            subscription = decode(params.meta, t.NotificationMeta).subscription_id
        except Malformed:
            return []  # the sender would not hear of it anyway
        if method == "notifications/progress":
            return (
                [ProgressReceived(params.progress_token, params)]
                if self._calls.get(params.progress_token)
                else []
            )
        if method == "notifications/cancelled":
            return self._receive_cancelled(params)
        if subscription is not None:
            return (
                [SubscriptionReceived(subscription, method, params)]
                if self._calls.get(subscription)
                else []
            )
        return [NotificationReceived(method, params)]

    def _notified_kind(self, method: str) -> type[Any] | None:
        """The type of the params of a notification; None for what is none that is known."""
        row = METHODS.get(method)
        if row is None:
            return self.extensions.notifications.get(method)
        if row.result is not None:
            return None
        return self.extensions.params_of(method) or row.params

    def _receive_cancelled(self, params: t.CancelledNotificationParams) -> list[Any]:
        """The server takes a question back, or (stateless era) tears a subscription down (`LSN-11`,
        `CAN-04`).
        """
        id = params.request_id
        if id is None:
            return []
        if self._questions.pop(id, None) is not None:
            return [RequestCancelled(id, params.reason)]
        call = self._calls.get(id)
        if call is not None and call.method == "subscriptions/listen":
            self._calls.close(id)
            return [ResponseReceived(id, Raw(b"{}"))]
        return []

    def _receive_question(self, id: t.RequestId, method: str, raw: Raw) -> list[Any]:
        if era(self.revision) is Era.STATELESS:
            # a server has no requests in this era, and a client no responses (`RPC-17`, `RPC-18`)
            return []
        if id in self._questions:
            return []  # an answer to it would be taken for the answer to the first
        if method == "ping":
            self._out.append(jsonrpc.response(id, b"{}"))
            return []
        if method not in INPUT_METHODS or not speaks(self.revision, method):
            self._out.append(jsonrpc.failure(id, t.METHOD_NOT_FOUND, f"Method not found: {method}"))
            return []
        try:
            request = _QUESTIONS[method](decode(raw, METHODS[method].params))
        except Malformed as bad:
            self._out.append(jsonrpc.failure(id, t.INVALID_PARAMS, f"Invalid params: {bad}"))
            return []
        if undeclared := _beyond(self.revision, request):
            self._out.append(
                jsonrpc.failure(
                    id, t.INVALID_PARAMS, f"Invalid params: {undeclared} was not declared"
                )
            )
            return []
        self._questions[id] = method
        return [QuestionReceived(id, request)]


def _beyond(revision: str, request: t.InputRequest) -> str | None:
    """The capability that a question needs and that the revision has no words for, so that it was
    not declared (`ERR-18`, `SAM-13`).
    """
    if isinstance(request, t.ElicitRequest):
        by_url = request.params.mode == "url"
        return (
            "elicitation.url"
            if by_url and not has(revision, FIELDS[t.ElicitRequestParams, "url"])
            else None
        )
    if isinstance(request, t.CreateMessageRequest):
        with_tools = request.params.tools or request.params.tool_choice
        return (
            "sampling.tools"
            if with_tools and not has(revision, FIELDS[t.CreateMessageRequestParams, "tools"])
            else None
        )
    return None

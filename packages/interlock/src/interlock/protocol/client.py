"""The client side of one connection, without I/O: it sends requests and notifications, and receives
responses, questions and notifications.
"""

from __future__ import annotations

import contextlib
from typing import Any

from msgspec import UNSET, Raw, Struct

from .. import types as t
from ..wire import jsonrpc
from ..wire.codec import decode, encode
from ..wire.jsonrpc import Frame, Malformed
from ..wire.revisions import (
    ABILITIES,
    FIELDS,
    INPUT_METHODS,
    METHODS,
    NEWEST,
    TASK_METHODS,
    Era,
    era,
    has,
    speaks,
)
from ..wire.salvage import split
from .calls import OpenCalls
from .events import (
    ClientEvent,
    NotificationReceived,
    QuestionReceived,
    RequestCancelled,
    ResponseReceived,
    TaskRequestReceived,
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
    """Progress of an open request."""

    id: t.RequestId
    params: t.ProgressNotificationParams


class SubscriptionReceived(Struct, frozen=True):
    """A notification for a subscription; `id` is the ID of its listen request."""

    id: t.RequestId
    method: str
    params: Any


class _Call(Struct):
    method: str


class ClientConnection:
    """The connection to one server. `revision` is the newest one until another is negotiated.

    The progress token of a request is its ID, so that progress is assigned without a table.
    """

    def __init__(self, revision: str = NEWEST) -> None:
        self.revision = revision
        self.extensions = NO_EXTENSIONS  # the messages of the client's extensions
        self.runs_tasks = False  # whether the client makes tasks of questions
        self._calls: OpenCalls[_Call] = OpenCalls()
        self._questions: dict[t.RequestId, str] = {}
        self._out: list[Frame] = []

    # -- sending ---------------------------------------------------------------------------------

    def request(self, method: str, params: bytes) -> t.RequestId:
        """Send a request with encoded params, and return its ID."""
        id = self._calls.open(_Call(method))
        self._out.append(jsonrpc.request(id, method, params))
        return id

    def next_id(self) -> t.RequestId:
        """The ID of the next request, for params that contain it (progress tokens)."""
        return self._calls.next_id

    def cancel(self, id: t.RequestId, reason: str | None = None) -> None:
        """Give a request up and notify the server, except for `initialize` (`LIF-13`)."""
        call = self._calls.close(id)
        if call is not None and call.method != "initialize":
            self.notify(
                "notifications/cancelled",
                t.CancelledNotificationParams(request_id=id, reason=reason),
            )

    def forget(self, id: t.RequestId) -> None:
        """Remove a request without a notification to the server."""
        self._calls.close(id)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._out.append(jsonrpc.notification(method, encode(params, self.revision)))

    def respond(self, id: t.RequestId, answer: t.InputResponse) -> None:
        """Answer a question of the server. Ignored if the server has withdrawn the question.

        Raises an error if the answer cannot be encoded; call `fail` then.
        """
        if id in self._questions:
            if not isinstance(answer, t.Result):
                raise TypeError(f"a question was answered with {type(answer).__name__}")
            self._out.append(jsonrpc.response(id, encode(answer, self.revision)))
            del self._questions[id]

    def respond_encoded(self, id: t.RequestId, result: bytes) -> None:
        """Answer a question of the server with an encoded result. Ignored if the server has
        withdrawn the question.
        """
        if self._questions.pop(id, None) is not None:
            self._out.append(jsonrpc.response(id, result))

    def fail(self, id: t.RequestId, code: int, message: str, data: Any = None) -> None:
        """Refuse a question of the server. Ignored if the server has withdrawn the question."""
        if self._questions.pop(id, None) is not None:
            self._out.append(jsonrpc.failure(id, code, message, data))

    def drop(self, id: t.RequestId) -> None:
        """Leave a question of the server unanswered, because its request has ended."""
        self._questions.pop(id, None)

    @property
    def has_tasks(self) -> bool:
        """Whether the server may make tasks of its questions under the negotiated revision."""
        return self.runs_tasks and has(self.revision, ABILITIES["core_tasks"])

    @property
    def has_outgoing(self) -> bool:
        """Whether frames are waiting to be sent."""
        return bool(self._out)

    def outgoing(self) -> list[Frame]:
        """Return the frames to send now."""
        out = self._out
        self._out = []
        return out

    def close(self) -> list[t.RequestId]:
        """Close the connection; return the requests that will never be answered."""
        self._out.clear()
        self._questions.clear()
        return list(self._calls.clear())

    # -- receiving ---------------------------------------------------------------------------------

    def receive(self, frame: Frame) -> list[ClientEvent | ProgressReceived | SubscriptionReceived]:
        """Receive one message.

        Raises Malformed if it is not a JSON-RPC message. The connection can still be used after
        that.
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
        """Receive the members one by one; an invalid member does not affect the others (`RPC-13`).

        A batch that is not valid JSON still ends the calls that it contains answers for.
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
            return []  # late, repeated or invented: no request is waiting for it
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
        """End the call that a malformed answer belongs to; leave all other malformed messages to
        the caller's log.
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
            return []  # a notification is never answered, so its sender cannot learn of the error
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
        """The type of a notification's params; None for an unknown notification."""
        row = METHODS.get(method)
        if row is None:
            return self.extensions.notifications.get(method)
        if row.result is not None:
            return None
        return self.extensions.params_of(method) or row.params

    def _receive_cancelled(self, params: t.CancelledNotificationParams) -> list[Any]:
        """The server withdraws a question or (stateless era) ends a subscription (`LSN-11`,
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
            return []  # the server would take an answer for the answer to its first request
        if method == "ping":
            self._out.append(jsonrpc.response(id, b"{}"))
            return []
        if self.has_tasks and method in TASK_METHODS:
            return self._receive_task_request(id, method, raw)
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

    def _receive_task_request(self, id: t.RequestId, method: str, raw: Raw) -> list[Any]:
        try:
            params = decode(raw, self.extensions.requests[method])
        except Malformed as bad:
            self._out.append(jsonrpc.failure(id, t.INVALID_PARAMS, f"Invalid params: {bad}"))
            return []
        self._questions[id] = method
        return [TaskRequestReceived(id, method, params)]


def _beyond(revision: str, request: t.InputRequest) -> str | None:
    """The capability that a question needs and that the revision does not define, so that it was
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

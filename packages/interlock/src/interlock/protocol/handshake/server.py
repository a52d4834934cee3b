"""The server side of one connection, without I/O: it turns frames into events, and decisions into
frames.

It remembers what the peer sent with `initialize`, and adds it to each request of the peer. All
layers above see stateless requests only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ... import types as t
from ...exchange import AnyResult, Caller, Principal
from ...wire import jsonrpc
from ...wire.codec import decode, encode
from ...wire.jsonrpc import READ_ERRORS, Envelope, Frame, Malformed
from ...wire.revisions import (
    HANDSHAKE_REVISIONS,
    METHODS,
    STATELESS_REVISIONS,
    TASK_METHODS,
    Era,
    error_code,
    speaks,
    supports,
)
from ..events import (
    CallId,
    NotificationReceived,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    Route,
    ServerEvent,
    SessionListen,
)
from ..identity import Identity
from ..metadata import take_meta, traced
from ..server import (
    MOST_SUBSCRIBED_CHARACTERS,
    MOST_SUBSCRIPTIONS,
    RequestError,
    accept,
    error_frame,
    find_notifier,
    notification_frame,
    params_error,
    read_extension_notification,
    read_meta,
    read_params,
    result_frame,
    subscription_params,
    subscription_result,
)
from .batches import Batches
from .questions import Questions

IN_BATCH = "Invalid request: initialize cannot be in a batch"
STILL_OPEN = "Invalid request: a request with this id is still open"
_LIST_CHANGES = t.SubscriptionFilter(
    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
)
_ANSWERED_HERE = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)


def accept_in_session(
    identity: Identity, caller: Caller, request: Any, meta: t.RequestMeta, frame: Frame
) -> RequestReceived | None:
    """Accept a request of a session that `identity.read_request` has read from `frame`, with its
    `_meta`. None if only a connection can process it, or refuses it.
    """
    method: str = request.method
    if (
        method in _ANSWERED_HERE
        or meta.protocol_version is not None
        or not identity.serves(caller.revision, method)
    ):
        return None
    caller = traced(caller, meta)
    return RequestReceived(request.id, method, request.params, caller, meta.progress_token, frame)


class _Subscription(Struct):
    listen: SessionListen
    waiting: (
        list[t.RequestId] | None
    )  # the calls to answer once it is acknowledged; None after that


class _Unread(Struct, frozen=True):
    """A request that was decoded piece by piece."""

    id: t.RequestId
    method: str
    params: Any


class ServerConnection:
    """The connection to one peer. Pass frames to `receive`, and send what `outgoing` returns.

    No message of a peer makes it raise an error.
    """

    __slots__ = (
        "_batches",
        "_listens",
        "_open",
        "_out",
        "_questions",
        "_shared",
        "_subscriptions",
        "error",
        "identity",
        "principal",
        "remembered",
        "session",
        "sessions_begun",
    )

    def __init__(
        self,
        identity: Identity,
        *,
        principal: Principal | None = None,
        session: str | None = None,
        shared: bool = True,
        remembered: Caller | None = None,
        subscriptions: Iterable[str] = (),
        next_id: Callable[[], int] | None = None,
    ) -> None:
        """`remembered` and `subscriptions` are what a session said on earlier connections;
        `next_id` numbers the questions.
        """
        self.identity = identity
        self._shared = shared  # all requests share one channel, as over stdio
        self._listens: dict[CallId, None] = {}
        self._batches = Batches()
        self.principal = principal
        self.session = session
        self.remembered = (
            remembered  # what `initialize` contained: the only state of the handshake era
        )
        self._open: dict[CallId, Caller] = {}
        self._questions = Questions(next_id)
        self._subscriptions = {
            uri: _Subscription(SessionListen(uri), None) for uri in subscriptions
        }
        self.sessions_begun = 0  # how often the peer sent `initialize` here
        self.error = 0  # the code of the last error that was answered
        self._out: list[tuple[Route, Frame]] = []

    # -- frames in -----------------------------------------------------------------------------

    def receive(self, frame: Frame) -> list[ServerEvent]:
        """Receive one message. Answers that need no decision are added to the outgoing frames at
        once.
        """
        try:
            if not frame.isascii():
                jsonrpc.check_utf8(frame)
            request = self.identity.read_request(frame)
            meta = take_meta(request.params)
        except (Malformed, *READ_ERRORS):
            return self._receive_other(frame)
        return self.receive_read(request, meta, frame)

    def receive_read(
        self, request: Any, meta: t.RequestMeta, frame: Frame | None = None
    ) -> list[ServerEvent]:
        """Receive a request that `identity.read_request` has already decoded from `frame`, with its
        `_meta`.
        """
        id: t.RequestId = request.id
        if id in self._open and not self._is_opening_anew(id, request.method):
            self.refuse(id, t.INVALID_REQUEST, STILL_OPEN)
            return []
        if meta.protocol_version is None:
            return self._receive_remembered(id, request.method, request.params, meta, frame)
        event = accept(self.identity, request, meta, frame, self.principal, self.session)
        if isinstance(event, RequestError):
            self._refuse_with(event)
            return []
        self.adopt(event)
        return [event]

    def adopt(self, event: RequestReceived) -> None:
        """Register a request that was decoded without a connection, so that it can be answered."""
        id = event.id
        self._open[id] = event.caller
        if event.method == "subscriptions/listen" and not isinstance(id, SessionListen):
            self._listens[id] = None

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The resources that the peer has subscribed to (handshake era)."""
        return tuple(
            uri for uri, subscription in self._subscriptions.items() if subscription.waiting is None
        )

    @property
    def unanswered(self) -> int:
        """How many requests of the peer have been neither answered nor cancelled."""
        return sum(not isinstance(id, SessionListen) for id in self._open) if self._open else 0

    def _receive_other(self, frame: Frame) -> list[ServerEvent]:
        """Receive a message that is not a request decodable in one pass: read it piece by piece, to
        process it or to find its error.
        """
        try:
            envelope = jsonrpc.open_envelope(frame)
        except Malformed as bad:
            if jsonrpc.is_batch(frame):
                return self._receive_batch(frame)
            if bad.is_answer:
                answer = self._questions.garbled(bad)
                return [] if answer is None else [answer]
            if not (self._shared and frame.isspace()):  # an empty line between messages
                self.refuse(bad.id, bad.code, str(bad))
            return []
        id = envelope.id
        if envelope.method is UNSET:
            return self._receive_response(envelope)
        if id is UNSET:
            return self._receive_notification(envelope)
        if id is None:
            self.refuse(
                None,
                t.INVALID_REQUEST,
                "Invalid request: the id must be a string or an integer, not null",
            )
            return []
        return self._receive_unread_request(id, envelope)

    def refuse_unread(self, why: str) -> None:
        """Report a message that was lost before it could be decoded, such as one over the size
        limit. Its ID is unknown.
        """
        self.refuse(None, t.INVALID_REQUEST, f"Invalid request: {why}")

    def outgoing(self) -> list[tuple[Route, Frame]]:
        """Return the frames to send now, each with the request that it belongs to."""
        out = self._out
        self._out = []
        return out

    def close(self) -> list[ServerEvent]:
        """Cancel every open request, because the peer has closed the connection. Nothing is sent
        any more.
        """
        events: list[ServerEvent] = [
            RequestCancelled(id, "the connection was closed") for id in self._open
        ]
        events += [
            ResponseReceived(id, t.McpError(t.INTERNAL_ERROR, "The client has gone."))
            for id in self._questions.clear()
        ]
        self._open.clear()
        self._batches.clear()
        self._out.clear()
        return events

    def respond(self, id: CallId, result: AnyResult) -> None:
        """Answer a request. Ignored if the request has been cancelled.

        Raises:
            TypeError: The result cannot be encoded as JSON; call `fail` then.
        """
        caller = self._open.get(id)
        if caller is None:
            return
        if isinstance(id, SessionListen):
            self._end_session_listen(id, t.INTERNAL_ERROR, "The server has ended the subscription.")
            return
        if id in self._listens:
            result = subscription_result(id, result)
        frame = result_frame(self.identity, id, result, caller.revision)
        del self._open[id]
        self._answer(id, frame)
        if self._questions:
            self._withdraw_all(id)
        if id in self._listens:
            self._end_listen(id)

    def fail(self, id: CallId, code: int, message: str, data: Any = None) -> None:
        """Answer a request with an error. Ignored if the request has been cancelled."""
        if id not in self._open:
            return
        if isinstance(id, SessionListen):
            self._end_session_listen(id, code, message, data)
            return
        revision = self._open.pop(id).revision
        self._listens.pop(id, None)
        self.error, frame = error_frame(id, code, message, data, revision)
        self._answer(id, frame)
        if self._questions:
            self._withdraw_all(id)

    def is_open(self, id: CallId) -> bool:
        """Whether a request has been neither answered nor cancelled."""
        return id in self._open

    def notify(self, id: CallId, method: str, params: Any) -> int:
        """Send a notification that belongs to an open request.

        It is dropped if the revision of the request does not have the method.

        Returns:
            The number of bytes to send; 0 if the notification was dropped.
        """
        caller = self._open.get(id)
        if caller is None:
            return 0
        if isinstance(id, SessionListen):
            before = len(self._out)
            self._notify_session(id, method, params, caller)
            return sum(len(frame) for _, frame in self._out[before:])
        if id in self._listens:
            params = subscription_params(id, method, params)
            if params is None:
                return 0
        frame = notification_frame(self.identity, caller, method, params)
        if frame is None:
            return 0
        self._out.append((id, frame))
        return len(frame)

    def ask(self, id: CallId, request: Any, result: type[Any] | None = None) -> t.RequestId:
        """Send a question to the peer as a request (handshake era only). The answer arrives as
        ResponseReceived.

        Args:
            id: The request that the question belongs to.
            request: An input request, or a request about a task that the peer runs.
            result: The type of the result; None for the response to an input request.
        """
        caller = self._open.get(id)
        method = type(request).__struct_config__.tag
        if (
            caller is None
            or caller.era is not Era.HANDSHAKE
            or not isinstance(method, str)
            or not _may_ask(caller.revision, method)
        ):
            raise t.ProtocolError(f"{method} cannot be asked on this request")
        expected = result or t.RESPONSE_TYPES[type(request)]
        asked, frame = self._questions.ask(id, method, request.params, expected, caller.revision)
        self._out.append((id, frame))
        return asked

    def withdraw(self, asked: t.RequestId, reason: str) -> None:
        """Stop waiting for the answer to a question, and notify the peer."""
        question = self._questions.forget(asked)
        if question is not None and self.remembered is not None:
            params = t.CancelledNotificationParams(request_id=asked, reason=reason)
            self._out.append(
                (
                    question.route,
                    jsonrpc.notification(
                        "notifications/cancelled", encode(params, self.remembered.revision)
                    ),
                )
            )

    # -- the three kinds of message ------------------------------------------------------------

    def _receive_unread_request(self, id: t.RequestId, envelope: Envelope) -> list[ServerEvent]:
        method = str(envelope.method)
        try:
            params, meta = read_params(self.identity, envelope)
        except Malformed as bad:
            self._refuse_params(id, method, envelope, str(bad))
            return []
        return self.receive_read(_Unread(id, method, params), meta)

    def _is_opening_anew(self, id: t.RequestId, method: str) -> bool:
        """Whether a request opens a new session with an ID that an open request of the old session
        has.
        """
        return method == "initialize" and self._open[id].era is Era.HANDSHAKE

    def _receive_remembered(
        self,
        id: t.RequestId,
        method: str,
        params: Any,
        meta: t.RequestMeta,
        frame: Frame | None,
    ) -> list[ServerEvent]:
        """A request of the handshake era."""
        caller = self.remembered
        if method == "initialize":
            return self._initialize(id, params)
        if caller is None:
            if method == "ping" and self.identity.handshakes:
                self._answer(id, jsonrpc.response(id, b"{}"))
            else:
                words = (
                    "Invalid params: identify the client first, with `initialize` or "
                    "with the keys of _meta on each request"
                )
                self.refuse(
                    id,
                    t.INVALID_PARAMS,
                    words,
                    {"supported": list(reversed(self.identity.revisions))},
                )
            return []
        if not self.identity.serves(caller.revision, method):
            self.refuse(id, t.METHOD_NOT_FOUND, f"Method not found: {method}")
            return []
        self._open[id] = caller
        if method in _ANSWERED_HERE:
            return self._answer_here(id, method, params, caller)
        caller = traced(caller, meta)
        return [RequestReceived(id, method, params, caller, meta.progress_token, frame)]

    def _receive_notification(self, envelope: Envelope) -> list[ServerEvent]:
        method = envelope.method
        row = METHODS.get(method) if isinstance(method, str) else None
        if row is None:
            return self._receive_extension_notification(envelope)
        if row.result is not None:
            return []
        try:
            params = decode(envelope.params, row.params)
        except Malformed:
            return []  # a notification is never answered, not even with an error (`RPC-11`)
        if method == "notifications/cancelled":
            if self._open.pop(params.request_id, None) is None:
                return []
            self._withdraw_all(params.request_id)
            self._listens.pop(params.request_id, None)
            self._send_batch(params.request_id, self._batches.cancel(params.request_id))
            return [RequestCancelled(params.request_id, params.reason)]
        if method == "notifications/initialized":
            return self._listen(None) if self.remembered is not None else []
        return [NotificationReceived(str(method), params)]

    def _receive_extension_notification(self, envelope: Envelope) -> list[ServerEvent]:
        """Receive a notification of an extension. It is ignored, like an unknown one, if the
        extension was not declared.
        """
        try:
            params, meta, method = read_extension_notification(self.identity, envelope)
        except Malformed:
            return []
        caller = self.remembered
        if meta.protocol_version is not None:
            caller = find_notifier(self.identity, meta, self.principal, self.session)
        if caller is None or caller.revision not in self.identity.revisions:
            return []
        if not self.identity.extensions.tells(method, caller):
            return []
        return [NotificationReceived(method, params, caller)]

    def _receive_response(self, envelope: Envelope) -> list[ServerEvent]:
        if envelope.result is UNSET and envelope.error is UNSET:
            id = envelope.id if isinstance(envelope.id, int | str) else None
            self.refuse(
                id,
                t.INVALID_REQUEST,
                "Invalid request: neither a method, nor a result, nor an error",
            )
            return []
        answer = self._questions.answered(envelope)
        return [] if answer is None else [answer]

    def _receive_batch(self, frame: Frame) -> list[ServerEvent]:
        """Only 2025-03-26 has batches (`RPC-13`, `RPC-16`); they are answered with an array."""
        try:
            jsonrpc.check_utf8(frame)
            messages = jsonrpc.open_batch(frame)
        except Malformed as bad:
            self.refuse(None, bad.code, str(bad))
            return []
        if self.remembered is None or not supports(self.remembered.revision, "batches"):
            self.refuse(None, t.INVALID_REQUEST, "Invalid request: this revision has no batches")
            return []
        events: list[ServerEvent] = []
        self._batches.start(self._open)
        for message in messages:
            if jsonrpc.is_batch(message):
                self.refuse_unread("a batch within a batch")
            else:
                events += self.receive(message)
        left = [id for id in self._open if not isinstance(id, SessionListen)]
        self._send_batch(None, self._batches.finish(left))
        return events

    def _send_batch(self, id: Route, array: Frame | None) -> None:
        if array is not None:
            self._out.append((id, array))

    # -- requests of the handshake era that are answered here -------------------------------------

    def _initialize(self, id: t.RequestId, hello: t.InitializeRequestParams) -> list[ServerEvent]:
        if self._batches.is_reading:  # `RPC-15`
            self.refuse(id, t.INVALID_REQUEST, IN_BATCH)
            return []
        spoken = [r for r in self.identity.revisions if r in HANDSHAKE_REVISIONS]
        if not spoken:
            data = {
                "supported": list(reversed(self.identity.revisions)),
                "requested": hello.protocol_version,
            }
            code = error_code("unsupported_protocol_version", STATELESS_REVISIONS[-1])
            self.refuse(
                id, code, "Unsupported protocol version: this server knows no `initialize`", data
            )
            return []
        revision = hello.protocol_version if hello.protocol_version in spoken else spoken[-1]
        declared = decode(
            encode(hello.capabilities, revision), t.ClientCapabilities
        )  # features that the revision lacks cannot be requested (`LIF-12`)
        declared = self.identity.extensions.with_core(declared, hello.capabilities, revision)
        caller = Caller(revision, declared, hello.client_info, "info", self.principal, self.session)
        try:
            offered = _offered(self.identity, caller, can_notify=self._can_notify)
        except t.McpError as bad:
            self.refuse(id, bad.code, bad.message, bad.data)
            return []
        events = self._end_session()
        self.remembered = caller
        reply = t.InitializeResult(
            protocol_version=revision,
            capabilities=offered,
            server_info=self.identity.info,
            instructions=self.identity.instructions,
        )
        self._answer(id, jsonrpc.response(id, encode(reply, revision)))
        return events

    def _end_session(self) -> list[ServerEvent]:
        """A second `initialize` opens a new session, and cancels every request of the old one.

        The cancelled requests are not answered, because the new session may use the same IDs.
        Requests of the stateless era belong to no session and continue.
        """
        old = [id for id, caller in self._open.items() if caller.era is Era.HANDSHAKE]
        for id in old:
            del self._open[id]
            self._withdraw_all(id)
        self._subscriptions.clear()
        self._batches.clear()
        self.sessions_begun += 1
        return [RequestCancelled(id, "the session was initialized again") for id in old]

    def _answer_here(
        self, id: t.RequestId, method: str, params: Any, caller: Caller
    ) -> list[ServerEvent]:
        match method:
            case "ping":
                self.respond(id, t.EmptyResult())
            case "logging/setLevel":
                self.remembered = replace(caller, log_level=params.level)
                self.respond(id, t.EmptyResult())
            case "resources/subscribe":
                return self._subscribe(id, params.uri, caller)
            case "resources/unsubscribe":
                subscription = self._subscriptions.get(params.uri)
                if subscription is not None:
                    self._end_session_listen(
                        subscription.listen,
                        t.INVALID_REQUEST,
                        "Invalid request: unsubscribed meanwhile",
                    )
                self.respond(id, t.EmptyResult())
                return [] if subscription is None else [RequestCancelled(subscription.listen)]
        return []

    def _subscribe(self, id: t.RequestId, uri: str, caller: Caller) -> list[ServerEvent]:
        try:
            resources = self.identity.capabilities(caller).resources if self._can_notify else None
        except t.McpError as bad:
            self.fail(id, bad.code, bad.message, bad.data)
            return []
        if resources is None or not resources.subscribe:
            self.fail(
                id,
                t.METHOD_NOT_FOUND,
                "Method not found: this server's resources cannot be subscribed to",
            )
        elif (known := self._subscriptions.get(uri)) is not None:
            if known.waiting is None:
                self.respond(id, t.EmptyResult())
            else:
                known.waiting.append(id)
        elif len(self._subscriptions) >= MOST_SUBSCRIPTIONS:
            words = (
                f"At most {MOST_SUBSCRIPTIONS} resources can be subscribed to at once; unsubscribe "
                "from some first"
            )
            self.fail(id, t.INVALID_PARAMS, words)
        elif sum(map(len, self._subscriptions)) + len(uri) > MOST_SUBSCRIBED_CHARACTERS:
            words = (
                f"The URIs of all subscribed resources have at most {MOST_SUBSCRIBED_CHARACTERS} "
                "characters; unsubscribe from some first"
            )
            self.fail(id, t.INVALID_PARAMS, words)
        else:
            events = self._listen(uri)
            listen: Any = events[0].id  # type: ignore[union-attr]  # a request of ours
            self._subscriptions[uri] = _Subscription(listen, [id])
            return events
        return []

    def _listen(self, uri: str | None) -> list[ServerEvent]:
        """Open a listen exchange on the peer's behalf: for the lists, or for one resource."""
        caller = self.remembered
        if caller is None or (
            uri is None and any(isinstance(i, SessionListen) and i.uri is None for i in self._open)
        ):
            return []
        listen = SessionListen(uri)
        self._open[listen] = caller
        wanted = (
            _LIST_CHANGES if uri is None else t.SubscriptionFilter(resource_subscriptions=[uri])
        )
        params = t.SubscriptionsListenRequestParams(notifications=wanted)
        return [RequestReceived(listen, "subscriptions/listen", params, caller)]

    def _notify_session(
        self, listen: SessionListen, method: str, params: Any, caller: Caller
    ) -> None:
        """Translate a notification of an internal listen exchange for a peer of the handshake
        era.
        """
        if method != "notifications/subscriptions/acknowledged":
            plain = replace(params, meta=t.NOTHING)
            self._out.append((None, jsonrpc.notification(method, encode(plain, caller.revision))))
            return
        subscription = self._subscriptions.get(listen.uri) if listen.uri is not None else None
        if subscription is None or subscription.waiting is None:
            return
        waiting = subscription.waiting
        subscription.waiting = None
        honoured = listen.uri in (params.notifications.resource_subscriptions or ())
        if not honoured:
            del self._subscriptions[subscription.listen.uri or ""]
        for id in waiting:
            if honoured:
                self.respond(id, t.EmptyResult())
            else:
                code = error_code("resource_not_found", caller.revision)
                self.fail(id, code, f"Resource not found: {listen.uri}", {"uri": listen.uri})

    def _end_session_listen(
        self, listen: SessionListen, code: int, message: str, data: Any = None
    ) -> None:
        """An internal listen exchange has ended; refuse the calls that still wait for it."""
        self._open.pop(
            listen, None
        )  # a session of several connections has listens that were opened by another one
        subscription = self._subscriptions.get(listen.uri) if listen.uri is not None else None
        if subscription is not None and subscription.listen is listen:
            del self._subscriptions[listen.uri or ""]
            for id in subscription.waiting or ():
                self.fail(id, code, message, data)

    def refuse(self, id: t.RequestId | None, code: int, message: str, data: Any = None) -> None:
        """Answer a message that never became an open request."""
        self.error = code
        frame = jsonrpc.failure(id, code, message, data)
        if not self._batches.refuse(frame):
            self._out.append((id, frame))

    def _answer(self, id: CallId, frame: Frame) -> None:
        """Add a response to the outgoing frames, or to the response of its batch."""
        if self._batches:
            taken, array = self._batches.answer(id, frame)
            if taken:
                self._send_batch(id, array)
                return
        self._out.append((id, frame))

    @property
    def _can_notify(self) -> bool:
        """Whether change notifications can reach a handshake-era peer."""
        return self._shared or self.session is not None

    def _refuse_params(self, id: t.RequestId, method: str, envelope: Envelope, why: str) -> None:
        """Refuse params that cannot be decoded. An unknown revision or method is reported first."""
        identity = self.identity
        if read_meta(envelope).protocol_version is not None:
            self._refuse_with(params_error(identity, id, method, envelope, why))
        elif method not in identity.requests or (
            self.remembered and not identity.serves(self.remembered.revision, method)
        ):
            self.refuse(id, t.METHOD_NOT_FOUND, f"Method not found: {method}")
        else:
            data = None
            if method == "initialize" and not identity.handshakes:  # `ERA-03`
                data = {"supported": list(reversed(identity.revisions))}
            self.refuse(id, t.INVALID_PARAMS, f"Invalid params: {why}", data)

    def _refuse_with(self, error: RequestError) -> None:
        self.refuse(error.id, error.code, error.message, error.data)

    def _end_listen(self, id: t.RequestId) -> None:
        """Close a subscription from this side. On a shared channel the specification also requires
        a notification (`X-01`).
        """
        self._listens.pop(id, None)
        if self._shared:
            params = t.CancelledNotificationParams(
                request_id=id, reason="the server closed the subscription"
            )
            self._out.append((id, jsonrpc.notification("notifications/cancelled", encode(params))))

    def _withdraw_all(self, id: CallId | None) -> None:
        for asked in self._questions.of(id):
            self.withdraw(asked, "the request that asked this has ended")


def _may_ask(revision: str, method: str) -> bool:
    """Whether a server may send a request under a revision."""
    if method in TASK_METHODS:
        return supports(revision, "core_tasks")
    return speaks(revision, method)


def _offered(identity: Identity, caller: Caller, *, can_notify: bool) -> t.ServerCapabilities:
    """The capabilities for a handshake-era peer; without change notifications if none can
    reach it.
    """
    offered = identity.offered(caller)
    if can_notify:
        return offered
    return replace(
        offered,
        tools=offered.tools and t.ListChangedCapability(),
        prompts=offered.prompts and t.ListChangedCapability(),
        resources=offered.resources and t.ResourcesCapability(),
    )

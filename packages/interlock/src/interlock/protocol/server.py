"""The stateless server, without I/O: a request in; who asks, and the bytes of the answer out
(2026-07-28).

Every request says itself who asks and under which revision, so that nothing is remembered between
two of them.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from .. import types as t
from ..exchange import AnyResult, Caller, Principal, RawResult
from ..wire import jsonrpc, sse
from ..wire.codec import decode, encode
from ..wire.jsonrpc import READ_ERRORS, Envelope, Frame, Malformed
from ..wire.revisions import METHODS, STATELESS_REVISIONS, error_code, speaks
from .error_codes import sendable
from .events import NotificationReceived, RequestReceived
from .identity import Identity
from .metadata import NO_META, take_meta, trace_of

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
MOST_SUBSCRIPTIONS = 1000
MOST_SUBSCRIBED_CHARACTERS = 64 * 1024  # of all URIs that a session is subscribed to
_STATELESS = frozenset(STATELESS_REVISIONS)
_NOT_FOR_LISTENERS = frozenset({"notifications/progress", "notifications/message"})  # `LSN-08`


class RequestError(Struct, frozen=True):
    """Why a message is not carried out; `id` is None where that of the request is not known."""

    id: t.RequestId | None
    code: int
    message: str
    data: Any = None

    def frame(self) -> Frame:
        """The response that says so."""
        return jsonrpc.failure(self.id, self.code, self.message, self.data)


# -- in ----------------------------------------------------------------------------------------


def receive(
    identity: Identity, frame: Frame, principal: Principal | None
) -> RequestReceived | RequestError:
    """Read a message that must be a request."""
    try:
        if not frame.isascii():
            jsonrpc.check_utf8(frame)
        request = identity.read_request(frame)
        meta = take_meta(request.params)
    except (Malformed, *READ_ERRORS):
        return _receive_slowly(identity, frame, principal)
    return accept(identity, request, meta, frame, principal)


def _receive_slowly(
    identity: Identity, frame: Frame, principal: Principal | None
) -> RequestReceived | RequestError:
    """Read a request piece by piece, to carry it out or to say what is wrong with it."""
    try:
        envelope = jsonrpc.open_envelope(frame)
    except Malformed as bad:
        return RequestError(bad.id, bad.code, str(bad))
    id = envelope.id
    method = envelope.method
    if not isinstance(method, str) or id is UNSET or id is None:
        return RequestError(None, t.INVALID_REQUEST, "Invalid request: it is not a request")
    try:
        params, meta = read_params(identity, envelope)
    except Malformed as bad:
        return params_error(identity, id, method, envelope, str(bad))
    caller = find_caller(identity, id, method, meta, principal)
    if isinstance(caller, RequestError):
        return caller
    return RequestReceived(id, method, params, caller, meta.progress_token)


def accept(
    identity: Identity,
    request: Any,
    meta: t.RequestMeta,
    frame: Frame | None,
    principal: Principal | None,
    session: str | None = None,
) -> RequestReceived | RequestError:
    """Accept a request that `identity.read_request` has read from `frame`, with its `_meta`."""
    method: str = request.method
    caller = find_caller(identity, request.id, method, meta, principal, session)
    if isinstance(caller, RequestError):
        return caller
    if method == "subscriptions/listen":
        frame = None  # which it would keep for long
    return RequestReceived(request.id, method, request.params, caller, meta.progress_token, frame)


def find_caller(
    identity: Identity,
    id: t.RequestId,
    method: str,
    meta: t.RequestMeta,
    principal: Principal | None,
    session: str | None = None,
) -> Caller | RequestError:
    """Who asks, by the request's own `_meta`; what is wrong is found in the order of the
    specification.
    """
    capabilities = meta.client_capabilities
    revision = meta.protocol_version
    if capabilities is None or revision is None:
        lacking = "protocolVersion" if revision is None else "clientCapabilities"
        words = f"Invalid params: _meta lacks io.modelcontextprotocol/{lacking}"
        return RequestError(id, t.INVALID_PARAMS, words)
    if revision not in identity.stateless_revisions:
        return unsupported_revision(identity, id, revision)
    if not identity.serves(revision, method):
        return RequestError(id, t.METHOD_NOT_FOUND, f"Method not found: {method}")
    return Caller(
        revision,
        capabilities,
        meta.client_info,
        meta.log_level,
        principal,
        session,
        trace=trace_of(meta),
    )


def find_notifier(
    identity: Identity, meta: t.RequestMeta, principal: Principal | None, session: str | None
) -> Caller | None:
    """Who sends a notification, by its own `_meta`; None where that does not say it."""
    capabilities = meta.client_capabilities
    revision = meta.protocol_version
    if capabilities is None or revision is None or revision not in identity.stateless_revisions:
        return None
    return Caller(
        revision,
        capabilities,
        meta.client_info,
        meta.log_level,
        principal,
        session,
        trace=trace_of(meta),
    )


def receive_notification(
    identity: Identity, frame: Frame, principal: Principal | None
) -> NotificationReceived | None:
    """Read a notification of an extension; any other has nothing that a stateless server acts on
    (`X-15`).
    """
    try:
        jsonrpc.check_utf8(frame)
        envelope = jsonrpc.open_envelope(frame)
        params, meta, method = read_extension_notification(identity, envelope)
    except Malformed:
        return None
    caller = find_notifier(identity, meta, principal, None)
    if caller is None or not identity.extensions.tells(method, caller):
        return None
    return NotificationReceived(method, params, caller)


def read_extension_notification(
    identity: Identity, envelope: Envelope
) -> tuple[Any, t.RequestMeta, str]:
    """The params, the protocol's keys of `_meta` and the method of a notification. Raises
    Malformed.
    """
    method = str(envelope.method)
    kind = identity.extensions.notifications.get(method)
    if kind is None or method in METHODS:
        raise Malformed(t.METHOD_NOT_FOUND, f"Method not found: {method}")
    params = decode(envelope.params, kind)
    return params, take_meta(params), method


def read_params(identity: Identity, envelope: Envelope) -> tuple[Any, t.RequestMeta]:
    """The params of a request, and the protocol's keys of their `_meta`. Raises Malformed."""
    params = decode(envelope.params, identity.requests.get(str(envelope.method), t.Params))
    return params, take_meta(params)


def read_meta(envelope: Envelope) -> t.RequestMeta:
    """The protocol's keys of `_meta` of a request whose params cannot be read; nothing where these
    cannot be read either.
    """
    try:
        meta: t.RequestMeta = decode(decode(envelope.params, t.Params).meta, t.RequestMeta)
    except Malformed:
        return NO_META
    return meta


def params_error(
    identity: Identity, id: t.RequestId, method: str, envelope: Envelope, why: str
) -> RequestError:
    """The error for params that cannot be read; a revision or a method that does not exist is named
    first.
    """
    found = find_caller(identity, id, method, read_meta(envelope), None)
    if isinstance(found, RequestError):
        return found
    return RequestError(id, t.INVALID_PARAMS, f"Invalid params: {why}")


def unsupported_revision(identity: Identity, id: t.RequestId, revision: str) -> RequestError:
    """The error for a revision that the server does not support; it lists those that it does."""
    data = {"supported": list(reversed(identity.revisions)), "requested": revision}
    code = error_code("unsupported_protocol_version", STATELESS_REVISIONS[-1])
    return RequestError(id, code, "Unsupported protocol version", data)


# -- out ---------------------------------------------------------------------------------------


def result_frame(identity: Identity, id: t.RequestId, result: AnyResult, revision: str) -> Frame:
    """The response with a result; in the stateless era it says what it is and who answers.

    Raises:
        TypeError: It is not a result, or JSON cannot express it.
    """
    if isinstance(result, RawResult):
        body = result.body
        stamp = identity.stamp_of(result, revision)
    elif not isinstance(result, t.Result):
        raise TypeError(f"a handler returned {type(result).__name__} instead of a result")
    elif revision not in _STATELESS:
        return jsonrpc.response(id, encode(result, revision))
    elif result.meta is not None or result.result_type is not None:
        return jsonrpc.response(id, encode(identity.stamped(result), revision))
    else:
        body = encode(result, revision)
        stamp = identity.stamp
    return jsonrpc.stamped_response(id, stamp, body) if stamp else jsonrpc.response(id, body)


def error_frame(
    id: t.RequestId, code: int, message: str, data: Any, revision: str
) -> tuple[int, Frame]:
    """The code that an error has under a revision, and the response with it."""
    code, data = sendable(code, data, revision)
    return code, jsonrpc.failure(id, code, message, data)


def notification_frame(
    identity: Identity, caller: Caller, method: str, params: Any
) -> Frame | None:
    """A notification to a caller; None where its revision does not have the method."""
    if not identity.may_notify(caller, method):
        return None
    return jsonrpc.notification(method, encode(params, caller.revision))


def subscription_result(id: t.RequestId, result: AnyResult) -> AnyResult:
    """The result of a subscription, which names it."""
    if isinstance(result, t.Result):
        return replace(result, meta={**(result.meta or {}), SUBSCRIPTION_ID: id})
    return result


class SubscriptionNotices:
    """Encodes notifications for subscriptions, as events of their streams. The same notification to
    many of them is encoded once: only the ID of the subscription differs.
    """

    __slots__ = ("_after", "_before", "_identity", "_method", "_params", "_revision")

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._method = ""
        self._revision = ""
        self._params: Any = None
        self._before = b""
        self._after = b""

    def event(self, id: t.RequestId, caller: Caller, method: str, params: Any) -> bytes:
        """The notification for a subscription; empty where it may not carry such a one."""
        if (
            params is not self._params
            or method != self._method
            or caller.revision != self._revision
        ):
            if method in _NOT_FOR_LISTENERS or not self._identity.may_notify(caller, method):
                return b""
            # A NUL stands for the ID: encoded JSON contains none.
            named = replace(params, meta=Raw(b'{"%b":\0}' % SUBSCRIPTION_ID.encode()))
            frame = jsonrpc.notification(method, encode(named, caller.revision))
            self._before, _, self._after = sse.event(frame).partition(b"\0")
            # Whether a caller may have the notification of an extension depends on the caller.
            self._params = params if speaks(caller.revision, method) else None
            self._method = method
            self._revision = caller.revision
        if type(id) is int:
            return b"%b%d%b" % (self._before, id, self._after)
        return self._before + jsonrpc.encode_id(id) + self._after


def subscription_params(id: t.RequestId, method: str, params: Any) -> Any:
    """The params of a notification on a subscription, which name it; None where it may not carry
    such a one (`LSN-05`).
    """
    if method in _NOT_FOR_LISTENERS:
        return None
    meta = Raw(b'{"%b":%b}' % (SUBSCRIPTION_ID.encode(), jsonrpc.encode_id(id)))
    return replace(params, meta=meta)

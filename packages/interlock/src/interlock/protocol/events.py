"""The events of a connection: what it reports to the code that does its I/O."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from ..exchange import Caller
from ..types.base import ProgressToken, RequestId
from ..types.errors import McpError, ProtocolError
from ..types.input import InputRequest, InputResponse


class SessionListen:
    """The id of a listen request that a connection opened on the peer's behalf; equal only to
    itself.
    """

    __slots__ = ("uri",)

    def __init__(self, uri: str | None) -> None:
        self.uri = uri


CallId = RequestId | SessionListen
Route = CallId | None
"""The request that a frame belongs to, for transports with several streams; None where it belongs
to none.
"""


class RequestReceived(Struct, frozen=True):
    """The peer sent a request; answer it with `respond` or `fail`.

    `frame` is the message itself. It is None if the message was not read in one pass, and for a
    subscription, which would hold it for a long time.
    """

    id: CallId
    method: str
    params: Any
    caller: Caller
    progress_token: ProgressToken | None = None
    frame: bytes | None = None


class RequestCancelled(Struct, frozen=True):
    """The peer cancelled a request. It gets no answer."""

    id: CallId
    reason: str | None = None


class ResponseReceived(Struct, frozen=True):
    """A response to a request of this side: a result, the raw JSON of a result, the peer's error,
    or a ProtocolError for a malformed response.
    """

    id: RequestId
    answer: InputResponse | Raw | McpError | ProtocolError


class QuestionReceived(Struct, frozen=True):
    """The server asks the client (handshake era); answer with `respond` or `fail`."""

    id: RequestId
    request: InputRequest


class TaskRequestReceived(Struct, frozen=True):
    """The server requests something about a task that the client runs (2025-11-25); answer with
    `respond_encoded` or `fail`.
    """

    id: RequestId
    method: str
    params: Any


class NotificationReceived(Struct, frozen=True):
    """A notification that belongs to no open request.

    `caller` is its sender, if a client sent it and it belongs to an extension.
    """

    method: str
    params: Any
    caller: Caller | None = None


ServerEvent = RequestReceived | RequestCancelled | ResponseReceived | NotificationReceived
ClientEvent = (
    ResponseReceived
    | QuestionReceived
    | TaskRequestReceived
    | RequestCancelled
    | NotificationReceived
)

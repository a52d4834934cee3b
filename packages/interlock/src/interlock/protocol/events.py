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
    """The peer wants something done; answer with `respond` or `fail`.

    `frame` is the message itself, where it was read as it came and is no subscription, which would
    keep it for long.
    """

    id: CallId
    method: str
    params: Any
    caller: Caller
    progress_token: ProgressToken | None = None
    frame: bytes | None = None


class RequestCancelled(Struct, frozen=True):
    """The peer no longer wants the answer, and will not get one."""

    id: CallId
    reason: str | None = None


class ResponseReceived(Struct, frozen=True):
    """An answer to a request of ours: a response, raw JSON of a result, the peer's error, or
    ProtocolError for one that is none.
    """

    id: RequestId
    answer: InputResponse | Raw | McpError | ProtocolError


class QuestionReceived(Struct, frozen=True):
    """The server asks the client (handshake era); answer with `respond` or `fail`."""

    id: RequestId
    request: InputRequest


class NotificationReceived(Struct, frozen=True):
    """The peer tells something that no open request is waiting for.

    `caller` says who tells it, where it is a notification of an extension that a client has sent.
    """

    method: str
    params: Any
    caller: Caller | None = None


ServerEvent = RequestReceived | RequestCancelled | ResponseReceived | NotificationReceived
ClientEvent = ResponseReceived | QuestionReceived | RequestCancelled | NotificationReceived

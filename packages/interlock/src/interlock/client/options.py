"""Option records and typed options of a Client, its transports and its requests."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypedDict

import msgspec
from msgspec import Struct

from .. import types as t
from ..exchange import Asker, Middleware
from ..extension import Extension
from ..http11.fetch import Authorizer
from ..observe.spans import Tracing
from ..transport.channel import MessageRecorder
from ..transport.list_pages import DEFAULT_LIST_BYTES, DEFAULT_LIST_ITEMS
from .answers import Answers, ElicitFunction
from .backchannel import MayRepeat
from .rounds import DEFAULT_MOST_ROUNDS

OnProgress = Callable[[t.ProgressNotificationParams], Awaitable[object] | None]
OnLog = Callable[[t.LoggingMessageNotificationParams], Awaitable[object] | None]
OnNotification = Callable[[str, Any], Awaitable[object] | None]
OnStderr = Callable[[str], Awaitable[object] | None]
Seconds = float | msgspec.UnsetType | None  # None: no limit; UNSET: the client's own limit


class ClientSettings(Struct, frozen=True, kw_only=True):
    """Settings of a client that most programs do not change.

    Attributes:
        max_timeout: The maximum duration of one request in total, in seconds, if progress restarts
            `timeout`. None: progress does not restart it.
        probe_timeout: The time to wait for the response to `server/discover`, in seconds, before
            the client tries the handshake. None: 5 seconds; for a child process half a second after
            it has read the request, however long it takes to start.
        max_rounds: The maximum number of times that one request may be answered with questions.
        max_list_items: The maximum number of items of a list over all its pages; more is a
            ProtocolError.
        max_list_bytes: The maximum size of a list over all its pages in bytes; more is a
            ProtocolError.
        validate: Whether structured results are checked against the known output schemas.
        cache: Whether responses are cached if the server allows it.
        older_for_questions: What to do with a server that can ask only under an older revision.
            True: switch to that revision, and repeat the failed request if it is read-only or
            idempotent. A function decides about all other requests. False: do not switch.
        clock: Returns the time in seconds, for the expiry of cached responses.
    """

    max_timeout: float | None = None
    probe_timeout: float | None = None
    max_rounds: int = DEFAULT_MOST_ROUNDS
    max_list_items: int = DEFAULT_LIST_ITEMS
    max_list_bytes: int = DEFAULT_LIST_BYTES
    validate: bool = True
    cache: bool = True
    older_for_questions: bool | MayRepeat = True
    clock: Callable[[], float] = time.monotonic


class TransportOptions(TypedDict, total=False):
    """Options of the transport that a client creates for its target.

    Attributes:
        headers: For a URL: headers that are sent with each request.
        token: For a URL: a bearer token.
        auth: For a URL: the provider of tokens (see `interlock.auth`). `Http` has more such
            options.
        on_stderr: For a command or script: called with each line that the child process writes to
            stderr.
        record: Records the messages, such as `interlock.tape.Recorder`.
    """

    headers: Mapping[str, str] | None
    token: str | None
    auth: Authorizer | None
    on_stderr: OnStderr | None
    record: MessageRecorder | None


class ClientOptions(TransportOptions, total=False):
    """All options of a Client but its target, for functions that pass them on; see Client."""

    elicit: ElicitFunction | None
    answers: Answers | None
    on_log: OnLog | None
    on_notification: OnNotification | None
    info: t.Implementation | None
    revision: str | Sequence[str] | None
    log_level: t.LoggingLevel | None
    timeout: float | None
    middleware: Sequence[Middleware | Extension]
    extensions: Sequence[Extension]
    settings: ClientSettings | None
    tracing: Tracing | None


class ListOptions(TypedDict, total=False):
    """Options of a request for a list.

    Attributes:
        timeout: The maximum duration of the request for one page, in seconds; None for no limit.
    """

    timeout: Seconds


class ReadOptions(TypedDict, total=False):
    """Options of a request for a resource or prompt.

    Attributes:
        timeout: The maximum duration in seconds; None for no limit.
        asker: Answers the questions of this request in place of the client's own.
        meta: The author's part of the request's `_meta`.
    """

    timeout: Seconds
    asker: Asker | None
    meta: Mapping[str, Any] | None


class CallOptions(ReadOptions, total=False):
    """Options of a tool call.

    Attributes:
        max_timeout: The maximum duration in total, in seconds, if progress restarts `timeout`.
        on_progress: Called with the progress of the call.
    """

    max_timeout: Seconds
    on_progress: OnProgress | None


class TaskCallOptions(Struct, frozen=True, kw_only=True):
    """The options of a request that concerns a task, with the client's defaults filled in.

    Attributes:
        timeout: The maximum duration in seconds; None for no limit.
        max_timeout: The maximum duration in total, in seconds, if progress restarts `timeout`.
        on_progress: Called with the progress of the request.
        asker: Answers the questions of the request and of its task.
    """

    timeout: Seconds
    max_timeout: Seconds
    on_progress: OnProgress | None
    asker: Asker


class CompleteOptions(TypedDict, total=False):
    """Options of a completion request.

    Attributes:
        arguments: The other arguments that are known already.
        timeout: The maximum duration in seconds; None for no limit.
    """

    arguments: Mapping[str, str] | None
    timeout: Seconds


class RequestOptions(TypedDict, total=False):
    """Options of any other request.

    Attributes:
        timeout: The maximum duration in seconds; None for no limit.
        max_timeout: The maximum duration in total, in seconds, if progress restarts `timeout`.
        on_progress: Called with the progress of the request.
        asker: Answers the questions of this request in place of the client's own.
    """

    timeout: Seconds
    max_timeout: Seconds
    on_progress: OnProgress | None
    asker: Asker | None

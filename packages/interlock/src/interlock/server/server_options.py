"""Option records of a Server: its description, its limits, and its questions to clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from .. import types as t
from ..quotas import DEFAULT_SHARE
from ..transport.serve import DEFAULT_MOST_CALLS
from .calls.session_state import DEFAULT_STATE_BYTES
from .calls.threads import DEFAULT_THREADS

FallbackModel = Callable[[t.CreateMessageRequestParams], Awaitable[t.CreateMessageResult | str]]
"""A model of the server: an async function from the params of a sampling request to the answer."""


class ServerInfo(Struct, frozen=True, kw_only=True):
    """The description of a server, besides its name and version.

    Attributes:
        title: The name for people.
        description: What the server is for.
        website_url: The URL of its website.
        icons: Icons of the server.
    """

    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: Sequence[t.Icon] = ()


class ServerLimits(Struct, frozen=True, kw_only=True):
    """Limits of a server, over all its features and peers.

    Attributes:
        timeout: The maximum duration of one call in seconds, unless the feature has its own; None
            for no limit.
        http_inactivity: The time that a call over HTTP may make no progress, in seconds, unless it
            has a timeout; None for no limit. The time stands still while a question is open.
        concurrency: The maximum number of running calls in the whole server; None for no limit.
        queue: The maximum number of calls that wait for a running call to end.
        calls_per_peer: The maximum number of open requests of one connection.
        threads: The maximum number of threads for plain functions.
        page_size: The maximum number of items on a page of a list.
        list_ttl_ms: The time for which clients may cache lists, in milliseconds.
        suspended_calls: The maximum number of calls that wait for the answer to a question
            (2026-07-28). Further calls run again from the top with the answers.
        held_bytes: The memory budget of this process for the arguments of running and suspended
            calls over HTTP, in bytes: four for each byte of a request of more than 4 KiB. More is
            answered with 503.
        share: The part of the two that one caller (a principal or an address) may hold while nobody
            else does, from 0.5 to 1. For a caller that holds less, the oldest suspended calls of
            larger holders make room.
        session_state_bytes: The maximum size of `ctx.session_state` for one session, in bytes of
            JSON.
    """

    timeout: float | None = None
    http_inactivity: float | None = 600.0
    concurrency: int | None = None
    queue: int = 1000
    calls_per_peer: int = DEFAULT_MOST_CALLS
    threads: int = DEFAULT_THREADS
    page_size: int = 1000
    list_ttl_ms: int = 0
    session_state_bytes: int = DEFAULT_STATE_BYTES
    suspended_calls: int = 1000
    held_bytes: int = 512 * 1024 * 1024
    share: float = DEFAULT_SHARE

    def __post_init__(self) -> None:
        for name in (
            "suspended_calls",
            "held_bytes",
            "concurrency",
            "calls_per_peer",
            "threads",
            "page_size",
        ):
            _check_number(name, getattr(self, name), 1)
        for name in ("queue", "list_ttl_ms", "session_state_bytes"):
            _check_number(name, getattr(self, name), 0)
        if not 0.5 <= self.share <= 1:
            raise ValueError(f"the share of one caller is from 0.5 to 1, and not {self.share!r}")
        if self.timeout is not None and self.timeout <= 0:
            raise ValueError("timeout must be more than 0 seconds")
        if self.http_inactivity is not None and self.http_inactivity <= 0:
            raise ValueError("http_inactivity must be more than 0 seconds")


class QuestionSettings(Struct, frozen=True, kw_only=True):
    """How a server asks its clients for input.

    Attributes:
        suspend: Whether a tool that asks waits in place. If not, it runs again from the top with
            the answers; then put side effects in `ctx.once`.
        timeout: The time that a question may stay open under 2026-07-28, in seconds.
        state_keys: Secrets (16 random bytes or more) that seal the state of calls while it travels
            through clients, and the cursors of lists with hidden items. The first one seals, all of
            them open. Several workers need the same keys. Without keys, the variable
            INTERLOCK_STATE_KEY (hexadecimal; several with commas between them) is used, or else a
            random key of this process. Servers with different names cannot open each other's state.
        fallback_model: Answers `ctx.sample` for clients that have no model.
        prefer_fallback_model: Whether the fallback model also answers for clients that have a
            model.
    """

    suspend: bool = True
    timeout: float = 900.0
    state_keys: Sequence[bytes] = ()
    fallback_model: FallbackModel | None = None
    prefer_fallback_model: bool = False


def _check_number(name: str, given: int | None, least: int) -> None:
    if given is not None and given < least:
        raise ValueError(f"{name} must be {least} or more, not {given}")

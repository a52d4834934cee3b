"""Option records of a Server: what it says about itself, its limits, and how it asks clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from .. import types as t
from ..transport.serve import DEFAULT_MOST_CALLS
from .calls.session_state import DEFAULT_STATE_BYTES
from .calls.threads import DEFAULT_THREADS

FallbackModel = Callable[[t.CreateMessageRequestParams], Awaitable[t.CreateMessageResult | str]]
"""A model of the server's own: an async function from a sampling request's params to its answer."""


class ServerInfo(Struct, frozen=True, kw_only=True):
    """What a server says about itself besides its name and version.

    Attributes:
        title: The name for people.
        description: What the server is for.
        website_url: The URL of its website.
        icons: Its icons.
    """

    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: Sequence[t.Icon] = ()


class ServerLimits(Struct, frozen=True, kw_only=True):
    """Limits of a server, over all its features and peers.

    Attributes:
        timeout: Seconds that one call may take, unless the feature says otherwise; None for no
            limit.
        concurrency: How many calls run at once, over the whole server; None for no limit.
        queue: How many more calls wait for one of these to end.
        calls_per_peer: How many requests one connection may have open.
        threads: The maximum number of threads for plain functions.
        page_size: How many items one page of a list holds.
        list_ttl_ms: For how many milliseconds clients may keep lists without asking again.
        session_state_bytes: How much `ctx.session_state` may hold for one session, as JSON.
    """

    timeout: float | None = None
    concurrency: int | None = None
    queue: int = 1000
    calls_per_peer: int = DEFAULT_MOST_CALLS
    threads: int = DEFAULT_THREADS
    page_size: int = 1000
    list_ttl_ms: int = 0
    session_state_bytes: int = DEFAULT_STATE_BYTES

    def __post_init__(self) -> None:
        for name in ("concurrency", "calls_per_peer", "threads", "page_size"):
            _check_number(name, getattr(self, name), 1)
        for name in ("queue", "list_ttl_ms", "session_state_bytes"):
            _check_number(name, getattr(self, name), 0)
        if self.timeout is not None and self.timeout <= 0:
            raise ValueError("timeout must be more than 0 seconds")


class QuestionSettings(Struct, frozen=True, kw_only=True):
    """How a server asks its clients for input.

    Attributes:
        suspend: Whether a tool that asks waits in place. If not, it runs again from the top with
            the answers; then put side effects in `ctx.once`.
        timeout: Seconds that a question may stay open under 2026-07-28.
        state_keys: Secrets (16 random bytes or more) that seal the state of calls while it travels
            through clients, and the cursors of lists that not every caller sees whole. The first
            one seals, all of them open. Several workers need the same keys. Without any, the
            variable INTERLOCK_STATE_KEY (hexadecimal) is used, else a random key of this process.
            Servers of different names cannot open each other's state.
        fallback_model: Answers `ctx.sample` for clients that have no model.
        prefer_fallback_model: Whether it also answers for clients that have one.
    """

    suspend: bool = True
    timeout: float = 900.0
    state_keys: Sequence[bytes] = ()
    fallback_model: FallbackModel | None = None
    prefer_fallback_model: bool = False


def _check_number(name: str, given: int | None, least: int) -> None:
    if given is not None and given < least:
        raise ValueError(f"{name} must be {least} or more, not {given}")

"""The state of a running gateway, as its page, its commands and its metrics show it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from interlock import Source

from .settings import Settings

Condition = Literal["idle", "opening", "up", "down", "open circuit", "draining"]
"""The condition of one upstream: "idle" was not needed yet, "open circuit" failed too often and is
not tried for a while.
"""


class UpstreamState(Struct, frozen=True, kw_only=True):
    """The state of one server behind the gateway.

    Attributes:
        name: Its name in the settings.
        shown: Its command or URL, without secrets.
        condition: Its condition; of a server with a connection for each principal, the worst of
            them.
        words: Why it cannot be used; empty if it can.
        identity: Whose credentials go to it: none, service or user.
        shared: Whether all principals share one connection.
        connections: The number of open processes or connections.
        failures: The failures since it was last up.
        tools: The number of tools; of the shared connection, or of the one with the most.
        calls: The number of running requests.
        retry_seconds: The time until the next attempt, in seconds; 0 if none waits.
        required: Whether the gateway is not ready without it.
    """

    name: str
    shown: str
    condition: Condition
    words: str = ""
    identity: str = "service"
    shared: bool = True
    connections: int = 0
    failures: int = 0
    tools: int = 0
    calls: int = 0
    retry_seconds: float = 0.0
    required: bool = False


class ViewState(Struct, frozen=True, kw_only=True):
    """The state of one view.

    Attributes:
        name: Its name; empty for the default view.
        path: The path of its endpoint.
        servers: The names of its servers.
        scopes: The scopes that it needs.
        left_out: Why features are missing, one sentence each.
        principals: The number of principals that have a catalogue of their own.
    """

    name: str
    path: str
    servers: Sequence[str]
    scopes: Sequence[str] = ()
    left_out: Sequence[str] = ()
    principals: int = 0


class PendingApproval(Struct, frozen=True, kw_only=True):
    """A feature that is withheld until someone approves it.

    Attributes:
        id: Identifies it for `approve`.
        server: The server.
        kind: "tool" and so on.
        name: The name that the server gave it.
        why: Why it is withheld, such as "changed since it was pinned".
        before: The pinned description, as text; empty if there is none.
        after: The description now, as text.
    """

    id: str
    server: str
    kind: str
    name: str
    why: str
    before: str = ""
    after: str = ""


class GatewayState(Protocol):
    """A running gateway, as far as its page and its commands use it."""

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        ...

    @property
    def started(self) -> float:
        """When the process started, in seconds of the wall clock."""
        ...

    def upstreams(self) -> Sequence[UpstreamState]:
        """Return the state of every server."""
        ...

    def views(self) -> Sequence[ViewState]:
        """Return the state of every view."""
        ...

    def counters(self) -> dict[str, float]:
        """Return counters of this process by name, such as "calls" and "errors"."""
        ...

    def approvals(self) -> Sequence[PendingApproval]:
        """Return the features that are withheld."""
        ...

    def approve(self, ids: Sequence[str]) -> Awaitable[int]:
        """Approve withheld features. Returns how many there were."""
        ...

    def reload(self) -> Awaitable[Sequence[str]]:
        """Read the settings again, and use them without dropping a call.

        Returns what has changed, in words.

        Raises:
            BadSettings: The new settings cannot be used; the old ones stay in use.
        """
        ...


class ProtectsSources(Protocol):
    """What stands between the callers and the servers: policy, pins, guard hook, limits, audit.

    One object serves one set of settings. A reload makes a new one.
    """

    def protect(
        self, source: Source, *, server: str, view: str = "", prefix: str | None = None
    ) -> Source:
        """Return a source with the protections around it.

        Args:
            source: The source of a server.
            server: The name of the server in the settings.
            view: The view that mounts it.
            prefix: The prefix of its tools and prompts in the view; None for none.
        """
        ...

    def approvals(self) -> Sequence[PendingApproval]:
        """Return the features that are withheld."""
        ...

    def approve(self, ids: Sequence[str], by: str = "") -> int:
        """Approve withheld features.

        Args:
            ids: The features.
            by: Who approves, for the audit.

        Returns:
            How many of them are approved now.

        Raises:
            ValueError: The pins cannot be read or written.
        """
        ...

    def refresh(self) -> None:
        """Look again at what other processes may have approved."""
        ...

    async def aclose(self) -> None:
        """Close files, once the last request through this object has ended."""
        ...

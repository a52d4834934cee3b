"""Serves the page of a gateway on loopback: its state, the audit, and the acts of the person."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from interlock import listening_socket, serve_http

from ...fleet.pins import BadPins
from ...web.page_guard import PageGuard
from ...web.page_site import ActError, PageSite
from ..audit import GatewayAudit
from ..settings import BadSettings
from ..state import GatewayState

LOOPBACK = "127.0.0.1"
MOST_ENTRIES = 200
"""Entries of the audit that a page gets at first."""
SECONDS = 1.0
"""The time between two looks at the state."""

_TAIL = 256 * 1024  # bytes of the audit that are read at first
_GRACE = 2.0  # seconds for requests to finish at the end

Entry = Mapping[str, Any]


class AuditTail:
    """The end of the audit: what all workers have written, or without a file this worker.

    Args:
        audit: The audit.
    """

    def __init__(self, audit: GatewayAudit) -> None:
        self._audit = audit
        self._path: Path | None = audit.options.path
        self._position = -1
        self._newest: Entry | None = None

    def read(self) -> list[Entry]:
        """Return the entries since the last call; at first the newest ones. Reads a file."""
        if self._path is None:
            entries = list(self._audit.recent)
            if self._newest in entries:
                entries = entries[entries.index(self._newest) + 1 :]
            self._newest = entries[-1] if entries else self._newest
            return entries[-MOST_ENTRIES:]
        try:
            with open(self._path, "rb") as file:
                size = file.seek(0, 2)
                start = max(0, size - _TAIL) if self._position < 0 else self._position
                file.seek(min(start, size))
                data = file.read(size - min(start, size))
        except OSError:
            return []  # nothing was recorded yet
        whole, line_end, _ = data.rpartition(b"\n")
        self._position = min(start, size) + len(whole) + len(line_end)
        return [entry for line in whole.splitlines() if (entry := _entry(line))][-MOST_ENTRIES:]


def _entry(line: bytes) -> Entry | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None  # the first line that was read may be a part of one
    return found if isinstance(found, dict) else None


class GatewayFeed:
    """The content of a gateway's page; see `Feed`."""

    def __init__(self, gateway: GatewayState, audit: GatewayAudit) -> None:
        self._gateway = gateway
        self._audit = audit
        self._tail = AuditTail(audit)
        self._recent: list[Entry] = []
        self._listeners: list[Callable[[Entry], None]] = []
        self._last = b""
        self._looking = asyncio.Lock()

    def listen(self, receive: Callable[[Entry], None]) -> Callable[[], None]:
        """See Feed."""
        self._listeners.append(receive)
        return lambda: self._listeners.remove(receive)

    def state(self) -> Any:
        """See Feed."""
        return {
            "servers": msgspec.to_builtins(list(self._gateway.upstreams())),
            "views": msgspec.to_builtins(list(self._gateway.views())),
            "approvals": msgspec.to_builtins(list(self._gateway.approvals())),
            "counters": self._gateway.counters(),
            "started": self._gateway.started,
            "source": str(self._gateway.settings.source or ""),
            "audit": {
                "path": str(self._audit.options.path or ""),
                "lost": self._audit.lost,
                "recent": self._recent,
            },
        }

    def encoded(self, entry: Entry) -> Any:
        """See Feed."""
        return entry

    def changes_state(self, entry: Entry) -> bool:
        """See Feed."""
        return entry.get("event") == "state"

    async def follow(self) -> None:
        """Tell the pages what has changed, until the task is cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(SECONDS)

    async def look(self) -> None:
        """Tell the pages what has changed since the last look."""
        async with self._looking:
            entries = await asyncio.to_thread(self._tail.read)
        self._recent = [*self._recent, *entries][-MOST_ENTRIES:]
        state = self.state()
        del state["audit"]
        now = msgspec.json.encode(state)
        if now != self._last:
            self._last = now
            entries = [*entries, {"event": "state"}]
        for entry in entries:
            for receive in list(self._listeners):
                receive(entry)


class GatewayAct(Struct, frozen=True, forbid_unknown_fields=True):
    """One request of the page.

    Attributes:
        act: What to do.
        ids: The features to approve.
    """

    act: Literal["approve", "reload", "check"]
    ids: Sequence[str] = ()


class GatewaySite(PageSite):
    """The page of a gateway, for one person at this machine.

    Args:
        gateway: The gateway to show.
        audit: Its audit.
        origin: Scheme, host and port of the page.
    """

    def __init__(self, gateway: GatewayState, audit: GatewayAudit, *, origin: str) -> None:
        self._gateway = gateway
        self._audit = audit
        self._feed = GatewayFeed(gateway, audit)
        super().__init__(
            "interlock_apps.gateway.page",
            guard=PageGuard(origin, what="gateway", kept="The audit keeps what was recorded."),
            feed=self._feed,
        )

    async def refresh(self) -> None:
        """See PageSite."""
        await self._feed.look()

    async def follow(self) -> None:
        """Keep the pages up to date, until the task is cancelled."""
        await self._feed.follow()

    async def act(self, body: bytes) -> Any:
        """See PageSite."""
        wanted = msgspec.json.decode(body, type=GatewayAct)
        try:
            if wanted.act == "approve":
                return await self._gateway.approve(wanted.ids)
            if wanted.act == "reload":
                return list(await self._gateway.reload())
            found = await asyncio.to_thread(self._audit.check)
        except (BadSettings, BadPins, ValueError, OSError) as bad:
            raise ActError(str(bad)) from None
        return None if found is None else msgspec.to_builtins(found)


async def serve_page(
    gateway: GatewayState,
    audit: GatewayAudit,
    *,
    port: int = 0,
    on_ready: Callable[[GatewaySite], object] | None = None,
) -> None:
    """Serve the page of a gateway until the task is cancelled.

    Args:
        gateway: The gateway that is shown.
        audit: Its audit.
        port: The port of the page, on loopback; 0 for any that is free.
        on_ready: Called with the page once it listens.

    Raises:
        OSError: The port is taken.
    """
    listener = listening_socket(LOOPBACK, port)
    site = GatewaySite(gateway, audit, origin=f"http://{LOOPBACK}:{listener.getsockname()[1]}")
    following = asyncio.get_running_loop().create_task(site.follow())
    try:
        await serve_http(
            _PageApp(site),
            [listener],
            grace=_GRACE,
            on_ready=lambda _: on_ready(site) if on_ready is not None else None,
        )
    finally:
        site.close()
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following


class _PageApp:
    """The page as an app of the HTTP server."""

    def __init__(self, site: GatewaySite) -> None:
        self._site = site

    async def open(self) -> None:
        """Do nothing: the page is ready."""

    async def drain(self, grace: float) -> None:
        """End the page's event streams, which would keep the server running."""
        self._site.close()

    async def aclose(self) -> None:
        """Do nothing more."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request."""
        await self._site(scope, receive, send)

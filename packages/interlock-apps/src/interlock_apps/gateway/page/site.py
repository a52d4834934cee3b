"""Serves the page of a gateway on loopback: its state, the audit, and the acts of the person."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

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

Entry = Mapping[str, Any]


class AuditTail:
    """The end of the audit: what all workers have written, or without a file this worker.

    Args:
        audit: Returns the audit. A reload of the settings may bring another one.
    """

    def __init__(self, audit: Callable[[], GatewayAudit]) -> None:
        self._audit = audit
        self._path: Path | None = None
        self._position = -1
        self._newest: Entry | None = None

    def read(self) -> list[Entry]:
        """Return the entries since the last call; at first the newest ones. Reads a file."""
        audit = self._audit()
        if audit.options.path != self._path:
            self._path = audit.options.path
            self._position = -1
        if self._path is None:
            entries = list(audit.recent)
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


class PagedGateway(GatewayState, Protocol):
    """A gateway that has an audit."""

    def audit(self) -> GatewayAudit:
        """Return the audit in use."""
        ...


class GatewayFeed:
    """The content of a gateway's page; see `Feed`."""

    def __init__(self, gateway: GatewayState, audit: Callable[[], GatewayAudit]) -> None:
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
        audit = self._audit()
        return {
            "servers": msgspec.to_builtins(list(self._gateway.upstreams())),
            "views": msgspec.to_builtins(list(self._gateway.views())),
            "approvals": msgspec.to_builtins(list(self._gateway.approvals())),
            "counters": self._gateway.counters(),
            "started": self._gateway.started,
            "source": str(self._gateway.settings.source or ""),
            "audit": {
                "path": str(audit.options.path or ""),
                "lost": audit.lost,
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
        audit: Returns its audit. A reload of the settings may bring another one.
        origin: Scheme, host and port of the page.
    """

    def __init__(
        self, gateway: GatewayState, audit: Callable[[], GatewayAudit], *, origin: str
    ) -> None:
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
            found = await asyncio.to_thread(self._audit().check)
        except (BadSettings, BadPins, ValueError, OSError) as bad:
            raise ActError(str(bad)) from None
        return None if found is None else msgspec.to_builtins(found)


def page_of(gateway: PagedGateway) -> GatewaySite:
    """Return the page of a gateway, at the port that it listens on. Only browsers of this machine
    reach it, also through a tunnel: it answers at a loopback address only.
    """
    _, port = gateway.settings.address
    return GatewaySite(gateway, gateway.audit, origin=f"http://{LOOPBACK}:{port}")

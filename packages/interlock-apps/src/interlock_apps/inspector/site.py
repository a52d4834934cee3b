"""The page of an inspector: its acts and its feed, on loopback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock import InterlockError

from ..web.app_sandbox import AppSandbox
from ..web.loopback import serve_site
from ..web.page_guard import PageGuard
from ..web.page_site import ActError, PageSite
from .act import run_act
from .acts import ACTS
from .events import InspectorEvent
from .session import Inspector


class InspectorFeed:
    """The content of an inspector's page; see `Feed`."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector

    def listen(self, receive: Callable[[InspectorEvent], None]) -> Callable[[], None]:
        """See Feed."""
        return self._inspector.events.listen(receive)

    def state(self) -> Any:
        """See Feed."""
        return self._inspector.state()

    def encoded(self, entry: InspectorEvent) -> Any:
        """See Feed."""
        return {"kind": entry.kind, "connection": entry.connection, "data": entry.data}

    def changes_state(self, entry: InspectorEvent) -> bool:
        """See Feed."""
        return entry.changes_state


class InspectorSite(PageSite):
    """The page of an inspector, for one person at this machine.

    Args:
        inspector: The inspector to show.
        origin: Scheme, host and port of the page.
        apps_origin: The other origin, for MCP Apps; "" for no apps.
    """

    def __init__(self, inspector: Inspector, *, origin: str, apps_origin: str = "") -> None:
        self.inspector = inspector
        self.origin = origin
        self.apps_origin = apps_origin
        self.sandbox = AppSandbox(apps_origin, origin)
        """The ASGI app of the other origin."""
        inspector.sandbox = self.sandbox
        super().__init__(
            "interlock_apps.inspector",
            guard=PageGuard(
                origin,
                what="inspector",
                frames=apps_origin,
                kept="A recording with --save keeps what was sent.",
            ),
            feed=InspectorFeed(inspector),
        )

    async def act(self, body: bytes) -> Any:
        """See PageSite."""
        try:
            return await run_act(ACTS, self.inspector, body)
        except (InterlockError, ValueError, OSError) as bad:
            raise ActError(str(bad)) from None


async def serve(
    inspector: Inspector,
    *,
    port: int = 0,
    on_ready: Callable[[InspectorSite], object] | None = None,
) -> None:
    """Serve the page of an inspector until the task is cancelled, or the process gets a signal to
    end.

    Args:
        inspector: The inspector that is shown.
        port: The port of the page; 0 for any that is free.
        on_ready: Called with the page once it listens.

    Raises:
        OSError: The port is taken.
        ImportError: The extra `inspector` is not installed.
    """

    def make(origin: str, frames: str) -> InspectorSite:
        return InspectorSite(inspector, origin=origin, apps_origin=frames)

    await serve_site(make, port=port, on_ready=on_ready)

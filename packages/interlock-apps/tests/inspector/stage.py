"""An inspector with in-memory servers or tapes, its page served on loopback, and a browser's page
that opens it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock import ClientTransport, Server
from interlock.tape import RecordedConnection, Recorder
from interlock_apps.inspector.session import Inspector
from interlock_apps.inspector.site import InspectorSite, serve
from interlock_apps.inspector.targets import InspectorTarget
from tests.web.offers import travel, weather
from tests.web.stage import DESKTOP


def server_target(name: str, server: Server, **options: Any) -> InspectorTarget:
    """A target in this process."""

    def transport(tap: RecordedConnection) -> ClientTransport:
        return server.transport(tap=tap)

    return InspectorTarget(
        name, f"{name}.py", words=(f"{name}.py",), transport=transport, **options
    )


@asynccontextmanager
async def inspecting(folder: Path, *targets: InspectorTarget) -> AsyncIterator[Inspector]:
    """An inspector whose connections are open and whose tapes are followed."""
    with Recorder(folder / "live.tape") as recorder:
        inspector = Inspector(targets, recorder, calls=folder / "calls.json")
        following = asyncio.create_task(inspector.follow())
        try:
            await inspector.open()
            yield inspector
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await inspector.aclose()


class InspectorStage:
    """What a test holds: the inspector, its servers, its site, and pages of a browser."""

    def __init__(
        self, inspector: Inspector, site: InspectorSite, servers: dict[str, Server], chromium: Any
    ) -> None:
        self.inspector = inspector
        self.site = site
        self.servers = servers
        self._chromium = chromium
        self._contexts: list[Any] = []
        self.troubles: list[str] = []

    async def page(
        self,
        where: str = "",
        *,
        size: dict[str, int] = DESKTOP,
        dark: bool = False,
        **options: Any,
    ) -> Any:
        """A page of its own that has opened the inspector at a view, such as
        "connection=travel&tab=tools"; its console's complaints are kept in `troubles`.
        """
        context = await self._chromium.new_context(
            viewport=size, color_scheme="dark" if dark else "light", **options
        )
        self._contexts.append(context)
        page = await context.new_page()
        # Milliseconds. What is right takes a thousandth of it, but others may have the cores.
        page.set_default_timeout(120_000)
        page.on(
            "console",
            lambda said: (
                self.troubles.append(said.text) if said.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", lambda dialog: self.troubles.append(f"a dialog: {dialog.message}"))
        await page.goto(self.site.entry)
        await page.get_by_role("tablist", name="Views").wait_for()
        if where:
            await page.evaluate("where => { location.hash = where; }", where)
        return page

    async def aclose(self) -> None:
        """Close what was opened."""
        for context in self._contexts:
            await context.close()


@asynccontextmanager
async def inspected(
    chromium: Any,
    folder: Path,
    *more: InspectorTarget,
    servers: Mapping[str, Callable[[], Server]] | None = None,
) -> AsyncIterator[InspectorStage]:
    """An inspector of these servers (by default of two) and further targets, with its page served;
    afterwards nothing of the page may have complained.
    """
    offered = {"travel": travel, "weather": weather} if servers is None else servers
    made = {name: make() for name, make in offered.items()}
    targets = [*(server_target(name, server) for name, server in made.items()), *more]
    ready: asyncio.Future[InspectorSite] = asyncio.get_running_loop().create_future()
    async with contextlib.AsyncExitStack() as ending:
        inspector = await ending.enter_async_context(inspecting(folder, *targets))
        work = asyncio.create_task(serve(inspector, on_ready=ready.set_result))
        either: list[asyncio.Future[Any]] = [work, ready]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            await work
        stage = InspectorStage(inspector, ready.result(), made, chromium)
        try:
            yield stage
        finally:
            await stage.aclose()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
    assert stage.troubles == []

"""A host with in-memory servers and a scripted model, its page served on loopback, and a browser's
page that opens it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock import Server
from interlock.models.interface import ModelFacts
from interlock.models.scripted import Scripted
from interlock_apps.fleet.log import MemoryLog
from interlock_apps.host.app import Host
from interlock_apps.host.options import TASK_WAIT, HostOptions
from interlock_apps.host.pages.serving import serve
from interlock_apps.host.pages.site import HostSite
from tests.web.offers import travel, weather

RULE_BASED = "This is no language model: it follows rules written for this example."
SHOTS = os.environ.get("INTERLOCK_SHOTS", "")
DESKTOP = {"width": 1320, "height": 860}
TELEPHONE = {"width": 360, "height": 740}


class Stage:
    """What a test holds: the host, its servers, its site, and pages of a browser."""

    def __init__(
        self, host: Host, site: HostSite, servers: dict[str, Server], chromium: Any
    ) -> None:
        self.host = host
        self.site = site
        self.servers = servers
        self._chromium = chromium
        self._contexts: list[Any] = []
        self.troubles: list[str] = []

    async def page(
        self, *, size: dict[str, int] = DESKTOP, dark: bool = False, **options: Any
    ) -> Any:
        """A page of its own that has opened the host; whatever its console complains of is kept in
        `troubles`.
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
        await page.locator(".side .dot, .first-steps").first.wait_for(state="attached")
        return page

    @asynccontextmanager
    async def broken(self, page: Any) -> AsyncIterator[None]:
        """Within, the streams of the host end, and this page gets no new one."""
        await page.route("**/api/events", lambda route: route.abort())
        self.site.closing.set()
        yield
        self.site.closing.clear()
        await page.unroute("**/api/events")

    async def aclose(self) -> None:
        """Close what was opened."""
        for context in self._contexts:
            await context.close()


@asynccontextmanager
async def staged(
    chromium: Any,
    *answers: Any,
    servers: Mapping[str, Callable[[], Any]] | None = None,
    remark: str = RULE_BASED,
    demo: str = "",
    task_wait: float | None = TASK_WAIT,
    host_options: Mapping[str, Any] = {},
    **options: Any,
) -> AsyncIterator[Stage]:
    """A host whose model gives these answers; afterwards nothing of the page may have
    complained.
    """
    made = {
        name: make() for name, make in (servers or {"travel": travel, "weather": weather}).items()
    }
    model = Scripted(*answers, name="planner", facts=ModelFacts(remark=remark))
    second = Scripted(
        "VY 8301, it is cheaper.", name="second", facts=ModelFacts(remark=""), forever=True
    )
    given = HostOptions(ask_to_start=False, task_wait=task_wait, **host_options)
    host = Host(made, models=[model, second], log=MemoryLog(), options=given, **options)
    ready: asyncio.Future[HostSite] = asyncio.get_running_loop().create_future()
    async with contextlib.AsyncExitStack() as ending:
        ending.push_async_callback(host.aclose)
        await host.log.open()
        work = asyncio.create_task(
            serve(host, title="Interlock", demo=demo, on_ready=ready.set_result)
        )
        either: list[asyncio.Future[Any]] = [work, ready]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            await work
        await host.open()  # as `interlock host` does: servers are told of apps when they start
        stage = Stage(host, ready.result(), made, chromium)
        try:
            yield stage
        finally:
            await stage.aclose()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
    assert stage.troubles == [], stage.troubles


async def shot(page: Any, name: str) -> None:
    """Keep a picture of the page in the folder that INTERLOCK_SHOTS names, where it names one."""
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        await page.screenshot(path=Path(SHOTS, f"{name}.png"))


async def say(page: Any, text: str) -> None:
    """Write something and send it with Enter."""
    field = page.get_by_label("Your message")
    await field.fill(text)
    await field.press("Enter")


async def focus_on(page: Any, selector: str) -> None:
    """Wait until the focus is on, or in, what the selector names."""
    await page.wait_for_function(
        "selector => !!document.activeElement?.closest(selector)", arg=selector
    )


def texts(lines: Sequence[str]) -> str:
    """Lines of an accessibility tree without what changes from run to run."""
    return re.sub(r"\d\d:\d\d(?:\s?[AP]M)?", "TIME", "\n".join(lines))

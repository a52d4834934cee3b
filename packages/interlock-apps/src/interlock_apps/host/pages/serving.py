"""Serves the page of a host on loopback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...web.loopback import serve_site
from .site import HostSite

if TYPE_CHECKING:
    from ..app import Host
    from ..setup.host_setup import HostSetup


async def serve(
    host: Host,
    *,
    port: int = 0,
    title: str = "Interlock",
    demo: str = "",
    again: str = "",
    on_ready: Callable[[HostSite], object] | None = None,
    setup: HostSetup | None = None,
) -> None:
    """Serve the page of a host until the task is cancelled, or the process gets a signal to end.

    Args:
        host: The host that is shown.
        port: The port of the page; 0 for any that is free.
        title: The title at the top of the page.
        demo: The note about the demonstration; "" if it is none.
        again: How to get another address of the page, for error responses.
        on_ready: Called with the page once it listens.
        setup: Changes the servers and the models of the host; None if they are not in files.

    Raises:
        OSError: The port is taken.
        ImportError: The extra `host` is not installed.
    """

    def make(origin: str, frames: str) -> HostSite:
        return HostSite(
            host,
            origin=origin,
            apps_origin=frames,
            title=title,
            demo=demo,
            again=again,
            setup=setup,
        )

    await serve_site(make, port=port, on_ready=on_ready)

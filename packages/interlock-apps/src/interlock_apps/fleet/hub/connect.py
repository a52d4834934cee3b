"""The way to a configured server, with an ear for the moment in which it breaks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from interlock import AnyResult, Exchange, Http, Socket, Stdio
from interlock.configs import Entry


def transport_for(entry: Entry, *, hear: Callable[[str], None], auth: Any, patience: float) -> Any:
    """The transport to what an entry names; `hear` gets each line of stderr, `auth` is an Authorizer or None.

    Raises ValueError or TypeError for what leads nowhere.
    """
    if entry.command:
        if sys.platform == "win32":  # there the lines come from a thread
            loop, inner = asyncio.get_running_loop(), hear

            def hear(line: str) -> None:
                loop.call_soon_threadsafe(inner, line)

        return Stdio(
            entry.command,
            env=entry.env,
            cwd=entry.cwd,
            on_stderr=hear,
            patience=patience,
            restart=False,  # the hub does so, and says so
        )
    parts = urlsplit(entry.url)
    match parts.scheme:
        case "http" | "https":
            return Http(
                entry.url,
                headers=entry.headers,
                auth=auth,
                legacy_sse=True if entry.legacy_sse else None,
            )
        case "unix" if parts.path and not parts.netloc:
            return Socket(parts.path, reconnect=False)  # as above
        case "tcp" if parts.hostname and parts.port:
            return Socket((parts.hostname, parts.port), reconnect=False)
    raise ValueError(f"its address leads nowhere: {entry.url}")


class LossDetector:
    """A transport that tells when it has broken, and knows which revision was spoken here before (`ERA-13`).

    `lost` is called where no answer can come any more; `known` is a revision, or None.
    """

    def __init__(self, inner: Any, lost: Callable[[Exception], None], known: str | None) -> None:
        self._inner, self._lost, self._known = inner, lost, known

    async def open(self, hello: Any) -> Any:
        """See ClientTransport."""
        tell = hello.lost

        def lost(why: Exception) -> None:
            tell(why)
            self._lost(why)

        return await self._inner.open(replace(hello, lost=lost, known=hello.known or self._known))

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """See ClientTransport."""
        result: AnyResult = await self._inner(exchange)
        return result

    def send_notification(self, method: str, params: Any) -> None:
        """See ClientTransport."""
        self._inner.send_notification(method, params)

    async def aclose(self) -> None:
        """See ClientTransport."""
        await self._inner.aclose()


def with_loss_detector(target: Any, lost: Callable[[Exception], None], known: str | None) -> Any:
    """A target with an ear to it: a transport, or a Server of this process; any other as it is."""
    if callable(getattr(target, "transport", None)):
        target = target.transport()
    is_transport = callable(target) and hasattr(target, "open") and hasattr(target, "aclose")
    return LossDetector(target, lost, known) if is_transport else target

"""The transport to a configured server, and the detection of its loss."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from interlock import AnyResult, Exchange, Http, Socket, Stdio
from interlock.configs import Entry
from interlock.sandbox import Sandbox


def transport_for(
    entry: Entry,
    *,
    on_stderr: Callable[[str], None],
    auth: Any,
    patience: float,
    sandbox: Sandbox | None = None,
) -> Stdio | Http | Socket:
    """Return the transport to the command or address of an entry.

    Args:
        entry: The server's configuration.
        on_stderr: Receives each line of the process's stderr.
        auth: Authorizes HTTP requests.
        patience: Seconds in which the process may exit by itself.
        sandbox: Confines the process; None for no confinement.

    Raises:
        ValueError: The address cannot be reached by any transport.
    """
    if entry.command:
        if sys.platform == "win32":  # there the lines come from a thread
            loop = asyncio.get_running_loop()
            inner = on_stderr

            def on_stderr(line: str) -> None:
                loop.call_soon_threadsafe(inner, line)

        return Stdio(
            entry.command,
            env=entry.env,
            cwd=entry.cwd,
            on_stderr=on_stderr,
            patience=patience,
            restart=False,  # the hub restarts it
            sandbox=sandbox,
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
    raise ValueError(f"no transport supports its address: {entry.url}")


class LossDetector:
    """A transport that reports its loss, and opens under a known revision (`ERA-13`).

    Args:
        inner: The transport.
        lost: Called when no more responses can arrive.
        known: The revision that worked before, or None.
    """

    def __init__(self, inner: Any, lost: Callable[[Exception], None], known: str | None) -> None:
        self._inner = inner
        self._lost = lost
        self._known = known

    @property
    def url(self) -> Any:
        """The URL of the transport. Raises AttributeError if it has none."""
        return self._inner.url

    @property
    def address(self) -> Any:
        """The address of the transport. Raises AttributeError if it has none."""
        return self._inner.address

    @property
    def tap(self) -> Any:
        """The tap of the transport. Raises AttributeError if it cannot have one."""
        return self._inner.tap

    @tap.setter
    def tap(self, tap: Any) -> None:
        self._inner.tap = tap

    async def open(self, hello: Any) -> Any:
        """See ClientTransport."""
        report_loss = hello.lost

        def lost(why: Exception) -> None:
            report_loss(why)
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
    """Return a transport, or a Server of this process, with loss detection; others as they are."""
    if callable(getattr(target, "transport", None)):
        target = target.transport()
    is_transport = callable(target) and hasattr(target, "open") and hasattr(target, "aclose")
    return LossDetector(target, lost, known) if is_transport else target

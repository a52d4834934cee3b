"""Serves the metrics of a server while it runs, if its options ask for it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from .interface import ServedServer

if TYPE_CHECKING:
    from .metrics import MetricsServer


@contextlib.asynccontextmanager
async def served_metrics(
    server: ServedServer, metrics: MetricsServer | None = None
) -> AsyncIterator[None]:
    """Serve the metrics of a server while the block runs, if its options ask for it.

    Args:
        server: The server.
        metrics: The listener that all workers share; None opens one.
    """
    if server.observe is None or server.observe.metrics is None:
        yield
        return
    from .metrics import MetricsServer  # late: only for servers whose metrics are read

    listener = metrics or MetricsServer(server.observe)
    try:
        async with listener.serve(server.meters):
            if metrics is None:
                listener.announce()
            yield
    finally:
        if metrics is None:
            listener.close()

"""Serves the metrics of a server while it runs, and exports its traces, if its options or the
environment ask for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...logs import limited
from ...observe.environment import tracing_from_environment
from ...observe.options import Observe
from .interface import ServedServer

if TYPE_CHECKING:
    from .metrics import MetricsServer

log = limited("interlock.server")


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


@contextlib.contextmanager
def exported_traces(server: ServedServer) -> Iterator[None]:
    """Export traces and metrics with OpenTelemetry while the block runs, if the environment names
    an endpoint and the server has no tracing system of its own. Call it after a fork.
    """
    observe = server.observe
    tracing = None
    if observe is None or observe.tracing is None:
        info = server.identity.info
        try:
            tracing = tracing_from_environment(info.name, info.version)
        except ImportError as missing:
            log.warning("the environment names an endpoint of OpenTelemetry: %s", missing)
    if tracing is None:
        yield
        return
    server.observe = replace(observe or Observe(metrics=None), tracing=tracing)
    try:
        yield
    finally:
        tracing.shutdown()

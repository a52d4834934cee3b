"""The options of a server's observability."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from .spans import Tracing

DEFAULT_ADDRESS = "127.0.0.1:9464"
"""The usual port of exporters that OpenTelemetry and Prometheus know, on loopback."""


class Observe(Struct, frozen=True, kw_only=True):
    """How a server can be observed, besides its counters, which are always on.

    Attributes:
        metrics: The address of the listener for `/metrics`, as `[HOST]:PORT`, on loopback if no
            host is given; None for no listener. Port 0 takes a free one.
        on_ready: Called with the URL of the metrics once they can be read.
        tracing: A tracing system, such as `interlock.observe.opentelemetry.OpenTelemetry`. Without
            one a program uses OpenTelemetry if OTEL_EXPORTER_OTLP_ENDPOINT is set.
    """

    metrics: str | None = DEFAULT_ADDRESS
    on_ready: Callable[[str], object] | None = None
    tracing: Tracing | None = None

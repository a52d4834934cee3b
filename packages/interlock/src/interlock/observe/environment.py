"""The tracing system that the variables of the environment ask for."""

from __future__ import annotations

import os

from .spans import Tracing

_EXPORTER = "OTEL_EXPORTER_OTLP_"


def tracing_from_environment(name: str, version: str) -> Tracing | None:
    """Return OpenTelemetry that exports over OTLP; None if no variable names an endpoint.

    Call it after a fork, because it starts threads. It sends what is left at the end of the
    process.

    Args:
        name: The name of the service, unless OTEL_SERVICE_NAME is set.
        version: Its version.

    Raises:
        ImportError: The extra `otel` is not installed.
    """
    if not any(name.startswith(_EXPORTER) and os.environ[name] for name in os.environ):
        return None
    from .opentelemetry import from_environment  # late: optional extra `otel`

    return from_environment(name, version)

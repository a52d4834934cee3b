"""The weather service on loopback, for the tutorial's weather server."""

from __future__ import annotations

from tests.servers.conftest import site

__all__ = ["site"]

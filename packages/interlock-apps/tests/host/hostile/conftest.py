"""A hostile server may hang a test, and then the test has failed."""

from __future__ import annotations

from tests.fleet.hub.conftest import bounded

__all__ = ["bounded"]

"""The servers of a host: one client kept for each, started at the same time, watched, and begun again when it has gone."""

from __future__ import annotations

from .backoff import Backoff
from .bounds import Bounds
from .hub import Hub
from .link import Link
from .verdicts import Verdicts

__all__ = ["Backoff", "Bounds", "Hub", "Link", "Verdicts"]

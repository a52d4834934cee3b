"""The servers of a host: one client kept for each, started at the same time, watched, and begun again when it has gone."""

from __future__ import annotations

from .backoff import Backoff
from .bounds import HubLimits
from .hub import Hub
from .link import ManagedServer
from .verdicts import KnownRevisions

__all__ = ["Backoff", "HubLimits", "Hub", "ManagedServer", "KnownRevisions"]

"""The servers of a host: one client kept for each, started at the same time, watched, and begun again when it has gone."""

from __future__ import annotations

from .backoff import Backoff
from .hub import Hub
from .known_revisions import KnownRevisions
from .limits import HubLimits
from .managed_server import ManagedServer

__all__ = ["Backoff", "HubLimits", "Hub", "ManagedServer", "KnownRevisions"]

"""The hub: keeps one client for each server, and restarts a server that is lost."""

from __future__ import annotations

from .backoff import Backoff
from .hub import Hub
from .known_revisions import KnownRevisions
from .limits import HubLimits
from .managed_server import ManagedServer
from .options import HubOptions
from .owner import HubOwner, OfferedFeatures

__all__ = [
    "Backoff",
    "Hub",
    "HubLimits",
    "HubOptions",
    "HubOwner",
    "KnownRevisions",
    "ManagedServer",
    "OfferedFeatures",
]

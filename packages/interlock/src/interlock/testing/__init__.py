"""Tools for tests of servers and clients: clients in memory, scripted answers, a clock,
snapshots, contract checks.

The pytest plugin in this package provides most of them as fixtures (see
`interlock.testing.plugin`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazily

if TYPE_CHECKING:
    from .catalogue import check_catalogue, read_catalogue, take_catalogue
    from .clock import Clock
    from .contracts.bus import check_change_bus
    from .contracts.channel import check_channel
    from .contracts.fetch import check_fetch
    from .contracts.sources import check_source
    from .contracts.store import check_store
    from .contracts.task_runner import check_task_runner
    from .contracts.transport import check_client_transport
    from .contracts.vault import check_vault
    from .drift import Catalogue, CatalogueChange, Drift, compare_catalogues
    from .pairs import MemoryChannel, channel_pair
    from .probe import probe_server
    from .scripted import ScriptedAnswers
    from .ways import EVERY_WAY, WAYS, Way, connect, way

# Imported at first use: the pytest plugin is in this package and must load fast.
_ROOMS = {
    ".contracts.bus": ("check_change_bus",),
    ".catalogue": ("check_catalogue", "read_catalogue", "take_catalogue"),
    ".contracts.channel": ("check_channel",),
    ".clock": ("Clock",),
    ".drift": ("Catalogue", "CatalogueChange", "Drift", "compare_catalogues"),
    ".contracts.fetch": ("check_fetch",),
    ".pairs": ("MemoryChannel", "channel_pair"),
    ".probe": ("probe_server",),
    ".scripted": ("ScriptedAnswers",),
    ".contracts.sources": ("check_source",),
    ".contracts.store": ("check_store",),
    ".contracts.task_runner": ("check_task_runner",),
    ".contracts.transport": ("check_client_transport",),
    ".contracts.vault": ("check_vault",),
    ".ways": ("EVERY_WAY", "WAYS", "Way", "connect", "way"),
}
__all__ = [
    "EVERY_WAY",
    "WAYS",
    "Catalogue",
    "CatalogueChange",
    "Clock",
    "Drift",
    "MemoryChannel",
    "ScriptedAnswers",
    "Way",
    "channel_pair",
    "check_catalogue",
    "check_change_bus",
    "check_channel",
    "check_client_transport",
    "check_fetch",
    "check_source",
    "check_store",
    "check_task_runner",
    "check_vault",
    "compare_catalogues",
    "connect",
    "probe_server",
    "read_catalogue",
    "take_catalogue",
    "way",
]


__getattr__, __dir__ = lazily(__name__, _ROOMS)

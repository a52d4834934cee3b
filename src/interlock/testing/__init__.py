"""What a test of a server or a client needs: clients in memory, tapes, scripted answers, a clock, snapshots, contract checks.

The pytest plugin that comes with the package gives the most of it as fixtures (see `interlock.testing.plugin`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazily import lazily

if TYPE_CHECKING:
    from .blanks import Blanks
    from .bus_contract import check_change_bus
    from .catalogue import check_catalogue, take_catalogue
    from .channel_contract import check_channel
    from .clock import Clock
    from .drift import Drift
    from .fetch_contract import check_fetch
    from .pairs import MemoryChannel, channel_pair
    from .playback import Playback, replay_to_client, replay_to_server
    from .probe import probe_server
    from .scripted import ScriptedAnswers
    from .store_contract import check_store
    from .tape import Line, Tape, Taped
    from .transport_contract import check_client_transport
    from .vault_contract import check_vault
    from .ways import EVERY_WAY, WAYS, Way, connect, way

# Loaded at first use: the pytest plugin stands below this module and must stay light.
_ROOMS = {
    ".blanks": ("Blanks",),
    ".bus_contract": ("check_change_bus",),
    ".catalogue": ("check_catalogue", "take_catalogue"),
    ".channel_contract": ("check_channel",),
    ".clock": ("Clock",),
    ".drift": ("Drift",),
    ".fetch_contract": ("check_fetch",),
    ".pairs": ("MemoryChannel", "channel_pair"),
    ".playback": ("Playback", "replay_to_client", "replay_to_server"),
    ".probe": ("probe_server",),
    ".scripted": ("ScriptedAnswers",),
    ".store_contract": ("check_store",),
    ".tape": ("Line", "Tape", "Taped"),
    ".transport_contract": ("check_client_transport",),
    ".vault_contract": ("check_vault",),
    ".ways": ("EVERY_WAY", "WAYS", "Way", "connect", "way"),
}
__all__ = [
    "EVERY_WAY",
    "WAYS",
    "Blanks",
    "Clock",
    "Drift",
    "Line",
    "MemoryChannel",
    "Playback",
    "ScriptedAnswers",
    "Tape",
    "Taped",
    "Way",
    "channel_pair",
    "check_catalogue",
    "check_change_bus",
    "check_channel",
    "check_client_transport",
    "check_fetch",
    "check_store",
    "check_vault",
    "connect",
    "probe_server",
    "replay_to_client",
    "replay_to_server",
    "take_catalogue",
    "way",
]


__getattr__, __dir__ = lazily(__name__, _ROOMS)

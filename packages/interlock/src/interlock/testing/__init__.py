"""Tools for tests of servers and clients: clients in memory, tapes, scripted answers, a clock,
snapshots, contract checks.

The pytest plugin in this package provides most of them as fixtures (see
`interlock.testing.plugin`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazily

if TYPE_CHECKING:
    from .blanks import Blanks
    from .catalogue import check_catalogue, take_catalogue
    from .clock import Clock
    from .contracts.bus import check_change_bus
    from .contracts.channel import check_channel
    from .contracts.fetch import check_fetch
    from .contracts.store import check_store
    from .contracts.transport import check_client_transport
    from .contracts.vault import check_vault
    from .drift import Drift
    from .pairs import MemoryChannel, channel_pair
    from .playback import Playback, replay_to_client, replay_to_server
    from .probe import probe_server
    from .scripted import ScriptedAnswers
    from .tape import Line, Tape, Taped
    from .ways import EVERY_WAY, WAYS, Way, connect, way

# Imported at first use: the pytest plugin is in this package and must load fast.
_ROOMS = {
    ".blanks": ("Blanks",),
    ".contracts.bus": ("check_change_bus",),
    ".catalogue": ("check_catalogue", "take_catalogue"),
    ".contracts.channel": ("check_channel",),
    ".clock": ("Clock",),
    ".drift": ("Drift",),
    ".contracts.fetch": ("check_fetch",),
    ".pairs": ("MemoryChannel", "channel_pair"),
    ".playback": ("Playback", "replay_to_client", "replay_to_server"),
    ".probe": ("probe_server",),
    ".scripted": ("ScriptedAnswers",),
    ".contracts.store": ("check_store",),
    ".tape": ("Line", "Tape", "Taped"),
    ".contracts.transport": ("check_client_transport",),
    ".contracts.vault": ("check_vault",),
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

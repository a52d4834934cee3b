"""The log of the host: what happened, in order, kept for good, and found again."""

from __future__ import annotations

from .anchors import Anchor, read_anchors
from .bodies import BodyLimits
from .export import read_export
from .memory import MemoryLog
from .replay import Replay
from .seam import Log, LogError, SessionRow, Tampered
from .sqlite import SqliteLog

__all__ = [
    "Anchor",
    "BodyLimits",
    "Log",
    "LogError",
    "MemoryLog",
    "Replay",
    "SessionRow",
    "SqliteLog",
    "Tampered",
    "read_anchors",
    "read_export",
]

"""The log of a host: an append-only audit log that can be searched and verified."""

from __future__ import annotations

from .anchors import Anchor, read_anchors
from .export import read_export
from .interface import Log, LogError, SessionRow, Tampered
from .large_bodies import BodyLimits
from .memory import MemoryLog
from .sqlite import SqliteLog

__all__ = [
    "Anchor",
    "BodyLimits",
    "Log",
    "LogError",
    "MemoryLog",
    "SessionRow",
    "SqliteLog",
    "Tampered",
    "read_anchors",
    "read_export",
]

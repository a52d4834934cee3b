"""What the features of the matrix's server share: its state, and a little data."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum

from interlock import Server

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(20)
NOTES = {"one": "Buy milk", "two": "Call Ada"}


@dataclass
class State:
    """What the lifespan gives: whether the server is live, and what its tools have noted."""

    live: bool = True
    noted: dict[str, int] = field(default_factory=dict)
    ended: dict[str, asyncio.Event] = field(default_factory=dict)
    threads: dict[str, threading.Event] = field(default_factory=dict)

    def note(self, what: str) -> int:
        """Count that something happened."""
        self.noted[what] = self.noted.get(what, 0) + 1
        return self.noted[what]

    def end(self, name: str) -> asyncio.Event:
        """What is set once the call of this name has ended."""
        return self.ended.setdefault(name, asyncio.Event())


@asynccontextmanager
async def lifespan(server: Server) -> AsyncIterator[State]:
    """The state, live for as long as the server runs."""
    state = State()
    yield state
    state.live = False


class Colour(Enum):
    """Some colours."""

    RED = "red"
    BLUE = "blue"

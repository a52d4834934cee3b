"""The interface of the chat for its slash commands."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from ...fleet.events import TurnEnded
from ...host.app import Host
from ...host.attachments import AttachedFile
from ...host.session import Session
from .event_printer import EventPrinter
from .focus import TerminalFocus
from .output import TerminalOutput
from .results import MediaFiles


class ChatActions(Protocol):
    """The conversation that the commands act on."""

    host: Host
    front: TerminalFocus
    terminal: TerminalOutput
    feed: EventPrinter
    media: MediaFiles
    session: Session
    files: list[AttachedFile]

    def begin(self, session: Session) -> None:
        """Switch to another conversation."""
        ...

    async def read(self, words: str) -> None:
        """Print a resource."""
        ...

    async def turn(self, turn: Awaitable[TurnEnded]) -> None:
        """Run a turn, and print it."""
        ...

    def write(self, text: str) -> None:
        """Put a text into the next input line."""
        ...

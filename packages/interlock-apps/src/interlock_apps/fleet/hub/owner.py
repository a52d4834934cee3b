"""The interface between a hub and the program that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from interlock import Answers
from interlock.configs import Entry
from interlock.types import Prompt, Tool

from ..events import Event

State = Literal["waiting", "starting", "up", "down", "off", "refused", "login"]


class OfferedFeatures(Struct, frozen=True, kw_only=True):
    """What a server offers at one moment.

    Attributes:
        entry: The server's configuration.
        state: The server's state. In any state but "up" the lists are empty.
        tools: Its tools, in its order.
        prompts: Its prompts, in its order.
        instructions: Its hint on how to use it. Untrusted.
    """

    entry: Entry
    state: State
    tools: Sequence[Tool] = ()
    prompts: Sequence[Prompt] = ()
    instructions: str | None = None

    @property
    def server(self) -> str:
        """The server's id."""
        return self.entry.id


class HubOwner(Protocol):
    """The program that runs a hub: it answers servers, allows starts, and receives events."""

    def answers(self, entry: Entry) -> Answers:
        """Return the answers to the questions of a server that is about to start."""
        ...

    def publish(self, event: Event) -> None:
        """Receive a ServerState, ServerLogLine, ResourceUpdated or Notice."""
        ...

    def features_changed(self, features: OfferedFeatures) -> None:
        """Receive the features of a server after a fetch, a change, or the loss of the server."""
        ...

    def may_start(self, entry: Entry) -> bool:
        """Return whether a server may be started, or reached, without a question."""
        ...

    async def admit(self, entry: Entry) -> bool:
        """Ask whether a server may be started, or reached, and return the answer."""
        ...

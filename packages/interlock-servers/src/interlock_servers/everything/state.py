"""State, limits and tool annotations of the everything server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta, Struct

from interlock import Context, Server, ToolAnnotations
from interlock.types import JSONObject

PREFIX = "INTERLOCK_EVERYTHING_"
COUNTER = "everything://counter"  # changes with each call of `tick`
CLOCK = "everything://clock"  # changes by itself after a call of `start_clock`
PAGE = "https://example.com/sign-in"

PURE = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
ASKS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True
)
CHANGES = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
REMOVES = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
)

MADE_BY: JSONObject = {"example.com/made-by": "everything"}
"""A key of `_meta` with a custom prefix, which clients keep and pass on."""


class EverythingLimits(Struct, frozen=True):
    """The limits of the server.

    `INTERLOCK_EVERYTHING_SECONDS` sets `seconds`, and so on.
    """

    seconds: Annotated[float, Meta(gt=0, le=1_000_000)] = 60.0  # for which a call waits or works
    extras: int = 20  # features added at run time
    rounds: int = 5  # requests to a model that uses tools
    visits: int = 100  # remembered visits to pages
    page_size: int = 1000  # items of a list on one page


@dataclass
class ServerState:
    """The lifespan state that each call receives."""

    limits: EverythingLimits = field(default_factory=EverythingLimits)
    count: int = 0
    charged: int = 0
    cancelled: int = 0
    clock: int = 0
    extras: list[int] = field(default_factory=list)  # the numbers of the features added at run time
    visits: dict[str, tuple[str, bool]] = field(
        default_factory=dict
    )  # visits by the id of the question: whose, and whether finished
    ticking: asyncio.Task[None] | None = None


Ctx = Context[ServerState]


def clear(server: Server, state: ServerState) -> None:
    """Remove what was added at run time, so that the next user starts with an unchanged server."""
    for number in state.extras:
        server.remove_tool(f"extra_{number}")
        server.remove_prompt(f"extra_{number}")
        server.remove_resource(f"everything://extras/{number}")
    state.extras.clear()

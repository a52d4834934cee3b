"""Everything server: each feature of each revision, to look at and to test clients with.

`interlock serve everything` runs it. INTERLOCK_EVERYTHING_SECONDS, _EXTRAS, _ROUNDS, _VISITS and
_PAGE_SIZE set its limits. The table in docs/servers/everything.md says which tool, resource or
prompt shows which feature.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from interlock import Server, ServerInfo, settings_of

from . import dice
from .content import ICONS, add_giving
from .dynamic_features import add_growing
from .elicitation import add_asking
from .errors import add_failing
from .extension import ECHO, echo_extension
from .input_schemas import add_taking
from .output_schemas import add_outputs
from .progress import add_telling
from .prompts import add_prompting
from .resources import add_storing
from .sampling import add_sampling
from .sampling_with_tools import add_answering
from .state import CLOCK, COUNTER, PREFIX, EverythingLimits, ServerState, clear
from .tasks import add_tasks, tasks_extension
from .url_elicitation import add_visiting

__all__ = [
    "CLOCK",
    "COUNTER",
    "ECHO",
    "ServerState",
    "EverythingLimits",
    "everything_server",
    "server",
    "server_of",
]


def everything_server(limits: EverythingLimits | None = None) -> Server:
    """Return a new server; its limits default to those of the environment."""

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[ServerState]:
        state = ServerState(limits or settings_of(EverythingLimits, PREFIX))
        server.page_size = state.limits.page_size
        try:
            yield state
        finally:
            if state.ticking is not None:
                state.ticking.cancel()
                await asyncio.gather(state.ticking, return_exceptions=True)
            clear(server, state)

    made = Server(
        "everything",
        "1.0.0",
        info=ServerInfo(
            title="Everything",
            description="Shows each feature of the protocol once.",
            website_url="https://example.com/everything",
            icons=ICONS,
        ),
        instructions=("A server to try clients with. It has no effect outside of itself."),
        lifespan=lifespan,
        extensions=[echo_extension(), tasks_extension()],
    )
    add_giving(made)
    add_outputs(made)
    add_taking(made)
    add_failing(made)
    dice.offer(made)  # a tool with an app
    add_telling(made)
    add_asking(made)
    add_answering(made)
    add_visiting(made)
    add_sampling(made)
    add_storing(made)
    add_growing(made)
    add_prompting(made)
    add_tasks(made)
    return made


def server_of(*arguments: str) -> Server:
    """Return the server for the command line.

    Raises ValueError for any argument, and for invalid limits.
    """
    if arguments:
        raise ValueError("everything takes no arguments.")
    return everything_server(settings_of(EverythingLimits, PREFIX))


server = everything_server()
"""The server with the limits of the environment."""

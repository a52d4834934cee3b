"""URL elicitation: the user is sent to a page, and the tool waits or fails until they are done.

No page exists: the address is a placeholder, and a tool plays the part of the page.
"""

from __future__ import annotations

import os
from typing import Annotated

from interlock import McpError, Server, ToolError, types

from .state import ASKS, CHANGES, PAGE, Ctx

WORDS = "Please sign in on this page."
WITH_IDS = "2025-11-25"
"""The only revision in which the question has an id, and its end a notification (`ELI-18`,
`ELI-19`).
"""


async def sign_in(ctx: Ctx) -> str:
    """Send the user to a page, as for signing in."""
    await ctx.elicit_url(WORDS, PAGE)
    return "The user visited the page."


async def visit_page(ctx: Ctx) -> str:
    """Send the user to a page, wait until they are done there, and tell the client so: in
    2025-11-25 by a notification.
    """
    id = await ctx.once("id", new_id)
    await ctx.elicit_url("Please have a look at this page.", f"{PAGE}?visit", elicitation_id=id)
    ctx.elicitation_complete(id)  # with a real page, the page knows when it is finished
    return "The user has visited the page."


async def open_account(ctx: Ctx) -> str:
    """Do what can be done only after a visit to a page.

    In 2025-11-25 the call fails with an error that names the page; once `finish_visit` was called
    it works. In 2026-07-28 the question is asked in a round of the call, as any other.
    """
    if not ctx.caller.supports("elicitation_ids"):
        await ctx.elicit_url(WORDS, PAGE)
        return "The account is open."
    asked = ctx.caller.capabilities.elicitation
    if asked is None or asked.url is None:
        raise ToolError("This needs a client that supports URL elicitation, and this one does not.")
    for id, visit in ctx.lifespan_state.visits.items():
        if visit == (who(ctx), True):
            del ctx.lifespan_state.visits[id]
            return "The account is open."
    id = begin(ctx)
    question = {"mode": "url", "message": WORDS, "url": PAGE, "elicitationId": id}
    raise McpError(
        types.URL_ELICITATION_REQUIRED,
        "Somebody has to sign in first.",
        {"elicitations": [question]},
    )


async def finish_visit(
    id: Annotated[str, "The elicitationId of the error that open_account gave."], ctx: Ctx
) -> str:
    """Play the page that open_account sends to: the user is done there, and the client is
    told.
    """
    if ctx.lifespan_state.visits.get(id, ("", False))[0] != who(ctx):
        raise ToolError("There is no elicitation with this id. Call open_account first.")
    ctx.lifespan_state.visits[id] = (who(ctx), True)
    ctx.elicitation_complete(id)
    return "The user has visited the page."


def new_id() -> str:
    """An unguessable id, which proves that its bearer was asked."""
    return os.urandom(12).hex()


def who(ctx: Ctx) -> str:
    """Who is asked: nobody else can use the visit (`ELI-29`, `ELI-30`)."""
    principal = ctx.principal
    return f"{principal.key if principal is not None else ''} {ctx.caller.session or ''}"


def begin(ctx: Ctx) -> str:
    """Record a visit, and drop the oldest if there are too many."""
    state = ctx.lifespan_state
    while len(state.visits) >= state.limits.visits:
        del state.visits[next(iter(state.visits))]
    id = new_id()
    state.visits[id] = (who(ctx), False)
    return id


def add_visiting(server: Server) -> None:
    """Give a server the tools of this file."""
    server.tool(title="Sign in", annotations=ASKS)(sign_in)
    server.tool(title="Visit a page", annotations=ASKS)(visit_page)
    server.tool(title="Open an account", annotations=CHANGES)(open_account)
    server.tool(title="End a visit", annotations=CHANGES)(finish_visit)

"""Sequential thinking server: chains of thoughts with revisions and branches.

`interlock serve thinking` runs it. Chains are in memory and are lost when the process ends.
INTERLOCK_THINKING_STORE names another vault, such as sqlite:thoughts.db, which several workers can
share. INTERLOCK_THINKING_THOUGHT and similar variables set the limits.
"""

# ruff: noqa: N803 - the arguments of sequentialthinking have the names by which callers know them

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw

from interlock import (
    AnyResult,
    Context,
    Exchange,
    Handler,
    Server,
    ServerInfo,
    ToolAnnotations,
    ToolError,
    ToolResult,
    settings_of,
)
from interlock.store import MemoryVault, StoreError, Vault, open_vault

from .chains import (
    HERE,
    MAIN,
    PREFIX,
    ChainStore,
    ThinkingLimits,
    Thought,
    owner_of,
    unknown,
    words_of,
)
from .results import (
    ChainList,
    ChainReview,
    ChainSummary,
    DeleteResult,
    ThoughtResult,
    drawing,
    outline,
    short,
)

CHAIN = "thinking://chains/{chain}"
Number = Annotated[int, Meta(ge=1, le=1_000_000)]
Branch = Annotated[str, Meta(max_length=60)]
ChainId = Annotated[str, Meta(min_length=1, max_length=100)]


# -- the tools -------------------------------------------------------------------------------------


async def sequentialthinking(
    thought: Annotated[str, Meta(min_length=1)],
    nextThoughtNeeded: bool,
    thoughtNumber: Number,
    totalThoughts: Number,
    ctx: Context[ChainStore],
    isRevision: bool | None = None,
    revisesThought: Number | None = None,
    branchFromThought: Number | None = None,
    branchId: Branch | None = None,
    needsMoreThoughts: bool | None = None,
    chain: ChainId | None = None,
) -> ToolResult[ThoughtResult]:
    """Think a problem through step by step: one thought in each call, which may revise an earlier
    one or branch off from it.

    Good for what has to be broken down, planned, or may turn out otherwise than it looks. Begin
    with thought 1 and a guess of how many it takes; the guess may change at any time. Doubt, revise
    and try other ways freely. Come to a hypothesis, check it against the thoughts before it, and
    end with nextThoughtNeeded false only when the answer holds.

    Args:
        thought: this step: a finding, a question, a doubt, a hypothesis or its check.
        nextThoughtNeeded: whether another one follows.
        thoughtNumber: its number, which rises along a line.
        totalThoughts: how many it will take, as it looks now.
        isRevision: whether it corrects an earlier one.
        revisesThought: the number of the one that it corrects.
        branchFromThought: for a new branch, after which thought it begins.
        branchId: the branch that it belongs to; without it the main line.
        needsMoreThoughts: whether more are needed than it looked like.
        chain: which chain it belongs to, as the answer to its first thought named it; thought 1
            without it begins a new one.
    """
    chains = ctx.lifespan_state
    if (size := len(thought.encode())) > chains.limits.thought:
        raise ToolError(
            f"This thought has {size} bytes, and {chains.limits.thought} is the limit. "
            "Split it into several thoughts."
        )
    if isRevision and revisesThought is None:
        raise ToolError("A revision needs revisesThought, the thought that it corrects.")
    if branchFromThought is not None and not branchId and thoughtNumber > branchFromThought:
        raise ToolError("A branch needs a name: pass branchId.")
    kept = Thought(
        thought,
        thoughtNumber,
        max(totalThoughts, thoughtNumber),
        nextThoughtNeeded,
        branchId or MAIN,
        None if isRevision is False else revisesThought,
        bool(needsMoreThoughts),
    )
    if chain is None and thoughtNumber > 1:
        chain = await _latest(ctx)
    with _kept():
        found = await chains.think(chain, ctx.caller, kept, branchFromThought if branchId else None)
    ctx.updated(CHAIN.format(chain=found.id))
    seen = found.along(kept.branch)
    revised = sorted(
        number for line, number in found.revised() if number in seen and seen[number].branch == line
    )
    taken = ThoughtResult(
        kept.thought_number,
        kept.total_thoughts,
        kept.next_thought_needed,
        list(found.forks),
        len(found.thoughts),
        found.id,
        kept.branch,
        revised,
    )
    more = (
        f"Send chain {found.id} with the next thought."
        if kept.next_thought_needed
        else f"The chain {found.id} is finished."
    )
    return ToolResult(
        taken,
        f"Thought {kept.thought_number} of {kept.total_thoughts} is on {words_of(kept.branch)}. "
        f"{more}",
    )


async def _latest(ctx: Context[ChainStore]) -> str:
    """The chain that a call without a name means: the last one, if there is only one conversation.

    Raises ToolError.
    """
    owner = owner_of(ctx.caller)
    # A principal may have several conversations at once, and anonymous callers cannot be told
    # apart.
    with _kept():
        ids = (
            await ctx.lifespan_state.ids(owner)
            if owner == HERE or owner.startswith("session ")
            else []
        )
    if not ids:
        raise ToolError(
            "Which chain does this thought belong to? Name it with `chain`, or send "
            "thoughtNumber 1 to start a new one."
        )
    return ids[-1]


async def list_chains(ctx: Context[ChainStore]) -> ToolResult[ChainList]:
    """Your chains of thoughts, the one used last first."""
    with _kept():
        found = await ctx.lifespan_state.chains(ctx.caller)
    listed = [
        ChainSummary(
            one.id, short(one.thoughts[0].thought), len(one.thoughts), list(one.forks), one.finished
        )
        for one in found
    ]
    lines = [
        f"{one.chain}: {one.begins} ({one.thoughts} thoughts{', finished' if one.finished else ''})"
        for one in listed
    ]
    return ToolResult(
        ChainList(listed),
        "\n".join(lines) or "No chains. A chain of an anonymous caller can be read by its id only.",
    )


async def review_chain(
    chain: ChainId, ctx: Context[ChainStore], form: Literal["outline", "mermaid"] = "outline"
) -> ToolResult[ChainReview]:
    """Look back at a whole chain, with its revisions and branches.

    Args:
        chain: its id.
        form: an outline in Markdown, or a flowchart for Mermaid.
    """
    with _kept():
        found = await ctx.lifespan_state.find(chain, ctx.caller)
    if found is None:
        raise unknown(chain)
    text = outline(found) if form == "outline" else drawing(found)
    return ToolResult(
        ChainReview(found.id, found.finished, list(found.forks), found.thoughts), text
    )


async def forget_chain(chain: ChainId, ctx: Context[ChainStore]) -> ToolResult[DeleteResult]:
    """Forget a chain for good.

    Args:
        chain: its id.
    """
    with _kept():
        done = await ctx.lifespan_state.forget(chain, ctx.caller)
    if done:
        ctx.updated(CHAIN.format(chain=chain))
    return ToolResult(
        DeleteResult(chain, done), "The chain is deleted." if done else "There is no such chain."
    )


@contextmanager
def _kept() -> Iterator[None]:
    try:
        yield
    except StoreError as bad:
        raise ToolError(f"Thoughts cannot be stored now: {bad}") from None


# -- the server ------------------------------------------------------------------------------------


def thinking_server(
    store: Vault | str | None = None, limits: ThinkingLimits | None = None
) -> Server:
    """Return a thinking server.

    `store` is the vault for chains, or its URL; by default memory, until the last client
    disconnects. A vault object is not closed.
    """
    bounds = limits or ThinkingLimits()

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[ChainStore]:
        if isinstance(store, str):
            vault = open_vault(store)
            try:
                yield ChainStore(vault, bounds)
            finally:
                await vault.aclose()
        else:
            yield ChainStore(
                store if store is not None else MemoryVault(most_bytes=bounds.total), bounds
            )

    made = Server(
        "thinking",
        "1.0.0",
        info=ServerInfo(
            title="Thinking", description="Think in steps, with revisions and branches."
        ),
        instructions=(
            "The first thought starts a chain and returns its id. Send it as `chain` "
            "with every further thought."
        ),
        lifespan=lifespan,
        middleware=[unquoted],
    )
    adds = ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    )
    reads = ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    loses = ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    )
    made.add_tool(sequentialthinking, title="Think a step", annotations=adds)
    made.add_tool(list_chains, title="List chains of thoughts", annotations=reads)
    made.add_tool(review_chain, title="Review a chain of thoughts", annotations=reads)
    made.add_tool(forget_chain, title="Forget a chain of thoughts", annotations=loses)
    _add_reading(made)
    return made


def _add_reading(made: Server) -> None:
    """Add the chains as resources, their completion, and the prompt."""

    @made.resource(
        CHAIN,
        name="chain",
        title="A chain of thoughts",
        mime_type="text/markdown",
        ttl_ms=0,
        cache_scope="private",
    )
    async def read(chain: str, ctx: Context[ChainStore]) -> str | None:
        """All thoughts of a chain, line by line."""
        found = await ctx.lifespan_state.find(chain, ctx.caller)
        return None if found is None else outline(found)

    @made.completion(CHAIN, "chain")
    async def complete(value: str, ctx: Context[ChainStore]) -> list[str]:
        ids = await ctx.lifespan_state.ids(owner_of(ctx.caller))
        return [id for id in reversed(ids) if id.startswith(value)]

    @made.prompt(title="Think it through")
    def think_through(problem: str, thoughts: Annotated[int, Meta(ge=1, le=100)] = 5) -> str:
        """Think about a problem step by step before answering.

        Args:
            problem: what to think about.
            thoughts: about how many steps it may take.
        """
        return (
            "Think this through with the tool sequentialthinking before you answer, in "
            f"about {thoughts} thoughts, and send the `chain` of the first answer with "
            "every further thought. Revise what turns out wrong, branch where two ways "
            f"look good, check the result, and only then answer.\n\n{problem}"
        )


def unquoted(handler: Handler) -> Handler:
    """Accept numbers and booleans that a model sent as strings: the meaning is clear."""

    async def handle(x: Exchange) -> AnyResult:
        if x.method == "tools/call" and x.params.name == "sequentialthinking":
            try:
                given = msgspec.json.decode(x.params.arguments)
                plain = {name: _plain(name, value) for name, value in given.items()}
            except (msgspec.DecodeError, AttributeError, UnicodeDecodeError):
                return await handler(x)  # it reports the error
            if plain != given:
                x.params = msgspec.structs.replace(
                    x.params, arguments=Raw(msgspec.json.encode(plain))
                )
        return await handler(x)

    return handle


def _plain(name: str, value: Any) -> Any:
    if not isinstance(value, str) or name in ("thought", "branchId", "chain"):
        return value
    if value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return {"true": True, "false": False}.get(value.lower(), value)


def server_of(*arguments: str) -> Server:
    """Return the server for the command line and the environment.

    Raises ValueError for any argument, an invalid store, and an invalid limit.
    """
    if arguments:
        raise ValueError(
            f"This server takes no arguments; {PREFIX}STORE and its like configure it."
        )
    url = os.environ.get(f"{PREFIX}STORE") or None
    try:
        if url is not None:
            open_vault(url)  # creates nothing, but checks the URL
    except (StoreError, ValueError) as bad:
        raise ValueError(f"{PREFIX}STORE: {bad}") from None
    return thinking_server(url, settings_of(ThinkingLimits, PREFIX))


server = thinking_server()
"""With thoughts in memory."""

if __name__ == "__main__":
    server_of(*sys.argv[1:]).run()

"""The interface of a source: lists of features, and a handler of the requests that name one.

A `Server` and a `Client` become sources by `as_source()`. A source of your own implements `Source`;
`interlock.testing.check_source` checks it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct

from . import types as t
from .exchange import AnyResult, Caller, Exchange
from .skills.entries import SkillEntry


class ToolTasks(NamedTuple):
    """Whether calls of a tool may be or must be tasks, as the author of the tool set it.

    Attributes:
        mode: Whether calls are tasks.
        after: The seconds after which a call becomes a task; None for at once.
    """

    mode: Literal["never", "optional", "required"]
    after: float | None = None


class Offered(Struct, frozen=True, kw_only=True):
    """The lists of a source, whole.

    Attributes:
        tools: The tools.
        resources: The resources.
        templates: The resource templates.
        prompts: The prompts.
        skills: The entries of the skills.
        completions: Whether the source completes arguments.
        instructions: What a model should know about the features together.
        scopes: The scopes that a caller needs for a feature, by its kind ("tool", "resource",
            "template", "prompt" or "skill") and its name, URI or URI template.
        tasks: Which tools can be tasks, by name.
        never_ask: Features whose requests never ask questions, as (kind, name); their requests cost
            less.
        visible: Two functions that decide which callers see which features, as for
            `Server.visible`; None if all callers see all.
    """

    tools: Sequence[t.Tool] = ()
    resources: Sequence[t.Resource] = ()
    templates: Sequence[t.ResourceTemplate] = ()
    prompts: Sequence[t.Prompt] = ()
    skills: Sequence[SkillEntry] = ()
    completions: bool = False
    instructions: str | None = None
    scopes: Mapping[tuple[str, str], frozenset[str]] = {}
    tasks: Mapping[str, ToolTasks] = {}
    never_ask: Collection[tuple[str, str]] = ()
    visible: tuple[Callable[[Caller], Any], Callable[[Any, Any], bool]] | None = None


class Source(Protocol):
    """Offers features, which `Server.mount` makes features of a server.

    All methods are called in the event loop of the server, except that `offered` and `listen` are
    also used before there is one.
    """

    @property
    def name(self) -> str:
        """Identifies the source in error messages and logs."""
        ...

    @property
    def offered(self) -> Offered | None:
        """The lists as they are now; None if they are not known yet. Reading it is cheap."""
        ...

    async def open(self) -> None:
        """Start the source, and read its lists. Called before the server handles its first request.

        A source that cannot be reached returns, keeps trying, and announces its lists when it has
        them. Whatever this method raises stops the server from starting.
        """
        ...

    async def aclose(self) -> None:
        """Stop the source. It may be opened again later."""
        ...

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """Call `changed` whenever `offered` has changed, until the returned function is called.

        `changed` reads `offered` at once. It is called in the event loop of the server or, before
        that loop runs, in any thread.
        """
        ...

    def handle(self, x: Exchange, /) -> Awaitable[AnyResult]:
        """Handle a request that names a feature, under the name that the source gave it.

        The methods are `tools/call`, `prompts/get`, `resources/read`, `completion/complete`,
        `subscriptions/listen` for resources, `skills/get` and `resources/directory/read`. Questions
        (`x.asker`), progress and log messages (`x.notify`) go to the caller of the server.
        `x.caller` is that caller; never pass its credentials on. A subscription notifies of
        `notifications/subscriptions/acknowledged` first, with the URIs that it serves.

        Raises:
            McpError: The answer is an error; METHOD_NOT_FOUND for a method that the source does not
                have.
            Unreachable, ProtocolError: The source is behind a connection that fails.
        """
        ...


class MakesSource(Protocol):
    """Something that has a source: `Server` and `Client`."""

    def as_source(self) -> Source:
        """Return a new source."""
        ...


def is_source(given: Any) -> bool:
    """Whether an object has the members of a Source."""
    return all(hasattr(given, name) for name in ("offered", "handle", "listen", "open", "aclose"))

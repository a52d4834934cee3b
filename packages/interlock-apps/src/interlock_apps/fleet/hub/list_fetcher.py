"""Fetching the lists of a server: each separately, and again when the server announces a change."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from msgspec import Struct

from interlock import (
    AnyResult,
    Client,
    Exchange,
    Handler,
    McpError,
    Middleware,
    ProtocolError,
    Skill,
)
from interlock.redaction import Redactor
from interlock.skills import EXTENSION
from interlock.types import (
    METHOD_NOT_FOUND,
    ListChangedNotificationParams,
    Prompt,
    Resource,
    ResourceTemplate,
    ServerCapabilities,
    Tool,
)

from ..nesting import too_deep
from .limits import HubLimits
from .timeouts import Sleep, Throttle, within

_MOST_WORDS = 600  # characters of the reason for a failure


class _ListKind(Struct, frozen=True):
    """A kind of list: its capability, its name in words, its method, and its change notice."""

    capability: str
    words: str
    method: str
    field: str
    notice: str
    fetch: Callable[[Client], Any]
    extension: str = ""  # the extension that it belongs to


KINDS: Final = {
    "tools": _ListKind(
        "tools",
        "tools",
        "tools/list",
        "tools",
        "notifications/tools/list_changed",
        lambda client: client.list_tools(timeout=None),
    ),
    "prompts": _ListKind(
        "prompts",
        "prompts",
        "prompts/list",
        "prompts",
        "notifications/prompts/list_changed",
        lambda client: client.list_prompts(timeout=None),
    ),
    "resources": _ListKind(
        "resources",
        "resources",
        "resources/list",
        "resources",
        "notifications/resources/list_changed",
        lambda client: client.list_resources(timeout=None),
    ),
    "templates": _ListKind(
        "resources",
        "resource templates",
        "resources/templates/list",
        "resource_templates",
        "notifications/resources/list_changed",
        lambda client: client.list_resource_templates(timeout=None),
    ),
    "skills": _ListKind(
        "resources",
        "skills",
        "skills/list",
        "skills",
        "notifications/resources/list_changed",
        lambda client: client.list_skills(),
        extension=EXTENSION,
    ),
}
"""By the name of the list. `resources`, `templates` and `skills` change together."""


def bounded(most: int) -> Middleware:
    """Return middleware that raises ProtocolError for a list of more than `most` items."""
    fields = {kind.method: kind.field for kind in KINDS.values()}

    def layer(handler: Handler) -> Handler:
        counted: dict[str, int] = {}

        async def handle(x: Exchange) -> AnyResult:
            result = await handler(x)
            field = fields.get(x.method)
            if field is not None:
                before = 0 if x.params.cursor is None else counted.get(x.method, 0)
                counted[x.method] = before + len(getattr(result, field, ()))
                if counted[x.method] > most:
                    raise ProtocolError(f"It is longer than {most:,} items.")
            return result

        return handle

    return layer


class FeatureLists(Struct):
    """The lists of one server, as last fetched."""

    tools: list[Tool] = []
    prompts: list[Prompt] = []
    resources: list[Resource] = []
    templates: list[ResourceTemplate] = []
    skills: list[Skill] = []


class ListListener(Protocol):
    """Receives the outcome of fetching lists."""

    def lists_changed(self) -> None:
        """A list has changed."""
        ...

    def failed(self, words: str) -> None:
        """A list could not be fetched, or has an item that cannot be used."""
        ...


class ListFetcher:
    """Fetches the lists of one client, and again when the server announces a change."""

    def __init__(
        self,
        client: Client,
        listener: ListListener,
        redactor: Redactor,
        limits: HubLimits,
        sleep: Sleep,
    ) -> None:
        self.lists = FeatureLists()
        self._client = client
        self._listener = listener
        self._redactor = redactor
        self._seconds = limits.lists
        self._sleep = sleep
        self._throttles = {
            name: Throttle(functools.partial(self._refetch, name), limits.refresh, sleep)
            for name in KINDS
        }

    async def fetch(self) -> None:
        """Fetch all lists that the server declares, at the same time.

        A list that fails, or takes too long, does not affect the others.
        """
        await asyncio.gather(*(self._fetch(name) for name in self._offered()))

    def outdated(self, names: Iterable[str]) -> None:
        """Fetch the named lists again, soon but not too often: they may have changed."""
        for name in set(names) & self._offered():
            kind = KINDS[name]
            # A cached list must not be mistaken for the new one.
            self._client.invalidate(kind.notice, ListChangedNotificationParams())
            self._throttles[name].request()

    async def aclose(self) -> None:
        """Stop fetching."""
        await asyncio.gather(*(throttle.aclose() for throttle in self._throttles.values()))

    def _offered(self) -> set[str]:
        offers: ServerCapabilities = self._client.server_capabilities
        return {
            name
            for name, kind in KINDS.items()
            if getattr(offers, kind.capability) is not None
            and (not kind.extension or kind.extension in (offers.extensions or {}))
        }

    async def _refetch(self, name: str) -> None:
        before = getattr(self.lists, name)
        await self._fetch(name)
        if getattr(self.lists, name) != before:
            self._listener.lists_changed()

    async def _fetch(self, name: str) -> None:
        """Fetch one list. If that fails, the old list stays."""
        kind = KINDS[name]
        fetching = asyncio.ensure_future(kind.fetch(self._client))
        try:
            if not await within(fetching, self._seconds, self._sleep):
                self._listener.failed(
                    f"Its {kind.words} could not be listed within {self._seconds:g} seconds."
                )
                return
            setattr(self.lists, name, self._usable(kind, fetching.result()))
        except McpError as bad:
            # Many servers have resources and do not implement templates.
            if bad.code != METHOD_NOT_FOUND or name != "templates":
                self._fail(kind, bad)
        except Exception as bad:
            self._fail(kind, bad)
        finally:
            if not fetching.done():
                fetching.cancel()
                await asyncio.wait({fetching})

    def _usable(self, kind: _ListKind, items: list[Any]) -> list[Any]:
        """The list without items that are nested too deeply."""
        for refused in getattr(items, "refused", ()):
            self._listener.failed(f"One of its {kind.words} cannot be used: {refused}")
        kept = [item for item in items if not too_deep(getattr(item, "entry", item))]
        if len(kept) < len(items):
            self._listener.failed(
                f"{len(items) - len(kept)} of its {kind.words} are left out: they are "
                "nested too deeply."
            )
        return kept

    def _fail(self, kind: _ListKind, bad: Exception) -> None:
        why = self._redactor.beginning(str(bad) or type(bad).__name__, _MOST_WORDS)
        self._listener.failed(f"Its {kind.words} could not be listed: {why}")

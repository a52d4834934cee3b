"""What one server offers: its four lists, each fetched by itself, and fetched again when the server says that it has changed."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

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
from .timeouts import Sleep, Throttle, within

_MOST_WORDS = 600  # characters of why a list could not be had


class _ListKind(Struct, frozen=True):
    """A list: the capability that speaks for it, what it is called, how it is fetched and what tells that it has changed."""

    capability: str
    words: str
    method: str
    field: str
    notice: str
    fetch: Callable[[Client], Any]
    extension: str = ""  # whose list it is, where an extension speaks for it


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
    """No list may have more than `most` items: then ProtocolError, however many pages would follow."""
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


class FeatureLists:
    """The lists of one client. `changed` is called when one of them is another than before, `complain` where one cannot be had."""

    def __init__(
        self,
        client: Client,
        *,
        changed: Callable[[], None],
        complain: Callable[[str], None],
        redactor: Redactor,
        seconds: float,
        refresh: float,
        sleep: Sleep,
    ) -> None:
        self.tools: list[Tool] = []
        self.prompts: list[Prompt] = []
        self.resources: list[Resource] = []
        self.templates: list[ResourceTemplate] = []
        self.skills: list[Skill] = []
        self._client, self._changed, self._complain = client, changed, complain
        self._redactor = redactor
        self._seconds = seconds
        self._sleep = sleep
        self._calm = {
            name: Throttle(functools.partial(self._refetch, name), refresh, sleep) for name in KINDS
        }

    async def fetch(self) -> None:
        """Fetch all that the server says it has, at the same time. One that fails, or takes too long, leaves the others as they are."""
        await asyncio.gather(*(self._fetch(name) for name in self._offered()))

    def outdated(self, names: Iterable[str]) -> None:
        """These have changed, or may have: they are fetched again, soon and not too often."""
        for name in set(names) & self._offered():
            kind = KINDS[name]
            self._client.outdate(
                kind.notice, ListChangedNotificationParams()
            )  # what was kept of it is not to be taken for the new one
            self._calm[name].want()

    async def aclose(self) -> None:
        """Fetch nothing more."""
        await asyncio.gather(*(calm.aclose() for calm in self._calm.values()))

    def _offered(self) -> set[str]:
        offers: ServerCapabilities = self._client.server_capabilities
        return {
            name
            for name, kind in KINDS.items()
            if getattr(offers, kind.capability) is not None
            and (not kind.extension or kind.extension in (offers.extensions or {}))
        }

    async def _refetch(self, name: str) -> None:
        before = getattr(self, name)
        await self._fetch(name)
        if getattr(self, name) != before:
            self._changed()

    async def _fetch(self, name: str) -> None:
        """Fetch one list. Where it cannot be had it stays what it was."""
        kind = KINDS[name]
        fetching = asyncio.ensure_future(kind.fetch(self._client))
        try:
            if not await within(fetching, self._seconds, self._sleep):
                self._complain(
                    f"Its {kind.words} could not be listed: they were not all there within {self._seconds:g} seconds."
                )
                return
            setattr(self, name, self._bearable(kind, fetching.result()))
        except McpError as bad:
            if (
                bad.code != METHOD_NOT_FOUND or name != "templates"
            ):  # many servers have resources and know no templates
                self._fail(kind, bad)
        except Exception as bad:
            self._fail(kind, bad)
        finally:
            if not fetching.done():
                fetching.cancel()
                await asyncio.wait({fetching})

    def _bearable(self, kind: _ListKind, items: list[Any]) -> list[Any]:
        """The list without what is nested so deeply that nobody could go through it."""
        for refused in getattr(items, "refused", ()):
            self._complain(f"One of its {kind.words} cannot be used: {refused}")
        kept = [item for item in items if not too_deep(getattr(item, "entry", item))]
        if len(kept) < len(items):
            self._complain(
                f"{len(items) - len(kept)} of its {kind.words} are left out: they are nested too deeply."
            )
        return kept

    def _fail(self, kind: _ListKind, bad: Exception) -> None:
        why = self._redactor.beginning(str(bad) or type(bad).__name__, _MOST_WORDS)
        self._complain(f"Its {kind.words} could not be listed: {why}")

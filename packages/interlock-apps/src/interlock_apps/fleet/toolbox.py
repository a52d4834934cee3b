"""The toolbox: the tools of all servers under unique names, found by name or by words."""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import Struct

from interlock.types import Tool

from .naming import tool_name
from .text_index import TextIndex, fields_of

MOST_TOOLS = 10_000  # tools of one server
MOST_DESCRIPTION = 8_192  # bytes of a description for a model

_NAME = 120  # characters of a name in a message
_CUT = " [cut]"


class ServerTool(Struct, frozen=True, kw_only=True):
    """A tool of a server.

    `name` is its name for models. `blocked` says why it may not be used; empty if it may.
    """

    name: str
    server: str
    tool: Tool
    blocked: str = ""

    @property
    def for_model(self) -> bool:
        """Whether a model may see it (MCP Apps, `_meta.ui.visibility`; `APP-08`)."""
        return "model" in visibility_of(self.tool)

    @property
    def for_app(self) -> bool:
        """Whether an app of its server may call it."""
        return "app" in visibility_of(self.tool)

    @property
    def offered(self) -> Tool:
        """The tool as a model sees it: under this name, with a description of at most 8 KB."""
        return msgspec.structs.replace(
            self.tool, name=self.name, description=_cut(self.tool.description)
        )


class RefusedTool(Struct, frozen=True, kw_only=True):
    """A tool that was refused, and why.

    `tool` is empty if the refusal concerns the server's whole list.
    """

    server: str
    tool: str
    words: str


class UnknownTool(LookupError):
    """No tool has this name; the message suggests similar names (`near`)."""

    def __init__(self, words: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(words)
        self.near = near


class Toolbox:
    """The tools of all servers.

    The order is stable (`HST-06`): servers in the order of `arrange`, or of their first `put`;
    tools in the server's order. A removed server keeps its place. `servers` are ids in the order of
    the configuration.
    """

    def __init__(
        self, servers: Iterable[str] = (), *, naming: Callable[[str, str], str] = tool_name
    ) -> None:
        self._naming = naming
        self._places: list[str] = list(dict.fromkeys(servers))
        self._had: dict[str, list[ServerTool]] = {}  # of each server, with collisions
        self._own: dict[
            str, tuple[RefusedTool, ...]
        ] = {}  # refusals that concern the server's own list
        self._named: dict[
            str, list[ServerTool]
        ] = {}  # all tools by name; a name with more than one is refused
        self._items: tuple[ServerTool, ...] | None = ()
        self._index: TextIndex[tuple[str, str]] = TextIndex()
        self._indexed: dict[tuple[str, str], Tool] = {}
        self._stale: set[str] = set()  # servers whose changes are not yet indexed
        self.version = 0

    # -- what comes and goes -----------------------------------------------------------------------

    def put(
        self,
        server: str,
        tools: Sequence[Tool],
        *,
        tools_globs: Sequence[str] | None = None,
        without: Sequence[str] = (),
        blocked: Mapping[str, str] = {},
    ) -> list[RefusedTool]:
        """Replace a server's list of tools, and return the refused ones with the reasons.

        The tools that match one of `tools_globs` (None: all) and none of `without` are taken; both
        match the server's own names. `blocked` says by tool why it may not be used. A name that
        occurs twice in the list is refused, because it is ambiguous. If the tools of two servers
        would get the same name, both are refused.
        """
        globs = ("*",) if tools_globs is None else tools_globs
        wanted = [tool for tool in tools if _any(tool.name, globs) and not _any(tool.name, without)]
        refused = []
        if len(wanted) > MOST_TOOLS:
            words = (
                f"It lists {len(wanted):,} tools; those after the first {MOST_TOOLS:,} are "
                "left out."
            )
            refused.append(RefusedTool(server=server, tool="", words=words))
            wanted = wanted[:MOST_TOOLS]
        times = Counter(tool.name for tool in wanted)
        items: list[ServerTool] = []
        for tool in wanted:
            words = _fault(tool, times[tool.name])
            if not words:
                name = self._naming(server, tool.name)
                items.append(
                    ServerTool(
                        name=name, server=server, tool=tool, blocked=blocked.get(tool.name, "")
                    )
                )
            else:
                refused.append(RefusedTool(server=server, tool=tool.name, words=words))
        refused = list(
            dict.fromkeys(refused)
        )  # a name that occurs a thousand times is refused once
        if server not in self._places:
            self._places.append(server)
        if items != self._had.get(server, []) or tuple(refused) != self._own.get(server, ()):
            self._replace(server, items)
            self._own[server] = tuple(refused)
        return list(
            dict.fromkeys(
                [*refused, *(refusal for item in items for refusal in self._collision(item.name))]
            )
        )

    def drop(self, server: str) -> None:
        """Remove a server's tools. It keeps its place in the order."""
        if self._own.pop(server, ()) or self._had.get(server):
            self._replace(server, [])

    def arrange(self, servers: Iterable[str]) -> None:
        """Order the servers; those not named follow in their old order."""
        places = list(dict.fromkeys(itertools.chain(servers, self._places)))
        if places != self._places:
            self._places = places
            self._items = None
            self.version += 1

    def _replace(self, server: str, items: list[ServerTool]) -> None:
        for name in {old.name for old in self._had.pop(server, [])}:
            others = [item for item in self._named.pop(name) if item.server != server]
            if others:
                self._named[name] = others
        for item in items:
            self._named.setdefault(item.name, []).append(item)
        if items:
            self._had[server] = items
        self._stale.add(server)
        self._items = None
        self.version += 1

    def _collision(self, name: str) -> list[RefusedTool]:
        sharing = self._named.get(name, [])
        if len(sharing) < 2:
            return []
        return [
            RefusedTool(
                server=item.server,
                tool=item.tool.name,
                words=f"Models would know it as {name!r}, and so they would "
                + " and ".join(
                    f"{_short(other.tool.name)} of {other.server!r}"
                    for other in sharing
                    if other is not item
                )
                + ".",
            )
            for item in sharing
        ]

    # -- what is there -----------------------------------------------------------------------------

    @property
    def items(self) -> tuple[ServerTool, ...]:
        """All tools in order, including blocked ones and those for apps only."""
        if self._items is None:
            all_of_them = itertools.chain.from_iterable(
                self._had.get(server, ()) for server in self._places
            )
            self._items = tuple(item for item in all_of_them if len(self._named[item.name]) == 1)
        return self._items

    @property
    def refusals(self) -> tuple[RefusedTool, ...]:
        """All current refusals, by server."""
        refused = [refusal for server in self._places for refusal in self._own.get(server, ())]
        shared = (name for name, items in self._named.items() if len(items) > 1)
        return tuple(refused) + tuple(itertools.chain.from_iterable(map(self._collision, shared)))

    def find(self, name: str) -> ServerTool:
        """The tool with exactly this name for models; similar names are not guessed.

        Raises UnknownTool.
        """
        items = self._named.get(name, [])
        if len(items) == 1:
            return items[0]
        if items:
            raise UnknownTool(
                f"The name {_short(name)} is refused: {self._collision(name)[0].words}"
            )
        near = self._near(name)
        words = f"There is no tool {_short(name)}."
        raise UnknownTool(f"{words} Near it: {', '.join(near)}." if near else words, near)

    def search(self, words: str, limit: int = 10) -> list[ServerTool]:
        """The tools that match the words best, best first: not blocked, and visible to models."""
        found = [item for item in self._ranked(words) if not item.blocked and item.for_model]
        return found[: max(0, limit)]

    def _ranked(self, words: str) -> list[ServerTool]:
        self._update_index()
        ranked = []
        for (server, tool), _ in self._index.search(words):
            items = self._named.get(self._naming(server, tool), [])
            if len(items) == 1:
                ranked.append(items[0])
        exact = words.strip()
        return sorted(ranked, key=lambda item: exact not in (item.name, item.tool.name))

    def _update_index(self) -> None:
        """Update the index; unchanged tools are not indexed again."""
        for server in sorted(self._stale):
            new = {(server, item.tool.name): item.tool for item in self._had.get(server, ())}
            for key in [key for key in self._indexed if key[0] == server and key not in new]:
                self._index.drop(key)
                del self._indexed[key]
            for key, tool in new.items():
                if self._indexed.get(key) != tool:
                    self._index.put(key, fields_of(server, tool))
                    self._indexed[key] = tool
        self._stale.clear()

    def _near(self, name: str) -> tuple[str, ...]:
        wanted = name[:_NAME]
        likely = [item.name for item in self._ranked(wanted)[:50] if item.for_model]
        return tuple(difflib.get_close_matches(wanted, likely, n=3, cutoff=0.5))


def _any(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def _fault(tool: Tool, times: int) -> str:
    """Why a tool is refused; empty if it is not."""
    if not tool.name:
        return "The tool has no name."
    if times > 1:
        return f"The server lists {times} tools of this name, so a call would be ambiguous."
    kind = tool.input_schema.get("type", "object")
    if kind != "object":
        return f"Its arguments would not be an object: the schema says {_short(kind)}."
    return ""


def visibility_of(tool: Tool) -> tuple[Any, ...]:
    """Who may use a tool: models, apps, or both. The default is both."""
    ui = (tool.meta or {}).get("ui")
    said = ui.get("visibility") if isinstance(ui, dict) else None
    return tuple(said) if isinstance(said, list) else ("model", "app")


def _cut(text: str | None) -> str | None:
    if text is None or len(text) * 4 <= MOST_DESCRIPTION:
        return text
    whole = text.encode("utf-8", "replace")
    if len(whole) <= MOST_DESCRIPTION:
        return text
    return whole[: MOST_DESCRIPTION - len(_CUT)].decode("utf-8", "ignore") + _CUT


def _short(value: object) -> str:
    """Foreign text for a message: one short line."""
    shown = repr(value) if not isinstance(value, str) else repr(value[: _NAME + 1])
    return shown if len(shown) <= _NAME + 2 else f"{shown[:_NAME]}…'"

"""An extension of the protocol that searches catalogues, as a third party would publish it.

`SEARCH` is the declaration. A server is given `search_server(...)`, a client `SEARCH` itself or
`search_client(...)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from interlock import AnyResult, Exchange, Extension, Handler, McpError, Method, types

ID = "com.example/search"


class FindParams(types.InputResponseParams, frozen=True, kw_only=True):
    """Params of `search/find`."""

    catalog: str
    query: str


class Hits(types.Result, frozen=True, kw_only=True):
    """What was found."""

    hits: list[str]


class Selected(types.Params, frozen=True, kw_only=True):
    """Params of `search/selected`: a client says which hit was of use."""

    hit: str


class Indexed(types.Params, frozen=True, kw_only=True):
    """Params of `search/indexed`: the server says that a catalogue has something new."""

    catalog: str
    entry: str


class Ticket(types.Result, frozen=True, kw_only=True):
    """What a tool is answered with whose answer takes long: what to redeem later."""

    ticket: str


SEARCH = Extension(
    ID,
    settings={"version": 1},
    methods={"search/find": Method(FindParams, Hits, mirrored="catalog")},
    notifications={"search/selected": Selected, "search/indexed": Indexed},
    results={"tools/call": {"com.example.ticket": Ticket}},
    listens={"catalogs": list[str]},
    requires="tools",
)


class Catalogs:
    """The catalogues of one server, and who listens to them."""

    def __init__(self, entries: Mapping[str, list[str]]) -> None:
        self.entries = {catalog: list(names) for catalog, names in entries.items()}
        self.selected: list[tuple[str, str | None]] = []
        self.is_open = False
        self.something_selected = asyncio.Event()
        self._listeners: list[tuple[list[str], Callable[[str, Any], None]]] = []

    def add(self, catalog: str, entry: str) -> None:
        """Add an entry, and tell those who listen."""
        self.entries[catalog].append(entry)
        for wanted, notify in list(self._listeners):
            if catalog in wanted:
                notify("search/indexed", Indexed(catalog=catalog, entry=entry))

    @asynccontextmanager
    async def opened(self, server: Any) -> AsyncIterator[None]:
        """The lifespan."""
        self.is_open = True
        yield
        self.is_open = False

    async def find(self, x: Exchange) -> AnyResult:
        """`search/find`."""
        params: FindParams = x.params
        names = self.entries.get(params.catalog)
        if names is None:
            raise McpError(types.INVALID_PARAMS, f"There is no catalogue {params.catalog}.")
        return Hits(hits=[name for name in names if params.query in name])

    def select(self, x: Exchange) -> None:
        """`search/selected`."""
        client = x.caller.info.name if x.caller.info is not None else None
        self.selected.append((x.params.hit, client))
        self.something_selected.set()

    @asynccontextmanager
    async def listening(self, x: Exchange, wanted: list[str]) -> AsyncIterator[list[str]]:
        """The key `catalogs` of the listen filter."""
        granted = [catalog for catalog in wanted if catalog in self.entries]
        listener = (granted, x.notify)
        self._listeners.append(listener)
        try:
            yield granted
        finally:
            self._listeners.remove(listener)

    def deferring(self, handler: Handler) -> Handler:
        """Middleware: the tool `slow` is answered with a ticket where the
        client knows what that is."""

        async def handle(x: Exchange) -> AnyResult:
            knows = SEARCH.settings_in(x.caller.capabilities) is not None
            if knows and x.method == "tools/call" and x.params.name == "slow":
                return Ticket(ticket="t-1")
            return await handler(x)

        return handle


def search_server(catalogs: Catalogs) -> Extension:
    """The extension of a server that has catalogues."""
    return SEARCH.with_handlers(
        {"search/find": catalogs.find},
        notifications={"search/selected": catalogs.select},
        listens={"catalogs": catalogs.listening},
        lifespan=catalogs.opened,
        middleware=[catalogs.deferring],
    )


def search_client(indexed: Callable[[Indexed], None]) -> Extension:
    """The extension of a client that hears of new entries."""

    async def receive(x: Exchange) -> None:
        await asyncio.sleep(0)  # handlers may wait
        indexed(x.params)

    return SEARCH.with_handlers(notifications={"search/indexed": receive})

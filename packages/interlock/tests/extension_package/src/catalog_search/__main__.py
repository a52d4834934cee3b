"""A server with catalogues, over stdio: `python -m catalog_search`."""

from __future__ import annotations

from interlock import Context, Server
from tests.extension_package.src.catalog_search import Catalogs, search_server


def make_server(catalogs: Catalogs) -> Server:
    """A server that has the extension, and tools with which its state is looked at and changed."""
    server = Server("catalogs", extensions=[search_server(catalogs)])

    @server.tool
    async def slow() -> str:
        """Answers late."""
        return "at last"

    @server.tool
    async def add(catalog: str, entry: str) -> int:
        """Add an entry to a catalogue."""
        catalogs.add(catalog, entry)
        return len(catalogs.entries[catalog])

    @server.tool
    async def selected() -> str:
        """What was selected, and by whom; waits until anything was."""
        await catalogs.something_selected.wait()
        return ", ".join(f"{hit} by {client}" for hit, client in catalogs.selected)

    @server.tool
    async def note(ctx: Context, words: list[str]) -> str:
        """Log words, one message each."""
        for one in words:
            ctx.log.info(one)
        return "noted"

    return server


def sample() -> Catalogs:
    """Two catalogues."""
    return Catalogs({"books": ["Middlemarch", "Emma"], "bücher": ["Effi Briest"]})


if __name__ == "__main__":
    make_server(sample()).run()

"""An extension of a third party, installed from a package of its own, on servers and clients, over
every transport and revision."""

from __future__ import annotations

import asyncio
import contextlib
import email.parser
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Client, Extension, Handler, McpError, ProtocolError, Stdio, types
from interlock.exchange import AnyResult, Exchange
from interlock.transport.http.client.transport import Http
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, REVISIONS

pytestmark = pytest.mark.matrix

PACKAGE = Path(__file__).parents[1] / "extension_package"
TRANSPORTS = ("memory", "stdio", "http")
PLACES = [(transport, revision) for transport in TRANSPORTS for revision in REVISIONS] + [
    ("sse", revision) for revision in HANDSHAKE_REVISIONS[:1]
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder into which a wheel of the package was installed; it can be imported from there."""
    folder = tmp_path_factory.mktemp("site")
    wheels = tmp_path_factory.mktemp("wheels")
    build = "import sys; from flit_core.buildapi import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(wheels)], cwd=PACKAGE, check=True)
    (wheel,) = wheels.glob("catalog_search-1.0.0-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)  # which is all that installing such a wheel is
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.split(".")[0] == "catalog_search"]:
        del sys.modules[name]


class Wired:
    """Clients of one new server over a transport, under a revision."""

    def __init__(self, place: tuple[str, str], folder: Path, stack: contextlib.AsyncExitStack):
        self.transport, self.revision = place
        self.handshake = self.revision in HANDSHAKE_REVISIONS
        self._folder = folder
        self._stack = stack

    async def client(self, *extensions: Extension, **options: Any) -> Client:
        """An open client."""
        client = Client(
            self._road(), revision=self.revision, extensions=extensions, timeout=60, **options
        )
        return await self._stack.enter_async_context(client)

    def _road(self) -> Any:
        from catalog_search.__main__ import make_server, sample  # installed by the fixture

        if self.transport == "memory":
            return make_server(sample())
        if self.transport == "stdio":
            paths = [str(self._folder), os.environ.get("PYTHONPATH", "")]
            env = {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
            return Stdio([sys.executable, "-m", "catalog_search"], env=env)
        legacy = self.transport == "sse"
        app = make_server(sample()).http_app(legacy_sse=legacy)
        sock = listening_socket("127.0.0.1", 0)
        port = sock.getsockname()[1]
        serving = asyncio.get_running_loop().create_task(serve_http(app, sock, grace=1.0))
        self._stack.push_async_callback(_ended, serving)
        return Http(f"http://127.0.0.1:{port}{'/sse' if legacy else '/mcp'}", legacy_sse=legacy)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


@pytest.fixture(params=PLACES, ids=lambda place: "-".join(place))
async def wired(request: pytest.FixtureRequest, installed: Path) -> AsyncIterator[Wired]:
    async with contextlib.AsyncExitStack() as stack:
        yield Wired(request.param, installed, stack)


async def test_a_request_is_typed_on_both_sides(wired: Wired):
    """Its params arrive as their type, its result comes as its type, its errors as they are
    (`SDX-01`, `SDX-12`)."""
    from catalog_search import ID, SEARCH, FindParams, Hits  # installed by the fixture

    client = await wired.client(SEARCH)
    assert SEARCH.settings_in(client.server_capabilities) == {"version": 1}
    assert (client.server_capabilities.extensions or {}).keys() == {ID}
    found = await client.request("search/find", FindParams(catalog="books", query="E"), Hits)
    assert found.hits == ["Emma"]
    found = await client.request("search/find", FindParams(catalog="bücher", query=""), Hits)
    assert found.hits == ["Effi Briest"]
    with pytest.raises(McpError, match=r"There is no catalogue maps\."):
        await client.request("search/find", FindParams(catalog="maps", query=""))
    with pytest.raises(ProtocolError, match="something else: Hits"):
        await client.request(
            "search/find", FindParams(catalog="books", query=""), types.EmptyResult
        )
    with pytest.raises(TypeError, match="the params of search/find are FindParams, not Params"):
        await client.request("search/find", types.Params())
    with pytest.raises(ValueError, match="search/lose is not a request that a client sends"):
        await client.request("search/lose", types.Params())


async def test_notifications_go_both_ways(wired: Wired):
    """The client's through its middleware, the server's to the handler of the client's extension
    (`SDX-13`, `SDX-16`)."""
    from catalog_search import Indexed, Selected, search_client  # installed by the fixture

    received: asyncio.Queue[Indexed] = asyncio.Queue()
    passed: list[str] = []

    def noting(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            passed.append(x.method)
            return await handler(x)

        return handle

    client = await wired.client(
        search_client(received.put_nowait),
        middleware=[noting],
        info=types.Implementation(name="reader", version="1"),
    )
    await client.notify("search/selected", Selected(hit="Emma"))
    assert passed[-1] == "search/selected"
    assert (await client.call_tool("selected")).value() == "Emma by reader"
    with pytest.raises(ValueError, match="search/lost is not a notification of an extension"):
        await client.notify("search/lost", types.Params())
    if wired.handshake:
        return
    async with client.watch(tools=True, filter={"catalogs": ["books", "maps"]}) as watch:
        granted: Any = watch.honoured
        assert (granted.tools_list_changed, granted.catalogs) == (True, ["books"])
        await client.call_tool("add", {"catalog": "bücher", "entry": "Faust"})
        await client.call_tool("add", {"catalog": "books", "entry": "Ulysses"})
        async with asyncio.timeout(60):
            told = await received.get()
        assert (told.catalog, told.entry) == ("books", "Ulysses")
    with pytest.raises(ValueError, match="no extension of this client defines maps for the listen"):
        async with client.watch(filter={"maps": True}):
            pass


async def test_notifications_of_the_server_pass_middleware_of_the_client(wired: Wired):
    """One is changed, one suppressed, and all others are heard in order before the call returns
    (`SDX-16`, `SDX-21`, `SDX-23`)."""
    received: list[Any] = []

    def editing(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method != "notifications/message":
                return await handler(x)
            if x.params.data == "secret":
                return types.EmptyResult()
            await asyncio.sleep(0)
            params = msgspec.structs.replace(x.params, data=x.params.data.upper())
            return await handler(msgspec.structs.replace(x, params=params))

        return handle

    client = await wired.client(
        middleware=[editing], log_level="info", on_log=lambda params: received.append(params.data)
    )
    words = ["a", "secret", "b", "c"]
    result = await client.call_tool("note", {"words": words})
    assert result.value() == "noted"
    assert received == ["A", "B", "C"]


async def test_a_package_is_made_and_enabled_as_the_guide_says(installed: Path):
    """The metadata is that of the guide; importing the package enables nothing, giving the
    extension does (`SDX-28`)."""
    from catalog_search import ID, SEARCH, Catalogs, search_server  # installed by the fixture

    from interlock import Server

    guide = (PACKAGE.parents[3] / "docs/guide/extensions.md").read_text()
    packaging = guide.partition("## As a package")[2]
    project = tomllib.loads(packaging.partition("```toml")[2].partition("```")[0])["project"]
    (metadata,) = installed.glob("*.dist-info/METADATA")
    made = email.parser.Parser().parsestr(metadata.read_text())
    assert made["Name"] == project["name"]
    assert made.get_all("Requires-Dist") == project["dependencies"]

    async with Client(Server("plain")) as client:
        assert client.extensions == ()
        assert client.server_capabilities.extensions is None
    server = Server("catalogs", extensions=[search_server(Catalogs({}))])

    @server.tool
    async def look() -> str:
        """Needed, because the extension requires tools."""
        return "seen"

    async with Client(server, extensions=[SEARCH]) as client:
        assert client.extensions == (SEARCH,)
        assert (client.server_capabilities.extensions or {}).keys() == {ID}


async def test_a_result_of_the_extension_comes_as_its_type_to_who_knows_it(wired: Wired):
    """Others get the tool's own answer; who wants the tool's own type is told what came
    (`RPC-22`)."""
    from catalog_search import SEARCH, Ticket  # installed by the fixture

    plain = await wired.client()
    assert (await plain.call_tool("slow")).value() == "at last"
    if wired.handshake:
        return  # results have no resultType there
    client = await wired.client(SEARCH)
    params = types.CallToolRequestParams(name="slow")
    assert (await client.request("tools/call", params, Ticket)).ticket == "t-1"
    with pytest.raises(ProtocolError, match="a result of an extension"):
        await client.call_tool("slow")


async def test_a_client_without_the_extension_is_told_what_it_lacks(wired: Wired):
    """Before anything is sent by its own side; by the server where it is another client
    (`EXT-03`)."""
    from catalog_search import ID, FindParams  # installed by the fixture

    client = await wired.client()
    with pytest.raises(
        ValueError, match="if an extension has it, give the extension to the client"
    ):
        await client.request("search/find", FindParams(catalog="books", query=""))
    x = Exchange("search/find", FindParams(catalog="books", query=""), client.caller)
    with pytest.raises(McpError) as refused:
        await client.send(x)
    missing = types.INVALID_REQUEST if wired.handshake else types.MISSING_CLIENT_CAPABILITY
    if wired.transport != "http" or wired.handshake:  # there the client lacks the header first
        assert refused.value.code == missing
        assert refused.value.data == {"requiredCapabilities": {"extensions": {ID: {}}}}


@pytest.mark.parametrize("revision", [NEWEST, HANDSHAKE_REVISIONS[-1]])
async def test_nothing_is_sent_to_a_server_without_the_extension(installed: Path, revision: str):
    """The error names the extension and says that nothing was sent (`EXT-03`)."""
    from catalog_search import SEARCH, FindParams, Selected  # installed by the fixture

    from interlock import Server
    from interlock.tape import Tape

    tape = Tape()
    transport = Server("plain").transport(tap=tape.record)
    async with Client(transport, revision=revision, extensions=[SEARCH]) as client:
        before = len(tape)
        for sent in (
            client.request("search/find", FindParams(catalog="books", query="")),
            client.notify("search/selected", Selected(hit="Emma")),
        ):
            with pytest.raises(
                McpError, match="does not offer the extension com.example/search"
            ) as no:
                await sent
            assert no.value.code == types.METHOD_NOT_FOUND
        assert len(tape) == before

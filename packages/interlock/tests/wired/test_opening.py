"""How a conversation begins in every cell of the matrix, what both sides learn of each other, and
what is refused."""

from __future__ import annotations

import pytest

from interlock import McpError, Unreachable
from interlock import types as t
from interlock.exchange import Exchange
from interlock.wire.revisions import R2, R3, R5
from tests.wired.cells import Cell, before, since

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_the_client_learns(cell: Cell):
    """Revision, name, instructions and capabilities, alike in both eras (`LIF-06`, `STA-06`,
    `STA-08`, `STA-11`, `LIF-15`)."""
    client = cell.client
    assert client.revision == cell.revision
    assert client.server_info is not None
    assert (client.server_info.name, client.server_info.version) == ("wired", "1.2.3")
    assert client.server_info.title == ("The wired server" if cell.revision >= R3 else None)
    assert client.instructions == "Everything once."
    offers = client.server_capabilities
    assert offers.tools == t.ListChangedCapability(list_changed=True)
    assert offers.prompts == t.ListChangedCapability(list_changed=True)
    assert offers.resources == t.ResourcesCapability(subscribe=True, list_changed=True)
    assert offers.logging == {}
    assert offers.completions == ({} if cell.revision >= R2 else None)


@before(R5)
async def test_the_first_words_of_a_handshake(cell: Cell):
    """`initialize` first, then `initialized`, and only then the rest (`LIF-01`, `LIF-08`,
    `LIF-09`)."""
    await cell.client.ping()
    first, second = cell.tape.messages("client")[:2]
    assert first["method"] == "initialize"
    assert first["params"]["protocolVersion"] == cell.revision
    assert second == {"jsonrpc": "2.0", "method": "notifications/initialized"}


@since(R5)
async def test_the_first_words_without_a_handshake(cell: Cell):
    """`server/discover` first, and on every request who asks (`STA-01`, `STA-02`, `ERA-04`,
    `ERA-05`)."""
    await cell.client.ping()
    requests = [m for m in cell.tape.messages("client") if "id" in m]
    assert requests[0]["method"] == "server/discover"
    for request in requests:
        meta = request["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == R5
        assert set(meta["io.modelcontextprotocol/clientCapabilities"]) == {
            "elicitation",
            "sampling",
            "roots",
        }
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "interlock"


UNKNOWN = ["no/such/method", "tasks/list", "notifications/progress", "sampling/createMessage"]


@pytest.mark.parametrize("method", UNKNOWN)
async def test_unknown_methods(cell: Cell, method: str):
    """What is no method of a client's is -32601 (`ERR-10`, `CMP-04`)."""
    cell.excused = "client"
    with pytest.raises(McpError, match=method) as caught:
        await cell.client._transport(Exchange(method, t.Params(), cell.client.caller))
    assert caught.value.code == t.METHOD_NOT_FOUND


@since(R5)
@pytest.mark.parametrize(
    "method",
    ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "initialize"],
)
async def test_methods_of_the_past(cell: Cell, method: str):
    """What was removed is not served to a request of the newest revision (`STA-18`, `CFQ-02`,
    `PNG-04`)."""
    cell.excused = "client"
    # whoever is greeted over HTTP and answers with 404 may be no server at all, so the client does
    # not take that for an answer
    with pytest.raises((McpError, Unreachable), match="Method not found") as caught:
        await cell.client._transport(Exchange(method, t.Params(), cell.client.caller))
    if (cell.transport, method) != ("http", "initialize"):
        assert isinstance(caught.value, McpError)
        assert caught.value.code == t.METHOD_NOT_FOUND


@before(R5)
@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
async def test_methods_of_the_future(cell: Cell, method: str):
    """What an older revision does not have is not served in it (`LIF-12`)."""
    cell.excused = "client"
    with pytest.raises(McpError) as caught:
        await cell.client._transport(Exchange(method, t.Params(), cell.client.caller))
    assert caught.value.code == t.METHOD_NOT_FOUND


async def test_middleware_of_the_client(cell: Cell):
    """The client's middleware sees each exchange once, also one that takes several rounds
    (`MRT-23`)."""
    start = len(cell.seen)
    await cell.client.call_tool("hello", {"name": "Ada"})
    await cell.client.read_resource("note://one")
    assert cell.seen[start:] == ["tools/call", "resources/read"]

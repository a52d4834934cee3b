"""A server without features, and a peer that is not ready yet: what is mandatory works, and nothing
else is sent or offered."""

from __future__ import annotations

import pytest

from interlock import Client, McpError, Server
from interlock import types as t
from interlock.wire.revisions import HANDSHAKE_REVISIONS, REVISIONS
from tests.server.wire import Peer

OPTIONAL = {
    "tools/list": t.ListToolsRequestParams(),
    "tools/call": t.CallToolRequestParams(name="x"),
    "prompts/list": t.ListPromptsRequestParams(),
    "prompts/get": t.GetPromptRequestParams(name="x"),
    "resources/list": t.ListResourcesRequestParams(),
    "resources/templates/list": t.ListResourceTemplatesRequestParams(),
    "resources/read": t.ReadResourceRequestParams(uri="x:y"),
    "completion/complete": t.CompleteRequestParams(
        ref=t.PromptReference(name="x"), argument=t.CompletionArgument(name="a", value="")
    ),
}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_without_features_is_whole(revision: str) -> None:
    """It is opened and pinged, offers no feature, and has no method of a feature (`RPC-29`)."""
    async with Client(Server("bare"), revision=revision) as client:
        assert client.revision == revision
        await client.ping()
        offered = client.server_capabilities
        assert (offered.tools, offered.prompts, offered.resources) == (None, None, None)
        assert offered.completions is None
        for method, params in OPTIONAL.items():
            with pytest.raises(McpError) as caught:
                await client.request(method, params)
            assert (method, caught.value.code) == (method, t.METHOD_NOT_FOUND)


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
async def test_nothing_is_sent_before_the_peer_is_ready(revision: str) -> None:
    """Changes of lists before `notifications/initialized` are not told; those after it are
    (`LIF-10`)."""
    server = Server("changing")
    server.tool(name="work")(lambda: "done")
    peer = await Peer.of(server, None)
    hello = {
        "protocolVersion": revision,
        "capabilities": {"roots": {"listChanged": True}},
        "clientInfo": {"name": "peer", "version": "1"},
    }
    assert "result" in await peer.ask("initialize", hello)
    for what in ("tools", "prompts", "resources"):
        server.changed(what)
    assert "result" in await peer.ask("ping")
    assert [message for message in peer.received if "method" in message] == []
    peer.say({"method": "notifications/initialized"})
    assert "result" in await peer.ask("ping")
    server.changed("tools")
    assert "result" in await peer.ask("ping")
    told = [message["method"] for message in peer.received if "method" in message]
    assert told == ["notifications/tools/list_changed"]
    await peer.aclose()

"""Third-party servers whose tools ask with server-initiated requests: the client uses them under a
revision that supports this."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, McpError, ToolError
from interlock.configs import Entry
from interlock.models.scripted import call
from interlock_apps.fleet.questions import CallQuestion, Decision, Filled
from tests.host.scene import ALLOW, Sitting, given, scene
from tests.interop.driver import command_of, on_the_web
from tests.ports import free_port

pytestmark = [pytest.mark.interop]
FORMS = {"python-2": {"size": "L"}, "fastmcp": {"value": "L"}}


@contextlib.asynccontextmanager
async def target_of(maker: str, way: str, installed: Callable[[str], Path]) -> AsyncIterator[Any]:
    """The target of a client: a command, or the address of a running server."""
    command = command_of("asking", maker, installed)
    if way == "stdio":
        yield command
        return
    port = free_port()
    async with on_the_web([*command, str(port)], port):
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("maker", FORMS)
async def test_a_client_goes_back_to_a_revision_under_which_the_server_can_ask(
    maker: str, way: str, installed: Callable[[str], Path]
) -> None:
    """Read-only calls are repeated; other calls fail once, and succeed from then on."""
    async with (
        target_of(maker, way, installed) as target,
        Client(target, elicit=lambda question: FORMS[maker]) as client,
    ):
        assert client.revision == "2026-07-28"
        with pytest.raises((McpError, ToolError), match="server-initiated requests"):
            (await client.call_tool("order")).value()
        assert client.revision == "2025-11-25"
        assert "accept size='L'" in (await client.call_tool("order")).text
    async with (
        target_of(maker, way, installed) as target,
        Client(target, elicit=lambda question: FORMS[maker]) as client,
    ):
        assert "accept size='L'" in (await client.call_tool("look")).text
        assert client.revision == "2025-11-25"


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("maker", FORMS)
async def test_a_host_asks_before_a_call_is_made_again(
    maker: str, way: str, installed: Callable[[str], Path]
) -> None:
    """The user finally answers the tool's question, and learns the reason for the earlier
    question."""
    again: list[CallQuestion] = []

    def allow(question: CallQuestion) -> Decision:
        again.append(question)
        return Decision(allow=True)

    sitting = Sitting(call=allow, form=Filled(action="accept", content=FORMS[maker]))
    async with target_of(maker, way, installed) as target:
        entry = (
            Entry(id="asker", url=target)
            if way == "http"
            else Entry(id="asker", command=tuple(target))
        )
        async with scene(
            {"asker": entry}, call("asker__order"), "done", person=sitting, policy=ALLOW
        ) as one:
            await one.host.session().say("Order one.")
            assert one.host.hub.servers["asker"].revision == "2025-11-25"
            assert [warned.kind for warned in again[0].warnings] == ["again"]
            assert "accept size='L'" in given(one.model.requests[-1])
            await one.told("only under 2025-11-25")

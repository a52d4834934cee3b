"""What goes by beside calls: log messages and their levels, notifications, roots that change, and
pings.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from interlock import Answers, Client, Context, McpError, Server
from interlock import types as t
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, R4
from tests.client.peers import KEY, Peer, complete, text

BOTH = pytest.mark.parametrize("revision", [R4, NEWEST])


def talker() -> Server:
    """A server that says everything at every level."""
    server = Server("talker")

    @server.tool
    async def talk(ctx: Context) -> None:
        for level in ("debug", "info", "warning", "error"):
            getattr(ctx.log, level)(level)

    return server


# -- log messages ---------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    "level, received", [("debug", 4), ("warning", 2), ("error", 1), ("emergency", 0)]
)
async def test_a_level_from_the_beginning(revision: str, level: t.LoggingLevel, received: int):
    """Said once, or with each request: what is heard is the same (`LOG-03`, `LOG-06`, `STA-04`)."""
    messages: list[t.LoggingMessageNotificationParams] = []
    async with Client(
        talker(), revision=revision, log_level=level, on_log=messages.append
    ) as client:
        assert client.log_level == level
        await client.call_tool("talk")
    assert [message.level for message in messages] == ["debug", "info", "warning", "error"][
        4 - received :
    ]


@BOTH
async def test_a_level_that_changes(revision: str):
    """From the next request on, in both eras alike (`LOG-03`, `LOG-06`)."""
    messages: list[t.LoggingMessageNotificationParams] = []
    async with Client(
        talker(), revision=revision, log_level="error", on_log=messages.append
    ) as client:
        for level, received in (("debug", 4), ("warning", 2), ("error", 1)):
            await client.set_log_level(level)  # type: ignore[arg-type]  # they are levels
            messages.clear()
            await client.call_tool("talk")
            assert len(messages) == received
            assert client.log_level == level


async def test_no_level_means_no_messages():
    """In the stateless era none are sent unasked (`LOG-05`)."""
    messages: list[Any] = []
    async with Client(talker(), on_log=messages.append) as client:
        await client.call_tool("talk")
    assert messages == []


async def test_how_a_level_is_said():
    """With each request of the stateless era; once in the handshake era, where the server has
    logging at all (`LOG-01`, `LIF-12`).
    """
    async with (
        Peer({"tools/list": complete(tools=[])}) as peer,
        Client(peer.channel, log_level="notice") as client,
    ):
        await client.list_tools()
        await client.set_log_level("alert")
        await client.ping()
        said = [message["params"]["_meta"].get(f"{KEY}logLevel") for message in peer.received]
        assert said == [
            None,
            "notice",
            "alert",
        ]  # the first is `server/discover`, before there is anything to hear
        assert peer.count("logging/setLevel") == 0
    async with Peer(None, R4) as peer, Client(peer.channel, log_level="notice"):
        assert (await peer.until("logging/setLevel"))["params"] == {"level": "notice"}
    async with (
        Peer(None, R4, capabilities={}) as peer,
        Client(peer.channel, log_level="notice") as client,
    ):
        await client.ping()
        assert peer.count("logging/setLevel") == 0


async def test_a_level_that_is_refused():
    async with (
        Peer({"logging/setLevel": McpError(-32602, "no such level")}, R4) as peer,
        Client(peer.channel) as client,
    ):
        with pytest.raises(McpError, match="no such level"):
            await client.set_log_level("info")


@BOTH
async def test_what_a_message_holds(revision: str):
    """Any data, and who says it; one without sense is passed over (`LOG-02`)."""
    messages: list[t.LoggingMessageNotificationParams] = []
    async with (
        Peer({"tools/call": text()}, revision) as peer,
        Client(peer.channel, on_log=messages.append) as client,
    ):
        peer.tell(
            "notifications/message", {"level": "info", "data": {"a": [1, None]}, "logger": "house"}
        )
        peer.tell("notifications/message", {"level": "loud", "data": "no such level"})
        peer.tell("notifications/message", {"level": "info"})
        peer.tell("notifications/message", {"level": "error", "data": None})
        await client.call_tool("x")
    assert messages == [
        t.LoggingMessageNotificationParams(level="info", data={"a": [1, None]}, logger="house"),
        t.LoggingMessageNotificationParams(level="error", data=None),
    ]


@BOTH
async def test_messages_that_nobody_hears(revision: str):
    """Or whose listener fails: no call is harmed."""
    received: list[str] = []

    def fail(params: t.LoggingMessageNotificationParams) -> None:
        raise ZeroDivisionError

    for on_log in (None, fail):
        async with (
            Peer({"tools/call": text()}, revision) as peer,
            Client(
                peer.channel,
                on_log=on_log,
                on_notification=lambda method, params: received.append(method),
            ) as client,
        ):
            peer.tell("notifications/message", {"level": "info", "data": 1})
            assert (await client.call_tool("x")).text == "done"
    assert received == []


# -- other notifications --------------------------------------------------------------------------


@BOTH
async def test_notifications_of_no_request(revision: str, caplog: pytest.LogCaptureFixture):
    """They are heard with their params; those that nobody knows, or without sense, are passed over
    (`RPC-11`, `SUB-04`).
    """
    received: list[tuple[str, Any]] = []

    def receive(method: str, params: Any) -> None:
        received.append((method, params))
        if method == "notifications/prompts/list_changed":
            raise ZeroDivisionError

    async with (
        Peer({"tools/call": text()}, revision) as peer,
        Client(peer.channel, on_notification=receive) as client,
    ):
        peer.tell("notifications/tools/list_changed")
        peer.tell("notifications/prompts/list_changed")
        peer.say(method="notifications/resources/list_changed")
        peer.tell("notifications/resources/updated", {"uri": "x:y"})
        peer.tell("notifications/resources/updated", {"url": "x:y"})
        peer.tell("notifications/house/burning", {"since": "noon"})
        peer.tell("notifications/tools/list_changed", subscription="nobody's")
        with caplog.at_level(logging.ERROR):
            await client.call_tool("x")
        said = len(peer.received)
        await client.call_tool("x")
        assert len(peer.received) == said + 1  # nothing was answered
    changed = t.ListChangedNotificationParams()
    assert [(method, params) for method, params in received] == [
        ("notifications/tools/list_changed", changed),
        ("notifications/prompts/list_changed", changed),
        ("notifications/resources/list_changed", changed),
        ("notifications/resources/updated", t.ResourceUpdatedNotificationParams(uri="x:y")),
    ]
    assert "receive failed" in caplog.text


async def test_a_page_that_is_finished():
    """The end of an elicitation by URL, which only 2025-11-25 tells of (`ELI-20`, `ELI-21`)."""
    received = asyncio.Queue[Any]()
    async with (
        Peer(None, R4) as peer,
        Client(peer.channel, on_notification=lambda method, params: received.put_nowait(params)),
    ):
        peer.tell("notifications/elicitation/complete", {"elicitationId": "1"})
        assert await received.get() == t.ElicitationCompleteNotificationParams(elicitation_id="1")


# -- roots ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
async def test_roots_that_change(revision: str, tmp_path: Path):
    """The server is told, and asks again (`ROO-02`)."""
    roots = [tmp_path]
    async with (
        Peer(None, revision) as peer,
        Client(peer.channel, answers=Answers(roots=roots)) as client,
    ):
        for n in (1, 2):
            peer.say(id=f"q{n}", method="roots/list")
            answer = await peer.until_received(lambda message, id=f"q{n}": message.get("id") == id)  # type: ignore[misc]  # bound here
            assert len(answer["result"]["roots"]) == n
            roots.append(tmp_path / "more")
            client.roots_changed()
            await peer.until("notifications/roots/list_changed", n)


@pytest.mark.parametrize("revision, roots", [(NEWEST, ["/srv"]), (R4, None)])
async def test_roots_of_which_nobody_knows(revision: str, roots: Any):
    """Nothing is told where none were declared, nor in the stateless era, which asks each time
    (`LIF-12`, `ROO-04`).
    """
    async with (
        Peer(None, revision) as peer,
        Client(peer.channel, answers=Answers(roots=roots)) as client,
    ):
        client.roots_changed()
        await client.ping()
        assert peer.count("notifications/roots/list_changed") == 0


# -- pings ----------------------------------------------------------------------------------------


async def test_a_ping_in_both_eras():
    """By `ping`, or by `server/discover` where that is gone (`PNG-01`, `PNG-04`)."""
    async with Peer(None, R4) as peer, Client(peer.channel) as client:
        assert await client.ping() is None  # type: ignore[func-returns-value]  # that is what is shown
        assert (peer.count("ping"), peer.count("server/discover")) == (1, 1)
    async with Peer(None, R4) as peer, Client(peer.channel, revision=R4) as client:
        await client.ping()
        assert [message["method"] for message in peer.received] == [
            "initialize",
            "notifications/initialized",
            "ping",
        ]
    async with Peer() as peer, Client(peer.channel) as client:
        await client.ping()
        assert [message["method"] for message in peer.received] == ["server/discover"] * 2


@BOTH
async def test_a_ping_that_is_refused(revision: str):
    """An error is an answer, and is raised."""
    async with Peer(None, revision) as peer, Client(peer.channel) as client:
        peer.on |= dict.fromkeys(("ping", "server/discover"), McpError(-32603, "tired"))
        with pytest.raises(McpError, match="tired"):
            await client.ping()


async def test_a_server_that_pings():
    """Is answered at once (`PNG-01`)."""
    async with Peer(None, R4) as peer, Client(peer.channel):
        peer.say(id="p", method="ping")
        assert (await peer.until_received(lambda message: message.get("id") == "p"))["result"] == {}


async def test_requests_that_a_server_must_not_send():
    """In the stateless era they are not answered at all (`RPC-17`, `RPC-18`, `STD-11`)."""
    async with Peer() as peer, Client(peer.channel, elicit=lambda p: True) as client:
        for method in ("ping", "roots/list", "elicitation/create"):
            peer.say(id="q", method=method, params={"message": "?"})
        await client.ping()
        assert not [message for message in peer.received if message.get("id") == "q"]

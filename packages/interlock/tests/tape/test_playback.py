"""Playback: one side of a tape against a real peer, and every way in which a peer can depart from
it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock import Context, Server
from interlock.tape import Line, Playback, Tape, replay_to_client, replay_to_server
from interlock.testing import ScriptedAnswers, connect
from interlock.types import CancelledNotificationParams
from interlock.wire.revisions import NEWEST, R4


def make_server() -> Server:
    """A server that greets, asks and fails."""
    server = Server("played", "1")

    @server.tool
    async def greet(name: str) -> str:
        return f"Hello, {name}!"

    @server.tool
    async def ask(ctx: Context) -> str:
        return f"Hello, {await ctx.elicit('Name?', str, key='name')}!"

    @server.tool
    async def crash() -> str:
        raise ValueError

    return server


async def recorded(revision: str, *calls: tuple[str, dict[str, Any]]) -> Tape:
    """The tape of a few calls."""
    tape = Tape()
    async with connect(
        make_server(),
        revision=revision,
        tape=tape,
        answers=ScriptedAnswers(elicit={"Name?": {"value": "Ada"}}),
    ) as client:
        for name, arguments in calls:
            await client.call_tool(name, arguments)
    return tape.blanked()


CALLS = [("greet", {"name": "Ada"}), ("ask", {}), ("crash", {})]


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_a_server_that_does_as_the_tape_has_it(revision: str):
    """States and references are other ones in every run, and the tape does not mind."""
    tape = await recorded(revision, *CALLS)
    await replay_to_server(tape, make_server())
    await replay_to_server(Tape.from_bytes(tape.to_bytes()), make_server())


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_a_client_that_does_as_the_tape_has_it(revision: str):
    """The same tape plays the server."""
    tape = await recorded(revision, *CALLS)
    answers = ScriptedAnswers(elicit={"Name?": {"value": "Ada"}})
    async with replay_to_client(tape, revision=revision, answers=answers) as client:
        texts = [(await client.call_tool(name, arguments)).text for name, arguments in CALLS]
    assert texts[:2] == ["Hello, Ada!", "Hello, Ada!"]


def changed(tape: Tape, at: int, **members: Any) -> Tape:
    """The tape with other members in one message."""
    lines = list(tape.lines)
    lines[at] = Line(lines[at].sender, json.dumps({**lines[at].message, **members}).encode())
    return Tape(lines)


async def test_servers_that_do_not():
    """Another answer, no answer, and one too many."""
    tape = await recorded(R4, CALLS[0])
    text = {"content": [{"type": "text", "text": "Goodbye!"}]}
    with pytest.raises(
        AssertionError,
        match=r'message 5, /result/content/0/text: expected "Goodbye!", got "Hello, Ada!"',
    ):
        await replay_to_server(changed(tape, 4, result=text), make_server())
    silent = Tape(
        [
            *tape.lines,
            Line("server", b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'),
        ]
    )
    with pytest.raises(AssertionError, match=r"message 6 did not come within 0\.05 seconds"):
        await replay_to_server(silent, make_server(), patience=0.05)
    with pytest.raises(
        AssertionError, match=r"beyond the end of the tape the peer sent .*Hello, Ada!"
    ):
        await replay_to_server(Tape(tape.lines[:4]), make_server())


async def play(tape: Tape, *calls: tuple[str, dict[str, Any]]) -> None:
    """A client that makes some calls while the tape plays the server."""
    async with replay_to_client(tape, revision=R4, elicit=lambda params: True) as client:
        for name, arguments in calls:
            if name == "tell":
                client._transport.send_notification(
                    "notifications/cancelled", CancelledNotificationParams(request_id=77)
                )
            else:
                await client.call_tool(name, arguments)


async def test_clients_that_do_not():
    """Another request, none where the tape has one, and one too many."""
    tape = await recorded(R4, CALLS[0])
    await play(tape, CALLS[0])
    with pytest.raises(
        AssertionError, match=r'message 4, /params/arguments/name: expected "Ada", got "Bob"'
    ):
        await play(tape, ("greet", {"name": "Bob"}))
    with pytest.raises(AssertionError, match="2 messages of the tape were not played"):
        await play(tape)
    with pytest.raises(AssertionError, match="beyond the end of the tape the peer sent"):
        await play(tape, CALLS[0], ("tell", {}))


async def test_what_the_block_raises_goes_first():
    """Unless the tape knows better what went wrong."""
    tape = await recorded(R4, CALLS[0])
    with pytest.raises(ZeroDivisionError):
        async with replay_to_client(tape, revision=R4, elicit=lambda params: True):
            raise ZeroDivisionError


async def test_a_peer_that_waits_for_ever_is_given_up():
    """A client that says nothing leaves the channel at the end of its patience."""
    playback = Playback(Tape([Line("client", b"{}")]), "server", patience=0.01)
    assert await playback.receive() == []
    with pytest.raises(AssertionError, match=r"message 1 did not come within 0\.01 seconds"):
        playback.check()

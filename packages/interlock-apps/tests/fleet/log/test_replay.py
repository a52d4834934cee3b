"""A conversation replayed from the log: the same words, the same answers of the model, the same
results.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from interlock.models.interface import ModelAnswer, ModelFailure
from interlock.types import (
    CreateMessageRequestParams,
    SamplingMessage,
    TextContent,
    ToolResultContent,
)
from interlock_apps.fleet.events import (
    AnyEvent,
    CallDecided,
    CallEnded,
    CallProposed,
    LogEntry,
    ModelFailed,
    Notice,
    TurnEnded,
)
from interlock_apps.fleet.log import LogError, MemoryLog, SqliteLog, read_export
from interlock_apps.host.loop.turn import STOPPED
from interlock_apps.host.replay import Replay
from tests.fleet.log.samples import ANSWERED, DONE, SAID, TALK, USE

REQUEST = CreateMessageRequestParams(messages=[], max_tokens=1)


def noted(events: list[AnyEvent]) -> list[LogEntry]:
    return [
        LogEntry(seq=number, at=float(number), event=event)
        for number, event in enumerate(events, start=1)
    ]


async def said(replay: Replay) -> ModelAnswer:
    (piece,) = [piece async for piece in replay.model.stream(REQUEST)]
    assert isinstance(piece, ModelAnswer)
    return piece


async def test_a_conversation_comes_back(tmp_path: Path) -> None:
    """From a log in memory, from a file, and from an export."""
    for log in (MemoryLog(), SqliteLog(tmp_path / "log.db")):
        await log.open()
        for event in TALK:
            log.note(event)
            log.note(Notice(level="info", words="of the host"))
        lines: list[bytes] = []
        await log.export(lines.append)
        for notes in (await log.read(), await log.read("s"), list(read_export(lines))):
            replay = Replay(notes)
            assert (replay.session, replay.title, replay.model.name) == ("s", "Weather", "m")
            assert list(replay.events) == TALK
            assert replay.messages == [
                SamplingMessage(role="user", content=[TextContent(text="How is it?")]),
                SamplingMessage(role="assistant", content=SAID.content),
                SamplingMessage(role="user", content=[ANSWERED]),
                SamplingMessage(role="assistant", content=DONE.content),
            ]
        await log.aclose()


async def test_the_model_says_it_again() -> None:
    """What it said, in order, whatever it is asked; then no more."""
    replay = Replay(noted(TALK))
    assert (await said(replay)).result == SAID
    assert replay.model.left == 1
    again = await said(replay)
    assert (again.result, again.usage.input) == (DONE, 5)
    with pytest.raises(ModelFailure, match="ends here"):
        await said(replay)
    await replay.model.aclose()


async def test_the_model_fails_and_is_cancelled_where_it_was() -> None:
    """A failure is raised again; an answer that was never finished ends in cancellation again."""
    asked = TALK[2]
    failed = ModelFailed(session="s", model="m", step=1, kind="too_long", words="Too long.")
    ended = TurnEnded(session="s", reason="cancelled")
    replay = Replay(noted([*TALK[:2], asked, failed, asked, ended, TALK[1], asked, TALK[9]]))
    assert replay.model.left == 3
    with pytest.raises(ModelFailure) as caught:
        await said(replay)
    assert (caught.value.kind, str(caught.value)) == ("too_long", "Too long.")
    with pytest.raises(asyncio.CancelledError):
        await said(replay)
    assert (await said(replay)).result == DONE


def test_calls_have_the_results_that_they_had() -> None:
    """By name and arguments, each as often as it was called, in that order; edited arguments count
    as the tool got them.
    """
    calls: list[AnyEvent] = []
    for call, arguments, result in (
        ("1", {"a": 1, "b": 2}, "x"),
        ("2", {"b": 2, "a": 1}, "y"),
        ("3", {"a": 3}, "z"),
    ):
        calls.append(CallProposed(session="s", call=call, name="t", arguments=arguments))
        if call == "3":
            calls.append(
                CallDecided(session="s", call=call, allow=True, by="person", arguments={"a": 4})
            )
        calls.append(CallEnded(session="s", call=call, error=result))
    replay = Replay(noted([*TALK[:4], *calls]))
    assert replay.results.left == 3
    assert replay.results.take("t", {"b": 2, "a": 1}).error == "x"
    assert replay.results.take("t", {"a": 1, "b": 2}).error == "y"
    assert replay.results.take("t", {"a": 4}).error == "z"
    for name, arguments in (("t", {"a": 1, "b": 2}), ("t", {"a": 3}), ("u", {"a": 4})):
        with pytest.raises(LogError, match="has no such call"):
            replay.results.take(name, arguments)


@pytest.mark.parametrize("by", ["app", "person"])
def test_calls_of_others_are_not_the_models(by: Literal["app", "person"]) -> None:
    """What an app or the person called is no answer to what the model calls, though the call be the
    same (`APP-30`).
    """
    calls: list[AnyEvent] = [
        CallProposed(session="s", call="s.app-1", name="t", arguments={}, by=by),
        CallEnded(session="s", call="s.app-1", error="theirs"),
        CallProposed(session="s", call="1", name="t", arguments={}),
        CallEnded(session="s", call="1", error="its own"),
    ]
    replay = Replay(noted([*TALK[:4], *calls]))
    assert replay.results.take("t", {}).error == "its own"
    assert replay.results.left == 0


STARTED = TALK[:5]


@pytest.mark.parametrize(
    "events, given, bad",
    [
        (TALK[:8], "sunny", False),
        ([*STARTED, TurnEnded(session="s", reason="cancelled")], STOPPED, True),
        (STARTED, STOPPED, True),
        (TALK[:4], STOPPED, True),
        ([*TALK[:7], TurnEnded(session="s", reason="cancelled")], STOPPED, True),
    ],
)
def test_every_use_of_a_tool_has_a_result(events: list[AnyEvent], given: str, bad: bool) -> None:
    """`SAM-15`: also where it was refused or cancelled, or where the log ends in the middle."""
    last = Replay(noted(events)).messages[-1]
    assert last.role == "user"
    assert isinstance(last.content, list)
    (result,) = last.content
    assert isinstance(result, ToolResultContent)
    assert isinstance(text := result.content[0], TextContent)
    assert given in text.text
    assert (result.tool_use_id, result.is_error) == (USE.id, bad)


def test_of_several_conversations_one_is_meant() -> None:
    """And what is no conversation, or the end of one, is refused in words."""
    other = [LogEntry(seq=50, at=1.0, event=Notice(session="t", level="info", words="x"))]
    both = noted(TALK) + other
    with pytest.raises(LogError, match=r"of 2 conversations; choose one: s, t"):
        Replay(both)
    assert list(Replay(both, "s").events) == TALK
    with pytest.raises(LogError, match="beginning of the conversation 't' is missing"):
        Replay(both, "t")
    with pytest.raises(LogError, match="no conversation 'u' here"):
        Replay(both, "u")
    with pytest.raises(LogError, match="There is no conversation here"):
        Replay([])


async def test_another_version_is_refused() -> None:
    """What cannot be read whole is not replayed in part.

    Of other conversations nothing is asked.
    """
    log = MemoryLog()
    for event in TALK:
        log.note(event)
    odd = log._rows[4]
    for session, refused in (("s", True), ("t", False)):
        data = (
            b'{"seq":5,"at":1.0,"event":{"type":"callProposed2","session":"%b"}}' % session.encode()
        )
        log._rows[4] = type(odd)(odd.seq, odd.at, session, odd.kind, odd.server, data, "")
        if refused:
            with pytest.raises(
                LogError, match=r"another version of Interlock. Entry 5 \('callProposed2'\)"
            ):
                Replay(await log.read(), "s")
        else:
            assert len(Replay(await log.read(), "s").events) == len(TALK) - 1

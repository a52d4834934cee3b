"""The conversations of a host: renamed, pinned, deleted, edited, retried, branched and searched."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import Server
from interlock.models.scripted import call
from interlock.types import SamplingMessage, ToolResultContent
from interlock_apps.fleet.events import (
    LogEntry,
    ModelSaid,
    PersonSaid,
    SessionChanged,
    SessionDeleted,
    TaskBegan,
)
from interlock_apps.fleet.log import LogError, SqliteLog
from interlock_apps.fleet.questions import Decision
from interlock_apps.host.conversations.branches import Branch
from interlock_apps.host.conversations.search import excerpt_of
from interlock_apps.host.session import Busy, Session
from tests.host.lab import Lab
from tests.host.scene import ALLOW, Scene, Sitting, adder, scene, texts_of

ADD = call("adder__add", a=1, b=2)


def spoken(messages: list[SamplingMessage]) -> list[str]:
    """What was said, and the results of calls."""
    return [text for message in messages for text in texts_of(message)]


async def branch(one: Scene, session: Session, at: int = 0) -> Branch:
    return await one.host.conversations.branch(session.id, at)


async def numbers(one: Scene, session: Session, kind: type[Any]) -> list[int]:
    """The numbers of the messages of a kind in the chosen branch."""
    entries: tuple[LogEntry, ...] = (await branch(one, session)).entries
    return [entry.seq for entry in entries if isinstance(entry.event, kind)]


async def test_a_conversation_is_renamed_and_pinned(tmp_path: Path) -> None:
    """Open or not; the title stays when it is taken up again, and pinned ones come first."""
    path = tmp_path / "log.db"
    async with scene({}, "Yes.", "Yes.", log=SqliteLog(path)) as one:
        first, second = one.host.session(), one.host.session()
        await first.say("about Rome")
        await second.say("about Oslo")
        await one.host.conversations.rename(first.id, "  The  Colosseum ")
        assert first.title == "The Colosseum"
        await one.host.conversations.pin(first.id)
    async with scene({}, "Yes.", log=SqliteLog(path)) as one:
        rows = await one.host.conversations.rows()
        assert [(row.title, row.pinned) for row in rows] == [
            ("The Colosseum", True),
            ("about Oslo", False),
        ]
        await one.host.conversations.rename(second.id, "Norway")
        await one.host.conversations.pin(first.id, False)
        assert (await one.host.resume(second.id)).title == "Norway"
        assert (await one.host.resume(first.id)).title == "The Colosseum"
        with pytest.raises(ValueError, match="empty"):
            await one.host.conversations.rename(first.id, " ")
        with pytest.raises(LogError, match="no conversation"):
            await one.host.conversations.rename("nowhere", "x")
        assert one.of(SessionChanged)[0].title == "Norway"


async def test_a_running_conversation_is_deleted(tmp_path: Path) -> None:
    """Its turn is cancelled, its question withdrawn, and it is gone from the log and the list."""
    person = Sitting(call=lambda _: asyncio.Future[Decision]())
    log = SqliteLog(tmp_path / "log.db")
    async with scene({"adder": adder()}, ADD, person=person, log=log) as one:
        session = one.host.session()
        turn = asyncio.create_task(session.say("add"))
        await person.until("call")
        deleted = await one.host.conversations.delete(session.id)
        assert (await turn).reason == "cancelled"
        assert not one.host.questions
        assert session.id not in one.host.sessions
        assert one.of(SessionDeleted) == [deleted]
        assert await one.host.conversations.rows() == []
        assert await log.read(session.id) == []
        with pytest.raises(LogError):
            await one.host.resume(session.id)
        await log.verify()


async def test_the_tasks_of_a_deleted_conversation_are_cancelled(tmp_path: Path) -> None:
    """Nothing comes later into the log that would be about it."""
    lab = Lab(tmp_path)
    lab.hold()
    crunch = call("lab__crunch")
    async with scene(lab.servers, crunch, "Later.", policy=ALLOW, task_wait=0) as one:
        session = one.host.session()
        await session.say("Count.")
        assert one.of(TaskBegan)
        await one.host.conversations.delete(session.id)
        assert lab.statuses == ["cancelled"]
        assert one.host.tasks.open == []
        assert await one.host.log.read(session.id) == []


async def test_a_message_is_edited_and_sent_again(tmp_path: Path) -> None:
    """What followed stays as another branch; one can go there and back, also after a restart."""
    path = tmp_path / "log.db"
    answers = ("Rome is warm.", "Take a hat.", "Oslo is cold.", "Take gloves.")
    async with scene({}, *answers, log=SqliteLog(path)) as one:
        session = one.host.session()
        await session.say("How is Rome?")
        await session.say("What do I need?")
        first = (await numbers(one, session, PersonSaid))[0]
        await session.edit(first, "How is Oslo?")
        assert spoken(one.model.requests[-1].messages) == ["How is Oslo?"]
        assert spoken(session.messages) == ["How is Oslo?", "Oslo is cold."]
        (fork,) = (await branch(one, session)).forks
        assert (fork.chosen, len(fork.ends)) == (1, 2)
        assert fork.at == (await numbers(one, session, PersonSaid))[0]
    async with scene({}, answers[-1], "It is here.", log=SqliteLog(path)) as one:
        again = await one.host.resume(session.id)
        assert spoken(again.messages) == ["How is Oslo?", "Oslo is cold."]
        await again.say("And now?")
        assert spoken(again.messages)[-1] == "Take gloves."
        (fork,) = (await branch(one, again)).forks
        await again.switch(fork.ends[0])
        rome = ["How is Rome?", "Rome is warm.", "What do I need?", "Take a hat."]
        assert spoken(again.messages) == rome
        (back,) = (await branch(one, again)).forks
        assert (back.chosen, back.ends) == (0, fork.ends)
        await again.say("Where is it?")
        assert spoken(one.model.requests[-1].messages)[:-1] == rome
    async with scene({}, log=SqliteLog(path)) as one:  # without opening it here
        await one.host.conversations.switch(session.id, back.ends[1])
        again = await one.host.resume(session.id)
        assert spoken(again.messages)[:2] == ["How is Oslo?", "Oslo is cold."]


async def test_an_answer_is_given_anew() -> None:
    """For a message of the person, or for one of the model, also in the middle of a turn."""
    answers = (ADD, "It is 3.", "Three.", ADD, "3!")
    async with scene({"adder": adder()}, *answers, policy=ALLOW) as one:
        session = one.host.session()
        await session.say("Add 1 and 2.")
        asked, answered = await numbers(one, session, ModelSaid)
        await session.retry(answered)
        assert spoken(session.messages)[-1] == "Three."
        assert len(session.messages) == 4  # the call was not made again
        (said,) = await numbers(one, session, PersonSaid)
        await session.retry(said)
        assert spoken(session.messages)[-1] == "3!"
        forks = (await branch(one, session)).forks
        assert [(fork.chosen, len(fork.ends)) for fork in forks] == [(1, 2)]
        (first,) = (await branch(one, session, asked)).forks[:1]
        assert first.chosen == 0
        inner = (await branch(one, session, answered)).forks[-1]
        assert (inner.chosen, len(inner.ends)) == (0, 2)
        with pytest.raises(ValueError, match="no message 9999"):
            await session.retry(9999)


async def test_a_branch_begins_after_a_message_of_the_model() -> None:
    """With the results of the calls in it, so that each use of a tool has its result."""
    async with scene({"adder": adder()}, ADD, "It is 3.", "Yes.", policy=ALLOW) as one:
        session = one.host.session()
        await session.say("Add 1 and 2.")
        calls, _ = await numbers(one, session, ModelSaid)
        await session.branch(calls)
        assert isinstance(session.messages[-1].content, list)
        assert isinstance(session.messages[-1].content[0], ToolResultContent)
        (fork,) = (await branch(one, session)).forks
        assert (fork.at, fork.chosen, len(fork.ends)) == (0, 1, 2)
        await session.say("Is it 3?")
        assert spoken(session.messages)[-2:] == ["Is it 3?", "Yes."]


async def test_a_running_turn_is_not_changed() -> None:
    """Neither edited nor switched; the conversation says that it is busy."""
    person = Sitting(call=lambda _: asyncio.Future[Decision]())
    async with scene({"adder": adder()}, "Hello.", ADD, person=person) as one:
        session = one.host.session()
        await session.say("hi")
        (said,) = await numbers(one, session, PersonSaid)
        turn = asyncio.create_task(session.say("add"))
        await person.until("call")
        before = list(session.messages)
        for change in (
            session.edit(said, "ho"),
            session.retry(said),
            session.branch(said),
            session.switch(said),
            one.host.conversations.switch(session.id, said),
        ):
            with pytest.raises(Busy):
                await change
        assert session.messages == before
        session.cancel()
        await turn


async def test_what_was_said_is_found(tmp_path: Path) -> None:
    """By the beginnings of its words, in every conversation and branch; results of tools and names
    of models are not what was said.
    """
    shop = Server("shop")

    @shop.tool
    async def price() -> str:
        """The price of a thing."""
        return "A trumpet costs 90."

    answers = (call("shop__price"), "It costs ninety euros.", "Yes.", "In the west.")
    log = SqliteLog(tmp_path / "log.db")
    async with scene({"shop": shop}, *answers, policy=ALLOW, log=log) as one:
        first, second = one.host.session(), one.host.session()
        await first.say("What does it cost?")
        await first.say("Is that in <b>euros</b>?")
        await second.say("Where is Portugal?")
        found = await one.host.conversations.find("euro")
        assert [(each.session, each.by) for each in found] == [
            (first.id, "person"),
            (first.id, "model"),
        ]
        assert found[0].title == "What does it cost?"
        marked = [found[0].excerpt[start:end] for start, end in found[0].marks]
        assert marked == ["euros"]
        assert await one.host.conversations.find("trumpet") == []
        assert await one.host.conversations.find("scripted") == []
        assert await one.host.conversations.find(" ") == []
        said = (await numbers(one, first, PersonSaid))[1]
        one.model.add("Dollars.")
        await first.edit(said, "In dollars?")
        (other, _) = await one.host.conversations.find("euro")
        await one.host.conversations.show(first.id, other.message)
        assert (await branch(one, first)).entry(other.message).seq == said
        await one.host.conversations.delete(first.id)
        assert await one.host.conversations.find("euro") == []


@pytest.mark.parametrize(
    "text, words, excerpt, marked",
    [
        ("one two three", ("two",), "one two three", ["two"]),
        ("Ünïcode\nand\u200bmore", ("unicode",), "Ünïcode and⟨U+200B⟩more", ["Ünïcode"]),
        ("nothing here", ("absent",), "nothing here", []),
        ("旅行计划已经完成", ("计划",), "旅行计划已经完成", ["旅行计划已经完成"]),
    ],
)
def test_an_excerpt_is_around_what_was_found(
    text: str, words: tuple[str, ...], excerpt: str, marked: list[str]
) -> None:
    shown, marks = excerpt_of(text, words)
    assert shown == excerpt
    assert [shown[start:end] for start, end in marks] == marked


def test_a_long_text_is_cut_around_what_was_found() -> None:
    shown, marks = excerpt_of("before " * 100 + "needle" + " after" * 100, ("needle",))
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) < 250
    assert [shown[start:end] for start, end in marks] == ["needle"]

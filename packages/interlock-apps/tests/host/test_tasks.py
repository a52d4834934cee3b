"""Calls that become tasks: they outlive the turn and the host, and their outcome comes into the
conversation that made them.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from interlock import Unreachable
from interlock.models.scripted import Scripted, call
from interlock_apps.fleet.events import (
    CallEnded,
    CallProgress,
    TaskBegan,
    TaskEnded,
    TaskGiven,
    TurnEnded,
)
from interlock_apps.fleet.log import SqliteLog
from interlock_apps.fleet.policy import Policy, Rule
from interlock_apps.fleet.questions import Filled, ResultQuestion
from tests.client.peers import Peer, complete, form, text
from tests.host.lab import Lab
from tests.host.scene import ALLOW, NO, Scene, Sitting, given, last, scene

CRUNCH = call("lab__crunch")
GOES_ON = "goes on as a task"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """The server, with no task that ends."""
    made = Lab(tmp_path)
    made.hold()
    return made


async def ended(one: Scene, turns: int) -> None:
    """Wait until so many turns have ended."""
    await one.until(lambda: len(one.of(TurnEnded)) >= turns)


async def test_a_turn_waits_for_a_task(lab: Lab) -> None:
    """A task that ends in time is an ordinary call."""
    lab.release()
    async with scene(lab.servers, CRUNCH, "It is 42.", policy=ALLOW, task_wait=None) as one:
        await one.host.session().say("Count.")
        assert "42" in last(one)
        assert one.of(TaskBegan, TaskEnded, TaskGiven) == []


async def test_a_task_outlives_its_turn(lab: Lab) -> None:
    """The model is told, and gets the result in a message that it answers."""
    async with scene(lab.servers, CRUNCH, "Later.", "It is 42.", policy=ALLOW, task_wait=0) as one:
        session = one.host.session()
        assert (await session.say("Count.")).reason == "done"
        assert GOES_ON in last(one)
        [began] = one.of(TaskBegan)
        assert (began.session, began.server, began.tool) == (session.id, "lab", "crunch")
        await one.until(lambda: [e for e in one.of(CallProgress) if e.message == "counting"])
        assert one.of(TaskEnded) == []
        lab.release()
        await ended(one, 2)
        [over] = one.of(TaskEnded)
        assert (over.call, over.result.text, over.error) == (began.call, "42", "")
        assert "42" in last(one)
        assert "has ended. Its result:" in last(one)
        [given_] = one.of(TaskGiven)
        assert given_.messages[0] in session.messages
        assert session.messages[-1].role == "assistant"


async def test_a_result_waits_for_the_end_of_the_turn(lab: Lab) -> None:
    """It is never put between the messages of another turn."""
    slow = asyncio.Event()

    class Slow(Scripted):
        async def stream(self, request: Any) -> Any:
            if len(self.requests) == 2:
                lab.release()
                await slow.wait()
            async for piece in super().stream(request):
                yield piece

    model = Slow(CRUNCH, "Later.", "Hello.", "It is 42.")
    async with scene(lab.servers, model=model, policy=ALLOW, task_wait=0) as one:
        session = one.host.session()
        await session.say("Count.")
        turn = asyncio.ensure_future(session.say("Hi."))
        await one.until(lambda: one.of(TaskEnded))
        assert one.of(TaskGiven) == []
        slow.set()
        await turn
        await ended(one, 3)
        assert "42" in last(one)


async def test_a_task_outlives_the_host(lab: Lab, tmp_path: Path) -> None:
    """The next host follows it, and the conversation gets its result when it is resumed."""
    path = tmp_path / "log.db"
    async with scene(
        lab.servers, CRUNCH, "Later.", policy=ALLOW, task_wait=0, log=SqliteLog(path)
    ) as one:
        session = one.host.session()
        await session.say("Count.")
        [began] = one.of(TaskBegan)
    assert lab.statuses == ["working"]
    lab.release()
    async with scene(lab.servers, "It is 42.", policy=ALLOW, log=SqliteLog(path)) as one:
        await one.until(lambda: one.of(TaskEnded))
        assert one.of(TaskEnded)[0].call == began.call
        assert one.of(TaskGiven) == []
        again = await one.host.resume(session.id)
        assert len(one.of(TaskGiven)) == 1
        await again.say("Well?")
        assert "42" in given(one.model.requests[-1])
    async with scene(lab.servers, "Still 42.", policy=ALLOW, log=SqliteLog(path)) as one:
        assert one.host.tasks.open == []
        again = await one.host.resume(session.id)
        assert one.of(TaskGiven) == []
        await again.say("Sure?")
        assert given(one.model.requests[-1]).count("has ended. Its result:") == 1


async def test_a_task_outlives_its_server(lab: Lab) -> None:
    """The host takes it up again once the server is back."""
    async with scene(lab.servers, CRUNCH, "Later.", "It is 42.", policy=ALLOW, task_wait=0) as one:
        await one.host.session().say("Count.")
        await one.host.hub.restart("lab")
        lab.release()
        await ended(one, 2)
        assert "42" in last(one)


async def test_the_person_cancels_a_task(lab: Lab) -> None:
    """The conversation learns of it."""
    async with scene(lab.servers, CRUNCH, "Later.", "What now?", policy=ALLOW, task_wait=0) as one:
        await one.host.session().say("Count.")
        [began] = one.of(TaskBegan)
        await one.host.tasks.cancel(began.call)
        await ended(one, 2)
        assert lab.statuses == ["cancelled"]
        assert "The task was cancelled." in last(one)
        assert one.of(TaskEnded)[0].error == "The task was cancelled."
        with pytest.raises(Unreachable, match="has ended"):
            await one.host.tasks.cancel(began.call)


async def test_a_turn_that_is_cancelled_cancels_the_task_it_waits_for(lab: Lab) -> None:
    async with scene(lab.servers, CRUNCH, policy=ALLOW, task_wait=None) as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("Count."))
        await one.until(lambda: one.of(CallProgress))
        session.cancel()
        assert (await turn).reason == "cancelled"
        assert lab.statuses == ["cancelled"]
        assert one.of(TaskBegan) == []


async def test_a_conversation_that_is_closed_does_not_end_its_task(lab: Lab) -> None:
    """Its result is in the log."""
    async with scene(lab.servers, CRUNCH, "Later.", policy=ALLOW, task_wait=0) as one:
        session = one.host.session()
        await session.say("Count.")
        one.host.end(session.id)
        lab.release()
        await one.until(lambda: one.of(TaskEnded))
        assert one.of(TaskGiven) == []


async def test_a_result_of_a_task_is_reviewed(lab: Lab) -> None:
    """As that of a call; what the person keeps back reaches neither the model nor the log."""
    asked: list[ResultQuestion] = []

    def decide(question: ResultQuestion) -> Any:
        asked.append(question)
        return NO

    policy = Policy(default="allow", review=[Rule(decision="ask")])
    async with scene(
        lab.servers,
        CRUNCH,
        "Later.",
        "A pity.",
        person=Sitting(result=decide),
        policy=policy,
        task_wait=0,
    ) as one:
        await one.host.session().say("Count.")
        assert asked == []
        lab.release()
        await ended(one, 2)
        assert asked[0].result.text == "42"
        assert "withheld the result" in last(one)
        assert not re.search(r"\b42\b", last(one))  # an ID may contain it


@pytest.mark.parametrize("answer", ["L", "XL"])
async def test_a_question_of_a_task_comes_to_the_person(answer: str) -> None:
    """After the turn, and for the conversation of the call."""
    working = complete(
        taskId="T",
        status="working",
        createdAt="2026-01-01T00:00:00Z",
        lastUpdatedAt="2026-01-01T00:00:00Z",
        ttlMs=None,
        pollIntervalMs=20,
    )
    told = asyncio.Event()

    def get(message: dict[str, Any]) -> dict[str, Any]:
        if updates := peer.all("tasks/update"):
            said = updates[0]["params"]["inputResponses"]["q"]["content"]["value"]
            return {**working, "status": "completed", "result": text(f"size {said}")}
        asking = {"status": "input_required", "inputRequests": {"q": form("Which size?")}}
        return {**working, **(asking if told.is_set() else {})}

    tool = {"name": "order", "inputSchema": {"type": "object"}}
    extension = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "tools": {}}
    on = {
        "tools/list": complete(tools=[tool]),
        "tools/call": {**working, "resultType": "task"},
        "tasks/get": get,
        "tasks/update": complete(),
    }
    person = Sitting(form=Filled(action="accept", content={"value": answer}))
    async with (
        Peer(on, capabilities=extension) as peer,
        scene(
            {"shop": peer.channel},
            call("shop__order"),
            "Ordered.",
            "Done.",
            person=person,
            policy=ALLOW,
            task_wait=0,
        ) as one,
    ):
        session = one.host.session()
        await session.say("Order.")
        assert person.asked == []
        told.set()
        await ended(one, 2)
        [question] = person.of("form")
        assert (question.server, question.session) == ("shop", session.id)
        assert question.call == one.of(CallEnded)[0].call
        assert f"size {answer}" in last(one)

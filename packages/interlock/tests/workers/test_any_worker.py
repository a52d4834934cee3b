"""A session opened at one worker is served by every other: calls, questions, progress and log
levels, through a balancer and by hand."""

from __future__ import annotations

import asyncio

import pytest

from interlock import Answers, Client
from interlock.wire.revisions import R2, R3, R4, R5
from tests.workers.clusters import Cluster, noted
from tests.workers.raw import session, tool

REVISIONS = (R2, R3, R4, R5)


async def answer(*about) -> dict:
    """What a person would say."""
    return {"value": 41}


async def say(*about) -> str:
    """What a model would say."""
    return "words"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_calls_of_one_client_run_at_every_worker(workers: Cluster, revision: str):
    """Each request goes to the next worker, and nobody minds."""
    async with asyncio.timeout(30), Client(workers.url, revision=revision) as client:
        pids = {int((await client.call_tool("pid")).value()) for _ in range(9)}
        together = await asyncio.gather(*(client.call_tool("pid") for _ in range(30)))
    assert pids == {worker.process.pid for worker in workers.workers}
    assert {int(result.value()) for result in together} == pids


@pytest.mark.parametrize("revision", [R2, R3, R4])
async def test_the_state_of_a_session_is_the_same_at_every_worker(workers: Cluster, revision: str):
    """Every worker counts on where the others were, also at once, and another session counts for
    itself."""
    async with (
        asyncio.timeout(60),
        Client(workers.url, revision=revision) as client,
        Client(workers.url, revision=revision) as other,
    ):
        one_by_one = [(await client.call_tool("add_up")).text.split() for _ in range(6)]
        together = await asyncio.gather(*(client.call_tool("add_up") for _ in range(12)))
        assert (await other.call_tool("add_up")).text.split()[1] == "1"
    assert [int(n) for _, n in one_by_one] == [1, 2, 3, 4, 5, 6]
    assert {int(pid) for pid, _ in one_by_one} == {w.process.pid for w in workers.workers}
    assert {int(result.text.split()[1]) for result in together} == set(range(7, 19))


@pytest.mark.parametrize("revision", [R4, R5])
async def test_questions_in_the_middle_of_a_call_are_answered_at_other_workers(
    workers: Cluster, revision: str
):
    """Elicitation, sampling and roots: the answers are POSTs of their own, and land wherever
    (`HTL-10`)."""
    async with (
        asyncio.timeout(30),
        Client(
            workers.url,
            revision=revision,
            answers=Answers(elicit=answer, sample=say, roots=["file:///here"]),
        ) as client,
    ):
        results = await asyncio.gather(*(client.call_tool("ask_all") for _ in range(5)))
    assert [result.value() for result in results] == [["41", "words", "file:///here"]] * 5


@pytest.mark.parametrize("to", [0, 1, 2])
async def test_an_answer_posted_to_any_worker_reaches_the_call(workers: Cluster, to: int):
    """The call runs at the first worker; its own and both others take the answer."""
    async with session(workers) as mine:
        stream = await mine.begin(0, "tools/call", tool("ask", question="how many?"))
        question = await stream.message()
        assert question["method"] == "elicitation/create"
        result = {"action": "accept", "content": {"value": 7}}
        told = await mine.send(to, {"jsonrpc": "2.0", "id": question["id"], "result": result})
        assert told.status == 202
        (said,) = await stream.messages()
        assert said["result"]["content"][0]["text"] == f"{workers.workers[0].process.pid} 7"


async def test_questions_of_several_workers_are_not_mixed_up(workers: Cluster):
    """Every worker asks in the same session at the same time, under ids that no other uses; each
    gets its own answer."""
    async with session(workers) as mine:
        streams = [
            await mine.begin(n, "tools/call", tool("ask", question=f"q{n}")) for n in range(6)
        ]
        questions = [await stream.message() for stream in streams]
        assert len({question["id"] for question in questions}) == 6
        for n, question in enumerate(questions):
            assert question["params"]["message"] == f"q{n}"
            await mine.send(
                n + 1,
                {
                    "jsonrpc": "2.0",
                    "id": question["id"],
                    "result": {"action": "accept", "content": {"value": n}},
                },
            )
        answers = [
            (await stream.messages())[-1]["result"]["content"][0]["text"] for stream in streams
        ]
        assert answers == [f"{workers.workers[n % 3].process.pid} {n}" for n in range(6)]


async def test_progress_reaches_the_client_whichever_worker_counts(workers: Cluster):
    """All steps in order, on the stream of their own call."""
    async with asyncio.timeout(30), Client(workers.url, revision=R4) as client:
        for _ in range(3):
            seen: list[float] = []
            await client.call_tool(
                "count", {"to": 50}, on_progress=lambda p, seen=seen: seen.append(p.progress)
            )
            assert seen == [*range(1, 51)]


async def test_a_log_level_set_at_one_worker_holds_at_all(workers: Cluster):
    """What a client has said once counts everywhere from the moment it is confirmed."""
    async with session(workers) as mine:
        for level, received in (
            ("warning", ["warning", "error"]),
            ("error", ["error"]),
            ("debug", ["debug", "info", "warning", "error"]),
        ):
            assert (await mine.ask(1, "logging/setLevel", {"level": level}))["result"] == {}
            for worker in range(3):
                *told, result = await (
                    await mine.begin(worker, "tools/call", tool("speak"))
                ).messages()
                assert [message["params"]["data"] for message in told] == received
                assert result["result"]["content"][0]["text"] == str(
                    workers.workers[worker].process.pid
                )


async def test_a_cancellation_posted_to_another_worker_ends_the_call(workers: Cluster):
    """The tool is cancelled where it runs, and the call is not answered."""
    async with session(workers) as mine:
        name = f"c{mine.id}"
        stream = await mine.begin(0, "tools/call", tool("hang", name=name), id="to be cancelled")
        assert (await stream.message())["method"] == "notifications/progress"
        told = await mine.send(
            1,
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": "to be cancelled"},
            },
        )
        assert told.status == 202
        assert await stream.messages() == []
        noted(workers.folder, f"{name} was cancelled")


async def test_a_client_that_gives_up_cancels_at_whichever_worker(workers: Cluster):
    """Our own client posts the cancellation, and the balancer takes it elsewhere (`HTL-22`)."""
    async with asyncio.timeout(30), Client(workers.url, revision=R4) as client:
        names = [f"given up {n} {id(client)}" for n in range(4)]
        calls = [asyncio.ensure_future(client.call_tool("hang", {"name": name})) for name in names]
        for name in names:
            await asyncio.to_thread(noted, workers.folder, f"{name} hangs")
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        for name in names:
            await asyncio.to_thread(noted, workers.folder, f"{name} was cancelled")


async def test_the_end_of_a_session_at_one_worker_ends_all_of_it_everywhere(workers: Cluster):
    """DELETE: calls are cancelled and say so, streams end, and the session is unknown from then on
    (`HTL-42`)."""
    async with session(workers) as mine:
        names = [f"d{n}{mine.id}" for n in range(2)]
        calls = [
            await mine.begin(n, "tools/call", tool("hang", name=name))
            for n, name in enumerate(names)
        ]
        for call in calls:
            assert (await call.message())["method"] == "notifications/progress"
        listening = await mine.listen(1)
        await listening.next()
        assert await mine.delete(2) == 204
        for call, name in zip(calls, names, strict=True):
            (said,) = await call.messages()
            assert "session" in said["error"]["message"]
            noted(workers.folder, f"{name} was cancelled")
        assert await listening.messages() == []
        for worker in range(3):
            gone = await mine.send(worker, mine.request("ping"))
            assert gone.status == 404
            assert (await mine.get(worker)).status == 404
        assert await mine.delete(0) == 404

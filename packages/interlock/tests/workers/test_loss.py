"""kill -9 of one worker under load: no session is lost, the calls it was running end with a clear
error, and everything else goes on."""

from __future__ import annotations

import asyncio

import pytest

from interlock import Client, Unreachable
from interlock import types as t
from interlock.wire.revisions import R4, R5
from tests.workers.clusters import Cluster, cluster, marks, noted
from tests.workers.loads import Load, check, more
from tests.workers.raw import session, tool

pytestmark = pytest.mark.slow


async def test_the_loss_of_a_worker(store: str, tmp_path):
    """Everything that may be under way, at the worker that dies and at the others."""
    with cluster(tmp_path, 3, store=store) as workers:
        loads = [Load(workers.url, revision) for revision in (R4, R4, R5)]
        async with asyncio.timeout(60), asyncio.TaskGroup() as group, session(workers) as mine:
            for load in loads:
                group.create_task(load.run())
            await more(loads)
            await lose_a_worker(workers, mine)
            await more(loads)
            for load in loads:
                load.stop = True
        check(loads, deaths=1)


async def lose_a_worker(workers: Cluster, mine) -> None:
    """The first one, with two calls of this session and the stream of its notices."""
    await mine.ask(0, "resources/subscribe", {"uri": "thing://1"})
    await mine.ask(0, "logging/setLevel", {"level": "warning"})
    doomed = await mine.begin(0, "tools/call", tool("hang", name="doomed"), id="doomed")
    lucky = await mine.begin(1, "tools/call", tool("hang", name="lucky"), id="lucky")
    notices = await mine.listen(0)
    for stream in (doomed, lucky, notices):
        await stream.next()
    workers.workers[0].process.kill()
    workers.workers[0].process.wait()
    for stream in (doomed, notices):
        with pytest.raises(Unreachable):
            await stream.messages()
    # What it said of changes goes on at the next worker; the session is as it was.
    again = await mine.listen(1, notices.last)
    await mine.call(2, "touch", n=1)
    assert (await again.message())["params"]["uri"] == "thing://1"
    *told, _ = await (await mine.begin(2, "tools/call", tool("speak"))).messages()
    assert [message["params"]["data"] for message in told] == ["warning", "error"]
    # Who comes back for the call is told what became of it, and told the same at any worker ever
    # after.
    rest = await mine.listen(1, doomed.last)
    (lost,) = await rest.messages()
    assert lost["id"] == "doomed"
    assert lost["error"]["data"] == {"reason": "lost"}
    assert "gone" in lost["error"]["message"]
    assert await (await mine.listen(2, doomed.last)).messages() == [lost]
    # The call of the other worker runs on, and can be ended.
    assert not any("lucky was cancelled" in line for line in marks(workers.folder))
    await mine.send(
        2, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "lucky"}}
    )
    await asyncio.to_thread(noted, workers.folder, "lucky was cancelled")


@pytest.mark.parametrize("revision", [R4, R5])
async def test_a_client_is_told_which_of_its_calls_are_lost(store: str, tmp_path, revision: str):
    """Six calls on three workers; two end with words that say what happened, four go on."""
    with cluster(tmp_path, 3, store=store) as workers:
        async with asyncio.timeout(60), Client(workers.url, revision=revision) as client:
            names = [f"h{n}" for n in range(6)]
            calls = {
                name: asyncio.ensure_future(client.call_tool("hang", {"name": name}))
                for name in names
            }
            for name in names:
                await asyncio.to_thread(noted, workers.folder, f"{name} hangs")
            victim = str(workers.workers[0].process.pid)
            doomed = {
                line.split()[1]
                for line in marks(workers.folder)
                if line.startswith(victim) and line.endswith("hangs")
            }
            assert doomed
            workers.workers[0].process.kill()
            workers.workers[0].process.wait()
            for name in doomed:
                with pytest.raises((t.Unreachable, t.McpError)) as bad:
                    await calls[name]
                assert any(
                    words in str(bad.value)
                    for words in ("before the answer", "not known", "status 502")
                )
            assert not any(calls[name].done() for name in names if name not in doomed)
            assert (await client.call_tool("pid")).value()
            for name in set(names) - doomed:
                calls[name].cancel()
            await asyncio.gather(*calls.values(), return_exceptions=True)


async def test_a_worker_that_is_told_to_end_takes_nothing_along(store: str, tmp_path):
    """SIGTERM under load, one worker after the other: calls finish, and streams go on elsewhere
    with all that was missed."""
    with cluster(tmp_path, 3, store=store) as workers:
        loads = [Load(workers.url, revision) for revision in (R4, R5) * 4]
        async with (
            asyncio.timeout(60),
            Client(workers.url, revision=R4) as client,
            client.watch(resources=["thing://1"]) as changes,
            asyncio.TaskGroup() as group,
        ):
            for load in loads:
                group.create_task(load.run())
            for worker in workers.workers[:2]:
                await more(loads)
                assert await asyncio.to_thread(worker.end) == 0
                await client.call_tool("touch", {"n": 1})
                assert (await anext(changes)).uri == "thing://1"
            await more(loads)
            for load in loads:
                load.stop = True
        for load in loads:
            assert not [bad for bad in load.failed if "status 503" not in str(bad)]

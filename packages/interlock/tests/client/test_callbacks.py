"""Callbacks for progress, log messages and other notifications: plain or async, in order, and never
lost without a word.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, ClientSettings, Context, Server, TimedOut
from interlock import types as t
from interlock.client.callbacks import Callbacks
from interlock.sync import Client as SyncClient
from interlock.wire.revisions import NEWEST, R4
from tests.client.peers import SECONDS, Peer, text

BOTH = pytest.mark.parametrize("revision", [R4, NEWEST])


def counter(revision: str) -> Server:
    """A server whose tool counts to five, aloud, and in its log."""
    server = Server("counter", revisions=revision)

    @server.tool
    async def count(ctx: Context) -> str:
        for n in range(5):
            ctx.progress(n, 5)
            ctx.log.info(str(n))
        return "counted"

    return server


@BOTH
async def test_an_async_progress_function_has_heard_all_before_the_call_returns(revision: str):
    """In order, one after the other, though each takes its time."""
    received: list[float] = []
    running = 0

    async def receive(progress: t.ProgressNotificationParams) -> None:
        nonlocal running
        running += 1
        assert running == 1
        for _ in range(10):
            await asyncio.sleep(0)
        received.append(progress.progress)
        running -= 1

    async with asyncio.timeout(SECONDS), Client(counter(revision)) as client:
        result = await client.call_tool("count", on_progress=receive)
    assert (result.text, received) == ("counted", [0, 1, 2, 3, 4])


@BOTH
async def test_a_plain_progress_function_has_no_task(revision: str):
    """It is called in the turn of the loop in which its notification came."""
    tasks: set[Any] = set()
    received: list[float] = []

    def receive(progress: t.ProgressNotificationParams) -> None:
        received.append(progress.progress)
        tasks.update(asyncio.all_tasks())

    async with Client(counter(revision)) as client:
        before = asyncio.all_tasks()
        await client.call_tool("count", on_progress=receive)
    assert received == [0, 1, 2, 3, 4]
    assert not [task for task in tasks - before if "Callbacks" in repr(task)]


async def fails(*args: Any) -> None:
    await asyncio.sleep(0)
    raise ValueError("a callback that fails")


def fails_at_once(*args: Any) -> None:
    raise ValueError("a callback that fails")


@BOTH
@pytest.mark.parametrize("function", [fails, fails_at_once])
async def test_what_a_callback_raises_is_logged(
    revision: str, function: Callable[..., Any], caplog: pytest.LogCaptureFixture
):
    """The call is answered as ever, and every notification is told."""
    with caplog.at_level(logging.ERROR, "interlock.client"):
        async with asyncio.timeout(SECONDS), Client(counter(revision)) as client:
            assert (await client.call_tool("count", on_progress=function)).text == "counted"
    assert caplog.text.count("ValueError: a callback that fails") == 5
    assert function.__qualname__ in caplog.text


@BOTH
async def test_async_functions_hear_log_messages_and_notifications(revision: str):
    """Also those that still wait when the client closes."""
    messages: list[str] = []
    changes: list[str] = []
    changed = asyncio.Event()

    async def on_log(message: t.LoggingMessageNotificationParams) -> None:
        await asyncio.sleep(0)
        messages.append(message.data)

    async def on_notification(method: str, params: Any) -> None:
        await asyncio.sleep(0)
        changes.append(method)
        changed.set()

    server = counter(revision)
    async with (
        asyncio.timeout(SECONDS),
        Client(server, log_level="debug", on_log=on_log, on_notification=on_notification) as client,
        client.watch(tools=True) if revision == NEWEST else client,
    ):
        await client.call_tool("count")
        if revision == R4:

            @server.tool
            async def another() -> None: ...

            await changed.wait()
    assert messages == ["0", "1", "2", "3", "4"]
    assert changes == (["notifications/tools/list_changed"] if revision == R4 else [])


async def test_an_async_function_hears_the_stderr_of_a_child(tmp_path: Path):
    """Line by line."""
    script = tmp_path / "noisy.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            from interlock import Server
            server = Server("noisy")
            print("one", file=sys.stderr)
            print("two", file=sys.stderr, flush=True)
            server.run(log="off")
            """
        )
    )
    lines: list[str] = []

    async def on_stderr(line: str) -> None:
        await asyncio.sleep(0)
        lines.append(line)

    async with (
        asyncio.timeout(60),
        Client(
            [sys.executable, str(script)],
            on_stderr=on_stderr,
            settings=ClientSettings(probe_timeout=60),
        ) as client,
    ):
        await client.ping()
    assert lines == ["one", "two"]


@BOTH
async def test_a_progress_function_may_use_the_client(revision: str):
    """Its call is one of its own."""
    answers: list[str] = []
    server = counter(revision)

    @server.tool
    async def greet() -> str:
        return "hello"

    async with asyncio.timeout(SECONDS), Client(server) as client:

        async def receive(progress: t.ProgressNotificationParams) -> None:
            answers.append((await client.call_tool("greet")).text)

        await client.call_tool("count", on_progress=receive)
    assert answers == ["hello"] * 5


async def test_a_call_that_is_given_up_gives_up_its_callbacks():
    """By its timeout or by whoever cancelled it; nothing is left running."""
    ended: list[str] = []
    began = asyncio.Event()

    async def receive(progress: t.ProgressNotificationParams) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    server = Server("slow")

    @server.tool
    async def wait(ctx: Context) -> None:
        ctx.progress(1)
        await asyncio.Event().wait()

    async with asyncio.timeout(SECONDS), Client(server) as client:
        call = asyncio.create_task(client.call_tool("wait", on_progress=receive))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert ended == ["cancelled"]
        with pytest.raises(TimedOut):
            await client.call_tool("wait", on_progress=receive, timeout=0.2)
        assert set(ended) == {"cancelled"}


async def test_progress_that_comes_with_the_answer_in_one_piece_is_heard():
    """What is read at once is told in its order."""
    received: list[float] = []

    async def receive(progress: t.ProgressNotificationParams) -> None:
        await asyncio.sleep(0)
        received.append(progress.progress)

    def act(message: dict[str, Any]) -> Any:
        for n in (1, 2):
            params = {"progressToken": message["params"]["_meta"]["progressToken"], "progress": n}
            peer.tell("notifications/progress", params)
        return text("done")

    async with (
        asyncio.timeout(SECONDS),
        Peer({"tools/call": act}) as peer,
        Client(peer.channel) as client,
    ):
        assert (await client.call_tool("act", on_progress=receive)).text == "done"
        assert received == [1, 2]


async def test_a_function_that_is_too_slow_does_not_fill_the_memory(
    caplog: pytest.LogCaptureFixture,
):
    """10,000 notifications wait for it; what comes beyond is dropped, with one warning."""
    received: list[int] = []
    gate = asyncio.Event()

    async def receive(n: int) -> None:
        await gate.wait()
        received.append(n)

    callbacks = Callbacks()
    for n in range(10_100):
        callbacks.call(receive, n)
    gate.set()
    await callbacks.finished()
    assert received == list(range(10_001))
    assert caplog.text.count("is too slow") == 1


async def test_what_waits_for_a_slow_function_is_bounded_in_bytes(
    caplog: pytest.LogCaptureFixture,
):
    """Large messages fill 8 MiB long before there are many; how many were missed is told."""
    received: list[Any] = []
    gate = asyncio.Event()

    async def receive(params: Any) -> None:
        await gate.wait()
        received.append(params)

    callbacks = Callbacks()
    message = t.LoggingMessageNotificationParams(level="error", data="x" * 1024 * 1024)
    for _ in range(100):
        callbacks.call(receive, message)
    gate.set()
    await callbacks.finished()
    assert len(received) == 8
    assert "missed 92 notifications" in caplog.text
    callbacks.call(receive, message)
    await callbacks.finished()
    assert len(received) == 9


async def test_a_function_that_cancels_itself_does_not_stop_the_others():
    """The next notification is told."""
    received: list[int] = []

    async def receive(n: int) -> None:
        await asyncio.sleep(0)
        if n == 0:
            raise asyncio.CancelledError
        received.append(n)

    callbacks = Callbacks()
    for n in range(3):
        callbacks.call(receive, n)
    await callbacks.finished()
    assert received == [1, 2]


def test_the_client_without_asyncio_takes_both_kinds():
    """They run in its loop."""
    received: list[float] = []

    async def receive(progress: t.ProgressNotificationParams) -> None:
        await asyncio.sleep(0)
        received.append(progress.progress)

    with SyncClient(counter(NEWEST)) as client:
        client.call_tool("count", on_progress=receive)
        client.call_tool("count", on_progress=lambda progress: received.append(progress.progress))
    assert received == [0, 1, 2, 3, 4] * 2

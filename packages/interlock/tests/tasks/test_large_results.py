"""Results above the size limit: the task links to a resource that its owner can read, on any
worker, for as long as the task is kept.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, McpError, Principal, Server, TaskLimits, Tasks
from interlock import types as t
from interlock.store import MemoryStore, Store
from interlock.tasks import large_results
from interlock.types.tasks import Task
from tests.store.makers import KINDS, fresh
from tests.tasks.test_quotas import ALICE, BOB, Worker, refusal, serving

TEXT = "Zürich, Bern, 東京. " * 10  # no chunk of 64 bytes ends between two characters by itself
SMALL = {"result_bytes": 100, "large_results_bytes": 64 * 30}


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_results, "_CHUNK_BYTES", 64)


async def ended(worker: Worker, who: Principal, id: str) -> Task:
    """Poll a task until it has ended. A poll that comes early waits for a change."""
    async with asyncio.timeout(30):
        while True:
            state = await worker.get(who, id)
            if state.is_terminal:
                return state


def result_of(state: Task) -> dict[str, Any]:
    """The result of a completed task."""
    assert state.status == "completed"
    result: dict[str, Any] = json.loads(bytes(state.result))  # type: ignore[arg-type]  # it is there
    return result


def link_of(state: Task) -> str:
    """The URI that the result of a task links to."""
    words, link = result_of(state)["content"]
    assert link["uri"] in words["text"]
    assert link["mimeType"] == "application/json"
    assert link["size"] > 100
    uri: str = link["uri"]
    return uri


async def read(worker: Worker, who: Principal | str, uri: str) -> dict[str, Any]:
    """The large result behind a link."""
    result = await worker.request(who, "resources/read", t.ReadResourceRequestParams(uri=uri))
    assert result.cache_scope == "private"
    (contents,) = result.contents
    assert (contents.uri, contents.mime_type) == (uri, "application/json")
    found: dict[str, Any] = json.loads(contents.text)
    return found


async def is_unknown(worker: Worker, who: Principal | str, uri: str) -> bool:
    """Whether a link leads nowhere, in the same words as any other resource."""
    bad = await refusal(read(worker, who, uri))
    other = await refusal(read(worker, who, "task-result:none"))
    return (bad.code, bad.message.replace(uri, "task-result:none")) == (other.code, other.message)


async def stored_chunks(store: Store) -> int:
    """The number of chunks in a store."""
    return len(await store.records.keys("task-result:", now=0.0))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_large_result_is_a_link_for_its_owner(kind: str, tmp_path: Path, redis_url: str):
    """Any worker reads the whole result; for others the link leads nowhere."""
    workers = [Worker(each, **SMALL) for each in fresh(kind, tmp_path, redis_url)]
    one, other = workers[0], workers[-1]
    async with serving(*workers):
        state = await ended(one, ALICE, await one.create(ALICE, "echo", text=TEXT))
        uri = link_of(state)
        assert not result_of(state).get("isError")
        whole = await read(other, ALICE, uri)
        assert whole["content"] == [{"type": "text", "text": TEXT}]
        assert whole == await read(one, ALICE, uri)
        assert await is_unknown(other, BOB, uri)
        assert await is_unknown(other, "203.0.113.9", uri)
        small = await ended(one, ALICE, await one.create(ALICE, "echo", text="x"))
        assert result_of(small)["content"] == [{"type": "text", "text": "x"}]
        assert await is_unknown(one, ALICE, f"task-result:{small.task_id}")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_large_result_goes_with_its_task(kind: str, tmp_path: Path, redis_url: str):
    """A task that makes room for another one takes its result with it."""
    stores = fresh(kind, tmp_path, redis_url)
    workers = [Worker(each, tasks=1, **SMALL) for each in stores]
    one, other = workers[0], workers[-1]
    async with serving(*workers):
        uri = link_of(await ended(one, ALICE, await one.create(ALICE, "echo", text=TEXT)))
        assert await stored_chunks(stores[0]) > 1
        await other.create(ALICE)
        assert await stored_chunks(stores[0]) == 0
        assert await is_unknown(one, ALICE, uri)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_large_result_expires_with_its_task(kind: str, tmp_path: Path, redis_url: str):
    """The clock of the readers decides."""
    now = [1000.0]
    store = fresh(kind, tmp_path, redis_url)[0]
    tasks = Tasks(store, limits=TaskLimits(ttl=60.0, **SMALL), wall_clock=lambda: now[0])
    worker = Worker()
    worker.server = Server("expiring", extensions=[tasks])

    @worker.server.tool(task="required")
    async def echo(text: str) -> str:
        return text

    async with serving(worker):
        uri = link_of(await ended(worker, ALICE, await worker.create(ALICE, "echo", text=TEXT)))
        now[0] += 59.0
        assert (await read(worker, ALICE, uri))["content"][0]["text"] == TEXT
        now[0] += 2.0
        assert await is_unknown(worker, ALICE, uri)


@pytest.mark.parametrize("kind", KINDS)
async def test_large_results_have_a_quota_over_all_workers(
    kind: str, tmp_path: Path, redis_url: str
):
    """One too many fails and leaves nothing behind; others still have theirs."""
    stores = fresh(kind, tmp_path, redis_url)
    workers = [Worker(each, result_bytes=100, large_results_bytes=64 * 6) for each in stores]
    one, other = workers[0], workers[-1]
    async with serving(*workers):
        await ended(one, ALICE, await one.create(ALICE, "echo", text="x" * 200))
        kept = await stored_chunks(stores[0])
        refused = await ended(other, ALICE, await other.create(ALICE, "echo", text="x" * 200))
        assert refused.status == "failed"
        assert "too large to be kept" in (refused.status_message or "")
        assert await stored_chunks(stores[0]) == kept
        await read(
            one, BOB, link_of(await ended(one, BOB, await one.create(BOB, "echo", text="x" * 200)))
        )


async def test_a_result_above_every_limit_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(large_results, "_LARGEST_BYTES", 150)
    worker = Worker(**SMALL)
    async with serving(worker):
        state = await ended(worker, ALICE, await worker.create(ALICE, "echo", text=TEXT))
        assert "too large to be kept" in (state.status_message or "")


async def test_a_large_result_counts_in_memory():
    """A memory store keeps it in the process, where the budget of the server counts it."""
    store = MemoryStore()
    worker = Worker(store, **SMALL)
    async with serving(worker):
        await ended(worker, ALICE, await worker.create(ALICE, "echo", text="x"))
        before = worker.server.memory.held(ALICE.key)
        await ended(worker, ALICE, await worker.create(ALICE, "echo", text=TEXT))
        assert worker.server.memory.held(ALICE.key) > before + len(TEXT.encode())


async def test_a_large_result_is_encrypted_at_rest():
    """With `keys`, as the task itself."""
    store = MemoryStore()
    server = Server(
        "sealed", extensions=[Tasks(store, limits=TaskLimits(**SMALL), keys=[b"k" * 32])]
    )

    @server.tool(task="required")
    async def echo(text: str) -> str:
        return text

    async with Client(server) as client:
        result = await client.call_tool("echo", {"text": TEXT})
        (link,) = [block for block in result.content if isinstance(block, t.ResourceLink)]
        for key in await store.records.keys("task-result:", now=0.0):
            record = await store.records.load(key, now=0.0)
            assert record is not None
            assert b"rich" not in record.data
        (contents,) = (await client.read_resource(link.uri)).contents
        assert json.loads(contents.text or "")["content"][0]["text"] == TEXT


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_large_structured_result_has_its_content_and_a_link(revision: str, fails: bool):
    """The output schema promises structured content, and a tool that succeeded is no error. The
    text of the result is behind the link.
    """
    server = Server("lists", extensions=[Tasks(limits=TaskLimits(**SMALL))])
    data = {"numbers": list(range(100))}

    @server.tool(task="required", output_schema={"type": "object", "required": ["numbers"]})
    async def numbers() -> t.CallToolResult:
        return t.CallToolResult(
            content=[t.TextContent("x" * 200)], structured_content=data, is_error=fails
        )

    async with Client(server, revision=revision) as client:
        result = await client.call_tool("numbers")
        assert result.is_error is fails
        assert result.structured_content == data
        assert "Read it as the resource" in result.text
        (link,) = [block for block in result.content if isinstance(block, t.ResourceLink)]
        (contents,) = (await client.read_resource(link.uri)).contents
        whole = json.loads(contents.text or "")
        assert whole["structuredContent"] == data
        assert whole["content"] == [{"type": "text", "text": "x" * 200}]


async def test_other_resources_are_left_to_the_server():
    """A resource of the same scheme that an author has."""
    server = Server("own", extensions=[Tasks()])
    server.resource("task-result:mine")(lambda: "mine")
    async with Client(server) as client:
        (contents,) = (await client.read_resource("task-result:mine")).contents
        assert contents.text == "mine"
        with pytest.raises(McpError):
            await client.read_resource("task-result:theirs")

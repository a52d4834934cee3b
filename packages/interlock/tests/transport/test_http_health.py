"""Health checks: liveness, and readiness that knows the store, its disk, drain and load."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Client, Limits, Server
from interlock.quotas import Quota
from interlock.store import MemoryStore, SqliteStore, StoreError
from interlock.store.worker_messages import WorkerMessages
from interlock.transport.http.health import HealthChecks
from interlock.transport.http.running_calls import RunningCalls
from interlock.transport.http.shutdown import Shutdown
from interlock.transport.http.ticker import Ticker

WELL = {"drain": "ok", "load": "ok", "store": "ok", "disk": "ok"}


async def get(app: Any, path: str, method: str = "GET") -> tuple[int, Any]:
    """Ask an app, without a server beneath it."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": [(b"host", b"localhost")]}
    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    kinds = dict(sent[0]["headers"])
    is_json = kinds.get(b"content-type") == b"application/json"
    return sent[0]["status"], msgspec.json.decode(body) if is_json else body


async def test_a_server_that_is_well():
    app = Server("s").http_app()
    assert await get(app, "/health") == (200, {"status": "ok"})
    assert await get(app, "/health/live") == (200, {"status": "ok"})
    assert await get(app, "/health/ready") == (200, {"status": "ready", "checks": WELL})
    assert await get(app, "/health/ready", "HEAD") == (200, b"")
    assert (await get(app, "/health/ready", "POST"))[0] == 404
    assert (await get(app, "/health/other"))[0] == 404
    await app.aclose()


async def test_a_server_that_drains_is_live_and_not_ready():
    app = Server("s").http_app()
    await app.open()
    await app.drain(0.0)
    assert await get(app, "/health") == (503, {"status": "draining"})
    assert await get(app, "/health/live") == (200, {"status": "ok"})
    checks = {**WELL, "drain": "draining"}
    assert await get(app, "/health/ready") == (503, {"status": "not ready", "checks": checks})
    await app.aclose()


async def test_a_server_with_as_many_calls_as_may_run_is_not_ready():
    server = Server("s")
    entered = asyncio.Event()
    go_on = asyncio.Event()

    @server.tool
    async def wait() -> str:
        entered.set()
        await go_on.wait()
        return "done"

    app = server.http_app(limits=Limits(calls=1))
    from interlock import listening_socket, serve_http  # the extra `http`

    sock = listening_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    serving = asyncio.ensure_future(serve_http(app, sock, grace=1.0))
    async with asyncio.timeout(20), Client(f"http://127.0.0.1:{port}/mcp") as client:
        call = asyncio.ensure_future(client.call_tool("wait"))
        await entered.wait()
        checks = {**WELL, "load": "full"}
        assert await get(app, "/health/ready") == (503, {"status": "not ready", "checks": checks})
        assert (await get(app, "/health/live"))[0] == 200
        go_on.set()
        assert (await call).text == "done"
        assert (await get(app, "/health/ready"))[0] == 200
    serving.cancel()
    await asyncio.wait({serving})


async def test_a_server_whose_store_is_away_is_not_ready():
    """Until its heartbeat reaches the store again."""
    store = MemoryStore()
    store.shared = True  # type: ignore[misc]  # a constant of the class
    beat = store.workers.heartbeat
    tried = asyncio.Event()
    is_away = True

    async def heartbeat(worker: str, *, until: float) -> None:
        tried.set()
        if is_away:
            raise StoreError("away")
        await beat(worker, until=until)

    store.workers.heartbeat = heartbeat  # type: ignore[method-assign]  # a store that fails
    app = Server("s").http_app(store=store)
    await app.open()
    async with asyncio.timeout(20):
        await tried.wait()
        checks = {**WELL, "store": "away"}
        assert await get(app, "/health/ready") == (503, {"status": "not ready", "checks": checks})
        assert await get(app, "/health/live") == (200, {"status": "ok"})
        is_away = False
        tried.clear()
        await tried.wait()
        assert await get(app, "/health/ready") == (200, {"status": "ready", "checks": WELL})
    await app.aclose()


@pytest.mark.parametrize(
    "free,status,disk",
    [(10**9, 200, "ok"), (10**6, 503, "full"), (OSError("gone"), 503, "unreadable")],
)
async def test_the_disk_of_the_store(
    tmp_path: Path, free: int | OSError, status: int, disk: str
) -> None:
    """It is looked at once in a while, however often somebody asks."""
    looked: list[Path] = []

    def look(folder: Path) -> int:
        looked.append(folder)
        if isinstance(free, OSError):
            raise free
        return free

    async def drain() -> None: ...

    store = SqliteStore(tmp_path / "store.db")
    shutdown = Shutdown(drain)
    calls = RunningCalls(Limits(), Quota(1), Ticker(15.0, shutdown.check))
    checks = HealthChecks("/health", store, WorkerMessages(store), shutdown, calls, free=look)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await checks.answer(scope["path"], scope, send)

    for _ in range(3):
        found = await get(app, "/health/ready")
        assert (found[0], found[1]["checks"]) == (status, {**WELL, "disk": disk})
    assert looked == [tmp_path]


async def test_the_checks_can_be_moved_and_turned_off():
    moved = Server("s").http_app(health="/status/")
    assert (await get(moved, "/status"))[0] == 200
    assert (await get(moved, "/status/ready"))[0] == 200
    assert (await get(moved, "/health"))[0] == 404
    off = Server("s").http_app(health=None)
    for path in ("/health", "/health/live", "/health/ready"):
        assert (await get(off, path))[0] == 404
    for app in (moved, off):
        await app.aclose()
    for wrong in ("status", "/", ""):
        with pytest.raises(ValueError, match="health"):
            Server("s").http_app(health=wrong)

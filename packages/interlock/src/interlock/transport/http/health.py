"""Health checks over HTTP: liveness and readiness (of the store, the disk, drain and load)."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...store.interface import Store
from ...store.worker_messages import WorkerMessages
from .requests import Scope, Send, send_body
from .running_calls import RunningCalls
from .shutdown import Shutdown

DEFAULT_PATH = "/health"
_FREE_BYTES = 16 * 1024 * 1024  # with less free space on its disk a store counts as full
_DISK_SECONDS = 2.0  # between two looks at the free space, at most

FreeBytes = Callable[[Path], int]


def free_bytes(folder: Path) -> int:
    """Return the free space of the disk of a folder, in bytes."""
    return shutil.disk_usage(folder).free


class HealthChecks:
    """Answers `/health`, `/health/live` and `/health/ready`, as JSON without secrets.

    Live means that this process answers at all. Ready means that it can serve new requests: it does
    not drain, has room for another call, and its store answers and has free space. `/health` only
    knows drain.

    Args:
        path: The path above; None if there are no health checks.
        store: The store of the endpoint.
        messages: Knows whether the last heartbeat reached the store.
        shutdown: Knows whether the endpoint drains.
        calls: Knows whether there is room for another call.
        free: Returns the free space of the disk of a folder.
    """

    def __init__(
        self,
        path: str | None,
        store: Store,
        messages: WorkerMessages,
        shutdown: Shutdown,
        calls: RunningCalls,
        *,
        free: FreeBytes = free_bytes,
    ) -> None:
        self.paths: tuple[str, ...] = ()
        if path is not None:
            self.paths = (path, f"{path}/live", f"{path}/ready")
        self._folder: Path | None = getattr(store, "folder", None)
        self._messages = messages
        self._shutdown = shutdown
        self._calls = calls
        self._free = free
        self._disk = "ok"
        self._looked = 0.0  # when the free space was looked at, on the clock of the loop

    async def answer(self, path: str, scope: Scope, send: Send) -> None:
        """Answer a GET or HEAD of one of the paths."""
        own, live, _ = self.paths
        status = 200
        found: dict[str, object] = {"status": "ok"}
        if path == own:
            if self._shutdown.is_draining:
                status = 503
                found = {"status": "draining"}
        elif path != live:
            checks = await self._checks()
            if any(each != "ok" for each in checks.values()):
                status = 503
            found = {"status": "ready" if status == 200 else "not ready", "checks": checks}
        body = msgspec.json.encode(found)
        headers = ((b"cache-control", b"no-store"),)
        body = b"" if scope["method"] == "HEAD" else body
        await send_body(send, status, body, headers=headers)

    async def _checks(self) -> dict[str, str]:
        """Return what each check has found; "ok" if all is well."""
        return {
            "drain": "draining" if self._shutdown.is_draining else "ok",
            "load": "full" if self._calls.is_full else "ok",
            "store": "away" if self._messages.is_store_away else "ok",
            "disk": await self._check_disk(),
        }

    async def _check_disk(self) -> str:
        """Look at the free space of the store's disk, not too often: anyone may ask."""
        now = asyncio.get_running_loop().time()
        if self._folder is not None and (not self._looked or now - self._looked >= _DISK_SECONDS):
            self._looked = now
            try:
                free = await asyncio.to_thread(self._free, self._folder)
            except OSError:
                self._disk = "unreadable"
            else:
                self._disk = "ok" if free >= _FREE_BYTES else "full"
        return self._disk

"""The audit of a gateway: who asked for what, the decision and its reason, and how it ended."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from interlock import AnyResult, AuditCheck, McpError, RawResult
from interlock.store import AuditLog
from interlock.types import INTERNAL_ERROR

from .asked import Asked

log = logging.getLogger("interlock_apps.gateway")

MOST_WAITING = 10_000
"""Entries that wait to be written. Without `required`, further ones are lost, and counted."""
MOST_RECENT = 500
"""Entries that the page shows."""

_BATCH = 500
_PAUSE = 0.02  # seconds in which entries are collected, unless a request waits for its entry
_MOST_CHARACTERS = 500  # of a name that a caller or a server chose
_MOST_ARGUMENTS = 8_000  # characters


class AuditOptions(Struct, frozen=True, kw_only=True):
    """What the audit of a gateway records.

    Attributes:
        path: The file; None for the recent entries in memory only.
        required: Whether a request is refused while its start cannot be recorded (fail-closed). Its
            entries are flushed to the disk.
        arguments: Whether the arguments are recorded. Hazard: they may contain secrets.
    """

    path: Path | None = None
    required: bool = False
    arguments: bool = False


class AuditWriter:
    """Appends entries to an audit log in batches, in a thread. A process that is killed loses the
    entries of the last 20 ms, but for those that a request waits for.

    Args:
        log: The file.
        on_lost: Called with the number of entries that could not be written, and the reason.
    """

    def __init__(self, log: AuditLog, on_lost: Callable[[int, str], object]) -> None:
        self._log = log
        self._on_lost = on_lost
        self._waiting: deque[tuple[Mapping[str, Any], asyncio.Future[None] | None]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def put(self, entry: Mapping[str, Any]) -> None:
        """Write an entry soon."""
        if len(self._waiting) >= MOST_WAITING:
            self._on_lost(1, "too many entries wait")
            return
        self._waiting.append((entry, None))
        if self._task is None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._start)

    async def write(self, entry: Mapping[str, Any]) -> None:
        """Write an entry, and wait until it is in the file.

        Raises:
            OSError, ValueError: It could not be written.
        """
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, written))
        self._start()
        await written

    async def aclose(self) -> None:
        """Write all entries that wait."""
        self._start()
        while self._task is not None:
            await asyncio.wait({self._task})

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                count = min(_BATCH, len(self._waiting))
                batch = [self._waiting.popleft() for _ in range(count)]
                await self._append(batch)
        finally:
            self._task = None

    async def _append(
        self, batch: list[tuple[Mapping[str, Any], asyncio.Future[None] | None]]
    ) -> None:
        failure: Exception | None = None
        try:
            await asyncio.to_thread(self._log.append_all, [entry for entry, _ in batch])
        except (OSError, ValueError) as bad:
            failure = bad
        lost = 0
        for _, written in batch:
            if written is None:
                lost += failure is not None
            elif not written.done():
                if failure is None:
                    written.set_result(None)
                else:
                    written.set_exception(failure)
        if lost:
            self._on_lost(lost, str(failure))


class AuditedRequest:
    """The entry of one request, from its start to its end. `GatewayAudit.start` makes it."""

    __slots__ = ("_audit", "_began", "entry")

    def __init__(self, audit: GatewayAudit, entry: dict[str, Any], began: float) -> None:
        self._audit = audit
        self._began = began
        self.entry = entry

    async def write_start(self) -> None:
        """Write the start of the request, and wait until it is on the disk.

        Raises:
            McpError: It cannot be written.
        """
        await self._audit.write_start(self.entry)

    def decide(self, by: str, decision: str, why: str) -> None:
        """Record a decision. A later one replaces it only if it is stricter than "allow".

        Args:
            by: What decided: "policy", "hook", "caller" (its answer) or "limits".
            decision: "allow", "ask" or "deny".
            why: The reason in words.
        """
        if decision != "allow" or "decision" not in self.entry:
            self.entry.update(by=by, decision=decision, why=_bounded(why))

    def note_result(self, result: AnyResult) -> None:
        """Record the size and the digest of an encoded answer."""
        if isinstance(result, RawResult):
            self.entry["resultBytes"] = len(result.body)
            self.entry["resultDigest"] = _digest(result.body)

    def end(self, outcome: str) -> None:
        """Record the end of the request."""
        loop = asyncio.get_running_loop()
        self.entry["ms"] = round((loop.time() - self._began) * 1000.0, 3)
        self.entry["outcome"] = outcome
        self._audit.put("ended", self.entry)


class GatewayAudit:
    """Records requests in an append-only file whose lines are chained by their hashes.

    Hazard: the chain has no key. Keep the last hash of `check` elsewhere.

    Args:
        options: What is recorded; by default the recent entries in memory.
    """

    def __init__(self, options: AuditOptions | None = None) -> None:
        options = options or AuditOptions()
        self.options = options
        self._log: AuditLog | None = None
        self._writer: AuditWriter | None = None
        if options.path is not None:
            self._log = AuditLog(options.path, sync=options.required)
            self._writer = AuditWriter(self._log, self._count_lost)
        self.recent: deque[Mapping[str, Any]] = deque(maxlen=MOST_RECENT)
        """The newest entries of this worker."""
        self.lost = 0
        """How many entries could not be written since the start."""

    @property
    def is_on(self) -> bool:
        """Whether there is a file."""
        return self._log is not None

    @property
    def is_required(self) -> bool:
        """Whether a request is refused while its start cannot be recorded."""
        return self._writer is not None and self.options.required

    def start(self, asked: Asked) -> AuditedRequest:
        """Begin the entry of a request. If the audit is required, `write_start` has to follow."""
        entry: dict[str, Any] = {
            "id": os.urandom(8).hex(),
            "view": asked.view,
            "server": asked.server,
            "method": asked.method,
            "kind": asked.kind,
            "name": _bounded(asked.name),
            "subject": _bounded(asked.subject),
            "client": _bounded(asked.client),
            "revision": asked.revision,
            "argumentBytes": len(asked.raw_arguments),
            "argumentDigest": _digest(asked.raw_arguments),
        }
        if asked.issuer:
            entry["issuer"] = _bounded(asked.issuer)
        if asked.replayed:
            entry["replayed"] = True
        if self.options.arguments:
            text = asked.raw_arguments.decode("utf-8", "replace")
            entry["arguments"] = text[:_MOST_ARGUMENTS]
        return AuditedRequest(self, entry, asyncio.get_running_loop().time())

    async def write_start(self, entry: Mapping[str, Any]) -> None:
        """Write the start of a request, and wait until it is on the disk.

        Raises:
            McpError: It cannot be written.
        """
        assert self._writer is not None  # only a required audit does this
        try:
            await self._writer.write(_dated("started", entry))
        except (OSError, ValueError) as bad:
            log.error("a request is refused, because the audit cannot be written: %s", bad)
            words = "The gateway cannot record this request, so it does not pass it on."
            raise McpError(INTERNAL_ERROR, words, {"reason": "audit"}) from bad

    def note(self, event: str, entry: Mapping[str, Any]) -> None:
        """Record something else than a request, such as a changed tool or a suspicion."""
        self.put(event, {name: _short(value) for name, value in entry.items()})

    def put(self, event: str, entry: Mapping[str, Any]) -> None:
        """Write an entry soon."""
        dated = _dated(event, entry)
        self.recent.append(dated)
        if self._writer is not None:
            self._writer.put(dated)

    async def aclose(self) -> None:
        """Write all entries that wait."""
        if self._writer is not None:
            await self._writer.aclose()

    def check(self) -> AuditCheck | None:
        """Check the chain of hashes; None without a file. Raises OSError."""
        return None if self._log is None else self._log.check()

    def _count_lost(self, count: int, why: str) -> None:
        self.lost += count
        log.error("%d entries of the audit are lost: %s", count, why)


def read_entries(path: Path, *, after: str = "", server: str = "") -> Iterator[bytes]:
    """Yield the lines of an audit file, as JSON lines for an export.

    Args:
        path: The file.
        after: Only entries from this time on, in ISO 8601; all by default.
        server: Only entries about this server; all by default.

    Raises:
        OSError: The file cannot be read.
    """
    with open(path, "rb") as file:
        for line in file:
            if not after and not server:
                yield line
                continue
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the part of a line that a killed process left
            if entry.get("time", "") >= after and server in ("", entry.get("server")):
                yield line


def _dated(event: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"time": time, "event": event, **entry}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if data else ""


def _short(value: Any) -> Any:
    return _bounded(value) if isinstance(value, str) else msgspec.to_builtins(value)


def _bounded(text: str) -> str:
    """Shorten what somebody else chose, and replace what UTF-8 cannot encode."""
    if len(text) <= _MOST_CHARACTERS and text.isascii():
        return text
    return text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode()

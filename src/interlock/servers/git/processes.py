"""Processes that are ended with all that they started, and what is read from them while they run."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from .children import Child

GRACE = 2.0  # seconds that git gets to end by itself when it is told to
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
MOST_ERRORS = 16 * 1024
CHUNK = 64 * 1024
_STEPS = re.compile(rb"\((\d{1,12})/(\d{1,12})\)")

Tell = Callable[[int, int], None]
One = TypeVar("One")
Other = TypeVar("Other")


async def both(
    one: Coroutine[Any, Any, One], other: Coroutine[Any, Any, Other]
) -> tuple[One, Other]:
    """What comes of two runs that do not need each other, at the same time. Where one fails the other is ended before this raises."""
    tasks = asyncio.ensure_future(one), asyncio.ensure_future(other)
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Front:
    """Where that ends which git writes before a patch: some fields that end with NUL, and then a list that ends with two."""

    def __init__(self, fields: int = 0) -> None:
        self._left, self._at = fields, 0

    def end(self, data: bytes | bytearray) -> int | None:
        """How long it is; None where it goes on beyond what is there so far. Each call has all that the one before had, and more."""
        while self._left:
            found = data.find(b"\0", self._at)
            if found < 0:
                return None
            self._left, self._at = self._left - 1, found + 1
        found = data.find(b"\0\0", self._at)
        self._at = max(self._at, len(data) - 1)
        return found + 2 if found >= 0 else None


class Loose:
    """A process as asyncio has it, where the platform's loop cannot wait for pipes by itself."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process, self.pid, self.stdout, self.stderr = (
            process,
            process.pid,
            process.stdout,
            process.stderr,
        )
        self.wait, self.kill = process.wait, process.kill

    @classmethod
    async def start(
        cls, command: Sequence[str], cwd: Path | str, env: Mapping[str, str], fed: bool
    ) -> Loose:
        """Raises OSError."""
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env=dict(env),
                stdin=pipe if fed else nothing,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
            )
        )
        try:
            # It may have begun before this knows of it: whoever cancels now still has to end its whole group.
            return cls(await asyncio.shield(starting))
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                await _end(cls(await asyncio.shield(starting)))
            raise

    @property
    def returncode(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.returncode

    async def feed(self, data: bytes) -> None:
        """Write its input, as far as it reads it."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        self._process.stdin.close()

    def close(self) -> None:
        """Let go of its pipes."""
        self._process._transport.close()  # type: ignore[attr-defined]  # nothing public closes pipes that nobody reads to their end


Process = Child | Loose
_AT_ONCE = os.name == "posix"


@asynccontextmanager
async def started(
    command: Sequence[str], cwd: Path | str, env: Mapping[str, str], feed: bytes | None, memory: int
) -> AsyncIterator[Process]:
    """A process in a group of its own; however the block is left, nothing of the group stays."""
    fed = feed is not None
    process: Process = (
        Child(command, cwd, env, fed) if _AT_ONCE else await Loose.start(command, cwd, env, fed)
    )
    _bound(process.pid, memory)
    feeding = asyncio.ensure_future(process.feed(feed)) if feed is not None else None
    try:
        yield process
    finally:
        if feeding is not None:
            feeding.cancel()
        await _end(process)


async def _end(process: Process) -> None:
    """End a process and its group, and let go of its pipes; git first gets the time to take its lock files away."""
    try:
        if process.returncode is None:
            _signal(process, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(process.wait()), GRACE)
    finally:
        _signal(process, KILL)
        try:
            if process.returncode is None:
                await asyncio.shield(process.wait())
        finally:
            process.close()


def _signal(process: Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.kill()


def _bound(pid: int, memory: int) -> None:
    """Limit what a process may take, where the platform lets another process do that."""
    if sys.platform == "linux":
        import resource  # not on every platform, and only here

        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (memory, memory))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


async def output_of(process: Process, most: int) -> bytes:
    """What a process writes, up to so many bytes."""
    kept = bytearray()
    while len(kept) < most and (chunk := await process.stdout.read(CHUNK)):
        kept += chunk
    return bytes(kept[:most])


async def divided(process: Process, front: Front, most: int) -> tuple[bytes, bytearray]:
    """What stands before a patch, and what was read beyond it."""
    kept = bytearray()
    while len(kept) <= most and (chunk := await process.stdout.read(CHUNK)):
        kept += chunk
        if (end := front.end(kept)) is not None:
            return bytes(kept[:end]), kept[end:]
    return bytes(kept), bytearray()


async def skipped(process: Process, begun: bytearray, skip: int, seen: hashlib._Hash) -> bytearray:
    """Let so many bytes go by, of which some were read already; what was read beyond them."""
    left, chunk = skip, bytes(begun)
    while left and (chunk := chunk or await process.stdout.read(CHUNK)):
        seen.update(chunk[:left])
        chunk, left = chunk[left:], max(0, left - len(chunk))
    return bytearray(chunk)


async def complaints_of(process: Process, errors: bytearray, tell: Tell | None) -> None:
    """Keep the first of what a process complains of, without its progress, which is told."""
    while chunk := await process.stderr.read(CHUNK):
        if tell is not None:
            for done, total in _STEPS.findall(chunk):
                tell(int(done), int(total))
            chunk = (
                b"\n".join(
                    part for part in re.split(rb"[\r\n]", chunk) if part and not _STEPS.search(part)
                )
                + b"\n"
            )
        errors += chunk[: MOST_ERRORS - len(errors)]


def whole_character(data: bytearray, end: int) -> int:
    """The last place up to `end` at which no character of UTF-8 is cut in two."""
    while end > 1 and data[end] & 0xC0 == 0x80:
        end -= 1
    return end

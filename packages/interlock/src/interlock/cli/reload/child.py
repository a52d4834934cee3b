"""The server as a child process: sends and receives frames, passes stderr on, and stops it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from ...server.request_log import is_request_line
from ...wire.jsonrpc import Frame
from ...wire.lines import LineSplitter

_CHUNK = 64 * 1024
_TAIL = 4 * 1024


class ReloadedChild:
    """One child process. `extra` is added to the environment of this process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._splitter = LineSplitter()
        self._tail = b""
        self._telling = asyncio.create_task(self._pass_stderr())

    @classmethod
    async def start(cls, command: Sequence[str], extra: dict[str, str]) -> ReloadedChild:
        """Start a command. Raises OSError."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **extra},
            start_new_session=sys.platform != "win32",
        )
        return cls(process)

    def send(self, frames: Sequence[Frame]) -> None:
        """Queue frames to be written."""
        if frames and self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(b"\n".join(frames) + b"\n")

    async def drain(self) -> None:
        """Wait until the queue is short; return at once if the child has exited."""
        if self._process.stdin is not None:
            with contextlib.suppress(ConnectionError):
                await self._process.stdin.drain()

    async def receive(self) -> list[Frame]:
        """The next frames; an empty list after the child has closed its stdout."""
        assert self._process.stdout is not None
        while chunk := await self._process.stdout.read(_CHUNK):
            if frames := self._splitter.feed(chunk):
                return frames
        return self._splitter.close()

    def finish(self) -> None:
        """Close the child's stdin. Its remaining output can still be received."""
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.close()

    async def close(self, patience: float) -> str:
        """Wait until the child exits. After so many seconds it is told to stop, and after as many
        more it is killed. Return how it exited.
        """
        self.finish()
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._process.wait()
            if self._process.returncode is not None:
                break
            self._signal(number)
        # asyncio reports the exit of a process only after its pipes are closed, and a full, paused
        # pipe is never closed. No public method closes it.
        transport = self._process._transport  # type: ignore[attr-defined]  # private in asyncio
        output = transport.get_pipe_transport(1)
        if output is not None:
            output.close()
        code = await self._process.wait()
        self._signal(
            getattr(signal, "SIGKILL", signal.SIGTERM)
        )  # kills the remaining processes in its session
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.shield(self._telling)
        self._telling.cancel()
        return self._words(code)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                self._process.send_signal(number)
            else:
                os.killpg(self._process.pid, number)

    def _words(self, code: int) -> str:
        """How it exited: the last line that it wrote to stderr, which is the summary of a
        traceback, and the exit code.
        """
        lines = [
            line.strip()
            for line in self._tail.decode("utf-8", "replace").splitlines()
            if line.strip() and not is_request_line(line)
        ]
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return f"{lines[-1].rstrip('.')} ({how})" if lines else how

    async def _pass_stderr(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(_CHUNK):
            self._tail = (self._tail + chunk)[-_TAIL:]
            with contextlib.suppress(OSError):
                os.write(2, chunk)

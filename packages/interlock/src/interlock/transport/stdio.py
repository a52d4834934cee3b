"""The client's side of the stdio transport: the server is a child process (2026-07-28, "stdio")."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import types as t
from ..exchange import AnyResult, Exchange
from ..logs import limited
from ..protocol.opening import (
    Discover,
    Handshake,
    Opened,
    Outcome,
    Restart,
    Step,
    is_opening_result,
)
from ..wire.lines import DEFAULT_LIMIT
from .channel import Tap
from .child_process import Child, Confinement
from .conversation import Hello, agree
from .http.client.retries import RetryRules
from .reconnect import MOST_RESTARTS, Recovery

log = limited("interlock.client")

_SHORT_PATIENCE = 0.5  # seconds for a child to exit before another one is started
_INHERITED = frozenset(
    [
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "USER",
        "TZ",
        "VIRTUAL_ENV",
    ]
    if sys.platform != "win32"
    else [
        "APPDATA",
        "COMSPEC",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
        "WINDIR",
    ]
)


def inherited_environment() -> dict[str, str]:
    """Return the variables that a child server inherits by default: those that programs need to
    run, and none that may contain secrets.
    """
    return {name: value for name, value in os.environ.items() if name in _INHERITED}


class Stdio:
    """A client's transport to a server that it starts as a child process.

    A child may exit after `server/discover`, not answer it, or refuse the handshake after it. In
    these cases the child is started a second time, with the handshake first.

    Args:
        command: The program and its arguments. They are run without a shell.
        env: Variables in addition to the inherited ones.
        inherit_env: Whether the child inherits the whole environment, secrets included. Otherwise
            it inherits a small set of variables without secrets.
        cwd: The working directory of the child.
        on_stderr: Called with each line that the server writes to stderr.
        patience: Seconds between the steps of a shutdown: stdin is closed, the child is terminated,
            the child is killed.
        limit: The maximum size of a message, in bytes.
        tap: Called with every frame, and with "client" or "server" as its sender.
        restart: Whether the next call restarts a child that has exited. Running calls fail, except
            for read-only and idempotent calls, which are sent again.
        sandbox: Confines the child to what a policy names: an `interlock.sandbox.Sandbox`. None:
            the child runs with the rights of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        cwd: str | Path | None = None,
        on_stderr: Callable[[str], None] | None = None,
        patience: float = 2.0,
        limit: int = DEFAULT_LIMIT,
        tap: Tap | None = None,
        restart: bool = True,
        sandbox: Confinement | None = None,
    ) -> None:
        if not command:
            raise ValueError("a command is needed to start a server")
        if sandbox is not None and inherit_env:
            raise ValueError(
                "a sandbox passes named variables only, not the whole environment: name them in "
                "Sandbox(env=[...])"
            )
        self.command = [os.fspath(part) for part in command]
        self.patience = patience
        self._env = {**(os.environ if inherit_env else inherited_environment()), **(env or {})}
        self._cwd = cwd
        self._on_stderr = on_stderr
        self._limit = limit
        self._sandbox = sandbox
        self.tap = tap
        self._child: Child | None = None  # the child of the connection
        self._is_settled = False
        self._children: list[Child] = []  # all children that may still run
        self._ending: set[asyncio.Task[None]] = set()
        self._recovery = Recovery(self, RetryRules(), most_restarts=MOST_RESTARTS if restart else 0)

    @property
    def pid(self) -> int | None:
        """The process ID of the child while it exists."""
        return self._child.pid if self._child is not None else None

    async def open(self, hello: Hello) -> Opened:
        """Start the server and negotiate a revision. Raises Unreachable if the server cannot be
        started or exits at once.
        """
        opened = await self.connect(hello)
        self._recovery.opened(hello, opened)
        return opened

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """Send one exchange and return its result. A child that has exited is restarted first."""
        return await self._recovery.carry(exchange)

    @property
    def is_broken(self) -> bool:
        """Whether the child can no longer respond, although this side has not closed the
        connection.
        """
        child = self._child
        if child is None:
            return False
        return not self._is_settled or child.duplex is None or child.duplex.is_broken

    async def connect(self, hello: Hello) -> Opened:
        """Start a new child in place of the current one, and negotiate a revision; see
        `Recovery`.
        """
        before = self._child
        self._is_settled = False
        self._child = self._new_child()
        if before is not None:
            await asyncio.shield(self._end(before, min(self.patience, _SHORT_PATIENCE)))
        await self._there().start(hello)
        try:
            opened = await agree(hello, functools.partial(self._run_step, hello))
        except t.Unreachable as bad:
            raise _with_advice(bad, self.command) from None
        await self._there().settle(hello, opened)
        self._is_settled = True
        return opened

    async def exchange(self, exchange: Exchange) -> AnyResult:
        """Send one exchange to the current child, and return its result; see `Recovery`."""
        child = self._child
        if child is None or child.duplex is None:
            raise t.Unreachable("The server was not started.")
        try:
            return await child.duplex(exchange)
        except t.TimedOut:
            raise
        except t.Unreachable as bad:
            if self._child is None:
                raise  # this side has closed it: the exit of the child is not the cause
            raise await child.explained(bad) from None

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification that belongs to no request."""
        if self._child is not None and self._child.duplex is not None:
            self._child.duplex.send_notification(method, params)

    async def aclose(self) -> None:
        """Close the child's stdin, wait for its exit, and kill it if it does not exit."""
        self._child = None
        await self._recovery.aclose()
        while self._children:
            child = self._children[0]
            await child.aclose(self.patience)
            with contextlib.suppress(ValueError):  # removed by a task of `_end` meanwhile
                self._children.remove(child)
        if self._ending:
            await asyncio.wait(self._ending)

    def _there(self) -> Child:
        if self._child is None:
            raise t.Unreachable("The client was closed.")
        return self._child

    def _new_child(self) -> Child:
        child = Child(
            self.command,
            env=self._env,
            cwd=self._cwd,
            on_stderr=self._on_stderr,
            limit=self._limit,
            tap=self.tap,
            sandbox=self._sandbox,
        )
        self._children.append(child)
        return child

    # -- opening -----------------------------------------------------------------------------------

    async def _run_step(self, hello: Hello, step: Step) -> Outcome:
        """Run a step of the opening, with a new child if the step requires it."""
        child = self._there()
        if not isinstance(step, Restart):
            return await child.run_step(step)
        log.info("the server could not be opened with what it was sent first; it is started again")
        if child.may_answer:
            self._child = fresh = self._new_child()
            return await self._race(child, fresh, hello, step.first)
        await asyncio.shield(self._end(child, min(self.patience, _SHORT_PATIENCE)))
        self._there()
        self._child = fresh = self._new_child()
        return await fresh.start_with(hello, step.first)

    async def _race(
        self, rival: Child, fresh: Child, hello: Hello, first: Discover | Handshake
    ) -> Outcome:
        """Return the first result of two children, and end the other child.

        The old child has read the request and is silent. Most such servers hang, but it may be a
        wrapper that reads for a server that is still starting. So it is not ended before the new
        child has answered.
        """
        late = asyncio.ensure_future(rival.late_answer())
        new = asyncio.ensure_future(fresh.start_with(hello, first))
        loser = rival
        try:
            await asyncio.wait({late, new}, return_when=asyncio.FIRST_COMPLETED)
            if new.done() and not is_opening_result(new.result()):
                await asyncio.wait({late}, timeout=hello.open_seconds)
            if late.done() and is_opening_result(late.result()) and self._child is fresh:
                loser = fresh
                self._child = rival
                return late.result()
            return await new
        finally:
            for waiting in (late, new):
                waiting.cancel()
            await asyncio.wait({late, new})
            self._end(loser, self.patience)

    def _end(self, child: Child, patience: float) -> asyncio.Task[None]:
        """End a child in a separate task, which `aclose` waits for."""

        async def end() -> None:
            await child.aclose(patience)
            if child in self._children:
                self._children.remove(child)

        ending = asyncio.get_running_loop().create_task(end())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return ending


def _with_advice(bad: t.Unreachable, command: Sequence[str]) -> t.Unreachable:
    """Return the error with advice for the author, if a Python file ran to its end without
    serving.
    """
    file = next((part for part in command if part.endswith(".py")), None)
    if bad.exit_code != 0 or file is None:
        return bad
    words = (
        f"{bad.args[0]} {file} came to its end without serving. Call `server.run()` at its end, "
        "under "
        f'`if __name__ == "__main__":`, or start it by `interlock run {file}`.'
    )
    return t.Unreachable(words, exit_code=0, stderr=bad.stderr)

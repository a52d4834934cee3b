"""Starting a child process with pipes: when it is needed, or ahead of its connection."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class SpawnedProcess(NamedTuple):
    """A child process and its pipes.

    Attributes:
        process: The process, with pipes as its stdout and stderr.
        write_end: The write end of its stdin.
        read_end: This side's copy of the read end.
    """

    process: subprocess.Popen[bytes]
    write_end: int
    read_end: int


class _Ahead(NamedTuple):
    command: list[str]
    env: dict[str, str]
    spawned: SpawnedProcess


_ahead: list[_Ahead] = []


def spawn(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: str | Path | None,
    start: Callable[..., subprocess.Popen[bytes]] | None = None,
) -> SpawnedProcess:
    """Start a process, or return one that was started ahead.

    Args:
        command: The program and its arguments, run without a shell.
        env: The complete environment of the process.
        cwd: Its working directory; None for that of this process.
        start: Starts the process in a sandbox; it gets the streams of `subprocess.Popen`. Such a
            process is never one that was started ahead, which is not confined.

    Raises:
        OSError: The process cannot be started.
        Unreachable: The sandbox cannot be had.
    """
    if start is None and cwd is None and _ahead and (started := _find(command, env)) is not None:
        _ahead.remove(started)
        return started.spawned
    read_end, write_end = os.pipe()

    def unconfined(**streams: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(list(command), env=dict(env), cwd=cwd, **streams)

    try:
        process = (unconfined if start is None else start)(
            stdin=read_end,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=sys.platform
            != "win32",  # a signal for this process (Ctrl-C) must not reach the child
        )
    except BaseException:
        os.close(read_end)
        os.close(write_end)
        raise
    return SpawnedProcess(process, write_end, read_end)


def spawn_ahead(command: Sequence[str], env: Mapping[str, str], waiting: Sequence[str]) -> None:
    """Start a process before it is known whether `spawn` will ask for it.

    If nobody asks for it, its stdin is closed when this process ends.

    Args:
        command: The command that `spawn` will be given.
        env: The complete environment of the process.
        waiting: The command to run in its place. It must wait until it can read one byte from its
            stdin, which `release` writes, and end at the end of its stdin.
    """
    with contextlib.suppress(OSError):  # `spawn` reports it
        _ahead.append(_Ahead(list(command), dict(env), spawn(waiting, env, None)))


def release(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Let a process go on that was started ahead with this command, if there is one."""
    if (started := _find(command, env)) is not None:
        with contextlib.suppress(OSError):  # it has ended, which its connection reports
            os.write(started.spawned.write_end, b"\n")


def _find(command: Sequence[str], env: Mapping[str, str]) -> _Ahead | None:
    return next(
        (each for each in _ahead if each.command == list(command) and each.env == env), None
    )

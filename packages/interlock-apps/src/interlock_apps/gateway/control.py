"""The control sockets of a running gateway: one Unix socket for each process, in a folder that only
its owner can open, for `interlock gateway status`, `reload` and `approve`.

A request is one line of JSON, and so is the response.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import socket
import stat
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from interlock.store import data_folder

from .state import PendingApproval, UpstreamState, ViewState

log = logging.getLogger("interlock_apps.gateway")

_SUFFIX = ".sock"
_OTHERS = 0o077  # permissions of the group and of others
_MOST_BYTES = 1 << 20
_MOST_PATH = 80  # bytes of the folder: some systems allow 104 for the whole path of a socket
_SECONDS = 60.0  # to wait for each process


class ControlRequest(Struct, frozen=True, kw_only=True):
    """A request to one process.

    Attributes:
        command: What to do.
        ids: What to approve.
    """

    command: Literal["status", "reload", "approve"]
    ids: tuple[str, ...] = ()


class ControlResponse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The response of one process.

    Attributes:
        pid: The process.
        started: When it started, in seconds of the wall clock.
        upstreams: The servers.
        views: The views.
        counters: Counters by name.
        approvals: The features that are withheld.
        done: What was done, in words.
        error: Why nothing was done.
    """

    pid: int = 0
    started: float = 0.0
    upstreams: tuple[UpstreamState, ...] = ()
    views: tuple[ViewState, ...] = ()
    counters: dict[str, float] = {}
    approvals: tuple[PendingApproval, ...] = ()
    done: tuple[str, ...] = ()
    error: str = ""


class NotRunning(Exception):
    """No gateway with these settings runs, or its processes cannot be reached."""


Answer = Callable[[ControlRequest], Awaitable[ControlResponse]]

_read_request = msgspec.json.Decoder(ControlRequest).decode
_read_response = msgspec.json.Decoder(ControlResponse).decode
_encode = msgspec.json.encode


def control_folder(source: Path | None) -> Path:
    """Return the folder of the control sockets of the gateway with a file of settings.

    The paths of sockets have a small limit: with a long path to the user's data, the folder is one
    of the user among the temporary files.
    """
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    base = Path(named) / "interlock" if named else data_folder().parent
    key = hashlib.sha256(str((source or Path.cwd()).resolve()).encode()).hexdigest()[:12]
    folder = base / f"gateway-{key}"
    if len(os.fsencode(folder)) <= _MOST_PATH:
        return folder
    return Path(tempfile.gettempdir()) / f"interlock-{getattr(os, 'getuid', int)()}-{key}"


class ControlSocket:
    """The control socket of this process.

    Args:
        folder: The folder of the sockets. It is created with mode 0700.
        answer: Handles a request.
    """

    def __init__(self, folder: Path, answer: Answer) -> None:
        self._folder = folder
        self._answer = answer
        self._path = folder / f"{os.getpid()}{_SUFFIX}"
        self._listener: asyncio.Server | None = None

    async def open(self) -> None:
        """Start to listen. A system without Unix sockets has no control socket.

        Raises:
            PermissionError: Others can open the folder.
            OSError: The socket cannot be created.
        """
        if not hasattr(asyncio, "start_unix_server"):
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = self._folder.lstat()  # a link would be somebody else's choice
        if not stat.S_ISDIR(found.st_mode):
            raise PermissionError(f"{self._folder} is not a folder")
        if stat.S_IMODE(found.st_mode) & _OTHERS or found.st_uid != os.getuid():
            raise PermissionError(f"others may open {self._folder}; run chmod 700 on it")
        self._path.unlink(missing_ok=True)  # left by a process that was killed
        self._listener = await asyncio.start_unix_server(
            self._serve, path=self._path, limit=_MOST_BYTES
        )

    async def aclose(self) -> None:
        """Stop to listen, and remove the socket."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = _read_request(await reader.readline())
            response = await self._answer(request)
        except (msgspec.MsgspecError, ValueError) as bad:
            response = ControlResponse(error=str(bad))
        except Exception:
            log.exception("a request on the control socket failed")
            response = ControlResponse(error="it failed; the log of the gateway says why")
        with contextlib.suppress(OSError):
            writer.write(_encode(response) + b"\n")
            await writer.drain()
            writer.close()


def ask_processes(folder: Path, request: ControlRequest) -> Iterator[tuple[int, ControlResponse]]:
    """Ask every process of a gateway, one after the other. Yields each process id and its response.

    Raises:
        NotRunning: There is no process.
    """
    try:
        sockets = sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)
    except OSError:
        sockets = []
    is_running = False
    for path in sockets:
        response = _ask(path, request)
        if response is not None:
            is_running = True
            yield int(path.stem), response
    if not is_running:
        raise NotRunning("No gateway with these settings runs as this user.")


def _ask(path: Path, request: ControlRequest) -> ControlResponse | None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(_SECONDS)
        try:
            link.connect(str(path))
            link.sendall(_encode(request) + b"\n")
            with link.makefile("rb") as file:
                line: Any = file.readline()
        except TimeoutError:
            return ControlResponse(error=f"the process did not answer in {_SECONDS:g} s")
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return None
        except OSError as bad:
            return ControlResponse(error=str(bad.strerror))
    return _read_response(line) if line else None

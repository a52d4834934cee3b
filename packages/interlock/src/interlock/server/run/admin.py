"""The admin socket of a server process: a Unix socket, in a folder that only its owner can open, on
which `interlock admin` sees and ends sessions and calls, and drains workers.

A request is one line of JSON, and so is the response. Each process has a socket of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...exchange import Exchange
from ...logs import limited
from ...observe.meters import TASKS_GAUGE
from ...store.errors import StoreError
from ...transport.http.app import HttpApp
from ...transport.http.server.supervision import Supervision
from .call_registry import CallRegistry, RegisteredCall
from .interface import ServedServer

log = limited("interlock.server")

SUFFIX = ".sock"
"""The end of the names of admin sockets."""
SHOWN = 12
"""How many characters of an ID are shown: a whole session ID would let its reader use the
session.
"""
_LOGGER = "interlock"  # the parent of all our loggers
_READER_SECONDS = 15.0  # after the last request for metrics
_OTHERS = 0o077  # permissions of the group and of others
_MOST_ROWS = 10_000
_MOST_BYTES = 64 * 1024  # of a request


class AdminRequest(Struct):
    """A request of an operator.

    Attributes:
        command: "workers", "sessions", "calls", "suspended", "upstreams", "metrics", "end",
            "drain", "shutdown" or "log_level".
        id: What to end: the ID of a call, or the beginning of that of a session or suspended call.
            For "log_level" the level, such as "debug".
        most: The maximum number of sessions to show.
    """

    command: str
    id: str = ""
    most: int = 10_000


class AdminResponse(Struct, omit_defaults=True):
    """The response: rows to show, or whether something was done; an error otherwise."""

    rows: list[dict[str, Any]] = []
    done: str = ""
    error: str = ""


_decode = msgspec.json.Decoder(AdminRequest).decode
_encode = msgspec.json.Encoder().encode


class AdminSocket:
    """The admin socket of this process.

    Args:
        folder: The folder of the sockets. It is created with mode 0700; one that others can open is
            refused.
        app: The HTTP app of the server.
        server: The server.
        calls: The running calls.
        supervision: The process that supervises this one, if there is one.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        app: HttpApp,
        server: ServedServer,
        calls: CallRegistry,
        supervision: Supervision | None,
    ) -> None:
        self._folder = Path(folder)
        self._app = app
        self._server = server
        self._calls = calls
        self._supervision = supervision
        self._began = time.monotonic()
        self._path = self._folder / f"{os.getpid()}{SUFFIX}"
        self._listener: asyncio.Server | None = None
        self._reading: asyncio.TimerHandle | None = None  # until histograms are kept for a reader

    async def open(self) -> None:
        """Start to listen.

        Raises:
            ValueError: Others can open the folder, or the system has no Unix sockets.
            OSError: The socket cannot be created.
        """
        if not hasattr(asyncio, "start_unix_server"):
            raise ValueError("admin needs Unix sockets, which this system does not have")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = stat.S_IMODE(self._folder.stat().st_mode)
        if mode & _OTHERS:
            raise ValueError(
                f"others may open the admin folder {self._folder} (its mode is {mode:04o}): run"
                f" `chmod 700 {self._folder}`, or name a folder that does not exist yet"
            )
        self._path.unlink(missing_ok=True)  # left by a process that was killed
        self._listener = await asyncio.start_unix_server(
            self._serve, path=self._path, limit=_MOST_BYTES
        )

    async def aclose(self) -> None:
        """Stop to listen, and remove the socket."""
        if self._reading is not None:
            self._reading.cancel()
            self._stop_reading()
        listener = self._listener
        self._listener = None
        if listener is not None:
            listener.close()
            with contextlib.suppress(OSError):
                self._path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            response = await self._answer(_decode(await reader.readline()))
        except (StoreError, ValueError) as bad:  # ValueError: a line that is too long, or not JSON
            response = AdminResponse(error=str(bad))
        with contextlib.suppress(OSError):
            writer.write(_encode(response) + b"\n")
            await writer.drain()
        writer.close()

    async def _answer(self, request: AdminRequest) -> AdminResponse:
        match request.command:
            case "workers":
                return AdminResponse([self._worker()])
            case "sessions":
                return AdminResponse(await self._sessions(min(request.most, _MOST_ROWS)))
            case "calls":
                return AdminResponse([self._running(call) for call in self._calls])
            case "suspended":
                waiting = self._server.suspended_calls.waiting()
                return AdminResponse([_describe(name[:SHOWN], x) for name, x in waiting])
            case "upstreams":
                return AdminResponse(self._upstreams())
            case "metrics":
                return AdminResponse(self._metrics())
            case "end":
                return AdminResponse(done=await self._end(request.id))
            case "drain":
                return AdminResponse(done=self._drain())
            case "shutdown":
                return AdminResponse(done=self._shut_down())
            case "log_level":
                return AdminResponse(done=_set_log_level(request.id))
        raise ValueError(f"unknown command {request.command!r}")

    # -- the state to show -------------------------------------------------------------------------

    def _worker(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "seconds": round(time.monotonic() - self._began, 1),
            "calls": len(list(self._calls)),
            "suspended": len(self._server.suspended_calls.waiting()),
            "tasks": self._tasks(),
            "draining": self._app.is_draining,
        }

    def _tasks(self) -> int:
        """How many tasks run in this process."""
        for gauge in self._server.meters.gauges():
            if gauge.name == TASKS_GAUGE:
                return int(sum(gauge.read().values()))
        return 0

    async def _sessions(self, most: int) -> list[dict[str, Any]]:
        now = time.time()
        return [
            {
                "id": session.id[:SHOWN],
                "principal": session.principal,
                "client": None
                if session.info is None
                else f"{session.info.name} {session.info.version}",
                "revision": session.revision,
                "seconds": round(now - session.created, 1),
                "left": round(session.until - now, 1),
            }
            for session in await self._app.recent_sessions(most)
        ]

    def _upstreams(self) -> list[dict[str, Any]]:
        return [
            {
                "id": f"{os.getpid()} {each.name}",
                "state": "up" if each.problem is None else "down",
                "problem": each.problem,
            }
            for each in self._server.upstreams
        ]

    def _metrics(self) -> list[dict[str, Any]]:
        """Return the counters and histograms. From the first request on histograms are kept, until
        nobody has asked for some time.
        """
        meters = self._server.meters
        if self._reading is None:
            meters.readers += 1
        else:
            self._reading.cancel()
        loop = asyncio.get_running_loop()
        self._reading = loop.call_later(_READER_SECONDS, self._stop_reading)
        rows: list[dict[str, Any]] = [
            {"id": str(os.getpid()), "ended": meters.started - meters.in_flight}
        ]
        for series, histogram in meters.histograms():
            of = {"method": series.method, "name": series.name, "error": series.error}
            rows.append({**of, "counts": histogram.counts})
        return rows

    def _stop_reading(self) -> None:
        self._reading = None
        self._server.meters.readers -= 1

    def _running(self, call: RegisteredCall) -> dict[str, Any]:
        age = round(self._calls.age(call), 1)
        found = {**_describe(call.id, call.exchange), "seconds": age}
        if call.progress is not None:
            found["progress"] = call.progress.progress
            found["total"] = call.progress.total
        return found

    # -- what can be done --------------------------------------------------------------------------

    async def _end(self, id: str) -> str:
        """End a call, a suspended call or a session. Returns what was ended, or ""."""
        if self._calls.end(id):
            return "call"
        if len(id) < SHOWN:
            return ""
        if await self._server.suspended_calls.end(id):
            return "suspended call"
        for session in await self._app.recent_sessions(_MOST_ROWS):
            if session.id.startswith(id) and await self._app.end_session(session.id):
                log.warning("an operator has ended the session %s...", id[:SHOWN])
                return "session"
        return ""

    def _drain(self) -> str:
        """Let this process end in good order. With a supervisor another one takes its place."""
        if self._supervision is not None:
            self._supervision.request_replacement()
            return "being replaced"
        return self._shut_down()

    def _shut_down(self) -> str:
        """Let the whole server end in good order."""
        os.kill(os.getpid() if self._supervision is None else os.getppid(), signal.SIGTERM)
        return "shutting down"


def _set_log_level(name: str) -> str:
    """Log what is at least this severe in this process, to stderr unless the program has handlers.

    Raises:
        ValueError: There is no such level.
    """
    level = logging.getLevelNamesMapping().get(name.upper())
    if level is None:
        raise ValueError(f"there is no log level {name!r}; use debug, info, warning or error")
    logger = logging.getLogger(_LOGGER)
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    logger.setLevel(level)
    return f"logging at {name.lower()}"


def _describe(id: str, x: Exchange) -> dict[str, Any]:
    """Return what an operator sees of a call: no arguments."""
    principal = x.caller.principal
    return {
        "id": id,
        "method": x.method,
        "name": getattr(x.params, "name", None) or getattr(x.params, "uri", None),
        "principal": None if principal is None else principal.key,
        "client": None if x.caller.info is None else x.caller.info.name,
    }

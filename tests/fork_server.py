"""Fork server: an interpreter that has imported what programs of Interlock import, and forks a
process for each program that a test starts.

`tests/forked_programs.py` starts it and sends it requests. To start an interpreter and to import
asyncio and Interlock takes some 200 ms of processor time; to fork takes 10. A forked process is
what a new one would be: it has its own `__main__`, arguments, folder, environment, streams, file
descriptors and session. Its parent is the process that asked for it, which can wait for it, and
its command line is that of the program.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import io
import itertools
import os
import runpy
import signal
import socket
import sys
import threading
import time
import types
from collections.abc import Mapping
from typing import Any, NoReturn, TextIO

from tests.fork_client import ForkClient, Start, install
from tests.fork_messages import SIZE, receive, send

PRELOADED = (
    "argparse",
    "asyncio",
    "concurrent.futures.thread",
    "dataclasses",
    "email.message",
    "hashlib",
    "http",
    "importlib.metadata",
    "importlib.resources",
    "json",
    "secrets",
    "sqlite3",
    "ssl",
    "tempfile",
    "tomllib",
    "zlib",
    "click",
    "httptools",
    "jsonschema_rs",
    "msgspec",
    "uvloop",
    "interlock.cli.client.calling",
    "interlock.cli.program",
    "interlock.cli.run.running",
    "interlock.cli.screen",
    "interlock.client.app",
    "interlock.client.tasks",
    "interlock.server.app",
    "interlock.server.extensions.apps",
    "interlock.server.handlers",
    "interlock.server.run.http_server",
    "interlock.server.run.metrics",
    "interlock.server.run.program",
    "interlock.store.from_url",
    "interlock.store.memory.store",
    "interlock.tasks.extension",
    "interlock.tasks.runner",
    "interlock.transport.http.app",
    "interlock.transport.http.legacy.sessions",
    "interlock.transport.http.server.serve",
    "interlock.transport.own_streams",
    "interlock.transport.serve",
    "interlock_apps.commands.ask",
    "interlock_apps.commands.gateway",
    "interlock_apps.commands.inspect",
    "interlock_apps.commands.web",
    "interlock_apps.gateway.program",
    "interlock_apps.host.app",
    "interlock_apps.host.pages.serving",
    "interlock_servers.commands",
)
"""The modules that are imported before the first fork. They only define things, as every module of
Interlock does, so it makes no difference whether they are imported before or after the fork. The
reference servers are not among them, as some read their settings when they are imported."""

Request = Mapping[str, Any]


def main() -> None:
    """Serve requests from the socket whose descriptor is the first argument."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    del sys.path[0]  # the folder of this file
    for name in PRELOADED:
        importlib.import_module(name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # the program imports its own
    start = Start(dict(os.environb), frozenset(name.partition(".")[0] for name in sys.modules))
    gc.collect()
    gc.freeze()  # a forked process that collects would copy every page
    send(channel, start.loaded)
    serve(channel, start, list(sys.path))


def serve(channel: socket.socket, start: Start, path: list[str]) -> None:
    """Fork a process for each request, until the socket is closed.

    It returns in the server alone: a forked process ends in here.

    Args:
        channel: A socket of the process that becomes the parent of the new processes.
        start: How the server was started.
        path: The import path of every program, without its own folders.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt of the tests is not for the server
    while (received := receive(channel)) is not None:
        request, fds = received
        pid = _fork(request, fds, channel)
        if pid is None:
            sys.path[:] = [*request["path"], *path]
            if request["nests"]:
                _nest(start, path)
            loaded = frozenset(sys.modules)
            _end(_run(request), loaded)
        send(channel, pid)
        for fd in fds:
            os.close(fd)


def _nest(start: Start, path: list[str]) -> None:
    """Start a fork server for the programs that this program starts: a copy of this process, which
    has not begun with its program."""
    ours, theirs = socket.socketpair()
    if not os.fork():
        ours.close()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        os.close(nothing)
        serve(theirs, start, path)
        os._exit(0)
    theirs.close()
    install(ForkClient(ours, start), [])


def _fork(request: Request, fds: list[int], channel: socket.socket) -> int | None:
    """Fork twice, so that the process that asked becomes the parent of the new one.

    Returns:
        In the server the process ID of the new process, once its program can start; 0 if the
        process could not be made. In the new process None.
    """
    ready, told = os.pipe()
    between = os.fork()
    if not between:
        between = os.getpid()
        pid = os.fork()
        if pid:
            os._exit(0)  # the new process becomes a child of the next subreaper above: the asker
        while os.getppid() == between:
            os.sched_yield()
        os.close(ready)
        channel.close()
        try:
            _become(request, fds, told)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(255)
        return None
    os.close(told)
    os.waitpid(between, 0)
    try:
        return int.from_bytes(os.read(ready, SIZE), "big")
    finally:
        os.close(ready)


def _become(request: Request, fds: list[int], told: int) -> None:
    """Give this process all that a new process would have got, and say that it is ready."""
    wanted = request["fds"]  # the descriptor's number in the program, for each that was passed
    floor = max([told, *fds, *wanted]) + 1
    told = _moved(told, floor)
    for fd, number in zip([_moved(fd, floor) for fd in fds], wanted, strict=True):
        os.dup2(fd, number, inheritable=True)
    kept = sorted({*wanted, told})
    for low, high in itertools.pairwise([*kept, os.sysconf("SC_OPEN_MAX")]):
        if low + 1 < high:
            os.closerange(low + 1, high)
    if request["session"]:
        os.setsid()
    elif request["group"] >= 0:
        os.setpgid(0, request["group"])
    os.umask(request["umask"])
    os.chdir(request["folder"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environb.clear()
    os.environb.update(request["env"])
    time.tzset()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    unbuffered = request["unbuffered"] or bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = _stream(sys.stdin, 0, "<stdin>", False)
    sys.stdout = _stream(sys.stdout, 1, "<stdout>", unbuffered)
    sys.stderr = _stream(sys.stderr, 2, "<stderr>", unbuffered)
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)
    sys.argv = list(request["argv"])
    sys.orig_argv = list(request["command"])
    _show_command(request["command"])
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = main
    os.write(told, os.getpid().to_bytes(SIZE, "big"))
    os.close(told)


def _moved(fd: int, floor: int) -> int:
    """Move a descriptor out of the way of the numbers that the program wants."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, floor)
    os.close(fd)
    return moved


def _stream(before: TextIO, fd: int, name: str, unbuffered: bool) -> io.TextIOWrapper:
    """Open a standard stream as the interpreter opens it; the encoding is that of the server's."""
    mode = "w" if fd else "r"
    buffer: Any = open(fd, f"{mode}b", 0 if unbuffered else -1, closefd=False)  # noqa: SIM115 - stays open
    (buffer if unbuffered else buffer.raw).name = name
    stream = io.TextIOWrapper(
        buffer,
        encoding=before.encoding,
        errors=before.errors,
        newline="\n",
        line_buffering=not unbuffered and (fd == 2 or os.isatty(fd)),
        write_through=unbuffered,
    )
    stream.mode = mode  # type: ignore[misc]  # what the interpreter does
    return stream


def _show_command(command: list[str]) -> None:
    """Overwrite the command line that /proc shows with that of the program, as far as it fits.

    Tests look for processes by their command line. The server is started with a long last argument,
    which makes room.
    """
    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    shown = b"\0".join(map(os.fsencode, command))[: end - start - 1]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, shown, len(shown))


def _run(request: Request) -> int:
    """Run the program as the interpreter would run it, and return its exit status."""
    try:
        if request["code"]:
            code = compile(request["code"], "<string>", "exec", dont_inherit=True)
            exec(code, sys.modules["__main__"].__dict__)
        elif request["module"]:
            runpy._run_module_as_main(request["module"])  # type: ignore[attr-defined]  # what -m does
        else:
            _run_script(request["argv"][0])
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        raise  # the interpreter ends by the signal
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0


def _end(status: int, loaded: frozenset[str]) -> NoReturn:
    """End the process as the interpreter would, but do not take the server's modules apart.

    That takes 20 ms, as it copies all pages of the server. What the program and the modules that it
    has imported leave behind is collected.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # private: waits for threads, as the interpreter does
    atexit._run_exitfuncs()  # private: what the interpreter does
    sys.modules["__main__"].__dict__.clear()
    for name in sys.modules.keys() - loaded:
        del sys.modules[name]
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError as error:
            if stream is sys.stdout:
                print(f"Exception ignored in: {stream!r}\n{error!r}", file=sys.stderr)
            status = 120  # what the interpreter returns if it cannot flush
    os._exit(status & 0xFF)


def _run_script(path: str) -> None:
    """Run a file as `__main__`."""
    path = os.path.abspath(path)
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    names = sys.modules["__main__"].__dict__
    names["__file__"] = path
    names["__cached__"] = None
    exec(code, names)


if __name__ == "__main__":
    main()

"""Client of the fork server: asks it for a process in place of a new interpreter, where a forked
process does the same.

A new interpreter is started for what only its start can honour: options and variables of the
interpreter (`-I`, `-S`, `-W`, another locale), a module on the import path that hides one that the
server has imported, functions that run before the program, code that asks what is imported. A
thread that has restricted itself (Landlock, seccomp) starts one too: a forked process would inherit
nothing of it.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import os
import re
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.fork_messages import receive, send

SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): orphans below this process become its children."""

HONOURED = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHON_KEYRING_BACKEND"}
"""Variables that a forked process honours, or that do not concern the interpreter."""

READ_AT_START = ("PYTHON", "LC_", "LD_", "COVERAGE_", "OPENSSL_", "MALLOC_")
"""Beginnings of the variables that are read when a process starts or a library is loaded."""

LOCALE = (b"LC_ALL", b"LC_CTYPE", b"LANG")
"""The variables that name the locale; the first one that is set decides."""

PLAIN_LOCALES = {b"", b"C", b"POSIX", b"C.UTF-8", b"C.utf8"}
"""Locales in which Python uses UTF-8 in the same way (PEP 538)."""

COLD_MODULES = {"pytest"}
"""Programs that treat modules differently that are imported before they start."""

IMPORTABLE = re.compile(r"^[^.]+$|\.(py|pyc|so)$")
"""The names of files and folders that may be modules."""

COLD_CODE = re.compile(
    r"\b(modules|meta_path|__import__|getrusage|process_time|tracemalloc|statm|settrace)\b"
)
"""What code contains that sees a difference: in the imported modules, the time or the memory."""

LEAVES = {"serve", "schema", "--version", "--help"}
"""Commands of `interlock` that start no program in Python."""

STARTED_AGAIN = {"--reload", "--dev"}
"""Options of `interlock run` that let it start itself as a program."""

STARTING = re.compile(r"\bClient\b|\bsubprocess\b|\bStdio\b")
"""What a script that starts other programs contains."""

LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
"""The limits of resources that a program inherits."""

PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
"""The parameters of `Popen._execute_child` that are ends of pipes."""


class Start(NamedTuple):
    """How the server was started, which decides what its processes can be."""

    environment: dict[bytes, bytes]
    loaded: frozenset[str]
    """The top-level names of the modules that the server has imported."""


class ThreadStatus(NamedTuple):
    """What a program inherits from the thread that starts it."""

    umask: int
    no_new_privileges: str
    seccomp: str
    blocked: str
    """The blocked signals."""
    ignored: str
    """The ignored signals."""
    limits: tuple[tuple[int, int], ...]
    """The soft and the hard limits of resources."""


class Program(NamedTuple):
    """What an interpreter is asked to run."""

    options: set[str]
    module: str
    code: str
    argv: list[str]
    """The arguments that it gets; the first is the script, `-m` or `-c`."""


class ForkClient:
    """A connection to a fork server, for this process alone.

    Attributes:
        cold: Whether every program gets an interpreter of its own.
        nests: Whether forked programs that start programs themselves get a server of their own.
    """

    def __init__(self, channel: socket.socket, start: Start) -> None:
        self.cold = False
        self.nests = True
        self._channel = channel
        self._seen = seen(start.environment)
        self._path = _entries(start.environment)
        self._loaded = start.loaded | {"sitecustomize", "usercustomize"}
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._is_interrupted = False
        self._prctl = ctypes.CDLL(None).prctl
        self._status = thread_status()

    def start(self, plan: Mapping[str, Any]) -> int | None:
        """Start a program with the arguments of `Popen._execute_child`.

        Returns:
            The process ID, or None if the program needs an interpreter of its own.
        """
        if self.cold or self._is_interrupted or os.getpid() != self._owner or not is_plain(plan):
            return None
        if (status := thread_status()) is None or self._status is None:
            return None
        if status._replace(umask=0) != self._status._replace(umask=0):
            return None
        request = self._request(plan, status.umask)
        return None if request is None else self._fork(request, plan)

    def _request(self, plan: Mapping[str, Any], umask: int) -> dict[str, Any] | None:
        """Return what the server needs to know, or None for a program that it cannot run."""
        command = [os.fsdecode(word) for word in plan["args"]]
        program = parsed(command)
        if program is None:
            return None
        folder = os.fsdecode(plan["cwd"]) if plan["cwd"] is not None else os.getcwd()
        given = os.environ if plan["env"] is None else plan["env"]
        env = {os.fsencode(name): os.fsencode(value) for name, value in given.items()}
        if not os.path.isdir(folder) or seen(env) != self._seen:
            return None
        home = folder
        if not program.module and not program.code:
            script = os.path.join(folder, program.argv[0])
            if not (script.endswith(".py") and os.path.isfile(script)):
                return None
            home = os.path.dirname(os.path.realpath(script))
        path = [] if "P" in program.options else [home]
        path += [os.path.join(folder, one) for one in _entries(env) if one not in self._path]
        if any(self._hides(entry) for entry in path):
            return None
        if program.code and "P" not in program.options:
            path[0] = ""
        return {
            "command": command,
            "module": program.module,
            "code": program.code,
            "argv": program.argv,
            "path": path,
            "unbuffered": "u" in program.options,
            "env": env,
            "folder": folder,
            "session": plan["start_new_session"],
            "group": -1 if plan["process_group"] is None else plan["process_group"],
            "umask": umask,
            "nests": self.nests and starts_programs(program, folder),
        }

    def _hides(self, folder: str) -> bool:
        """Return whether a module in a folder has the name of one that the server has imported."""
        try:
            names = os.listdir(folder)
        except OSError:
            return False
        modules = {name.partition(".")[0] for name in names if IMPORTABLE.search(name)}
        return not modules.isdisjoint(self._loaded)

    def _fork(self, request: dict[str, Any], plan: Mapping[str, Any]) -> int | None:
        """Send a request, and return the process ID of the new process."""
        passed = {int(fd): int(fd) for fd in plan["pass_fds"]}
        for number, fd in enumerate((plan["p2cread"], plan["c2pwrite"], plan["errwrite"])):
            passed[number] = number if fd == -1 else fd
        with self._lock:
            self._prctl(SUBREAPER, 1, 0, 0, 0)
            try:
                send(self._channel, {**request, "fds": list(passed)}, list(passed.values()))
                answer = receive(self._channel)
            except BaseException:
                # A handler of a signal has raised it. The next answer would be the one to this
                # request: the ID of another process.
                self._is_interrupted = True
                raise
            finally:
                self._prctl(SUBREAPER, 0, 0, 0, 0)
        if answer is None:
            raise RuntimeError("the fork server has ended")
        return answer[0] or None


def is_plain(plan: Mapping[str, Any]) -> bool:
    """Return whether only such options of `Popen` are set as a forked process honours."""
    return (
        not plan["shell"]
        and plan["executable"] in (None, sys.executable)
        and plan["preexec_fn"] is None
        and plan["close_fds"]
        and plan["gid"] is plan["gids"] is plan["uid"] is None
        and plan["umask"] < 0
        and isinstance(plan["args"], list | tuple)
    )


def parsed(command: Sequence[str]) -> Program | None:
    """Return what a command line runs.

    Returns:
        None for a command that is not this interpreter, that has an option other than `-P`, `-u`,
        `-m` and `-c`, or whose program would see that it is forked.
    """
    if not command or command[0] != sys.executable:
        return None
    options: set[str] = set()
    for place, word in enumerate(command[1:], 1):
        if word in ("-P", "-u"):
            options.add(word[1:])
        elif word in ("-m", "-c") and len(command) > place + 1:
            given = command[place + 1]
            argv = [word, *command[place + 2 :]]
            if word == "-m":
                return None if given in COLD_MODULES else Program(options, given, "", argv)
            return None if COLD_CODE.search(given) else Program(options, "", given, argv)
        elif word.startswith("-"):
            return None
        else:
            return Program(options, "", "", list(command[place:]))
    return None


def starts_programs(program: Program, folder: str) -> bool:
    """Return whether a program may start others: a wrong answer costs time, and nothing else."""
    argv = program.argv
    if program.module == "interlock":
        return (
            bool(STARTED_AGAIN & {*argv}) if argv[1:2] == ["run"] else LEAVES.isdisjoint(argv[1:2])
        )
    if program.module:
        return True
    if program.code:
        return STARTING.search(program.code) is not None
    with open(os.path.join(folder, argv[0]), encoding="utf-8", errors="replace") as script:
        return STARTING.search(script.read()) is not None


def seen(environment: Mapping[bytes, bytes]) -> dict[str, bytes]:
    """Return those variables that the start of an interpreter reads and a fork cannot change."""
    locale = next(filter(None, (environment.get(name) for name in LOCALE)), b"")
    found = {"locale": b"" if locale in PLAIN_LOCALES else locale}
    for name, value in environment.items():
        text = os.fsdecode(name)
        if text.startswith(READ_AT_START) and text not in HONOURED and name not in LOCALE:
            found[text] = value
    return found


def _entries(environment: Mapping[bytes, bytes]) -> list[str]:
    return [
        entry
        for entry in os.fsdecode(environment.get(b"PYTHONPATH", b"")).split(os.pathsep)
        if entry
    ]


def thread_status() -> ThreadStatus | None:
    """Return what /proc says about the calling thread; None if the thread may not read that."""
    try:
        with open("/proc/thread-self/status", encoding="utf-8", errors="replace") as status:
            lines = dict(line.split(":", 1) for line in status)
    except OSError:
        return None
    return ThreadStatus(
        int(lines["Umask"], 8),
        lines.get("NoNewPrivs", "").strip(),
        lines.get("Seccomp", "").strip(),
        lines["SigBlk"].strip(),
        lines["SigIgn"].strip(),
        tuple(map(resource.getrlimit, LIMITS)),
    )


def install(client: ForkClient, forked: list[Sequence[str]]) -> Callable[[], None]:
    """Let `subprocess` ask the server first, and note the commands that it has forked.

    Returns:
        A function that undoes it.
    """
    popen: Any = subprocess.Popen
    start = popen._execute_child
    parameters = list(inspect.signature(start).parameters)[1:]

    @functools.wraps(start)  # with its parameters, as this may be installed once more
    def execute_child(self: Any, *given: Any) -> None:
        plan = dict(zip(parameters, given, strict=True))
        pid = client.start(plan)
        if pid is None:
            start(self, *given)
            return
        forked.append(plan["args"])
        self.pid = pid
        self._child_created = True
        self._close_pipe_fds(*(plan[name] for name in PIPES))

    popen._execute_child = execute_child

    def undo() -> None:
        popen._execute_child = start

    return undo


@contextmanager
def forking(client: ForkClient) -> Iterator[list[Sequence[str]]]:
    """Let `subprocess` ask the server first; yield the list of the commands that it has forked."""
    forked: list[Sequence[str]] = []
    undo = install(client, forked)
    try:
        yield forked
    finally:
        undo()

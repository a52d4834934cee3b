"""Forked programs: with `--fork`, Python programs that tests start are forked from an interpreter
that has imported Interlock, instead of starting one anew.

Half of the processor time of `make test` was the start of interpreters: some 200 ms for each of
thousands of programs. A test goes on to call `subprocess` or asyncio, or lets a client start a
server; this plugin takes the place of the one function below them that starts a process. It starts
a real interpreter as ever

- where the test or its file has the marker `cold`: it is about the start, or measures memory;
- for options and variables of the interpreter that only its start can honour (`-c`, `-I`, `-S`,
  `-W`, `PYTHONPATH` with a module that hides another one, another locale);
- for what a started program starts itself;
- in all other suites: `make endurance`, `make test-peers` and the runs under other versions of
  Python do not have the option.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fork_server import receive, send

SERVER = Path(__file__).with_name("fork_server.py")
ROOM = "." * 8192
"""Makes room for the command lines of forked processes."""

SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): orphans below this process become its children."""

HONOURED = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHON_KEYRING_BACKEND"}
"""Variables that a forked process honours, or that do not concern the interpreter."""

IMPORTABLE = re.compile(r"^[^.]+$|\.(py|pyc|so)$")
"""The names of files and folders that may be modules."""

COLD_MODULES = {"pytest"}
"""Programs that treat modules differently that are imported before they start."""

PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
"""The parameters of `Popen._execute_child` that are ends of pipes."""

SERVER_KEY: pytest.StashKey[ForkServer] = pytest.StashKey()
"""The running server of this process."""

COLD_KEY: pytest.StashKey[bool] = pytest.StashKey()
"""Whether the running test or its file has the marker `cold`."""

LOCALE = ("LANG", "LANGUAGE", "LC_", "LD_", "COVERAGE_", "SSL_", "OPENSSL_", "MALLOC_")
"""Beginnings of the variables that are read when a process or a library starts."""


class ForkServer:
    """The running fork server of a worker."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair()
        self._environment = dict(os.environb)
        self._path = list(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(SERVER), str(theirs.fileno()), ROOM],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._channel = ours
        self._loaded: set[str] = set()
        self.cold = False
        """Whether every program gets an interpreter of its own."""
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl

    def close(self) -> None:
        """Stop the server. Processes that it has forked go on."""
        self._channel.close()
        self._process.wait()

    def start(self, plan: Mapping[str, Any]) -> int | None:
        """Start a program with the arguments of `Popen._execute_child`.

        Returns:
            The process ID, or None if the program needs an interpreter of its own.
        """
        if self.cold or os.getpid() != self._owner or not self._is_plain(plan):
            return None
        with self._lock:
            if not self._loaded:
                self._loaded = self._answer()
            request = self._request(plan)
            if request is None:
                return None
            return self._fork(request, plan)

    def _is_plain(self, plan: Mapping[str, Any]) -> bool:
        """Return whether only such options are set as a forked process honours."""
        return (
            not plan["shell"]
            and plan["executable"] in (None, sys.executable)
            and plan["preexec_fn"] is None
            and plan["close_fds"]
            and plan["gid"] is plan["gids"] is plan["uid"] is None
            and plan["umask"] < 0
            and isinstance(plan["args"], list | tuple)
        )

    def _request(self, plan: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what the server needs to know, or None for a program that it cannot run."""
        command = [os.fsdecode(word) for word in plan["args"]]
        program = parsed(command)
        if program is None:
            return None
        folder = os.fsdecode(plan["cwd"]) if plan["cwd"] is not None else os.getcwd()
        given = os.environ if plan["env"] is None else plan["env"]
        env = {os.fsencode(name): os.fsencode(value) for name, value in given.items()}
        if not os.path.isdir(folder) or not self._is_alike(env):
            return None
        options, module, argv = program
        path = list(filter(None, os.fsdecode(env.get(b"PYTHONPATH", b"")).split(os.pathsep)))
        path = [os.path.join(folder, entry) for entry in path if entry not in self._path]
        if module:
            first = [] if "P" in options else [folder]
        else:
            script = os.path.join(folder, argv[0])
            if not (script.endswith(".py") and os.path.isfile(script)):
                return None
            first = [] if "P" in options else [os.path.dirname(os.path.realpath(script))]
        if any(self._hides(entry) for entry in [*first, *path]):
            return None
        return {
            "command": command,
            "module": module,
            "argv": argv,
            "path": first + path,
            "unbuffered": "u" in options,
            "env": env,
            "folder": folder,
            "session": plan["start_new_session"],
            "group": -1 if plan["process_group"] is None else plan["process_group"],
            "umask": _umask(),
        }

    def _is_alike(self, env: Mapping[bytes, bytes]) -> bool:
        """Return whether an interpreter would start with these variables as the server did."""

        def seen(variables: Mapping[bytes, bytes]) -> dict[str, bytes]:
            return {
                name: value
                for name, value in ((os.fsdecode(key), value) for key, value in variables.items())
                if name.startswith((*LOCALE, "PYTHON")) and name not in HONOURED
            }

        return seen(env) == seen(self._environment)

    def _hides(self, folder: str) -> bool:
        """Return whether a module in a folder has the name of one that the server has imported."""
        try:
            names = os.listdir(folder)
        except OSError:
            return False
        modules = {name.partition(".")[0] for name in names if IMPORTABLE.search(name)}
        return bool(modules & (self._loaded | {"sitecustomize", "usercustomize"}))

    def _fork(self, request: dict[str, Any], plan: Mapping[str, Any]) -> int | None:
        """Send a request, and return the process ID of the new process."""
        passed = {int(fd): int(fd) for fd in plan["pass_fds"]}
        for number, fd in enumerate((plan["p2cread"], plan["c2pwrite"], plan["errwrite"])):
            passed[number] = number if fd == -1 else fd
        self._prctl(SUBREAPER, 1, 0, 0, 0)
        try:
            send(self._channel, {**request, "fds": list(passed)}, list(passed.values()))
            return self._answer() or None
        finally:
            self._prctl(SUBREAPER, 0, 0, 0, 0)

    def _answer(self) -> Any:
        received = receive(self._channel)
        if received is None:
            raise RuntimeError("the fork server has ended")
        return received[0]


def parsed(command: Sequence[str]) -> tuple[set[str], str, list[str]] | None:
    """Return the options of the interpreter, the module, and the arguments that a program gets.

    Returns:
        None for a command that is not this interpreter, or that has an option other than `-P`,
        `-u` and `-m`.
    """
    if not command or command[0] != sys.executable:
        return None
    options: set[str] = set()
    for place, word in enumerate(command[1:], 1):
        if word in ("-P", "-u"):
            options.add(word[1:])
        elif word == "-m" and len(command) > place + 1 and command[place + 1] not in COLD_MODULES:
            return options, command[place + 1], ["-m", *command[place + 2 :]]
        elif word.startswith("-"):
            return None
        else:
            return options, "", list(command[place:])
    return None


def _umask() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--fork`."""
    parser.getgroup("terminal reporting").addoption(
        "--fork",
        action="store_true",
        help="fork the programs that tests start from one interpreter that has imported Interlock",
    )


@pytest.fixture(scope="session", autouse=True)
def fork_server(request: pytest.FixtureRequest) -> Iterator[None]:
    """The fork server of this worker, if there is one: it needs Linux."""
    config = request.config
    if not config.option.fork or not sys.platform.startswith("linux"):
        yield
        return
    server = config.stash[SERVER_KEY] = ForkServer()
    server.cold = config.stash[COLD_KEY]
    with forking(server):
        yield
    server.close()


@contextmanager
def forking(server: ForkServer) -> Iterator[list[Sequence[str]]]:
    """Let `subprocess` ask the server first; yield the list of the commands that it has forked."""
    start = subprocess.Popen._execute_child  # type: ignore[attr-defined]  # private
    parameters = list(inspect.signature(start).parameters)[1:]
    forked: list[Sequence[str]] = []

    def execute_child(self: Any, *given: Any) -> None:
        plan = dict(zip(parameters, given, strict=True))
        pid = server.start(plan)
        if pid is None:
            start(self, *given)
            return
        forked.append(plan["args"])
        self.pid = pid
        self._child_created = True
        self._close_pipe_fds(*(plan[name] for name in PIPES))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "_execute_child", execute_child)
        yield forked


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say whether the programs of this test get interpreters of their own."""
    stash = item.config.stash
    stash[COLD_KEY] = item.get_closest_marker("cold") is not None
    if (server := stash.get(SERVER_KEY, None)) is not None:
        server.cold = stash[COLD_KEY]

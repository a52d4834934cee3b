"""Starts a program in a sandbox, serves its proxy, and cleans up after it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from . import bubblewrap, seccomp
from .errors import SandboxUnavailable
from .grants import Grants, grants_of
from .landlock import Ruleset
from .limits import limited
from .mechanisms import choose
from .namespace_ports import namespace_ports
from .policy import SandboxPolicy
from .proxy import EgressProxy
from .refusals import FileRefusals, direct_refusal

_PROXY_VARIABLES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_HOLE = "it cannot keep {} closed, which is within an open folder"


class Confined:
    """One confined program: `start` it in a thread, then `attach` it to the event loop.

    Args:
        sandbox: The policy.
        command: The program and its arguments.
        env: Its environment, without the variables of the policy.
        cwd: Its working folder; None for that of this process.
        report: Called in the event loop with a sentence about each thing that was refused.
    """

    def __init__(
        self,
        sandbox: SandboxPolicy,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        report: Callable[[str], None],
    ) -> None:
        self.mechanism = ""
        self._sandbox = sandbox
        self._command = list(command)
        self._env = dict(env)
        self._cwd = None if cwd is None else os.fspath(cwd)
        self._report = report
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scratch = ""
        self._listener: socket.socket | None = None
        self._notices: int | None = None
        self._proxy: EgressProxy | None = None
        self._broker: seccomp.ConnectBroker | None = None
        self._files: FileRefusals | None = None
        self._direct: set[tuple[str, int]] = set()

    # -- starting ----------------------------------------------------------------------------------

    def start(self, **streams: Any) -> subprocess.Popen[bytes]:
        """Start the program, from a thread that outlives it or its event loop.

        Args:
            streams: `stdin`, `stdout`, `stderr` and `start_new_session` of `subprocess.Popen`.

        Raises:
            SandboxUnavailable: The policy cannot be enforced.
            OSError: The program cannot be started.
        """
        self._scratch = os.path.realpath(tempfile.mkdtemp(prefix="interlock-sandbox-"))
        temporary = self._folder("tmp")
        home = self._home()
        grants = grants_of(self._sandbox, self._command, self._env.get("PATH"), self._cwd, home)
        holes = [*grants.hidden, *grants.unwritable]
        self.mechanism = choose(
            self._sandbox, {"landlock": _HOLE.format(", ".join(holes)) if holes else ""}
        )
        self._files = FileRefusals(grants, self._say)
        command = limited(self._sandbox, [grants.program, *self._command[1:]])
        env = self._environment(home, temporary)
        if self.mechanism == "bubblewrap":
            return self._start_in_namespaces(command, grants, temporary, env, streams)
        return self._start_restricted(command, grants, temporary, env, streams)

    def _folder(self, name: str) -> str:
        folder = os.path.join(self._scratch, name)
        os.mkdir(folder, mode=0o700)
        return folder

    def _home(self) -> str:
        """Return the home folder of the program, and create it."""
        if self._sandbox.home is None:
            return self._folder("home")
        home = os.path.realpath(os.path.expanduser(self._sandbox.home))
        try:
            os.makedirs(home, mode=0o700, exist_ok=True)
        except OSError as bad:
            raise SandboxUnavailable(
                f"The home folder of the sandbox, {home}, cannot be created: {bad.strerror}."
            ) from bad
        return home

    def _environment(self, home: str, temporary: str) -> dict[str, str]:
        """Return the environment of the program."""
        own = {name: os.environ[name] for name in self._sandbox.env if name in os.environ}
        env = {**self._env, **own, "HOME": home}
        env["TMPDIR"] = "/tmp" if self.mechanism == "bubblewrap" else temporary
        if self._sandbox.uses_proxy and self.mechanism == "bubblewrap":
            env |= _proxy_variables(bubblewrap.PROXY_PORT)
        return env

    def _start_in_namespaces(
        self,
        command: list[str],
        grants: Grants,
        temporary: str,
        env: dict[str, str],
        streams: dict[str, Any],
    ) -> subprocess.Popen[bytes]:
        """Start the program in bubblewrap."""
        inherited: list[int] = []
        info = block = -1
        try:
            filter_fd = info_fd = block_fd = None
            if seccomp.is_known_machine():
                filter_fd = _file_of(seccomp.compiled("any"))
                inherited.append(filter_fd)
            if self._sandbox.uses_proxy:
                namespace_ports().prepare()  # it starts beside all that follows
                info, info_fd = os.pipe()
                block_fd, block = os.pipe()
                inherited += [info_fd, block_fd]
            options = bubblewrap.options(
                grants,
                env,
                temporary=temporary,
                network=self._sandbox.hosts == "all",
                info_fd=info_fd,
                block_fd=block_fd,
                filter_fd=filter_fd,
            )
            inherited.append(_file_of("\0".join(options).encode()))
            words = [*bubblewrap.program(), "--args", str(inherited[-1]), "--", *command]
            # Its environment is not that of the program: variables such as LD_PRELOAD would run
            # code in bubblewrap itself, which is not confined.
            process = subprocess.Popen(words, env={}, pass_fds=inherited, **streams)
            for each in inherited:
                os.close(each)
            inherited.clear()
            if self._sandbox.uses_proxy:
                self._listener = _proxy_port(process, info)
                with contextlib.suppress(BrokenPipeError):  # bubblewrap has ended
                    os.write(block, b"1")
        finally:
            for each in (*inherited, info, block):
                if each >= 0:
                    os.close(each)
        return process

    def _start_restricted(
        self,
        command: list[str],
        grants: Grants,
        temporary: str,
        env: dict[str, str],
        streams: dict[str, Any],
    ) -> subprocess.Popen[bytes]:
        """Start the program from a thread that Landlock restricts. Nothing runs between the start
        of the process and that of the program, and no second interpreter is needed.
        """
        sockets: seccomp.Sockets = "none"
        if self._sandbox.hosts == "all":
            sockets = "no unix"
        if self._sandbox.uses_proxy:
            sockets = "brokered"
            self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
            env |= _proxy_variables(self._listener.getsockname()[1])
        program = seccomp.compiled(sockets)
        ruleset = Ruleset(grants.read, (*grants.write, temporary), tcp=self._sandbox.hosts == "all")
        started: list[subprocess.Popen[bytes]] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                ruleset.restrict_thread()
                self._notices = seccomp.install(program, listener=sockets == "brokered")
                started.append(subprocess.Popen(command, env=env, cwd=grants.folder, **streams))
            except BaseException as bad:  # raised again in the calling thread
                failed.append(bad)

        try:
            thread = threading.Thread(target=run, name="interlock sandbox start")
            thread.start()
            thread.join()
        finally:
            ruleset.close()
        if failed:
            raise failed[0]
        return started[0]

    # -- running -----------------------------------------------------------------------------------

    async def attach(self) -> None:
        """Serve the program's proxy in this event loop."""
        self._loop = asyncio.get_running_loop()
        listener = self._listener
        if listener is None:
            return
        proxy = EgressProxy(self._sandbox, os.path.basename(self._command[0]), self._say)
        self._proxy = proxy
        self._listener = None
        address = listener.getsockname()
        admit = None if self._notices is None else proxy.admit_only()
        await proxy.serve(listener)
        if self._notices is not None and admit is not None:
            self._broker = seccomp.ConnectBroker(
                self._notices, (address[0], address[1]), admit, self._refused_directly
            )
            self._notices = None
            self._broker.start()

    def see_stderr(self, line: str) -> None:
        """Look for refusals in a line of the program's stderr."""
        if self._files is not None:
            self._files.see(line)

    async def aclose(self) -> None:
        """Close the proxy and remove the temporary files. The program must have ended."""
        if self._broker is not None:
            # In a thread: a connection that the broker opens waits for the proxy of this loop.
            await asyncio.to_thread(self._broker.close)
            self._broker = None
        if self._notices is not None:
            os.close(self._notices)
            self._notices = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._proxy is not None:
            await self._proxy.aclose()
            self._proxy = None
        if self._scratch:
            await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)
            self._scratch = ""

    def _refused_directly(self, host: str, port: int) -> None:
        """Report a connection that did not go through the proxy; called by the broker's thread."""
        if (host, port) not in self._direct and len(self._direct) < 50:
            self._direct.add((host, port))
            self._say(direct_refusal(host, port))

    def _say(self, words: str) -> None:
        """Report from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._report, words)


async def run_confined(
    sandbox: SandboxPolicy,
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    report: Callable[[str], None],
) -> int:
    """Run a program in a sandbox with the standard streams of this process, and return its exit
    code: 128 and the number of the signal that ended it.

    Args:
        sandbox: The policy.
        command: The program and its arguments.
        env: Its environment, without the variables of the policy.
        cwd: Its working folder; None for that of this process.
        report: Called with a sentence about each thing that was refused.

    Raises:
        SandboxUnavailable: The policy cannot be enforced.
        OSError: The program cannot be started.
    """
    confined = Confined(sandbox, command, env=env, cwd=cwd, report=report)
    loop = asyncio.get_running_loop()
    try:
        # In a session of its own it has no terminal to type into.
        process = await asyncio.to_thread(confined.start, start_new_session=True)
        try:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.add_signal_handler(number, _forward, process, number)
            await confined.attach()
            code = await asyncio.to_thread(process.wait)
        finally:
            _forward(process, signal.SIGKILL)
            process.wait()
    finally:
        await confined.aclose()
    return code if code >= 0 else 128 - code


def _forward(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, number)


def _proxy_variables(port: int) -> dict[str, str]:
    """Return the variables that lead programs to the proxy."""
    url = f"http://127.0.0.1:{port}"
    names = [spelled for name in _PROXY_VARIABLES for spelled in (name, name.lower())]
    local = "localhost,127.0.0.1,::1"
    return {
        **dict.fromkeys(names, url),
        "NO_PROXY": local,
        "no_proxy": local,
        "NODE_USE_ENV_PROXY": "1",  # without it, Node ignores the others
    }


class _BubblewrapInfo(Struct):
    """What bubblewrap writes about a program."""

    process: int = msgspec.field(name="child-pid")


_read_info = msgspec.json.Decoder(_BubblewrapInfo).decode


def _proxy_port(process: subprocess.Popen[bytes], info: int) -> socket.socket | None:
    """Return the port of the proxy in the namespace of a program that has not started yet; None if
    bubblewrap has ended: its stderr says why.

    Raises:
        SandboxUnavailable: The port cannot be opened.
    """
    with open(info, "rb", closefd=False) as file:
        written = file.read()  # to its end, which is also that of a bubblewrap that fails
    if not written:
        return None
    try:
        return namespace_ports().open(_read_info(written).process, bubblewrap.PROXY_PORT)
    except (OSError, msgspec.MsgspecError) as bad:
        process.kill()
        process.wait()
        raise SandboxUnavailable(
            f"The server was not started: the port of its proxy cannot be opened ({bad}). To start"
            ' it without the network, set "network": "none" in its sandbox.'
        ) from bad


def _file_of(content: bytes) -> int:
    """Return the descriptor of a file in memory, from which bubblewrap reads."""
    descriptor = os.memfd_create("interlock", 0)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor

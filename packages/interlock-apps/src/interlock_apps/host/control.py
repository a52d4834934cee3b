"""The control socket of a host: a Unix socket on which other commands of the same user find it, ask
for a new one-time address of its page, and give it runs.

A request is one line of JSON, and so is the response. The folder of the sockets can be entered by
its owner only, and each socket has mode 0600.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from .runs import Run

if TYPE_CHECKING:
    from .app import Host

SUFFIX = ".sock"
SECONDS = 5.0
"""How long a command waits for a host."""
_OTHERS = 0o077  # permissions of the group and of others
_LONGEST = 100  # bytes of the path of a socket; systems allow from 104 to 108
_MOST_BYTES = 1024 * 1024  # of a request


class HostRequest(Struct):
    """A request to a host.

    Attributes:
        command: "describe"; "address" for a new one-time address; "ask" for a new run; "runs" for
            the list of runs.
        text: The message of a new run.
        model: The model of a new run; "" for the first one.
    """

    command: Literal["describe", "address", "ask", "runs"]
    text: str = ""
    model: str = ""


class HostDescription(Struct):
    """A running host.

    Attributes:
        pid: Its process.
        folder: The folder in which it was started.
        title: The title of its page.
        servers: The ids of its servers.
        began: When it was started, in seconds of the wall clock.
    """

    pid: int
    folder: str
    title: str
    servers: list[str]
    began: float


class HostResponse(Struct, omit_defaults=True):
    """The response; `error` says why there is nothing else."""

    host: HostDescription | None = None
    address: str = ""
    session: str = ""
    runs: list[Run] = []
    error: str = ""


class HostUnreachable(Exception):
    """A host cannot be reached, or refuses a request; the message is for the person."""


_decode = msgspec.json.Decoder(HostRequest).decode
_decode_response = msgspec.json.Decoder(HostResponse).decode
_encode = msgspec.json.Encoder().encode


def control_folder(data: Path) -> Path:
    """Return the folder of the control sockets: in the user's runtime folder, if there is one.

    Args:
        data: The user's data folder, for systems without a runtime folder.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    base = Path(runtime, "interlock") if runtime and Path(runtime).is_dir() else data
    folder = base / "hosts"
    if len(os.fsencode(folder / f"{2**22}{SUFFIX}")) <= _LONGEST:
        return folder
    # A path that is too long for a socket: a folder beside the temporary files, with a name that
    # every command finds. `_private` checks that it is the user's own.
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"interlock-{os.getuid()}-{name}")


class HostSocket:
    """The control socket of this process.

    Args:
        host: The host.
        folder: The folder of the sockets.
        title: The title of the host's page.
        address: Returns a new one-time address of its page.
    """

    def __init__(self, host: Host, folder: Path, *, title: str, address: Callable[[], str]) -> None:
        self._host = host
        self._folder = folder
        self._title = title
        self._address = address
        self._here = str(Path.cwd().resolve())
        self._began = time.time()
        self._path = folder / f"{os.getpid()}{SUFFIX}"
        self._listener: asyncio.Server | None = None

    async def open(self) -> None:
        """Start to listen. Raises OSError if the socket cannot be created."""
        if not hasattr(asyncio, "start_unix_server"):
            raise OSError("this system has no Unix sockets")
        _private(self._folder)
        self._path.unlink(missing_ok=True)  # left by a process that was killed
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.bind(str(self._path))
            self._path.chmod(0o600)
            self._listener = await asyncio.start_unix_server(
                self._serve, sock=made, limit=_MOST_BYTES
            )
        except BaseException:
            made.close()
            raise

    async def aclose(self) -> None:
        """Stop to listen, and remove the socket."""
        listener = self._listener
        self._listener = None
        if listener is not None:
            listener.close()
            with contextlib.suppress(OSError):
                self._path.unlink()
                if self._folder.parent == Path(tempfile.gettempdir()):
                    self._folder.rmdir()  # unless another host uses it

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            response = self._answer(_decode(await reader.readline()))
        except (ValueError, msgspec.MsgspecError) as bad:
            response = HostResponse(error=str(bad))
        with contextlib.suppress(OSError):
            writer.write(_encode(response) + b"\n")
            await writer.drain()
        writer.close()

    def _answer(self, request: HostRequest) -> HostResponse:
        match request.command:
            case "describe":
                servers = list(self._host.hub.servers)
                described = HostDescription(
                    os.getpid(), self._here, self._title, servers, self._began
                )
                return HostResponse(host=described)
            case "address":
                return HostResponse(address=self._address())
            case "ask":
                session = self._host.start_run(request.text, model=request.model)
                return HostResponse(session=session.id)
            case "runs":
                return HostResponse(runs=self._host.runs())


def find_hosts(folder: Path) -> list[HostDescription]:
    """The running hosts of this user. Sockets of processes that are gone are removed."""
    found = []
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        return []
    for path in paths:
        if path.suffix == SUFFIX and path.stem.isdecimal():
            with contextlib.suppress(HostUnreachable):
                answer = _ask(path, HostRequest("describe"))
                if answer.host is not None:
                    found.append(answer.host)
    return found


def choose_host(hosts: Sequence[HostDescription], here: Path) -> HostDescription:
    """Choose the host of a folder: the one that was started in it, or in the nearest folder above;
    the only host, if there is one only.

    Raises:
        HostUnreachable: There is no host, or several to choose from.
    """
    if not hosts:
        raise HostUnreachable("No host is running. Start one with `interlock host`.")
    near = [one for one in hosts if here.is_relative_to(one.folder)]
    if near:
        longest = max(len(Path(one.folder).parts) for one in near)
        near = [one for one in near if len(Path(one.folder).parts) == longest]
        # of several in one folder, the last one that was started
        return max(near, key=lambda one: one.began)
    if len(hosts) == 1:
        return hosts[0]
    listed = "\n".join(f"  {one.folder} ({one.title}, process {one.pid})" for one in hosts)
    raise HostUnreachable(
        f"Several hosts are running. Name the folder of one by --folder:\n{listed}"
    )


def ask_host(folder: Path, host: HostDescription, request: HostRequest) -> HostResponse:
    """Send a request to a host.

    Raises:
        HostUnreachable: It cannot be reached, or refuses the request.
    """
    answer = _ask(folder / f"{host.pid}{SUFFIX}", request)
    if answer.error:
        raise HostUnreachable(answer.error)
    return answer


def _ask(path: Path, request: HostRequest) -> HostResponse:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(SECONDS)
        try:
            link.connect(str(path))
            link.sendall(_encode(request) + b"\n")
            with link.makefile("rb") as file:
                line = file.readline()
        except TimeoutError:
            raise HostUnreachable(f"The host with the socket {path} does not answer.") from None
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            raise HostUnreachable("The host has ended.") from None
        except OSError as bad:
            raise HostUnreachable(f"{path} cannot be used: {bad.strerror}.") from None
    try:
        return _decode_response(line)
    except msgspec.MsgspecError:
        raise HostUnreachable(
            f"The host with the socket {path} ended, or is of another version."
        ) from None


def _private(folder: Path) -> None:
    """Create the folder for its owner only. Raises OSError if it is not the user's own."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise OSError(f"{folder} belongs to somebody else")
    if stat.S_IMODE(found.st_mode) & _OTHERS:
        raise OSError(f"others may open {folder}; run `chmod 700 {folder}`")

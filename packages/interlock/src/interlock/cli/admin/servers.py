"""The clients of `interlock admin` and `interlock top`: ask the processes of a server, over their
admin sockets or over the admin path of its endpoint.
"""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

import click
import msgspec

from ...addresses import is_here
from ...http11.client import HttpFetch
from ...http11.fetch import Request
from ...http11.headers import is_address
from ...redaction import url_without_secrets
from ...server.run.admin import SUFFIX, AdminRequest, AdminResponse
from ...server.run.admin_path import SECRET_VARIABLE, RelayedRequest, RelayedResponse
from ...types import InterlockError

LEVELS: Final = ("debug", "info", "warning", "error")
"""The log levels that an operator can choose."""

_SECONDS: Final = 5.0  # to wait for each process
_PATH_SECONDS: Final = 10.0  # to wait for the admin path, which waits for all processes
_MOST_BYTES: Final = 64 * 1024 * 1024

_decode = msgspec.json.Decoder(AdminResponse).decode
_decode_relayed = msgspec.json.Decoder(RelayedResponse).decode


class AdminServer(Protocol):
    """A running server, as an operator sees it. Every method raises click.ClickException if the
    server cannot be used, or refuses a request.
    """

    def processes(self) -> list[int]:
        """Return the ids of its processes."""
        ...

    def ask(self, pid: int, request: AdminRequest) -> AdminResponse | None:
        """Ask one process. Returns None if it is gone. Raises TimeoutError if it does not
        answer.
        """
        ...

    def ask_all(self, request: AdminRequest) -> dict[int, AdminResponse | None]:
        """Ask every process. None stands for one that does not answer."""
        ...


def admin_server(target: str) -> AdminServer:
    """Return the server that a command line names: the folder of its admin sockets, or the URL of
    its admin path.

    Raises:
        click.ClickException: The URL cannot be used, or there is no secret for it.
    """
    if "://" not in target:
        return AdminSocketServer(Path(target))
    server = AdminPathServer(target)
    click.get_current_context().call_on_close(server.close)
    return server


class AdminSocketServer:
    """A server on this machine, through its admin sockets.

    Args:
        folder: The folder of the sockets.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def processes(self) -> list[int]:
        """See AdminServer."""
        return list(self._sockets())

    def _sockets(self) -> dict[int, Path]:
        try:
            found = sorted(self._folder.iterdir())
        except OSError as bad:
            raise click.ClickException(f"{self._folder} cannot be read: {bad.strerror}.") from None
        sockets = {
            int(path.stem): path
            for path in found
            if path.suffix == SUFFIX and path.stem.isdecimal()
        }
        if not sockets:
            raise click.ClickException(f"No server runs with --admin {self._folder}.")
        return sockets

    def ask(self, pid: int, request: AdminRequest) -> AdminResponse | None:
        """See AdminServer. The socket of a process that is gone is removed."""
        path = self._folder / f"{pid}{SUFFIX}"
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(_SECONDS)
            try:
                link.connect(str(path))
                link.sendall(msgspec.json.encode(request) + b"\n")
                with link.makefile("rb") as file:
                    line = file.readline()
            except TimeoutError:
                raise
            except (ConnectionRefusedError, FileNotFoundError):
                path.unlink(missing_ok=True)
                return None
            except OSError as bad:
                raise click.ClickException(f"{path} cannot be used: {bad.strerror}.") from None
        if not line:  # it ended while it answered
            return None
        return _checked(_decode(line))

    def ask_all(self, request: AdminRequest) -> dict[int, AdminResponse | None]:
        """See AdminServer."""
        found: dict[int, AdminResponse | None] = {}
        for pid in self.processes():
            try:
                answer = self.ask(pid, request)
            except TimeoutError:
                found[pid] = None
            else:
                if answer is not None:
                    found[pid] = answer
        return found


class AdminPathServer:
    """A server anywhere, through the admin path of its endpoint.

    Args:
        url: The URL of the path.

    Raises:
        click.ClickException: The URL cannot be used, or there is no secret for it.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._shown = url_without_secrets(url)
        if not is_address(url):
            raise click.ClickException(f"{self._shown} is no URL of an admin path.")
        parts = urlsplit(url)
        if parts.scheme == "http" and not is_here(parts.hostname or ""):
            raise click.ClickException(
                f"{self._shown}: the secret would be readable on its way. Use https."
            )
        self._secret = os.environ.get(SECRET_VARIABLE, "")
        if not self._secret:
            raise click.ClickException(
                f"Put the secret of the admin path into the variable {SECRET_VARIABLE}."
            )
        self._fetch = HttpFetch(most_connections=1)
        self._runner: asyncio.Runner | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._runner is not None:
            self._runner.run(self._fetch.aclose())
            self._runner.close()
            self._runner = None

    def processes(self) -> list[int]:
        """See AdminServer."""
        return list(self._relayed(RelayedRequest("processes")))

    def ask(self, pid: int, request: AdminRequest) -> AdminResponse | None:
        """See AdminServer."""
        found = self._relayed(RelayedRequest(request.command, request.id, pid))
        if pid not in found:
            return None
        answer = found[pid]
        if answer is None:
            raise TimeoutError(f"the process {pid} does not answer")
        return _checked(answer)

    def ask_all(self, request: AdminRequest) -> dict[int, AdminResponse | None]:
        """See AdminServer."""
        found = self._relayed(RelayedRequest(request.command, request.id, most=request.most))
        return {pid: None if each is None else _checked(each) for pid, each in found.items()}

    def _relayed(self, request: RelayedRequest) -> dict[int, AdminResponse | None]:
        if self._runner is None:  # the connection is kept between two readings
            self._runner = asyncio.Runner()
        try:
            status, body = self._runner.run(self._post(msgspec.json.encode(request)))
        except (InterlockError, TimeoutError) as bad:
            words = "it does not answer" if isinstance(bad, TimeoutError) else str(bad)
            raise click.ClickException(f"{self._shown}: {words}") from None
        if status == 401:
            raise click.ClickException(f"{self._shown} refuses the secret in {SECRET_VARIABLE}.")
        try:
            if status == 200:
                relayed = _decode_relayed(body)
                return {int(pid): each for pid, each in relayed.processes.items()}
            words = _decode(body).error
        except (msgspec.DecodeError, ValueError):
            words = ""
        raise click.ClickException(
            f"{self._shown} answered with status {status}. {words or 'Is it an admin path?'}"
        )

    async def _post(self, body: bytes) -> tuple[int, bytes]:
        headers = (
            ("Authorization", f"Bearer {self._secret}"),
            ("Content-Type", "application/json"),
        )
        async with asyncio.timeout(_PATH_SECONDS):
            response = await self._fetch(Request("POST", self._url, headers, body))
            try:
                return response.status, await response.read(_MOST_BYTES)
            finally:
                await response.aclose()


def _checked(response: AdminResponse) -> AdminResponse:
    if response.error:
        raise click.ClickException(response.error)
    return response

"""The client of admin sockets: asks every process of a server."""

from __future__ import annotations

import socket
from pathlib import Path

import click
import msgspec

from ...server.run.admin import SUFFIX, AdminRequest, AdminResponse

_SECONDS = 5.0  # to wait for each process

_decode = msgspec.json.Decoder(AdminResponse).decode


def processes(folder: Path) -> dict[int, Path]:
    """Return the sockets of a folder, by process id. Raises click.ClickException."""
    try:
        found = sorted(folder.iterdir())
    except OSError as bad:
        raise click.ClickException(f"{folder} cannot be read: {bad.strerror}.") from None
    sockets = {
        int(path.stem): path for path in found if path.suffix == SUFFIX and path.stem.isdecimal()
    }
    if not sockets:
        raise click.ClickException(f"No server runs with --admin {folder}.")
    return sockets


def ask(path: Path, request: AdminRequest) -> AdminResponse | None:
    """Ask one process. Returns None if it is gone; then its socket is removed.

    Raises click.ClickException if it refuses, and TimeoutError if it does not answer.
    """
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
    response = _decode(line)
    if response.error:
        raise click.ClickException(response.error)
    return response

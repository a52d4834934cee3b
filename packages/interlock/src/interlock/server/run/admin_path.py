"""The admin path: an HTTP route, protected by a secret, that relays requests of an operator to the
admin sockets of all processes of a server.

Hazard: whoever has the secret can end every call. Without TLS the secret is readable on its way.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ...logs import limited
from ...transport.http.requests import Receive, Scope, Send, send_body
from ...transport.http.routes import Route
from .admin import SUFFIX, AdminRequest, AdminResponse

log = limited("interlock.server")

SECRET_VARIABLE: Final = "INTERLOCK_ADMIN_SECRET"
"""The variable with the secret of the admin path, for servers and for operators."""
LEAST_SECRET: Final = 32
"""The minimum length of the secret, in characters: nobody can guess as many random ones."""

_SECONDS = 5.0  # that a process has to answer
_MOST_BYTES = 64 * 1024  # of a request
_FOR_ONE = ("drain", "shutdown")  # commands that are sent to one process only
_SCHEME = b"bearer "

_encode = msgspec.json.Encoder().encode
_decode_response = msgspec.json.Decoder(AdminResponse).decode


class RelayedRequest(Struct, forbid_unknown_fields=True):
    """The body of a request to the admin path.

    Attributes:
        command: The command, see AdminRequest; "processes" asks nobody and lists the processes.
        id: What to end.
        pid: The process to ask; None for all.
        most: The maximum number of sessions to show, for each process.
    """

    command: str
    id: str = ""
    pid: int | None = None
    most: int = 10_000


class RelayedResponse(Struct):
    """The body of a response of the admin path.

    Attributes:
        processes: The response of each process, by process id; None for one that does not answer.
    """

    processes: dict[str, AdminResponse | None]


_decode = msgspec.json.Decoder(RelayedRequest).decode


def admin_route(path: str, folder: str | os.PathLike[str], secret: str | None) -> Route:
    """Return the admin path as a route of the endpoint. It is not behind the guard.

    Args:
        path: The path, such as `/admin`.
        folder: The folder of the admin sockets.
        secret: The secret; None for that of the variable INTERLOCK_ADMIN_SECRET.

    Raises:
        ValueError: The path is invalid, or the secret is missing or too short.
    """
    if not path.startswith("/") or path.endswith("/") or "//" in path or "?" in path:
        raise ValueError(f"admin_path is a path such as '/admin', not {path!r}")
    known = secret if secret is not None else os.environ.get(SECRET_VARIABLE, "")
    if len(known) < LEAST_SECRET:
        raise ValueError(
            f"admin_path needs a secret of at least {LEAST_SECRET} characters: set"
            f" {SECRET_VARIABLE}, for example to what `openssl rand -hex 32` prints"
        )
    return Route(path, AdminPath(folder, known), frozenset({"POST"}))


class AdminPath:
    """The ASGI app of the admin path. It takes POST requests with the secret as a bearer token.

    Args:
        folder: The folder of the admin sockets.
        secret: The secret.
    """

    def __init__(self, folder: str | os.PathLike[str], secret: str) -> None:
        self._folder = Path(folder)
        self._digest = _digest(secret.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = dict(scope["headers"])
        if b"origin" in headers:
            await _refuse(send, 403, "Web pages cannot use this path.")
            return
        if not self._is_authorized(headers.get(b"authorization", b"")):
            log.warning("a request to the admin path came without its secret")
            challenge = ((b"www-authenticate", b'Bearer realm="admin"'),)
            await _refuse(send, 401, "The secret of the admin path is missing.", challenge)
            return
        body = await _read(receive)
        if body is None:
            return
        try:
            request = _decode(body)
            if request.command in _FOR_ONE and request.pid is None:
                raise ValueError(f"{request.command} needs a pid")
        except (msgspec.DecodeError, ValueError) as bad:
            await _refuse(send, 400, str(bad))
            return
        found = await self._relay(request)
        await send_body(send, 200, _encode(RelayedResponse(found)), headers=_NO_STORE)

    def _is_authorized(self, header: bytes) -> bool:
        """Compare in constant time, whatever the length."""
        given = header[len(_SCHEME) :] if header[: len(_SCHEME)].lower() == _SCHEME else b""
        return hmac.compare_digest(_digest(given), self._digest)

    async def _relay(self, request: RelayedRequest) -> dict[str, AdminResponse | None]:
        paths = {
            path.stem: path
            for path in sorted(self._folder.glob(f"*{SUFFIX}"))
            if path.stem.isdecimal() and request.pid in (None, int(path.stem))
        }
        if request.command == "processes":
            return {pid: AdminResponse() for pid in paths}
        asked = AdminRequest(request.command, request.id, request.most)
        answers = await asyncio.gather(*(_ask(path, asked) for path in paths.values()))
        found = dict(zip(paths, answers, strict=True))
        return {pid: answer for pid, answer in found.items() if answer is not _GONE}


_NO_STORE = ((b"cache-control", b"no-store"),)
_GONE: Final = AdminResponse(error="gone")


async def _ask(path: Path, request: AdminRequest) -> AdminResponse | None:
    """Ask one process. Returns None if it does not answer in time, and `_GONE` if it has ended."""
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(_encode(request) + b"\n")
                line = await reader.read()  # to the end: a line may be longer than readline allows
            finally:
                writer.close()
        return _decode_response(line) if line else _GONE
    except (ConnectionRefusedError, FileNotFoundError):
        with contextlib.suppress(OSError):  # left by a process that was killed
            os.unlink(path)
        return _GONE
    except (OSError, msgspec.DecodeError):  # OSError: a timeout too
        return None


async def _read(receive: Receive) -> bytes | None:
    """Return the body of a request; None if the client has gone, or sends too much."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        piece: bytes = message.get("body", b"")
        body += piece
        if len(body) > _MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return body


async def _refuse(
    send: Send, status: int, words: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    answer = _encode(AdminResponse(error=words))
    await send_body(send, status, answer, headers=(*_NO_STORE, *headers))


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()

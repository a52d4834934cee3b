"""The trust record: which servers of project files the user allowed to be started or reached.

A configuration file of a project may come from anyone, and a command in it runs with the rights of
the user. So the user is asked first (`start_request`), and the answer is stored in a file of the
user (`TrustRecord`), which both the host and the command use. The answer covers the server exactly
as it was shown (`approval_of`): if its command changes, the user is asked again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from ..addresses import is_here
from ..redaction import is_secretive
from ..sandbox.entry_form import sandbox_entry
from ..untrusted.invisible import visible_line
from .command_warnings import StartWarning, command_warnings
from .entries import Entry
from .products import PRODUCTS, PROJECT_FILES, PROJECT_FOLDERS, this_machine
from .record_file import RecordFile

_PROJECT_NAMES = frozenset(Path(file).name for file in PROJECT_FILES)
_UNCONFINED = "It would run unconfined: no sandbox works on this machine."
_SWITCHED_OFF = "Its entry switches the sandbox off, so it would run unconfined."


class StartRequest(Struct, frozen=True, kw_only=True):
    """The facts that the user should know before a server is started or contacted.

    Attributes:
        server: The id of the server.
        command: The whole command or URL, untruncated, without secrets.
        source: The file that it comes from.
        trusted: Whether the file asks to trust the annotations of its tools.
        roots: Folders that the file grants to the server.
        variables: The variables that it gets, without secret values.
        runs_code: Whether a program is started; False for a URL.
        confinement: What its sandbox allows; empty if it runs with the rights of the user.
        warnings: Warnings about the command.
    """

    server: str
    command: str
    source: str = ""
    trusted: bool = False
    roots: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    runs_code: bool = True
    confinement: str = ""
    warnings: tuple[StartWarning, ...] = ()


class _Described(Protocol):
    """A StartRequest, or a question that a program makes from one."""

    @property
    def source(self) -> str: ...
    @property
    def variables(self) -> tuple[str, ...]: ...
    @property
    def trusted(self) -> bool: ...
    @property
    def roots(self) -> tuple[str, ...]: ...
    @property
    def runs_code(self) -> bool: ...
    @property
    def confinement(self) -> str: ...


def start_request(entry: Entry, *, confinement: str = "", unconfined: str = "") -> StartRequest:
    """Return the facts that the user should know before a server is started or contacted.

    Args:
        entry: The server.
        confinement: What its sandbox allows; empty without a sandbox.
        unconfined: Why a server that should have a sandbox would be started without one; empty
            otherwise.
    """
    warned = (StartWarning("unconfined", _UNCONFINED, unconfined),) if unconfined else ()
    if entry.command and entry.sandbox is False:
        warned = (StartWarning("unconfined", _SWITCHED_OFF),)
    folder = (
        (StartWarning("folder", "The command runs in this folder.", entry.shown_cwd),)
        if entry.shown_cwd
        else ()
    )
    return StartRequest(
        server=entry.id,
        command=entry.shown,
        source=entry.source,
        trusted=entry.trusted,
        roots=entry.roots,
        variables=tuple(dict.fromkeys([*entry.shown_env, *entry.variables])),
        runs_code=bool(entry.command),
        confinement=confinement,
        warnings=(*warned, *folder, *command_warnings(entry.command), *_plain_http_warnings(entry)),
    )


def start_facts(request: _Described) -> list[str]:
    """Return further facts for the user, one phrase each. They may quote untrusted text."""
    found = [f"from {request.source}"] if request.source else []
    if request.variables:
        found.append(f"variables: {', '.join(request.variables)}")
    if request.trusted:
        found.append("the annotations of its tools are trusted")
    if request.roots:
        found.append(f"it is told about the folders {', '.join(request.roots)}")
    if request.runs_code:
        confined = f"it runs in a sandbox ({request.confinement})"
        found.append(confined if request.confinement else "it runs with your rights")
    return found


def approval_of(entry: Entry, *, unconfined: bool = False) -> str:
    """Return the scope of an approval, as a text that changes with any part of it.

    Args:
        entry: The server.
        unconfined: Whether it is started without the sandbox that it should have.
    """
    scope = [entry.digest, "trusted" if entry.trusted else "", *entry.roots]
    if entry.sandbox is not None:
        scope.append(f"sandbox {json.dumps(sandbox_entry(entry.sandbox), sort_keys=True)}")
    if unconfined:
        scope.append("unconfined")
    return "\n".join(scope)


def comes_from_project(source: str) -> bool:
    """Whether a configuration file is one of a project, which may come from anyone.

    Args:
        source: The path of the file (`Entry.source`).
    """
    if not source or is_own_file(Path(source)):
        return False
    path = Path(os.path.abspath(source))
    return path.name in _PROJECT_NAMES or path.parent.name in PROJECT_FOLDERS


def is_own_file(path: Path) -> bool:
    """Whether a file is the configuration of one of the user's own clients, and not of a
    project.
    """
    machine = this_machine()
    own = (product.path(machine) for product in PRODUCTS.values())
    return any(os.path.realpath(path) == os.path.realpath(each) for each in own)


class TrustRecord(RecordFile):
    """The servers that the user allowed, by configuration file and id."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, {"interlock": "trust", "version": 1, "servers": {}})

    def allows(self, config: Path, server: str, approval: str) -> bool:
        """Whether the user allowed a server of a configuration, as it is now.

        Args:
            config: The configuration file.
            server: The name of the server.
            approval: The present scope, as `approval_of` returns it.

        Raises:
            BadRecord: The record cannot be read.
        """
        servers: dict[str, str] = self.read()["servers"]
        return bool(approval) and servers.get(_key(config, server)) == approval

    def allow(self, config: Path, server: str, approval: str) -> None:
        """Record that the user allowed a server.

        Args:
            config: The configuration file.
            server: The name of the server.
            approval: The approved scope, as `approval_of` returns it.

        Raises:
            BadRecord: The record cannot be read or written.
        """
        self.edit(lambda data: data["servers"].update({_key(config, server): approval}))

    def check(self, data: Any) -> str:
        """Return the error in the data of a file. Invalid data is never repaired by a guess, which
        could approve a server.
        """
        servers = data.get("servers") if isinstance(data, dict) else None
        approvals = servers.values() if isinstance(servers, dict) else [None]
        is_record = all(isinstance(approval, str) for approval in approvals)
        if not is_record or data.get("interlock") != "trust":
            return (
                "is not a record of trusted servers. Move it away; Interlock then asks "
                "about each server again."
            )
        if data.get("version") != 1 or isinstance(data["version"], bool):
            return "was written by a newer version of Interlock. Update Interlock."
        return ""


def _key(config: Path, server: str) -> str:
    """Return the key of a server: the same id in another file is another server."""
    return f"{config.resolve()}#{server}"


def _plain_http_warnings(entry: Entry) -> tuple[StartWarning, ...]:
    """Warn if secrets are sent over plain http to another machine."""
    parts = urlsplit(entry.url)
    if parts.scheme != "http" or is_here(parts.hostname or ""):
        return ()
    secret = [
        name
        for name, value in entry.headers.items()
        if is_secretive(name) or _is_filled_in(entry, f"headers.{name}", value)
    ]
    if _is_filled_in(entry, "url", entry.url):
        secret.append("URL")
    if not secret:
        return ()
    words = (
        "Secrets are sent over plain http, where others on the network can read them. Use https."
    )
    return (StartWarning("plain", words, visible_line(", ".join(secret))),)


def _is_filled_in(entry: Entry, place: str, value: str) -> bool:
    """Return whether a text contains the value of a variable, or a secret."""
    origin = entry.origins.get(place)
    masked = origin is not None and origin.masked != value
    return masked or any(secret in value for secret in entry.secrets if secret)

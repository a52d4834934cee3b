"""Decides whether a configured server is started in a sandbox: one rule for the host, the gateway
and the command.

Servers from a project's file are confined unless their entry says otherwise: the file may come from
anyone. An entry from a registry has `"sandbox": true`. What the user wrote is confined if it says
so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from ..sandbox.entry_form import sandbox_words
from ..sandbox.mechanisms import unavailable_reason
from ..sandbox.sandbox import Sandbox
from ..store import StoreError, data_folder
from .entries import Entry
from .trust import comes_from_project

_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")


class ServerConfinement(Struct, frozen=True, kw_only=True):
    """How one server is started.

    Attributes:
        sandbox: Its sandbox; None if it runs with the rights of the user.
        words: What the sandbox allows, as one phrase; empty without one.
        problem: Why a server that should be confined cannot be; empty otherwise. The host asks
            the person before it starts such a server, and the gateway does not start it.
    """

    sandbox: Sandbox | None = None
    words: str = ""
    problem: str = ""


def confinement_of(entry: Entry, roots: Sequence[str] = ()) -> ServerConfinement:
    """Return how a server is to be started.

    Its roots are writable, and its home folder is one of its own, which keeps the packages that
    `uvx` or `npx` downloaded for it.

    Args:
        entry: The server.
        roots: Further folders that exist, which the person gives it as roots.
    """
    asked = entry.sandbox
    if asked is None:
        asked = comes_from_project(entry.source)
    if not entry.command or asked is False:
        return ServerConfinement()
    if reason := unavailable_reason():
        return ServerConfinement(problem=reason)
    sandbox = Sandbox() if asked is True else asked
    home = sandbox.home if sandbox.home is not None else _home_of(entry)
    write = tuple(dict.fromkeys((*sandbox.write, *entry.roots, *roots)))
    sandbox = replace(sandbox, write=write, home=home)
    return ServerConfinement(sandbox=sandbox, words=sandbox_words(sandbox))


def _home_of(entry: Entry) -> str | None:
    """Return the home folder of a confined server: the same at each start of it."""
    try:
        folder = data_folder().parent / "sandboxes"
    except StoreError:
        return None  # a temporary one
    digest = sha256(f"{entry.source}#{entry.id}".encode()).hexdigest()[:12]
    name = _UNUSUAL.sub("-", entry.id)[:40]
    return str(folder / f"{name}-{digest}")

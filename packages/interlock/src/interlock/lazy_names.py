"""Lazy loading of public names: a package imports the module of a name at its first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(
    package: str, rooms: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package with an `__all__`.

    `rooms` maps each module, relative to the package, to the names that it defines.
    """
    homes = {name: room for room, names in rooms.items() for name in names}

    def load(name: str) -> Any:
        room = homes.get(name)
        if room is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(room, package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(sys.modules[package].__all__)


def public_name(name: str) -> Any:
    """Return a name of the public API.

    For the two places where the packages of servers and of clients, which never import each other,
    are joined: `Server.mount` makes a Client of a URL, and a Client of many targets is a Server
    that has mounted them.
    """
    return getattr(sys.modules[__package__ or "interlock"], name)

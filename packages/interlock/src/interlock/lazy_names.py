"""Names of a package that are loaded at first use, so that nobody loads what they do not need."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(
    package: str, rooms: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package with an `__all__`.

    `rooms` says which names live in which module, named from the package.
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

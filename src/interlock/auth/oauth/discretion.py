"""Records that hold secrets, and show nothing of them where they are printed: in a traceback, a debugger, a log."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct


class Discreet(Struct, frozen=True):
    """A record of which only the members in `shows` are printed (`AUS-13`)."""

    shows: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.shows)
        return f"{type(self).__name__}({said}{', ' if said else ''}...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.shows]

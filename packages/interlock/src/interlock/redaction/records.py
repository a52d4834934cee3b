"""Redaction of records: a record that holds secrets prints none of them in a traceback, a debugger
or a log.
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct


class SecretRecord(Struct, frozen=True):
    """A record whose `repr` has only the members named in `shows` (`AUS-13`)."""

    shows: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.shows)
        return f"{type(self).__name__}({said}{', ' if said else ''}...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.shows]

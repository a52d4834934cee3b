"""Progress that an async generator yields while it runs."""

from __future__ import annotations

import msgspec


class Progress(msgspec.Struct, frozen=True):
    """The progress of a call. An async generator yields it before its result.

    Attributes:
        progress: A number that grows with each notification.
        total: The value at the end, in the same unit, if known.
        message: A text for people.
    """

    progress: float
    total: float | None = None
    message: str | None = None

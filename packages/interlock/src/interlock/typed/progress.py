"""Progress that an async generator yields while it runs."""

from __future__ import annotations

import msgspec


class Progress(msgspec.Struct, frozen=True):
    """How far a call has come. An async generator yields it before its result.

    Attributes:
        progress: Grows with each notice.
        total: The value at the end, in the same unit, if known.
        message: A text for people.
    """

    progress: float
    total: float | None = None
    message: str | None = None

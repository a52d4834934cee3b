"""What was found out about some bytes, and need not be found out again."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")
_MOST = 64


class Known(dict[bytes, Value]):
    """Values by the digest of all that they depend on; where there is no more room, what was kept first is forgotten."""

    def __setitem__(self, digest: bytes, value: Value) -> None:
        """Keep a value."""
        if len(self) >= _MOST and digest not in self:
            del self[next(iter(self))]
        super().__setitem__(digest, value)

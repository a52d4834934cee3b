"""The interface of vaults: names of any text, values up to 1 MiB, expiry by the wall clock."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

# The longest value, and the longest kind and key, in bytes (of UTF-8).
VALUE_BYTES = 1024 * 1024
NAME_BYTES = 8192

# Records of one vault, and bytes in all their names and values, where the vault holds them in
# memory.
RECORDS = 100_000
RECORDS_BYTES = 256 * 1024 * 1024

Name = tuple[bytes, bytes]


@runtime_checkable
class Vault(Protocol):
    """Small records, secret ones too, by kind and key.

    Each may have an end (`until`, wall clock seconds), after which it is gone.

    Kinds and keys may be any text of up to 8,192 bytes, values are at most 1 MiB; ValueError is
    raised for more. Each method is one step that happens whole or not at all, also among processes
    that share the vault. A method that is cancelled may have happened. StoreError is raised, with
    words that say what to do, where the vault cannot be used; nothing is ever lost without one. A
    vault may be used from several event loops, one after another, and from several threads.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes that open the same place find the same records."""
        ...

    @property
    def sealed(self) -> bool:
        """Whether someone who reads the disk, or the server, that the values lie on, still cannot
        read them.
        """
        ...

    async def get(self, kind: str, key: str) -> bytes | None:
        """What is kept; None where nothing is, or its end has come."""
        ...

    async def put(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> None:
        """Keep this, in the place of what was there; the end is `until`, or there is none."""
        ...

    async def add(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> bool:
        """Keep this where nothing is kept; False, and nothing changed, where something is.

        Of many who add at once one is told True.
        """
        ...

    async def swap(
        self, kind: str, key: str, was: bytes, value: bytes, *, until: float | None = None
    ) -> bool:
        """Keep this, with this end, if what is kept still is `was`.

        False, and nothing changed, where it is not.

        An `until` that has passed removes it.
        """
        ...

    async def pop(self, kind: str, key: str) -> bytes | None:
        """Get and remove; of many who take at once one gets it."""
        ...

    async def remove(self, kind: str, key: str) -> bool:
        """Remove; whether there was something."""
        ...

    async def keys(self, kind: str) -> list[str]:
        """The keys of what is kept of a kind, in order of their letters."""
        ...

    async def aclose(self) -> None:
        """Let go of files and connections; may be called twice.

        A vault that is used again opens them again.
        """
        ...


def name(kind: str, key: str) -> Name:
    """Kind and key as they are kept. Raises ValueError where one is too long."""
    return encoded(kind), encoded(key)


def encoded(text: str) -> bytes:
    """One of them, whatever text it is. Raises ValueError where it is too long."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > NAME_BYTES:
        raise ValueError(
            f"kinds and keys of a vault are at most {NAME_BYTES} bytes long, and this one is "
            f"{len(data)}"
        )
    return data


def decoded(data: bytes) -> str:
    """The other way."""
    return data.decode("utf-8", "surrogatepass")


def checked(value: bytes) -> bytes:
    """The value, if a vault takes it.

    Raises ValueError where it is too long, TypeError where it is not bytes.
    """
    if not isinstance(value, bytes):
        raise TypeError(f"a vault keeps bytes, and this is {type(value).__name__}")
    if len(value) > VALUE_BYTES:
        raise ValueError(
            f"a value in a vault is at most {VALUE_BYTES} bytes long, and this one is {len(value)}"
        )
    return value


def ending(until: float | None) -> float | None:
    """The end, if it is one; None for never. Raises ValueError where it is no time."""
    if until is None or until == math.inf:
        return None
    if math.isnan(until):
        raise ValueError(
            "the end of a record is in seconds of the wall clock, and this is not a number"
        )
    return float(until)

"""The interface of vaults: names of any text, values up to 1 MiB, expiry by the wall clock."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

# The longest value, and the longest kind and key, in bytes (of UTF-8).
VALUE_BYTES = 1024 * 1024
NAME_BYTES = 8192

# The limits of a vault that holds its records in memory: the number of records, and the bytes of
# all names and values.
RECORDS = 100_000
RECORDS_BYTES = 256 * 1024 * 1024

Name = tuple[bytes, bytes]


@runtime_checkable
class Vault(Protocol):
    """Small records, also secret ones, by kind and key. A record may expire (`until`, in seconds of
    the wall clock).

    Kinds and keys may be any text of up to 8,192 bytes, and values have at most 1 MiB; ValueError
    is raised for more. Each method is atomic, also among processes that share the vault. A
    cancelled method may have taken effect. StoreError says that the vault cannot be used, and what
    to do; no data is ever lost without an error. A vault may be used from several event loops, one
    after another, and from several threads.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes that open the same location see the same records."""
        ...

    @property
    def sealed(self) -> bool:
        """Whether the values are unreadable to a person who can read the disk, or the server, that
        stores them.
        """
        ...

    async def get(self, kind: str, key: str) -> bytes | None:
        """The value; None if there is no record, or it has expired."""
        ...

    async def put(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> None:
        """Store a value, and replace the old one. It expires at `until`, or never."""
        ...

    async def add(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> bool:
        """Store a value if the record does not exist. False if it does; then nothing changes.

        Only one of several concurrent callers gets True.
        """
        ...

    async def swap(
        self, kind: str, key: str, was: bytes, value: bytes, *, until: float | None = None
    ) -> bool:
        """Replace the value and the expiry if the value is still `was`. False if it is not; then
        nothing changes.

        An `until` in the past removes the record.
        """
        ...

    async def pop(self, kind: str, key: str) -> bytes | None:
        """Return the value and remove the record. Only one of several concurrent callers gets
        it.
        """
        ...

    async def remove(self, kind: str, key: str) -> bool:
        """Remove a record. False if there was none."""
        ...

    async def keys(self, kind: str) -> list[str]:
        """The keys of the records of a kind, in the order of their code points."""
        ...

    async def aclose(self) -> None:
        """Close files and connections. May be called more than once.

        They are opened again if the vault is used again.
        """
        ...


def name(kind: str, key: str) -> Name:
    """Kind and key as they are stored. Raises ValueError if one is too long."""
    return encoded(kind), encoded(key)


def encoded(text: str) -> bytes:
    """A kind or key as bytes, whatever text it is. Raises ValueError if it is too long."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > NAME_BYTES:
        raise ValueError(
            f"kinds and keys of a vault are at most {NAME_BYTES} bytes long, and this one is "
            f"{len(data)}"
        )
    return data


def decoded(data: bytes) -> str:
    """A kind or key from bytes."""
    return data.decode("utf-8", "surrogatepass")


def checked(value: bytes) -> bytes:
    """Return a valid value.

    Raises ValueError if it is too long, TypeError if it is not bytes.
    """
    if not isinstance(value, bytes):
        raise TypeError(f"a vault keeps bytes, and this is {type(value).__name__}")
    if len(value) > VALUE_BYTES:
        raise ValueError(
            f"a value in a vault is at most {VALUE_BYTES} bytes long, and this one is {len(value)}"
        )
    return value


def ending(until: float | None) -> float | None:
    """The expiry; None for never. Raises ValueError if it is not a time."""
    if until is None or until == math.inf:
        return None
    if math.isnan(until):
        raise ValueError(
            "the end of a record is in seconds of the wall clock, and this is not a number"
        )
    return float(until)

"""Types for the part of asyncpg that this engine uses, as asyncpg has no type hints."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct


class Type(Protocol):
    """The type of a column or of a parameter."""

    oid: int
    name: str


class Attribute(Protocol):
    """A column of a prepared statement's result."""

    name: str
    type: Type


class Prepared(Protocol):
    """A prepared statement."""

    def get_attributes(self) -> Sequence[Attribute]:
        """The columns of its rows."""
        ...

    def get_statusmsg(self) -> str:
        """What the server said when it had run: "INSERT 0 1"."""
        ...

    async def fetch(self, *arguments: Any) -> list[Sequence[Any]]:
        """Run it."""
        ...


class Connection(Protocol):
    """A connection to a server."""

    async def execute(self, query: str) -> str:
        """Run what may be several statements of our own, without parameters."""
        ...

    async def fetch(self, query: str, *arguments: Any) -> list[Mapping[str, Any]]:
        """The rows of a statement of our own."""
        ...

    async def fetchval(self, query: str, *arguments: Any) -> Any:
        """The first value of the first row of a statement of our own."""
        ...

    async def prepare(self, query: str) -> Prepared:
        """Have one statement taken apart. The protocol takes no second one."""
        ...

    async def set_type_codec(
        self,
        typename: str,
        *,
        schema: str,
        encoder: Callable[[Any], Any],
        decoder: Callable[[str], Any],
        format: str = "text",
    ) -> None:
        """Say how the values of a type are read and written."""
        ...

    async def close(self, *, timeout: float) -> None:
        """End in good order."""
        ...

    def terminate(self) -> None:
        """End at once."""
        ...

    def is_closed(self) -> bool:
        """Whether it has ended, from either side."""
        ...

    def is_in_transaction(self) -> bool:
        """Whether the server said last that a transaction is open."""
        ...

    def get_server_pid(self) -> int:
        """The number of the process that serves it."""
        ...

    def get_server_version(self) -> tuple[int, ...]:
        """The version of the server, the great number first."""
        ...


class Driver(Struct, frozen=True):
    """The asyncpg module: its connect function and its base exceptions."""

    connect: Callable[..., Any]  # awaits a Connection
    refusal: type[Exception]  # of the server
    misuse: type[Exception]  # found by the driver itself
    unready: type[
        Exception
    ]  # the connection is in the middle of something, such as being ended by the server
    lost: type[Exception]  # the connection is no more
    range: type[Any]
    record: type[Any]
    bits: type[Any]


def driver() -> Driver:
    """asyncpg. Raises ValueError, which says what to install, where it is not there."""
    try:
        module = importlib.import_module("asyncpg")  # optional extra `postgres`
    except ImportError:
        raise ValueError(
            "PostgreSQL needs a driver that is not installed: pip install 'interlock[postgres]'"
        ) from None
    return Driver(
        connect=module.connect,
        refusal=module.PostgresError,
        misuse=module.InterfaceError,
        unready=module.InternalClientError,
        lost=module.PostgresConnectionError,
        range=module.Range,
        record=module.Record,
        bits=module.BitString,
    )


def set_text(
    connection: Any,
    oid: int,
    name: str,
    encoder: Callable[[Any], Any],
    decoder: Callable[[str], Any],
) -> None:
    """Like `set_type_codec`, for types of PostgreSQL's own that it does not take: ranges, rows,
    "char".

    The names are the driver's.
    """
    connection._protocol.get_settings().add_python_codec(
        oid, name, "pg_catalog", [], "scalar", encoder, decoder, "text"
    )


_COPY_IN = b"2\0\0\0\4G\0\0\0"  # the statement is bound, and the server wants data for COPY


class ByteMeter(asyncio.Protocol):
    """Stands between a connection and its driver and counts what arrives, since the driver reads a
    row whole, whatever its size.

    Once more than `most` bytes have come since `start` the connection is cut off, and nothing of it
    reaches the driver any more. So it is where the server waits for the data of a COPY, of which
    the driver would not know.
    """

    def __init__(self, connection: Any) -> None:
        """Take the place of the driver's own protocol.

        The two names are the driver's own: it has no open door here.
        """
        self._transport: asyncio.Transport = connection._transport
        self._driver: asyncio.Protocol = connection._protocol
        self._count = self._most = 0
        self.over = self.copying = False
        self._transport.set_protocol(self)

    def start(self, most: int) -> None:
        """Count anew. The few messages around the rows have room besides; 0 counts nothing."""
        self._count = 0
        self._most = most

    def data_received(self, data: bytes) -> None:
        self._count += len(data)
        if self._most:
            self.over = self.over or self._count > self._most
            self.copying = self.copying or _COPY_IN in data[:14]
        if self.over or self.copying:
            self._transport.abort()
        else:
            self._driver.data_received(data)

    def eof_received(self) -> bool | None:
        return self._driver.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._driver.connection_lost(exc)

    def pause_writing(self) -> None:
        self._driver.pause_writing()

    def resume_writing(self) -> None:
        self._driver.resume_writing()

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
        """The status after execution, such as "INSERT 0 1"."""
        ...

    async def fetch(self, *arguments: Any) -> list[Sequence[Any]]:
        """Run the statement."""
        ...


class Connection(Protocol):
    """A connection to a server."""

    async def execute(self, query: str) -> str:
        """Run one or several internal statements without parameters."""
        ...

    async def fetch(self, query: str, *arguments: Any) -> list[Mapping[str, Any]]:
        """The rows of an internal statement."""
        ...

    async def fetchval(self, query: str, *arguments: Any) -> Any:
        """The first value of the first row of an internal statement."""
        ...

    async def prepare(self, query: str) -> Prepared:
        """Prepare one statement. The protocol does not allow a second one."""
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
        """Set how values of a type are read and written."""
        ...

    async def close(self, *, timeout: float) -> None:
        """Close in good order."""
        ...

    def terminate(self) -> None:
        """Close at once."""
        ...

    def is_closed(self) -> bool:
        """Whether either side has closed it."""
        ...

    def is_in_transaction(self) -> bool:
        """Whether the server's last status says that a transaction is open."""
        ...

    def get_server_pid(self) -> int:
        """The server process id."""
        ...

    def get_server_version(self) -> tuple[int, ...]:
        """The version of the server, major number first."""
        ...


class Driver(Struct, frozen=True):
    """The asyncpg module: its connect function and its base exceptions."""

    connect: Callable[..., Any]  # awaits a Connection
    refusal: type[Exception]  # errors of the server
    misuse: type[Exception]  # errors that the driver detects
    unready: type[Exception]  # the connection is busy, for instance being closed by the server
    lost: type[Exception]  # the connection is closed
    range: type[Any]
    record: type[Any]
    bits: type[Any]


def driver() -> Driver:
    """Import asyncpg. Raises ValueError with the package to install if it is missing."""
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
    """Like `set_type_codec`, for built-in types that it does not accept: ranges, rows, "char".

    The names are the driver's.
    """
    connection._protocol.get_settings().add_python_codec(
        oid, name, "pg_catalog", [], "scalar", encoder, decoder, "text"
    )


_COPY_IN = b"2\0\0\0\4G\0\0\0"  # the statement is bound, and the server wants data for COPY


class ByteMeter(asyncio.Protocol):
    """Counts the bytes that arrive from the server. The driver reads a row whole, whatever its
    size.

    The connection is aborted once more than `most` bytes have arrived since `start`, and the driver
    gets nothing of it any more. It is also aborted when the server waits for data of a COPY, which
    the driver does not support here.
    """

    def __init__(self, connection: Any) -> None:
        """Replace the driver's own protocol.

        The two attributes are private to the driver: it has no public way to do this.
        """
        self._transport: asyncio.Transport = connection._transport
        self._driver: asyncio.Protocol = connection._protocol
        self._count = self._most = 0
        self.over = self.copying = False
        self._transport.set_protocol(self)

    def start(self, most: int) -> None:
        """Reset the counter. `most` has room for the messages around the rows; 0 means no limit."""
        self._count = 0
        self._most = most

    def data_received(self, data: bytes) -> None:
        """Count the bytes and pass them on, or close the connection above the limit."""
        self._count += len(data)
        if self._most:
            self.over = self.over or self._count > self._most
            self.copying = self.copying or _COPY_IN in data[:14]
        if self.over or self.copying:
            self._transport.abort()
        else:
            self._driver.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass the end of the input on."""
        return self._driver.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the end of the connection on."""
        self._driver.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass back-pressure on."""
        self._driver.pause_writing()

    def resume_writing(self) -> None:
        """Pass the end of back-pressure on."""
        self._driver.resume_writing()

"""Connection pool for PostgreSQL. A connection is lent for one transaction and comes back clean."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from interlock import ToolError

from ..idle_workers import IdlePool
from ..limits import DatabaseLimits
from .driver import ByteMeter, Connection, Driver
from .errors import ResponseTooLarge, late, refused, unreachable
from .urls import PostgresUrl
from .values import register_codecs

ANY_ROLE = "INTERLOCK_DATABASE_ANY_ROLE"
READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# For our own catalogue queries: the role's search_path cannot shadow PostgreSQL's own functions,
# and type names are still written as that path requires.
LOOKING = f"""{READING}; SELECT pg_catalog.set_config('search_path',
  pg_catalog.rtrim(
    pg_catalog.concat('pg_catalog, ', pg_catalog.current_setting('search_path')), ', '),
  true)"""
WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
# A table with a constraint violation that is detected at the end of the transaction: while it
# exists, the transaction cannot be committed early.
GUARD = "interlock_guard"
_GUARDED = f"""
SAVEPOINT {GUARD};
CREATE TEMPORARY TABLE {GUARD} (open int UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP;
INSERT INTO pg_temp.{GUARD} VALUES (1), (1); RELEASE {GUARD}"""
# seconds until a connection that does not stop is terminated
_PATIENCE = 5.0
_CANCELLED = "57014"
_INTERVAL = "client_connection_check_interval"
# the first version that notices a lost client while it computes
_WATCHING = (14, 0)
# Powers that a read-only transaction does not restrict: they reach beyond the database or the
# transaction.
_POWERS = """
SELECT CASE WHEN r.rolsuper AND r.rolname = session_user THEN 'is a superuser'
            WHEN r.rolsuper THEN pg_catalog.concat('may become the superuser ', r.rolname)
            WHEN r.rolreplication THEN 'may replicate'
            ELSE pg_catalog.concat('has the powers of ', r.rolname) END AS power
FROM pg_catalog.pg_roles r
WHERE pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER')
  AND (r.rolsuper OR r.rolreplication OR r.rolname IN
       ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files',
        'pg_signal_backend'))
UNION
SELECT pg_catalog.concat('may call ', p.proname)
FROM pg_catalog.pg_proc p
LEFT JOIN pg_catalog.pg_depend d
  ON d.classid = 'pg_proc'::regclass::oid AND d.objid = p.oid AND d.deptype = 'e'
WHERE p.proname IN (
       'dblink', 'dblink_connect', 'dblink_connect_u', 'dblink_exec', 'dblink_send_query',
       'lo_import', 'lo_export', 'pg_read_file', 'pg_read_binary_file', 'pg_file_write',
       'pg_file_unlink', 'pg_file_rename', 'pg_rotate_logfile', 'pg_reload_conf',
       'heap_force_kill', 'heap_force_freeze', 'pg_switch_wal', 'pg_promote')
  AND (p.pronamespace = 'pg_catalog'::regnamespace::oid OR d.objid IS NOT NULL)
  AND pg_catalog.has_function_privilege(session_user, p.oid, 'EXECUTE')
ORDER BY power
"""
_END = (
    "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.unnest($1::pg_catalog.int4[]) AS "
    "pid"
)
_ALONE = "BEGIN READ ONLY; SET LOCAL search_path = pg_catalog"
_SUPERUSER = "is a superuser"


class PooledConnection:
    """A connection while it is in use."""

    def __init__(self, connection: Connection, *, watched: bool) -> None:
        """`watched` says whether the server notices a lost client while it computes."""
        self.connection = connection
        self.watched = watched
        self.meter = ByteMeter(connection)
        self.pid = connection.get_server_pid()


class ConnectionPool:
    """At most `DatabaseLimits.connections` to one database, opened on demand."""

    def __init__(
        self,
        target: PostgresUrl,
        limits: DatabaseLimits,
        driver: Driver,
        patience: float = _PATIENCE,
    ) -> None:
        """`patience` is how many seconds a connection has to stop a statement."""
        self._target = target
        self._limits = limits
        self._driver = driver
        self._patience = patience
        self._places = asyncio.Semaphore(limits.connections)
        self._idle: IdlePool[PooledConnection] = IdlePool(limits.idle, self._ended)
        self._lent: set[PooledConnection] = set()
        self._returning: set[asyncio.Task[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def transaction(self, begin: str) -> AsyncIterator[PooledConnection]:
        """A connection in a transaction, which is rolled back at the end unless it was committed.

        Raises ToolError if no connection is free in time. Exceptions of the body pass through.
        """
        try:
            async with asyncio.timeout(self._limits.waiting):
                await self._places.acquire()
        except TimeoutError:
            raise ToolError(
                f"All {self._limits.connections} connections to {self._target.place} are "
                "busy. Try again later."
            ) from None
        link: PooledConnection | None = None
        try:
            link = await self._begun(begin)
            self._lent.add(link)
            yield link
        finally:
            task = asyncio.create_task(self._give_back(link))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)
            await asyncio.shield(task)  # a second cancellation does not wait for it

    async def guard(self, link: PooledConnection) -> bool:
        """Prevent a caller's COMMIT in a read-write transaction; False if the role may not create
        temporary tables.
        """
        try:
            await link.connection.execute(_GUARDED)
        except self._driver.refusal:
            await link.connection.execute(f"ROLLBACK TO {GUARD}")
            return False
        return True

    async def close(self) -> None:
        """Close all connections and stop their statements."""
        self._closed = True
        await self._kill([link.pid for link in self._lent])
        for link in self._lent:
            link.connection.terminate()
        if self._returning:
            await asyncio.wait(self._returning)
        await self._idle.close()

    async def _ended(self, link: PooledConnection) -> None:
        with suppress(Exception):
            await link.connection.close(timeout=self._patience)
        link.connection.terminate()

    async def _begun(self, begin: str) -> PooledConnection:
        """A connection in a transaction that has its snapshot, so that its access mode cannot be
        changed any more.
        """
        try:
            async with asyncio.timeout(self._limits.waiting):
                while not self._closed:
                    link = self._idle.acquire()
                    if link is None:
                        link = await self._connected()
                        used = False
                    else:
                        used = True
                    try:
                        await link.connection.execute(f"{begin}; {self._settings(link)}")
                    except (
                        self._driver.refusal,
                        self._driver.misuse,
                        self._driver.unready,
                        OSError,
                    ):
                        link.connection.terminate()
                        if not used:
                            raise
                    except BaseException:
                        link.connection.terminate()
                        raise
                    else:
                        return link
        except ToolError:
            raise
        except Exception as error:
            raise unreachable(error, self._target, self._driver) from error
        raise ToolError("The server is not running.")

    def _settings(self, link: PooledConnection) -> str:
        """The settings of one transaction. Reading the result takes the snapshot."""
        wanted = {
            "statement_timeout": self._limits.seconds,
            "lock_timeout": min(self._limits.waiting, self._limits.seconds),
        }
        if link.watched:
            wanted[_INTERVAL] = self._patience
        calls = (
            f"pg_catalog.set_config('{name}', '{_thousandths(value)}', true)"
            for name, value in wanted.items()
        )
        return f"SELECT {', '.join(calls)}"

    async def _connected(self) -> PooledConnection:
        settings = {
            "application_name": "interlock",
            "default_transaction_read_only": "on",
            "datestyle": "ISO",
            "intervalstyle": "iso_8601",
            "idle_in_transaction_session_timeout": str(
                _thousandths(self._limits.seconds + self._patience + 10)
            ),
        }
        connection: Connection = await self._driver.connect(
            self._target.url,
            timeout=self._limits.waiting,
            statement_cache_size=0,
            server_settings=settings,
        )
        try:
            if os.environ.get(ANY_ROLE) != "1":
                await self._judge(connection)
            await register_codecs(connection)
            return PooledConnection(connection, watched=await self._watches(connection))
        except BaseException:
            connection.terminate()
            raise

    async def _watches(self, connection: Connection) -> bool:
        """Whether the server accepts the setting, which depends on its version and operating
        system.
        """
        if connection.get_server_version() < _WATCHING:
            return False
        try:
            await connection.execute(
                f"BEGIN; SET LOCAL {_INTERVAL} = {int(self._patience * 1000)}; ROLLBACK"
            )
        except self._driver.refusal:
            await connection.execute("ROLLBACK")
            return False
        return True

    async def _judge(self, connection: Connection) -> None:
        """Raise ToolError for a role that a read-only transaction does not restrict."""
        # A possible superuser must not call functions that somebody placed in front of PostgreSQL's
        # own.
        await connection.execute(_ALONE)
        powers = [row["power"] for row in await connection.fetch(_POWERS)]
        await connection.execute("ROLLBACK")
        if powers:
            powers = [_SUPERUSER] if _SUPERUSER in powers else powers
            raise ToolError(
                f"The role of {self._target.place} {', '.join(powers)}: even a read-only "
                "transaction could reach the server's files, programs or connections. "
                "Connect as another role, created with: CREATE ROLE reader LOGIN "
                "PASSWORD '...'; GRANT pg_read_all_data TO reader (and REVOKE EXECUTE ON "
                f"FUNCTION ... FROM PUBLIC if it may call any). {ANY_ROLE}=1 lets any "
                "role in."
            )

    async def _give_back(self, link: PooledConnection | None) -> None:
        """Reset a connection and keep it; terminate it if that fails."""
        try:
            if link is not None:
                self._lent.discard(link)
                await self._cleaned(link)
        finally:
            self._places.release()

    async def _cleaned(self, link: PooledConnection) -> None:
        link.meter.start(0)
        connection = link.connection
        try:
            async with asyncio.timeout(self._patience):
                if connection.is_closed() or self._closed:
                    raise ConnectionError
                try:
                    await _reset(connection)
                except self._driver.refusal as error:
                    if getattr(error, "sqlstate", None) != _CANCELLED:
                        raise
                    await _reset(
                        connection
                    )  # the cancelled statement had ended, so the cancellation hit the reset
            self._idle.release(link)
        except Exception:
            await self._kill(
                [link.pid]
            )  # it may have ignored the cancellation, and still be computing
            connection.terminate()

    async def _kill(self, pids: list[int]) -> None:
        """Have the server terminate connections."""
        if not pids:
            return
        with suppress(Exception):
            async with asyncio.timeout(max(self._patience, _PATIENCE)):
                other: Connection = await self._driver.connect(
                    self._target.url, statement_cache_size=0
                )
                try:
                    await other.fetch(_END, pids)
                finally:
                    other.terminate()

    @asynccontextmanager
    async def running(
        self, link: PooledConnection, sql: str = "", before: int = 0, *, reading: bool = True
    ) -> AsyncIterator[Connection]:
        """Run one statement of a caller, with its timeout and its errors as ToolError."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                yield link.connection
        except TimeoutError:
            raise late(self._limits.seconds) from None
        except Exception as error:
            if getattr(error, "sqlstate", None) == _CANCELLED and "timeout" in str(error):
                raise late(self._limits.seconds) from None
            if link.meter.over:
                most = self._limits.value
                raise ResponseTooLarge(
                    f"A row, or the result of one statement, has more than {most} bytes. "
                    "Ask for less: left(column, 1000), LIMIT."
                ) from None
            if link.meter.copying:
                raise ToolError(
                    "COPY FROM STDIN is not possible here: write INSERT, with the values "
                    "as parameters."
                ) from None
            if getattr(error, "table_name", None) == GUARD:
                raise ToolError(
                    "It would end the transaction, or check its constraints early: leave "
                    "out statements about the transaction."
                ) from None
            raise refused(error, self._driver, sql=sql, before=before, reading=reading) from error


def _thousandths(seconds: float) -> int:
    """Seconds as milliseconds for PostgreSQL's settings: at least 1, because 0 means no limit, and
    at most its maximum.
    """
    return max(1, min(int(seconds * 1000), 2**31 - 1))


async def _reset(connection: Connection) -> None:
    """Remove everything that a transaction or session leaves behind: locks, cursors, prepared
    statements, settings, roles.
    """
    if connection.is_in_transaction():
        await connection.execute("ROLLBACK")  # waits until the cancelled statement has ended
    await connection.execute("DISCARD ALL")

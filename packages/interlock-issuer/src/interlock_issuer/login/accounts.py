"""User accounts in a SQLite file, with argon2 password hashes."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from interlock.store import SqliteFile, SqliteSchema

# characters of a password
SHORTEST = 8
LONGEST = 1024
_LONGEST_NAME = 200
_AT_ONCE = 4  # passwords that are hashed at the same time: each takes 64 MiB

_TABLE = """
CREATE TABLE accounts (
    name TEXT PRIMARY KEY,
    subject TEXT NOT NULL UNIQUE,
    display TEXT,
    secret TEXT NOT NULL,
    created REAL NOT NULL,
    changed REAL NOT NULL
)
"""


def _make_table(db: sqlite3.Connection) -> None:
    db.execute(_TABLE)


SCHEMA = SqliteSchema(
    name="account file",
    application=0x494C4B41,
    migrations=(_make_table,),
    unmarked=frozenset({"accounts"}),
)


class Account(Struct, frozen=True):
    """One account: `subject` is what tokens say, random and never given again.

    `display` is how the person is called.

    `created`, and `changed` for the password, are seconds of the wall clock.
    """

    name: str
    subject: str
    display: str | None
    created: float
    changed: float


class BadAccount(ValueError):
    """An account cannot be had as it was asked for; the words say why."""


class Cost(Struct, frozen=True):
    """What one hash takes: passes over the memory, the memory in KiB, and lanes (RFC 9106, 4: the
    second recommended choice).
    """

    passes: int = 3
    memory: int = 64 * 1024
    lanes: int = 4


class Accounts:
    """The accounts in the file `path`, which is made where there is none, for its owner alone to
    read.

    Names differ by more than case and width. `check` counts nothing: who lets strangers call it
    counts their tries (`LocalUsers` does). Every method raises StoreError where the file cannot be
    used.
    """

    def __init__(
        self, path: str | Path, *, cost: Cost | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        from argon2 import PasswordHasher  # optional extra `issuer`

        cost = cost or Cost()
        self.path = Path(path)
        self._file = SqliteFile(path, SCHEMA)
        self._clock = clock
        self._hasher = PasswordHasher(
            time_cost=cost.passes, memory_cost=cost.memory, parallelism=cost.lanes
        )
        self._nobody: str | None = None  # what a name that nobody has is compared with
        self._hashing: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    async def add(self, name: str, password: str, *, display: str | None = None) -> Account:
        """Make an account.

        Raises BadAccount where there is one of that name, and for a name or a password that will
        not do.
        """
        known = canonical(name)
        now = self._clock()
        secret = await self._hash(_password(password))
        made = Account(known, secrets.token_urlsafe(16), display or name.strip(), now, now)

        def insert(db: sqlite3.Connection) -> None:
            try:
                db.execute(
                    "INSERT INTO accounts VALUES (?, ?, ?, ?, ?, ?)",
                    (known, made.subject, made.display, secret, now, now),
                )
            except sqlite3.IntegrityError:
                raise BadAccount(f"there is already an account {known}") from None

        await self._file.run(insert)
        return made

    async def remove(self, name: str) -> bool:
        """Remove an account, and with it whatever it is logged in to; whether there was one."""
        return await self._file.run(
            lambda db: (
                db.execute("DELETE FROM accounts WHERE name = ?", (canonical(name),)).rowcount > 0
            )
        )

    async def passwd(self, name: str, password: str) -> None:
        """Give an account another password, which ends its log-ins.

        Raises BadAccount where there is none, and for a poor password.
        """
        known = canonical(name)
        secret = await self._hash(_password(password))
        now = self._clock()
        update = "UPDATE accounts SET secret = ?, changed = max(?, changed + 0.001) WHERE name = ?"
        if not await self._file.run(lambda db: db.execute(update, (secret, now, known)).rowcount):
            raise BadAccount(f"there is no account {known}")

    async def list(self) -> list[Account]:
        """All accounts, by name."""
        rows = await self._file.run(
            lambda db: db.execute(f"{_SELECT} ORDER BY name").fetchall(), write=False
        )
        return [Account(*row[:5]) for row in rows]

    async def find(self, subject: str) -> Account | None:
        """The account whose tokens say `subject`; None where it is gone."""
        row = await self._file.run(
            lambda db: db.execute(f"{_SELECT} WHERE subject = ?", (subject,)).fetchone(),
            write=False,
        )
        return Account(*row[:5]) if row else None

    async def check(self, name: str, password: str) -> Account | None:
        """The account of that name and password, else None.

        A name that nobody has takes as long as one with another password.
        """
        try:
            known = canonical(name)
            given = _normal(password)
        except BadAccount:
            known = ""
            given = _normal(password)
        row = await self._file.run(
            lambda db: db.execute(f"{_SELECT} WHERE name = ?", (known,)).fetchone(),
            write=False,
        )
        right = await self._verify(row[5] if row else await self._decoy(), given[:LONGEST])
        if not right or row is None or len(given) > LONGEST:
            return None
        if self._hasher.check_needs_rehash(row[5]):  # made at another cost
            secret = await self._hash(given)
            await self._file.run(
                lambda db: db.execute(
                    "UPDATE accounts SET secret = ? WHERE name = ? AND secret = ?",
                    (secret, known, row[5]),
                )
            )
        return Account(*row[:5])

    async def _decoy(self) -> str:
        if self._nobody is None:
            self._nobody = await self._hash(secrets.token_urlsafe(16))
        return self._nobody

    async def _hash(self, password: str) -> str:
        async with self._turn():
            return await asyncio.to_thread(self._hasher.hash, password)

    async def _verify(self, secret: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError  # optional extra `issuer`

        async with self._turn():
            try:
                return await asyncio.to_thread(self._hasher.verify, secret, password)
            except (VerificationError, InvalidHashError):
                return False

    def _turn(self) -> asyncio.Semaphore:
        """Hashing takes turns, so that many who log in at once do not take all memory."""
        loop = asyncio.get_running_loop()
        if self._hashing is None or self._hashing[0] is not loop:
            self._hashing = loop, asyncio.Semaphore(_AT_ONCE)
        return self._hashing[1]


_SELECT = "SELECT name, subject, display, created, changed, secret FROM accounts"


def _normal(text: str) -> str:
    """The one spelling of a text that can be typed in several ways (RFC 8265)."""
    return unicodedata.normalize("NFKC", text)


def canonical(name: str) -> str:
    """The one spelling of an account's name. Raises BadAccount for what is none."""
    known = unicodedata.normalize("NFKC", _normal(name).casefold()).strip()
    if not known or len(known) > _LONGEST_NAME or not known.isprintable():
        raise BadAccount(f"a name must have 1 to {_LONGEST_NAME} visible characters")
    return known


def _password(password: str) -> str:
    given = _normal(password)
    if not SHORTEST <= len(given) <= LONGEST:
        raise BadAccount(f"a password must have {SHORTEST} to {LONGEST} characters")
    return given

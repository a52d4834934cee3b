"""SQL that writes where it may only read, by every road there is: each is refused or comes to
nothing, and nothing is changed or left.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest

from interlock import ToolError
from interlock_servers.database.engine import Statement
from interlock_servers.database.postgres.pool import ANY_ROLE
from tests.servers.database.postgres.scratch_database import (
    WHOLE,
    ScratchDatabase,
    engine,
    refusal,
    rows,
    value,
)


class Attack(NamedTuple):
    """SQL; whether it changes something for its owner in a transaction that may write, which shows
    that it is an attack.
    """

    sql: str
    real: bool = False


STATE = """SELECT concat_ws(' ', current_setting('transaction_read_only'), session_user,
  current_user, (SELECT count(*) FROM pg_prepared_statements WHERE from_sql),
  (SELECT count(*) FROM pg_listening_channels()))"""
MALLORY = "INSERT INTO people VALUES (97, 'Mallory')"
ATTACKS = {
    "insert": Attack(MALLORY, True),
    "update": Attack("UPDATE people SET name = 'Mallory'", True),
    "delete": Attack("DELETE FROM orders", True),
    "truncate": Attack("TRUNCATE orders", True),
    "merge": Attack(
        "MERGE INTO people USING (SELECT 1 AS one) AS x ON people.id = x.one WHEN MATCHED THEN "
        "UPDATE SET name = 'M'",
        True,
    ),
    "cte": Attack(f"WITH gone AS ({MALLORY} RETURNING 1) SELECT * FROM gone", True),
    "cte-delete": Attack("WITH gone AS (DELETE FROM orders RETURNING 1) SELECT 1", True),
    "two": Attack(f"SELECT 1; {MALLORY}", True),
    "out-of-the-cursor": Attack(f"SELECT 1; COMMIT; {MALLORY}"),
    "comment": Attack(f"SELECT 1 --\n; {MALLORY}", True),
    "create": Attack("CREATE TABLE loot (a int)", True),
    "create-as": Attack("CREATE TABLE loot AS SELECT 1 AS a", True),
    "into": Attack("SELECT 1 AS a INTO loot", True),
    "temporary": Attack("CREATE TEMPORARY TABLE loot (a int)", True),
    "drop": Attack("DROP TABLE orders CASCADE", True),
    "alter": Attack("ALTER TABLE people ADD COLUMN loot int", True),
    "grant": Attack("GRANT ALL ON people TO PUBLIC", True),
    "comment-on": Attack("COMMENT ON TABLE people IS 'Mallory'", True),
    "refresh": Attack("REFRESH MATERIALIZED VIEW kept"),
    "function": Attack("CREATE FUNCTION loot() RETURNS int LANGUAGE sql AS 'SELECT 1'", True),
    "alter-role": Attack("ALTER ROLE CURRENT_USER SET work_mem = '1GB'", True),
    "alter-system": Attack("ALTER SYSTEM SET work_mem = '1GB'"),
    "copy-program": Attack("COPY people TO PROGRAM 'cat > LOOT/program'"),
    "copy-file": Attack("COPY people TO 'LOOT/file'"),
    "copy-from-program": Attack("COPY people FROM PROGRAM 'touch LOOT/from'"),
    "copy-from": Attack("COPY people FROM STDIN"),
    "copy-to": Attack("COPY people TO STDOUT"),
    "do": Attack(f"DO $$ BEGIN {MALLORY}; END $$", True),
    "call": Attack("CALL proceeds()"),
    "vacuum": Attack("VACUUM FULL people"),
    "cluster": Attack("CLUSTER people USING people_pkey"),
    "reindex": Attack("REINDEX TABLE people"),
    "analyze": Attack("ANALYZE people"),
    "checkpoint": Attack("CHECKPOINT"),
    "load": Attack("LOAD 'auto_explain'"),
    "lock": Attack("LOCK TABLE people IN ACCESS EXCLUSIVE MODE"),
    "for-update": Attack("SELECT * FROM people FOR UPDATE"),
    "begin": Attack("BEGIN READ WRITE"),
    "commit": Attack("COMMIT"),
    "chain": Attack("COMMIT AND CHAIN"),
    "prepared-commit": Attack("PREPARE TRANSACTION 'loot'"),
    "prepare": Attack(f"PREPARE loot AS {MALLORY}"),
    "execute": Attack("EXECUTE loot"),
    "explain": Attack(f"EXPLAIN ANALYZE {MALLORY}", True),
    "declare": Attack("DECLARE loot CURSOR WITH HOLD FOR SELECT 1"),
    "listen": Attack("LISTEN loot"),
    "discard": Attack("DISCARD ALL"),
    "set": Attack("SET TRANSACTION READ WRITE"),
    "characteristics": Attack("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"),
    "default": Attack("SET default_transaction_read_only = off"),
    "set-role": Attack("SET ROLE postgres"),
    "reset-authorization": Attack("RESET SESSION AUTHORIZATION"),
    # what a query may contain: functions
    "volatile": Attack("SELECT writes()", True),
    "definer": Attack("SELECT officer()", True),
    "turned-off": Attack("SELECT turns()", True),
    "turned-off-in-a-block": Attack("SELECT tries()", True),
    "config-first": Attack(
        "SELECT set_config('transaction_read_only', 'off', true), writes()", True
    ),
    "config-last": Attack(
        "SELECT writes() FROM (SELECT set_config('transaction_read_only', 'off', false) AS s "
        "OFFSET 0) AS x WHERE s = 'off'",
        True,
    ),
    "config-later": Attack(
        "SELECT CASE WHEN n > 1 THEN writes() ELSE length(set_config('transaction_read_only', "
        "'off', false)) END FROM generate_series(1, 2) n",
        True,
    ),
    "config-default": Attack(
        "SELECT set_config('default_transaction_read_only', 'off', false), writes()", True
    ),
    "config-session": Attack("SELECT set_config('role', 'postgres', false), writes()"),
    "config-authorization": Attack(
        "SELECT set_config('session_authorization', 'postgres', false), writes()"
    ),
    "does-set": Attack("SELECT does('SET TRANSACTION READ WRITE'), writes()", True),
    "does-commit": Attack("SELECT does('COMMIT'), writes()"),
    "does-rollback": Attack("SELECT does('ROLLBACK AND CHAIN'), writes()"),
    "does-temporary": Attack("SELECT does('CREATE TEMPORARY TABLE loot (a int)')", True),
    "does-copy": Attack("SELECT does('COPY people TO PROGRAM ''cat > LOOT/does''')"),
    "does-copy-from": Attack("SELECT does('COPY people FROM PROGRAM ''touch LOOT/does''')"),
    "does-ready": Attack("SELECT does('PREPARE TRANSACTION ''loot''')"),
    "does-prepare": Attack(
        f"SELECT does('PREPARE loot AS {MALLORY.replace(chr(39), chr(39) * 2)}')"
    ),
    "does-listen": Attack("SELECT does('LISTEN loot')"),
    "does-lock": Attack("SELECT does('LOCK TABLE people IN ACCESS EXCLUSIVE MODE')"),
    "nextval": Attack("SELECT nextval('counter')", True),
    "setval": Attack("SELECT setval('counter', 100)", True),
    "xml": Attack(
        "SELECT query_to_xml('INSERT INTO people VALUES (96, ''M'') RETURNING 1', true, true, '')"
    ),
    "lo-create": Attack("SELECT lo_create(0)", True),
    "lo-bytes": Attack("SELECT lo_from_bytea(0, 'loot')", True),
    "lo-put": Attack("SELECT lo_put(4711, 0, 'LOOT!')"),
    "lo-unlink": Attack("SELECT lo_unlink(4711)", True),
    "lo-export": Attack("SELECT lo_export(4711, 'LOOT/export')"),
    "lo-import": Attack("SELECT lo_import('/etc/passwd')"),
    "read-file": Attack("SELECT pg_read_file('/etc/passwd')"),
    "list": Attack("SELECT pg_ls_dir('/')"),
    "slot": Attack("SELECT pg_create_logical_replication_slot('loot', 'test_decoding')"),
    "reload": Attack("SELECT pg_reload_conf()"),
    "wal": Attack("SELECT pg_switch_wal()"),
    "notify": Attack("SELECT pg_notify('loot', 'x')"),
    "advisory": Attack("SELECT pg_advisory_lock(4711)", True),
    "advisory-shared": Attack("SELECT pg_try_advisory_lock_shared(4712)", True),
    "own-connection": Attack("SELECT pg_terminate_backend(pg_backend_pid())"),
}


async def test_the_attacks_are_real(scratch: ScratchDatabase) -> None:
    """Those that are called real change something in a transaction that may write: it is the
    transaction that keeps them from it.
    """
    assert await scratch.harmless([attack.sql for attack in ATTACKS.values() if attack.real]) == []


@pytest.mark.parametrize("who", ["reader", "owner"])
async def test_nothing_is_written(scratch: ScratchDatabase, loot: Path, who: str) -> None:
    """By a reader, and by an owner who may write with other tools, as a query and as what is
    explained: everything is as before.
    """
    url, role = (
        (scratch.reader_url, scratch.reader)
        if who == "reader"
        else (scratch.owner_url, scratch.owner)
    )
    before = await scratch.digest()
    async with engine(
        url, write=who == "owner", connections=1
    ) as made:  # so that what one leaves behind, the next would find
        for name, attack in ATTACKS.items():
            sql = attack.sql.replace("LOOT/", f"{loot}/")
            with suppress(ToolError):
                await rows(made, sql)
            with suppress(ToolError):
                await made.explain(Statement(sql), analyze=True)
            assert "read-only transaction" in await refusal(made, "SELECT officer()"), name
            assert await value(made, STATE) == f"on {role} {role} 0 0", name
            assert await scratch.digest() == before, name
    assert not list(loot.iterdir())


async def test_a_superuser_is_refused(
    scratch: ScratchDatabase, loot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No transaction keeps a superuser from the server's files, so nobody connects as one, unless
    whoever starts the server wants that.
    """
    async with engine(scratch.admin_url, write=True) as made:
        for said in (
            await refusal(made, "SELECT 1"),
            await refusal(made, "SELECT lo_export(4711, '/nowhere')"),
        ):
            assert "is a superuser" in said
            assert "CREATE ROLE reader" in said
        assert await made.version() == ""
        with pytest.raises(ToolError, match="is a superuser"):
            await made.execute([Statement("SELECT 1")], WHOLE)
    monkeypatch.setenv(ANY_ROLE, "1")
    before = await scratch.digest()
    async with engine(scratch.admin_url) as made:
        # What PostgreSQL keeps even a superuser from, in a cursor of a transaction that reads only
        for attack in ATTACKS.values():
            if attack.real or attack.sql.startswith("COPY"):
                with suppress(ToolError):
                    await rows(made, attack.sql.replace("LOOT/", f"{loot}/"))
        assert await scratch.digest() == before
        assert not list(loot.iterdir())
        assert (
            await value(made, "SELECT length(pg_read_file('PG_VERSION')) > 0") is True
        )  # and what not, which is why


@pytest.mark.parametrize(
    "power, words",
    [
        ("GRANT pg_read_server_files TO ROLE", "has the powers of pg_read_server_files"),
        ("GRANT pg_execute_server_program TO ROLE", "has the powers of pg_execute_server_program"),
        ("GRANT pg_write_server_files TO ROLE", "has the powers of pg_write_server_files"),
        ("GRANT pg_signal_backend TO ROLE", "has the powers of pg_signal_backend"),
        ("GRANT postgres TO ROLE WITH INHERIT FALSE", "may become the superuser postgres"),
        ("ALTER ROLE ROLE_ REPLICATION", "may replicate"),
        ("GRANT EXECUTE ON FUNCTION lo_export(oid, text) TO ROLE", "may call lo_export"),
        ("CREATE EXTENSION dblink", "may call dblink, may call dblink_connect"),
    ],
)
async def test_roles_with_other_powers_are_refused(
    scratch: ScratchDatabase, power: str, words: str
) -> None:
    """Each power that reaches beyond the transaction is found, by whatever road a role has it; with
    it gone the role is let in.
    """
    superuser = await scratch.ask("SELECT current_user::text")
    role = f"{scratch.reader}_too"
    connection = await asyncpg.connect(scratch.admin_url)
    try:
        await connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
        await connection.execute(
            power.replace("ROLE_", role)
            .replace("TO ROLE", f"TO {role}")
            .replace("postgres", superuser)
        )
        async with engine(scratch.cluster.of(scratch.database, role, "x")) as made:
            said = await refusal(made, "SELECT 1")
            assert words.replace("postgres", superuser) in said
            await connection.execute("DROP EXTENSION IF EXISTS dblink")
            await connection.execute(f"DROP OWNED BY {role}")
            await connection.execute(f"DROP ROLE {role}")
            await connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
            assert await value(made, "SELECT 1") == 1
    finally:
        await connection.execute("DROP EXTENSION IF EXISTS dblink")
        await connection.execute(f"DROP ROLE {role}")
        await connection.close()

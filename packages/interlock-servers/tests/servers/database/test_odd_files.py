"""Files of SQLite that are somewhere or something else than they should be, and schemas and answers
without measure.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from interlock import Client, ToolError
from interlock.untrusted.invisible import visible
from interlock_servers.database import DatabaseLimits, database_server
from interlock_servers.database.sqlite_worker import WorkerCall
from interlock_servers.database.sqlite_worker_pool import WorkerProcess
from interlock_servers.processes import StreamProcess
from tests.servers.calls import done, refusal
from tests.servers.database.shop import rows
from tests.servers.database.shop import shop as made

SIGNS = ("?mode=rwc", "#", "%00", "%41", "a=b")


@pytest.mark.parametrize(
    "given",
    [
        "",
        ":memory:",
        "sqlite:",
        "sqlite://",
        "file:shop.db?mode=rwc",
        "/dev/zero",
        "shop.db\0",
        "{}?mode=rwc",
        "{}%00",
    ],
)
def test_what_is_no_file(shop: Path, given: str) -> None:
    """Nothing but the path of a file that is there is one: no name that SQLite would make something
    else of.
    """
    for before in ("", "x=", "sqlite://"):
        with pytest.raises(ValueError, match="There is no file|is not a file"):
            database_server([before + given.format(shop)])
    assert [path.name for path in shop.parent.iterdir()] == ["shop.db"]


@pytest.mark.parametrize("signs", SIGNS)
async def test_signs_that_a_url_would_give_a_meaning(shop: Path, signs: str) -> None:
    """They belong to the name of the file, and nothing is made beside it."""
    odd = shop.rename(shop.with_name(f"shop{signs}"))
    async with Client(database_server([f"odd={odd}"], write=True)) as client:
        assert await rows(client, "SELECT count(*) FROM customers") == [[3]]
        await done(client, "execute", statements=[{"sql": "DELETE FROM orders"}])
        assert await rows(client, "SELECT count(*) FROM orders") == [[0]]
    assert [path.name for path in shop.parent.iterdir()] == [odd.name]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are Unicode there")
async def test_a_file_whose_name_is_no_unicode(shop: Path) -> None:
    """It is read, and called by what can be written of its name."""
    odd = shop.rename(shop.with_name(os.fsdecode(b"caf\xe9.db")))
    async with Client(database_server([f"odd={odd}"])) as client:
        assert await rows(client, "SELECT count(*) FROM customers") == [[3]]
        assert (await done(client, "list_databases"))["databases"][0]["place"].endswith(
            "caf⟨U+DCE9⟩.db"
        )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
async def test_something_else_in_the_place_of_the_file(shop: Path) -> None:
    """A pipe is not waited for, a folder and a device are not read, a file that is gone is not
    made; and it is read again once it is back.
    """
    other = shop.with_name("other.db")
    async with Client(
        database_server([shop], write=True, limits=DatabaseLimits(seconds=600))
    ) as client:
        for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)):
            shop.rename(other)
            make(shop)
            for sql in ("SELECT 1", "DELETE FROM orders"):
                assert "it is not a regular file" in await refusal(client, "query", sql=sql)
            assert "not a regular file" in await refusal(
                client, "execute", statements=[{"sql": "DELETE FROM orders"}]
            )
            (os.rmdir if shop.is_dir() else os.unlink)(shop)
            assert "No such file" in await refusal(
                client, "execute", statements=[{"sql": "CREATE TABLE t (x)"}]
            )
            assert not shop.exists()
            other.rename(shop)
            assert await rows(client, "SELECT count(*) FROM orders") == [[4]]


async def test_a_schema_without_measure(tmp_path: Path) -> None:
    """Names, types, defaults and views of a million signs are cut, or left out where nobody could
    ask for them.
    """
    long = "n" * 1_000_000
    columns = ", ".join(f'"c{n}" "{"T" * 1_000}" DEFAULT "{"d" * 1_000}"' for n in range(1_000))
    file = made(
        tmp_path / "large.db",
        f"""CREATE TABLE "{long}" (x); CREATE TABLE wide ({columns});
        CREATE TABLE one ("{long}" "{long}" DEFAULT "{long}" REFERENCES "{long}" ("{long}"));
        CREATE INDEX "i{long}" ON one ("{long}"); CREATE VIEW v AS SELECT '{long}' AS x;""",
    )
    async with Client(database_server([file], limits=DatabaseLimits(bytes=10_000))) as client:
        listed = await done(client, "list_tables")
        assert [one["name"] for one in listed["tables"]] == ["one", "v", "wide"]
        one, v, wide = (await done(client, "describe_tables", tables=["one", "v", "wide"]))[
            "tables"
        ]
        assert len(str(one)) < 1_000_000
        assert len(one["foreign_keys"][0]["table"]) < len(one["indexes"][0]["name"]) + 10 < 1_000
        assert len(v["definition"]) < 20_000
        assert len(str(wide)) < 1_000_000
        text = (await client.read_resource("database://large/schema")).contents[0].text or ""
        assert text.endswith(
            "... and 1 more tables: list_tables names them, describe_tables describes them"
        )
        assert len(text) < 11_000
        assert len(str(await client.get_prompt("ask_database", {"question": "?"}))) < 15_000


async def test_an_answer_without_measure(tmp_path: Path) -> None:
    """What is given as a whole has an end as well; it says so, and the next call is answered."""
    columns = ", ".join(f'"c{n}" "{"T" * 400}" DEFAULT "{"d" * 400}"' for n in range(1_000))
    file = made(tmp_path / "large.db", f"CREATE TABLE t ({columns})")
    async with Client(database_server([file])) as client:
        assert "Ask for fewer tables" in await refusal(client, "describe_tables", tables=["t"] * 50)
        assert (
            len((await done(client, "describe_tables", tables=["t"]))["tables"][0]["columns"])
            == 1_000
        )


@pytest.mark.parametrize(
    "answer", [b"\xff" * 4, b"\0\0\0\x05nope!"], ids=["four gigabytes", "no answer"]
)
async def test_a_process_that_somebody_has_taken_over(answer: bytes) -> None:
    """It is ended where it says what none of ours says, before anything of it is kept in memory."""
    program = (
        f"import sys; sys.stdout.buffer.write({answer!r}); sys.stdout.flush(); sys.stdin.read()"
    )
    lane = WorkerProcess(await StreamProcess.start([sys.executable, "-c", program], env=os.environ))
    with pytest.raises(ToolError, match="ended during this call"):
        await lane.ask(WorkerCall(0, "check", 600))
    assert lane.ended
    await lane.close(0)


@pytest.mark.parametrize(
    "sign",
    [
        "\x1b",
        "\r",
        "\u202e",
        "\u200b",
        "\u2028",
        "\ufeff",
        "\xad",
        "\u180e",
        "\U000e0041",
        "\U000e01ef",
        "\ud800",
    ],
)
def test_signs_that_nobody_sees(sign: str) -> None:
    """What is hidden in a name from people, and not from a model, is shown."""
    assert sign not in visible(f"orders{sign}")
    visible(f"orders{sign}").encode()


async def test_examples_are_what_the_engine_has_looked_at(tmp_path: Path) -> None:
    """Names that cannot be shown as they are make none, whatever points to them; each that is shown
    runs as it stands.
    """
    long = "n" * 200
    file = made(
        tmp_path / "odd.db",
        f"""CREATE TABLE good (id INTEGER PRIMARY KEY, status TEXT);
        CREATE TABLE "bad\n\u202e" (id INTEGER PRIMARY KEY, status TEXT, good REFERENCES good (id),
            other REFERENCES good (id));
        CREATE TABLE "{long}" ("{long}" TEXT PRIMARY KEY, status TEXT,
            "good{long}" REFERENCES good (id), g REFERENCES good (id));""",
    )
    async with Client(database_server([file])) as client:
        text = getattr(
            (await client.get_prompt("ask_database", {"question": "?"})).messages[0].content,
            "text",
            "",
        )
        examples = [
            line.removeprefix("SQL: ") for line in text.splitlines() if line.startswith("SQL: ")
        ]
        assert len(examples) == 2
        for sql in examples:
            assert '"good"' in sql
            await rows(client, sql)

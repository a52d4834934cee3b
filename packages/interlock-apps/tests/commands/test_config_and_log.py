"""`interlock config` and `interlock log`: configurations shown, checked and merged; the host's log
found again, checked and written out.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interlock.cli.program import program
from interlock.types import SamplingMessage, TextContent
from interlock_apps.fleet.events import CallEnded, Notice, PersonSaid, SessionBegan
from interlock_apps.fleet.log import read_export
from interlock_apps.host import SqliteLog
from tests.transport.programs import old_server

CODEX = (
    '[mcp_servers.docs]\ncommand = "docs"\nargs = ["--all"]\nenv = { API_TOKEN = '
    '"hunter2hunter2" }\n'
)
CURSOR = '{"mcpServers": {"near": {"url": "https://example.com/mcp"}, "bad": {}}}'


def run(*arguments: str) -> Result:
    return CliRunner().invoke(program, list(arguments), standalone_mode=True, prog_name="interlock")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    codex = tmp_path / "config.toml"
    cursor = tmp_path / "mcp.json"
    codex.write_text(CODEX, encoding="utf-8")
    cursor.write_text(CURSOR, encoding="utf-8")
    return codex, cursor


def test_servers_of_several_products_are_shown(files: tuple[Path, Path]) -> None:
    """With the whole command and no secret; what cannot be used is named with the reason, and is
    the exit code.
    """
    done = run("config", *map(str, files))
    assert done.exit_code == 1
    assert "docs --all" in done.output
    assert "https://example.com/mcp" in done.output
    assert "hunter2" not in done.output
    assert "bad" in done.output
    assert "neither a command nor a url" in done.output


def test_one_file_is_written_of_several(files: tuple[Path, Path], tmp_path: Path) -> None:
    """What else is in it stays, and a copy of what it was is kept beside it."""
    target = tmp_path / "all.json"
    before = '{"other": [1], "mcpServers": {"old": {"command": "old"}}}'
    target.write_text(before, encoding="utf-8")
    target.chmod(0o600)
    done = run("config", *map(str, files), "--write", str(target))
    written = json.loads(target.read_text(encoding="utf-8"))
    assert written["other"] == [1]
    assert list(written["mcpServers"]) == ["old", "docs", "near"]
    assert target.stat().st_mode & 0o777 == 0o600
    (kept,) = tmp_path.glob("all.json.interlock-*.bak")
    assert kept.read_text(encoding="utf-8") == before
    assert kept.name in done.output


def test_the_revision_of_an_entry_is_shown_and_kept(tmp_path: Path) -> None:
    """In the list, in the file that is written, and by the commands that talk to a server of it."""
    source = tmp_path / "mcp.json"
    target = tmp_path / "all.json"
    command = old_server(tmp_path)
    entry = {"command": command[0], "args": command[1:], "revision": "2025-11-25"}
    source.write_text(json.dumps({"mcpServers": {"old": entry}}), encoding="utf-8")
    assert "old (speaks only 2025-11-25)" in run("config", str(source)).output
    assert run("config", str(source), "--write", str(target)).exit_code == 0
    written = json.loads(target.read_text(encoding="utf-8"))
    assert written["mcpServers"]["old"]["revision"] == "2025-11-25"
    refused = run("ping", "--config", str(target), "--trust")
    assert refused.exit_code != 0
    assert "2024-11-05; allowed here are 2025-11-25" in refused.output
    spoken = run("ping", "--config", str(target), "--trust", "--revision", "2024-11-05")
    assert "speaking 2024-11-05" in spoken.output


@pytest.mark.parametrize("before", ["{", '{"mcpServers": 3}', "[]"])
def test_a_file_that_cannot_be_written_whole_is_left_as_it_is(
    files: tuple[Path, Path], tmp_path: Path, before: str
) -> None:
    target = tmp_path / "all.json"
    target.write_text(before, encoding="utf-8")
    done = run("config", str(files[0]), "--write", str(target))
    assert done.exit_code == 1
    assert "was not changed" in done.output
    assert target.read_text(encoding="utf-8") == before


def test_comments_of_the_file_stay(files: tuple[Path, Path], tmp_path: Path) -> None:
    target = tmp_path / "all.json"
    target.write_text("// mine\n{}\n", encoding="utf-8")
    assert run("config", str(files[0]), "--write", str(target)).exit_code == 0
    assert target.read_text(encoding="utf-8").startswith("// mine\n{")


def test_no_configuration_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("config")
    assert done.exit_code == 2
    assert ".mcp.json" in done.output


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"

    async def write() -> None:
        log = SqliteLog(path, clock=lambda: 1_700_000_000.0)
        await log.open()
        log.note(SessionBegan(session="s1", title="", model="m"))
        log.note(
            PersonSaid(
                session="s1",
                messages=(SamplingMessage(role="user", content=[TextContent(text="a holiday")]),),
            )
        )
        log.note(
            CallEnded(session="s1", call="s1.1", server="travel", tool="book", error="no room")
        )
        log.note(Notice(level="info", words="\x1b[31mred"))
        await log.aclose()

    asyncio.run(write())
    return path


def test_the_log_is_searched(kept: Path) -> None:
    done = run("log", "--log", str(kept), "holi")
    assert done.exit_code == 0
    assert "a holiday" in done.output
    assert "no room" not in done.output
    assert "no room" in run("log", "--log", str(kept), "--server", "travel").output
    assert "no room" in run("log", "--log", str(kept), "--kind", "callEnded").output
    assert "Nothing was found" in run("log", "--log", str(kept), "zebra").output


def test_conversations_are_listed(kept: Path) -> None:
    done = run("log", "--log", str(kept), "--sessions")
    assert "s1  a holiday  (m, 1 turn)" in done.output


def test_the_log_is_written_out(kept: Path, tmp_path: Path) -> None:
    """For its owner's eyes, and so that it can be read again; of one conversation, or of all."""
    target = tmp_path / "out.jsonl"
    run("log", "--log", str(kept), "--export", str(target), "--session", "s1")
    with target.open("rb") as lines:
        assert [noted.event.session for noted in read_export(lines)] == ["s1"] * 3
    assert target.stat().st_mode & 0o777 == 0o600
    assert len(run("log", "--log", str(kept), "--export", "-").output.splitlines()) == 4


def test_a_conversation_is_deleted(kept: Path) -> None:
    """Its words are gone from the file, the rest stays, and the chain is whole."""
    assert b"a holiday" in kept.read_bytes()
    done = run("log", "--log", str(kept), "--delete", "s1")
    assert done.exit_code == 0
    assert b"a holiday" not in kept.read_bytes()
    assert not Path(f"{kept}-wal").exists() or b"a holiday" not in Path(f"{kept}-wal").read_bytes()
    assert "s1 " not in run("log", "--log", str(kept), "--sessions").output
    assert "all unchanged" in run("log", "--log", str(kept), "--verify").output
    again = run("log", "--log", str(kept), "--delete", "nothing")
    assert again.exit_code != 0
    assert "nothing" in again.output


def test_a_log_that_was_changed_is_found_out(kept: Path) -> None:
    assert "4 entries, all unchanged" in run("log", "--log", str(kept), "--verify").output
    with sqlite3.connect(kept) as db:
        for (name,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            db.execute(f'DROP TRIGGER "{name}"')
        db.execute(
            "UPDATE entries SET data = replace(data, 'no room', 'booked') WHERE kind = 'callEnded'"
        )
    db.close()
    done = run("log", "--log", str(kept), "--verify")
    assert done.exit_code == 3
    assert "3" in done.output


def test_a_log_that_was_cut_off_is_found_out_by_an_anchor(kept: Path, tmp_path: Path) -> None:
    """`--anchor` writes count and head elsewhere, or here, and with `--verify` compares them."""
    anchors = tmp_path / "anchors.jsonl"
    done = run("log", "--log", str(kept), "--anchor", str(anchors))
    assert "4 entries are anchored" in done.output
    assert run("log", "--log", str(kept), "--anchor", "-").output.startswith('{"entries":4,"head":')
    done = run("log", "--log", str(kept), "--verify", "--anchor", str(anchors))
    assert "They agree with" in done.output
    assert "knows the first 4" in done.output
    anchors.write_text(anchors.read_text().replace('"entries":4', '"entries":40'))
    done = run("log", "--log", str(kept), "--verify", "--anchor", str(anchors))
    assert done.exit_code == 3
    assert "there were 40, and 4 are left" in done.output
    anchors.write_text("nothing")
    done = run("log", "--log", str(kept), "--verify", "--anchor", str(anchors))
    assert done.exit_code == 1
    assert "not an anchor" in done.output


def test_no_log_yet_and_one_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert "no log" in run("log").output
    other = tmp_path / "other.db"
    other.write_bytes(b"not a database at all" * 100)
    done = run("log", "--log", str(other))
    assert done.exit_code == 1
    assert "Error" in done.output

"""`interlock log`: searches, verifies and exports the log of the host."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
from pathlib import Path
from typing import Any

import click
import msgspec

from interlock.cli import exits
from interlock.cli.screen import note, say
from interlock.cli.user_folder import user_folder

from ..fleet.events import LogEntry, SessionDeleted
from ..fleet.log import LogError, SqliteLog, Tampered, read_anchors
from ..fleet.log.anchors import line_of, write_anchor
from ..host.conversations.branches import MOST_ENTRIES
from ..host.conversations.html_export import to_html
from ..host.conversations.markdown_export import to_markdown
from ..host.conversations.transcript import Transcript, transcript_of
from ..host.replay import Replay

WORDS = """\b
Exit codes:
  0    success
  1    the log cannot be read
  2    wrong usage, or there is no log yet
  3    the log was changed (--verify)
"""
READABLE = {".md": to_markdown, ".html": to_html}
_SHOWN = 160  # characters of an entry in one line


@click.command("log", epilog=WORDS)
@click.argument("words", nargs=-1)
@click.option(
    "--log",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The file of the log, if it is not yours.",
)
@click.option("--session", metavar="ID", help="Only entries of this conversation.")
@click.option("--server", metavar="ID", help="Only entries about this server.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Only events of this kind, such as callEnded; may be given several times.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="The maximum number of entries; the newest are shown.",
)
@click.option("--sessions", is_flag=True, help="List the conversations.")
@click.option(
    "--delete",
    metavar="ID",
    help="Erase what was said and done in this conversation. This cannot be undone.",
)
@click.option(
    "--export",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=(
        "Write everything as lines of JSON to this file; - for standard output. With --session, "
        "a name that ends with .md or .html gets the conversation for readers."
    ),
)
@click.option(
    "--verify", is_flag=True, help="Verify that no entry of the log was changed or removed."
)
@click.option(
    "--anchor",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=(
        "Add the log's count and head digest to this file; - for here. With --verify: "
        "check that the log still has all entries that the file names."
    ),
)
def log(
    path: Path | None,
    sessions: bool,
    delete: str | None,
    export: Path | None,
    verify: bool,
    anchor: Path | None,
    words: tuple[str, ...],
    **wanted: Any,
) -> None:
    """Search the log of the host for WORDS, list or delete its conversations, export or verify it.

    \b
    interlock log flight barcelona --kind callEnded
    interlock log --sessions
    interlock log --session s1a2b3c4 --export trip.jsonl
    interlock log --session s1a2b3c4 --export trip.html
    interlock log --delete s1a2b3c4
    interlock log --anchor /media/stick/log-anchors.jsonl
    interlock log --verify --anchor /media/stick/log-anchors.jsonl
    """
    place = path or user_folder() / "log.db"
    if not place.is_file():
        raise click.UsageError(
            f"There is no log at {place} yet; `interlock host`, `chat` and `ask` write it."
        )
    kept = SqliteLog(place)

    async def run() -> int:
        await kept.open()
        try:
            if verify:
                return await _verify(kept, anchor)
            if anchor is not None:
                return await _anchor(kept, anchor)
            if export is not None:
                return await _export(kept, export, wanted["session"])
            if delete is not None:
                return await _delete(kept, delete)
            if sessions:
                return await _sessions(kept)
            return await _search(kept, " ".join(words), wanted)
        finally:
            await kept.aclose()

    try:
        code = asyncio.run(run())
    except LogError as bad:
        raise click.ClickException(str(bad)) from None
    if code:
        click.get_current_context().exit(code)


async def _verify(kept: SqliteLog, anchor: Path | None) -> int:
    anchors = read_anchors(anchor) if anchor is not None else ()
    try:
        count = await kept.verify(anchors)
    except Tampered as bad:
        note(str(bad), fg="red")
        return exits.REFUSED
    say(f"{count} entries, all unchanged. The last one's digest is {await kept.head()}.")
    if anchors:
        last = max(anchors, key=lambda each: each.entries)
        say(f"They agree with {anchor}, which knows the first {last.entries} ({last.day}).")
    if erased := await kept.erased():
        say(f"{erased} of them have no content: their conversations were deleted.")
    for why, number in (await kept.dropped()).items():
        reason = "because of their age" if why == "age" else "to save space"
        say(f"{number} large bodies were dropped {reason}; their entries and digests are there.")
    return exits.OK


async def _anchor(kept: SqliteLog, path: Path) -> int:
    anchor = await kept.anchor()
    if str(path) == "-":
        say(line_of(anchor).decode().rstrip())
        return exits.OK
    try:
        write_anchor(path, anchor)
    except OSError as bad:
        raise LogError(f"{path} cannot be written: {bad.strerror}.") from None
    note(f"{anchor.entries} entries are anchored in {path}. Keep it on another disk or machine.")
    return exits.OK


async def _export(kept: SqliteLog, path: Path, session: str | None) -> int:
    if session is not None and (make := READABLE.get(path.suffix)) is not None:
        text = make(await _transcript(kept, session))
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _write(file, text.encode("utf-8", "replace"))
        finally:
            os.close(file)
        note(f"The conversation is in {path}.")
        return exits.OK
    if str(path) == "-":
        await kept.export(lambda line: click.echo(line, nl=False), session)
        return exits.OK
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        count = await kept.export(lambda line: _write(file, line), session)
    finally:
        os.close(file)
    note(f"{count} entries in {path}.")
    return exits.OK


async def _transcript(kept: SqliteLog, session: str) -> Transcript:
    replay = Replay(await kept.read(session, limit=MOST_ENTRIES), session)
    return transcript_of(replay.branch, replay.title)


def _write(file: int, line: bytes) -> None:
    while line:
        line = line[os.write(file, line) :]


async def _delete(kept: SqliteLog, session: str) -> int:
    noted = await kept.delete(session)
    if isinstance(event := noted.event, SessionDeleted):
        note(f"The content of {event.entries} entries is erased. The log says that it was.")
    return exits.OK


async def _sessions(kept: SqliteLog) -> int:
    for row in await kept.sessions():
        say(
            f"{_when(row.began)}  {row.id}  {row.title or '(nothing said)'}  ({row.model}, "
            f"{row.turns} turn{'s' * (row.turns != 1)})"
        )
    return exits.OK


async def _search(kept: SqliteLog, words: str, wanted: dict[str, Any]) -> int:
    found = await kept.search(words, **wanted)
    for noted in reversed(found):
        say(_line(noted))
    if not found:
        note("Nothing was found.")
    return exits.OK


def _line(noted: LogEntry) -> str:
    data: dict[str, Any] = msgspec.to_builtins(noted.event)
    kind = data.pop("type")
    session = data.pop("session", "")
    text = msgspec.json.encode(data).decode()
    short = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return f"{_when(noted.at)}  {kind:16} {session:10} {short}"


def _when(at: float) -> str:
    return dt.datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")

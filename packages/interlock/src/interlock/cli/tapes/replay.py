"""`interlock replay`: play one side of a tape, as a mock server or as a regression test."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from ...redaction import url_without_secrets
from ...tape import MockServer, Tape, replay_recording
from ...tape.regression import PATIENCE
from ...transport.own_streams import own_streams
from ...types import InterlockError
from .. import exits
from ..screen import ERROR
from ..targets.trailing_command import COMMAND, TargetCommand
from .replay_target import ReplayTarget, replay_target, with_url_options
from .saved_tests import load_conversations, save_test, saved_test_path


@click.command("replay", cls=TargetCommand)
@click.argument("tape", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("target", required=False)
@click.option(
    "--as",
    "part",
    type=click.Choice(["server", "client"]),
    required=True,
    help="server: answer a client from the tape. client: send a server what the client sent, and "
    "compare its answers.",
)
@click.option("--connection", help="Replay this connection of the tape only.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=PATIENCE,
    show_default=True,
    help="client: seconds to wait for each message of the server.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="PATH",
    help="client: do not compare this path, such as /result/structuredContent/took.",
)
@click.option(
    "--volatile",
    multiple=True,
    metavar="NAME",
    help="client: members of this name differ in each run; a new value is sent back where the "
    "client sent the recorded one.",
)
@click.option(
    "--save-test",
    "saved",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=saved_test_path,
    metavar="FILE",
    help="client: write a test that does the same: FILE.py for pytest, FILE.toml for "
    "`interlock test`.",
)
@with_url_options
def replay(
    tape: Path,
    target: str | None,
    part: str,
    connection: str | None,
    timeout: float,
    ignore: tuple[str, ...],
    volatile: tuple[str, ...],
    headers: tuple[str, ...],
    account: str,
    saved: Path | None,
) -> None:
    """Replay a TAPE to a client or to a server.

    As a server, the tape answers over stdio: put the command in a client's configuration. A request
    matches a recorded one with the same method and params, in order. A request that the tape has no
    answer for is an error, which names the nearest recorded request.

    As a client, the tape sends a server what the client sent, and compares the answers. The server
    is the COMMAND after --, which is started for each connection, or the TARGET: a file,
    https://host/path, unix:///path or tcp://host:port. A recording over one transport replays over
    the others. Ids, states, cursors, UUIDs, times and the version of the server may differ. The
    command of the tape is shown, and never run.

    The exit code is 0 if nothing differs, 3 if something does, and 4 if the server cannot be
    reached.

    \b
    interlock replay files.tape --as server
    interlock replay files.tape --as client -- python server.py
    interlock replay files.tape --as client https://files.example.com/mcp
    interlock replay files.tape --as client --save-test test_files.py -- python server.py
    """
    command: list[str] = click.get_current_context().meta.get(COMMAND, [])
    conversations = list(load_conversations(tape, connection).values())
    if part == "server":
        if command or target is not None:
            raise click.UsageError("--as server uses no other server.")
        sys.exit(asyncio.run(_serve(MockServer(*conversations))))
    if bool(command) == (target is not None):
        raise click.UsageError(
            "Name one server: a TARGET, or the command that starts it after --. The tape was "
            f"recorded with: {_recorded_target(conversations[0])}"
        )
    server = replay_target(target, command, headers, account)
    try:
        found = [
            difference
            for conversation in conversations
            for difference in asyncio.run(_compare(conversation, server, timeout, volatile, ignore))
        ]
    except OSError as bad:
        raise click.ClickException(f"{server.name}: {bad.strerror}") from None
    except InterlockError as bad:
        click.echo(f"{ERROR}{bad}", err=True)
        sys.exit(exits.UNREACHABLE)
    if saved is not None:
        save_test(
            saved,
            tape,
            command=server.command,
            url=server.url,
            connection=connection,
            volatile=volatile,
            ignore=ignore,
        )
    for difference in found:
        click.echo(difference)
    if found:
        sys.exit(exits.REFUSED)
    click.echo(f"No differences in {sum(map(len, conversations))} messages.")


def _recorded_target(tape: Tape) -> str:
    """The command or the URL that a tape was recorded with."""
    url = tape.about.get("url")
    if isinstance(url, str):
        return url_without_secrets(url)
    return " ".join(map(str, tape.about.get("command", ["COMMAND"])))


async def _serve(mock: MockServer) -> int:
    async with own_streams() as channel:
        await mock.serve(channel)
    for words in mock.unanswered:
        click.echo(words, err=True)
    return exits.REFUSED if mock.unanswered else exits.OK


async def _compare(
    tape: Tape,
    server: ReplayTarget,
    patience: float,
    volatile: tuple[str, ...],
    ignore: tuple[str, ...],
) -> list[str]:
    async with server.connect() as channel:
        return await replay_recording(
            tape, channel, patience=patience, volatile=volatile, ignore=ignore
        )

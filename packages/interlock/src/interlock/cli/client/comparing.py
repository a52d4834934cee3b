"""`interlock diff`: compare what two servers offer, or one server at two times or revisions."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from ... import Client
from ...testing import Catalogue, Drift, compare_catalogues, take_catalogue
from ...testing.catalogue import condensed, read_catalogue
from ...wire.revisions import REVISIONS
from .. import exits
from ..screen import print_json, say
from ..targets.trailing_command import TargetCommand
from .connection import ConnectionSettings
from .options import TARGETS, TargetOptions, target_options

_SNAPSHOT: Final = ".json"
_FILES: Final = (_SNAPSHOT, ".tape")
_SIDES: Final = f"""\b
BEFORE and AFTER are each one of these:
  a target as below, or a command in quotes
  FILE.json: a snapshot that the pytest plugin saved (interlock_catalogue), or
      the output of `interlock list --json`
  FILE.tape: a recording, whose last lists count
The server of -- COMMAND, or of --config and --server, is AFTER.

{TARGETS}
"""


@click.command("diff", cls=TargetCommand, epilog=_SIDES + exits.WORDS)
@click.argument("sides", nargs=-1, metavar="BEFORE [AFTER]")
@click.option(
    "--revision",
    "revisions",
    multiple=True,
    metavar="DATE",
    help=f"Use this revision: {', '.join(REVISIONS)}. Twice: for BEFORE and for AFTER.",
)
@click.option(
    "--breaking", is_flag=True, help="Exit with code 3 only for changes that break callers."
)
@target_options
def diff(sides: tuple[str, ...], revisions: tuple[str, ...], breaking: bool, **given: Any) -> None:
    """Compare the tools, prompts and resources of two servers, or of one under two revisions.

    A change breaks callers if a feature or an argument is gone, an argument is required now or
    takes less than before, or a result promises less. All other changes break nobody.

    The exit code is 0 if nothing differs, and 3 otherwise.

    \b
    interlock diff catalogue.json server.py
    interlock diff "uvx mcp-server-git==1.0" "uvx mcp-server-git==1.1"
    interlock diff server.py --revision 2025-06-18 --revision 2026-07-28
    interlock diff session.tape https://mcp.example.com/mcp --breaking
    """
    options = TargetOptions.parsed(given)
    if len(revisions) > 2:
        raise click.UsageError("--revision is for BEFORE and for AFTER: give it at most twice.")
    named: list[str | None] = [*sides, *([None] if options.names_server else [])]
    if len(named) == 1 and len(revisions) == 2:
        named *= 2
    if len(named) != 2:
        raise click.UsageError(
            "Name two things to compare, BEFORE and AFTER; or one, with --revision twice."
        )
    before, after = (
        _catalogue(options, side, revision)
        for side, revision in zip(named, _for_both(revisions), strict=True)
    )
    if any(side is not None and Path(side).suffix == _SNAPSHOT for side in named):
        before, after = condensed(before), condensed(after)
    found = compare_catalogues(before, after)
    if options.settings["machine"]:
        print_json({"changes": [msgspec.structs.asdict(change) for change in found.changes]})
    else:
        _show(found)
    if found.breaking if breaking else found:
        click.get_current_context().exit(exits.REFUSED)


def _for_both(revisions: tuple[str, ...]) -> tuple[str | None, str | None]:
    """The revision of each side."""
    if not revisions:
        return None, None
    return revisions[0], revisions[-1]


def _catalogue(options: TargetOptions, side: str | None, revision: str | None) -> Catalogue:
    """The catalogue of a side; None is the server that the options name."""
    if side is None:
        return _taken(options.named(revision))
    if Path(side).suffix in _FILES:
        try:
            return read_catalogue(side)
        except OSError as bad:
            raise click.UsageError(f"{side} cannot be read: {bad.strerror or bad}.") from None
        except ValueError as bad:
            raise click.UsageError(f"{bad}.") from None
    words = _command_line(side)
    if words:
        chosen = msgspec.structs.replace(options, command=words, config=None, entry=None)
        return _taken(chosen.named(revision))
    return _taken(options.target(side, revision))


def _command_line(text: str) -> list[str]:
    """The words of a command in quotes; empty if the text is something else."""
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    return words if len(words) > 1 and not Path(text).exists() and shutil.which(words[0]) else []


def _taken(connection: ConnectionSettings) -> Catalogue:
    """Ask a server. An error ends the command."""
    taken: list[Catalogue] = []

    async def work(client: Client) -> None:
        taken.append(await take_catalogue(client))

    connection.run(work)
    return taken[0]


def _show(found: Drift) -> None:
    if not found:
        say("No differences.")
        return
    _show_part("Breaks callers", found.breaking, fg="red")
    _show_part("Breaks nobody", found.compatible)


def _show_part(heading: str, changes: list[str], **style: Any) -> None:
    if not changes:
        return
    say(f"{heading}:", bold=True, **style)
    for change in changes:
        say(f"  {change}")

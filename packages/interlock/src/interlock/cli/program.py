"""The command's front door: its help, its options, and subcommands that are loaded when they are called for."""

from __future__ import annotations

import difflib
import errno
import io
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, NamedTuple, NoReturn

import click

from ..untrusted.invisible import visible
from ..version import VERSION
from . import exits


class Row(NamedTuple):
    """A subcommand.

    Attributes:
        module: The module that defines it, named from this package; empty for a command of another distribution.
        attribute: Its name in that module.
        words: What it does, in half a line.
        heading: The heading under which it is listed.
        extra: The extra of `interlock` that installs the distribution of the command; empty for a command of the library.
    """

    module: str
    attribute: str
    words: str
    heading: str
    extra: str = ""


_TALK, _MAKE, _HOST = "Talk to a server", "Run and write servers", "Use servers with a model"
COMMANDS: Final[dict[str, Row]] = {
    "run": Row(".running", "run", "Run the server in a Python file.", _MAKE),
    "new": Row(".project", "new", "Start a small project with a server and its test.", _MAKE),
    "install": Row(
        ".install.command", "install", "Put a server into the configuration of a client.", _MAKE
    ),
    "serve": Row("", "serve", "Run one of the servers that come with Interlock.", _MAKE, "servers"),
    "tour": Row("", "tour", "Watch the protocol at work.", _MAKE, "servers"),
    "demo": Row(
        "", "demo", "Plan a holiday: a host with four servers, in the browser.", _HOST, "demo"
    ),
    "host": Row(
        "", "host", "Put a model and yourself in front of servers, in the browser.", _HOST, "host"
    ),
    "chat": Row("", "chat", "The same in the terminal.", _HOST, "host"),
    "config": Row(
        "", "config", "Show, check and merge the configurations of clients.", _HOST, "host"
    ),
    "log": Row("", "log", "Look up what happened in the host.", _HOST, "host"),
    "ask": Row(
        "", "ask", "One question, for scripts: a policy answers in your place.", _HOST, "host"
    ),
    "list": Row(".listing", "list_", "Show what a server offers.", _TALK),
    "schema": Row(".listing", "schema", "Print the JSON Schemas of tools.", _TALK),
    "call": Row(".calling", "call", "Call a tool.", _TALK),
    "read": Row(".reading", "read", "Read a resource.", _TALK),
    "prompt": Row(".prompting", "prompt", "Get a prompt with its arguments filled in.", _TALK),
    "complete": Row(".prompting", "complete", "Ask for suggestions for an argument.", _TALK),
    "ping": Row(".listing", "ping", "Make sure that a server answers.", _TALK),
    "auth": Row(
        ".auth.group", "auth", "Log in to servers, and see why one does not let you.", _TALK
    ),
}


class Table(click.Group):
    """A group whose commands are those of a table, imported when one is called, and not to list them."""

    rows: Mapping[str, Row] = {}
    prefix = ""
    """What stands before the names of these commands in the entry point group `interlock.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(self.rows)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Load a command."""
        row = self.rows.get(name)
        if row is None:
            return None
        if row.extra:
            return _installed(self.prefix + name, row.extra)
        command: click.Command = getattr(import_module(row.module, __package__), row.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a line; a name that is nearly one is pointed out."""
        if args and args[0] not in self.rows and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self.rows, n=1)
            ctx.fail(
                f"There is no command {args[0]!r}."
                + (f" Did you mean {near[0]!r}?" if near else "")
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands under their headings, from the table alone."""
        for heading in dict.fromkeys(row.heading for row in self.rows.values()):
            with formatter.section(heading):
                formatter.write_dl(
                    [(name, row.words) for name, row in self.rows.items() if row.heading == heading]
                )


def _installed(name: str, extra: str) -> click.Command:
    """Load a command of another distribution by its entry point.

    Raises:
        click.UsageError: The distribution is not installed.
    """
    for found in entry_points(group="interlock.commands", name=name):
        command: click.Command = found.load()
        return command
    words = f"`interlock {name.replace('.', ' ')}` is not installed. Install it with: pip install 'interlock[{extra}]'"
    raise click.UsageError(words)


class Program(Table):
    """The command itself."""

    rows = COMMANDS

    def main(self, *args: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run, and exit with the codes of this program; an interrupt is 130 and not an error like others."""
        run: Any = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **options)
        try:
            code = run(*args, standalone_mode=False, **options)
        except click.ClickException as bad:
            words = io.StringIO()
            bad.show(words)
            click.echo(visible(words.getvalue()), nl=False, err=True)  # it may quote a stranger
            _exit(bad.exit_code)
        except click.Abort:
            click.echo("Interrupted.", err=True)
            _exit(exits.INTERRUPTED)
        _exit(code if isinstance(code, int) else exits.OK)


def _exit(code: int) -> NoReturn:
    """End, also where whoever reads our output has gone: then silently."""
    try:
        sys.stdout.flush()
    except OSError as bad:
        if bad.errno != errno.EPIPE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # it is flushed once more on the way out
    sys.exit(code)


@click.command(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=exits.WORDS,
    no_args_is_help=True,
)
@click.version_option(VERSION, "--version", prog_name="interlock", message="%(prog)s %(version)s")
def program() -> None:
    """Write, run and try out servers of the Model Context Protocol.

    \b
    interlock new hello && cd hello      a server of ten lines, with a test
    interlock call server.py greet name=Ada
    interlock call greet name=Ada -- uv run server.py
    interlock run server.py --http :8000 --workers 4
    interlock install server.py --client claude-desktop
    """

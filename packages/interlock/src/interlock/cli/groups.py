"""Lazy command groups: a subcommand is imported when it is called, and found by entry point.

The library lists its own commands in a table. The commands of other distributions are entry points
of the group `interlock.commands`, so that each distribution names its own. The table also lists the
known ones of these, with the extra that contains each, so that an error can say how to install a
missing command.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

import click

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_OTHERS: Final = "Other commands"


class Row(NamedTuple):
    """A subcommand in a table.

    Attributes:
        summary: Its description, for the help page.
        heading: The heading that it is listed under.
        target: Its module and name, `package.module:name`; empty if it is in another distribution.
        extra: The extra that contains the distribution; empty if the command is in the library.
    """

    summary: str
    heading: str
    target: str = ""
    extra: str = ""


class LazyGroup(click.Group):
    """A group that imports a subcommand only when it is called, not when it is listed."""

    rows: Mapping[str, Row] = {}
    prefix: str = ""
    """The prefix of the commands' names in the entry point group `interlock.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table, and then those of other distributions."""
        return list(dict.fromkeys([*self.rows, *self._installed()]))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command; None if there is none of that name, or it is not installed."""
        row = self.rows.get(name)
        command: click.Command
        if row is not None and row.target:
            module, _, attribute = row.target.partition(":")
            command = getattr(import_module(module), attribute)
            return command
        found = self._installed().get(name)
        if found is None:
            return None
        command = found.load()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a line.

        The error for an unknown name suggests a similar name. The error for a command that is not
        installed names the extra that contains it.
        """
        name = args[0] if args else ""
        row = self.rows.get(name)
        if row is not None and row.target:
            return super().resolve_command(ctx, args)
        if name and not name.startswith("-") and name not in self._installed():
            if row is not None:
                ctx.fail(
                    f"{ctx.command_path} {name} is not installed. "
                    f"Install it: pip install 'interlock[{row.extra}]'"
                )
            near = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"There is no command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def _installed(self) -> dict[str, EntryPoint]:
        """Return the commands of this group from all installed distributions, by name."""
        return {
            name.removeprefix(self.prefix): found
            for name, found in installed().items()
            if name.startswith(self.prefix) and "." not in name.removeprefix(self.prefix)
        }

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings, without importing them."""
        there = self._installed()
        listed: dict[str, list[tuple[str, str]]] = {}
        for name, row in self.rows.items():
            is_missing = not row.target and name not in there
            needs = f" (needs interlock[{row.extra}])" if is_missing else ""
            listed.setdefault(row.heading, []).append((name, f"{row.summary}{needs}"))
        for name, found in there.items():
            if name not in self.rows:
                origin = found.dist.name if found.dist is not None else found.value
                listed.setdefault(_OTHERS, []).append((name, f"From {origin}."))
        for heading, lines in listed.items():
            with formatter.section(heading):
                formatter.write_dl(lines)


@cache
def installed() -> Mapping[str, EntryPoint]:
    """Return the commands of all distributions by name. The distributions are searched once."""
    # imported late: slow, and not needed for the library's own commands
    from importlib.metadata import entry_points

    return {found.name: found for found in entry_points(group="interlock.commands")}

"""Parses a command line that ends with `--` and the command or arguments of a server."""

from __future__ import annotations

from typing import Final

import click

COMMAND: Final = "interlock.command"
"""The key in the context for the words after `--`."""


class TargetCommand(click.Command):
    """A command whose line may end with `-- COMMAND ARGS...`.

    Attributes:
        needs_words: Whether an empty line shows the help.
    """

    needs_words = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remove the words after the two dashes, and parse the rest."""
        if "--" in args:
            cut = args.index("--")
            command = args[cut + 1 :]
            args = args[:cut]
            if not command:
                raise click.UsageError("Write the command that starts the server after --.", ctx)
            ctx.meta[COMMAND] = command
        elif not args and self.needs_words:
            raise click.exceptions.NoArgsIsHelpError(ctx)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The words after the name in the first line of the help."""
        return [
            "[OPTIONS]",
            *[p for p in super().collect_usage_pieces(ctx) if p != "[OPTIONS]"],
            "[-- COMMAND [ARGS]...]",
        ]

"""`interlock prompt` and `complete`: fill in prompts, and get suggestions for arguments."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ... import Client
from ..screen import note, plain, print_json, say
from .calling import show_block
from .connection import ConnectionSettings
from .options import exactly, target_command
from .values import string_arguments


@target_command("prompt", "NAME [KEY=VALUE]...")
def prompt(connection: ConnectionSettings, words: Sequence[str]) -> None:
    """Get the prompt NAME with its arguments filled in. Values are strings; key=@FILE takes one
    from a file.

    \b
    interlock prompt notes.py summarise style=short text=@article.txt
    """
    if not words:
        raise click.UsageError("Missing NAME.")
    arguments = string_arguments(words[1:])

    async def work(client: Client) -> None:
        result = await client.get_prompt(words[0], arguments)
        if connection.machine:
            print_json(plain(result))
            return
        if result.description:
            note(result.description, dim=True)
        for message in result.messages:
            say(f"{message.role}:", bold=True)
            show_block(message.content)

    connection.run(work)


@target_command("complete", "REF ARGUMENT [VALUE]")
@click.option(
    "--with",
    "known",
    multiple=True,
    metavar="KEY=VALUE",
    help="An argument that is already known; repeat it for several.",
)
def complete(connection: ConnectionSettings, words: Sequence[str], known: tuple[str, ...]) -> None:
    """Show suggestions for an ARGUMENT of which VALUE was typed so far.

    REF is a prompt's name or a resource template.

    \b
    interlock complete travel.py plan_trip city Par
    interlock complete travel.py 'travel://{country}/{city}' city --with country=France
    """
    ref, argument, value = exactly(
        words if len(words) != 2 else (*words, ""), "REF", "ARGUMENT", "VALUE"
    )
    arguments = string_arguments(known)

    async def work(client: Client) -> None:
        completion = await client.complete(ref, argument, value, arguments=arguments or None)
        if connection.machine:
            print_json(plain(completion))
            return
        for suggestion in completion.values:
            say(suggestion)
        total = completion.total or 0
        if completion.has_more or total > len(completion.values):
            note(f"... and {total - len(completion.values) if total else 'some'} more", dim=True)

    connection.run(work)

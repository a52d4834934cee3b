"""Describes every command of the program `interlock`, from click, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import click

from interlock.cli import exits
from interlock.cli.program import COMMANDS, program

_EXAMPLES: Final = "\b\n"


def pages() -> dict[str, str]:
    """Return the page of each command, by its name, in the order of the help; a group has its
    subcommands on its page.
    """
    context = click.Context(program, info_name="interlock")
    return {
        name: "\n".join(_command(found, name, context, 1)).rstrip() + "\n"
        for name in program.list_commands(context)
        if (found := program.get_command(context, name)) is not None
    }


def index(names: list[str]) -> str:
    """Return the page that lists the commands, under the headings of the help."""
    lines = ["# Commands", "", "`interlock --help` lists them too. Each has `--help`."]
    headings: dict[str, list[str]] = {}
    for name in names:
        row = COMMANDS.get(name)
        heading = row.heading if row is not None else "Other commands"
        summary = row.summary if row is not None else ""
        extra = f" Needs `interlock[{row.extra}]`." if row is not None and row.extra else ""
        headings.setdefault(heading, []).append(f"| [`{name}`]({name}.md) | {summary}{extra} |")
    for heading, rows in headings.items():
        lines += ["", f"## {heading}", "", "| | |", "|---|---|", *rows]
    return "\n".join([*lines, "", *_help(exits.WORDS)]).rstrip() + "\n"


def _command(command: click.Command, name: str, parent: click.Context, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    yield f"{'#' * level} interlock {context.command_path.partition(' ')[2]}"
    yield ""
    yield "```text"
    yield " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield "```"
    yield ""
    yield from _help(command.help or "")
    rows = [row for parameter in command.get_params(context) if (row := _row(parameter, context))]
    if rows:
        yield "| option | |"
        yield "|---|---|"
        yield from rows
        yield ""
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None and not found.hidden:
                yield from _command(found, below, context, level + 1)


def _help(text: str) -> Iterator[str]:
    """The paragraphs of a help text; those that click must not wrap are examples."""
    text = "\n".join(line.strip() for line in text.strip().splitlines())
    for paragraph in re.split(r"\n\n+", text):
        if paragraph.startswith(_EXAMPLES):
            yield from ("```text", paragraph.removeprefix(_EXAMPLES), "```")
        else:
            yield _escaped(paragraph)
        yield ""


def _row(parameter: click.Parameter, context: click.Context) -> str:
    """The row of an option; empty for an argument, which is in the usage line."""
    if not isinstance(parameter, click.Option) or parameter.hidden:
        return ""
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    names, words = record
    return f"| `{names}` | {_escaped(words)} |"


def _escaped(text: str) -> str:
    """A text of a help page as Markdown: words in capitals and options stay as they are."""
    return re.sub(r"([<>*_|\[\]])", r"\\\1", text) if "`" not in text else text

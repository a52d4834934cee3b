"""`interlock lint`: check what a server lists, with the rules that the doctor uses too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from ... import Client
from ...doctor import ExamineOptions, examine_catalogue
from ..client.connection import ConnectionSettings
from ..client.options import exactly, target_command
from .page import ReportPage, conclude

_DEFAULTS: Final = ExamineOptions()


@target_command("lint")
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    metavar="NUMBER",
    default=_DEFAULTS.most_tokens,
    show_default=True,
    help="Warn if the catalogue costs the model more tokens, as estimated.",
)
def lint(
    connection: ConnectionSettings, words: Sequence[str], strict: bool, max_tokens: int
) -> None:
    """Check what a server lists: names, descriptions, schemas under the rules of each provider,
    annotations, pages, cache hints, and the tokens that the model pays.

    The exit code is 0 if there are no errors, and 1 otherwise. `interlock doctor` checks everything
    between the command and the lists too.

    \b
    interlock lint weather.py
    interlock lint --strict -- npx -y some-server
    """
    exactly(words)
    seconds = _DEFAULTS.timeout if connection.timeout is None else connection.timeout
    options = ExamineOptions(most_tokens=max_tokens, timeout=seconds)

    async def work(client: Client) -> int:
        page = None if connection.machine else ReportPage()
        report = await examine_catalogue(client, options)
        if page is not None:
            page.begin(report)
            for part in report.parts:
                page.show(part)
        return conclude([report], machine=connection.machine, strict=strict)

    connection.run(work)

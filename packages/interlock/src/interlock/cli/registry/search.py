"""`interlock search`: find servers in the MCP registry."""

from __future__ import annotations

import click

from ...registry.client import Registry
from ...registry.offers import status_of
from ..screen import print_json, say
from .answers import address_of, answer, registry_option


@click.command("search")
@click.argument("words")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most so many."
)
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
@registry_option
def search(words: str, limit: int, machine: bool, registry: str | None) -> None:
    """Find servers whose name contains WORDS in the MCP registry.

    The registry does not check what the servers do. Look at a server before you add it.

    \b
    interlock search weather
    interlock search filesystem --limit 5 --json
    """
    found = answer(Registry(address_of(registry)).search(words, limit))
    if machine:
        print_json({"servers": found})
        return
    if not found:
        say(f"No server has {words!r} in its name.")
        return
    for one in found:
        named = one.get("server")
        server = named if isinstance(named, dict) else {}
        status, _ = status_of(one)
        marked = f"  ({status})" if status != "active" else ""
        say(f"{server.get('name', '')} {server.get('version', '')}{marked}", bold=True)
        say(f"  {server.get('description', '')}")

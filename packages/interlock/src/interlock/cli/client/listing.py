"""`interlock list`, `schema` and `ping`: show what a server is and what it offers."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from typing import Any, Final

import click

from ... import Client
from ... import types as t
from ...client.optional_lists import unless_missing
from ...untrusted.lookalikes import lookalikes
from .. import exits
from ..screen import note, plain, print_json, say, shown
from .connection import ConnectionSettings
from .options import exactly, target_command

_HEADINGS: Final = {
    "tools": "Tools",
    "resources": "Resources",
    "resourceTemplates": "Resource templates",
    "prompts": "Prompts",
}


@target_command("list")
@click.option("--tools", is_flag=True, help="Show only the tools.")
@click.option("--resources", is_flag=True, help="Show only resources and templates.")
@click.option("--prompts", is_flag=True, help="Show only the prompts.")
def list_(
    connection: ConnectionSettings,
    words: Sequence[str],
    tools: bool,
    resources: bool,
    prompts: bool,
) -> None:
    """Show what a server offers: tools, resources and prompts.

    \b
    interlock list weather.py
    interlock list --tools --json -- npx -y some-server
    interlock list --config ~/.cursor/mcp.json --server notes
    """
    exactly(words)
    everything = not (tools or resources or prompts)

    async def work(client: Client) -> None:
        offered = client.server_capabilities
        found: dict[str, list[Any] | None] = {}
        if (everything or tools) and offered.tools is not None:
            found["tools"] = await unless_missing(client.list_tools())
        if (everything or resources) and offered.resources is not None:
            found["resources"] = await unless_missing(client.list_resources())
            found["resourceTemplates"] = await unless_missing(client.list_resource_templates())
        if (everything or prompts) and offered.prompts is not None:
            found["prompts"] = await unless_missing(client.list_prompts())
        missing = [_HEADINGS[kind].lower() for kind, items in found.items() if items is None]
        if missing and not everything:
            note(f"The server does not list {' or '.join(missing)}.", fg="yellow")
        if connection.machine:
            print_json(
                {
                    **_identity(client),
                    **{
                        kind: [plain(item) for item in items]
                        for kind, items in found.items()
                        if items is not None
                    },
                }
            )
        else:
            _show(client, {kind: items or [] for kind, items in found.items()}, connection.verbose)

    connection.run(work)


def _identity(client: Client) -> dict[str, Any]:
    info = client.server_info
    data: dict[str, Any] = {
        "server": plain(info) if info is not None else None,
        "revision": client.revision,
    }
    data["capabilities"] = plain(client.server_capabilities)
    if client.instructions:
        data["instructions"] = client.instructions
    return data


def _show(client: Client, found: dict[str, list[Any]], verbose: bool) -> None:
    info = client.server_info
    name = f"{info.title or info.name} {info.version}".strip() if info is not None else "The server"
    say(f"{name} speaks {client.revision}", bold=True)
    if client.instructions:
        say(client.instructions.strip(), dim=True)
    for kind, heading in _HEADINGS.items():
        if not found.get(kind):
            continue
        say()
        say(heading, bold=True)
        lines = [_line(item) for item in found[kind]]
        marks = lookalikes([name for name, _, _ in lines])
        for name, detail, description in lines:
            _show_item(name, detail, description, marks.get(name, ""), verbose)
    if not any(found.values()):
        say("It offers none of these." if found else "It offers no tools, resources or prompts.")


def _line(item: Any) -> tuple[str, str, str]:
    """Name, text in parentheses, and description of a listed item."""
    match item:
        case t.Tool():
            return (
                item.name,
                _parameters(item.input_schema),
                item.description or (item.label if item.label != item.name else ""),
            )
        case t.Resource(uri=uri) | t.ResourceTemplate(uri_template=uri):
            return uri, item.mime_type or "", item.description or item.title or item.name
        case _:
            arguments = item.arguments or []
            return (
                item.name,
                ", ".join(a.name if a.required else f"{a.name}?" for a in arguments),
                item.description or item.title or "",
            )


def _parameters(schema: dict[str, Any]) -> str:
    """A tool's parameters in short: names with types, and a mark on optional ones."""
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    parts = []
    for name, node in properties.items() if isinstance(properties, dict) else ():
        kind = node.get("type") if isinstance(node, dict) else None
        parts.append(
            f"{name}{'' if name in required else '?'}"
            + (f": {kind}" if isinstance(kind, str) else "")
        )
    return ", ".join(parts)


def _show_item(name: str, detail: str, description: str, mark: str, verbose: bool) -> None:
    head = f"  {name}"
    click.echo(
        click.style(shown(head), fg="cyan")
        + (click.style(shown(f" ({detail})"), dim=True) if detail else "")
    )
    if mark:
        say(f"      ! {mark}", fg="yellow")
    lines = [line.strip() for line in description.strip().splitlines()]
    if not verbose and lines:
        width = max(shutil.get_terminal_size().columns - 6, 40)
        first = lines[0]
        lines = [first if len(first) <= width else first[: width - 1].rstrip() + "…"]
    for line in lines:
        say(f"      {line}")


@target_command("schema", "[TOOL]")
def schema(connection: ConnectionSettings, words: Sequence[str]) -> None:
    """Print the JSON Schemas of one TOOL, or of all: the input, and the output if the tool declares
    it.

    \b
    interlock schema weather.py get_alerts
    interlock schema -- node server.js
    """
    if len(words) > 1:
        exactly(words, "TOOL")

    async def work(client: Client) -> int:
        schemas: dict[str, dict[str, Any]] = {}
        offered = client.server_capabilities.tools is not None
        for tool in (await unless_missing(client.list_tools()) if offered else None) or ():
            schemas[tool.name] = {"inputSchema": tool.input_schema}
            if tool.output_schema is not None:
                schemas[tool.name]["outputSchema"] = tool.output_schema
        if not words:
            print_json(schemas)
        elif words[0] in schemas:
            print_json(schemas[words[0]])
        else:
            raise t.McpError(
                t.INVALID_PARAMS,
                f"The server lists no tool {words[0]}; it lists {', '.join(schemas) or 'none'}.",
            )
        return exits.OK

    connection.run(work)


@target_command("ping")
def ping(connection: ConnectionSettings, words: Sequence[str]) -> None:
    """Check that a server starts, agrees on a revision and answers.

    The milliseconds are the round-trip time of one request, without the start. The newest revision
    has no ping, so the request is server/discover.

    \b
    interlock ping weather.py
    interlock ping tcp://127.0.0.1:8765 --timeout 2
    """
    exactly(words)

    async def work(client: Client) -> None:
        began = time.perf_counter()
        await client.ping()
        milliseconds = (time.perf_counter() - began) * 1000
        if connection.machine:
            print_json({**_identity(client), "milliseconds": round(milliseconds, 3)})
            return
        info = client.server_info
        say(
            f"{info.name + ' ' + info.version if info is not None else 'The server'} answered, "
            f"speaking {client.revision}",
            fg="green",
        )
        note(f"{milliseconds:.1f} ms", dim=True)

    connection.run(work)

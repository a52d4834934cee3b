"""`interlock call`: call a tool and show its result."""

from __future__ import annotations

import base64
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec import UNSET

from ... import Client, TaskHandle
from ... import types as t
from ...client.optional_lists import unless_missing
from ...types.tasks import Task
from .. import exits
from ..screen import Bar, note, plain, print_json, result_text, say, size, size_of
from ..targets.trailing_command import TargetCommand
from .connection import ConnectionSettings
from .options import target_command
from .values import tool_arguments

VALUES: Final = """\b
Arguments:
  key=text      a string where the tool's schema has one, else JSON where it reads
                as JSON, else a string; several times for a list
  key=@FILE     the text of a file; @- is stdin
  key:=JSON     JSON, whatever the schema says
  --json '{..}' all of them at once (--json alone writes the result as JSON);
                also --arguments '{..}' or --arguments @FILE
"""


class CallCommand(TargetCommand):
    """A command in which `--json` followed by an object gives the arguments, and `--json` alone
    requests JSON output.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rename the first kind to `--arguments`."""
        end = args.index("--") if "--" in args else len(args)
        for n in range(end):
            if args[n] == "--json" and n + 1 < end and args[n + 1].lstrip().startswith("{"):
                args[n] = "--arguments"
            elif args[n].startswith("--json="):
                args[n] = args[n].replace("--json", "--arguments", 1)
        return super().parse_args(ctx, args)


@target_command("call", "TOOL [KEY=VALUE]...", epilog=VALUES, kind=CallCommand)
@click.option("--arguments", metavar="JSON", help="The arguments as one JSON object, or @FILE.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write an image, sound or file of the result to this file.",
)
@click.option(
    "--task",
    "as_task",
    is_flag=True,
    help="Do not wait if the call becomes a task; print the ID for `interlock tasks`.",
)
def call(
    connection: ConnectionSettings,
    words: Sequence[str],
    arguments: str | None,
    output: Path | None,
    as_task: bool,
) -> None:
    """Call a TOOL and show its result.

    \b
    interlock call weather.py get_alerts state=CA
    interlock call get_alerts state=CA -- node server.js
    interlock call unix:///run/notes.sock add title=Milk tags=food tags=cold
    interlock call weather.py get_alerts --json '{"state": "CA"}' --json
    interlock call https://lab.example/mcp crunch data=large --task
    """
    if not words or "=" in words[0]:
        raise click.UsageError("Missing TOOL.")

    async def work(client: Client) -> int:
        offered = client.server_capabilities.tools is not None
        listed = await unless_missing(client.list_tools()) if offered else None
        tools = {tool.name: tool for tool in listed or ()}
        tool = tools.get(words[0])
        if tool is None and (near := difflib.get_close_matches(words[0], tools, n=1)):
            note(f"The server lists no tool {words[0]!r}. Did you mean {near[0]!r}?", fg="yellow")
        given = tool_arguments(words[1:], arguments, tool.input_schema if tool is not None else {})
        with Bar() as bar:
            if as_task:
                handle = await client.start_tool(words[0], given, on_progress=bar.update)
                if handle.state is not None:
                    return started(handle.state, connection.machine)
                result = await handle.result()
            else:
                seconds = UNSET if connection.timeout is None else connection.timeout
                result = await client.call_tool(
                    words[0], given, on_progress=bar.update, timeout=seconds
                )
        return ended(result, connection.machine, output)

    if as_task and output is not None:
        raise click.UsageError("--task does not wait for the result that --output would write.")
    connection.run(work)


def started(state: Task, machine: bool) -> int:
    """Show the task that a call became, and return the exit code."""
    if machine:
        print_json(plain(state))
    else:
        show_task(state)
        note(f"`interlock tasks TARGET wait {state.task_id}` shows the result.", dim=True)
    return exits.OK


async def finished(handle: TaskHandle, machine: bool) -> int:
    """Wait for a task, show its result, and return the exit code."""
    with Bar() as bar:
        number = 0
        async for state in handle:
            number += 1
            said = state.status_message or state.status
            bar.update(
                t.ProgressNotificationParams(progress_token="", progress=number, message=said)
            )
        result = await handle.result()
    return ended(result, machine, None)


def ended(result: t.CallToolResult, machine: bool, output: Path | None) -> int:
    """Show the result of a call, and return the exit code."""
    if machine:
        print_json(plain(result))
    else:
        show_result(result)
    if output is not None:
        save(result.content, output)
    return exits.TOOL_FAILED if result.is_error else exits.OK


def show_task(state: Task) -> None:
    """Show the state of a task in one line."""
    words = f"{state.task_id}  {state.status}  {state.last_updated_at}"
    say(f"{words}  {state.status_message}" if state.status_message else words)


def show_result(result: t.CallToolResult) -> None:
    """Show a result to a person: its blocks, and its structured content unless a block has the same
    content.
    """
    if result.is_error:
        note("The tool failed:", fg="red")
    for block in result.content:
        show_block(block)
    structured = result.structured_content
    if structured is not msgspec.UNSET and not _says_the_same(result, structured):
        print_json(structured)


def _says_the_same(result: t.CallToolResult, structured: Any) -> bool:
    """Whether the text is the structured content, as it is or as JSON."""
    value = (
        structured["result"]
        if isinstance(structured, dict) and structured.keys() == {"result"}
        else structured
    )
    if result.text == value:
        return True
    try:
        return msgspec.json.decode(result.text) in (value, structured)
    except msgspec.DecodeError:
        values = value if isinstance(value, list) else []
        return bool(values) and [
            block.text for block in result.content if isinstance(block, t.TextContent)
        ] == [v if isinstance(v, str) else msgspec.json.encode(v).decode() for v in values]


def show_block(block: t.ContentBlock) -> None:
    """Show one block to a person: text as it is, other content as a line that describes it."""
    match block:
        case t.TextContent(text=text):
            click.echo(result_text(text))
        case t.ImageContent(data=data, mime_type=kind) | t.AudioContent(data=data, mime_type=kind):
            say(f"[{kind}, {size_of(data)}; -o FILE saves it]", dim=True)
        case t.ResourceLink(uri=uri, name=name):
            say(f"[{name}: {uri}; `interlock read` shows it]", dim=True)
        case t.EmbeddedResource(resource=resource) if resource.text is not None:
            say(f"[{resource.uri}]", dim=True)
            click.echo(result_text(resource.text))
        case t.EmbeddedResource(resource=resource):
            say(
                f"[{resource.uri}, {resource.mime_type or 'binary'}, "
                f"{size_of(resource.blob or '')}; -o FILE saves it]",
                dim=True,
            )
        case _:
            print_json(plain(block))


def save(content: Sequence[t.ContentBlock], path: Path) -> None:
    """Write the only file block of a result, or its text if there is none. Raises click.UsageError
    if there are several.
    """
    files: list[bytes] = []
    for block in content:
        if isinstance(block, t.ImageContent | t.AudioContent):
            files.append(base64.b64decode(block.data))
        elif isinstance(block, t.EmbeddedResource):
            files.append(
                (block.resource.text or "").encode()
                if block.resource.blob is None
                else base64.b64decode(block.resource.blob)
            )
    if not files:
        files = [
            "\n".join(block.text for block in content if isinstance(block, t.TextContent)).encode()
        ]
    if len(files) > 1:
        raise click.UsageError(f"The result has {len(files)} files; -o takes one. Use --json.")
    path.write_bytes(files[0])
    note(f"Wrote {size(len(files[0]))} to {path}.")

"""`interlock read`: show or save a resource."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ... import Client
from ... import types as t
from .. import exits
from ..screen import note, plain, print_json, say, shown, size
from .connection import ConnectionSettings
from .options import exactly, target_command


@target_command("read", "URI")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the content to this file.",
)
def read(connection: ConnectionSettings, words: Sequence[str], output: Path | None) -> None:
    """Read the resource at a URI.

    Text goes to stdout; so does anything else where stdout is a file or a pipe. A terminal gets no
    binary data: use -o.

    \b
    interlock read notes.py note://today
    interlock read photos.py photo://7 -o seven.jpg
    """
    (uri,) = exactly(words, "URI")

    async def work(client: Client) -> int:
        result = await client.read_resource(uri)
        if connection.machine:
            print_json(plain(result))
            return exits.OK
        if output is not None:
            return _save(result, output)
        return _show(result)

    connection.run(work)


def content_of(contents: t.ResourceContents) -> bytes:
    """The bytes of one content. Raises ProtocolError if it is not valid base64."""
    if contents.blob is None:
        return (contents.text or "").encode()
    try:
        return base64.b64decode(contents.blob, validate=True)
    except binascii.Error as bad:
        raise t.ProtocolError(
            f"What the server sent for {contents.uri} is not base64: {bad}"
        ) from None


def _save(result: t.ReadResourceResult, output: Path) -> int:
    if len(result.contents) != 1:
        raise click.UsageError(
            f"The resource has {len(result.contents)} parts, and -o takes one. Use --json."
        )
    data = content_of(result.contents[0])
    output.write_bytes(data)
    note(f"Wrote {size(len(data))} to {output}.")
    return exits.OK


def _show(result: t.ReadResourceResult) -> int:
    on_terminal = sys.stdout.isatty()
    for contents in result.contents:
        if len(result.contents) > 1:
            note(f"--- {contents.uri} ({contents.mime_type or 'no type'})", dim=True)
        data = content_of(contents)
        if contents.blob is not None and on_terminal:
            words = (
                f"{contents.uri} is {contents.mime_type or 'binary data'}, {size(len(data))}, "
                "which a terminal cannot show."
            )
            raise click.UsageError(f"{words} Use -o FILE, or a pipe.")
        if on_terminal:
            say(shown(contents.text or "").rstrip("\n"))
        else:
            click.echo(data, nl=False)
    return exits.OK

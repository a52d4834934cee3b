"""`interlock host`: the web face, at an address of this machine that lets in once."""

from __future__ import annotations

import asyncio
import contextlib
import webbrowser
from collections.abc import Callable
from typing import Any

import click

from ... import types as t
from ...host.app import Host
from ...host.log import LogError
from ...host.web.app import WebFace
from ...host.web.serving import serve
from .. import exits
from .making import follow, host_of
from .options import given_of, with_host_options


@click.command("host")
@with_host_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; any that is free unless it is given.")
@click.option("--open", "opens", is_flag=True, help="Open the address in your browser.")
def host(port: int, opens: bool, **options: Any) -> None:
    """Put a model and yourself in front of servers, in the browser.

    Prints one address, which works once and only on this machine. Ctrl-C ends the host and every server that it started.

    \b
    interlock host --config .mcp.json --model anthropic:claude-sonnet-4-5
    interlock host -c servers.json -m openai:llama3@http://localhost:11434/v1 --open
    """
    given = given_of(options)
    made = host_of(given)
    run_pages(made, port=port, opens=opens, follow=lambda: follow(made, given))


def run_pages(
    host: Host,
    *,
    port: int,
    opens: bool,
    title: str = "Interlock",
    demo: str = "",
    ready: Callable[[WebFace], object] | None = None,
    follow: Callable[[], Any] | None = None,
) -> None:
    """Serve a host until Ctrl-C, and exit: with 0 after that, with words where it could not be begun."""

    def on_ready(face: WebFace) -> None:
        click.echo(f"Open {click.style(face.entry, bold=True)}")
        click.echo("The address works once, on this machine only. Ctrl-C ends everything.")
        if ready is not None:
            ready(face)
        if opens:
            webbrowser.open(face.entry)

    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            serving = asyncio.create_task(serve(host, port=port, title=title, demo=demo, on_ready=on_ready))
            stack.push_async_callback(_ended, serving)
            opening = asyncio.create_task(host.open())
            stack.push_async_callback(host.aclose)
            stack.push_async_callback(_ended, opening)
            following = asyncio.create_task(follow()) if follow is not None else None
            if following is not None:
                stack.push_async_callback(_ended, following)
            await asyncio.wait({serving, opening}, return_when=asyncio.FIRST_COMPLETED)
            if opening.done():
                opening.result()
            await serving

    try:
        asyncio.run(run())
    except (OSError, ImportError, LogError, t.InterlockError) as bad:
        raise click.ClickException(str(bad)) from None
    except KeyboardInterrupt:
        click.get_current_context().exit(exits.OK)
    click.echo("Ended.")


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})

"""`interlock host`: a page on loopback, with an entry address that works once."""

from __future__ import annotations

import asyncio
import contextlib
import webbrowser
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import click

from interlock import types as t
from interlock.cli import exits

from ..fleet.log import LogError
from ..host.app import Host
from .host_factory import follow, host_of
from .need_web import need_web
from .options import given_of, with_host_options

if TYPE_CHECKING:
    from ..host.pages.site import HostSite


@click.command("host")
@with_host_options
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port; a free one by default.",
)
@click.option(
    "--open",
    "opens",
    is_flag=True,
    help=(
        "Open the address in your browser. Other users of this machine may see it in the list "
        "of processes."
    ),
)
def host(port: int, opens: bool, **options: Any) -> None:
    """Use a model with servers, in the browser.

    Prints one address, which works once and only on this machine. Ctrl-C ends the host and every
    server that it started.

    \b
    interlock host --config .mcp.json --model anthropic:claude-sonnet-4-5
    interlock host -c servers.json -m openai:llama3@http://localhost:11434/v1 --open
    """
    need_web()
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
    ready: Callable[[HostSite], object] | None = None,
    follow: Callable[[], Any] | None = None,
) -> None:
    """Serve a host until Ctrl-C, and exit: with code 0, or with an error message if it could not
    start.
    """
    need_web()
    from ..host.pages.serving import serve  # optional extra `host`

    listening = asyncio.Event()

    def on_ready(site: HostSite) -> None:
        click.echo(f"Open {click.style(site.entry, bold=True)}")
        click.echo("The address works once, on this machine only. Ctrl-C ends everything.")
        if ready is not None:
            ready(site)
        if opens:
            webbrowser.open(site.entry)
        listening.set()

    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(host.aclose)
            await host.log.open()  # first of all: without its log the host does not start
            serving = asyncio.create_task(
                serve(host, port=port, title=title, demo=demo, on_ready=on_ready)
            )
            stack.push_async_callback(_ended, serving)
            await _first(
                serving, listening.wait()
            )  # servers start only once the page can be opened
            opening = asyncio.create_task(host.open())
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


async def _first(task: asyncio.Task[Any], other: Coroutine[Any, Any, Any]) -> None:
    """Wait for either of the two. Raises the task's exception."""
    waiting = asyncio.create_task(other)
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if task.done():
        task.result()


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})

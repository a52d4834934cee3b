"""`interlock host`: a page on loopback, with an entry address that works once."""

from __future__ import annotations

import asyncio
import contextlib
import webbrowser
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock import types as t
from interlock.cli import exits
from interlock.cli.screen import note

from ..fleet.log import LogError
from ..host.app import Host
from ..host.control import HostSocket
from .host_factory import follow, host_of, replay_host, setup_of
from .need_web import need_web
from .options import given_of, with_host_options
from .running_hosts import print_address, print_runs, sockets_folder

if TYPE_CHECKING:
    from ..host.pages.site import HostSite
    from ..host.setup.host_setup import HostSetup

AGAIN = "run `interlock host --new-address`: it prints another one."


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
@click.option(
    "--new-address",
    "new_address",
    is_flag=True,
    help="Print a new one-time address of the host that runs already, and end.",
)
@click.option(
    "--runs", is_flag=True, help="List what the host that runs already is doing, and end."
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help=(
        "With --new-address or --runs: the folder in which that host was started.  "
        "[this folder, or one above]"
    ),
)
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help=(
        "Show the conversations of an exported log. Nothing is written to your log; --config and "
        "--model are only needed to continue a conversation."
    ),
)
def host(
    port: int,
    opens: bool,
    new_address: bool,
    runs: bool,
    folder: Path | None,
    replay: Path | None,
    **options: Any,
) -> None:
    """Use a model with servers, in the browser.

    Prints one address, which works once and only on this machine. Ctrl-C ends the host and every
    server that it started. Without a file of servers or a model, you add them on the page.
    `--new-address` prints another address of a running host, for a second browser.

    \b
    interlock host
    interlock host --config .mcp.json --model anthropic:claude-sonnet-4-5
    interlock host -c servers.json -m openai:llama3@http://localhost:11434/v1 --open
    interlock host --replay trip.jsonl
    """
    if folder is not None and not (new_address or runs):
        raise click.UsageError("Give --folder together with --new-address or --runs.")
    if new_address:
        print_address(folder, opens)
        return
    if runs:
        print_runs(folder)
        return
    need_web()
    given = given_of(options)
    if replay is not None:
        note = f"Recorded conversations from {replay.name}. Nothing here is written to your log."
        run_pages(replay_host(replay, given), port=port, opens=opens, demo=note)
        return
    made = host_of(given, empty=True)
    run_pages(
        made,
        port=port,
        opens=opens,
        follow=lambda: follow(made, given),
        setup=setup_of(made, given),
    )


def run_pages(
    host: Host,
    *,
    port: int,
    opens: bool,
    title: str = "Interlock",
    demo: str = "",
    ready: Callable[[HostSite], object] | None = None,
    follow: Callable[[], Any] | None = None,
    setup: HostSetup | None = None,
) -> None:
    """Serve a host until Ctrl-C, and exit: with code 0, or with an error message if it could not
    start.
    """
    need_web()
    from ..host.pages.serving import serve  # optional extra `host`

    listening = asyncio.Event()
    sites: list[HostSite] = []

    def on_ready(site: HostSite) -> None:
        sites.append(site)
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
            if setup is not None:
                stack.push_async_callback(setup.aclose)
            await host.log.open()  # first of all: without its log the host does not start
            serving = asyncio.create_task(
                serve(
                    host,
                    port=port,
                    title=title,
                    demo=demo,
                    again=AGAIN,
                    on_ready=on_ready,
                    setup=setup,
                )
            )
            stack.push_async_callback(_ended, serving)
            await _first(
                serving, listening.wait()
            )  # servers start only once the page can be opened
            control = HostSocket(
                host, sockets_folder(), title=title, address=lambda: sites[0].new_entry()
            )
            try:
                await control.open()
                stack.push_async_callback(control.aclose)
            except OSError as bad:
                note(f"Other commands cannot reach this host: {bad.strerror or bad}.", fg="yellow")
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

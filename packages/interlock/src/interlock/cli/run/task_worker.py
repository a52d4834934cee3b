"""`interlock tasks run`: a worker of a fleet, which runs the tasks that servers have queued."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys

import click

from ... import Server, Tasks
from ...store.errors import StoreError
from ..targets.target_syntax import split_target
from .loading import TargetError
from .running import load_file


@click.command("run")
@click.argument("file", metavar="FILE[:OBJECT]")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS...]")
@click.option(
    "--store",
    metavar="URL",
    help="The store of the tasks, if its address differs here: sqlite:///path or redis://host.",
)
def run_tasks(file: str, arguments: tuple[str, ...], store: str | None) -> None:
    """Run the tasks of the server in a Python FILE, and serve nobody.

    The server creates tasks, and any number of these workers run them. For that, its extension has
    a runner: Tasks("redis://...", runner=Docket()). FILE, OBJECT and ARGUMENTS are those of
    `interlock run`.

    At SIGTERM or SIGINT the worker takes no more tasks and gives up those that it runs. Other
    workers continue them at once.

    \b
    interlock tasks run reports.py
    interlock tasks run reports.py:server --store redis://cache.internal
    """
    path, name = split_target(file)
    server = load_file(path, name, arguments)
    tasks = next((each for each in server.extensions if isinstance(each, Tasks)), None)
    if tasks is None:
        raise TargetError(f"The server in {path} has no tasks: it needs extensions=[Tasks(...)].")
    try:
        if store is not None:
            tasks.use_store(store)
        asyncio.run(_until_signalled(tasks, server))
    except (StoreError, ValueError) as bad:
        raise click.ClickException(str(bad)) from bad


async def _until_signalled(tasks: Tasks, server: Server) -> None:
    """Run tasks until a signal arrives."""
    loop = asyncio.get_running_loop()
    running = loop.create_task(tasks.run_worker(server, on_ready=_running))
    if sys.platform != "win32":  # there, an interrupt ends the event loop
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, running.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await running


def _running() -> None:
    click.echo("Running tasks", err=True)

"""Commands that talk to a host that runs already: a new address of its page, and its runs."""

from __future__ import annotations

import time
import webbrowser
from pathlib import Path

import click

from interlock.cli import exits
from interlock.cli.screen import shown
from interlock.cli.user_folder import user_folder

from ..host.control import (
    HostRequest,
    HostResponse,
    HostUnreachable,
    ask_host,
    choose_host,
    control_folder,
    find_hosts,
)


class _NoHost(click.ClickException):
    """No host can be reached."""

    exit_code = exits.UNREACHABLE


def sockets_folder() -> Path:
    """The folder of the control sockets of this user's hosts."""
    return control_folder(user_folder())


def print_address(folder: Path | None, opens: bool) -> None:
    """Print a new one-time address of a running host; exit with an error message if none runs."""
    address = send(folder, HostRequest("address")).address
    click.echo(f"Open {click.style(address, bold=True)}")
    click.echo("The address works once, on this machine only.")
    if opens:
        webbrowser.open(address)


def print_runs(folder: Path | None) -> None:
    """Print the runs of a running host, one a line: id, state, since when, title."""
    runs = send(folder, HostRequest("runs")).runs
    if not runs:
        click.echo("Nothing runs in this host yet.")
    for run in runs:
        waits = f" ({run.questions} waiting)" if run.questions else ""
        since = time.strftime("%H:%M:%S", time.localtime(run.since)) if run.since else "-"
        click.echo(f"{run.session}  {run.state}{waits}  {since}  {shown(run.title)}")


def give_run(folder: Path | None, text: str, model: str) -> str:
    """Give a run to a running host; return the id of its conversation."""
    return send(folder, HostRequest("ask", text=text, model=model)).session


def send(folder: Path | None, request: HostRequest) -> HostResponse:
    """Send a request to the host of a folder.

    Exits with `exits.UNREACHABLE` and an error message if there is none.
    """
    sockets = sockets_folder()
    try:
        host = choose_host(find_hosts(sockets), (folder or Path.cwd()).resolve())
        return ask_host(sockets, host, request)
    except HostUnreachable as bad:
        raise _NoHost(str(bad)) from None
